/* Contacts that meet in one instant: the problem that an impact and the choice of the next mode have in common.

   Contact rows answer forces `y` with `v = base + K y` (K: the inverse mass seen by the rows, bilateral rows
   already held).  Every contact makes one *choice*, and the choices turn into as many linear equations as there are
   rows.  Asked of speeds the answer is an impact (docs/theory.md, "Impacts"), asked of accelerations it is the next
   mode ("Resolution").

   Rows are scaled so that K has a unit diagonal: rank and tolerances then do not depend on units, and forces, impulses
   and motions of all rows compare with one scale. */

#include "contacts.h"

#define FSM_CHOICE_PARTED_FORWARD 5

/* Slip direction of a choice, 0 where it does not slide. */
FSM_LOCAL double fsm_direction_of(int64_t choice)
{
    if (choice == FSM_CHOICE_FORWARD || choice == FSM_CHOICE_PARTED_FORWARD || choice == FSM_CHOICE_UNDER_FORWARD) {
        return 1.0;
    }
    if (choice == FSM_CHOICE_BACKWARD || choice == FSM_CHOICE_PARTED_BACKWARD || choice == FSM_CHOICE_UNDER_BACKWARD) {
        return -1.0;
    }
    return 0.0;
}

/* Whether the normal row is not held. */
FSM_LOCAL bool fsm_meeting_is_open(int64_t choice)
{
    return choice == FSM_CHOICE_OPEN || (choice >= FSM_CHOICE_PARTED_HOLD && choice <= FSM_CHOICE_PARTED_BACKWARD);
}

/* Sign of the normal force that a sliding choice assumes. */
FSM_LOCAL double fsm_side_of(int64_t choice)
{
    return choice >= FSM_CHOICE_UNDER_FORWARD ? -1.0 : 1.0;
}

/* A meeting of so many contacts, three rows each at most, no rows given yet. */
FSM_LOCAL struct fsm_contact_problem fsm_allocate_problem(struct fsm_arena *arena, int64_t count)
{
    int64_t n = 3 * count;
    fsm_vector none = fsm_arena_vector(arena, 0);
    struct fsm_contact_problem m =
        (struct fsm_contact_problem){.normal = fsm_arena_indices(arena, count),
                                     .tangent = fsm_arena_indices(arena, count),
                                     .K = fsm_arena_matrix(arena, 0, 0),
                                     .base = none,
                                     .target = fsm_arena_vector(arena, n),
                                     .floor = fsm_arena_vector(arena, n),
                                     .static_friction = fsm_arena_vector(arena, count),
                                     .kinetic_friction = fsm_arena_vector(arena, count),
                                     .infinite = fsm_arena_indices(arena, count),
                                     .two_sided = fsm_arena_indices(arena, count),
                                     .slipping = fsm_arena_indices(arena, count),
                                     .allowed = fsm_arena_index_table(arena, count, FSM_CHOICE_COUNT),
                                     .banned = fsm_arena_indices(arena, count),
                                     .cost = fsm_arena_matrix(arena, count, FSM_CHOICE_COUNT),
                                     .unit = none,
                                     .scale = none,
                                     .spatial = fsm_arena_indices(arena, count),
                                     .way = fsm_arena_matrix(arena, count, 2),
                                     .slack = fsm_arena_matrix(arena, count, 2)};
    for (int64_t k = 0; k < count; k++) {
        m.normal.at[k] = -1;
        m.tangent.at[k] = -1;
        m.banned.at[k] = -1;
    }
    return m;
}

/* Fill in the response of the rows, scaled.

   Parameters
   ----------
   m : Meeting
       Everything but `K base unit scale`, unscaled.  What concerns contacts is shared with the result (and its
       coefficients of friction are scaled), what concerns rows is not: see aim.
   K : (n, n), base : (n,)
       As computed.
   free : (n,)
       Response of each row to itself with no other row held, to judge what is rounding.
   scale : float
       Magnitude of the motion in the metric of kinetic energy, square root of (J) or (J/s²). */
FSM_LOCAL struct fsm_contact_problem fsm_scale_problem(struct fsm_arena *arena, const struct fsm_contact_problem *m,
                                                       fsm_matrix K, fsm_vector base, fsm_vector unheld, double scale)
{
    int64_t n = base.n;
    fsm_vector unit = fsm_arena_vector(arena, n);
    for (int64_t i = 0; i < n; i++) {
        unit.at[i] = 1.0;
        if (AT(K, i, i) > FSM_HIDDEN * unheld.at[i]) {
            unit.at[i] = 1.0 / sqrt(AT(K, i, i));
        } else if (unheld.at[i] > 0.0) {
            unit.at[i] = -1.0 / sqrt(unheld.at[i]);
        }
    }
    for (int64_t k = 0; k < m->tangent.n; k++) {
        if (m->spatial.at[k] == 1) { // one unit for both, or the circle of friction were none
            int64_t b = m->tangent.at[k];
            double both = fsm_smaller(fabs(unit.at[b]), fabs(unit.at[b + 1]));
            if (unit.at[b] * unit.at[b + 1] < 0.0) {
                both = fsm_larger(unit.at[b], unit.at[b + 1]);
            }
            double next1 = fsm_sign(unit.at[b]) * both;
            double next2 = fsm_sign(unit.at[b + 1]) * both;
            unit.at[b] = next1;
            unit.at[b + 1] = next2;
        }
    }
    fsm_matrix response = fsm_arena_matrix(arena, n, n);
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < n; j++) {
            if (unit.at[i] > 0.0 && unit.at[j] > 0.0) {
                AT(response, i, j) = AT(K, i, j) * unit.at[i] * unit.at[j];
            }
        }
    }
    for (int64_t i = 0; i < n; i++) {
        unit.at[i] = fabs(unit.at[i]);
    }
    for (int64_t k = 0; k < m->normal.n; k++) {
        if (m->tangent.at[k] >= 0) {
            double ratio = 1.0 / unit.at[m->tangent.at[k]];
            if (m->normal.at[k] >= 0) {
                ratio *= unit.at[m->normal.at[k]];
            }
            m->static_friction.at[k] *= ratio;
            m->kinetic_friction.at[k] *= ratio;
            AT(m->slack, k, 1) /= pow(unit.at[m->tangent.at[k]], (double)(m->spatial.at[k] == 1 ? 2 : 1));
        }
        if (m->normal.at[k] >= 0) {
            AT(m->slack, k, 0) /= unit.at[m->normal.at[k]];
        }
    }
    struct fsm_contact_problem problem = (struct fsm_contact_problem){.normal = m->normal,
                                                                      .tangent = m->tangent,
                                                                      .K = response,
                                                                      .base = fsm_arena_vector(arena, n),
                                                                      .target = fsm_arena_vector(arena, n),
                                                                      .floor = fsm_arena_vector(arena, n),
                                                                      .static_friction = m->static_friction,
                                                                      .kinetic_friction = m->kinetic_friction,
                                                                      .infinite = m->infinite,
                                                                      .two_sided = m->two_sided,
                                                                      .slipping = m->slipping,
                                                                      .allowed = m->allowed,
                                                                      .banned = m->banned,
                                                                      .cost = m->cost,
                                                                      .unit = unit,
                                                                      .scale = fsm_arena_vector(arena, 1),
                                                                      .spatial = m->spatial,
                                                                      .way = m->way,
                                                                      .slack = m->slack};
    problem.scale.at[0] = scale;
    struct fsm_contact_problem made = problem;
    fsm_retarget(&made, m, base);
    return made;
}

/* Give a scaled meeting other motions to begin with, and the targets and floors that `m` has now. */
FSM_LOCAL void fsm_retarget(const struct fsm_contact_problem *problem, const struct fsm_contact_problem *m,
                            fsm_vector base)
{
    for (int64_t i = 0; i < base.n; i++) {
        problem->base.at[i] = base.at[i] * problem->unit.at[i];
        problem->target.at[i] = m->target.at[i] * problem->unit.at[i];
        problem->floor.at[i] = m->floor.at[i] / problem->unit.at[i];
    }
}

/* Number the contacts so that contacts which feel each other, directly or through others, share a number. */
FSM_LOCAL fsm_indices fsm_contact_islands(struct fsm_arena *arena, const struct fsm_contact_problem *m)
{
    int64_t count = m->normal.n;
    fsm_indices group = fsm_arena_indices(arena, count);
    fsm_index_table rows = fsm_arena_index_table(arena, count, 3);
    for (int64_t k = 0; k < count; k++) {
        group.at[k] = k;
        AT(rows, k, 0) = m->normal.at[k];
        AT(rows, k, 1) = m->tangent.at[k];
        AT(rows, k, 2) = m->spatial.at[k] == 1 ? m->tangent.at[k] + 1 : -1;
    }
    for (int64_t k = 0; k < count; k++) {
        for (int64_t other = 0; other < k; other++) {
            bool coupled = false;
            fsm_indices list1 = fsm_index_row(rows, k);
            for (int64_t n1 = 0; n1 < list1.n; n1++) {
                int64_t a = list1.at[n1];
                fsm_indices list2 = fsm_index_row(rows, other);
                for (int64_t n2 = 0; n2 < list2.n; n2++) {
                    int64_t b = list2.at[n2];
                    if (a >= 0 && b >= 0 && fabs(AT(m->K, a, b)) > FSM_HIDDEN) {
                        coupled = true;
                    }
                }
            }
            if (coupled && group.at[k] != group.at[other]) {
                int64_t old = fsm_most(group.at[k], group.at[other]), new = fsm_least(group.at[k], group.at[other]);
                for (int64_t i = 0; i < count; i++) {
                    if (group.at[i] == old) {
                        group.at[i] = new;
                    }
                }
            }
        }
    }
    return group;
}

/* The meeting of some contacts only, with the rows (listed) that are theirs, those of each in one piece. */
FSM_LOCAL struct fsm_contact_problem fsm_subproblem(struct fsm_arena *arena, const struct fsm_contact_problem *m,
                                                    fsm_indices members, fsm_indices rows)
{
    int64_t count = members.n, n = rows.n;
    struct fsm_contact_problem part = fsm_allocate_problem(arena, count);
    fsm_matrix K = fsm_arena_matrix(arena, n, n);
    fsm_vector base = fsm_arena_vector(arena, n);
    fsm_vector unit = fsm_arena_vector(arena, n);
    fsm_vector target = fsm_arena_vector(arena, n), floor = fsm_arena_vector(arena, n);
    for (int64_t i = 0; i < n; i++) {
        base.at[i] = m->base.at[rows.at[i]];
        target.at[i] = m->target.at[rows.at[i]];
        floor.at[i] = m->floor.at[rows.at[i]];
        unit.at[i] = m->unit.at[rows.at[i]];
        for (int64_t j = 0; j < n; j++) {
            AT(K, i, j) = AT(m->K, rows.at[i], rows.at[j]);
        }
    }
    for (int64_t at = 0; at < count; at++) {
        int64_t k = members.at[at];
        for (int64_t i = 0; i < n; i++) {
            if (rows.at[i] == m->normal.at[k]) {
                part.normal.at[at] = i;
            }
            if (rows.at[i] == m->tangent.at[k]) {
                part.tangent.at[at] = i;
            }
        }
        part.static_friction.at[at] = m->static_friction.at[k];
        part.kinetic_friction.at[at] = m->kinetic_friction.at[k];
        part.infinite.at[at] = m->infinite.at[k];
        part.two_sided.at[at] = m->two_sided.at[k];
        part.slipping.at[at] = m->slipping.at[k];
        part.banned.at[at] = m->banned.at[k];
        part.spatial.at[at] = m->spatial.at[k];
        AT(part.way, at, 0) = AT(m->way, k, 0);
        AT(part.way, at, 1) = AT(m->way, k, 1);
        AT(part.slack, at, 0) = AT(m->slack, k, 0);
        AT(part.slack, at, 1) = AT(m->slack, k, 1);
        for (int64_t choice = 0; choice < FSM_CHOICE_COUNT; choice++) {
            AT(part.allowed, at, choice) = AT(m->allowed, k, choice);
            AT(part.cost, at, choice) = AT(m->cost, k, choice);
        }
    }
    struct fsm_contact_problem chosen = (struct fsm_contact_problem){.normal = part.normal,
                                                                     .tangent = part.tangent,
                                                                     .K = K,
                                                                     .base = base,
                                                                     .target = target,
                                                                     .floor = floor,
                                                                     .static_friction = part.static_friction,
                                                                     .kinetic_friction = part.kinetic_friction,
                                                                     .infinite = part.infinite,
                                                                     .two_sided = part.two_sided,
                                                                     .slipping = part.slipping,
                                                                     .allowed = part.allowed,
                                                                     .banned = part.banned,
                                                                     .cost = part.cost,
                                                                     .unit = unit,
                                                                     .scale = m->scale,
                                                                     .spatial = part.spatial,
                                                                     .way = part.way,
                                                                     .slack = part.slack};
    return chosen;
}
