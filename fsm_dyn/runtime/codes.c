/* Texts of the statuses of a run. */

#include "codes.h"

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
