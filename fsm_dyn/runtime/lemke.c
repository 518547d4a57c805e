/* Contacts by complementarity: for connected sets of contacts too large to try every combination.

   In the plane Coulomb's law is a linear complementarity problem `w = P z + q, w >= 0, z >= 0, w·z = 0` (Pfeiffer and
   Glocker 1996, ch. 5; Lemke 1965 for the method).  A contact whose slip direction is known has one pair
   `(λ_n, a_n)`; one at rest along its tangent has three,

       z = (λ_n, λ_t + μ λ_n, a_t⁻),   w = (a_n, a_t⁺, μ λ_n - λ_t),   a_t = a_t⁺ - a_t⁻ .

   Static friction above kinetic is no such problem: the static coefficient is tried, and the kinetic one for the
   contacts that slide nevertheless.  What is found is only a proposal: it is judged like any other combination. */

#include "contacts.h"

#define FSM_ZERO         1e-11
#define FSM_NEVER_SLIDES 1e6 // stands in for infinite friction

static int64_t leaving(fsm_matrix table, fsm_indices basic, int64_t entering, int64_t n);
static bool propose_with(struct fsm_arena *arena, const struct fsm_contact_problem *m, fsm_vector ratio,
                         fsm_indices best, double tolerance);

/* Find `z >= 0` with `w = P z + q >= 0` and `w·z = 0` by Lemke's method; False where it ends in a ray. */
FSM_LOCAL bool fsm_solve_lcp(struct fsm_arena *arena, fsm_matrix P, fsm_vector q, fsm_vector z)
{
    int64_t n = q.n;
    int64_t width = 2 * n + 2;
    for (int64_t i = 0; i < n; i++) {
        z.at[i] = 0.0;
    }
    int64_t lowest = 0;
    for (int64_t i = 0; i < n; i++) {
        if (q.at[i] < q.at[lowest]) {
            lowest = i;
        }
    }
    if (n == 0 || q.at[lowest] >= 0.0) {
        return true;
    }
    fsm_matrix table = fsm_arena_matrix(arena, n, width);
    fsm_indices basic = fsm_arena_indices(arena, n);
    for (int64_t i = 0; i < n; i++) {
        basic.at[i] = i;
        AT(table, i, i) = 1.0;
        for (int64_t j = 0; j < n; j++) {
            AT(table, i, n + j) = -AT(P, i, j);
        }
        AT(table, i, 2 * n) = -1.0;
        AT(table, i, 2 * n + 1) = q.at[i];
    }
    int64_t row = lowest, entering = 2 * n;
    for (int64_t pass = 0; pass < 60 * n + 60; pass++) {
        double pivot = AT(table, row, entering);
        for (int64_t j = 0; j < width; j++) {
            AT(table, row, j) /= pivot;
        }
        for (int64_t i = 0; i < n; i++) {
            double times = AT(table, i, entering);
            if (i != row && times != 0.0) {
                for (int64_t j = 0; j < width; j++) {
                    AT(table, i, j) -= times * AT(table, row, j);
                }
            }
        }
        int64_t left = basic.at[row];
        basic.at[row] = entering;
        if (left == 2 * n) {
            break;
        }
        entering = left < n ? left + n : left - n;
        row = leaving(table, basic, entering, n);
        if (row < 0) {
            return false;
        }
    }
    for (int64_t i = 0; i < n; i++) {
        if (basic.at[i] == 2 * n) {
            return false;
        }
        if (basic.at[i] >= n) {
            z.at[basic.at[i] - n] = AT(table, i, 2 * n + 1);
        }
    }
    return true;
}

/* The row of least ratio; ties are broken lexicographically (which prevents cycling), the artificial one first. */
static int64_t leaving(fsm_matrix table, fsm_indices basic, int64_t entering, int64_t n)
{
    int64_t best = -1;
    for (int64_t i = 0; i < n; i++) {
        if (AT(table, i, entering) <= FSM_ZERO) {
            continue;
        }
        if (best < 0) {
            best = i;
            continue;
        }
        for (int64_t column = -1; column < n; column++) {
            int64_t at = column < 0 ? 2 * n + 1 : column;
            double mine = AT(table, i, at) / AT(table, i, entering),
                   other = AT(table, best, at) / AT(table, best, entering);
            if (fabs(mine - other) > 1e-13 * (1.0 + fabs(other))) {
                if (mine < other) {
                    best = i;
                }
                break;
            }
            if (column < 0 && basic.at[i] == 2 * n) {
                best = i;
                break;
            }
            if (column < 0 && basic.at[best] == 2 * n) {
                break;
            }
        }
    }
    return best;
}

/* Find a combination of choices by complementarity; False where the method finds none.

   Where contacts are redundant the method ends in one of many vertices, and contacts of which one force is at its
   limit there count as open or sliding though nothing moves: those at rest whose motion is within `tolerance` of the
   scale stay closed and stick, in what is proposed. */
FSM_LOCAL bool fsm_propose(struct fsm_arena *arena, const struct fsm_contact_problem *m, fsm_indices best,
                           double tolerance)
{
    int64_t count = m->normal.n;
    fsm_vector ratio = fsm_arena_vector(arena, count);
    for (int64_t k = 0; k < count; k++) {
        ratio.at[k] = (AT(m->allowed, k, FSM_CHOICE_HOLD) == 1 && m->slipping.at[k] == 0) ? m->static_friction.at[k]
                                                                                          : m->kinetic_friction.at[k];
        if (m->infinite.at[k] == 1) {
            ratio.at[k] = FSM_NEVER_SLIDES;
        }
    }
    for (int64_t pass = 0; pass < count + 1; pass++) {
        fsm_mark top = fsm_arena_mark(arena);
        bool found = propose_with(arena, m, ratio, best, tolerance);
        fsm_arena_release(arena, top);
        if (!found) {
            return false;
        }
        bool again = false;
        for (int64_t k = 0; k < count; k++) {
            if (best.at[k] >= FSM_CHOICE_FORWARD && m->slipping.at[k] == 0 && ratio.at[k] > m->kinetic_friction.at[k] &&
                m->infinite.at[k] == 0) {
                ratio.at[k] = m->kinetic_friction.at[k];
                again = true;
            }
        }
        if (!again) {
            break;
        }
    }
    return true;
}

/* One complementarity problem, with these coefficients of friction, and the choices its solution means. */
static bool propose_with(struct fsm_arena *arena, const struct fsm_contact_problem *m, fsm_vector ratio,
                         fsm_indices best, double tolerance)
{
    int64_t count = m->normal.n, n = m->K.n;
    int64_t size = 0;
    fsm_indices first = fsm_arena_indices(arena, count);
    for (int64_t k = 0; k < count; k++) {
        first.at[k] = size;
        size += (m->normal.at[k] >= 0) + ((m->tangent.at[k] >= 0 && m->slipping.at[k] == 0) ? 2 : 0);
    }
    // y = forces_of z + given;  w = moves_of (K y + base - target) + own z + offset
    fsm_matrix forces_of = fsm_arena_matrix(arena, n, size);
    fsm_vector given = fsm_arena_vector(arena, n);
    int64_t a;
    int64_t b;
    int64_t at;
    for (int64_t k = 0; k < count; k++) {
        a = m->normal.at[k];
        b = m->tangent.at[k];
        at = first.at[k];
        int64_t at_slip = at + (a >= 0 ? 1 : 0);
        if (a >= 0) {
            AT(forces_of, a, at) = 1.0;
        }
        if (b < 0) {
            continue;
        }
        double along = 0.0;
        if (m->slipping.at[k] == 1) {
            along = AT(m->allowed, k, FSM_CHOICE_FORWARD) == 1 ? 1.0 : -1.0;
        } else {
            AT(forces_of, b, at_slip) = 1.0;
            along = 1.0;
        }
        if (a >= 0) {
            AT(forces_of, b, at) = -along * ratio.at[k];
        } else {
            given.at[b] = -along * ratio.at[k];
        }
    }
    fsm_matrix motion_of = fsm_arena_matrix(arena, n, size);
    fsm_vector motion = fsm_arena_vector(arena, n);
    for (int64_t i = 0; i < n; i++) {
        motion.at[i] = m->base.at[i] - m->target.at[i];
        for (int64_t j = 0; j < n; j++) {
            motion.at[i] += AT(m->K, i, j) * given.at[j];
            for (int64_t s = 0; s < size; s++) {
                AT(motion_of, i, s) += AT(m->K, i, j) * AT(forces_of, j, s);
            }
        }
    }
    fsm_matrix P = fsm_arena_matrix(arena, size, size);
    fsm_vector q = fsm_arena_vector(arena, size);
    fsm_vector z = fsm_arena_vector(arena, size);
    for (int64_t k = 0; k < count; k++) {
        a = m->normal.at[k];
        b = m->tangent.at[k];
        at = first.at[k];
        if (a >= 0) {
            fsm_put(fsm_row(P, at), fsm_row(motion_of, a));
            q.at[at] = motion.at[a];
            at++;
        }
        if (b < 0 || m->slipping.at[k] == 1) {
            continue;
        }
        fsm_put(fsm_row(P, at), fsm_row(motion_of, b));
        q.at[at] = motion.at[b];
        AT(P, at, at + 1) += 1.0;
        AT(P, at + 1, at) = -1.0;
        if (a >= 0) {
            AT(P, at + 1, at - 1) = 2.0 * ratio.at[k];
        } else {
            q.at[at + 1] = 2.0 * ratio.at[k];
        }
    }
    if (!fsm_solve_lcp(arena, P, q, z)) {
        return false;
    }
    fsm_vector w = fsm_arena_copy(arena, q);
    double scale = m->scale.at[0];
    for (int64_t i = 0; i < size; i++) {
        scale = fsm_larger(scale, fabs(q.at[i]));
    }
    for (int64_t i = 0; i < size; i++) {
        for (int64_t j = 0; j < size; j++) {
            w.at[i] += AT(P, i, j) * z.at[j];
        }
    }
    for (int64_t k = 0; k < count; k++) {
        a = m->normal.at[k];
        b = m->tangent.at[k];
        at = first.at[k];
        best.at[k] = FSM_CHOICE_HOLD;
        if (a >= 0) {
            bool stays = w.at[at] <= tolerance * scale && AT(m->cost, k, FSM_CHOICE_OPEN) > 0.0;
            if (z.at[at] <= w.at[at] && !stays) {
                best.at[k] = FSM_CHOICE_OPEN;
            }
            at++;
        }
        if (b < 0 || best.at[k] == FSM_CHOICE_OPEN) {
            continue;
        }
        if (m->slipping.at[k] == 1) {
            best.at[k] = AT(m->allowed, k, FSM_CHOICE_FORWARD) == 1 ? FSM_CHOICE_FORWARD : FSM_CHOICE_BACKWARD;
        } else if (w.at[at] > z.at[at] && w.at[at] > tolerance * scale) {
            best.at[k] = FSM_CHOICE_FORWARD;
        } else if (z.at[at + 1] > w.at[at + 1] && z.at[at + 1] > tolerance * scale) {
            best.at[k] = FSM_CHOICE_BACKWARD;
        }
    }
    return true;
}
