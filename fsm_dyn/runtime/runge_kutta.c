/* Explicit Runge-Kutta methods as values, and one compiled step for all of them.

   A step of length `h` from `x` with `s` stages, the derivative at the start given::

       k_0 = x_dot(t),   k_i = f(t + c_i h, x + h sum_j a_ij k_j),   x_1 = x + h sum_i b_i k_i,   k_s = f(t + h, x_1)

   `k_s` comes from the kernel that is evaluated at the end of a step anyway (guards, dependent speeds), and starts
   the next step.  Error estimate and mid-point are further weights over `k_0 .. k_s`. */

#include "stepping.h"

#define FSM_SAFETY   0.9
#define FSM_SMALLEST 0.2
#define FSM_LARGEST  10.0

/* Take one step; `k[:n]` holds `x_dot` at the start on entry, `k[i*n:]` the stages on return.

   Parameters
   ----------
   rhs : int
       Address of the kernel of `x_dot`.
   x, c : float64 arrays
       State at the start; context (its inputs are overwritten with those at the stages).
   y, x_end : float64 arrays, shape (n,)
       Workspace; out: the state at the end.
   segment : int
       Segment of the input tables that holds throughout the step. */
FSM_LOCAL void fsm_runge_kutta_step(fsm_kernel rhs, const struct fsm_input_tables *drive,
                                    const struct fsm_method *method, double t, double h, fsm_vector x, fsm_vector c,
                                    fsm_vector k, fsm_vector y, fsm_vector x_end, int64_t segment)
{
    int64_t n = x.n;
    int64_t stages = method->counts->stages;
    double *a = method->a.at;
    double *weights = method->weights.at;
    double *rates = k.at;
    double total;
    for (int64_t i = 1; i < stages; i++) {
        for (int64_t j = 0; j < n; j++) {
            total = 0.0;
            for (int64_t m = 0; m < i; m++) {
                total += a[i * stages + m] * rates[m * n + j];
            }
            y.at[j] = x.at[j] + h * total;
        }
        double at = t + method->nodes.at[i] * h;
        fsm_update_inputs(drive, at, segment, y, c);
        rhs(at, y.at, c.at, k.at + i * n);
    }
    for (int64_t j = 0; j < n; j++) {
        total = 0.0;
        for (int64_t m = 0; m < stages; m++) {
            total += weights[m] * rates[m * n + j];
        }
        x_end.at[j] = x.at[j] + h * total;
    }
}

/* Write the state at mid-step; `k` holds the stages and, after them, the derivative at the end. */
FSM_LOCAL void fsm_middle_state(const struct fsm_method *method, double h, fsm_vector x, fsm_vector k, fsm_vector x_mid)
{
    int64_t n = x.n;
    int64_t stages = method->counts->stages;
    double *weights = method->weights.at + 2 * (stages + 1);
    double *rates = k.at;
    for (int64_t j = 0; j < n; j++) {
        double total = 0.0;
        for (int64_t m = 0; m < stages + 1; m++) {
            total += weights[m] * rates[m * n + j];
        }
        x_mid.at[j] = x.at[j] + h * total;
    }
}

/* Return the root mean square of the estimated error over its tolerance; `mask[row, j] == 0` leaves j out. */
FSM_LOCAL double fsm_error_norm(const struct fsm_method *method, double h, fsm_vector x, fsm_vector x_end, fsm_vector k,
                                double rtol, fsm_vector atol, fsm_code_table mask, int64_t row)
{
    int64_t n = x.n;
    int64_t stages = method->counts->stages;
    double *weights = method->weights.at + (stages + 1);
    double *rates = k.at;
    double square = 0.0;
    int64_t count = 0;
    for (int64_t j = 0; j < n; j++) {
        if (AT(mask, row, j) == 0) {
            continue;
        }
        double total = 0.0;
        for (int64_t m = 0; m < stages + 1; m++) {
            total += weights[m] * rates[m * n + j];
        }
        double ratio = h * total / (atol.at[j] + rtol * fsm_larger(fabs(x.at[j]), fabs(x_end.at[j])));
        square += ratio * ratio;
        count++;
    }
    return sqrt(square / (double)fsm_most(count, 1));
}

/* Return by how much to change the step after an accepted one (PI control).

   Hairer, Norsett, Wanner, *Solving Ordinary Differential Equations II*, section IV.2, with beta = 0.4/order. */
FSM_LOCAL double fsm_step_factor(double error, double error_before, int64_t order)
{
    if (error < 1e-10) {
        return FSM_LARGEST;
    }
    double factor =
        FSM_SAFETY * pow(error, -0.7 / (double)order) * pow(fsm_larger(error_before, 0.0001), 0.4 / (double)order);
    return fsm_smaller(FSM_LARGEST, fsm_larger(FSM_SMALLEST, factor));
}

/* Return by how much to shorten a step whose error was too large. */
FSM_LOCAL double fsm_rejection_factor(double error, int64_t order)
{
    return fsm_larger(FSM_SMALLEST, FSM_SAFETY * pow(error, -1.0 / (double)order));
}

/* Return a first step length (s) from the sizes of the state, its derivative and the change of that.

   Hairer, Norsett, Wanner, *Solving Ordinary Differential Equations I*, section II.4. */
FSM_LOCAL double fsm_first_step(fsm_kernel rhs, const struct fsm_method *method, double t, fsm_vector x,
                                fsm_vector x_dot, fsm_vector c, fsm_vector k, fsm_vector y, double rtol,
                                fsm_vector atol, double longest)
{
    int64_t n = x.n;
    double d0 = 0.0;
    double d1 = 0.0;
    for (int64_t j = 0; j < n; j++) {
        double scale = atol.at[j] + rtol * fabs(x.at[j]);
        d0 += fsm_square(x.at[j] / scale);
        d1 += fsm_square(x_dot.at[j] / scale);
    }
    d0 = sqrt(d0 / (double)n);
    d1 = sqrt(d1 / (double)n);
    double h0 = 1e-06;
    if (d0 >= 1e-05 && d1 >= 1e-05) {
        h0 = 0.01 * d0 / d1;
    }
    h0 = fsm_smaller(h0, longest);
    for (int64_t j = 0; j < n; j++) {
        y.at[j] = x.at[j] + h0 * x_dot.at[j];
    }
    rhs(t + h0, y.at, c.at, k.at);
    double d2 = 0.0;
    for (int64_t j = 0; j < n; j++) {
        d2 += fsm_square((k.at[j] - x_dot.at[j]) / (atol.at[j] + rtol * fabs(x.at[j])));
    }
    d2 = sqrt(d2 / (double)n) / h0;
    double steepest = fsm_larger(d1, d2);
    double h1;
    if (steepest <= 1e-15) {
        h1 = fsm_larger(1e-06, h0 * 0.001);
    } else {
        h1 = pow(0.01 / steepest, 1.0 / (double)method->counts->order);
    }
    double h = fsm_smaller(100.0 * h0, h1);
    return fsm_is_finite(h) ? fsm_smaller(h, longest) : fsm_smaller(h0, longest);
}
