/* Times of the elementary functions beside those of the platform's mathematics library: one line a function. */

#define _GNU_SOURCE
#include "elementary.h"

#include <stdio.h>
#include <time.h>

enum { ARGUMENTS = 1024, CALLS = 200, ROUNDS = 15 };

static double any[ARGUMENTS], positive[ARGUMENTS];

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Print the best time (ns) of `own` and of `theirs`, measured in turn. */
#define COMPARE(name, own, theirs)                                                                                     \
    do {                                                                                                               \
        double best[2] = {1e9, 1e9};                                                                                   \
        volatile double kept = 0.0;                                                                                    \
        for (int round = 0; round < 2 * ROUNDS; round++) {                                                             \
            double sum = 0.0, start = now();                                                                           \
            for (int call = 0; call < CALLS * ARGUMENTS; call++) {                                                     \
                double x = any[call % ARGUMENTS], y = positive[call % ARGUMENTS];                                      \
                (void)x, (void)y;                                                                                      \
                sum += round % 2 ? (theirs) : (own);                                                                   \
            }                                                                                                          \
            double time = (now() - start) / (CALLS * ARGUMENTS) * 1e9;                                                 \
            kept = kept + sum;                                                                                         \
            best[round % 2] = time < best[round % 2] ? time : best[round % 2];                                         \
        }                                                                                                              \
        printf("%s %.3f %.3f\n", name, best[0], best[1]);                                                              \
    } while (0)

static double own_pair(double x)
{
    double both[2];
    fsm_sin_cos(x, both);
    return both[0] + both[1];
}

int main(void)
{
    for (int i = 0; i < ARGUMENTS; i++) {
        any[i] = -3.0 + 6.0 * (i * 733 % ARGUMENTS) / ARGUMENTS;
        positive[i] = 0.3 + 2.0 * (i * 211 % ARGUMENTS) / ARGUMENTS;
    }
    COMPARE("sin", fsm_sin(x), sin(x));
    COMPARE("cos", fsm_cos(x), cos(x));
    COMPARE("sin+cos", own_pair(x), sin(x) + cos(x));
    COMPARE("tan", fsm_tan(x), tan(x));
    COMPARE("atan2", fsm_atan2(x, y), atan2(x, y));
    COMPARE("exp", fsm_exp(x), exp(x));
    COMPARE("log", fsm_log(y), log(y));
    COMPARE("pow", fsm_pow(y, x), pow(y, x));
    COMPARE("tanh", fsm_tanh(x), tanh(x));
    COMPARE("hypot", fsm_hypot(x, y), hypot(x, y));
    return 0;
}
