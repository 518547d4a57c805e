/* Enclosures of inputs and states over a piece of a step, and bounds of contact forces over a region of several. */

#include "stepping.h"
#include "online_mode.h"

/* -- Enclosures of inputs, from their tables or expressions, and of states: the motion recorded of a step, a quartic, and its
   bounds on a piece of it. */

/* -- Inputs: bounds of one and of its rates between two instants. */

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

/* -- States. */

/* Write the recorded motion of a state in the trial step of length `h` (s): coefficients of its way from the start, those
   of its rate, its value at the start.  Neither is a difference of values, which are rounded more coarsely. */
FSM_LOCAL void fsm_record_state(const struct fsm_run *run, int64_t i, double h, double *motion)
{
    const struct fsm_work *work = run->work;
    double x0 = run->state->x.at[i], begin = run->state->x_dot.at[i], end = work->full_end.at[i];
    double way = work->x_end.at[i] - x0, half = work->x_mid.at[i] - x0;
    double *b = motion, *rates = motion + 5;
    b[0] = 0.0;
    b[1] = 0.25 * h * begin;
    b[3] = way - 0.25 * h * end;
    b[4] = way;
    b[2] = (16.0 * half - 4.0 * (b[1] + b[3]) - way) / 6.0;
    rates[0] = begin;
    rates[1] = 4.0 / h * (b[2] - b[1]);
    rates[2] = 4.0 / h * (b[3] - b[2]);
    rates[3] = end;
    motion[9] = x0;
}

/* Bound a state and its speed in the trial step of length `h` (s).

   In most steps nothing else is asked of its motion.  The coefficients are those of fsm_record_state except for their
   roundings, for which there is room. */
FSM_LOCAL void fsm_bound_state(const struct fsm_run *run, int64_t i, double h, double *least, double *most, double *speed)
{
    const struct fsm_work *work = run->work;
    double x0 = run->state->x.at[i], way = work->x_end.at[i] - x0;
    double first = 0.25 * h * run->state->x_dot.at[i], last = 0.25 * h * work->full_end.at[i], third = way - last;
    double second = (16.0 * (work->x_mid.at[i] - x0) - 4.0 * (first + third) - way) * (1.0 / 6.0);
    double low = fsm_smaller(fsm_smaller(0.0, first), fsm_smaller(third, way));
    double high = fsm_larger(fsm_larger(0.0, first), fsm_larger(third, way));
    double fast = fsm_larger(fsm_larger(fabs(first), fabs(last)), fsm_larger(fabs(second - first), fabs(third - second)));
    low = fsm_smaller(low, second);
    high = fsm_larger(high, second);
    double room = fast == 0.0 ? 0.0 : 2.0 * FSM_EPS * (fabs(x0) + 32.0 * fsm_larger(-low, high));
    *least = x0 + low - room;
    *most = x0 + high + room;
    *speed = 4.0 / h * fast * (1.0 + 256.0 * FSM_EPS);
}

/* The jet of a state on the piece [a, b] of the step of length `h` (s), a point where both are equal.

   Rates are those of the coefficients of the rate: differences of values on so short a piece would be roundings. */
FSM_LOCAL struct fsm_jet fsm_enclose_state(const double *motion, double h, double a, double b)
{
    double c[5], d[4], e[4], fast = 0.0;
    for (int64_t m = 0; m < 5; m++) {
        c[m] = motion[m];
    }
    for (int64_t m = 0; m < 4; m++) {
        d[m] = motion[5 + m];
        fast = fsm_larger(fast, fabs(d[m]));
    }
    for (int64_t level = 1; level < 5 && a > 0.0; level++) {
        for (int64_t m = 0; m < 5 - level; m++) {
            c[m] += a * (c[m + 1] - c[m]);
        }
        for (int64_t m = 0; m < 4 - level; m++) {
            d[m] += a * (d[m + 1] - d[m]);
        }
    }
    double value = motion[9] + c[0];
    if (a == b) {
        return (struct fsm_jet){{value, value}, {d[0], d[0]}, {0.0, 0.0}};
    }
    double rest = 1.0 - a, ratio = rest > 0.0 ? (b - a) / rest : 0.0, w = (b - a) * h;
    e[0] = d[0];
    for (int64_t level = 1; level < 4; level++) {
        for (int64_t m = 0; m < 4 - level; m++) {
            d[m] += ratio * (d[m + 1] - d[m]);
        }
        e[level] = d[0];
    }
    double way = 0.0, low = 0.0, high = 0.0;
    struct fsm_interval rate = {e[0], e[0]}, second = {FSM_INFINITY, -FSM_INFINITY};
    for (int64_t m = 0; m < 4; m++) {
        way += 0.25 * w * e[m];
        low = fsm_smaller(low, way);
        high = fsm_larger(high, way);
        rate = fsm_hull(rate, (struct fsm_interval){e[m], e[m]});
        if (m > 0) {
            double turn = e[m] - e[m - 1];
            second = fsm_hull(second, (struct fsm_interval){turn, turn});
        }
    }
    double first = 8.0 * FSM_EPS * fast, size = fsm_larger(fabs(value + low), fabs(value + high));
    double room = fast == 0.0 ? 0.0 : 2.0 * FSM_EPS * size + w * first;
    return (struct fsm_jet){{value + low - room, value + high + room},
                            {rate.low - first, rate.high + first},
                            {3.0 / w * (second.low - 2.0 * first), 3.0 / w * (second.high + 2.0 * first)}};
}

/* -- Bounds of the contact forces of modes that are embedded online over a region of some steps, from bounds of how fast their
   terms change over a larger one. */

#define FSM_TERMS_WIDE   8.0 // times what a region extends, by which the one for bounds of terms does
#define FSM_TERMS_MISSED 4.0 // steps enclosed after which that is chosen again; twice as many each time that it did not help
#define FSM_TERMS_MOST   64.0 // times as many at most
#define FSM_TERMS_AT_ONCE 3 // values of operations that cost as much as an operation with its rate and its middle

/* Whether terms are bounded over a large region that holds [low, high] (moving,). */
static bool holds_region(const struct fsm_term_bounds *t, const double *low, const double *high, int64_t n)
{
    bool inside = t->known[0] != 0.0 && t->known[1] < FSM_TERMS_MISSED * t->known[0];
    for (int64_t k = 0; k < n && inside; k++) {
        inside = low[k] >= t->low[k] && high[k] <= t->high[k];
    }
    return inside;
}

/* Bound rates of all terms over a large region about [low, high], at speeds that cross it in unit time, for slips in any
   direction: contacts begin to slide often. */
static void bound_terms(const struct fsm_run *run, const struct fsm_enclosure *p, const struct fsm_term_bounds *t,
                        const double *low, const double *high, struct fsm_jet *jets)
{
    const struct fsm_sizes *s = run->tables->sizes;
    int64_t n = run->state->x.n, ways = 1 + n + fsm_sigma_at(s);
    double times = t->known[0];
    bool served = times > 0.0 && t->known[1] < FSM_TERMS_MISSED * times; // it was only left
    for (int64_t k = 0; k < p->moving; k++) {
        double around = FSM_TERMS_WIDE * (high[k] - low[k]);
        around = served ? fsm_larger(around, 0.5 * (t->high[k] - t->low[k])) : around;
        if (times > 0.0) { // speeds that are constant between impacts jump at them
            around = fsm_larger(around, fsm_larger(t->low[k] - low[k], high[k] - t->high[k]));
        }
        t->low[k] = low[k] - (p->arguments[k] == 0 ? 0.0 : around);
        t->high[k] = high[k] + around;
        double width = t->high[k] - t->low[k];
        jets[k] = (struct fsm_jet){{t->low[k], t->high[k]}, {-width, width}, {0.0, 0.0}};
    }
    fsm_enclose_any(p, ways, ways + s->n_contacts, jets);
    fsm_enclose(p, NULL, 2, jets, NULL, 0.0);
    fsm_enclose_fixed(p, run->state->c.at, n, jets);
    for (int64_t i = 0; i < p->n_terms; i++) {
        const struct fsm_jet *jet = jets + p->terms[i];
        t->rate[i] = fsm_larger(-jet->rate.low, jet->rate.high);
        t->second[i] = fsm_larger(-jet->second.low, jet->second.high);
    }
    t->known[0] = times == 0.0 ? 1.0 : served ? fsm_larger(0.5 * times, 1.0) : fsm_smaller(2.0 * times, FSM_TERMS_MOST);
    t->known[1] = 0.0;
}

/* Bounds of terms where `part` of the large region is crossed, and their program. */
struct widening {
    const struct fsm_enclosure *program;
    const struct fsm_term_bounds *bounds;
    double part;
    struct fsm_jet *jets;
};

/* Widen the terms from `begin` to `end`, each known in the middle, to what they are within the part. */
static void widen_terms(const struct widening *w, int64_t begin, int64_t end)
{
    const struct fsm_enclosure *p = w->program;
    int64_t first = fsm_enclosure_size(p) - p->operations;
    for (int64_t i = begin; i < end; i++) {
        struct fsm_jet *jet = w->jets + p->terms[i];
        if (p->terms[i] >= first && fsm_is_zero(jet->rate)) { // once, where several terms are one value
            double rate = w->part * w->bounds->rate[i], second = w->part * w->part * w->bounds->second[i];
            jet->value = (struct fsm_interval){jet->value.low - 0.5 * rate, jet->value.high + 0.5 * rate};
            jet->rate = (struct fsm_interval){-rate, rate};
            jet->second = (struct fsm_interval){-second, second};
        }
    }
}

/* Widen the terms of the present mode: of contacts that are open the rows are not read. */
static void widen_mode(const struct fsm_run *run, const struct widening *w)
{
    const struct fsm_tables *tables = run->tables;
    int64_t U = tables->sizes->n_u, R = tables->sizes->n_rows;
    for (int64_t r = 0; r < R; r++) {
        if (tables->row_role.at[r] == FSM_ROLE_ALWAYS || tables->row_role.at[r] == FSM_ROLE_ALWAYS_POSITION) {
            widen_terms(w, r * U, (r + 1) * U);
        }
    }
    for (int64_t k = 0; k < tables->sizes->n_contacts; k++) {
        int64_t normal = AT(tables->contact_rows, k, 0), tangent = AT(tables->contact_rows, k, 1);
        if (AT(tables->mode_states, run->state->counters->mode, k) == FSM_CONTACT_FREE) {
            continue;
        }
        if (normal >= 0) {
            widen_terms(w, normal * U, (normal + 1) * U);
        }
        if (tangent >= 0) {
            bool in_space = (tables->contact_flags.at[k] & FSM_FLAG_IN_SPACE) != 0;
            widen_terms(w, tangent * U, (tangent + (in_space ? 2 : 1)) * U);
        }
    }
    widen_terms(w, R * U, w->program->n_terms);
}

/* Write the jets of the mode's guards on forces over the region [low, high] (moving,), along lines that cross it in unit
   time, as far as bounds of the terms over a larger region give them: no program is evaluated but in its middle.

   `needed` (operations,): those of the mode's terms.  Returns the work, in operations of a program, without that of bounds of
   terms. */
FSM_LOCAL int64_t fsm_bound_forces(const struct fsm_run *run, const struct fsm_enclosure *p, const struct fsm_term_bounds *t,
                                   const int64_t *codes, const int8_t *needed, const double *low, const double *high,
                                   struct fsm_jet *jets)
{
    if (!holds_region(t, low, high, p->moving)) {
        bound_terms(run, p, t, low, high, jets);
    }
    double part = 0.0;
    for (int64_t k = 0; k < p->moving; k++) {
        double m = 0.5 * (low[k] + high[k]), extent = high[k] - low[k];
        jets[k] = (struct fsm_jet){{m, m}, {0.0, 0.0}, {0.0, 0.0}};
        part = extent > 0.0 ? fsm_larger(part, extent / (t->high[k] - t->low[k])) : part;
    }
    part *= 1.0 + 16.0 * FSM_EPS;
    int64_t evaluated = fsm_enclose_values(p, needed, jets);
    if (part > 0.0) {
        widen_mode(run, &(struct widening){p, t, part, jets});
    }
    return evaluated / FSM_TERMS_AT_ONCE + fsm_enclose_forces(run, p, codes, 2, jets, NULL, 0.0, NULL);
}
