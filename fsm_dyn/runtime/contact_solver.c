/* The decision of one instant: connected sets of contacts, each by enumeration or by complementarity. */

#include "contacts.h"

#define FSM_ENUMERATED 6 // contacts that feel each other, up to which all combinations are tried

static int64_t decide_together(struct fsm_arena *arena, const struct fsm_contact_problem *m, double tolerance,
                               fsm_indices best, fsm_vector forces, fsm_vector answers, fsm_indices who, fsm_vector log,
                               int64_t logged, struct fsm_enumeration_result *verdict_found);
static void narrow(struct fsm_arena *arena, const struct fsm_contact_problem *part, fsm_indices proposal,
                   double tolerance);

/* Find choices for all contacts; contacts that do not feel each other are decided apart.

   Parameters
   ----------
   arena, m, tolerance, best, forces, answers, who, log, logged
       As for enumerate_choices; forces and motions come back unscaled.

   Returns
   -------
   status : int
       `GOING`, `INCONSISTENT`, `SEVERAL` (`best` holds the one that changes least) or `NON_UNIQUE`.
   verdict : Verdict
       Of all sets together: combinations tried, the least number of consistent ones, the most motions. */
FSM_LOCAL int64_t fsm_solve_contact_problem(struct fsm_arena *arena, const struct fsm_contact_problem *m,
                                            double tolerance, fsm_indices best, fsm_vector forces, fsm_vector answers,
                                            fsm_indices who, fsm_vector log, int64_t logged,
                                            struct fsm_enumeration_result *verdict_found)
{
    int64_t count = m->normal.n;
    fsm_indices group = fsm_contact_islands(arena, m);
    bool together = 0 < count && count <= FSM_ENUMERATED;
    for (int64_t k = 0; k < count; k++) {
        together = together && group.at[k] == 0;
    }
    if (together) {
        return decide_together(arena, m, tolerance, best, forces, answers, who, log, logged, verdict_found);
    }
    int64_t status = FSM_CONTINUE;
    int64_t tried = 0;
    int64_t consistent = 0;
    int64_t motions = 0;
    int64_t undetermined = 0;
    double nearest = FSM_CANDIDATE_ENUMERATION_WORST;
    for (int64_t number = 0; number < count; number++) {
        int64_t size = 0;
        for (int64_t k = 0; k < count; k++) {
            size += group.at[k] == number;
        }
        if (size == 0) {
            continue;
        }
        fsm_mark top = fsm_arena_mark(arena);
        fsm_indices members = fsm_arena_indices(arena, size), rows = fsm_arena_indices(arena, 3 * size);
        fsm_indices part_who = fsm_arena_indices(arena, size);
        int64_t at = 0, n = 0;
        for (int64_t k = 0; k < count; k++) {
            if (group.at[k] == number) {
                members.at[at] = k;
                part_who.at[at] = who.at[k];
                at++;
                const int64_t each1[] = {m->normal.at[k], m->tangent.at[k],
                                         m->spatial.at[k] == 1 ? m->tangent.at[k] + 1 : -1};
                for (int64_t n1 = 0; n1 < 3; n1++) {
                    int64_t row = each1[n1];
                    if (row >= 0) {
                        rows.at[n] = row;
                        n++;
                    }
                }
            }
        }
        struct fsm_contact_problem part = fsm_subproblem(arena, m, members, fsm_indices_first(rows, n));
        fsm_indices part_best = fsm_arena_indices(arena, size);
        fsm_vector part_forces = fsm_arena_vector(arena, n);
        fsm_vector part_answers = fsm_arena_vector(arena, n);
        if (size > FSM_ENUMERATED) {
            narrow(arena, &part, part_best, tolerance);
        }
        struct fsm_enumeration_result verdict;
        int64_t part_status = decide_together(arena, &part, tolerance, part_best, part_forces, part_answers, part_who,
                                              log, logged + tried, &verdict);
        tried += verdict.tried;
        if (size > FSM_ENUMERATED && verdict.consistent == 0) {
            // once more, with what hardly slides sliding
            part = fsm_subproblem(arena, m, members, fsm_indices_first(rows, n));
            narrow(arena, &part, part_best, 0.0);
            part_status = decide_together(arena, &part, tolerance, part_best, part_forces, part_answers, part_who, log,
                                          logged + tried, &verdict);
            tried += verdict.tried;
        }
        consistent = consistent == 0 ? verdict.consistent : fsm_least(consistent, verdict.consistent);
        motions = fsm_most(motions, verdict.motions);
        undetermined = fsm_most(undetermined, verdict.undetermined);
        if (verdict.consistent == 0) {
            nearest = fsm_smaller(nearest, verdict.nearest);
            consistent = 0;
            status = part_status;
            break;
        }
        status = fsm_most(status, part_status);
        for (int64_t i = 0; i < size; i++) {
            best.at[members.at[i]] = part_best.at[i];
            AT(m->way, members.at[i], 0) = AT(part.way, i, 0);
            AT(m->way, members.at[i], 1) = AT(part.way, i, 1);
        }
        for (int64_t i = 0; i < n; i++) {
            forces.at[rows.at[i]] = part_forces.at[i];
            answers.at[rows.at[i]] = part_answers.at[i];
        }
        fsm_arena_release(arena, top);
    }
    *verdict_found = (struct fsm_enumeration_result){consistent, tried, motions, undetermined, nearest};
    return status;
}

/* As decide, of contacts that all feel each other. */
static int64_t decide_together(struct fsm_arena *arena, const struct fsm_contact_problem *m, double tolerance,
                               fsm_indices best, fsm_vector forces, fsm_vector answers, fsm_indices who, fsm_vector log,
                               int64_t logged, struct fsm_enumeration_result *verdict_found)
{
    struct fsm_enumeration_result verdict =
        fsm_enumerate_candidates(arena, m, tolerance, best, forces, answers, who, log, logged);
    if (verdict.consistent == 0 && verdict.tried > 0) {
        *verdict_found = verdict;
        return verdict.undetermined > 0 ? FSM_NON_UNIQUE : FSM_INCONSISTENT;
    }
    for (int64_t i = 0; i < forces.n; i++) {
        forces.at[i] *= m->unit.at[i];
        answers.at[i] /= m->unit.at[i];
    }
    *verdict_found = verdict;
    return verdict.motions > 1 ? FSM_NON_UNIQUE_STATE : FSM_CONTINUE;
}

/* Leave each contact only the choice that complementarity proposes, unless that is not allowed.

   One at rest whose slip would accelerate by no more than `tolerance` of the scale sticks. */
static void narrow(struct fsm_arena *arena, const struct fsm_contact_problem *part, fsm_indices proposal,
                   double tolerance)
{
    for (int64_t k = 0; k < part->normal.n; k++) {
        if (part->two_sided.at[k] == 1 || part->spatial.at[k] == 1) {
            return;
        }
        for (int64_t choice = FSM_CHOICE_PARTED_HOLD; choice < FSM_CHOICE_PARTED_BACKWARD + 1; choice++) {
            if (AT(part->allowed, k, choice) == 1) {
                return;
            }
        }
    }
    if (!fsm_propose(arena, part, proposal, tolerance)) {
        return;
    }
    for (int64_t k = 0; k < part->normal.n; k++) {
        if (AT(part->allowed, k, proposal.at[k]) == 1) {
            for (int64_t choice = 0; choice < FSM_CHOICE_COUNT; choice++) {
                AT(part->allowed, k, choice) = choice == proposal.at[k] ? 1 : 0;
            }
        }
    }
}
