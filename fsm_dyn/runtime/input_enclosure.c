/* Enclosures of inputs: bounds of one and of its rates between two instants, from its table or from its expression. */

#include "stepping.h"

/* The range of a polynomial of degree three or less on an interval, from its values and slopes at both ends. */
static struct fsm_interval range_of_cubic(double a, double a_slope, double b, double b_slope, double width)
{
    double second = a + width * a_slope / 3.0, third = b - width * b_slope / 3.0;
    double low = fsm_smaller(fsm_smaller(a, b), fsm_smaller(second, third));
    double high = fsm_larger(fsm_larger(a, b), fsm_larger(second, third));
    double room = 8.0 * FSM_EPS * fsm_larger(fabs(low), fabs(high));
    return (struct fsm_interval){low - room, high + room};
}

/* Bounds of input `number` and its three rates on [begin, end] (s) within one smooth piece of its table. */
static void bounds_of_piece(const double *a, double begin, double end, struct fsm_interval bounds[4])
{
    double width = end - begin, at[2][4];
    for (int64_t side = 0; side < 2; side++) {
        double d = side == 0 ? begin : end;
        at[side][0] = a[0] + d * (a[1] + d * (a[2] + d * a[3]));
        at[side][1] = a[1] + d * (2.0 * a[2] + d * 3.0 * a[3]);
        at[side][2] = 2.0 * a[2] + 6.0 * a[3] * d;
        at[side][3] = 6.0 * a[3];
    }
    for (int64_t rate = 0; rate < 3; rate++) {
        bounds[rate] = range_of_cubic(at[0][rate], at[0][rate + 1], at[1][rate], at[1][rate + 1], width);
    }
    bounds[3] = (struct fsm_interval){at[0][3], at[0][3]};
}

/* Bounds of an input and its three rates between two instants (s) of the present step; `smooth`: of how many rates, the
   value counting as one, none jumps there. */
static void bounds_of_input(const struct fsm_run *run, int64_t number, double begin, double end,
                            struct fsm_interval bounds[4], int64_t *smooth)
{
    const struct fsm_input_tables *inputs = run->inputs;
    int64_t segment = run->state->counters->segment, last = inputs->next_hard.at[segment];
    bool first = true;
    *smooth = 4;
    for (int64_t i = segment; i < last; i++) {
        double from = i == segment ? -FSM_INFINITY : inputs->start.at[i];
        double to = i + 1 < last ? inputs->start.at[i + 1] : FSM_INFINITY;
        if (to < begin || from > end) {
            continue;
        }
        struct fsm_interval piece[4];
        double origin = inputs->origin.at[i];
        bounds_of_piece(&AT3(inputs->pieces, i, number, 0), fsm_larger(from, begin) - origin,
                        fsm_smaller(to, end) - origin, piece);
        for (int64_t rate = 0; rate < 4; rate++) {
            bounds[rate] = first ? piece[rate] : fsm_hull(bounds[rate], piece[rate]);
        }
        *smooth = first ? 4 : 2;
        first = false;
    }
}

/* Return the kernel that gives an input and its number there; -1 where none does. */
static int64_t kernel_of(const struct fsm_input_tables *inputs, int64_t number, int64_t *own)
{
    for (int64_t k = 0; k < inputs->kernels.n; k++) {
        for (int64_t i = inputs->kernel_start.at[k]; i < inputs->kernel_start.at[k + 1]; i++) {
            if (inputs->kernel_inputs.at[i] == number) {
                *own = i - inputs->kernel_start.at[k];
                return k;
            }
        }
    }
    return -1;
}

/* The jet of rate `rate` of an input that kernel `k` gives, between two instants (s); unbounded where nothing encloses it.

   `evaluated`: the kernel whose jets between these instants are in the workspace. */
static struct fsm_jet jet_of_kernel(const struct fsm_run *run, int64_t k, int64_t own, int64_t rate, double begin, double end,
                                    int64_t *evaluated)
{
    const struct fsm_input_tables *inputs = run->inputs;
    const struct fsm_interval line = {-FSM_INFINITY, FSM_INFINITY};
    int64_t first = inputs->kernel_start.at[k], count = inputs->kernel_start.at[k + 1] - first;
    if (inputs->kernel_enclosure.at[k] < 0) {
        return (struct fsm_jet){line, line, line};
    }
    struct fsm_enclosure program = fsm_enclosure_at(inputs->enclosure_code.at + inputs->kernel_enclosure.at[k],
                                                    inputs->enclosure_numbers.at);
    struct fsm_jet *jets = (struct fsm_jet *)inputs->jets.at;
    if (*evaluated != k) {
        if (program.moving > 0) {
            jets[0] = (struct fsm_jet){{begin, end}, {1.0, 1.0}, {0.0, 0.0}};
        }
        fsm_enclose_fixed(&program, run->state->c.at, run->state->x.n, jets);
        fsm_enclose(&program, NULL, 2, jets, NULL, 0.0);
        *evaluated = k;
    }
    return jets[inputs->kernel_values.at[4 * first + rate * count + own]];
}

/* The jet of argument `place` of the context, an input or one of its rates, on a piece [begin, end] (s) of the step.

   `evaluated`: -1 for the first one on a piece; one kernel gives several. */
FSM_LOCAL struct fsm_jet fsm_enclose_input(const struct fsm_run *run, int64_t place, double begin, double end,
                                           int64_t *evaluated)
{
    const struct fsm_interval line = {-FSM_INFINITY, FSM_INFINITY}, zero = {0.0, 0.0};
    int64_t n_w = run->inputs->counts->n_inputs, from = place - run->inputs->counts->n_parameters;
    int64_t number = from < 3 * n_w ? from % n_w : place - (run->state->c.n - n_w), rate = from < 3 * n_w ? from / n_w : 3;
    double value = run->state->c.at[place];
    if (run->inputs->counts->constant != 0) {
        return (struct fsm_jet){{value, value}, zero, zero};
    }
    int64_t smooth, own, kernel = kernel_of(run->inputs, number, &own);
    if (kernel >= 0) {
        return jet_of_kernel(run, kernel, own, rate, begin, end, evaluated);
    }
    struct fsm_interval bounds[4] = {zero, zero, zero, zero};
    bounds_of_input(run, number, begin, end, bounds, &smooth);
    struct fsm_jet jet = {bounds[rate], zero, zero};
    if (rate < 3) {
        jet.rate = rate + 1 < smooth || smooth == 4 ? bounds[rate + 1] : line;
    }
    if (rate < 2) {
        jet.second = rate + 2 < smooth + 1 || smooth == 4 ? bounds[rate + 2] : line;
    }
    if (smooth < 4 && rate == 3) {
        jet.rate = jet.second = line;
    }
    return jet;
}
