/* Digest of the sources of the library, by which an outdated build is recognised. */

#include "types.h"

#ifndef FSM_SOURCES
#define FSM_SOURCES ""
#endif

FSM_API const char *fsm_sources(void);

/* The digest of all sources, as CMakeLists.txt works it out; empty where the library was built without it. */
FSM_API const char *fsm_sources(void)
{
    return FSM_SOURCES;
}
