/* Candidates of a contact problem: solved, shared by springs, judged by the contact laws. */

#include "elementary.h"
#include "contacts.h"

/* -- Solution of one candidate: forces, motions, and spatial slip directions that are unknown in advance.

   Such a direction is that of the motion it leads to.  The friction that would hold the contact gives the first
   estimate, which is the solution where the friction limit has just been reached.  A fixed-point iteration on the
   direction converges at once where the Delassus matrix is isotropic in the tangent plane, and Newton's method on the
   angles elsewhere (docs/theory.md, "Friction in space"). */

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

/* -- Shares of redundant contacts on which the motion depends (docs/theory.md, "Shares that the motion depends on").

   Where contacts are redundant and slide apart from each other, as the corners of a brick that turns on a table, forces
   that the rows leave open change the friction and so the motion.  The shares are then those of equal springs of any
   stiffness: the forces of the rows held are `A ξ` for some displacement ξ, which makes them a function of the state.  In
   terms of `K = A M⁻¹ Aᵀ` they have no part in its null space. */

#define FSM_SHARE_RANK    1e-11 // rounding: a pivot below this fraction of the first is zero
#define FSM_CHANGES       1e-8  // an indeterminate force that moves its contacts by more than this changes the motion
#define FSM_IMPLIED_ROW   1e-8  // part of a row's response that is not that of the rows held, below which they imply it

/* Whether forces that the equations leave open, `basis` (n, k), change the motion. */
FSM_LOCAL bool fsm_affects_motion(const struct fsm_contact_problem *problem, fsm_matrix basis)
{
    int64_t n = problem->K.n;
    for (int64_t a = 0; a < basis.m; a++) {
        double largest = 0.0, work = 0.0;
        for (int64_t i = 0; i < n; i++) {
            largest = fsm_larger(largest, fabs(AT(basis, i, a)));
            for (int64_t j = 0; j < n; j++) {
                work += AT(basis, i, a) * AT(problem->K, i, j) * AT(basis, j, a);
            }
        }
        if (work > FSM_CHANGES * largest * largest) {
            return true;
        }
    }
    return false;
}

/* Return the response of the rows `held` (count,) to forces along them. */
static fsm_matrix response_of(struct fsm_arena *arena, const struct fsm_contact_problem *problem, fsm_indices held)
{
    fsm_matrix response = fsm_arena_matrix(arena, held.n, held.n);
    for (int64_t i = 0; i < held.n; i++) {
        for (int64_t j = 0; j < held.n; j++) {
            AT(response, i, j) = AT(problem->K, held.at[i], held.at[j]);
        }
    }
    return response;
}

/* Whether contacts that slide in space, in directions that change with the motion, are among redundant ones.

   `basis` (n, k): forces that the equations leave open. */
static bool may_turn(const struct fsm_contact_problem *problem, fsm_indices choices, fsm_matrix basis)
{
    for (int64_t k = 0; k < choices.n; k++) {
        int64_t a = problem->normal.at[k], b = problem->tangent.at[k];
        const double *direction = &AT(problem->slip_direction, k, 0);
        bool slides = problem->spatial.at[k] && a >= 0 && fsm_direction_of(choices.at[k]) != 0.0 &&
                      problem->kinetic_friction.at[k] > 0.0 && (direction[0] != 0.0 || direction[1] != 0.0);
        for (int64_t j = 0; slides && j < basis.m; j++) {
            if (AT(basis, a, j) != 0.0 && (AT(basis, b, j) != 0.0 || AT(basis, b + 1, j) != 0.0)) {
                return true;
            }
        }
    }
    return false;
}

/* Share out the forces `y` (n,) as equal springs would, where the motion depends on it; returns whether it does.

   `held` (count,): the rows held; `basis` (n, k): forces that the equations leave open. */
FSM_LOCAL bool fsm_share_forces(struct fsm_arena *arena, const struct fsm_contact_problem *problem, fsm_indices choices,
                                fsm_indices held, fsm_matrix basis, fsm_vector y)
{
    if (!may_turn(problem, choices, basis) && !fsm_affects_motion(problem, basis)) {
        return false;
    }
    struct fsm_lu lu = fsm_factor(arena, response_of(arena, problem, held), FSM_SHARE_RANK);
    fsm_matrix null_space = fsm_null_space(arena, &lu);
    int64_t k = basis.m;
    if (null_space.m != k) {
        return false;
    }
    fsm_matrix products = fsm_arena_matrix(arena, k, k);
    fsm_vector right = fsm_arena_vector(arena, k), shift = fsm_arena_vector(arena, k);
    for (int64_t a = 0; a < k; a++) {
        for (int64_t i = 0; i < held.n; i++) {
            int64_t row = held.at[i];
            double weight = AT(null_space, i, a) * fsm_square(problem->unit.at[row]);
            right.at[a] -= weight * y.at[row];
            for (int64_t b = 0; b < k; b++) {
                AT(products, a, b) += weight * AT(basis, row, b);
            }
        }
    }
    lu = fsm_factor(arena, products, FSM_SHARE_RANK);
    if (lu.rank < k) {
        return false;
    }
    fsm_solve(&lu, right, shift);
    for (int64_t i = 0; i < y.n; i++) {
        for (int64_t a = 0; a < k; a++) {
            y.at[i] += AT(basis, i, a) * shift.at[a];
        }
    }
    return true;
}

/* Return what an open contact with the normal row `row` would carry as one more of equal springs, 0 where it would move.

   `y` (n,): forces shared out over the rows `held`. */
static double share_of(struct fsm_arena *arena, const struct fsm_contact_problem *problem, fsm_indices held,
                       const struct fsm_lu *lu, fsm_vector y, int64_t row)
{
    fsm_vector right = fsm_arena_vector(arena, held.n), parts = fsm_arena_vector(arena, held.n);
    for (int64_t i = 0; i < held.n; i++) {
        right.at[i] = AT(problem->K, row, held.at[i]);
    }
    fsm_solve(lu, right, parts);
    double left = AT(problem->K, row, row), force = 0.0;
    for (int64_t i = 0; i < held.n; i++) {
        int64_t j = held.at[i];
        left -= parts.at[i] * AT(problem->K, row, j);
        force += parts.at[i] * fsm_square(problem->unit.at[j]) * y.at[j];
    }
    bool implied = fabs(left) <= FSM_IMPLIED_ROW * AT(problem->K, row, row);
    return implied ? force / fsm_square(problem->unit.at[row]) : 0.0;
}

/* Return the largest share that a contact left open would carry of the forces `y` (n,), and which; see share_of. */
FSM_LOCAL double fsm_share_left_out(struct fsm_arena *arena, const struct fsm_contact_problem *problem,
                                    fsm_indices choices, fsm_vector y, int64_t *contact)
{
    fsm_mark top = fsm_arena_mark(arena);
    fsm_indices held = fsm_held_rows(arena, problem, choices);
    struct fsm_lu lu = fsm_factor(arena, response_of(arena, problem, held), FSM_SHARE_RANK);
    double largest = 0.0;
    for (int64_t k = 0; k < choices.n; k++) {
        int64_t row = problem->normal.at[k];
        if (row < 0 || !fsm_is_open(choices.at[k]) || problem->bilateral.at[k]) {
            continue;
        }
        double share = share_of(arena, problem, held, &lu, y, row);
        if (share > largest) {
            largest = share;
            *contact = k;
        }
    }
    fsm_arena_release(arena, top);
    return largest;
}

/* -- Evaluation of a candidate: violation of the contact laws (docs/theory.md, "Resolution").

   Where contacts are redundant, satisfying the laws is a question of feasibility (feasibility.c). */

#define FSM_BRACED 1e-6 // part of normal forces that add up to one, by which the laws of a bracing may be missed

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

/* Laws on forces: `g y >= h`, or in space the cone `|(g y - h)₁₂| <= (g y - h)₀` of three rows, the first marked. */
struct force_laws {
    fsm_matrix g;     // (m, n)
    fsm_vector h;     // (m,)
    fsm_indices cone; // (m,): 1 for the first row of a cone
};

#define FSM_LAW_ROWS 4 // of a contact, at most

static struct force_laws begin_laws(struct fsm_arena *arena, const struct fsm_contact_problem *problem, int64_t more)
{
    int64_t most = FSM_LAW_ROWS * problem->normal.n + more;
    return (struct force_laws){.g = fsm_matrix_first(fsm_arena_matrix(arena, most, problem->K.n), 0),
                               .h = fsm_arena_vector(arena, most),
                               .cone = fsm_arena_indices(arena, most)};
}

/* Append the laws of contact `k`: no tension, and the static friction limit where it sticks.

   The normal force of a bilateral contact has the sign that it has in `y`. */
static void append_laws(const struct fsm_contact_problem *problem, int64_t choice, int64_t k, fsm_vector y,
                        struct force_laws *laws)
{
    int64_t a = problem->normal.at[k], b = problem->tangent.at[k];
    bool one_sided = !problem->bilateral.at[k] || fsm_direction_of(choice) != 0.0;
    if (a >= 0 && !fsm_is_open(choice) && one_sided) {
        AT(laws->g, laws->g.n, a) = fsm_side_of(choice);
        laws->h.at[laws->g.n++] = problem->floor.at[a];
    }
    if (b < 0 || !sticks(choice) || problem->infinite.at[k]) {
        return;
    }
    double load = a >= 0 && problem->bilateral.at[k] && y.at[a] < 0.0 ? -1.0 : 1.0;
    bool spatial = problem->spatial.at[k] != 0;
    int64_t bounds = spatial ? 1 : 2;
    laws->cone.at[laws->g.n] = spatial;
    for (int64_t i = 0; i < bounds; i++) {
        if (a >= 0) {
            AT(laws->g, laws->g.n, a) = load * problem->static_friction.at[k];
        } else {
            laws->h.at[laws->g.n] = -problem->static_friction.at[k];
        }
        if (!spatial) {
            AT(laws->g, laws->g.n, b) = i == 0 ? -1.0 : 1.0;
        }
        laws->g.n++;
    }
    for (int64_t i = 0; spatial && i < 2; i++) {
        AT(laws->g, laws->g.n++, b + i) = 1.0;
    }
}

/* Write how the laws change along `basis` (n, k), (m, k), and their `slack` (m,) at the forces `y` (n,). */
static fsm_matrix laws_along(struct fsm_arena *arena, const struct force_laws *laws, fsm_matrix basis, fsm_vector y,
                             fsm_vector *slack)
{
    fsm_matrix along = fsm_arena_matrix(arena, laws->g.n, basis.m);
    *slack = fsm_arena_vector(arena, laws->g.n);
    for (int64_t i = 0; i < laws->g.n; i++) {
        slack->at[i] = -laws->h.at[i];
        for (int64_t j = 0; j < y.n; j++) {
            double entry = AT(laws->g, i, j);
            slack->at[i] += entry * y.at[j];
            for (int64_t a = 0; entry != 0.0 && a < basis.m; a++) {
                AT(along, i, a) += entry * AT(basis, j, a);
            }
        }
    }
    return along;
}

/* Add to `y` a combination of indeterminate forces with which it satisfies the laws by the largest margin. */
static void choose_forces(struct fsm_arena *arena, const struct fsm_contact_problem *problem, fsm_indices choices,
                          fsm_matrix basis, double scale, fsm_vector y)
{
    struct force_laws laws = begin_laws(arena, problem, 0);
    for (int64_t k = 0; k < choices.n; k++) {
        append_laws(problem, choices.at[k], k, y, &laws);
    }
    fsm_vector slack, shares;
    fsm_matrix along = laws_along(arena, &laws, basis, y, &slack);
    bool violated = false;
    for (int64_t i = 0; i < laws.g.n; i += laws.cone.at[i] ? 3 : 1) {
        double friction = laws.cone.at[i] ? fsm_hypot(slack.at[i + 1], slack.at[i + 2]) : 0.0;
        violated = violated || slack.at[i] < friction;
    }
    if (!violated) {
        return;
    }
    fsm_widest_margin(arena, along, slack, laws.cone, scale, &shares);
    for (int64_t j = 0; j < y.n; j++) {
        for (int64_t a = 0; a < basis.m; a++) {
            y.at[j] += AT(basis, j, a) * shares.at[a];
        }
    }
}

/* Write the laws on a bracing of the contacts, and in the last row that their normal forces add up to one. */
static struct force_laws bracing_laws(struct fsm_arena *arena, const struct fsm_contact_problem *problem,
                                      fsm_indices choices, fsm_vector y)
{
    struct force_laws laws = begin_laws(arena, problem, 1);
    fsm_vector sum = fsm_arena_vector(arena, problem->K.n);
    for (int64_t k = 0; k < choices.n; k++) {
        int64_t a = problem->normal.at[k];
        if (a >= 0 && !fsm_is_open(choices.at[k]) && !problem->bilateral.at[k]) {
            append_laws(problem, choices.at[k], k, y, &laws);
            sum.at[a] = 1.0;
        }
    }
    fsm_vector none = laws.h;
    for (int64_t i = 0; i < laws.g.n; i++) { // of a bracing at any size, forces that act anyway are no part
        none.at[i] = 0.0;
    }
    none.at[laws.g.n] = 1.0; // their scale is arbitrary
    fsm_put(fsm_row(laws.g, laws.g.n), sum);
    laws.g.n++;
    return laws;
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
    for (int64_t i = 0; i < forces.n; i++) {
        forces.at[i] = 0.0;
    }
    struct force_laws laws = bracing_laws(arena, problem, sticking, forces);
    fsm_vector slack, shares;
    fsm_matrix along = laws_along(arena, &laws, basis, forces, &slack);
    return fsm_widest_margin(arena, along, slack, laws.cone, 1.0, &shares) > -FSM_BRACED;
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
    if (shared && problem->shares_open) {
        return (struct fsm_candidate_result){1.0, FSM_LAW_MOTION_INDETERMINATE, 0, 0.0, 0.0, false, shared};
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
