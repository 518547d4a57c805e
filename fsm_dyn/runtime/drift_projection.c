/* Drift projection: bring the configuration back onto its rows (docs/theory.md, "Drift").

   `Δq = -W M⁻¹Aᵀ (A M⁻¹Aᵀ)⁺ φ` over configuration rows and closed gaps: the smallest correction in the metric of
   the mass matrix, so that it does least work. */

#include "stepping.h"

#define FSM_NEWTON_STEPS 2
#define FSM_DRIFT_PROJECTION_INDEPENDENT                                                                               \
    1e-4             // the least pivot, a square of what is left of a row, above which no row is implied
#define FSM_FAR 1e-5 // a residual beyond this after the Newton steps is no drift but a failure

static fsm_indices configuration_rows(struct fsm_work *work, const struct fsm_tables *tables, int64_t mode);
static double find_largest(const struct fsm_terms *terms, fsm_indices rows);
static void newton_step(struct fsm_work *work, const struct fsm_tables *tables, const struct fsm_terms *terms,
                        fsm_indices rows, fsm_vector x);

/* Bring the configuration back onto the rows of its mode when their residual exceeds the tolerance.

   Called after each accepted step in modes with the flag `PROJECTS`, before guards are evaluated.

   Parameters
   ----------
   work, tables, t, x, c, mode
       As for resolve; `x` in and out.
   drift : float64 array, shape (2,)
       In and out: energy put in by projections so far (J), and the largest residual met (m).

   Returns
   -------
   int
       0: untouched; 1: moved (the derivative at hand is no longer valid); `PROJECTION_FAILED`; `CONTRADICTORY`
       where only redundant rows are missed. */
FSM_LOCAL int64_t fsm_project(struct fsm_work *work, const struct fsm_tables *tables, double t, fsm_vector x,
                              fsm_vector c, int64_t mode, fsm_vector drift)
{
    fsm_arena_clear(&work->arena);
    const struct fsm_terms *terms = fsm_terms_of(work);
    tables->terms.at[0](t, x.at, c.at, terms->whole.at);
    fsm_indices rows = configuration_rows(work, tables, mode);
    double worst = find_largest(terms, rows);
    if (worst <= tables->tolerances->projection) {
        return 0;
    }
    drift.at[1] = fsm_larger(drift.at[1], worst);
    double before = terms->energies.at[0] + terms->energies.at[1];
    for (int64_t pass = 0; pass < FSM_NEWTON_STEPS; pass++) {
        fsm_mark top = fsm_arena_mark(&work->arena);
        newton_step(work, tables, terms, rows, x);
        fsm_arena_release(&work->arena, top);
        tables->terms.at[0](t, x.at, c.at, terms->whole.at);
        if (find_largest(terms, rows) <= tables->tolerances->projection) {
            break;
        }
    }
    if (!(find_largest(terms, rows) <= FSM_FAR)) {
        bool met = find_largest(terms, fsm_independent_rows(&work->arena, terms, rows, tables->sizes->n_u)) <= FSM_FAR;
        return met ? FSM_CONTRADICTORY : FSM_PROJECTION_FAILED;
    }
    drift.at[0] += terms->energies.at[0] + terms->energies.at[1] - before;
    return 1;
}

/* Whether a contact may close by its `closes_if` while its gap is already below zero: a named failure.

   Asked after steps that end without an event, in modes with the flag `WATCHES_GATES`. */
FSM_LOCAL bool fsm_gate_opened_late(struct fsm_work *work, const struct fsm_tables *tables, double t, fsm_vector x,
                                    fsm_vector c, int64_t mode)
{
    fsm_arena_clear(&work->arena);
    const struct fsm_terms *terms = fsm_terms_of(work);
    tables->terms.at[0](t, x.at, c.at, terms->whole.at);
    for (int64_t k = 0; k < tables->sizes->n_contacts; k++) {
        int64_t row = AT(tables->contact_rows, k, 0);
        int64_t flags = tables->contact_flags.at[k];
        bool gated = (flags & FSM_FLAG_GATED) && !(flags & FSM_FLAG_LIMITED) &&
                     AT(tables->mode_states, mode, k) == FSM_CONTACT_FREE;
        if (tables->contact_kind.at[k] == FSM_KIND_COMPLIANT && terms->elastic.at[k] <= 0.0) {
            continue; // its surface still follows what left it
        }
        if (gated && terms->closes_if.at[k] != 0.0 && terms->residual.at[row] < -tables->tolerances->gap) {
            return true;
        }
    }
    return false;
}

/* Constraints on coordinates and the normal rows of what is closed or engaged; what yields has a depth. */
static fsm_indices configuration_rows(struct fsm_work *work, const struct fsm_tables *tables, int64_t mode)
{
    fsm_indices rows = fsm_arena_indices(&work->arena, tables->sizes->n_rows);
    int64_t count = 0;
    for (int64_t r = 0; r < rows.n; r++) {
        if (tables->row_role.at[r] == FSM_ROLE_ALWAYS_POSITION) {
            rows.at[count] = r;
            count++;
        }
    }
    for (int64_t k = 0; k < tables->sizes->n_contacts; k++) {
        int64_t r = AT(tables->contact_rows, k, 0);
        bool held =
            AT(tables->mode_states, mode, k) != FSM_CONTACT_FREE && tables->contact_kind.at[k] != FSM_KIND_COMPLIANT;
        if (r >= 0 && held && tables->row_positional.at[r] == 1) {
            rows.at[count] = r;
            count++;
        }
    }
    return fsm_indices_first(rows, count);
}

static double find_largest(const struct fsm_terms *terms, fsm_indices rows)
{
    double largest = 0.0;
    for (int64_t n1 = 0; n1 < rows.n; n1++) {
        int64_t r = rows.at[n1];
        largest = fsm_larger(largest, fabs(terms->residual.at[r]));
    }
    return largest;
}

/* Move the configuration onto those rows that are independent, as far as one step of Newton's method leads. */
static void newton_step(struct fsm_work *work, const struct fsm_tables *tables, const struct fsm_terms *terms,
                        fsm_indices rows, fsm_vector x)
{
    int64_t n_q = tables->sizes->n_q, n_u = tables->sizes->n_u;
    struct fsm_bilateral_system bilateral = fsm_factor_bilateral(&work->arena, terms, rows, n_u);
    if (fsm_least_pivot(&bilateral) < FSM_DRIFT_PROJECTION_INDEPENDENT) {
        rows = fsm_independent_rows(&work->arena, terms, rows, n_u);
        bilateral = fsm_factor_bilateral(&work->arena, terms, rows, n_u);
    }
    int64_t m = rows.n;
    fsm_vector target = fsm_arena_vector(&work->arena, m), move = fsm_arena_vector(&work->arena, n_u),
               reaction = fsm_arena_vector(&work->arena, m);
    for (int64_t k = 0; k < m; k++) {
        target.at[k] = -terms->residual.at[rows.at[k]];
    }
    fsm_solve_bilateral(&bilateral, fsm_arena_vector(&work->arena, n_u), target, move, reaction, 0.0);
    for (int64_t i = 0; i < n_q; i++) {
        for (int64_t j = 0; j < n_u; j++) {
            x.at[i] += AT(terms->W, i, j) * move.at[j];
        }
    }
}
