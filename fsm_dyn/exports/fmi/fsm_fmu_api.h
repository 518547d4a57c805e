/* What importers of a unit see: the functions of the standard alone, so that units with unlike runtimes keep apart in one
   process. */

#ifndef FSM_FMU_API_H
#define FSM_FMU_API_H

#if defined(_WIN32)
#define FMU_API __declspec(dllexport)
#define FSM_API
#else
#define FMU_API __attribute__((visibility("default")))
#define FSM_API __attribute__((visibility("hidden")))
#endif

#endif
