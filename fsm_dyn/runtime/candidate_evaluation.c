/* Evaluation of a candidate: violation of the contact laws (docs/theory.md, "Resolution").

   Where contacts are redundant, satisfying the laws is a question of feasibility (feasibility.c). */

#include "elementary.h"
#include "contacts.h"

#define FSM_BRACED   1e-6 // part of normal forces that add up to one, by which the laws of a bracing may be missed
#define FSM_ROOT_TWO 1.4142135623730951

/* Return the magnitude against which the laws are judged, for the forces `y` (n,). */
FSM_LOCAL double fsm_reference_scale(const struct fsm_contact_problem *problem, fsm_vector y)
{
    double scale = fsm_larger(problem->scale, FSM_TINIEST);
    for (int64_t i = 0; i < y.n; i++) {
        scale = fsm_larger(scale, fabs(y.at[i]));
        scale = fsm_larger(scale, fabs(problem->base.at[i] - problem->target.at[i]));
        scale = fsm_larger(scale, fabs(problem->floor.at[i]));
    }
    return scale;
}

static bool sticks(int64_t choice)
{
    return choice == FSM_CHOICE_HOLD || choice == FSM_CHOICE_PARTED_HOLD;
}

/* Write the laws on forces as `g y >= h`: no tension, and the static friction limit where a contact sticks.

   The friction cone in space is not among them: it is asked of the forces of least norm, as in the modes. */
static fsm_matrix inequalities(struct fsm_arena *arena, const struct fsm_contact_problem *problem, fsm_indices choices,
                               fsm_vector *h)
{
    int64_t count = choices.n, at = 0;
    fsm_matrix g = fsm_arena_matrix(arena, 3 * count, problem->K.n);
    *h = fsm_arena_vector(arena, 3 * count);
    for (int64_t k = 0; k < count; k++) {
        int64_t choice = choices.at[k], a = problem->normal.at[k], b = problem->tangent.at[k];
        bool one_sided = !problem->bilateral.at[k] || fsm_direction_of(choice) != 0.0;
        if (a >= 0 && !fsm_is_open(choice) && one_sided) {
            AT(g, at, a) = fsm_side_of(choice);
            h->at[at++] = problem->floor.at[a];
        }
        if (b < 0 || !sticks(choice) || problem->infinite.at[k] || problem->spatial.at[k]) {
            continue;
        }
        for (double sign = -1.0; sign < 2.0; sign += 2.0) {
            AT(g, at, b) = sign;
            if (a >= 0) {
                AT(g, at, a) = problem->static_friction.at[k];
            } else {
                h->at[at] = -problem->static_friction.at[k];
            }
            at++;
        }
    }
    h->n = at;
    return fsm_matrix_first(g, at);
}

/* Add to `y` a combination of indeterminate forces with which it satisfies the laws by the largest margin. */
static void choose_forces(struct fsm_arena *arena, const struct fsm_contact_problem *problem, fsm_indices choices,
                          fsm_matrix basis, double scale, fsm_vector y)
{
    fsm_vector h;
    fsm_matrix g = inequalities(arena, problem, choices, &h);
    fsm_vector slack = fsm_arena_vector(arena, g.n);
    fsm_matrix along = fsm_arena_matrix(arena, g.n, basis.m);
    bool violated = false;
    for (int64_t i = 0; i < g.n; i++) {
        slack.at[i] = -h.at[i];
        for (int64_t j = 0; j < y.n; j++) {
            slack.at[i] += AT(g, i, j) * y.at[j];
            for (int64_t a = 0; a < basis.m; a++) {
                AT(along, i, a) += AT(g, i, j) * AT(basis, j, a);
            }
        }
        violated = violated || slack.at[i] < 0.0;
    }
    if (!violated) {
        return;
    }
    fsm_vector shares;
    fsm_maximise_margin(arena, along, slack, scale, &shares);
    for (int64_t j = 0; j < y.n; j++) {
        for (int64_t a = 0; a < basis.m; a++) {
            y.at[j] += AT(basis, j, a) * shares.at[a];
        }
    }
}

/* Write the laws on a bracing of the contacts as `g y >= 0`, and in the last row the sum of its normal forces.

   Cones of friction in space are squares within the circle. */
static fsm_matrix bracing_laws(struct fsm_arena *arena, const struct fsm_contact_problem *problem, fsm_indices choices)
{
    int64_t count = choices.n, at = 0;
    fsm_matrix g = fsm_arena_matrix(arena, 5 * count + 1, problem->K.n);
    fsm_vector sum = fsm_row(g, g.n - 1);
    for (int64_t k = 0; k < count; k++) {
        int64_t choice = choices.at[k], a = problem->normal.at[k], b = problem->tangent.at[k];
        if (a < 0 || fsm_is_open(choice) || problem->bilateral.at[k]) {
            continue;
        }
        AT(g, at++, a) = 1.0;
        sum.at[a] = 1.0;
        if (b < 0 || !sticks(choice) || problem->infinite.at[k]) {
            continue;
        }
        bool spatial = problem->spatial.at[k] != 0;
        double friction = problem->static_friction.at[k] / (spatial ? FSM_ROOT_TWO : 1.0);
        for (int64_t i = 0; i < (spatial ? 4 : 2); i++) {
            AT(g, at, a) = friction;
            AT(g, at++, b + i / 2) = i % 2 == 0 ? 1.0 : -1.0;
        }
    }
    fsm_put(fsm_row(g, at), sum);
    return fsm_matrix_first(g, at + 1);
}

/* Whether two contacts are closed that can press on each other. */
static bool may_brace(const struct fsm_contact_problem *problem, fsm_indices choices)
{
    int64_t closed = 0;
    for (int64_t k = 0; k < choices.n; k++) {
        closed += problem->normal.at[k] >= 0 && !fsm_is_open(choices.at[k]) && !problem->bilateral.at[k];
    }
    return closed > 1;
}

/* Return the candidate in which contacts that slide without a slip stick, by `motions` (n,) and what counts as `still`. */
static fsm_indices as_sticking(struct fsm_arena *arena, const struct fsm_contact_problem *problem, fsm_indices choices,
                               fsm_vector motions, double still)
{
    fsm_indices sticking = fsm_arena_indices(arena, choices.n);
    fsm_put_indices(sticking, choices);
    for (int64_t k = 0; k < choices.n; k++) {
        int64_t b = problem->tangent.at[k];
        if (b >= 0 && fsm_direction_of(choices.at[k]) != 0.0 && !fsm_is_open(choices.at[k]) &&
            !problem->slipping.at[k] && fabs(motions.at[b]) <= still &&
            (!problem->spatial.at[k] || fabs(motions.at[b + 1]) <= still)) {
            sticking.at[k] = FSM_CHOICE_HOLD;
        }
    }
    return sticking;
}

/* Whether contacts can brace each other: forces without a load satisfy the contact laws at any size.

   `motions` (n,): of the candidate; `still`: magnitude of a motion that counts as none. */
static bool is_braced(struct fsm_arena *arena, const struct fsm_contact_problem *problem, fsm_indices choices,
                      fsm_vector motions, double still)
{
    fsm_indices sticking = as_sticking(arena, problem, choices, motions, still);
    fsm_vector forces = fsm_arena_vector(arena, motions.n), again = fsm_arena_vector(arena, motions.n);
    fsm_matrix basis;
    bool shared;
    fsm_solve_candidate(arena, problem, sticking, forces, again, &basis, &shared);
    if (basis.m == 0) {
        return false;
    }
    fsm_matrix g = bracing_laws(arena, problem, sticking);
    fsm_matrix along = fsm_arena_matrix(arena, g.n, basis.m);
    for (int64_t i = 0; i < g.n; i++) {
        for (int64_t j = 0; j < basis.n; j++) {
            for (int64_t a = 0; AT(g, i, j) != 0.0 && a < basis.m; a++) {
                AT(along, i, a) += AT(g, i, j) * AT(basis, j, a);
            }
        }
    }
    fsm_vector slack = fsm_arena_vector(arena, g.n), shares;
    slack.at[g.n - 1] = -1.0; // the normal forces add up to one: their scale is arbitrary
    return fsm_maximise_margin(arena, along, slack, 1.0, &shares) > -FSM_BRACED;
}

/* Return how far the friction of a contact that begins to slide may be from its limit; in space its square is known. */
static double friction_slack(const struct fsm_contact_problem *problem, int64_t k, fsm_vector y)
{
    double slack = AT(problem->slack, k, 1);
    int64_t a = problem->normal.at[k];
    if (slack == 0.0 || !problem->spatial.at[k]) {
        return slack;
    }
    double bound = problem->static_friction.at[k] * (a >= 0 ? fabs(y.at[a]) : 1.0);
    return slack / (bound + sqrt(slack));
}

/* Enter a violation of a law by contact `k` if it is the worst so far. */
static void enter_violation(struct fsm_candidate_result *worst, double violation, enum fsm_violation law, int64_t k)
{
    if (violation > worst->violation) {
        worst->violation = violation;
        worst->law = law;
        worst->contact = k;
    }
}

/* Judge the normal force or the normal motion of contact `k`. */
static void judge_normal(const struct fsm_contact_problem *problem, int64_t choice, int64_t k, fsm_vector y,
                         fsm_vector v, struct fsm_candidate_result *worst)
{
    int64_t a = problem->normal.at[k];
    double slack = AT(problem->slack, k, 0);
    if (fsm_is_open(choice)) {
        double rate = problem->target.at[a] - v.at[a] - (1.0 + problem->kinetic_friction.at[k]) * slack;
        enter_violation(worst, rate, FSM_LAW_PENETRATION_RATE, k);
    } else if (!problem->bilateral.at[k] || fsm_direction_of(choice) != 0.0) {
        double tension = problem->floor.at[a] - fsm_side_of(choice) * y.at[a] - slack;
        enter_violation(worst, tension, FSM_LAW_TENSION, k);
    }
}

/* Judge the friction of contact `k` where it sticks, or its slip where that begins. */
static void judge_friction(const struct fsm_contact_problem *problem, int64_t choice, int64_t k, fsm_vector y,
                           fsm_vector v, struct fsm_candidate_result *worst)
{
    int64_t a = problem->normal.at[k], b = problem->tangent.at[k];
    bool spatial = problem->spatial.at[k] != 0;
    if (sticks(choice) && !problem->infinite.at[k]) {
        double load = 1.0;
        if (a >= 0) {
            load = problem->bilateral.at[k] ? fabs(y.at[a]) : y.at[a];
        }
        double friction = spatial ? fsm_hypot(y.at[b], y.at[b + 1]) : fabs(y.at[b]);
        worst->excess = fsm_larger(worst->excess, friction - problem->kinetic_friction.at[k] * load);
        enter_violation(worst, friction - problem->static_friction.at[k] * load, FSM_LAW_FRICTION_EXCEEDED, k);
    }
    double sigma = fsm_direction_of(choice);
    if (sigma != 0.0 && !problem->slipping.at[k]) {
        double opposed = -sigma * v.at[b];
        if (spatial) { // along its slip direction, without lateral motion
            const double *direction = &AT(problem->slip_direction, k, 0);
            double lateral = fabs(direction[0] * v.at[b + 1] - direction[1] * v.at[b]);
            opposed = fsm_larger(lateral, -direction[0] * v.at[b] - direction[1] * v.at[b + 1]);
        }
        enter_violation(worst, opposed - friction_slack(problem, k, y), FSM_LAW_SLIP_AGAINST_FRICTION, k);
    }
}

/* Solve one candidate for its forces `y` (n,) and motions `v` (n,) and judge it.

   Where forces are indeterminate, `y` becomes a choice that satisfies the laws if there is one.  `tolerance`: violation
   that counts as zero, as a fraction of the scale.  The violation is infinite where a force or motion is not finite. */
FSM_LOCAL struct fsm_candidate_result fsm_evaluate_candidate(struct fsm_arena *arena,
                                                             const struct fsm_contact_problem *problem,
                                                             fsm_indices choices, fsm_vector y, fsm_vector v,
                                                             double tolerance)
{
    arena->top->solved++;
    fsm_matrix basis;
    bool shared;
    double remainder = fsm_solve_candidate(arena, problem, choices, y, v, &basis, &shared);
    double scale = fsm_reference_scale(problem, y);
    if (remainder > tolerance * scale) {
        return (struct fsm_candidate_result){remainder / scale, FSM_LAW_NO_SOLUTION, 0, 0.0, remainder / scale, false, shared};
    }
    if (basis.m > 0) {
        fsm_mark top = fsm_arena_mark(arena);
        choose_forces(arena, problem, choices, basis, scale, y);
        fsm_arena_release(arena, top);
    }
    for (int64_t i = 0; i < y.n; i++) { // what is not a number would violate no law
        if (!fsm_is_finite(y.at[i]) || !fsm_is_finite(v.at[i])) {
            return (struct fsm_candidate_result){FSM_INFINITY, FSM_LAW_NO_SOLUTION, 0, 0.0, 0.0, false, shared};
        }
    }
    struct fsm_candidate_result worst = {-1.0, FSM_LAW_KEPT, 0, -1.0, remainder / scale, false, shared};
    for (int64_t k = 0; k < choices.n; k++) {
        if (problem->normal.at[k] >= 0) {
            judge_normal(problem, choices.at[k], k, y, v, &worst);
        }
        if (problem->tangent.at[k] >= 0) {
            judge_friction(problem, choices.at[k], k, y, v, &worst);
        }
    }
    if (basis.m > 0 && worst.violation <= tolerance * scale && fsm_affects_motion(problem, basis)) {
        return (struct fsm_candidate_result){1.0, FSM_LAW_MOTION_INDETERMINATE, 0, 0.0, 0.0, false, shared};
    }
    if (problem->shares_count) {
        int64_t contact = 0;
        double left_out = fsm_share_left_out(arena, problem, choices, y, &contact);
        enter_violation(&worst, left_out, FSM_LAW_SHARE_LEFT_OUT, contact);
    }
    worst.violation /= scale;
    worst.excess /= scale;
    if (worst.violation <= tolerance && may_brace(problem, choices)) {
        fsm_mark top = fsm_arena_mark(arena);
        worst.braced = is_braced(arena, problem, choices, v, tolerance * scale);
        fsm_arena_release(arena, top);
    }
    return worst;
}
