/* Moreau-Jean time stepping: fixed steps in which contacts may strike, stick, slide and part at any moment.

   Nothing is located: a step of length `h` goes from `(q, u)` over the middle `q_m = q + h/2 q̇` to
   `u⁺ = u_free + M⁻¹AᵀΛ` and `q⁺ = q_m + h/2 q̇(q_m, u⁺)`, with all terms at the middle and the free speeds by the
   θ-method.  Contacts whose gap is closed at the middle take part in the one-step problem: Newton's restitution
   `0 ≤ Λ_n ⊥ v_n⁺ + e v_n⁻ ≥ 0` and Coulomb's law for the impulses of the step, by projected Gauss-Seidel sweeps.  Rows
   that hold both ways are eliminated exactly.  First order, whatever happens within a step; the work in a step is bounded.

   Moreau (1988), *Unilateral contact and dry friction in finite freedom dynamics*; Jean (1999), *The non-smooth contact
   dynamics method*, Comput. Methods Appl. Mech. Eng. 177.  See docs/theory.md, "Time stepping". */

#include "time_stepping.h"

#define FSM_THETA              0.5
#define FSM_MOREAU_JEAN_SWEEPS 2000  // of the projected Gauss-Seidel method, at most
#define FSM_SETTLED            1e-12 // change of a speed in a sweep, as a fraction of the fastest: the sweeps end
#define FSM_HELD_BACK          0.1   // part of a loop's opening that a step closes again
#define FSM_CORRECTIONS        2     // passes of the theta-method
#define FSM_SLOW 2.0 // times the change of speed in a step without contacts, below which there is no rebound

// what is reported of a run
#define FSM_UNSOLVED       0 // steps whose sweeps did not settle
#define FSM_FIRST_UNSOLVED 1 // when the first of them began (s)
#define FSM_WORST_UNSOLVED 2 // largest change of a speed in a last sweep, as a fraction of the fastest
#define FSM_LONGEST        3 // longest step that the compliant contacts allow where a step was too long (s)
#define FSM_REPORT_COUNT   4
#define FSM_REBOUND        2 // entry of ``energies``

static double sweep_plane(fsm_matrix K, fsm_vector speed, fsm_vector impulse, int64_t r, double bound);

/* Speeds after the step if no contact held: `M (u_free - u) = h f` at `(1 - θ) u + θ u_free`, loops held. */
static bool free_speeds(struct fsm_work *work, const struct fsm_tables *tables, const struct fsm_terms *terms,
                        const struct fsm_bilateral_system *bilateral, double t, double h, fsm_vector x, fsm_vector u,
                        fsm_vector c, fsm_vector unheld, fsm_vector reaction, fsm_codes free_side)
{
    int64_t n_q = tables->sizes->n_q, n_u = u.n;
    fsm_indices held = bilateral->held;
    fsm_vector momentum = fsm_arena_vector(&work->arena, n_u), target = fsm_arena_vector(&work->arena, held.n);
    fsm_put(unheld, u);
    for (int64_t pass = 0; pass < FSM_CORRECTIONS; pass++) {
        for (int64_t i = 0; i < n_u; i++) {
            x.at[n_q + i] = (1.0 - FSM_THETA) * u.at[i] + FSM_THETA * unheld.at[i];
        }
        tables->terms.at[0](t, x.at, c.at, terms->whole.at);
        for (int64_t i = 0; i < n_u; i++) {
            momentum.at[i] = h * terms->f.at[i];
            for (int64_t j = 0; j < n_u; j++) {
                momentum.at[i] += AT(terms->M, i, j) * u.at[j];
            }
        }
        for (int64_t k = 0; k < free_side.n; k++) {
            if (fsm_presses(tables, terms, k, free_side)) {
                for (int64_t i = 0; i < n_u; i++) {
                    momentum.at[i] += h * terms->elastic.at[k] * AT(terms->A, AT(tables->contact_rows, k, 0), i);
                }
            }
        }
        for (int64_t k = 0; k < held.n; k++) {
            target.at[k] = -terms->b.at[held.at[k]];
            if (tables->row_positional.at[held.at[k]] == 1) {
                target.at[k] -= FSM_HELD_BACK * terms->residual.at[held.at[k]] / h;
            }
        }
        if (!fsm_solve_bilateral(bilateral, momentum, target, unheld, reaction, fsm_rounding_of(terms, u, false))) {
            return false;
        }
    }
    return true;
}

/* The largest friction impulse of a contact, static where it stuck before; negative: there is none. */
static double friction_bound(const struct fsm_tables *tables, const struct fsm_terms *terms, int64_t k, double h,
                             fsm_indices normal, fsm_vector impulse, int64_t before)
{
    if (tables->contact_flags.at[k] & FSM_FLAG_STICKS_ALWAYS) {
        return -1.0;
    }
    double ratio = before == FSM_CONTACT_HELD ? terms->static_friction.at[k] : terms->kinetic_friction.at[k];
    if (tables->contact_kind.at[k] == FSM_KIND_DRY_FRICTION) {
        return ratio * h;
    }
    if (tables->contact_kind.at[k] == FSM_KIND_COMPLIANT) {
        return ratio * h * terms->elastic.at[k];
    }
    return ratio * fabs(impulse.at[normal.at[k]]);
}

/* One sweep over all contacts; returns the largest change of a speed.  `speed` follows the impulses. */
static double sweep(const struct fsm_tables *tables, const struct fsm_terms *terms, fsm_matrix K, fsm_vector speed,
                    fsm_vector target, fsm_indices normal, fsm_indices tangent, fsm_vector impulse, double h,
                    fsm_codes codes)
{
    double largest = 0.0;
    double bound;
    for (int64_t k = 0; k < normal.n; k++) {
        for (int64_t part = 0; part < 2; part++) {
            int64_t r = part == 0 ? normal.at[k] : tangent.at[k];
            if (r < 0 || AT(K, r, r) <= 0.0) {
                continue;
            }
            if (part == 1 && (tables->contact_flags.at[k] & FSM_FLAG_IN_SPACE)) {
                bound = friction_bound(tables, terms, k, h, normal, impulse, codes.at[k]);
                if (bound < 0.0 && impulse.at[normal.at[k]] == 0.0) {
                    bound = 0.0;
                }
                largest = fsm_larger(largest, sweep_plane(K, speed, impulse, r, bound));
                continue;
            }
            double after = impulse.at[r] - (speed.at[r] - target.at[r]) / AT(K, r, r);
            if (part == 0) {
                if ((tables->contact_flags.at[k] & FSM_FLAG_TWO_SIDED) == 0) {
                    after = fsm_larger(0.0, after);
                }
            } else {
                bound = friction_bound(tables, terms, k, h, normal, impulse, codes.at[k]);
                if (bound >= 0.0) {
                    after = fsm_smaller(bound, fsm_larger(-bound, after));
                } else if (impulse.at[normal.at[k]] == 0.0) {
                    after = 0.0;
                }
            }
            double change = after - impulse.at[r];
            impulse.at[r] = after;
            largest = fsm_larger(largest, fabs(change) * AT(K, r, r));
            if (change != 0.0) {
                for (int64_t s = 0; s < speed.n; s++) {
                    speed.at[s] += AT(K, s, r) * change;
                }
            }
        }
    }
    return largest;
}

/* As _sweep for friction in space, of the tangent rows `r` and `r + 1`: impulses within a circle. */
static double sweep_plane(fsm_matrix K, fsm_vector speed, fsm_vector impulse, int64_t r, double bound)
{
    double stiff = fsm_larger(AT(K, r, r), AT(K, r + 1, r + 1)) + fabs(AT(K, r, r + 1));
    double first = impulse.at[r] - speed.at[r] / stiff, second = impulse.at[r + 1] - speed.at[r + 1] / stiff;
    double size = hypot(first, second);
    if (0.0 <= bound && bound < size) {
        first = first * bound / size;
        second = second * bound / size;
    }
    first = first - impulse.at[r];
    second = second - impulse.at[r + 1];
    impulse.at[r] += first;
    impulse.at[r + 1] += second;
    for (int64_t s = 0; s < speed.n; s++) {
        speed.at[s] += AT(K, s, r) * first + AT(K, s, r + 1) * second;
    }
    return stiff * fsm_larger(fabs(first), fabs(second));
}

/* Sweep until nothing changes; returns the change of a speed in the last sweep. */
static double moreau_jean_solve(const struct fsm_tables *tables, const struct fsm_terms *terms, fsm_matrix K,
                                fsm_vector speed, fsm_vector target, fsm_indices normal, fsm_indices tangent,
                                fsm_vector impulse, double h, fsm_codes codes, double fastest)
{
    double change = 0.0;
    for (int64_t pass = 0; pass < (speed.n > 0 ? FSM_MOREAU_JEAN_SWEEPS : 0); pass++) {
        change = sweep(tables, terms, K, speed, target, normal, tangent, impulse, h, codes);
        if (change <= FSM_SETTLED * fastest) {
            break;
        }
    }
    return change;
}

/* Solve the one-step problem, and keep of its rebound what does not raise the energy, as impacts do.

   `speed` (n,): in, without contacts; out, after.  Returns the last change of a speed and the part of the rebound
   that is kept. */
static double contact_impulses(struct fsm_work *work, const struct fsm_tables *tables, const struct fsm_terms *terms,
                               fsm_matrix K, fsm_vector speed, fsm_vector target, fsm_indices normal,
                               fsm_indices tangent, fsm_vector impulse, double h, fsm_codes codes, double fastest,
                               double *out1)
{
    fsm_vector before = fsm_arena_copy(&work->arena, speed);
    double change = moreau_jean_solve(tables, terms, K, speed, target, normal, tangent, impulse, h, codes, fastest);
    bool rebounds = false;
    fsm_vector none = fsm_arena_vector(&work->arena, speed.n);
    for (int64_t r = 0; r < speed.n; r++) {
        rebounds = rebounds || target.at[r] > 0.0;
    }
    if (!rebounds || !fsm_gains_energy(impulse, speed, before, 0.0, none)) {
        *out1 = 1.0;
        return change;
    }
    fsm_vector plastic = fsm_arena_vector(&work->arena, speed.n), plastic_speed = fsm_arena_copy(&work->arena, before);
    double again =
        moreau_jean_solve(tables, terms, K, plastic_speed, none, normal, tangent, plastic, h, codes, fastest);
    double beta = fsm_energy_consistent_fraction(plastic, plastic_speed, impulse, speed, before, 0.0, none);
    for (int64_t r = 0; r < speed.n; r++) {
        impulse.at[r] = plastic.at[r] + beta * (impulse.at[r] - plastic.at[r]);
        speed.at[r] = plastic_speed.at[r] + beta * (speed.at[r] - plastic_speed.at[r]);
    }
    *out1 = beta;
    return fsm_larger(change, again);
}

/* Tell the contact states of the step from its impulses: none, within the cone, or at its edge. */
static void codes_after(const struct fsm_tables *tables, const struct fsm_terms *terms, double h, fsm_vector speed,
                        fsm_indices normal, fsm_indices tangent, fsm_vector impulse, fsm_codes codes,
                        fsm_codes free_side, fsm_vector sigma, double fastest)
{
    double small = 1e-09 * fastest;
    for (int64_t k = 0; k < codes.n; k++) {
        int64_t before = codes.at[k];
        if (tables->contact_kind.at[k] == FSM_KIND_LOCK) {
            continue;
        }
        codes.at[k] = FSM_CONTACT_FREE;
        sigma.at[k] = 0.0;
        bool loaded = (tables->contact_flags.at[k] & FSM_FLAG_TWO_SIDED) != 0;
        loaded = loaded || tables->contact_kind.at[k] == FSM_KIND_DRY_FRICTION ||
                 (normal.at[k] >= 0 && impulse.at[normal.at[k]] > 0.0);
        if (tables->contact_kind.at[k] == FSM_KIND_COMPLIANT) {
            loaded = fsm_presses(tables, terms, k, free_side);
        }
        if (!loaded || (normal.at[k] >= 0 && speed.at[normal.at[k]] > small)) {
            continue;
        }
        codes.at[k] = FSM_CONTACT_HELD;
        int64_t r = tangent.at[k];
        if (r >= 0) {
            double bound = friction_bound(tables, terms, k, h, normal, impulse, before);
            if (tables->contact_flags.at[k] & FSM_FLAG_IN_SPACE) {
                if (bound >= 0.0 && hypot(speed.at[r], speed.at[r + 1]) > small) {
                    codes.at[k] = FSM_CONTACT_SLIDING;
                    sigma.at[k] = fsm_angle_of(speed.at[r], speed.at[r + 1], 0.0);
                }
            } else if (bound >= 0.0 && fabs(speed.at[r]) > small) {
                codes.at[k] = FSM_CONTACT_SLIDING;
                sigma.at[k] = speed.at[r] > 0.0 ? 1.0 : -1.0;
            }
        }
    }
}

/* Count a step whose sweeps did not settle: its impulses are those of the last sweep. */
static void report_solve(fsm_vector report, double t, double change)
{
    if (change > FSM_SETTLED) {
        if (report.at[FSM_UNSOLVED] == 0.0) {
            report.at[FSM_FIRST_UNSOLVED] = t;
        }
        report.at[FSM_UNSOLVED] += 1.0;
        report.at[FSM_WORST_UNSOLVED] = fsm_larger(report.at[FSM_WORST_UNSOLVED], change);
    }
}

/* Take one step in place.

   Parameters
   ----------
   x : (n_x,), c : (n_c,), codes : (n_contacts,)
       In and out: state, context with slip directions, contact states.
   free_side : (n_contacts,)
       In and out: see active_contacts.
   free, middle, impulses : (n_u,), (n_x,), (n_rows,)
       Out: speeds without contacts, state at the middle, impulses of all rows (N s).
   energies : (3,)
       Out: kinetic plus potential energy after the step without and with the impulses of contacts (J), and the part
       of the rebound that was kept.
   report : (REPORT_COUNT,)
       In and out: see `UNSOLVED` ... `LONGEST`.

   Returns
   -------
   int
       `GOING`, `SINGULAR` or `STEP_TOO_LONG`. */
FSM_LOCAL int64_t fsm_moreau_jean_step(struct fsm_work *work, const struct fsm_tables *tables,
                                       const struct fsm_input_tables *drive, double t, double h, int64_t segment,
                                       fsm_vector x, fsm_vector c, fsm_codes codes, fsm_codes free_side,
                                       fsm_vector unheld, fsm_vector middle, fsm_vector impulses, fsm_vector energies,
                                       fsm_vector report)
{
    int64_t n_q = tables->sizes->n_q, n_u = tables->sizes->n_u, n_rows = tables->sizes->n_rows;
    int64_t count = codes.n;
    fsm_arena_clear(&work->arena);
    const struct fsm_terms *terms = fsm_terms_of(work);
    fsm_vector u = fsm_arena_copy(&work->arena, fsm_vector_from(x, n_q));
    tables->terms.at[0](t, x.at, c.at, terms->whole.at);
    fsm_begin_sides(tables, terms, codes, free_side);
    for (int64_t i = 0; i < n_q; i++) {
        middle.at[i] = x.at[i] + 0.5 * h * terms->q_dot.at[i];
    }
    fsm_put(fsm_vector_from(middle, n_q), u);
    fsm_normalise_quaternions(tables, middle);
    double at = t + 0.5 * h;
    fsm_write_inputs(drive, at, segment, middle, c);
    tables->terms.at[0](at, middle.at, c.at, terms->whole.at);
    fsm_keep_sides(tables, terms, h, u, codes, free_side);
    fsm_indices held = fsm_bilateral_rows(&work->arena, tables, codes);
    struct fsm_bilateral_system bilateral = fsm_factor_bilateral(&work->arena, terms, held, n_u);
    report.at[FSM_LONGEST] = fsm_longest_step(work, tables, terms, &bilateral, at, middle, c, free_side);
    if (h > report.at[FSM_LONGEST]) {
        return FSM_STEP_TOO_LONG;
    }
    fsm_vector reaction = fsm_arena_vector(&work->arena, held.n);
    if (!free_speeds(work, tables, terms, &bilateral, at, h, middle, u, c, unheld, reaction, free_side)) {
        return FSM_SINGULAR;
    }
    fsm_indices which = fsm_arena_indices(&work->arena, n_rows), normal = fsm_arena_indices(&work->arena, count),
                tangent = fsm_arena_indices(&work->arena, count);
    int64_t n = fsm_list_active(tables, terms, h, u, codes, free_side, fsm_arena_indices(&work->arena, count), which,
                                normal, tangent);
    fsm_matrix reactions;
    fsm_matrix K;
    fsm_matrix motions =
        fsm_delassus_response(&work->arena, terms, &bilateral, fsm_indices_first(which, n), n_u, &reactions, &K);
    fsm_vector speed = fsm_arena_vector(&work->arena, n);
    fsm_vector target = fsm_arena_vector(&work->arena, n);
    fsm_vector impulse = fsm_arena_vector(&work->arena, n);
    double fastest = 1e-300;
    for (int64_t r = 0; r < n; r++) {
        speed.at[r] = fsm_row_speed(terms, which.at[r], unheld);
        fastest = fsm_larger(fsm_larger(fastest, fabs(speed.at[r])), fabs(fsm_row_speed(terms, which.at[r], u)));
    }
    for (int64_t k = 0; k < count; k++) {
        if (normal.at[k] >= 0) {
            double before = fsm_row_speed(terms, which.at[normal.at[k]], u);
            // what the forces of a step or two bring about is no impact: a contact that lasts does not rebound from it
            double at_rest = FSM_SLOW * fabs(fsm_row_speed(terms, which.at[normal.at[k]], unheld) - before);
            if (before < -at_rest && (tables->contact_flags.at[k] & FSM_FLAG_TWO_SIDED) == 0) {
                target.at[normal.at[k]] = -terms->restitution.at[k] * before;
            }
        }
    }
    double change = contact_impulses(work, tables, terms, K, speed, target, normal, tangent, impulse, h, codes, fastest,
                                     &energies.at[FSM_REBOUND]);
    report_solve(report, t, change / fastest);
    int64_t first = fsm_sigma_at(tables->sizes);
    fsm_vector sigma = fsm_vector_part(c, first, first + count);
    codes_after(tables, terms, h, speed, normal, tangent, impulse, codes, free_side, sigma, fastest);
    for (int64_t r = 0; r < n_rows; r++) {
        impulses.at[r] = 0.0;
    }
    for (int64_t k = 0; k < held.n; k++) {
        impulses.at[held.at[k]] = reaction.at[k];
    }
    for (int64_t i = 0; i < n_q; i++) {
        x.at[i] = middle.at[i];
    }
    for (int64_t i = 0; i < n_u; i++) {
        x.at[n_q + i] = unheld.at[i];
    }
    for (int64_t r = 0; r < n; r++) {
        impulses.at[which.at[r]] += impulse.at[r];
        for (int64_t i = 0; i < n_u; i++) {
            x.at[n_q + i] += AT(motions, r, i) * impulse.at[r];
        }
        for (int64_t k = 0; k < held.n; k++) {
            impulses.at[held.at[k]] += AT(reactions, r, k) * impulse.at[r];
        }
    }
    tables->terms.at[0](at, x.at, c.at, terms->whole.at);
    for (int64_t i = 0; i < n_q; i++) {
        x.at[i] += 0.5 * h * terms->q_dot.at[i];
    }
    fsm_normalise_quaternions(tables, x);
    fsm_write_inputs(drive, t + h, segment, x, c);
    tables->terms.at[0](t + h, x.at, c.at, terms->whole.at);
    energies.at[1] = terms->energies.at[0] + terms->energies.at[1];
    for (int64_t i = 0; i < n_u; i++) {
        u.at[i] = x.at[n_q + i];
        x.at[n_q + i] = unheld.at[i];
    }
    tables->terms.at[0](t + h, x.at, c.at, terms->whole.at);
    energies.at[0] = terms->energies.at[0] + terms->energies.at[1];
    for (int64_t i = 0; i < n_u; i++) {
        x.at[n_q + i] = u.at[i];
    }
    return FSM_CONTINUE;
}

/* Step through all `times`; row i + 1 of every array is written from row i, but `free_side` and `report`.

   Returns
   -------
   status, row, segment
       How it ended, and the last row written with its segment of the inputs. */
FSM_API int64_t fsm_moreau_jean_steps(const struct fsm_tables *tables, const struct fsm_input_tables *drive,
                                      struct fsm_work *work, int64_t segment, fsm_vector times, fsm_matrix x,
                                      fsm_matrix c, fsm_code_table codes, fsm_codes free_side, fsm_matrix unheld,
                                      fsm_matrix middle, fsm_matrix impulses, fsm_matrix energies, fsm_vector report,
                                      int64_t *row, int64_t *last_segment)
{
    for (int64_t i = 0; i < times.n - 1; i++) {
        double t = times.at[i], h = times.at[i + 1] - times.at[i];
        while (fsm_next_breakpoint(drive, segment) <= t + 1e-09 * h) {
            segment = drive->next_hard.at[segment];
        }
        for (int64_t j = 0; j < x.m; j++) {
            AT(x, i + 1, j) = AT(x, i, j);
        }
        for (int64_t j = 0; j < c.m; j++) {
            AT(c, i + 1, j) = AT(c, i, j);
        }
        for (int64_t j = 0; j < codes.m; j++) {
            AT(codes, i + 1, j) = (int8_t)AT(codes, i, j);
        }
        int64_t status =
            fsm_moreau_jean_step(work, tables, drive, t, h, segment, fsm_row(x, i + 1), fsm_row(c, i + 1),
                                 fsm_code_row(codes, i + 1), free_side, fsm_row(unheld, i + 1), fsm_row(middle, i + 1),
                                 fsm_row(impulses, i + 1), fsm_row(energies, i + 1), report);
        if (status != FSM_CONTINUE) {
            *row = i;
            *last_segment = segment;
            return status;
        }
        bool finite = true;
        for (int64_t j = 0; j < x.m; j++) {
            finite = finite && fsm_is_finite(AT(x, i + 1, j));
        }
        if (!finite) {
            *row = i;
            *last_segment = segment;
            return FSM_NON_FINITE;
        }
    }
    *row = times.n - 1;
    *last_segment = segment;
    return FSM_DONE;
}

/* Whether no open contact is deeper than its tolerance where a run begins. */
FSM_API bool fsm_moreau_jean_may_start(const struct fsm_tables *tables, struct fsm_work *work, double t, fsm_vector x,
                                       fsm_vector c, fsm_codes codes)
{
    fsm_arena_clear(&work->arena);
    const struct fsm_terms *terms = fsm_terms_of(work);
    tables->terms.at[0](t, x.at, c.at, terms->whole.at);
    return !fsm_deep_at_start(tables, terms, codes);
}
