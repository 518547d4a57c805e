/* Texts of the statuses of a run, and the digest of the sources, by which an outdated build is recognised. */

#include "codes.h"

/* -- Texts of the statuses of a run. */

#define TEXT(name, number, text, sentence, remedy)                                                                     \
    case FSM_##name:                                                                                                   \
        return text;
#define SENTENCE(name, number, text, sentence, remedy)                                                                 \
    case FSM_##name:                                                                                                   \
        return sentence;
#define REMEDY(name, number, text, sentence, remedy)                                                                   \
    case FSM_##name:                                                                                                   \
        return remedy;

/* Return the short name of a status, fit for a log or a table; NULL where there is none of this number. */
FSM_API const char *fsm_status_text(int64_t status)
{
    switch (status) {
        FSM_STATUSES(TEXT)
    default:
        return NULL;
    }
}

/* Return what happened, in one sentence. */
FSM_API const char *fsm_status_sentence(int64_t status)
{
    switch (status) {
        FSM_STATUSES(SENTENCE)
    default:
        return NULL;
    }
}

/* Return what can be done about it, "" where nothing is wrong. */
FSM_API const char *fsm_status_remedy(int64_t status)
{
    switch (status) {
        FSM_STATUSES(REMEDY)
    default:
        return NULL;
    }
}

#undef TEXT
#undef SENTENCE
#undef REMEDY

/* -- Digest of the sources of the library, by which an outdated build is recognised. */

#ifndef FSM_SOURCES
#define FSM_SOURCES ""
#endif

FSM_API const char *fsm_sources(void);

/* The digest of all sources, as CMakeLists.txt works it out; empty where the library was built without it. */
FSM_API const char *fsm_sources(void)
{
    return FSM_SOURCES;
}
