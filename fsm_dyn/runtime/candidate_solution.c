/* Solution of one candidate: forces, motions, and spatial slip directions that are unknown in advance.

   Such a direction is that of the motion it leads to.  The friction that would hold the contact gives the first
   estimate, which is the solution where the friction limit has just been reached.  A fixed-point iteration on the
   direction converges at once where the Delassus matrix is isotropic in the tangent plane, and Newton's method on the
   angles elsewhere (docs/theory.md, "Friction in space"). */

#include "elementary.h"
#include "contacts.h"

#define FSM_CANDIDATE_RANK   1e-11 // rounding: a pivot below this fraction of the first is zero
#define FSM_ROUNDS           12    // of fixed-point sweeps and a step of Newton's method
#define FSM_SLIP_SWEEPS      6     // in a round
#define FSM_SLIP_CONVERGED   1e-14 // rad: no more than rounding
#define FSM_ANGLE_DIFFERENCE 1e-7  // rad, for the Jacobian
#define FSM_FARTHEST         0.5   // rad, in a step of Newton's method

/* The forces of a candidate as unknowns: `y[j] = given[j] + share[j] y[leader[j]]`, with leader -1 for none.

   The unknowns are the forces of the rows that are held, each its own leader: the force of an open contact is given, and
   the friction of one that slides follows from its normal force. */
struct unknowns {
    fsm_vector given;   // (n,)
    fsm_vector share;   // (n,)
    fsm_indices leader; // (n,)
    fsm_indices held;   // (count,)
    fsm_indices place;  // (n,): of a held row among those
};

/* Whether a spatial contact slides in a direction not known beforehand. */
static bool seeks_direction(const struct fsm_contact_problem *problem, fsm_indices choices, int64_t k)
{
    return problem->spatial.at[k] && !problem->slipping.at[k] && fsm_direction_of(choices.at[k]) != 0.0;
}

static void append_held(struct unknowns *unknowns, int64_t row)
{
    unknowns->share.at[row] = 1.0;
    unknowns->leader.at[row] = row;
    unknowns->held.at[unknowns->held.n++] = row;
}

/* Enter the friction of a sliding contact: along `slip` times its kinetic friction, opposed. */
static void enter_friction(const struct fsm_contact_problem *problem, int64_t choice, int64_t k,
                           struct unknowns *unknowns)
{
    int64_t normal = problem->normal.at[k], tangent = problem->tangent.at[k];
    bool spatial = problem->spatial.at[k] != 0;
    double along = fsm_direction_of(choice);
    for (int64_t i = 0; i < (spatial ? 2 : 1); i++) {
        int64_t row = tangent + i;
        double friction = 0.0;
        if (along != 0.0) {
            double direction = along * (normal >= 0 ? fsm_side_of(choice) : 1.0);
            friction = -problem->kinetic_friction.at[k] * (spatial ? AT(problem->slip_direction, k, i) : direction);
        }
        if (normal < 0) {
            unknowns->given.at[row] = friction;
            unknowns->leader.at[row] = -1;
        } else if (unknowns->leader.at[normal] < 0) {
            unknowns->given.at[row] = friction * unknowns->given.at[normal];
            unknowns->leader.at[row] = -1;
        } else {
            unknowns->share.at[row] = friction;
            unknowns->leader.at[row] = normal;
        }
    }
}

/* Enter the rows of contact `k`; one that slides in a direction still unknown is held. */
static void enter_contact(const struct fsm_contact_problem *problem, fsm_indices choices, int64_t k,
                          struct unknowns *unknowns)
{
    int64_t choice = choices.at[k], normal = problem->normal.at[k], tangent = problem->tangent.at[k];
    if (seeks_direction(problem, choices, k) && AT(problem->slip_direction, k, 0) == 0.0 &&
        AT(problem->slip_direction, k, 1) == 0.0) {
        choice = fsm_is_open(choice) ? FSM_CHOICE_PARTED_HOLD : FSM_CHOICE_HOLD;
    }
    if (normal >= 0 && fsm_is_open(choice)) {
        unknowns->given.at[normal] = problem->floor.at[normal];
        unknowns->leader.at[normal] = -1;
    } else if (normal >= 0) {
        append_held(unknowns, normal);
    }
    if (tangent < 0) {
        return;
    }
    if (choice == FSM_CHOICE_HOLD || choice == FSM_CHOICE_PARTED_HOLD) {
        append_held(unknowns, tangent);
        if (problem->spatial.at[k]) {
            append_held(unknowns, tangent + 1);
        }
        return;
    }
    enter_friction(problem, choice, k, unknowns);
}

static struct unknowns find_unknowns(struct fsm_arena *arena, const struct fsm_contact_problem *problem,
                                     fsm_indices choices)
{
    int64_t n = problem->K.n;
    struct unknowns unknowns = {.given = fsm_arena_vector(arena, n),
                                .share = fsm_arena_vector(arena, n),
                                .leader = fsm_arena_indices(arena, n),
                                .held = fsm_indices_first(fsm_arena_indices(arena, n), 0),
                                .place = fsm_arena_indices(arena, n)};
    for (int64_t k = 0; k < choices.n; k++) {
        enter_contact(problem, choices, k, &unknowns);
    }
    for (int64_t i = 0; i < unknowns.held.n; i++) {
        unknowns.place.at[unknowns.held.at[i]] = i;
    }
    return unknowns;
}

/* Return the rows that a candidate holds, those of contacts that slide in an unknown direction among them. */
FSM_LOCAL fsm_indices fsm_held_rows(struct fsm_arena *arena, const struct fsm_contact_problem *problem,
                                    fsm_indices choices)
{
    return find_unknowns(arena, problem, choices).held;
}

/* Solve a candidate with the current slip directions; returns the remainder of the rows.

   `basis` becomes the null space, empty where the motion depends on the shares, which are then determined: `shared`. */
static double solve_with_directions(struct fsm_arena *arena, const struct fsm_contact_problem *problem,
                                    fsm_indices choices, fsm_vector y, fsm_vector v, fsm_matrix *basis, bool *shared)
{
    struct unknowns unknowns = find_unknowns(arena, problem, choices);
    fsm_vector share = unknowns.share;
    fsm_indices leader = unknowns.leader, place = unknowns.place;
    int64_t n = problem->K.n, count = unknowns.held.n;
    fsm_matrix system = fsm_arena_matrix(arena, count, count);
    fsm_vector right = fsm_arena_vector(arena, count), forces = fsm_arena_vector(arena, count);
    for (int64_t i = 0; i < count; i++) {
        int64_t row = unknowns.held.at[i];
        right.at[i] = problem->target.at[row] - problem->base.at[row];
        for (int64_t j = 0; j < n; j++) {
            if (leader.at[j] >= 0) {
                AT(system, i, place.at[leader.at[j]]) += share.at[j] * AT(problem->K, row, j);
            }
            right.at[i] -= AT(problem->K, row, j) * unknowns.given.at[j];
        }
    }
    struct fsm_lu lu = fsm_factor(arena, system, FSM_CANDIDATE_RANK);
    double remainder = fsm_solve(&lu, right, forces);
    fsm_matrix null_space = fsm_null_space(arena, &lu);
    *basis = fsm_arena_matrix(arena, n, null_space.m);
    for (int64_t j = 0; j < n; j++) {
        y.at[j] = unknowns.given.at[j];
        if (leader.at[j] >= 0) {
            int64_t at = place.at[leader.at[j]];
            y.at[j] += share.at[j] * forces.at[at];
            for (int64_t a = 0; a < null_space.m; a++) {
                AT(*basis, j, a) = share.at[j] * AT(null_space, at, a);
            }
        }
    }
    *shared = null_space.m > 0 && fsm_share_forces(arena, problem, choices, unknowns.held, *basis, y);
    if (*shared) {
        *basis = fsm_arena_matrix(arena, n, 0);
    } else if (null_space.m > 0) {
        fsm_minimum_norm(arena, y, *basis, problem->unit);
    }
    for (int64_t i = 0; i < n; i++) {
        v.at[i] = problem->base.at[i];
        for (int64_t j = 0; j < n; j++) {
            v.at[i] += AT(problem->K, i, j) * y.at[j];
        }
    }
    return remainder;
}

/* Solve as solve_with_directions, where only `y` and `v` matter. */
static void update_solution(struct fsm_arena *arena, const struct fsm_contact_problem *problem, fsm_indices choices,
                            fsm_vector y, fsm_vector v)
{
    fsm_mark top = fsm_arena_mark(arena);
    fsm_matrix basis;
    bool shared;
    solve_with_directions(arena, problem, choices, y, v, &basis, &shared);
    fsm_arena_release(arena, top);
}

/* Set the slip direction of a contact to that of its motion; returns by how much it changed (rad). */
static double fixed_point_step(const struct fsm_contact_problem *problem, int64_t k, fsm_vector y, fsm_vector v)
{
    double *direction = &AT(problem->slip_direction, k, 0);
    int64_t a = problem->normal.at[k], b = problem->tangent.at[k];
    fsm_matrix K = problem->K;
    double bound = problem->kinetic_friction.at[k] * (a >= 0 ? fsm_larger(y.at[a], 0.0) : 1.0);
    double stiff = bound * (fsm_larger(AT(K, b, b), AT(K, b + 1, b + 1)) + fabs(AT(K, b, b + 1)));
    double first = v.at[b] + stiff * direction[0], second = v.at[b + 1] + stiff * direction[1];
    double length = fsm_hypot(first, second);
    if (length == 0.0) {
        return 0.0;
    }
    first /= length;
    second /= length;
    double change = fsm_hypot(first - direction[0], second - direction[1]);
    direction[0] = first;
    direction[1] = second;
    return change;
}

/* Return the motion of a spatial contact normal to its slip direction, in the tangent plane. */
static double lateral_motion(const struct fsm_contact_problem *problem, int64_t k, fsm_vector v)
{
    int64_t b = problem->tangent.at[k];
    return AT(problem->slip_direction, k, 0) * v.at[b + 1] - AT(problem->slip_direction, k, 1) * v.at[b];
}

/* Rotate the slip direction of a contact by an angle (rad). */
static void rotate(const struct fsm_contact_problem *problem, int64_t k, double angle)
{
    double *direction = &AT(problem->slip_direction, k, 0);
    double c = fsm_cos(angle), s = fsm_sin(angle);
    double first = c * direction[0] - s * direction[1], second = s * direction[0] + c * direction[1];
    direction[0] = first;
    direction[1] = second;
}

/* One step of Newton's method on the angles of the contacts `sought`, towards no lateral motion; undone if it diverges. */
static void slip_newton_step(struct fsm_arena *arena, const struct fsm_contact_problem *problem, fsm_indices choices,
                             fsm_indices sought, fsm_vector y, fsm_vector v)
{
    int64_t count = sought.n;
    fsm_matrix jacobian = fsm_arena_matrix(arena, count, count);
    fsm_vector right = fsm_arena_vector(arena, count), step = fsm_arena_vector(arena, count);
    update_solution(arena, problem, choices, y, v);
    double before = 0.0, after = 0.0;
    for (int64_t i = 0; i < count; i++) {
        right.at[i] = -lateral_motion(problem, sought.at[i], v);
        before = fsm_larger(before, fabs(right.at[i]));
    }
    for (int64_t j = 0; j < count; j++) {
        rotate(problem, sought.at[j], FSM_ANGLE_DIFFERENCE);
        update_solution(arena, problem, choices, y, v);
        for (int64_t i = 0; i < count; i++) {
            AT(jacobian, i, j) = (lateral_motion(problem, sought.at[i], v) + right.at[i]) / FSM_ANGLE_DIFFERENCE;
        }
        rotate(problem, sought.at[j], -FSM_ANGLE_DIFFERENCE);
    }
    struct fsm_lu lu = fsm_factor(arena, jacobian, FSM_CANDIDATE_RANK);
    fsm_solve(&lu, right, step);
    for (int64_t i = 0; i < count; i++) {
        step.at[i] = fsm_smaller(fsm_larger(step.at[i], -FSM_FARTHEST), FSM_FARTHEST);
        rotate(problem, sought.at[i], step.at[i]);
    }
    update_solution(arena, problem, choices, y, v);
    for (int64_t i = 0; i < count; i++) {
        int64_t k = sought.at[i], b = problem->tangent.at[k];
        const double *direction = &AT(problem->slip_direction, k, 0);
        bool opposed = direction[0] * v.at[b] + direction[1] * v.at[b + 1] < 0.0;
        after = fsm_larger(after, opposed ? 2.0 * before : fabs(lateral_motion(problem, k, v)));
    }
    if (!(after < before)) {
        for (int64_t i = 0; i < count; i++) {
            rotate(problem, sought.at[i], -step.at[i]);
        }
    }
}

/* Find the slip directions of the contacts `sought`, which have none given. */
static void find_slip_directions(struct fsm_arena *arena, const struct fsm_contact_problem *problem,
                                 fsm_indices choices, fsm_indices sought, fsm_vector y, fsm_vector v)
{
    update_solution(arena, problem, choices, y, v);
    for (int64_t i = 0; i < sought.n; i++) {
        double *direction = &AT(problem->slip_direction, sought.at[i], 0);
        int64_t b = problem->tangent.at[sought.at[i]];
        double friction = fsm_hypot(y.at[b], y.at[b + 1]);
        direction[0] = friction > 0.0 ? -y.at[b] / friction : 1.0;
        direction[1] = friction > 0.0 ? -y.at[b + 1] / friction : 0.0;
    }
    fsm_mark top = fsm_arena_mark(arena);
    for (int64_t cycle = 0; cycle < FSM_ROUNDS; cycle++) {
        for (int64_t pass = 0; pass < FSM_SLIP_SWEEPS; pass++) {
            double change = 0.0;
            for (int64_t i = 0; i < sought.n; i++) {
                update_solution(arena, problem, choices, y, v);
                change = fsm_larger(change, fixed_point_step(problem, sought.at[i], y, v));
            }
            if (change <= FSM_SLIP_CONVERGED) {
                return;
            }
        }
        slip_newton_step(arena, problem, choices, sought, y, v);
        fsm_arena_release(arena, top);
    }
}

/* Solve for the forces `y` (n,) and motions `v` (n,) of one candidate; slip directions found are left in the problem.

   `basis` becomes the null space (n, nullity): forces that the equations leave open, of which `y` has none.  Returns by
   how much redundant rows are inconsistent.  `shared`: whether the motion depends on how redundant contacts share the load. */
FSM_LOCAL double fsm_solve_candidate(struct fsm_arena *arena, const struct fsm_contact_problem *problem,
                                     fsm_indices choices, fsm_vector y, fsm_vector v, fsm_matrix *basis, bool *shared)
{
    fsm_mark top = fsm_arena_mark(arena);
    fsm_indices sought = fsm_indices_first(fsm_arena_indices(arena, choices.n), 0);
    for (int64_t k = 0; k < choices.n; k++) {
        if (seeks_direction(problem, choices, k)) {
            sought.at[sought.n++] = k;
            AT(problem->slip_direction, k, 0) = 0.0;
            AT(problem->slip_direction, k, 1) = 0.0;
        }
    }
    if (sought.n > 0) {
        find_slip_directions(arena, problem, choices, sought, y, v);
    }
    fsm_arena_release(arena, top);
    return solve_with_directions(arena, problem, choices, y, v, basis, shared);
}
