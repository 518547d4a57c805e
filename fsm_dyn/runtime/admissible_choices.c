/* The contact problem on the acceleration level: admissible choices and their costs (docs/theory.md, "Resolution").

   - The state whose guard fired is left, unless nothing else is consistent.
   - A contact that stuck keeps sticking while it can, one whose slip has come to rest sticks if it can (so with static
     above kinetic friction both may be consistent, and this decides).
   - Otherwise the candidate that changes least is taken. */

#include "elementary.h"
#include "contacts.h"

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
    bool limit = motion->event == FSM_EVENT_STICKS || motion->event == FSM_EVENT_SLIDES;
    bool slipping = motion->slip > (limit ? FSM_TURNING * slow : slow);
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
    bool any_slides = false;
    for (int64_t k = 0; k < r->closed.n; k++) {
        count += takes_part(r, k);
        any_slides = any_slides || r->event.at[k] == FSM_EVENT_SLIDES;
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
