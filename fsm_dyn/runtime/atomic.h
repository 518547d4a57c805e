/* Counters in memory that several processes share (release and acquire of C11 in C99).

   The one writer of a ring fills a slot, then counts it with FSM_RELEASE; a reader of the count with FSM_ACQUIRE sees
   the filled slot.  FSM_FENCE separates a count and the next overwriting of a slot: a reader that finds an inconsistent
   slot also finds the count with which the writer reached it again. */

#ifndef FSM_ATOMIC_H
#define FSM_ATOMIC_H

#if defined(FSM_NO_HOST)
/* One process, one thread. */
#define FSM_ACQUIRE(place)        (place)
#define FSM_RELEASE(place, value) ((place) = (value))
#define FSM_FENCE()               ((void)0)
#elif defined(__GNUC__)
#define FSM_ACQUIRE(place)        __atomic_load_n(&(place), __ATOMIC_ACQUIRE)
#define FSM_RELEASE(place, value) __atomic_store_n(&(place), (value), __ATOMIC_RELEASE)
#define FSM_FENCE()               __atomic_thread_fence(__ATOMIC_RELEASE)
#else
/* Microsoft's compiler gives volatile accesses these meanings (/volatile:ms, its default). */
#define FSM_ACQUIRE(place)        (*(volatile int64_t *)&(place))
#define FSM_RELEASE(place, value) (*(volatile int64_t *)&(place) = (value))
#define FSM_FENCE()               ((void)0)
#endif

#endif
