/* Proof that no guard is passed over: every armed guard stays above its tolerance along the motion that is recorded.

   The recorded motion of a step is a quartic in time for every state; its Bernstein coefficients bound it, its speeds and its
   accelerations, on any piece.  Enclosures of the guards over such bounds prove a guard above `-tol` on a piece, by

       value      the lower bound of the enclosure,
       cone       values at both ends and bounds of the rate,
       parabola   values and slopes at both ends and a bound of the second rate,

   or the piece is halved.  Where an end of a piece is found at or below `-tol`, a guard has fired that was not seen.

   So that few steps take an enclosure, bounds of derivatives are kept: over a large region about the motion, how steep each
   guard is in each argument, and how fast its slope changes; over a region of some steps, which guards may be near zero at
   all.  They decide nothing: a guard that is proved with them is proved without (docs/theory.md, "No event is missed"). */

#include <string.h>

#include "stepping.h"

#define FSM_PROOF_NEAREST   4      // steps that the region of some steps reaches ahead at least,
#define FSM_PROOF_FARTHEST  256    // at most,
#define FSM_PROOF_FIRST     12     // and in a mode just entered
#define FSM_PROOF_STEEP     16.0   // times a guard, by which bounds over a region may change it; larger ones prove nothing
#define FSM_PROOF_BACK      0.25   // part of that, against the way in which a state moves
#define FSM_PROOF_FADES     0.5    // part of the length of steps before for which the next region is chosen
#define FSM_PROOF_DEAR      2      // enclosures of half the work of choosing a region make the next one smaller
#define FSM_PROOF_SETTLED   4      // regions in a mode embedded online before the large one is chosen
#define FSM_PROOF_WIDE      8.0    // times what it extends, by which the large one does
#define FSM_PROOF_FAST      4.0    // times the present speeds, for which changes of slopes are bounded
#define FSM_PROOF_MISSED    16     // enclosures of steps after which the large region is chosen anew
#define FSM_PROOF_BOXES     256     // pieces looked at for one guard of a step, after which a shorter step is taken
#define FSM_PROOF_PER_BOX   0.1    // work of a piece, in evaluations of the guards
#define FSM_PROOF_CLOSE     10.0   // tolerances of time within which events are one
#define FSM_PROOF_STACKED   64     // pieces that wait
#define FSM_PROVED    2.0    // a fraction beyond the step

/* Integers in `work->proof_numbers`, behind those of `enum fsm_undecided`; then lists of guards: armed ones that may be near
   zero, waiting ones, others, and of these the ones that are left.  REGIONS: how many were chosen in the mode.  FORCES:
   whether guards on forces that no program gives are needed; RECORDED: whether the motion of this step is written.  WORK: the
   operations evaluated; of these CHOICE for the region, and SPENT on steps in it since. */
enum { LOADED = FSM_UNDECIDED_SUBJECT + 1, REGION, CHECKED, AHEAD, WORK, CHOICE, SPENT, FORCES, REGIONS, RECORDED,
       NEAR_ARMED, NEAR_WAITING, LISTS };

/* What is kept of the mode's guards, and room for the present step. */
struct proof {
    struct fsm_enclosure program;
    const int64_t *outputs;                   // (n_guards,): values of the program, -1 where a guard has none, below where
                                              // its forces are solved for
    int64_t guards;
    double *motion;                           // (moving, FSM_MOTION): of the states in the step
    double *low, *high, *speed, *bend;        // (moving,): bounds of the arguments in the step
    double *region_low, *region_high, *reach; // (moving,): the region of some steps, and distances from its middle
    double *local, *local_down, *local_up;    // (guards,): how much a guard changes in it, -1: known from the large region
    struct fsm_jet *jets, *middle;            // of a piece, and in its middle
    double *owner;                            // number of the mode, counted from 1, of which the rest is known
    double *known;                            // 0: nothing is known in the mode; else 1 and the enclosures of steps since
    double *fixed;                            // (fixed,): values of the fixed arguments for which it is known
    struct fsm_term_bounds terms;             // of forces that are solved for, in all modes
    double *wide_low, *wide_high, *pace;      // (moving,): the large region, and the speeds there
    double *steep, *down, *up;                // (guards, moving), (guards,): bounds of slopes, of -g'' and of g''
    int64_t *numbers;
};

/* Write where all of it is for the present mode; false if nothing encloses its guards. */
static bool find_proof(const struct fsm_run *run, struct proof *p)
{
    const struct fsm_tables *tables = run->tables;
    int64_t mode = run->state->counters->mode, first = tables->mode_guard_start.at[mode];
    int64_t P = tables->sizes->max_moving, G = tables->sizes->max_guards;
    if (!fsm_has_enclosures(tables, mode)) {
        return false;
    }
    p->program = fsm_enclosure_at(tables->enclosure_code.at + tables->mode_enclosure.at[mode], tables->enclosure_numbers.at);
    p->outputs = tables->guard_enclosure.at + first;
    p->guards = fsm_guard_count(tables, mode);
    p->numbers = run->work->proof_numbers.at;
    p->motion = run->work->proof.at;
    p->low = p->motion + FSM_MOTION * P;
    p->high = p->low + P;
    p->speed = p->high + P;
    p->bend = p->speed + P;
    p->region_low = p->bend + P;
    p->region_high = p->region_low + P;
    p->reach = p->region_high + P;
    p->local = p->reach + P;
    p->local_down = p->local + G;
    p->local_up = p->local_down + G;
    p->jets = (struct fsm_jet *)(p->local_up + G);
    p->middle = p->jets + tables->sizes->max_values;
    int64_t n = p->program.moving;
    p->owner = (double *)(p->middle + tables->sizes->max_values) + tables->enclosure_room.at[mode];
    p->known = p->owner + 1;
    p->fixed = p->known + 1;
    double *next = p->fixed + p->program.fixed;
    if (p->program.n_terms > 0) {
        double *rates = next + 2 + 2 * n;
        p->terms = (struct fsm_term_bounds){next, next + 2, next + 2 + n, rates, rates + p->program.n_terms};
        next = p->terms.second + p->program.n_terms;
    }
    p->wide_low = next;
    p->wide_high = p->wide_low + n;
    p->pace = p->wide_high + n;
    p->steep = p->pace + n;
    p->down = p->steep + p->guards * n;
    p->up = p->down + p->guards;
    return true;
}

/* The number of a guard's jet; -1 where nothing encloses it.  Forces that are solved for follow the program's values. */
static int64_t output_of(const struct proof *p, int64_t j)
{
    return p->outputs[j] < -1 ? fsm_enclosure_size(&p->program) + j : p->outputs[j];
}

/* Evaluate the needed operations over a piece, a part of the step or not, up to the rate of `order`, and the forces that are
   solved for. */
static void enclose(const struct fsm_run *run, const struct proof *p, const int8_t *needed, int64_t order, double reach,
                    const struct fsm_part *part)
{
    p->numbers[WORK] += fsm_enclose(&p->program, needed, order, p->jets, p->middle, reach);
    if (p->numbers[FORCES] != 0) {
        p->numbers[WORK] += fsm_enclose_forces(run, &p->program, p->outputs, order, p->jets, p->middle, reach, part);
    }
}

/* Write bounds of the arguments in the trial step of length `h` (s), without accelerations of states. */
static void bound_step(const struct fsm_run *run, const struct proof *p, double h)
{
    const struct fsm_state *state = run->state;
    double t = state->clock->time;
    int64_t evaluated = -1;
    for (int64_t k = 0; k < p->program.moving; k++) {
        int64_t i = p->program.arguments[k] - 1;
        if (i < 0) {
            p->low[k] = t;
            p->high[k] = t + h * (1.0 + 4.0 * FSM_EPS);
            p->speed[k] = 1.0;
        } else if (i >= state->x.n) {
            struct fsm_jet jet = fsm_enclose_input(run, i - state->x.n, t, t + h, &evaluated);
            p->low[k] = jet.value.low;
            p->high[k] = jet.value.high;
            p->speed[k] = fsm_larger(-jet.rate.low, jet.rate.high);
            p->bend[k] = fsm_larger(-jet.second.low, jet.second.high);
        } else {
            fsm_bound_state(run, i, h, p->low + k, p->high + k, p->speed + k);
        }
    }
}

/* Write the motion of states in the step of length `h` (s), once for it. */
static void record_motion(const struct fsm_run *run, const struct proof *p, double h)
{
    for (int64_t k = 0; k < p->program.moving && p->numbers[RECORDED] == 0; k++) {
        int64_t i = p->program.arguments[k] - 1;
        if (i >= 0 && i < run->state->x.n) {
            fsm_record_state(run, i, h, p->motion + FSM_MOTION * k);
        }
    }
    p->numbers[RECORDED] = 1;
}

/* Write bounds of the accelerations of states in the step of length `h` (s). */
static void bound_accelerations(const struct fsm_run *run, const struct proof *p, double h)
{
    int64_t n_x = run->state->x.n;
    record_motion(run, p, h);
    for (int64_t k = 0; k < p->program.moving; k++) {
        int64_t i = p->program.arguments[k] - 1;
        if (i < 0) {
            p->bend[k] = 0.0;
        } else if (i < n_x) {
            const double *rates = p->motion + FSM_MOTION * k + 5;
            double turn = fsm_larger(fabs(rates[1] - rates[0]), fabs(rates[2] - rates[1]));
            turn = fsm_larger(turn, fabs(rates[3] - rates[2]));
            p->bend[k] = 3.0 / h * (turn + 16.0 * FSM_EPS * p->speed[k]);
        }
    }
}

/* Write the jets of the arguments on the piece [a, b] of the step of length `h` (s), or at a point, into `jets`. */
static void put_piece(const struct fsm_run *run, const struct proof *p, double h, double a, double b, struct fsm_jet *jets)
{
    double t = run->state->clock->time;
    int64_t n = run->state->x.n, evaluated = -1;
    for (int64_t k = 0; k < p->program.moving; k++) {
        int64_t i = p->program.arguments[k] - 1;
        if (i < 0) {
            jets[k] = (struct fsm_jet){{t + a * h, t + b * h * (1.0 + 4.0 * FSM_EPS)}, {1.0, 1.0}, {0.0, 0.0}};
        } else if (i >= n) {
            jets[k] = fsm_enclose_input(run, i - n, t + a * h, t + b * h, &evaluated);
        } else {
            jets[k] = fsm_enclose_state(p->motion + FSM_MOTION * k, h, a, b);
        }
    }
}

/* Enclose the needed operations on the piece [a, b] of the step of length `h` (s), and in its middle, up to the rate of
   `order`. */
static void enclose_piece(const struct fsm_run *run, const struct proof *p, const int8_t *needed, int64_t order, double h,
                          double a, double b)
{
    double m = 0.5 * (a + b);
    put_piece(run, p, h, a, b, p->jets);
    put_piece(run, p, h, m, m, p->middle);
    enclose(run, p, needed, order, 0.5 * (b - a) * h * (1.0 + 4.0 * FSM_EPS), &(struct fsm_part){a, b, h});
}

/* A guard in the trial step: values and slopes at its start, middle and end; `sign` -1: it waits to rise. */
struct watched {
    int64_t j, output;
    double g[3], s[3], tolerance;
    bool waiting, differenced; // its slopes are differences, which prove nothing
};

static struct watched watched_guard(const struct fsm_run *run, const struct proof *p, int64_t j)
{
    const struct fsm_state *state = run->state;
    const struct fsm_work *work = run->work;
    int64_t most = run->tables->sizes->max_guards, n_g = p->guards;
    int64_t at = state->x.n + run->tables->sizes->n_u + 1;
    const double *middle = work->full_mid.at + at, *end = work->full_end.at + at;
    struct watched w = {j,
                        output_of(p, j),
                        {state->guards.at[j], middle[j], end[j]},
                        {state->guards.at[most + j], middle[n_g + j], end[n_g + j]},
                        state->guards.at[2 * most + j],
                        state->armed.at[j] == FSM_GUARD_WAITING,
                        p->outputs[j] < -1};
    if (!w.waiting) {
        w.tolerance = fsm_larger(w.tolerance, -w.g[0] * 1.000001);
        w.g[2] = w.g[2] <= -w.tolerance ? 0.0 : w.g[2]; // the event that ends the step
    }
    return w;
}

/* Whether a guard rests at zero in all of the step, kept there by rows or forces of others. */
static bool rests(const struct fsm_run *run, const struct watched *w, double h)
{
    int64_t number = run->tables->mode_guard_start.at[run->state->counters->mode] + w->j;
    double small = fsm_guard_gap_tolerance(run->tables, number);
    small = fsm_larger(small, FSM_PROOF_RESTING * w->tolerance);
    double value = fsm_larger(fabs(w->g[0]), fsm_larger(fabs(w->g[1]), fabs(w->g[2])));
    double slope = fsm_larger(fabs(w->s[0]), fsm_larger(fabs(w->s[1]), fabs(w->s[2])));
    return value < small && h * slope < small;
}

/* The piece between two of the three instants of the step; slopes that are not known are those that prove least. */
static struct fsm_piece piece_of(const struct watched *w, double a, double b, int64_t from, int64_t to)
{
    double unknown = w->waiting ? FSM_INFINITY : -FSM_INFINITY;
    return (struct fsm_piece){a, b, w->g[from], w->g[to], w->differenced ? unknown : w->s[from],
                          w->differenced ? -unknown : w->s[to]};
}

/* Mark the operations of the guards listed; `count` of them. */
static int8_t *needed_for(const struct fsm_run *run, const struct proof *p, const int64_t *guards, int64_t count)
{
    int8_t *needed = run->work->proof_needed.at;
    int64_t first = fsm_enclosure_size(&p->program) - p->program.operations;
    memset(needed, 0, (size_t)p->program.operations);
    p->numbers[FORCES] = 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t output = p->outputs[guards[i]];
        if (output >= first) {
            needed[output - first] = 1;
        }
        p->numbers[FORCES] = output < -1 ? 1 : p->numbers[FORCES];
    }
    if (p->numbers[FORCES] != 0) {
        fsm_mark_terms(run, &p->program, needed);
    }
    fsm_mark_needed(&p->program, needed);
    return needed;
}

/* Count a step that is halved as guard `j` could not be decided in it. */
static void note_undecided(const struct fsm_run *run, int64_t j)
{
    int64_t number = run->tables->mode_guard_start.at[run->state->counters->mode] + j;
    int64_t *noted = run->work->proof_numbers.at;
    noted[FSM_UNDECIDED_STEPS]++;
    noted[FSM_UNDECIDED_EVENT] = run->tables->guard_event.at[number];
    noted[FSM_UNDECIDED_SUBJECT] = run->tables->guard_contact.at[number];
}

/* Look through the step for where a guard fires unseen, left to right, halving what is not proved.
   Returns the fraction of the step to take instead: to where the guard is at or below `-tolerance`, or to where one that
   waits has risen that falls again; FSM_PROVED where there is nothing.
   `halves` (4,): the guard's jets in the first half of the step and in its middle, then of the second; NULL: not known. */
static double search_step(const struct fsm_run *run, const struct proof *p, int64_t number, const struct watched *w,
                          double h, const struct fsm_jet *halves)
{
    const int8_t *needed = NULL;
    struct fsm_piece stack[FSM_PROOF_STACKED];
    double tolerance = w->tolerance, risen = FSM_PROVED, found = FSM_PROVED;
    double least = FSM_PROOF_CLOSE * run->tables->tolerances->time / h;
    bool waiting = w->waiting;
    int64_t top = 2, boxes = 0;
    stack[0] = piece_of(w, 0.5, 1.0, 1, 2);
    stack[1] = piece_of(w, 0.0, 0.5, 0, 1);
    while (top > 0) {
        struct fsm_piece z = stack[--top];
        if (!waiting && z.gb <= -tolerance) {
            found = risen < 1.0 ? risen : z.b;
            break;
        }
        boxes++;
        bool known = halves != NULL && z.b - z.a == 0.5;
        if (!known) {
            needed = needed != NULL ? needed : needed_for(run, p, &number, 1);
            enclose_piece(run, p, needed, 2, h, z.a, z.b);
        }
        const struct fsm_jet *jet = known ? halves + (z.a > 0.0 ? 2 : 0) : p->jets + w->output;
        const struct fsm_jet *middle = known ? jet + 1 : p->middle + w->output;
        double low = middle->value.low, high = middle->value.high;
        if (high - low < FSM_INFINITY && !fsm_jumps_in(middle, fabs(w->g[0]) + fabs(w->g[1]) + fabs(w->g[2]))) {
            tolerance = fsm_larger(tolerance, w->tolerance + 4.0 * (high - low)); // what rounding leaves open
        }
        if (fsm_is_proved(&z, jet, middle, h, tolerance, waiting)) {
            continue;
        }
        bool ends = z.b - z.a <= least || top + 2 > FSM_PROOF_STACKED || !(high - low < FSM_INFINITY);
        if ((waiting && jet->rate.low >= 0.0) || ends) {
            if (waiting && z.gb > tolerance) {
                waiting = false;
                risen = z.b;
            }
            continue;
        }
        if (boxes >= FSM_PROOF_BOXES) {
            note_undecided(run, number);
            found = 0.5;
            break;
        }
        double m = 0.5 * (z.a + z.b), value = waiting ? high : low;
        stack[top++] = (struct fsm_piece){m, z.b, value, z.gb, middle->rate.low, z.sb};
        stack[top++] = (struct fsm_piece){z.a, m, z.ga, value, z.sa, middle->rate.high};
    }
    run->work->proof.at[run->work->proof.n - 1] += FSM_PROOF_PER_BOX * (double)boxes;
    if (found == FSM_PROVED && risen < 1.0 && w->g[2] <= w->tolerance) {
        found = risen; // it is back at zero where the step ends, and would wait on
    }
    return found;
}

/* Have the fixed values in the workspace, and forget all that is known for others. */
static void load_fixed(const struct fsm_run *run, const struct proof *p)
{
    const struct fsm_enclosure *e = &p->program;
    int64_t mode = run->state->counters->mode, n = run->state->x.n;
    const double *c = run->state->c.at;
    int64_t ways = fsm_sigma_at(run->tables->sizes), n_ways = run->tables->sizes->n_contacts;
    bool owned = p->owner[0] == (double)(mode + 1), same = owned, turned = p->owner[0] != 0.0;
    int64_t begin = p->numbers[CHECKED] == mode + 1 && owned ? e->parameters : 0;
    for (int64_t i = begin; i < e->fixed; i++) {
        int64_t place = e->arguments[e->moving + i] - 1 - n;
        if (p->fixed[i] != c[place]) {
            same = false;
            turned = turned && place >= ways && place < ways + n_ways;
            p->fixed[i] = c[place];
        }
    }
    p->numbers[CHECKED] = mode + 1;
    if (same && p->numbers[LOADED] == mode + 1) {
        return;
    }
    if (e->n_terms > 0 && !turned) { // their bounds hold for slips in any direction, and in all modes
        p->terms.known[0] = 0.0;
    }
    if (!same) {
        p->known[0] = 0.0;
        p->owner[0] = (double)(mode + 1);
    }
    fsm_enclose_fixed(e, c, n, p->jets);
    int64_t kept = fsm_enclosure_size(e) - e->operations;
    for (int64_t i = e->moving; i < kept; i++) {
        p->middle[i] = p->jets[i];
    }
    p->numbers[LOADED] = mode + 1;
    p->numbers[REGION] = p->numbers[REGIONS] = 0;
}

/* Bound how fast the slopes of guards change in the large region at its pace; list those of which that is bounded. */
static int64_t bound_changes(const struct fsm_run *run, const struct proof *p, int64_t *bounded)
{
    int64_t count = 0;
    for (int64_t k = 0; k < p->program.moving; k++) {
        p->jets[k].rate = (struct fsm_interval){-p->pace[k], p->pace[k]};
    }
    for (int64_t j = 0; j < p->guards; j++) {
        if (p->outputs[j] >= 0) {
            bounded[count++] = j;
        }
    }
    fsm_enclose(&p->program, needed_for(run, p, bounded, count), 2, p->jets, NULL, 0.0);
    count = 0;
    for (int64_t j = 0; j < p->guards; j++) {
        struct fsm_interval second = {-FSM_INFINITY, FSM_INFINITY};
        if (p->outputs[j] >= 0) {
            second = p->jets[p->outputs[j]].second;
        }
        p->down[j] = fsm_larger(-second.low, 0.0);
        p->up[j] = fsm_larger(second.high, 0.0);
        if (p->down[j] < FSM_INFINITY) {
            bounded[count++] = j;
        }
    }
    return count;
}

/* Bound slopes of guards, and changes of slopes, over a large region about that of some steps. */
static void bound_derivatives(const struct fsm_run *run, const struct proof *p)
{
    int64_t n = p->program.moving, *bounded = p->numbers + LISTS;
    for (int64_t k = 0; k < n; k++) {
        double extent = p->region_high[k] - p->region_low[k];
        double r = fsm_larger(fabs(p->region_low[k]), fabs(p->region_high[k])) + FSM_PROOF_WIDE * extent;
        bool time = p->program.arguments[k] == 0;
        p->wide_low[k] = time ? p->region_low[k] : -2.0 * r;
        p->wide_high[k] = time ? p->region_low[k] + FSM_PROOF_WIDE * extent : 2.0 * r;
        p->pace[k] = FSM_PROOF_FAST * p->speed[k];
        p->jets[k] = (struct fsm_jet){{p->wide_low[k], p->wide_high[k]}, {0.0, 0.0}, {0.0, 0.0}};
    }
    int64_t count = bound_changes(run, p, bounded);
    const int8_t *needed = needed_for(run, p, bounded, count);
    for (int64_t k = 0; k < n; k++) {
        p->jets[k].rate = (struct fsm_interval){0.0, 0.0};
    }
    for (int64_t k = 0; k < n && count > 0; k++) {
        p->jets[k].rate = (struct fsm_interval){-1.0, 1.0};
        fsm_enclose_rates(&p->program, needed, p->jets);
        p->jets[k].rate = (struct fsm_interval){0.0, 0.0};
        for (int64_t i = 0; i < count; i++) {
            p->steep[bounded[i] * n + k] = fsm_size_of(p->jets[p->outputs[bounded[i]]].rate);
        }
    }
    p->known[0] = 1.0;
}

/* Enclose the guards that are too steep in the large region over that of some steps. */
static void bound_locally(const struct fsm_run *run, const struct proof *p, const int64_t *guards, int64_t count)
{
    for (int64_t k = 0; k < p->program.moving; k++) {
        double low = p->region_low[k], high = p->region_high[k], m = 0.5 * (low + high);
        struct fsm_interval all = {-p->reach[k], p->reach[k]}; // along any line to the middle, in unit time
        p->jets[k] = (struct fsm_jet){{low, high}, all, {0.0, 0.0}};
        p->middle[k] = (struct fsm_jet){{m, m}, all, {0.0, 0.0}};
    }
    enclose(run, p, needed_for(run, p, guards, count), 1, 1.0, NULL);
}

/* Bound the forces among the guards listed by what is known of their terms; return how many guards are left. */
static int64_t bound_forces(const struct fsm_run *run, const struct proof *p, int64_t *guards, int64_t count)
{
    int64_t left = 0, size = fsm_enclosure_size(&p->program);
    const int8_t *needed = needed_for(run, p, guards, count);
    if (p->numbers[FORCES] == 0) {
        return count;
    }
    p->numbers[WORK] += fsm_bound_forces(run, &p->program, &p->terms, p->outputs, needed, p->region_low, p->region_high,
                                         p->jets);
    for (int64_t i = 0; i < count; i++) {
        const struct fsm_jet *jet = p->jets + size + guards[i];
        if (p->outputs[guards[i]] < -1 && fsm_size_of(jet->rate) < FSM_INFINITY) {
            p->middle[size + guards[i]] = *jet;
        } else {
            guards[left++] = guards[i];
        }
    }
    return left;
}

/* Choose how many steps ahead the next region reaches: farther ones are chosen less often, nearer ones spare enclosures of
   steps.  Both cost least together where they cost alike. */
static double steps_ahead(const struct fsm_run *run, const struct proof *p)
{
    int64_t *ahead = p->numbers + AHEAD;
    if (p->numbers[REGION] != run->state->counters->mode + 1) {
        *ahead = FSM_PROOF_FIRST;
    } else if (p->numbers[SPENT] == 0) {
        *ahead = fsm_least(2 * *ahead, FSM_PROOF_FARTHEST);
    } else if (FSM_PROOF_DEAR * p->numbers[SPENT] > p->numbers[CHOICE]) {
        *ahead = fsm_most(*ahead / 2, FSM_PROOF_NEAREST);
    }
    return (double)*ahead;
}

/* Choose the region of the next steps about the trial step, and list the guards that may be near zero in it. */
static void choose_region(const struct fsm_run *run, const struct proof *p, double h)
{
    struct fsm_state *state = run->state;
    int64_t n = p->program.moving, most = run->tables->sizes->max_guards;
    bool inside = p->known[0] != 0.0 && p->known[0] < 1.0 + FSM_PROOF_MISSED;
    int64_t begin = p->numbers[WORK];
    bool kept = p->numbers[REGION] == run->state->counters->mode + 1;
    double ahead = steps_ahead(run, p), *horizon = run->work->proof.at + run->work->proof.n - 2;
    *horizon = fsm_larger(h, FSM_PROOF_FADES * *horizon); // steps are short behind events, and soon as long as before
    for (int64_t k = 0; k < n; k++) {
        double reach = fsm_larger(p->high[k] - p->low[k], 0.25 * *horizon * p->speed[k]);
        int64_t i = p->program.arguments[k] - 1;
        double rate = i >= 0 && i < state->x.n ? state->x_dot.at[i] : 0.0;
        double down = i < 0 ? 0.0 : rate > 0.0 ? FSM_PROOF_BACK : 1.0, up = rate < 0.0 ? FSM_PROOF_BACK : 1.0;
        double left = fsm_larger(p->region_low[k] - p->low[k], p->high[k] - p->region_high[k]);
        double jump = kept && reach == 0.0 ? FSM_PROOF_FADES * left : 0.0; // speeds that change at impacts alone
        p->region_low[k] = p->low[k] - fsm_larger(down * ahead * reach, jump);
        p->region_high[k] = p->high[k] + fsm_larger(up * ahead * reach, jump);
        p->reach[k] = p->region_high[k] - p->region_low[k];
        inside = inside && p->region_low[k] >= p->wide_low[k] && p->region_high[k] <= p->wide_high[k];
    }
    bool settled = p->program.n_terms == 0 || p->numbers[REGIONS]++ >= FSM_PROOF_SETTLED;
    if (!inside && settled) {
        bound_derivatives(run, p);
    }
    int64_t *armed = p->numbers + LISTS, *waiting = armed + most, *local = waiting + most, locals = 0;
    p->numbers[NEAR_ARMED] = p->numbers[NEAR_WAITING] = 0;
    for (int64_t j = 0; j < p->guards; j++) {
        if (output_of(p, j) < 0) {
            continue;
        }
        double change = 0.0;
        const double *steep = p->steep + j * n;
        bool bounded = settled && p->down[j] < FSM_INFINITY;
        for (int64_t k = 0; k < n && bounded; k++) {
            change += p->reach[k] > 0.0 && steep[k] > 0.0 ? steep[k] * p->reach[k] : 0.0;
        }
        p->local[j] = -1.0;
        if (!bounded || !(change < FSM_PROOF_STEEP * fabs(state->guards.at[j]))) {
            local[locals++] = j;
            continue;
        }
        if (!(state->guards.at[j] > change)) {
            armed[p->numbers[NEAR_ARMED]++] = j;
        }
        if (!(-state->guards.at[j] > change)) {
            waiting[p->numbers[NEAR_WAITING]++] = j;
        }
    }
    int64_t *left = local + most;
    memcpy(left, local, (size_t)locals * sizeof *left);
    int64_t lefts = bound_forces(run, p, left, locals);
    if (lefts > 0) {
        bound_locally(run, p, left, lefts);
    }
    for (int64_t i = 0; i < locals; i++) {
        int64_t j = local[i];
        const struct fsm_jet *jet = p->jets + output_of(p, j);
        p->local[j] = fsm_size_of(jet->rate);
        p->local_down[j] = fsm_larger(-jet->second.low, 0.0);
        p->local_up[j] = fsm_larger(jet->second.high, 0.0);
        if (!(jet->value.low > 0.0) && !(state->guards.at[j] > p->local[j])) {
            armed[p->numbers[NEAR_ARMED]++] = j;
        }
        if (!(jet->value.high < 0.0) && !(-state->guards.at[j] > p->local[j])) {
            waiting[p->numbers[NEAR_WAITING]++] = j;
        }
    }
    p->numbers[REGION] = state->counters->mode + 1;
    p->numbers[CHOICE] = p->numbers[WORK] - begin + p->guards;
    p->numbers[SPENT] = 0;
}

/* Whether the step whose bounds are in the workspace lies in the region in which the near guards are known, and that is not so
   large that it proves little. */
static bool is_in_region(const struct fsm_run *run, const struct proof *p)
{
    bool serves = p->numbers[SPENT] <= p->numbers[CHOICE] || p->numbers[AHEAD] == FSM_PROOF_NEAREST;
    bool inside = p->numbers[REGION] == run->state->counters->mode + 1 && serves;
    for (int64_t k = 0; k < p->program.moving && inside; k++) {
        inside = p->low[k] >= p->region_low[k] && p->high[k] <= p->region_high[k];
    }
    return inside;
}

/* How much of the step's speeds and accelerations there is in those for which bounds are known, and in the region of some
   steps; negative: not looked at yet. */
struct ratios {
    double pace, reach, bend;
};

/* Look at the step of length `h` (s) for bounds of changes of slopes. */
static void find_ratios(const struct fsm_run *run, const struct proof *p, double h, struct ratios *ratios)
{
    if (ratios->pace < 0.0) {
        bound_accelerations(run, p, h);
        ratios->pace = fsm_largest_ratio(p->speed, p->pace, p->program.moving);
        ratios->bend = fsm_largest_ratio(p->bend, p->reach, p->program.moving);
    }
}

/* Bound how fast a guard's slope falls, or rises where `rises`, in the step (per s^2). */
static double bend_of(const struct proof *p, const struct watched *w, const struct ratios *ratios, bool rises)
{
    int64_t n = p->program.moving;
    if (p->local[w->j] >= 0.0) {
        double bend = rises ? p->local_up[w->j] : p->local_down[w->j];
        return (bend > 0.0 ? ratios->reach * ratios->reach * bend : 0.0) +
               (p->local[w->j] > 0.0 ? ratios->bend * p->local[w->j] : 0.0);
    }
    double bend = rises ? p->up[w->j] : p->down[w->j];
    bend = bend > 0.0 ? ratios->pace * ratios->pace * bend : 0.0;
    const double *steep = p->steep + w->j * n;
    for (int64_t k = 0; k < n; k++) {
        bend += p->bend[k] > 0.0 && steep[k] > 0.0 ? steep[k] * p->bend[k] : 0.0;
    }
    return bend;
}

/* Bound how fast a guard changes in the step (per s). */
static double rate_of(const struct proof *p, int64_t j, struct ratios *ratios)
{
    int64_t n = p->program.moving;
    if (p->local[j] >= 0.0) {
        ratios->reach = ratios->reach < 0.0 ? fsm_largest_ratio(p->speed, p->reach, n) : ratios->reach;
        return p->local[j] > 0.0 ? ratios->reach * p->local[j] : 0.0;
    }
    double rate = 0.0;
    const double *steep = p->steep + j * n;
    for (int64_t k = 0; k < n; k++) {
        rate += p->speed[k] > 0.0 && steep[k] > 0.0 ? steep[k] * p->speed[k] : 0.0;
    }
    return rate;
}

/* Whether a guard is proved on both halves of the step by its values alone, if it changes by no more than `fall` on a half;
   `sign` -1: it waits. */
static bool is_out_of_reach(const struct fsm_run *run, int64_t j, double sign, double fall)
{
    int64_t at = run->state->x.n + run->tables->sizes->n_u + 1 + j;
    double start = sign * run->state->guards.at[j], middle = sign * run->work->full_mid.at[at];
    double end = sign * run->work->full_end.at[at];
    return start + middle > fall && middle + end > fall;
}

/* Whether a guard is proved on both halves of the step by its values, and slopes where these are known, with what is known
   of its rate, which changes it by no more than `fall` on a half, and of changes of its slope only where that does not do. */
static bool is_bowl(const struct fsm_run *run, const struct proof *p, const struct watched *w, double h, double fall,
                    struct ratios *ratios)
{
    double sign = w->waiting ? -1.0 : 1.0, least = -w->tolerance, half = 0.5 * h;
    double g[3] = {sign * w->g[0], sign * w->g[1], sign * w->g[2]};
    double s[3] = {sign * w->s[0], sign * w->s[1], sign * w->s[2]};
    bool first = 0.5 * (g[0] + g[1] - fall) > least, second = 0.5 * (g[1] + g[2] - fall) > least;
    if (first && second) {
        return true;
    }
    find_ratios(run, p, h, ratios);
    if (!w->differenced) {
        double bend = bend_of(p, w, ratios, w->waiting);
        if (fsm_parabola(g[0], s[0], g[1], s[1], half, bend) > least && fsm_parabola(g[1], s[1], g[2], s[2], half, bend) > least) {
            return true;
        }
    }
    double bend = bend_of(p, w, ratios, !w->waiting);
    return (first || fsm_chord(g[0], g[1], half, bend) > least) && (second || fsm_chord(g[1], g[2], half, bend) > least);
}

/* List the near guards that what is kept does not prove in the step; return how many. */
static int64_t list_pending(const struct fsm_run *run, const struct proof *p, double h, int64_t *pending)
{
    int64_t most = run->tables->sizes->max_guards, count = 0;
    struct ratios ratios = {-1.0, -1.0, -1.0};
    for (int64_t list = 0; list < 2; list++) {
        const int64_t *near = p->numbers + LISTS + list * most;
        int64_t status = list == 0 ? FSM_GUARD_ARMED : FSM_GUARD_WAITING;
        for (int64_t i = 0; i < p->numbers[NEAR_ARMED + list]; i++) {
            if (run->state->armed.at[near[i]] != status) {
                continue;
            }
            double fall = 0.5 * h * rate_of(p, near[i], &ratios);
            if (is_out_of_reach(run, near[i], list == 0 ? 1.0 : -1.0, fall)) {
                continue;
            }
            struct watched w = watched_guard(run, p, near[i]);
            if (!is_bowl(run, p, &w, h, fall, &ratios) && !rests(run, &w, h)) {
                pending[count++] = near[i];
            }
        }
    }
    return count;
}

/* Enclose the guards listed in both halves of the step, all at once: the terms that forces follow from are common to them.
   Returns four jets for each guard, see search_step; NULL where there is no room. */
static const struct fsm_jet *halves_of(const struct fsm_run *run, const struct proof *p, double h, const int64_t *guards,
                                       int64_t count)
{
    int64_t room = FSM_PROOF_ROOM(run->tables->sizes), words = (int64_t)(sizeof(struct fsm_jet) / sizeof(double));
    if (run->work->proof.n < room + 4 * words * count) {
        return NULL;
    }
    struct fsm_jet *halves = (struct fsm_jet *)(run->work->proof.at + room - 2);
    const int8_t *needed = needed_for(run, p, guards, count);
    for (int64_t half = 0; half < 2; half++) {
        enclose_piece(run, p, needed, 2, h, 0.5 * (double)half, 0.5 * (double)half + 0.5);
        for (int64_t i = 0; i < count; i++) {
            halves[4 * i + 2 * half] = p->jets[output_of(p, guards[i])];
            halves[4 * i + 2 * half + 1] = p->middle[output_of(p, guards[i])];
        }
    }
    return halves;
}

/* Prove the guards listed by their enclosure over the whole step up to the rate of `order`; list those left, return how
   many. */
static int64_t prove_whole(const struct fsm_run *run, const struct proof *p, double h, int64_t *pending, int64_t count,
                           int64_t order)
{
    int64_t left = 0;
    enclose_piece(run, p, needed_for(run, p, pending, count), order, h, 0.0, 1.0);
    for (int64_t i = 0; i < count; i++) {
        struct watched w = watched_guard(run, p, pending[i]);
        const struct fsm_jet *jet = p->jets + w.output;
        struct fsm_piece whole = piece_of(&w, 0.0, 1.0, 0, 2);
        bool rises = w.waiting && jet->rate.low >= 0.0;
        if (!rises && !fsm_is_proved(&whole, jet, p->middle + w.output, h, w.tolerance, w.waiting)) {
            pending[left++] = pending[i];
        }
    }
    return left;
}

/* Prove the guards listed by enclosures of the step; return the fraction of it to take instead, FSM_PROVED where all are. */
static double prove_pending(const struct fsm_run *run, const struct proof *p, double h, int64_t *pending, int64_t count)
{
    int64_t begin = p->numbers[WORK];
    for (int64_t i = 0; i < count; i++) {
        if (p->outputs[pending[i]] < -1) {
            p->terms.known[1] += p->local[pending[i]] == FSM_INFINITY ? 0.0 : 1.0; // is it bounded in smaller regions?
        } else if (p->known[0] > 0.0 && p->local[pending[i]] < 0.0) {
            p->known[0]++;
        }
    }
    record_motion(run, p, h);
    int64_t left = prove_whole(run, p, h, pending, count, 1);
    left = left > 0 ? prove_whole(run, p, h, pending, left, 2) : 0;
    const struct fsm_jet *halves = left > 1 ? halves_of(run, p, h, pending, left) : NULL;
    double first = FSM_PROVED;
    for (int64_t i = 0; i < left; i++) {
        struct watched w = watched_guard(run, p, pending[i]);
        first = fsm_smaller(first, search_step(run, p, pending[i], &w, h, halves != NULL ? halves + 4 * i : NULL));
    }
    p->numbers[SPENT] += p->numbers[WORK] - begin;
    return first;
}

/* Prove the trial step of length `h` (s), whose middle and end are in the workspace, in which no guard was seen to fire before
   its end.
   Returns 1, or the fraction of the step to take instead. */
FSM_LOCAL double fsm_prove_step(const struct fsm_run *run, double h)
{
    struct proof p;
    if (!find_proof(run, &p) || p.program.moving == 0) {
        return 1.0;
    }
    load_fixed(run, &p);
    bound_step(run, &p, h);
    p.numbers[RECORDED] = 0;
    if (!is_in_region(run, &p)) {
        choose_region(run, &p, h);
    }
    int64_t *pending = p.numbers + LISTS + 2 * run->tables->sizes->max_guards;
    int64_t count = list_pending(run, &p, h, pending);
    double first = count > 0 ? prove_pending(run, &p, h, pending, count) : FSM_PROVED;
    double *boxes = run->work->proof.at + run->work->proof.n - 1;
    int64_t whole = (int64_t)*boxes;
    run->state->counters->work_done += whole;
    *boxes -= (double)whole;
    return fsm_smaller(first, 1.0);
}

/* Whether the trial step of length `h` (s) is proved without the values of the guards that are marked in `left_out`. */
FSM_LOCAL bool fsm_proves_unevaluated(const struct fsm_run *run, double h, const int8_t *left_out)
{
    struct proof p;
    if (!find_proof(run, &p)) {
        return true;
    }
    load_fixed(run, &p);
    bound_step(run, &p, h);
    bool proved = is_in_region(run, &p);
    for (int64_t i = 0; i < p.numbers[NEAR_ARMED] && proved; i++) {
        proved = left_out[p.numbers[LISTS + i]] == 0;
    }
    return proved;
}

/* Forget that parameters were compared: the caller may have changed them. */
FSM_LOCAL void fsm_doubt_parameters(const struct fsm_run *run)
{
    if (run->work->proof_numbers.n > 0) {
        run->work->proof_numbers.at[CHECKED] = 0;
    }
}
