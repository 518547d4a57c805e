/* Elementary functions, the same bits wherever doubles are IEEE's: kernels, the runtime and exported code call these, and of
   the platform's library only what is exact there (sqrt, fabs, floor, fmod).

   Errors are below 0.7 units in the last place (exponentials that are subnormal: 1).  Special values are those of C99. */

#ifndef FSM_ELEMENTARY_H
#define FSM_ELEMENTARY_H

#include "types.h"

/* A number as an unevaluated sum: `high` is the sum rounded, `low` what is left. */
struct fsm_sum {
    double high, low;
};

/* elementary.c */
FSM_API double fsm_sin(double x);
FSM_API double fsm_cos(double x);
FSM_API void fsm_sin_cos(double x, double *both);
FSM_API double fsm_tan(double x);
FSM_API double fsm_atan2(double y, double x);
FSM_API double fsm_atan(double x);
FSM_API double fsm_asin(double x);
FSM_API double fsm_acos(double x);
FSM_API double fsm_exp(double x);
FSM_API double fsm_expm1(double x);
FSM_API double fsm_log(double x);
FSM_API double fsm_pow(double x, double y);
FSM_API double fsm_sinh(double x);
FSM_API double fsm_cosh(double x);
FSM_API double fsm_tanh(double x);
FSM_API double fsm_hypot(double x, double y);
FSM_LOCAL struct fsm_sum fsm_two_sum(double a, double b);
FSM_LOCAL struct fsm_sum fsm_fast_two_sum(double a, double b);
FSM_LOCAL struct fsm_sum fsm_two_product(double a, double b);
FSM_LOCAL struct fsm_sum fsm_two_square(double a);
FSM_LOCAL struct fsm_sum fsm_multiply_sums(struct fsm_sum a, struct fsm_sum b);
FSM_LOCAL struct fsm_sum fsm_divide_sums(struct fsm_sum a, struct fsm_sum b);
FSM_LOCAL struct fsm_sum fsm_root(struct fsm_sum a);
FSM_LOCAL uint64_t fsm_bits(double x);
FSM_LOCAL double fsm_from_bits(uint64_t bits);
FSM_LOCAL double fsm_scaled(double x, int64_t power);

#endif
