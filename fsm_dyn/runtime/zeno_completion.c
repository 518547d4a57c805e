/* The state that a train of impacts leads to, decided for all its contacts together (docs/theory.md, "Trains").

   Over the time `h` that a train still takes, its strokes add up: `M (u_end - u) = f h + AᵀΛ` with
   `0 ≤ Λ_n ⊥ v_n ≥ 0` and Coulomb's law between the sums, which is a step of Moreau's time stepping.  It tells which
   contacts the train leaves closed, and which of them stick; the impulses of the strokes alone would not, as every stroke
   of one contact may throw another off that the load has pressed back by the end.

   The forces' part belongs to the flow that follows.  What is left for the instant itself, `M (u⁺ - u) = AᵀΛ` with the
   rows of the contacts left closed brought to rest, takes impulses of either sign; with the forces' part none pulls. */

#include "contacts.h"

static void load(const struct fsm_tables *tables, const struct fsm_terms *terms, fsm_codes wanted, fsm_vector force);

/* Bring the contacts marked in `closed` to the end of their train; changes `u`, adds to `impulse`.

   Parameters
   ----------
   terms : Terms
       Evaluated at the last stroke.
   u : float64 array, shape (n_u,)
       Speeds before the stroke; on return those with which the flow after it begins.
   remaining : float
       How long the train goes on (s).

   Returns
   -------
   int
       `GOING`, or a failure: then the train does not end with these contacts closed, and `u` is as it was. */
FSM_LOCAL int64_t fsm_complete_zeno_sequence(struct fsm_arena *arena, const struct fsm_tables *tables,
                                             const struct fsm_terms *terms, fsm_vector u, fsm_codes wanted,
                                             fsm_indices closed, double remaining, fsm_vector impulse, fsm_vector log)
{
    int64_t n_u = u.n;
    fsm_indices held = fsm_bilateral_rows(arena, tables, wanted);
    struct fsm_bilateral_system bilateral = fsm_factor_bilateral(arena, terms, held, n_u);
    fsm_vector momentum = fsm_arena_vector(arena, n_u), force = fsm_arena_vector(arena, n_u);
    fsm_vector speed_target = fsm_arena_vector(arena, held.n), motion_target = fsm_arena_vector(arena, held.n);
    fsm_vector base_u = fsm_arena_vector(arena, n_u), base_motion = fsm_arena_vector(arena, n_u);
    fsm_vector base_reaction = fsm_arena_vector(arena, held.n), reaction = fsm_arena_vector(arena, held.n);
    double twice = 0.0;
    for (int64_t i = 0; i < n_u; i++) {
        for (int64_t j = 0; j < n_u; j++) {
            momentum.at[i] += AT(terms->M, i, j) * u.at[j];
        }
        twice += momentum.at[i] * u.at[i];
    }
    load(tables, terms, wanted, force);
    for (int64_t k = 0; k < held.n; k++) {
        speed_target.at[k] = -terms->b.at[held.at[k]];
        motion_target.at[k] = -terms->gamma.at[held.at[k]];
    }
    if (!fsm_solve_bilateral(&bilateral, momentum, speed_target, base_u, base_reaction,
                             fsm_rounding_of(terms, u, false))) {
        return FSM_SINGULAR;
    }
    if (!fsm_solve_bilateral(&bilateral, force, motion_target, base_motion, reaction,
                             fsm_rounding_of(terms, u, true))) {
        return FSM_SINGULAR;
    }
    fsm_indices which;
    fsm_indices who;
    struct fsm_contact_problem m =
        fsm_build_impact_problem(arena, tables, terms, u, closed, FSM_IMPACT_PLASTIC, &which, &who);
    int64_t n = which.n;
    fsm_matrix reactions;
    fsm_matrix K;
    fsm_matrix motions = fsm_delassus_response(arena, terms, &bilateral, which, n_u, &reactions, &K);
    fsm_vector unheld = fsm_free_response(arena, terms, which, n_u);
    double scale = sqrt(fsm_larger(twice, 0.0));
    fsm_vector now = fsm_arena_vector(arena, n), then = fsm_arena_vector(arena, n);
    for (int64_t r = 0; r < n; r++) {
        then.at[r] = fsm_row_speed(terms, which.at[r], base_u);
        now.at[r] = then.at[r];
        then.at[r] += remaining * terms->gamma.at[which.at[r]];
        for (int64_t i = 0; i < n_u; i++) {
            then.at[r] += remaining * AT(terms->A, which.at[r], i) * base_motion.at[i];
        }
    }
    fsm_indices best = fsm_arena_indices(arena, who.n);
    fsm_vector forces = fsm_arena_vector(arena, n);
    fsm_vector answers = fsm_arena_vector(arena, n);
    struct fsm_contact_problem problem = fsm_scale_problem(arena, &m, K, then, unheld, scale);
    struct fsm_enumeration_result unused;
    int64_t status =
        fsm_solve_contact_problem(arena, &problem, FSM_LAWS_KEPT, best, forces, answers, who, log, 0, &unused);
    if (status != FSM_CONTINUE && status != FSM_NON_UNIQUE_STATE) {
        return status;
    }
    fsm_retarget(&problem, &m, now);
    fsm_matrix unused2;
    double remainder = fsm_solve_candidate(arena, &problem, best, forces, answers, &unused2);
    if (remainder > FSM_LAWS_KEPT * fsm_reference_scale(&problem, forces)) {
        return FSM_INCONSISTENT;
    }
    for (int64_t at = 0; at < who.n; at++) {
        bool sinks = answers.at[m.normal.at[at]] / problem.unit.at[m.normal.at[at]] < -tables->tolerances->speed;
        if (best.at[at] == FSM_CHOICE_OPEN && sinks) {
            return FSM_INCONSISTENT; // it strikes, though the forces would have turned it back by the end
        }
    }
    for (int64_t r = 0; r < n; r++) {
        forces.at[r] *= problem.unit.at[r];
    }
    fsm_apply_impulses(which, held, base_u, base_reaction, motions, reactions, forces, u, impulse);
    return FSM_CONTINUE;
}

/* Fill in the generalized forces, those of compressed compliant contacts included. */
static void load(const struct fsm_tables *tables, const struct fsm_terms *terms, fsm_codes wanted, fsm_vector force)
{
    for (int64_t i = 0; i < force.n; i++) {
        force.at[i] = terms->f.at[i];
    }
    for (int64_t k = 0; k < tables->sizes->n_contacts; k++) {
        if (tables->contact_kind.at[k] == FSM_KIND_COMPLIANT && wanted.at[k] != FSM_CONTACT_FREE) {
            for (int64_t i = 0; i < force.n; i++) {
                force.at[i] += terms->elastic.at[k] * AT(terms->A, AT(tables->contact_rows, k, 0), i);
            }
        }
    }
}
