/* Selection of the next mode among admissible choices: candidates of a contact island enumerated, one chosen. */

#include "elementary.h"
#include "contacts.h"

/* -- Candidate enumeration for a contact island.

   So it is known which candidate is chosen, and how many others are consistent (docs/theory.md, "Resolution"). */

#define FSM_SAME_MOTION 1e-6  // motions that differ by less than this part of the scale are one
#define FSM_EXACT       1e-3  // part of the tolerance up to which redundant rows are inconsistent by rounding alone
#define FSM_INEXACT     100.0 // cost of rows that agree no better than that: more than all contacts can cost
#define FSM_BRACING     1e4   // cost of contacts that can brace each other: more than all else can cost

/* Contacts of a problem as one number: as bits where a double has enough of them, else, of up to FSM_LISTED contacts, the
   negative of their numbers from 1 as digits to the base FSM_LISTED_BASE.  Otherwise a number that a double does not represent
   exactly, and readers omit. */
#define FSM_EXACT_BITS 53
#define FSM_LISTED  5
#define FSM_LISTED_BASE 1024.0
static double contacts_as_number(fsm_indices contact)
{
    double bits = 0.0, digits = 0.0;
    for (int64_t k = 0; k < contact.n; k++) {
        bits += fsm_pow(2.0, (double)contact.at[k]);
        digits = FSM_LISTED_BASE * digits + (double)(contact.at[k] + 1);
    }
    bool few = contact.n <= FSM_LISTED && contact.n > 0 && (double)contact.at[contact.n - 1] < FSM_LISTED_BASE - 1.0;
    return few && contact.at[contact.n - 1] >= FSM_EXACT_BITS ? -digits : bits;
}

/* Enter one candidate in the log; one that no longer fits is only counted. */
static void enter_candidate(struct fsm_candidate_log *log, const struct fsm_contact_problem *problem,
                            fsm_indices choices, const struct fsm_candidate_result *trial)
{
    int64_t at = FSM_LOG_WIDTH * log->count++;
    if (at + FSM_LOG_WIDTH > log->entries.n) {
        return;
    }
    double digits = 0.0;
    for (int64_t k = 0; k < choices.n; k++) {
        digits = 10.0 * digits + (double)choices.at[k];
    }
    log->entries.at[at] = contacts_as_number(problem->contact);
    log->entries.at[at + 1] = digits;
    log->entries.at[at + 2] = trial->violation;
    log->entries.at[at + 3] = 1000.0 * (double)trial->law + (double)problem->contact.at[trial->contact];
}

/* Whether all contacts that together have to leave their states keep them. */
static bool is_excluded(const struct fsm_contact_problem *problem, fsm_indices choices)
{
    bool any = false;
    for (int64_t k = 0; k < choices.n; k++) {
        if (problem->excluded.at[k] >= 0) {
            any = true;
            if (problem->excluded.at[k] != choices.at[k]) {
                return false;
            }
        }
    }
    return any;
}

/* Different motions, counted up to 2; the first is kept in `first` (n,). */
struct motion_count {
    fsm_vector first;
    int64_t found;
};

/* Count the motion `v` (n,), if it differs from the first by more than `close`. */
static void count_motion(struct motion_count *count, fsm_vector v, double close)
{
    if (count->found == 0) {
        fsm_put(count->first, v);
        count->found = 1;
    }
    for (int64_t i = 0; i < v.n && count->found == 1; i++) {
        count->found += fabs(v.at[i] - count->first.at[i]) > close;
    }
}

/* Whether all contacts stick that stuck just before and are not at a limit. */
static bool goes_on(const struct fsm_contact_problem *problem, fsm_indices choices)
{
    for (int64_t k = 0; k < choices.n; k++) {
        if (problem->lasting.at[k] && choices.at[k] != FSM_CHOICE_HOLD) {
            return false;
        }
    }
    return true;
}

/* Of several motions the one that continues is taken, if the candidate kept has it: sticking ends at a limit of
   friction. */
static void decide_by_continuity(struct fsm_enumeration_result *result, const struct motion_count *all,
                                 const struct motion_count *going_on, bool best_goes_on)
{
    result->continuity = all->found > 1 && going_on->found == 1 && best_goes_on;
    result->motions = result->continuity ? 1 : all->found;
}

/* Return the cost of a consistent candidate.

   Redundant rows that nearly agree make contacts stick that slide slowly: what agrees exactly is preferred, and what needs
   no contacts that brace each other. */
static double total_cost(const struct fsm_contact_problem *problem, fsm_indices choices,
                         const struct fsm_candidate_result *found, double tolerance)
{
    double total = found->remainder > FSM_EXACT * tolerance ? FSM_INEXACT : 0.0;
    total += found->braced ? FSM_BRACING : 0.0;
    for (int64_t k = 0; k < choices.n; k++) {
        total += AT(problem->cost, k, choices.at[k]);
    }
    return total;
}

/* Set the first allowed candidate; false if a contact has no allowed choice. */
static bool first_candidate(fsm_indices choices, fsm_index_table allowed)
{
    for (int64_t k = 0; k < choices.n; k++) {
        while (choices.at[k] < FSM_CHOICE_COUNT && !AT(allowed, k, choices.at[k])) {
            choices.at[k]++;
        }
        if (choices.at[k] == FSM_CHOICE_COUNT) {
            return false;
        }
    }
    return true;
}

/* Step to the next allowed candidate; false after the last. */
static bool next_candidate(fsm_indices choices, fsm_index_table allowed)
{
    for (int64_t k = 0; k < choices.n; k++) {
        for (int64_t choice = choices.at[k] + 1; choice < FSM_CHOICE_COUNT; choice++) {
            if (AT(allowed, k, choice)) {
                choices.at[k] = choice;
                return true;
            }
        }
        choices.at[k] = 0;
        while (choices.at[k] < FSM_CHOICE_COUNT - 1 && !AT(allowed, k, choices.at[k])) {
            choices.at[k]++;
        }
    }
    return false;
}

/* Try every allowed candidate and keep the consistent one of least cost.

   `tolerance`: violation up to which a law counts as satisfied, as a fraction of the scale.  `best`, scaled, and the slip
   directions in the problem become those of the candidate kept. */
FSM_LOCAL struct fsm_enumeration_result fsm_enumerate_candidates(struct fsm_arena *arena,
                                                                 const struct fsm_contact_problem *problem,
                                                                 double tolerance,
                                                                 const struct fsm_contact_solution *best,
                                                                 struct fsm_candidate_log *log)
{
    int64_t count = problem->normal.n, n = problem->K.n;
    struct fsm_contact_solution trial = fsm_allocate_solution(arena, count, n);
    fsm_matrix directions = fsm_arena_matrix(arena, count, 2);
    struct motion_count all = {fsm_arena_vector(arena, n), 0}, going_on = {fsm_arena_vector(arena, n), 0};
    bool best_goes_on = false;
    struct fsm_enumeration_result result = {.nearest = FSM_NO_CANDIDATE};
    if (!first_candidate(trial.choices, problem->allowed)) {
        return result;
    }
    double least = FSM_NO_CANDIDATE;
    do {
        fsm_mark top = fsm_arena_mark(arena);
        struct fsm_candidate_result found =
            fsm_evaluate_candidate(arena, problem, trial.choices, trial.forces, trial.motions, tolerance);
        fsm_arena_release(arena, top);
        if (found.violation <= tolerance && is_excluded(problem, trial.choices)) {
            found = (struct fsm_candidate_result){1.0, FSM_LAW_EXCLUDED, 0, 0.0, 0.0, false, found.shared};
        }
        enter_candidate(log, problem, trial.choices, &found);
        result.tried++;
        result.shared += found.shared;
        if (!(found.violation <= tolerance)) {
            result.nearest = fsm_smaller(result.nearest, found.violation);
            result.undetermined += found.law == FSM_LAW_MOTION_INDETERMINATE;
            result.non_finite += !fsm_is_finite(found.violation);
            continue;
        }
        result.consistent++;
        result.braced += found.braced;
        if (found.excess <= tolerance) {
            double close = FSM_SAME_MOTION * fsm_reference_scale(problem, trial.forces);
            count_motion(&all, trial.motions, close);
            if (goes_on(problem, trial.choices) && !found.braced) {
                count_motion(&going_on, trial.motions, close);
            }
        }
        double cost = total_cost(problem, trial.choices, &found, tolerance);
        if (cost < least) {
            least = cost;
            best_goes_on = goes_on(problem, trial.choices);
            fsm_put_indices(best->choices, trial.choices);
            fsm_put(best->forces, trial.forces);
            fsm_put(best->motions, trial.motions);
            for (int64_t k = 0; k < count; k++) {
                fsm_put(fsm_row(directions, k), fsm_row(problem->slip_direction, k));
            }
        }
    } while (next_candidate(trial.choices, problem->allowed));
    result.all_braced = result.consistent > 0 && least >= FSM_BRACING;
    if (least >= FSM_BRACING) {
        result.braced = 0;
    }
    decide_by_continuity(&result, &all, &going_on, best_goes_on);
    for (int64_t k = 0; k < count; k++) {
        fsm_put(fsm_row(problem->slip_direction, k), fsm_row(directions, k));
    }
    return result;
}

/* -- Selection of the next mode among admissible choices. */

/* -- The contact problem on the acceleration level: admissible choices and their costs (docs/theory.md, "Resolution").

   - The state whose guard fired is left, unless nothing else is consistent.
   - A contact that stuck keeps sticking while it can, one whose slip has come to rest sticks if it can (so with static
     above kinetic friction both may be consistent, and this decides).
   - Otherwise the candidate that changes least is taken. */

#define FSM_STATE_CHANGE 1.0  // cost of a contact state that differs
#define FSM_SMALL_CHANGE 0.25 // cost of the less preferred of two states that both carry on

/* What a contact does before its choice. */
struct contact_motion {
    int64_t came;  // contact state before, closed where it closes now
    int64_t event; // of its guard, 0: none
    double slip;   // slip velocity, in space its magnitude (m/s)
    double sigma;  // slip direction before
};

/* Allow choice `choice` of contact `at`, at this cost. */
static void admit(const struct fsm_contact_problem *problem, int64_t at, enum fsm_choice choice, double cost)
{
    AT(problem->allowed, at, choice) = 1;
    AT(problem->cost, at, choice) = cost;
}

static double cost_of_hold(const struct contact_motion *motion)
{
    return motion->came == FSM_CONTACT_HELD ? 0.0 : FSM_SMALL_CHANGE;
}

/* Admit the choices of a contact with friction that slips in two directions. */
static void admit_spatial(const struct fsm_contact_problem *problem, int64_t at, const struct contact_motion *motion,
                          double slow)
{
    bool slipping = motion->slip > slow;
    double cost = motion->came == FSM_CONTACT_SLIDING ? 2.0 * FSM_SMALL_CHANGE : FSM_STATE_CHANGE;
    admit(problem, at, FSM_CHOICE_HOLD, cost_of_hold(motion));
    admit(problem, at, FSM_CHOICE_FORWARD, cost);
    problem->slipping.at[at] = slipping;
    if (slipping) {
        AT(problem->allowed, at, FSM_CHOICE_HOLD) = 0;
        AT(problem->slip_direction, at, 0) /= motion->slip;
        AT(problem->slip_direction, at, 1) /= motion->slip;
        AT(problem->cost, at, FSM_CHOICE_FORWARD) = 0.0;
    }
}

/* Admit the choices of a contact that slips along one line: it continues, a slot on either of its faces. */
static void admit_slipping(const struct fsm_contact_problem *problem, int64_t at, const struct contact_motion *motion)
{
    bool forward = motion->slip > 0.0;
    problem->slipping.at[at] = 1;
    if (!problem->bilateral.at[at]) {
        admit(problem, at, forward ? FSM_CHOICE_FORWARD : FSM_CHOICE_BACKWARD, 0.0);
        return;
    }
    bool was_under = motion->came == FSM_CONTACT_SLIDING_UNDER;
    double over = was_under ? FSM_STATE_CHANGE : 0.0, under = was_under ? 0.0 : FSM_STATE_CHANGE;
    admit(problem, at, forward ? FSM_CHOICE_FORWARD : FSM_CHOICE_BACKWARD, over);
    admit(problem, at, forward ? FSM_CHOICE_UNDER_FORWARD : FSM_CHOICE_UNDER_BACKWARD, under);
}

/* Admit the choices of a contact at rest along its one tangent. */
static void admit_at_rest(const struct fsm_contact_problem *problem, int64_t at, const struct contact_motion *motion)
{
    static const enum fsm_choice slides[] = {FSM_CHOICE_FORWARD, FSM_CHOICE_BACKWARD, FSM_CHOICE_UNDER_FORWARD,
                                             FSM_CHOICE_UNDER_BACKWARD};
    admit(problem, at, FSM_CHOICE_HOLD, cost_of_hold(motion));
    for (int i = 0; i < (problem->bilateral.at[at] ? 4 : 2); i++) {
        bool same = motion->came >= FSM_CONTACT_SLIDING && (motion->sigma > 0.0) == (fsm_direction_of(slides[i]) > 0.0);
        admit(problem, at, slides[i], same ? 2.0 * FSM_SMALL_CHANGE : FSM_STATE_CHANGE);
    }
}

/* Admit the choices that a contact has by its velocities, with their costs. */
static void admit_choices(const struct fsm_contact_problem *problem, int64_t at, const struct contact_motion *motion,
                          double slow)
{
    if (problem->normal.at[at] >= 0 && !problem->bilateral.at[at]) {
        admit(problem, at, FSM_CHOICE_OPEN, motion->came == FSM_CONTACT_FREE ? 0.0 : FSM_STATE_CHANGE);
    }
    if (problem->tangent.at[at] < 0 || problem->infinite.at[at]) {
        admit(problem, at, FSM_CHOICE_HOLD, cost_of_hold(motion));
    } else if (problem->spatial.at[at]) {
        admit_spatial(problem, at, motion, slow);
    } else if (fabs(motion->slip) <= slow || motion->event == FSM_EVENT_STICKS || motion->event == FSM_EVENT_SLIDES) {
        admit_at_rest(problem, at, motion);
    } else {
        admit_slipping(problem, at, motion);
    }
}

/* Whether contact `k` has something to choose: closed, dry friction, or compressed with friction. */
static bool takes_part(const struct fsm_resolution *r, int64_t k)
{
    int64_t flags = r->tables->contact_flags.at[k];
    bool compressed = (flags & FSM_FLAG_COMPLIANT) != 0 && r->outcome->wanted.at[k] != FSM_CONTACT_FREE;
    return r->closed.at[k] == 1 || (flags & FSM_FLAG_FRICTION_ONLY) != 0 ||
           (compressed && AT(r->tables->contact_rows, k, 1) >= 0);
}

/* Fill in friction and slip of contact `at`, which has a tangent row; returns the slip velocity. */
static double fill_friction(const struct fsm_resolution *r, const struct fsm_contact_problem *problem, int64_t at)
{
    int64_t k = problem->contact.at[at], row = AT(r->tables->contact_rows, k, 1);
    double load = (r->tables->contact_flags.at[k] & FSM_FLAG_COMPLIANT) != 0 ? r->terms->elastic.at[k] : 1.0;
    problem->static_friction.at[at] = load * r->terms->static_friction.at[k];
    problem->kinetic_friction.at[at] = load * r->terms->kinetic_friction.at[k];
    double slip = fsm_row_speed(r->terms, row, r->u);
    if (!problem->spatial.at[at]) {
        return slip;
    }
    double second = fsm_row_speed(r->terms, row + 1, r->u);
    AT(problem->slip_direction, at, 0) = slip; // not normalised yet
    AT(problem->slip_direction, at, 1) = second;
    return fsm_hypot(slip, second);
}

/* Return the unscaled contact problem of all contacts that have something to choose, on the acceleration level. */
FSM_LOCAL struct fsm_contact_problem fsm_build_selection_problem(const struct fsm_resolution *r)
{
    const struct fsm_tables *tables = r->tables;
    int64_t count = 0;
    bool any_slides = false, any_sticks = false;
    for (int64_t k = 0; k < r->closed.n; k++) {
        count += takes_part(r, k);
        any_slides = any_slides || r->event.at[k] == FSM_EVENT_SLIDES;
        any_sticks = any_sticks || r->event.at[k] == FSM_EVENT_STICKS;
    }
    struct fsm_contact_problem problem = fsm_allocate_problem(r->arena, count);
    for (int64_t k = 0; k < r->closed.n; k++) {
        if (!takes_part(r, k)) {
            continue;
        }
        int64_t at = problem.contact.n;
        bool gap = (tables->contact_flags.at[k] & FSM_FLAG_RIGID) != 0;
        // a corner on a straight face that begins counts as if it had been closed
        bool corner = gap && AT(tables->contact_ends, k, 0) >= 0;
        bool closes = r->event.at[k] == FSM_EVENT_CLOSES || (corner && r->before.at[k] == FSM_CONTACT_FREE);
        fsm_add_contact(&problem, tables, k, gap);
        struct contact_motion motion = {.came = closes ? FSM_CONTACT_HELD : r->before.at[k],
                                        .event = r->event.at[k],
                                        .slip = problem.tangent.at[at] >= 0 ? fill_friction(r, &problem, at) : 0.0,
                                        .sigma = r->sigma.at[k]};
        bool at_limit = r->event.at[k] == FSM_EVENT_SLIDES || r->event.at[k] == FSM_EVENT_OPENS;
        double slow = problem.tangent.at[at] >= 0 ? fsm_slip_tolerance(tables, k) : 0.0;
        bool ends = any_sticks || r->event.at[k] == FSM_EVENT_SLIDES; // slips of one body end at once, nearly
        slow *= problem.spatial.at[at] && ends ? FSM_TURNING : 1.0;
        admit_choices(&problem, at, &motion, slow);
        problem.lasting.at[at] = r->before.at[k] == FSM_CONTACT_HELD && problem.tangent.at[at] >= 0 && !at_limit &&
                                 AT(problem.allowed, at, FSM_CHOICE_HOLD);
        if (any_slides && problem.spatial.at[at] && r->before.at[k] == FSM_CONTACT_SLIDING &&
            r->event.at[k] != FSM_EVENT_STICKS) {
            AT(problem.cost, at, FSM_CHOICE_FORWARD) =
                0.0; // at its limit and not slipping yet: it slides with the others
        }
    }
    return problem;
}

/* Exclude the choice of contact `at` whose guard fired; at a release or a friction limit it would still look consistent.

   `sigma`: slip direction in which the contact does not continue after it sticks, 0: none. */
static void exclude_fired_choice(const struct fsm_resolution *r, const struct fsm_contact_problem *problem, int64_t at,
                                 double sigma)
{
    int64_t k = problem->contact.at[at], event = r->event.at[k];
    fsm_indices allowed = fsm_index_row(problem->allowed, at);
    bool over = r->before.at[k] == FSM_CONTACT_SLIDING;
    for (int64_t choice = FSM_CHOICE_HOLD; choice < FSM_CHOICE_COUNT; choice++) {
        double direction = fsm_direction_of(choice);
        bool slides = choice >= FSM_CHOICE_FORWARD, under = choice >= FSM_CHOICE_UNDER_FORWARD;
        bool excluded = false;
        if (event == FSM_EVENT_OPENS && problem->bilateral.at[at]) { // pressed on the other face now
            excluded = slides && under != over;
        } else if (event == FSM_EVENT_OPENS) {
            excluded = true;
        } else if (event == FSM_EVENT_SLIDES) {
            excluded = !slides || direction * r->direction.at[k] < 0.0;
        } else if (event == FSM_EVENT_STICKS && sigma != 0.0) {
            excluded = slides && direction * sigma > 0.0;
        }
        if (excluded) {
            allowed.at[choice] = 0;
        }
    }
}

/* Exclude what contact `at` may not choose because its guard fired, and let its forces be off zero by its slack. */
FSM_LOCAL void fsm_exclude_fired_choices(const struct fsm_resolution *r, const struct fsm_contact_problem *problem,
                                         int64_t at)
{
    int64_t k = problem->contact.at[at], event = r->event.at[k];
    if (event == FSM_EVENT_OPENS || event == FSM_EVENT_SLIDES) {
        fsm_put(fsm_row(problem->slack, at), fsm_row(r->slack, k));
    }
    exclude_fired_choice(r, problem, at, problem->spatial.at[at] ? 0.0 : r->sigma.at[k]); // any direction in space
}

/* Allow the choices that fired again, but not all of them together; returns whether that allows anything more.

   `admissible` (·, FSM_CHOICE_COUNT): what was allowed before fsm_exclude_fired_choices. */
FSM_LOCAL bool fsm_readmit_fired_choices(const struct fsm_resolution *r, const struct fsm_contact_problem *problem,
                                         fsm_index_table admissible)
{
    bool more = false;
    for (int64_t at = 0; at < problem->contact.n; at++) {
        int64_t k = problem->contact.at[at], event = r->event.at[k];
        for (int64_t choice = 0; choice < FSM_CHOICE_COUNT; choice++) {
            more = more || AT(problem->allowed, at, choice) != AT(admissible, at, choice);
            AT(problem->allowed, at, choice) = AT(admissible, at, choice);
        }
        if (event == FSM_EVENT_SLIDES || (event == FSM_EVENT_OPENS && r->before.at[k] == FSM_CONTACT_HELD)) {
            problem->excluded.at[at] = FSM_CHOICE_HOLD;
        }
    }
    return more;
}

/* -- Mode selection: contact states consistent with forces and accelerations (docs/theory.md, "Resolution"). */

#define FSM_PAST_LIMIT 1e-5 // part of a coefficient of friction by which a contact at its limit is taken past it

/* Whether the gap of contact `k` grows. */
static bool parts(const struct fsm_resolution *r, int64_t k)
{
    int64_t row = AT(r->tables->contact_rows, k, 0);
    double slow = fsm_larger(fsm_speed_tolerance(r->tables, row), fsm_speed_of_succession(r, k));
    return fsm_row_speed(r->terms, row, r->u) > slow;
}

/* Open the closed contacts that part: whatever the accelerations, they do not remain closed. */
static void open_parting(const struct fsm_resolution *r)
{
    for (int64_t k = 0; k < r->closed.n; k++) {
        if (r->closed.at[k] == 1 && (r->tables->contact_flags.at[k] & FSM_FLAG_TWO_SIDED) == 0 &&
            parts(r, k)) {
            r->closed.at[k] = 0;
        }
    }
}

/* Whether the constraints leave nothing of a contact's normal row, as at a dead point: it transmits no force.

   An engaged lock that holds the same row is no such constraint: what rests on it stays closed. */
static bool vanishes(const struct fsm_resolution *r, fsm_matrix K, fsm_vector free_response, int64_t row)
{
    for (int64_t k = 0; k < r->outcome->wanted.n; k++) {
        if ((r->tables->contact_flags.at[k] & FSM_FLAG_SWITCHED) != 0 && r->outcome->wanted.at[k] != FSM_CONTACT_FREE) {
            return false;
        }
    }
    return AT(K, row, row) <= FSM_HIDDEN * free_response.at[row];
}

/* Return the magnitude of the accelerations (n_u,) in the metric of kinetic energy, square root of (J/s²). */
static double acceleration_scale(const struct fsm_resolution *r, fsm_vector motion)
{
    const struct fsm_terms *terms = r->terms;
    const struct fsm_tables *tables = r->tables;
    double twice = 0.0, least = 0.0;
    for (int64_t i = 0; i < motion.n; i++) {
        for (int64_t e = terms->mass_begin.at[i]; e < terms->mass_begin.at[i + 1]; e++) {
            int64_t j = terms->mass_columns.at[e];
            twice += motion.at[i] * AT(terms->M, i, j) * motion.at[j];
        }
        least = fsm_larger(least, AT(terms->M, i, i) * fsm_square(fsm_least_acceleration(tables, i)));
    }
    return sqrt(fsm_larger(twice, least));
}

/* Restrict what contacts may choose; returns what was admissible before guards that fired excluded choices. */
static fsm_index_table restrict_choices(const struct fsm_resolution *r, const struct fsm_contact_problem *problem,
                                        fsm_matrix K, fsm_vector free_response)
{
    fsm_index_table admissible = fsm_arena_index_table(r->arena, problem->contact.n, FSM_CHOICE_COUNT);
    for (int64_t at = 0; at < problem->contact.n; at++) {
        fsm_indices allowed = fsm_index_row(problem->allowed, at);
        int64_t normal = problem->normal.at[at];
        if (normal >= 0 && !problem->bilateral.at[at] && vanishes(r, K, free_response, normal)) {
            fsm_indices_fill(fsm_indices_from(allowed, FSM_CHOICE_HOLD), 0);
        }
        fsm_put_indices(fsm_index_row(admissible, at), allowed);
        fsm_exclude_fired_choices(r, problem, at);
    }
    return admissible;
}

/* Of several motions at a limit of friction find the one that exists just past it; false where that decides nothing.

   At the limit itself a contact that begins to slide has no slip acceleration yet, and its sign decides whether the motion
   continues: with less friction it follows the slip where the motion exists after the instant, and opposes it where the
   motion existed before.  The choices of `solution` become those of the motion found. */
static bool decide_past_limits(const struct fsm_resolution *r, const struct fsm_contact_problem *problem,
                               const struct fsm_contact_solution *solution)
{
    bool any = false;
    struct fsm_contact_problem past = *problem;
    past.kinetic_friction = fsm_arena_copy(r->arena, problem->kinetic_friction);
    for (int64_t at = 0; at < problem->contact.n; at++) {
        if (r->event.at[problem->contact.at[at]] == FSM_EVENT_SLIDES) {
            past.kinetic_friction.at[at] *= 1.0 - FSM_PAST_LIMIT;
            any = true;
        }
    }
    if (!any) {
        return false;
    }
    struct fsm_contact_solution found = fsm_allocate_solution(r->arena, problem->contact.n, solution->forces.n);
    struct fsm_enumeration_result trial;
    struct fsm_candidate_log none = {0};
    double tolerance = r->tables->tolerances->acceleration;
    int64_t status = fsm_solve_contact_problem(r->arena, &past, tolerance, &found, &none, &trial);
    if (status != FSM_CONTINUE || trial.continuity) {
        return false;
    }
    fsm_put_indices(solution->choices, found.choices);
    return true;
}

/* Solve the contact problem as it is now; `bearings` may be none. */
static int64_t solve_once(const struct fsm_resolution *r, const struct fsm_contact_problem *problem,
                          const struct fsm_bearing_problem *bearings, const struct fsm_contact_solution *solution,
                          struct fsm_enumeration_result *result)
{
    double tolerance = r->tables->tolerances->acceleration;
    struct fsm_candidate_log *log = &r->outcome->log;
    return bearings->still.n > 0 ? fsm_solve_with_bearings(r->arena, bearings, tolerance, solution, log, result)
                                 : fsm_solve_contact_problem(r->arena, problem, tolerance, solution, log, result);
}

/* Whether a contact has come to its limit of friction, and contacts that brace each other would still hold. */
static bool braced_at_limit(const struct fsm_resolution *r, const struct fsm_enumeration_result *result)
{
    bool slides = false;
    for (int64_t k = 0; k < r->event.n; k++) {
        slides = slides || r->event.at[k] == FSM_EVENT_SLIDES;
    }
    return slides && result->braced > 0;
}

/* Solve the contact problem, with the choices that fired only if nothing else is consistent; returns a status. */
static int64_t solve_selection(const struct fsm_resolution *r, const struct fsm_contact_problem *problem,
                               const struct fsm_bearing_problem *bearings, fsm_index_table admissible,
                               const struct fsm_contact_solution *solution)
{
    struct fsm_notes *notes = r->outcome->notes;
    struct fsm_enumeration_result result;
    r->outcome->log.count = 0;
    int64_t status = solve_once(r, problem, bearings, solution, &result);
    notes->candidates = result.tried;
    notes->chosen_by = FSM_CHOSEN_NO_CANDIDATES;
    if (problem->contact.n > 0) {
        notes->chosen_by = result.consistent == 1 ? FSM_CHOSEN_UNIQUE : FSM_CHOSEN_LEAST_CHANGE;
    }
    if (status == FSM_CONTINUE && result.continuity) {
        notes->chosen_by = FSM_CHOSEN_CONTINUITY;
    }
    bool braced = braced_at_limit(r, &result);
    if (status == FSM_CONTINUE && braced) { // at the limit itself both motions are the same
        status = FSM_NON_UNIQUE_STATE;
    }
    bool several = status == FSM_NON_UNIQUE_STATE || (status == FSM_CONTINUE && result.continuity);
    if (several && !braced && bearings->still.n == 0 && decide_past_limits(r, problem, solution)) {
        status = FSM_CONTINUE;
        notes->chosen_by = FSM_CHOSEN_PAST_LIMIT;
    }
    if (status == FSM_INCONSISTENT && fsm_readmit_fired_choices(r, problem, admissible)) {
        status = solve_once(r, problem, bearings, solution, &result);
        notes->candidates += result.tried;
        notes->chosen_by = FSM_CHOSEN_LEAST_CHANGE;
        if (status == FSM_INCONSISTENT) { // not even if some of the contacts keep their states: all of them may
            fsm_indices_fill(problem->excluded, -1);
            status = solve_once(r, problem, bearings, solution, &result);
            notes->candidates += result.tried;
            notes->chosen_by = FSM_CHOSEN_FIRED_STATE_KEPT;
        }
    }
    notes->consistent = result.consistent;
    if (status == FSM_NON_UNIQUE_STATE && r->tables->sizes->on_several == 1) {
        notes->chosen_by = FSM_CHOSEN_POLICY;
        return FSM_CONTINUE;
    }
    return status;
}

/* Set the contact states and slip directions that the solution of the contact problem means. */
static void adopt_states(const struct fsm_resolution *r, const struct fsm_contact_problem *problem, fsm_indices choices)
{
    fsm_codes wanted = r->outcome->wanted;
    fsm_vector old_sigma = fsm_arena_copy(r->arena, r->sigma);
    for (int64_t k = 0; k < wanted.n; k++) {
        if ((r->tables->contact_flags.at[k] & FSM_FLAG_RIGID) != 0) {
            wanted.at[k] = FSM_CONTACT_FREE;
        }
        r->sigma.at[k] = 0.0;
    }
    for (int64_t at = 0; at < problem->contact.n; at++) {
        int64_t k = problem->contact.at[at], choice = choices.at[at];
        wanted.at[k] = (int8_t)(choice < FSM_CHOICE_UNDER_FORWARD ? fsm_least(choice, FSM_CONTACT_SLIDING)
                                                                  : FSM_CONTACT_SLIDING_UNDER);
        r->sigma.at[k] = fsm_direction_of(choice);
        if (problem->spatial.at[at] && r->sigma.at[k] != 0.0) {
            const double *direction = &AT(problem->slip_direction, at, 0);
            double present = r->before.at[k] == FSM_CONTACT_SLIDING ? old_sigma.at[k] : 0.0;
            r->sigma.at[k] = fsm_angle_of(direction[0], direction[1], present);
        }
    }
}

/* Find the contact states after the instant, and their slip directions.

   Writes `outcome->wanted`, the slip directions in the context, the log and what the notes say of candidates; opens
   contacts that part.  Returns FSM_CONTINUE, FSM_INCONSISTENT, FSM_NON_UNIQUE_STATE, FSM_NON_UNIQUE or FSM_SINGULAR. */
FSM_LOCAL int64_t fsm_select_contact_states(const struct fsm_resolution *r)
{
    const struct fsm_terms *terms = r->terms;
    struct fsm_arena *arena = r->arena;
    int64_t n_u = r->u.n;
    open_parting(r);
    fsm_vector force = fsm_arena_copy(arena, fsm_vector_first(terms->f, n_u)), motion = fsm_arena_vector(arena, n_u);
    fsm_add_compliant_forces(r, force);
    struct fsm_contact_problem unscaled = fsm_build_selection_problem(r);
    fsm_indices rows = unscaled.row;
    struct fsm_bilateral_system bilateral =
        fsm_factor_bilateral(arena, terms, fsm_bilateral_rows(arena, r->tables, r->outcome->wanted), n_u);
    fsm_vector reaction = fsm_arena_vector(arena, bilateral.held.n);
    if (!fsm_base_accelerations(arena, r->tables, terms, &bilateral, force, r->u, motion, reaction)) {
        r->outcome->notes->candidates = 0;
        r->outcome->notes->consistent = 0;
        r->outcome->notes->chosen_by = FSM_CHOSEN_NO_CANDIDATES;
        return FSM_SINGULAR;
    }
    struct fsm_response response = fsm_unit_responses(arena, terms, &bilateral, rows, n_u);
    fsm_vector free_response = fsm_free_response(arena, terms, rows), base = fsm_arena_vector(arena, rows.n);
    for (int64_t k = 0; k < rows.n; k++) {
        base.at[k] = fsm_row_product(terms, rows.at[k], motion, terms->gamma.at[rows.at[k]]);
    }
    fsm_index_table admissible = restrict_choices(r, &unscaled, response.K, free_response);
    struct fsm_contact_problem problem =
        fsm_scale_problem(arena, &unscaled, response.K, base, free_response, acceleration_scale(r, motion));
    struct fsm_contact_solution solution = fsm_allocate_solution(arena, unscaled.contact.n, rows.n);
    struct fsm_bearing_problem bearings = {.still = {NULL, 0}};
    if (fsm_any_bearing(r->tables, problem.contact)) {
        bearings = fsm_bearings_of(arena, r->tables, &problem, &response, bilateral.held, reaction);
    }
    int64_t status = solve_selection(r, &problem, &bearings, admissible, &solution);
    if (status == FSM_CONTINUE) {
        adopt_states(r, &problem, solution.choices);
    }
    fsm_indices_fill(r->jammed, 0);
    for (int64_t at = 0; status == FSM_INCONSISTENT && at < problem.contact.n; at++) {
        int64_t k = problem.contact.at[at];
        r->jammed.at[k] = problem.jammed.at[at] == 1 && r->closed.at[k] == 1;
    }
    return status;
}
