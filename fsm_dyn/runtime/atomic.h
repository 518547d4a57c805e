/* Counters in memory that several processes share: what is written before a release is seen after the acquire. */

#ifndef FSM_ATOMIC_H
#define FSM_ATOMIC_H

#if defined(__GNUC__)
#define FSM_ACQUIRE(place)        __atomic_load_n(&(place), __ATOMIC_ACQUIRE)
#define FSM_RELEASE(place, value) __atomic_store_n(&(place), (value), __ATOMIC_RELEASE)
#else
/* Microsoft's compiler gives volatile accesses these meanings (/volatile:ms, its default). */
#define FSM_ACQUIRE(place)        (*(volatile int64_t *)&(place))
#define FSM_RELEASE(place, value) (*(volatile int64_t *)&(place) = (value))
#endif

#endif
