/* Time stepping by Moreau and Jean. */

#include "time_stepping.h"
#include "elementary.h"

/* -- Limit on the time step with compressed compliant contacts (docs/theory.md, "Time stepping"). */

#define FSM_RADIANS  1.0
#define FSM_RELATIVE 1e-6 // of the depth, or of the speed, by which forces are differenced

/* The compressed contacts at the middle of a step, and how their forces respond to each other's motion. */
struct compression {
    fsm_indices contact; // (n,)
    fsm_indices rows;    // (n,)
    fsm_vector force;    // (n,): (N)
    fsm_vector stiff;    // (n,): row sums of |S| (1/s²)
    fsm_vector damped;   // (n,): row sums of |D| (1/s)
};

static struct compression list_compressed(const struct fsm_time_step *step)
{
    int64_t count = step->free_side.n, n = 0;
    fsm_indices contact = fsm_arena_indices(step->arena, count), rows = fsm_arena_indices(step->arena, count);
    for (int64_t k = 0; k < count; k++) {
        if (fsm_presses(step, k)) {
            contact.at[n] = k;
            rows.at[n++] = AT(step->tables->contact_rows, k, 0);
        }
    }
    struct compression compression = {.contact = fsm_indices_first(contact, n),
                                      .rows = fsm_indices_first(rows, n),
                                      .force = fsm_arena_vector(step->arena, n),
                                      .stiff = fsm_arena_vector(step->arena, n),
                                      .damped = fsm_arena_vector(step->arena, n)};
    for (int64_t i = 0; i < n; i++) {
        compression.force.at[i] = step->terms->elastic.at[contact.at[i]];
    }
    return compression;
}

/* Evaluate the terms at `x` and add the changes of the forces, divided by `by`, to the row sums `sums` (n,). */
static void add_differences(const struct fsm_time_step *step, const struct compression *compression, fsm_vector x,
                            double by, fsm_vector sums)
{
    step->tables->terms.at[0](step->middle_time, x.at, step->context.at, step->terms->whole.at);
    for (int64_t i = 0; i < sums.n; i++) {
        double force = step->terms->elastic.at[compression->contact.at[i]];
        sums.at[i] += fabs((force - compression->force.at[i]) / by);
    }
}

/* Return the longest step (s) that resolves the motion of the compressed contacts; inf where there is none.

   With `S_ij = -dF_i / dp_j` for the force F_i of contact i and a displacement along the response of the system to a
   unit force of contact j, and `D` likewise for speeds, the largest row sums bound the square of the frequency,
   `w² <= max_i sum_j |S_ij|`, and the damping, `d <= max_i sum_j |D_ij|` (Gershgorin).  The step may last FSM_RADIANS of
   the faster of the two motions, `h (d/2 + sqrt(d²/4 + w²)) <= FSM_RADIANS`.

   The terms are those at the middle of the step, before and after. */
FSM_LOCAL double fsm_longest_step(const struct fsm_time_step *step, const struct fsm_bilateral_system *bilateral)
{
    const struct fsm_terms *terms = step->terms;
    int64_t n_q = step->tables->sizes->n_q, n_u = step->u.n;
    fsm_vector x = step->middle;
    fsm_mark top = fsm_arena_mark(step->arena);
    struct compression compression = list_compressed(step);
    int64_t n = compression.rows.n;
    if (n == 0) {
        fsm_arena_release(step->arena, top);
        return FSM_INFINITY;
    }
    struct fsm_response response = fsm_unit_responses(step->arena, terms, bilateral, compression.rows, n_u);
    fsm_vector depth = fsm_arena_vector(step->arena, n), moved = fsm_arena_copy(step->arena, x);
    fsm_matrix W = fsm_arena_matrix(step->arena, n_q, n_u);
    for (int64_t i = 0; i < n; i++) {
        depth.at[i] = -terms->residual.at[compression.rows.at[i]];
    }
    for (int64_t i = 0; i < n_q; i++) {
        fsm_put(fsm_row(W, i), fsm_row_part(terms->W, i, n_u));
    }
    for (int64_t j = 0; j < n; j++) {
        double yielding = AT(response.K, j, j);
        if (yielding <= 0.0) {
            continue;
        }
        double by = -FSM_RELATIVE * depth.at[j] / yielding; // deeper, so that the contact stays compressed
        for (int64_t i = 0; i < n_q; i++) {
            for (int64_t m = 0; m < n_u; m++) {
                moved.at[i] += by * AT(W, i, m) * AT(response.motions, j, m);
            }
        }
        add_differences(step, &compression, moved, by, compression.stiff);
        fsm_put(moved, x);
        by = -FSM_RELATIVE / yielding;
        for (int64_t m = 0; m < n_u; m++) {
            moved.at[n_q + m] += by * AT(response.motions, j, m);
        }
        add_differences(step, &compression, moved, by, compression.damped);
        fsm_put(moved, x);
    }
    double square = 0.0, damping = 0.0;
    for (int64_t i = 0; i < n; i++) {
        square = fsm_larger(square, compression.stiff.at[i]);
        damping = fsm_larger(damping, compression.damped.at[i]);
    }
    step->tables->terms.at[0](step->middle_time, x.at, step->context.at, terms->whole.at);
    fsm_arena_release(step->arena, top);
    double rate = 0.5 * damping + sqrt(0.25 * damping * damping + square);
    return rate > 0.0 ? FSM_RADIANS / rate : FSM_INFINITY;
}

/* -- Bodies that pass through each other in a time step (docs/theory.md, "Time stepping").

   A step knows its gaps where it begins, in its middle and at its end; between these the configuration goes straight.  A
   gap that falls before and grows after may have been below zero in between, and one that is below zero and grows again
   belongs to a body whose middle has been passed: nothing held the bodies apart. */

#define FSM_MOST_HALVINGS 40 // in the search for the least gap of a part of a step

/* Whether contact `k` has a gap that nothing holds and that closes. */
static bool may_be_passed(const struct fsm_tables *tables, int64_t k)
{
    int64_t flags = tables->contact_flags.at[k];
    return (flags & (FSM_FLAG_RIGID | FSM_FLAG_COMPLIANT)) != 0 && (flags & (FSM_FLAG_TWO_SIDED | FSM_FLAG_GATED)) == 0;
}

/* Keep the gaps and their rates where a part of a step begins; the terms are those there, `u` the speeds.

   Of those that are below zero only what has just come through its face may be passed; others get a gap of zero. */
FSM_LOCAL void fsm_note_gaps(const struct fsm_time_step *step, fsm_vector u)
{
    for (int64_t k = 0; k < step->gaps.n; k++) {
        int64_t row = AT(step->tables->contact_rows, k, 0);
        double gap = may_be_passed(step->tables, k) ? step->terms->residual.at[row] : 0.0;
        bool coming = step->codes.at[k] == FSM_CONTACT_FREE && step->free_side.at[k] != 0 &&
                      fsm_within_face(step->tables, step->terms, k);
        step->gaps.at[k] = gap > 0.0 || coming ? gap : 0.0;
        step->rates.at[k] = step->gaps.at[k] != 0.0 ? fsm_row_speed(step->terms, row, u) : 0.0;
    }
}

/* Whether contact `k` is so far behind its face that it does not act from there, though within its ends. */
static bool is_beyond(const struct fsm_time_step *step, int64_t k)
{
    double small = step->tables->tolerances->gap;
    return (step->tables->contact_flags.at[k] & FSM_FLAG_LIMITED) != 0 && step->terms->reach.at[k] > small &&
           step->terms->aspect.at[k] < -FSM_LEVEL * small;
}

/* Evaluate the terms on the way from `x` along `rate` (n_q,), after `time` (s); `place` (n_q + n_u,) is written. */
static void go_along(const struct fsm_time_step *step, fsm_vector x, fsm_vector rate, double time, fsm_vector place)
{
    for (int64_t i = 0; i < rate.n; i++) {
        place.at[i] = x.at[i] + time * rate.at[i];
    }
    fsm_normalise_quaternions(step->tables, place);
    step->tables->terms.at[0](step->middle_time, place.at, step->context.at, step->terms->whole.at);
}

/* Return for how long contact `k` could have held bodies apart that pass through each other, on the way from `x` where
   `rate` (n_q,) leads in `length` (s); 0 where they do not meet on its face.

   That is from where its gap becomes negative to where it grows again, or acts no more. */
static double time_of_passage(const struct fsm_time_step *step, int64_t k, fsm_vector x, fsm_vector rate, double length)
{
    int64_t row = AT(step->tables->contact_rows, k, 0);
    double small = fsm_gap_tolerance(step->tables, row), low = 0.0, high = length;
    fsm_vector place = fsm_arena_copy(step->arena, x), u = fsm_vector_from(place, rate.n);
    bool meets = step->gaps.at[k] < 0.0;
    double met = meets ? step->gaps.at[k] / -step->rates.at[k] : length;
    for (int64_t pass = 0; !meets || pass < FSM_MOST_HALVINGS; pass++) {
        if (pass == FSM_MOST_HALVINGS) {
            return 0.0;
        }
        double at = 0.5 * (low + high);
        go_along(step, x, rate, at, place);
        bool deep = step->terms->residual.at[row] < -small;
        if (deep && met >= at) {
            met = at;
        }
        meets = meets || (deep && fsm_within_face(step->tables, step->terms, k));
        if (fsm_row_speed(step->terms, row, u) < 0.0 && !(deep && is_beyond(step, k))) {
            low = at;
        } else {
            high = at;
        }
    }
    double turned = high;
    low = 0.0;
    high = met;
    for (int64_t pass = 0; step->gaps.at[k] > 0.0 && pass < FSM_MOST_HALVINGS; pass++) {
        double at = 0.5 * (low + high);
        go_along(step, x, rate, at, place);
        if (step->terms->residual.at[row] < 0.0) {
            high = at;
        } else {
            low = at;
        }
    }
    return turned - (step->gaps.at[k] > 0.0 ? high : met);
}

/* Whether contact `k` may have been passed by the end of a part of a step, with the gap `gap` and its rate there. */
static bool seems_passed(const struct fsm_time_step *step, int64_t k, double gap, double rate, double length)
{
    double small = fsm_gap_tolerance(step->tables, AT(step->tables->contact_rows, k, 0));
    double first = step->gaps.at[k], first_rate = step->rates.at[k];
    if (!(first_rate < 0.0)) {
        return false;
    }
    (void)first, (void)rate, (void)length;
    return gap < -small && is_beyond(step, k);
}

/* Return a contact that is passed through from `x` (n_q + n_u,) on, along `rate` (n_q,) for `length` (s); -1 if none is.

   The terms are those where the way ends; where a gap is looked at on the way, they are evaluated again for `end`.
   `longest`: of a contact found the longest step in which it is met (s). */
FSM_LOCAL int64_t fsm_passed_through(const struct fsm_time_step *step, fsm_vector x, fsm_vector rate, double length,
                                     fsm_vector end, double *longest)
{
    const struct fsm_tables *tables = step->tables;
    fsm_vector u = fsm_vector_from(x, rate.n);
    fsm_indices seem = fsm_indices_first(fsm_arena_indices(step->arena, step->gaps.n), 0);
    for (int64_t k = 0; k < step->gaps.n; k++) {
        int64_t row = AT(tables->contact_rows, k, 0);
        if (step->gaps.at[k] != 0.0 &&
            seems_passed(step, k, step->terms->residual.at[row], fsm_row_speed(step->terms, row, u), length)) {
            seem.at[seem.n++] = k;
        }
    }
    int64_t found = -1;
    for (int64_t i = 0; i < seem.n && found < 0; i++) {
        *longest = time_of_passage(step, seem.at[i], x, rate, length);
        found = *longest > 0.0 ? seem.at[i] : -1;
    }
    if (seem.n > 0) {
        tables->terms.at[0](step->middle_time, end.at, step->context.at, step->terms->whole.at);
    }
    return found;
}

/* -- Moreau-Jean time stepping: fixed steps, with one impulse per contact and step.

   Nothing is located: a step of length `h` goes from `(q, u)` over the middle `q_m = q + h/2 q̇` to
   `u⁺ = u_free + M⁻¹AᵀΛ` and `q⁺ = q_m + h/2 q̇(q_m, u⁺)`, with all terms at the middle and the free speeds by the
   θ-method.  Contacts whose gap is closed at the middle take part in the contact problem of the step: Newton's
   restitution `0 ≤ Λ_n ⊥ v_n⁺ + e v_n⁻ ≥ 0` and Coulomb's law for the impulses of the step, by projected Gauss-Seidel
   sweeps.  Bilateral rows are eliminated exactly.  First order, whatever happens within a step; the work in a step is
   bounded.

   J. J. Moreau (1988), *Unilateral contact and dry friction in finite freedom dynamics*; M. Jean (1999), *The non-smooth
   contact dynamics method*, Comput. Methods Appl. Mech. Eng. 177.  See docs/theory.md, "Time stepping". */

#define FSM_THETA        0.5
#define FSM_HELD_BACK    0.1  // part of a constraint's drift that a step closes again
#define FSM_FAR_OFF_ROWS 100.0 // times the drift of the rows, of which no more is left of a redundant one
#define FSM_CORRECTIONS  2    // passes of the θ-method
#define FSM_SAME_INSTANT 1e-9 // part of a step by which a jump of inputs may be off its end
#define FSM_STILL        1e-9 // part of the fastest speed of a step below which a contact is at rest
#define FSM_SLOW 2.0 // times the change of speed in a step without contacts, below which there is no restitution

/* Evaluate the unconstrained terms at the time `t` (s) and the state `x` (n_q + n_u,). */
static void evaluate_terms(const struct fsm_time_step *step, double t, fsm_vector x)
{
    step->tables->terms.at[0](t, x.at, step->context.at, step->terms->whole.at);
}

/* Write the speeds after the step without contacts: `M (u_free - u) = h f` at `(1 - θ) u + θ u_free`.

   The bilateral rows are held, with impulses `reaction` (m,); false if they are inconsistent. */
static bool find_free_speeds(const struct fsm_time_step *step, const struct fsm_bilateral_system *bilateral,
                             fsm_vector free_speeds, fsm_vector reaction)
{
    const struct fsm_tables *tables = step->tables;
    const struct fsm_terms *terms = step->terms;
    int64_t n_q = tables->sizes->n_q, n_u = step->u.n;
    double h = step->h;
    fsm_indices held = bilateral->held;
    fsm_vector momentum = fsm_arena_vector(step->arena, n_u), target = fsm_arena_vector(step->arena, held.n);
    fsm_put(free_speeds, step->u);
    for (int64_t pass = 0; pass < FSM_CORRECTIONS; pass++) {
        for (int64_t i = 0; i < n_u; i++) {
            step->middle.at[n_q + i] = (1.0 - FSM_THETA) * step->u.at[i] + FSM_THETA * free_speeds.at[i];
        }
        evaluate_terms(step, step->middle_time, step->middle);
        for (int64_t i = 0; i < n_u; i++) {
            momentum.at[i] = h * terms->f.at[i];
            for (int64_t j = 0; j < n_u; j++) {
                momentum.at[i] += AT(terms->M, i, j) * step->u.at[j];
            }
        }
        for (int64_t k = 0; k < step->free_side.n; k++) {
            if (fsm_presses(step, k)) {
                for (int64_t i = 0; i < n_u; i++) {
                    momentum.at[i] += h * terms->elastic.at[k] * AT(terms->A, AT(tables->contact_rows, k, 0), i);
                }
            }
        }
        for (int64_t k = 0; k < held.n; k++) {
            // held where the step ends: over the step as a whole the row does no work
            target.at[k] = -terms->b.at[held.at[k]] - 0.5 * h * terms->gamma.at[held.at[k]];
            if (tables->row_positional.at[held.at[k]] == 1) {
                target.at[k] -= FSM_HELD_BACK * terms->residual.at[held.at[k]] / h;
            }
        }
        double rounding = fsm_rounding_of(tables, terms, step->u, false);
        if (!fsm_solve_bilateral(bilateral, momentum, target, free_speeds, reaction, rounding)) {
            return false;
        }
    }
    return true;
}

/* Write the speeds of restitution that the normal rows are brought to, `target` (n,), and the slip that contacts
   which strike return, `returned` (n,).

   What the forces of a step or two bring about is no impact: a contact that lasts does not rebound from it. */
static void find_targets(const struct fsm_time_step *step, const struct fsm_active_rows *active, fsm_vector free_speeds,
                         fsm_vector target, fsm_vector returned)
{
    for (int64_t k = 0; k < active->normal.n; k++) {
        int64_t normal = active->normal.at[k];
        if (normal < 0 || (step->tables->contact_flags.at[k] & FSM_FLAG_TWO_SIDED) != 0) {
            continue;
        }
        int64_t row = active->rows.at[normal];
        double before = fsm_row_speed(step->terms, row, step->u);
        double at_rest = FSM_SLOW * fabs(fsm_row_speed(step->terms, row, free_speeds) - before);
        if (before < -at_rest) {
            target.at[normal] = -step->terms->restitution.at[k] * before;
            int64_t first = active->tangent.at[k];
            bool spatial = (step->tables->contact_flags.at[k] & FSM_FLAG_IN_SPACE) != 0;
            for (int64_t r = first; first >= 0 && r < first + (spatial ? 2 : 1); r++) {
                double slip = fsm_row_speed(step->terms, active->rows.at[r], step->u);
                returned.at[r] = step->terms->tangential_restitution.at[k] * slip;
            }
        }
    }
}

/* Whether an active contact transmits a force, by its impulse in the step. */
static bool is_loaded(const struct fsm_time_step *step, const struct fsm_active_rows *active, int64_t k,
                      fsm_vector impulse)
{
    if ((step->tables->contact_flags.at[k] & FSM_FLAG_COMPLIANT) != 0) {
        return fsm_presses(step, k);
    }
    int64_t normal = active->normal.at[k];
    return (step->tables->contact_flags.at[k] & FSM_FLAG_TWO_SIDED) != 0 ||
           (step->tables->contact_flags.at[k] & FSM_FLAG_FRICTION_ONLY) != 0 ||
           (normal >= 0 && impulse.at[normal] > 0.0);
}

/* Write the contact states of the step by its impulses: none, within the friction cone, or on it; and slip directions. */
static void find_contact_states(const struct fsm_time_step *step, const struct fsm_active_rows *active,
                                fsm_vector speed, fsm_vector impulse, double fastest)
{
    const struct fsm_tables *tables = step->tables;
    fsm_vector sigma = fsm_vector_from(step->context, fsm_sigma_at(tables->sizes));
    for (int64_t k = 0; k < step->codes.n; k++) {
        int64_t normal = active->normal.at[k], r = active->tangent.at[k];
        double small = FSM_STILL * fastest;
        if ((tables->contact_flags.at[k] & FSM_FLAG_SWITCHED) != 0) {
            if (r >= 0 && fabs(speed.at[r]) > small * tables->row_unit.at[active->rows.at[r]]) { // beyond its limit
                step->codes.at[k] = FSM_CONTACT_FREE;
            }
            continue;
        }
        sigma.at[k] = 0.0;
        if (!is_loaded(step, active, k, impulse) ||
            (normal >= 0 && speed.at[normal] > small * tables->row_unit.at[active->rows.at[normal]])) {
            step->codes.at[k] = FSM_CONTACT_FREE;
            continue;
        }
        bool spatial = (tables->contact_flags.at[k] & FSM_FLAG_IN_SPACE) != 0;
        bool slides = false;
        if (r >= 0 && fsm_friction_bound(step, active, k, impulse) >= 0.0) {
            double slip = spatial ? fsm_hypot(speed.at[r], speed.at[r + 1]) : fabs(speed.at[r]);
            slides = slip > small * tables->row_unit.at[active->rows.at[r]];
        }
        step->codes.at[k] = slides ? FSM_CONTACT_SLIDING : FSM_CONTACT_HELD;
        if (slides) {
            double sign = speed.at[r] > 0.0 ? 1.0 : -1.0;
            sigma.at[k] = spatial ? fsm_angle_of(speed.at[r], speed.at[r + 1], 0.0) : sign;
        }
    }
}

/* Count a step whose sweeps did not converge to rounding; false if they did not converge at all.

   `change`: of a speed in the last sweep, as a fraction of the fastest. */
static bool report_sweeps(struct fsm_time_stepping_report *report, double t, double change)
{
    if (!fsm_is_converged(change, 1.0)) {
        if (report->unsolved == 0.0) {
            report->first_unsolved = t;
        }
        report->unsolved += 1.0;
        report->worst_unsolved = fsm_larger(report->worst_unsolved, change);
    }
    return fsm_is_solved(change, 1.0);
}

/* Write the speeds after the step to `after` (n_u,), and the impulses of all rows (n_rows,). */
static void apply_step_impulses(const struct fsm_active_rows *active, const struct fsm_response *response,
                                fsm_indices held, fsm_vector reaction, fsm_vector impulse, fsm_vector after,
                                fsm_vector impulses)
{
    for (int64_t r = 0; r < impulses.n; r++) {
        impulses.at[r] = 0.0;
    }
    for (int64_t k = 0; k < held.n; k++) {
        impulses.at[held.at[k]] = reaction.at[k];
    }
    for (int64_t r = 0; r < active->rows.n; r++) {
        impulses.at[active->rows.at[r]] += impulse.at[r];
        for (int64_t i = 0; i < after.n; i++) {
            after.at[i] += AT(response->motions, r, i) * impulse.at[r];
        }
        for (int64_t k = 0; k < held.n; k++) {
            impulses.at[held.at[k]] += AT(response->reactions, r, k) * impulse.at[r];
        }
    }
}

/* Begin a step: the configuration at the middle, with the inputs there; the terms are those at the middle.

   Returns a contact that is passed through on the way, -1 if none is; `longest`: a step in which it is not (s). */
static int64_t go_to_middle(const struct fsm_time_step *step, const struct fsm_input_tables *inputs, int64_t segment,
                            fsm_vector x, double *longest)
{
    int64_t n_q = step->tables->sizes->n_q;
    evaluate_terms(step, step->t, x);
    fsm_begin_sides(step);
    fsm_note_gaps(step, step->u);
    fsm_vector rate = fsm_arena_copy(step->arena, fsm_vector_first(step->terms->q_dot, n_q));
    for (int64_t i = 0; i < n_q; i++) {
        step->middle.at[i] = x.at[i] + 0.5 * step->h * rate.at[i];
    }
    fsm_put(fsm_vector_from(step->middle, n_q), step->u);
    fsm_normalise_quaternions(step->tables, step->middle);
    fsm_write_inputs(inputs, step->middle_time, segment, step->middle, step->context);
    evaluate_terms(step, step->middle_time, step->middle);
    int64_t passed = fsm_passed_through(step, x, rate, 0.5 * step->h, step->middle, longest);
    fsm_update_sides(step);
    return passed;
}

/* Solve the contact problem of a step; `x` gets the configuration at the middle and the speeds after, `impulses`
   (n_rows,) is written, `kept` becomes the part of the restitution kept.  False if it was not solved. */
static bool solve_contacts(const struct fsm_time_step *step, const struct fsm_bilateral_system *bilateral,
                           fsm_vector free_speeds, fsm_vector reaction, struct fsm_time_stepping_report *report,
                           fsm_vector x, fsm_vector impulses, double *kept)
{
    int64_t n_q = step->tables->sizes->n_q;
    struct fsm_active_rows active = fsm_list_active(step);
    int64_t n = active.rows.n;
    struct fsm_response response = fsm_unit_responses(step->arena, step->terms, bilateral, active.rows, step->u.n);
    active.held = bilateral->held;
    active.reaction = reaction;
    active.response = &response;
    fsm_vector speed = fsm_arena_vector(step->arena, n), target = fsm_arena_vector(step->arena, n);
    fsm_vector impulse = fsm_arena_vector(step->arena, n), returned = fsm_arena_vector(step->arena, n);
    double fastest = FSM_TINIEST;
    for (int64_t r = 0; r < n; r++) {
        int64_t row = active.rows.at[r];
        double unit = step->tables->row_unit.at[row];
        speed.at[r] = fsm_row_speed(step->terms, row, free_speeds);
        fastest = fsm_larger(fastest, fabs(speed.at[r]) / unit);
        fastest = fsm_larger(fastest, fabs(fsm_row_speed(step->terms, row, step->u)) / unit);
    }
    find_targets(step, &active, free_speeds, target, returned);
    double change = fsm_contact_impulses(step, &active, response.K, target, returned, fastest, speed, impulse, kept);
    bool solved = report_sweeps(report, step->t, change / fastest);
    find_contact_states(step, &active, speed, impulse, fastest);
    fsm_put(x, fsm_vector_first(step->middle, n_q));
    fsm_vector after = fsm_vector_from(x, n_q);
    fsm_put(after, free_speeds);
    apply_step_impulses(&active, &response, bilateral->held, reaction, impulse, after, impulses);
    return solved;
}

/* End a step: the configuration after, and the energies with and without the impulses of contacts.

   Returns a contact that is passed through on the way, -1 if none is; `longest`: a step in which it is not (s). */
static int64_t go_to_end(const struct fsm_time_step *step, const struct fsm_input_tables *inputs, int64_t segment,
                         fsm_vector x, fsm_vector free_speeds, fsm_vector energies, double *longest)
{
    const struct fsm_terms *terms = step->terms;
    int64_t n_q = step->tables->sizes->n_q;
    double end = step->t + step->h;
    evaluate_terms(step, step->middle_time, x);
    fsm_note_gaps(step, fsm_vector_from(x, n_q));
    fsm_vector before = fsm_arena_copy(step->arena, x);
    fsm_vector rate = fsm_arena_copy(step->arena, fsm_vector_first(terms->q_dot, n_q));
    for (int64_t i = 0; i < n_q; i++) {
        x.at[i] += 0.5 * step->h * rate.at[i];
    }
    fsm_normalise_quaternions(step->tables, x);
    fsm_write_inputs(inputs, end, segment, x, step->context);
    evaluate_terms(step, end, x);
    int64_t passed = fsm_passed_through(step, before, rate, 0.5 * step->h, x, longest);
    energies.at[FSM_ENERGY_AFTER] = terms->energies.at[0] + terms->energies.at[1];
    fsm_vector u = fsm_vector_from(x, n_q), after = fsm_arena_copy(step->arena, u);
    fsm_put(u, free_speeds);
    evaluate_terms(step, end, x);
    energies.at[FSM_ENERGY_FREE] = terms->energies.at[0] + terms->energies.at[1];
    fsm_put(u, after);
    return passed;
}

/* Note that a step is too long for a contact: what it touches is passed through; returns that status. */
static int64_t report_passage(const struct fsm_time_stepping *run, double longest, int64_t contact)
{
    run->report->longest = longest;
    run->report->passed = 1.0 + (double)contact;
    return FSM_STEP_TOO_LONG;
}

/* Take the step from `times[i]` to `times[i + 1]`; row i + 1 of the run has the values of row i.

   Returns FSM_CONTINUE, FSM_SINGULAR, FSM_STEP_TOO_LONG, FSM_UNSOLVED or FSM_NON_FINITE. */
static int64_t step_through(const struct fsm_tables *tables, const struct fsm_input_tables *inputs,
                            struct fsm_work *work, const struct fsm_time_stepping *run, int64_t i)
{
    fsm_vector x = fsm_row(run->x, i + 1), free_speeds = fsm_row(run->free_speeds, i + 1);
    fsm_vector energies = fsm_row(run->energies, i + 1);
    double t = run->times.at[i], h = run->times.at[i + 1] - t;
    struct fsm_arena *arena = &work->arena;
    fsm_arena_clear(arena);
    struct fsm_time_step step = {.arena = arena,
                                 .tables = tables,
                                 .terms = fsm_terms_of(work),
                                 .t = t,
                                 .h = h,
                                 .middle_time = t + 0.5 * h,
                                 .u = fsm_arena_copy(arena, fsm_vector_from(x, tables->sizes->n_q)),
                                 .middle = fsm_row(run->middle, i + 1),
                                 .context = fsm_row(run->c, i + 1),
                                 .codes = fsm_code_row(run->codes, i + 1),
                                 .gaps = fsm_arena_vector(arena, tables->sizes->n_contacts),
                                 .rates = fsm_arena_vector(arena, tables->sizes->n_contacts),
                                 .free_side = run->free_side};
    double longest = h;
    int64_t passed = go_to_middle(&step, inputs, run->segment, x, &longest);
    if (passed >= 0) {
        return report_passage(run, longest, passed);
    }
    fsm_indices held = fsm_unlimited_rows(arena, tables, step.codes);
    held = fsm_independent_rows(arena, tables, step.terms, held, FSM_FAR_OFF_ROWS, 1.0);
    struct fsm_bilateral_system bilateral = fsm_factor_bilateral(arena, step.terms, held, step.u.n);
    run->report->longest = fsm_longest_step(&step, &bilateral);
    if (h > run->report->longest) {
        run->report->passed = 0.0;
        return FSM_STEP_TOO_LONG;
    }
    fsm_vector reaction = fsm_arena_vector(arena, held.n);
    if (!find_free_speeds(&step, &bilateral, free_speeds, reaction)) {
        return FSM_SINGULAR;
    }
    if (!solve_contacts(&step, &bilateral, free_speeds, reaction, run->report, x, fsm_row(run->impulses, i + 1),
                        &energies.at[FSM_ENERGY_REBOUND])) {
        return FSM_UNSOLVED;
    }
    passed = go_to_end(&step, inputs, run->segment, x, free_speeds, energies, &longest);
    if (passed >= 0) {
        return report_passage(run, longest, passed);
    }
    for (int64_t j = 0; j < x.n; j++) {
        if (!fsm_is_finite(x.at[j])) {
            return FSM_NON_FINITE;
        }
    }
    return FSM_CONTINUE;
}

/* Sample the controllers that are due where the step from row `i` begins; row i + 1 has the values of row i. */
static void sample_controllers(const struct fsm_tables *tables, const struct fsm_input_tables *inputs,
                               struct fsm_work *work, const struct fsm_time_stepping *run, int64_t i)
{
    double t = run->times.at[i], slack = FSM_SAME_INSTANT * (run->times.at[i + 1] - t);
    fsm_vector x = fsm_row(run->x, i + 1), c = fsm_row(run->c, i + 1);
    fsm_write_inputs(inputs, t, run->segment, x, c);
    fsm_sample(tables, work, slack, &t, x, c);
}

/* Step through all times of a run; returns FSM_DONE, or the failure of the step after the last row written. */
FSM_API int64_t fsm_moreau_jean_steps(const struct fsm_tables *tables, const struct fsm_input_tables *inputs,
                                      struct fsm_work *work, struct fsm_time_stepping *run)
{
    for (run->row = 0; run->row < run->times.n - 1; run->row++) {
        int64_t i = run->row;
        double t = run->times.at[i], h = run->times.at[i + 1] - t;
        while (fsm_next_breakpoint(inputs, run->segment) <= t + FSM_SAME_INSTANT * h) {
            run->segment = inputs->next_hard.at[run->segment];
        }
        fsm_put(fsm_row(run->x, i + 1), fsm_row(run->x, i));
        fsm_put(fsm_row(run->c, i + 1), fsm_row(run->c, i));
        for (int64_t k = 0; k < run->codes.m; k++) {
            AT(run->codes, i + 1, k) = AT(run->codes, i, k);
        }
        if (tables->sizes->n_controllers > 0) {
            sample_controllers(tables, inputs, work, run, i);
        }
        int64_t status = step_through(tables, inputs, work, run, i);
        if (status != FSM_CONTINUE) {
            return status;
        }
    }
    return FSM_DONE;
}

/* Whether no open rigid contact is deeper than its tolerance where a run begins: at `t` (s), `x`, `c`, states `codes`.

   `free_side` (n_contacts,): on return 1 also for the compliant contacts that begin compressed; `approaches`: 1 for the
   rigid contacts that begin closed with a speed of approach. */
FSM_API bool fsm_moreau_jean_may_start(const struct fsm_tables *tables, struct fsm_work *work, double t, fsm_vector x,
                                       fsm_vector c, fsm_codes codes, fsm_codes free_side, fsm_codes approaches)
{
    const struct fsm_terms *terms = fsm_terms_of(work);
    fsm_arena_clear(&work->arena);
    tables->terms.at[0](t, x.at, c.at, terms->whole.at);
    fsm_indices states = fsm_arena_indices(&work->arena, codes.n);
    for (int64_t k = 0; k < codes.n; k++) {
        states.at[k] = codes.at[k];
        approaches.at[k] =
            codes.at[k] != FSM_CONTACT_FREE && fsm_approaches(tables, terms, k, fsm_vector_from(x, tables->sizes->n_q));
    }
    return fsm_may_begin(tables, terms, states, free_side);
}
