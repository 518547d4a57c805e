/* Shares of redundant contacts on which the motion depends (docs/theory.md, "Shares that the motion depends on").

   Where contacts are redundant and slide apart from each other, as the corners of a brick that turns on a table, forces
   that the rows leave open change the friction and so the motion.  The shares are then those of equal springs of any
   stiffness: the forces of the rows held are `A ξ` for some displacement ξ, which makes them a function of the state.  In
   terms of `K = A M⁻¹ Aᵀ` they have no part in its null space. */

#include "elementary.h"
#include "contacts.h"

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

/* Return what an open contact with the normal row `row` would bear as one more of equal springs, 0 where it would move.

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

/* Return the largest share that a contact left open would bear of the forces `y` (n,), and which; see share_of. */
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
