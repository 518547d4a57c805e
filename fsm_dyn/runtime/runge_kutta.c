/* Runge-Kutta stages, dense output, steps of implicit methods. */

#include "elementary.h"
#include "stepping.h"

/* -- Explicit Runge-Kutta methods as data, and one step for all of them; step-size control.

   A step of length `h` from `x` with `s` stages, the derivative at the start given:

       k_0 = x_dot(t),   k_i = f(t + c_i h, x + h sum_j a_ij k_j),   x_1 = x + h sum_i b_i k_i,   k_s = f(t + h, x_1)

   `k_s` comes from the kernel that is evaluated at the end of a step anyway (guards, dependent speeds), and starts
   the next step.  Error estimate and mid-point are further weights over `k_0 .. k_s`. */

// of a step, over the one before
#define SAFETY   0.9
#define SMALLEST 0.2
#define LARGEST  10.0

#define FSM_NO_ERROR 1e-10 // of its tolerance: a step whose error is less is lengthened as far as a step may be
#define FSM_TELLS    1e-5  // times its tolerance: from here on a state, or a rate, tells how long a step may be
#define FSM_FLAT     1e-15 // times its tolerance: a rate up to this is none
#define FSM_SHORT    1e-6  // first step where nothing tells its length, in the mechanism's own unit of time

/* Take one step of length `h` (s) from the current state.

   `work->k` holds x_dot there on entry and all stages on return, (stages, n); `work->x_end` is the state at the end,
   `work->y` scratch.  The inputs in the context are overwritten with those at the stages. */
FSM_LOCAL void fsm_runge_kutta_step(const struct fsm_run *run, double h)
{
    const struct fsm_method *method = run->method;
    const struct fsm_state *state = run->state;
    fsm_vector x = state->x, y = run->work->y;
    double t = state->clock->time;
    double *rates = run->work->k.at, *end = run->work->x_end.at;
    const double *a = method->a.at, *weights = method->weights.at;
    int64_t n = x.n, stages = method->counts->stages, segment = state->counters->segment;
    for (int64_t i = 1; i < stages; i++) {
        for (int64_t j = 0; j < n; j++) {
            double total = 0.0;
            for (int64_t m = 0; m < i; m++) {
                total += a[i * stages + m] * rates[m * n + j];
            }
            y.at[j] = x.at[j] + h * total;
        }
        double at = t + method->nodes.at[i] * h;
        fsm_update_inputs(run->inputs, at, segment, y, state->c);
        fsm_rates_of(run->tables, state->counters->mode, at, y.at, state->c.at, rates + i * n);
    }
    for (int64_t j = 0; j < n; j++) {
        double total = 0.0;
        for (int64_t m = 0; m < stages; m++) {
            total += weights[m] * rates[m * n + j];
        }
        end[j] = x.at[j] + h * total;
    }
}

/* Write the state at the middle of the trial step of length `h` (s) into `work->x_mid`. */
FSM_LOCAL void fsm_middle_state(const struct fsm_run *run, double h)
{
    int64_t n = run->state->x.n, stages = run->method->counts->stages;
    const double *weights = run->method->weights.at + 2 * (stages + 1), *rates = run->work->k.at;
    for (int64_t j = 0; j < n; j++) {
        double total = 0.0;
        for (int64_t m = 0; m < stages + 1; m++) {
            total += weights[m] * rates[m * n + j];
        }
        run->work->x_mid.at[j] = run->state->x.at[j] + h * total;
    }
}

/* Return the root mean square of the estimated error of the trial step over its tolerance; the options' mask leaves
   states out. */
FSM_LOCAL double fsm_error_norm(const struct fsm_run *run, double h)
{
    const struct fsm_options *options = run->options;
    fsm_vector x = run->state->x, x_end = run->work->x_end;
    int64_t n = x.n, stages = run->method->counts->stages;
    int64_t row = options->mask.n > 1 ? run->state->counters->mode : 0;
    const double *weights = run->method->weights.at + (stages + 1), *rates = run->work->k.at;
    double rtol = options->numbers->rtol;
    double square = 0.0;
    int64_t count = 0;
    for (int64_t j = 0; j < n; j++) {
        if (AT(options->mask, row, j) == 0) {
            continue;
        }
        double total = 0.0;
        for (int64_t m = 0; m < stages + 1; m++) {
            total += weights[m] * rates[m * n + j];
        }
        double ratio = h * total / (options->atol.at[j] + rtol * fsm_larger(fabs(x.at[j]), fabs(x_end.at[j])));
        square += ratio * ratio;
        count++;
    }
    return sqrt(square / (double)fsm_most(count, 1));
}

/* Whether a step of fixed length `h` (s) tells nothing of where the motion goes.

   Derivatives at its end, before and after its last stage, then differ by more than all of the state and the
   mechanism's own units: the method is not stable at this length. */
FSM_LOCAL bool fsm_step_is_too_long(const struct fsm_run *run, double h)
{
    fsm_vector x = run->state->x, x_end = run->work->x_end, unit = run->tables->state_unit;
    const double *last = run->work->k.at + (run->method->counts->stages - 1) * x.n, *end = last + x.n;
    for (int64_t j = 0; j < unit.n; j++) {
        double size = unit.at[j] + fsm_smaller(fabs(x.at[j]), fabs(x_end.at[j]));
        if (h * fabs(end[j] - last[j]) > size) {
            return true;
        }
    }
    return false;
}

/* Return by how much to change the step after an accepted one (PI control).

   Hairer, Wanner, *Solving Ordinary Differential Equations II*, section IV.2, with beta = 0.4/order. */
FSM_LOCAL double fsm_step_factor(double error, double error_before, int64_t order)
{
    if (error < FSM_NO_ERROR) {
        return LARGEST;
    }
    double exponent = 0.4 * fsm_log(fsm_larger(error_before, 0.0001)) - 0.7 * fsm_log(error);
    return fsm_smaller(LARGEST, fsm_larger(SMALLEST, SAFETY * fsm_exp(exponent / (double)order)));
}

/* Return by how much to shorten a step whose error was too large. */
FSM_LOCAL double fsm_rejection_factor(double error, int64_t order)
{
    return fsm_larger(SMALLEST, SAFETY * fsm_pow(error, -1.0 / (double)order));
}

/* Return a first step length (s), `longest` at most, from the sizes of the state, its derivative and the change of that.

   `work->y` and `work->k` are overwritten.  Hairer, Norsett, Wanner, *Solving Ordinary Differential Equations I*,
   section II.4. */
FSM_LOCAL double fsm_first_step(const struct fsm_run *run, double longest)
{
    const struct fsm_state *state = run->state;
    fsm_vector x = state->x, x_dot = state->x_dot, y = run->work->y, k = run->work->k, atol = run->options->atol;
    double rtol = run->options->numbers->rtol;
    int64_t n = x.n;
    double d0 = 0.0, d1 = 0.0, d2 = 0.0;
    for (int64_t j = 0; j < n; j++) {
        double scale = atol.at[j] + rtol * fabs(x.at[j]);
        d0 += fsm_square(x.at[j] / scale);
        d1 += fsm_square(x_dot.at[j] / scale);
    }
    d0 = sqrt(d0 / (double)n);
    d1 = sqrt(d1 / (double)n);
    double unit = run->tables->tolerances->time_scale, h0 = FSM_SHORT * unit;
    if (d0 >= FSM_TELLS && d1 * unit >= FSM_TELLS) {
        h0 = 0.01 * d0 / d1;
    }
    h0 = fsm_smaller(h0, longest);
    for (int64_t j = 0; j < n; j++) {
        y.at[j] = x.at[j] + h0 * x_dot.at[j];
    }
    fsm_rates_of(run->tables, state->counters->mode, state->clock->time + h0, y.at, state->c.at, k.at);
    for (int64_t j = 0; j < n; j++) {
        d2 += fsm_square((k.at[j] - x_dot.at[j]) / (atol.at[j] + rtol * fabs(x.at[j])));
    }
    d2 = sqrt(d2 / (double)n) / h0;
    double steepest = fsm_larger(d1 * unit, d2 * unit * unit), h1;
    if (steepest <= FSM_FLAT) {
        h1 = fsm_larger(FSM_SHORT * unit, h0 * 0.001);
    } else {
        h1 = fsm_pow(0.01 / steepest, 1.0 / (double)run->method->counts->order) * unit;
    }
    double h = fsm_smaller(100.0 * h0, h1);
    return fsm_is_finite(h) ? fsm_smaller(h, longest) : fsm_smaller(h0, longest);
}

/* -- Dense output of implicit methods, along which guards are watched.

   The step of an implicit method is taken by a solver outside.  What the runtime then does with its dense output is what it
   does with a tableau: trial steps of any length, their ends projected, guards known by value and slope at start, middle
   and end.  A trial step is read off the polynomial instead of being taken. */

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

/* -- Steps of implicit methods for stiff models, which a solver outside takes.

   Its steps are read off their dense output (runge_kutta.c) and followed as those of an explicit method are: guards are
   watched and located by the same functions, and transitions are the same. */

/* Do one part of an implicit step.

   `what`: FSM_SERVE_DERIVATIVE writes x_dot at `t` and `work->y` into `work->k`; FSM_SERVE_FOLLOW accepts the dense output
   up to `t`, to the next event, or as far as guards are known, where a step must end at `target` (s); FSM_SERVE_CHART
   changes to a better chart; FSM_SERVE_LOOK looks for change points ahead of a step of length `target` (s), and writes
   the length that keeps clear of them into `work->y.at[0]`. */
FSM_API enum fsm_status fsm_implicit_step(const struct fsm_run *run, int64_t what, double t, double target)
{
    switch (what) {
    case FSM_SERVE_DERIVATIVE: {
        struct fsm_state *state = run->state;
        struct fsm_work *work = run->work;
        fsm_update_inputs(run->inputs, t, state->counters->segment, work->y, state->c);
        if (state->rank->lands != 0.0) {
            fsm_land(run, t, work->y, FSM_INFINITY);
        }
        state->spent.at[state->counters->mode]++;
        fsm_rates_of(run->tables, state->counters->mode, t, work->y.at, state->c.at, work->k.at);
        return FSM_CONTINUE;
    }
    case FSM_SERVE_CHART:
        return fsm_choose_chart(run);
    case FSM_SERVE_LOOK:
        return fsm_look(run, target, &run->work->y.at[0]);
    default: {
        enum fsm_status status = fsm_find_and_accept(run, t, target);
        fsm_look_at_far_here(run);
        return status;
    }
    }
}
