/* Dense output of implicit methods, along which guards are watched.

   The step of an implicit method is taken by a solver outside.  What the runtime then does with its dense output is what it
   does with a tableau: trial steps of any length, their ends projected, guards known by value and slope at start, middle
   and end.  A trial step is read off the polynomial instead of being taken. */

#include "stepping.h"

/* Write the state at `t` on the dense output into `x`. */
FSM_LOCAL void fsm_dense_state(const struct fsm_method *method, double t, fsm_vector x)
{
    int64_t n = x.n;
    double s = (t - method->dense.at[FSM_DENSE_END]) / method->dense.at[FSM_DENSE_LENGTH];
    int64_t degree = method->counts->degree;
    for (int64_t j = 0; j < n; j++) {
        double total = method->dense.at[FSM_DENSE_COEFFICIENTS + degree * n + j];
        for (int64_t d = degree - 1; d > -1; d--) {
            total = total * s + method->dense.at[FSM_DENSE_COEFFICIENTS + d * n + j];
        }
        x.at[j] = total;
    }
}
