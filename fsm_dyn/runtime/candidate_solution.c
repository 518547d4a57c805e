/* One combination of choices solved: its forces and motions, and slip directions in space not known beforehand.

   Such a direction is that of the motion it leads to.  The friction that would hold the contact gives the first guess,
   which is the answer where a limit has just been reached.  Going on from the friction at hand against the motion it
   leaves arrives at once where the tangent plane answers alike in all directions, and Newton's method on the angles
   elsewhere (docs/theory.md, "Friction in space"). */

#include "contacts.h"

#define FSM_CANDIDATE_SOLUTION_RANK   1e-11
#define FSM_ROUNDS                    12 // of going on and of Newton's method, together
#define FSM_CANDIDATE_SOLUTION_SWEEPS 6
#define FSM_CANDIDATE_SOLUTION_TURNED 1e-14 // rad: no more than rounding
#define FSM_NUDGE                     1e-7  // rad
#define FSM_FARTHEST                  0.5   // rad

static double solve_along(struct fsm_arena *arena, const struct fsm_contact_problem *m, fsm_indices choices,
                          fsm_vector y, fsm_vector v, fsm_matrix *out1);
static bool turns(const struct fsm_contact_problem *m, fsm_indices choices, int64_t k);
static void candidate_solution_find_slip_directions(struct fsm_arena *arena, const struct fsm_contact_problem *m,
                                                    fsm_indices choices, int64_t turning, fsm_vector y, fsm_vector v);
static void newton(struct fsm_arena *arena, const struct fsm_contact_problem *m, fsm_indices choices, fsm_indices who,
                   fsm_vector y, fsm_vector v);
static double fixed_point_step(const struct fsm_contact_problem *m, int64_t k, fsm_vector y, fsm_vector v);
static int64_t sort_rows(const struct fsm_contact_problem *m, fsm_indices choices, int64_t k, fsm_vector given,
                         fsm_vector share, fsm_indices leader, fsm_indices held, int64_t count);
static int64_t candidate_solution_hold(int64_t row, fsm_vector share, fsm_indices leader, fsm_indices held,
                                       int64_t count);

/* Solve for the forces `y` and motions `v` of one combination; slip directions found are left in `m.way`.

   Returns
   -------
   remainder : float
       How far the rows contradict each other.
   basis : (n, nullity)
       Forces that the equations leave open; `y` has none of them. */
FSM_LOCAL double fsm_solve_candidate(struct fsm_arena *arena, const struct fsm_contact_problem *m, fsm_indices choices,
                                     fsm_vector y, fsm_vector v, fsm_matrix *basis)
{
    int64_t turning = 0;
    for (int64_t k = 0; k < choices.n; k++) {
        if (turns(m, choices, k)) {
            turning++;
            AT(m->way, k, 0) = 0.0;
            AT(m->way, k, 1) = 0.0;
        }
    }
    fsm_mark top = fsm_arena_mark(arena);
    if (turning > 0) {
        candidate_solution_find_slip_directions(arena, m, choices, turning, y, v);
        fsm_arena_release(arena, top);
    }
    return solve_along(arena, m, choices, y, v, basis);
}

/* Whether a contact in space is to slide in a direction not known beforehand. */
static bool turns(const struct fsm_contact_problem *m, fsm_indices choices, int64_t k)
{
    return m->spatial.at[k] == 1 && m->slipping.at[k] == 0 && fsm_direction_of(choices.at[k]) != 0.0;
}

/* Find the slip directions of the `turning` contacts that have none given. */
static void candidate_solution_find_slip_directions(struct fsm_arena *arena, const struct fsm_contact_problem *m,
                                                    fsm_indices choices, int64_t turning, fsm_vector y, fsm_vector v)
{
    fsm_indices who = fsm_arena_indices(arena, turning);
    int64_t at = 0;
    for (int64_t k = 0; k < choices.n; k++) {
        if (turns(m, choices, k)) {
            who.at[at] = k;
            at++;
        }
    }
    fsm_mark top = fsm_arena_mark(arena);
    fsm_matrix unused;
    solve_along(arena, m, choices, y, v, &unused);
    for (int64_t n2 = 0; n2 < who.n; n2++) {
        int64_t k = who.at[n2];
        int64_t b = m->tangent.at[k];
        double size = hypot(y.at[b], y.at[b + 1]);
        AT(m->way, k, 0) = size > 0.0 ? -y.at[b] / size : 1.0;
        AT(m->way, k, 1) = size > 0.0 ? -y.at[b + 1] / size : 0.0;
    }
    fsm_arena_release(arena, top);
    double turned = 0.0;
    for (int64_t pass3 = 0; pass3 < FSM_ROUNDS; pass3++) {
        for (int64_t pass4 = 0; pass4 < FSM_CANDIDATE_SOLUTION_SWEEPS; pass4++) {
            turned = 0.0;
            for (int64_t n5 = 0; n5 < who.n; n5++) {
                int64_t k = who.at[n5];
                fsm_matrix unused6;
                solve_along(arena, m, choices, y, v, &unused6);
                fsm_arena_release(arena, top);
                turned = fsm_larger(turned, fixed_point_step(m, k, y, v));
            }
            if (turned <= FSM_CANDIDATE_SOLUTION_TURNED) {
                return;
            }
        }
        newton(arena, m, choices, who, y, v);
        fsm_arena_release(arena, top);
    }
}

/* Turn the slip direction of a contact to where its motion would go; returns how far it turned. */
static double fixed_point_step(const struct fsm_contact_problem *m, int64_t k, fsm_vector y, fsm_vector v)
{
    int64_t a = m->normal.at[k], b = m->tangent.at[k];
    double bound = m->kinetic_friction.at[k] * (a >= 0 ? fsm_larger(y.at[a], 0.0) : 1.0);
    double stiff = bound * (fsm_larger(AT(m->K, b, b), AT(m->K, b + 1, b + 1)) + fabs(AT(m->K, b, b + 1)));
    double first = v.at[b] + stiff * AT(m->way, k, 0), second = v.at[b + 1] + stiff * AT(m->way, k, 1);
    double length = hypot(first, second);
    if (length == 0.0) {
        return 0.0;
    }
    first = first / length;
    second = second / length;
    double turned = hypot(first - AT(m->way, k, 0), second - AT(m->way, k, 1));
    AT(m->way, k, 0) = first;
    AT(m->way, k, 1) = second;
    return turned;
}

/* Motion of a contact beside its slip direction. */
static double candidate_solution_beside(const struct fsm_contact_problem *m, int64_t k, fsm_vector v)
{
    int64_t b = m->tangent.at[k];
    return AT(m->way, k, 0) * v.at[b + 1] - AT(m->way, k, 1) * v.at[b];
}

/* Rotate the slip direction of a contact. */
static void rotate(const struct fsm_contact_problem *m, int64_t k, double angle)
{
    double c = cos(angle), s = sin(angle);
    double next1 = c * AT(m->way, k, 0) - s * AT(m->way, k, 1);
    double next2 = s * AT(m->way, k, 0) + c * AT(m->way, k, 1);
    AT(m->way, k, 0) = next1;
    AT(m->way, k, 1) = next2;
}

/* One step of Newton's method on the angles, towards no motion beside the directions; undone if it leads away. */
static void newton(struct fsm_arena *arena, const struct fsm_contact_problem *m, fsm_indices choices, fsm_indices who,
                   fsm_vector y, fsm_vector v)
{
    int64_t count = who.n;
    fsm_matrix slopes = fsm_arena_matrix(arena, count, count);
    fsm_vector right = fsm_arena_vector(arena, count);
    fsm_vector step = fsm_arena_vector(arena, count);
    fsm_indices rows = fsm_arena_indices(arena, count);
    fsm_indices columns = fsm_arena_indices(arena, count);
    fsm_vector scratch = fsm_arena_vector(arena, count);
    fsm_mark top = fsm_arena_mark(arena);
    fsm_matrix unused;
    solve_along(arena, m, choices, y, v, &unused);
    fsm_arena_release(arena, top);
    double before = 0.0, after = 0.0;
    for (int64_t i = 0; i < count; i++) {
        right.at[i] = -candidate_solution_beside(m, who.at[i], v);
        before = fsm_larger(before, fabs(right.at[i]));
    }
    for (int64_t j = 0; j < count; j++) {
        rotate(m, who.at[j], FSM_NUDGE);
        fsm_matrix unused2;
        solve_along(arena, m, choices, y, v, &unused2);
        fsm_arena_release(arena, top);
        for (int64_t i = 0; i < count; i++) {
            AT(slopes, i, j) = (candidate_solution_beside(m, who.at[i], v) + right.at[i]) / FSM_NUDGE;
        }
        rotate(m, who.at[j], -FSM_NUDGE);
    }
    int64_t rank = fsm_factor(slopes, rows, columns, FSM_CANDIDATE_SOLUTION_RANK);
    fsm_solve(slopes, rows, columns, rank, right, scratch, step);
    for (int64_t i = 0; i < count; i++) {
        step.at[i] = fsm_smaller(fsm_larger(step.at[i], -FSM_FARTHEST), FSM_FARTHEST);
        rotate(m, who.at[i], step.at[i]);
    }
    fsm_matrix unused3;
    solve_along(arena, m, choices, y, v, &unused3);
    for (int64_t i = 0; i < count; i++) {
        int64_t b = m->tangent.at[who.at[i]];
        bool against = AT(m->way, who.at[i], 0) * v.at[b] + AT(m->way, who.at[i], 1) * v.at[b + 1] < 0.0;
        after = fsm_larger(after, against ? 2.0 * before : fabs(candidate_solution_beside(m, who.at[i], v)));
    }
    if (!(after < before)) {
        for (int64_t i = 0; i < count; i++) {
            rotate(m, who.at[i], -step.at[i]);
        }
    }
}

/* Solve one combination with slip directions as they are; what has none yet is held.

   The unknowns are the forces of the rows that are held: an open contact has a force that is given, and the friction
   of one that slides follows from its normal force. */
static double solve_along(struct fsm_arena *arena, const struct fsm_contact_problem *m, fsm_indices choices,
                          fsm_vector y, fsm_vector v, fsm_matrix *out1)
{
    int64_t n = m->K.n;
    fsm_vector given = fsm_arena_vector(arena, n);
    fsm_vector share = fsm_arena_vector(arena, n);
    fsm_indices leader = fsm_arena_indices(arena, n);
    fsm_indices held = fsm_arena_indices(arena, n);
    int64_t count = 0;
    for (int64_t k = 0; k < choices.n; k++) {
        count = sort_rows(m, choices, k, given, share, leader, held, count);
    }
    fsm_indices place = fsm_arena_indices(arena, n);
    for (int64_t i = 0; i < count; i++) {
        place.at[held.at[i]] = i;
    }
    fsm_matrix system = fsm_arena_matrix(arena, count, count);
    fsm_vector right = fsm_arena_vector(arena, count);
    for (int64_t i = 0; i < count; i++) {
        int64_t row = held.at[i];
        right.at[i] = m->target.at[row] - m->base.at[row];
        for (int64_t j = 0; j < n; j++) {
            if (leader.at[j] >= 0) {
                AT(system, i, place.at[leader.at[j]]) += share.at[j] * AT(m->K, row, j);
            }
            right.at[i] -= AT(m->K, row, j) * given.at[j];
        }
    }
    fsm_indices rows = fsm_arena_indices(arena, count);
    fsm_indices columns = fsm_arena_indices(arena, count);
    fsm_vector scratch = fsm_arena_vector(arena, count);
    int64_t rank = fsm_factor(system, rows, columns, FSM_CANDIDATE_SOLUTION_RANK);
    fsm_vector forces = fsm_arena_vector(arena, count);
    double remainder = fsm_solve(system, rows, columns, rank, right, scratch, forces);
    fsm_matrix few = fsm_null_space(arena, system, rows, columns, rank);
    fsm_matrix basis = fsm_arena_matrix(arena, n, count - rank);
    for (int64_t j = 0; j < n; j++) {
        y.at[j] = given.at[j];
        if (leader.at[j] >= 0) {
            y.at[j] += share.at[j] * forces.at[place.at[leader.at[j]]];
            for (int64_t a = 0; a < count - rank; a++) {
                AT(basis, j, a) = share.at[j] * AT(few, place.at[leader.at[j]], a);
            }
        }
    }
    if (rank < count) {
        fsm_minimum_norm(arena, y, basis, m->unit);
    }
    for (int64_t i = 0; i < n; i++) {
        v.at[i] = m->base.at[i];
        for (int64_t j = 0; j < n; j++) {
            v.at[i] += AT(m->K, i, j) * y.at[j];
        }
    }
    *out1 = basis;
    return remainder;
}

/* Say what the forces of a contact are: `y[j] = given[j] + share[j] y[leader[j]]`, with leader -1 for none.

   A row that is held leads itself; those are appended to `held`.  Returns how many stand there. */
static int64_t sort_rows(const struct fsm_contact_problem *m, fsm_indices choices, int64_t k, fsm_vector given,
                         fsm_vector share, fsm_indices leader, fsm_indices held, int64_t count)
{
    int64_t choice = choices.at[k], a = m->normal.at[k], b = m->tangent.at[k];
    if (turns(m, choices, k) && AT(m->way, k, 0) == 0.0 && AT(m->way, k, 1) == 0.0) {
        choice = fsm_meeting_is_open(choice) ? FSM_CHOICE_PARTED_HOLD : FSM_CHOICE_HOLD;
    }
    if (a >= 0 && fsm_meeting_is_open(choice)) {
        given.at[a] = m->floor.at[a];
        leader.at[a] = -1;
    } else if (a >= 0) {
        count = candidate_solution_hold(a, share, leader, held, count);
    }
    if (b < 0) {
        return count;
    }
    int64_t across = m->spatial.at[k];
    if (choice == FSM_CHOICE_HOLD || choice == FSM_CHOICE_PARTED_HOLD) {
        for (int64_t r = b; r < b + 1 + across; r++) {
            count = candidate_solution_hold(r, share, leader, held, count);
        }
        return count;
    }
    double along = fsm_direction_of(choice);
    for (int64_t r = 0; r < 1 + across; r++) {
        double friction = 0.0;
        if (along != 0.0) {
            friction = -m->kinetic_friction.at[k] *
                       (across == 1 ? AT(m->way, k, r) : along * (a >= 0 ? fsm_side_of(choice) : 1.0));
        }
        if (a < 0) {
            given.at[b + r] = friction;
            leader.at[b + r] = -1;
        } else if (leader.at[a] < 0) {
            given.at[b + r] = friction * given.at[a];
            leader.at[b + r] = -1;
        } else {
            share.at[b + r] = friction;
            leader.at[b + r] = a;
        }
    }
    return count;
}

/* Append a row to those that are held; return how many these are. */
static int64_t candidate_solution_hold(int64_t row, fsm_vector share, fsm_indices leader, fsm_indices held,
                                       int64_t count)
{
    share.at[row] = 1.0;
    leader.at[row] = row;
    held.at[count] = row;
    return count + 1;
}
