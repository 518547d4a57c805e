/* Impacts: velocities that jump because a contact closes or a row is imposed (docs/theory.md, "Impacts").

   `M (u⁺ - u⁻) = AᵀΛ` over bilateral rows and closed contacts with `0 ≤ Λ_n ⊥ v_n⁺ + e v_n⁻ ≥ 0` and Coulomb's
   law for the tangential impulse (Newton), or with the normal impulse of compression returned e-fold (Poisson).  Either,
   together with friction, can raise the energy; the remedy keeps only the part β of the rebound beyond the plastic
   solution at which it does not (rebound). */

#include "contacts.h"

#define FSM_BETA        2    // entry of ``energy``, see resolution
#define FSM_MOST_SWEEPS 2000 // of sequential impacts, each over all closed contacts

// how contacts rebound in an impact
#define FSM_IMPACT_NO_REBOUND  0
#define FSM_IMPACT_BY_SPEEDS   1 // Newton
#define FSM_IMPACT_BY_IMPULSES 2 // Poisson, some of them

// what an impact is to do
#define FSM_IMPACT_REBOUND 0

static int64_t one_by_one(struct fsm_arena *arena, const struct fsm_tables *tables, const struct fsm_terms *terms,
                          const struct fsm_bilateral_system *bilateral, fsm_vector u, fsm_indices closed,
                          int64_t purpose, fsm_vector impulse, struct fsm_impact_energy *energy, fsm_vector log,
                          bool broken);
static int64_t set_targets(const struct fsm_tables *tables, const struct fsm_terms *terms,
                           const struct fsm_contact_problem *m, fsm_indices who, fsm_vector speed, int64_t purpose);
static int64_t find_impulses(struct fsm_arena *arena, const struct fsm_tables *tables, const struct fsm_terms *terms,
                             const struct fsm_contact_problem *m, const struct fsm_contact_problem *problem,
                             fsm_indices who, int64_t law, fsm_vector base, fsm_vector speed, double base_work,
                             fsm_vector work, fsm_vector forces, struct fsm_impact_energy *energy, fsm_vector log);
static void expansion_phase(const struct fsm_tables *tables, const struct fsm_terms *terms,
                            const struct fsm_contact_problem *m, fsm_indices who, fsm_vector compression, bool every);

/* The rows that hold both ways: constraints and engaged locks. */
FSM_LOCAL fsm_indices fsm_bilateral_rows(struct fsm_arena *arena, const struct fsm_tables *tables, fsm_codes wanted)
{
    fsm_indices rows = fsm_arena_indices(arena, tables->sizes->n_rows);
    int64_t count = 0;
    for (int64_t r = 0; r < rows.n; r++) {
        if (tables->row_role.at[r] == FSM_ROLE_ALWAYS || tables->row_role.at[r] == FSM_ROLE_ALWAYS_POSITION) {
            rows.at[count] = r;
            count++;
        }
    }
    for (int64_t k = 0; k < wanted.n; k++) {
        if (tables->contact_kind.at[k] == FSM_KIND_LOCK && wanted.at[k] == FSM_CONTACT_HELD) {
            rows.at[count] = AT(tables->contact_rows, k, 0);
            count++;
        }
    }
    return fsm_indices_first(rows, count);
}

/* Change the speeds in `state` if the rows that hold now demand it; add the impulses.  Returns a status. */
FSM_LOCAL int64_t fsm_resolve_impact(struct fsm_arena *arena, const struct fsm_tables *tables,
                                     const struct fsm_terms *terms, fsm_vector state, fsm_codes wanted,
                                     fsm_indices closed, bool plastic, fsm_vector impulse,
                                     struct fsm_impact_energy *energy, fsm_vector log)
{
    fsm_vector u = fsm_vector_from(state, tables->sizes->n_q);
    double slow = tables->tolerances->speed;
    fsm_indices held = fsm_bilateral_rows(arena, tables, wanted);
    bool broken = false;
    for (int64_t n1 = 0; n1 < held.n; n1++) {
        int64_t r = held.at[n1];
        broken = broken || fabs(fsm_row_speed(terms, r, u)) > slow;
    }
    if (!broken && !fsm_any_strikes(tables, terms, closed, u, slow)) {
        return FSM_CONTINUE;
    }
    struct fsm_bilateral_system bilateral = fsm_factor_bilateral(arena, terms, held, u.n);
    int64_t purpose = plastic ? FSM_IMPACT_PLASTIC : FSM_IMPACT_REBOUND;
    if (tables->sizes->sequential == 0) {
        return fsm_simultaneous_impact(arena, tables, terms, &bilateral, u, closed, purpose, impulse, energy, log);
    }
    return one_by_one(arena, tables, terms, &bilateral, u, closed, purpose, impulse, energy, log, broken);
}

/* Whether a closed contact's rows are broken by the speeds. */
static bool strikes(const struct fsm_tables *tables, const struct fsm_terms *terms, int64_t k, fsm_vector u,
                    double slow)
{
    double speed = fsm_row_speed(terms, AT(tables->contact_rows, k, 0), u);
    int64_t flags = tables->contact_flags.at[k];
    if (speed < -slow || ((flags & FSM_FLAG_TWO_SIDED) && speed > slow)) {
        return true;
    }
    bool caught = (flags & FSM_FLAG_STICKS_ALWAYS) && AT(tables->contact_rows, k, 1) >= 0 && speed <= slow;
    return caught && fsm_slip_speed(tables, terms, k, u) > slow;
}

/* Whether the rows of any closed contact are broken by the speeds. */
FSM_LOCAL bool fsm_any_strikes(const struct fsm_tables *tables, const struct fsm_terms *terms, fsm_indices closed,
                               fsm_vector u, double slow)
{
    bool found = false;
    for (int64_t k = 0; k < closed.n; k++) {
        found = found || (closed.at[k] == 1 && strikes(tables, terms, k, u, slow));
    }
    return found;
}

/* Impacts of one contact after the other, in the model's order, until none is left that strikes. */
static int64_t one_by_one(struct fsm_arena *arena, const struct fsm_tables *tables, const struct fsm_terms *terms,
                          const struct fsm_bilateral_system *bilateral, fsm_vector u, fsm_indices closed,
                          int64_t purpose, fsm_vector impulse, struct fsm_impact_energy *energy, fsm_vector log,
                          bool broken)
{
    fsm_indices alone = fsm_arena_indices(arena, closed.n);
    fsm_mark top;
    int64_t status;
    if (broken) {
        top = fsm_arena_mark(arena);
        status = fsm_simultaneous_impact(arena, tables, terms, bilateral, u, alone, purpose, impulse, energy, log);
        fsm_arena_release(arena, top);
        if (status != FSM_CONTINUE) {
            return status;
        }
    }
    double slow = tables->tolerances->speed;
    for (int64_t pass = 0; pass < FSM_MOST_SWEEPS; pass++) {
        if (!fsm_any_strikes(tables, terms, closed, u, slow)) {
            // what the last sweeps left within the tolerance comes to rest
            return fsm_simultaneous_impact(arena, tables, terms, bilateral, u, closed, FSM_IMPACT_PLASTIC, impulse,
                                           energy, log);
        }
        for (int64_t k = 0; k < closed.n; k++) {
            if (closed.at[k] == 1 && strikes(tables, terms, k, u, slow)) {
                alone.at[k] = 1;
                top = fsm_arena_mark(arena);
                status =
                    fsm_simultaneous_impact(arena, tables, terms, bilateral, u, alone, purpose, impulse, energy, log);
                fsm_arena_release(arena, top);
                alone.at[k] = 0;
                if (status != FSM_CONTINUE) {
                    return status;
                }
            }
        }
    }
    return FSM_IMPACTS_DIVERGE;
}

/* One impact of the contacts marked in `closed` and all bilateral rows; changes `u`, adds to `impulse`. */
FSM_LOCAL int64_t fsm_simultaneous_impact(struct fsm_arena *arena, const struct fsm_tables *tables,
                                          const struct fsm_terms *terms, const struct fsm_bilateral_system *bilateral,
                                          fsm_vector u, fsm_indices closed, int64_t purpose, fsm_vector impulse,
                                          struct fsm_impact_energy *energy, fsm_vector log)
{
    int64_t n_u = u.n;
    fsm_indices held = bilateral->held;
    fsm_vector momentum = fsm_arena_vector(arena, n_u), base_u = fsm_arena_vector(arena, n_u);
    fsm_vector target_b = fsm_arena_vector(arena, held.n), base_reaction = fsm_arena_vector(arena, held.n);
    double twice = 0.0;
    for (int64_t i = 0; i < n_u; i++) {
        for (int64_t j = 0; j < n_u; j++) {
            momentum.at[i] += AT(terms->M, i, j) * u.at[j];
        }
        twice += momentum.at[i] * u.at[i];
    }
    for (int64_t k = 0; k < held.n; k++) {
        target_b.at[k] = -terms->b.at[held.at[k]];
    }
    if (!fsm_solve_bilateral(bilateral, momentum, target_b, base_u, base_reaction, fsm_rounding_of(terms, u, false))) {
        return FSM_SINGULAR;
    }
    fsm_indices which;
    fsm_indices who;
    struct fsm_contact_problem m = fsm_build_impact_problem(arena, tables, terms, u, closed, purpose, &which, &who);
    int64_t n = which.n;
    fsm_matrix reactions;
    fsm_matrix K;
    fsm_matrix motions = fsm_delassus_response(arena, terms, bilateral, which, n_u, &reactions, &K);
    fsm_vector unheld = fsm_free_response(arena, terms, which, n_u);
    fsm_vector base = fsm_arena_vector(arena, n), speed = fsm_arena_vector(arena, n);
    for (int64_t r = 0; r < n; r++) {
        base.at[r] = fsm_row_speed(terms, which.at[r], base_u);
        speed.at[r] = fsm_row_speed(terms, which.at[r], u);
    }
    double base_work = 0.0;
    fsm_vector work = fsm_arena_vector(arena, n);
    for (int64_t k = 0; k < held.n; k++) { // held rows answer 0, so only their speed before counts
        double before = fsm_row_speed(terms, held.at[k], u);
        base_work += base_reaction.at[k] * before;
        for (int64_t r = 0; r < n; r++) {
            work.at[r] += AT(reactions, r, k) * before;
        }
    }
    int64_t law = set_targets(tables, terms, &m, who, speed, purpose);
    struct fsm_contact_problem problem = fsm_scale_problem(arena, &m, K, base, unheld, sqrt(fsm_larger(twice, 0.0)));
    fsm_vector forces = fsm_arena_vector(arena, n);
    int64_t status =
        find_impulses(arena, tables, terms, &m, &problem, who, law, base, speed, base_work, work, forces, energy, log);
    if (status != FSM_CONTINUE) {
        return status;
    }
    fsm_apply_impulses(which, held, base_u, base_reaction, motions, reactions, forces, u, impulse);
    return FSM_CONTINUE;
}

/* Set the speeds to those after impulses `forces` along the rows `which`; add these and the reactions. */
FSM_LOCAL void fsm_apply_impulses(fsm_indices which, fsm_indices held, fsm_vector base_u, fsm_vector base_reaction,
                                  fsm_matrix motions, fsm_matrix reactions, fsm_vector forces, fsm_vector u,
                                  fsm_vector impulse)
{
    int64_t n = which.n;
    for (int64_t i = 0; i < u.n; i++) {
        u.at[i] = base_u.at[i];
        for (int64_t r = 0; r < n; r++) {
            u.at[i] += AT(motions, r, i) * forces.at[r];
        }
    }
    for (int64_t r = 0; r < n; r++) {
        impulse.at[which.at[r]] += forces.at[r];
    }
    for (int64_t k = 0; k < held.n; k++) {
        impulse.at[held.at[k]] += base_reaction.at[k];
        for (int64_t r = 0; r < n; r++) {
            impulse.at[held.at[k]] += AT(reactions, r, k) * forces.at[r];
        }
    }
}

/* Find the contact impulses `forces` (n,) of one impact; returns a status.

   `m` and `problem` are the meeting and its scaled form, `base` and `speed` (n,) the rows' speeds after
   without contact impulses and before, `base_work` and `work` as in kept_part. */
static int64_t find_impulses(struct fsm_arena *arena, const struct fsm_tables *tables, const struct fsm_terms *terms,
                             const struct fsm_contact_problem *m, const struct fsm_contact_problem *problem,
                             fsm_indices who, int64_t law, fsm_vector base, fsm_vector speed, double base_work,
                             fsm_vector work, fsm_vector forces, struct fsm_impact_energy *energy, fsm_vector log)
{
    int64_t n = forces.n, count = who.n;
    fsm_indices best = fsm_arena_indices(arena, count);
    fsm_vector answers = fsm_arena_vector(arena, n);
    bool wedged = false;
    int64_t status;
    if (law != FSM_IMPACT_BY_IMPULSES) {
        struct fsm_enumeration_result unused;
        status = fsm_solve_contact_problem(arena, problem, FSM_LAWS_KEPT, best, forces, answers, who, log, 0, &unused);
        bool kept = status == FSM_CONTINUE || status == FSM_NON_UNIQUE_STATE;
        if (kept && (law == FSM_IMPACT_NO_REBOUND || !fsm_gains_energy(forces, answers, speed, base_work, work))) {
            return FSM_CONTINUE;
        }
        wedged = status == FSM_INCONSISTENT && law == FSM_IMPACT_BY_SPEEDS;
        if (!kept && !wedged) {
            return status;
        }
    }
    // without rebound: the first phase by impulses, and what the energy of the other law is held against
    fsm_vector plastic = fsm_arena_vector(arena, n), plastic_answers = fsm_arena_vector(arena, n);
    for (int64_t r = 0; r < n; r++) {
        problem->target.at[r] = 0.0;
    }
    struct fsm_enumeration_result unused2;
    status =
        fsm_solve_contact_problem(arena, problem, FSM_LAWS_KEPT, best, plastic, plastic_answers, who, log, 0, &unused2);
    if (status != FSM_CONTINUE && status != FSM_NON_UNIQUE_STATE) {
        return status;
    }
    if (law == FSM_IMPACT_BY_IMPULSES || wedged) {
        if (wedged) { // no rebound at these speeds obeys the cones: the impulses are returned instead
            for (int64_t r = 0; r < n; r++) {
                m->target.at[r] = 0.0;
            }
        }
        expansion_phase(tables, terms, m, who, plastic, wedged);
        fsm_retarget(problem, m, plastic_answers);
        struct fsm_enumeration_result unused3;
        status = fsm_solve_contact_problem(arena, problem, FSM_LAWS_KEPT, best, forces, answers, who, log, 0, &unused3);
        if (status != FSM_CONTINUE && status != FSM_NON_UNIQUE_STATE) {
            return status;
        }
        for (int64_t r = 0; r < n; r++) {
            forces.at[r] += plastic.at[r];
        }
    }
    double beta = fsm_energy_consistent_fraction(plastic, plastic_answers, forces, answers, speed, base_work, work);
    energy->beta = fsm_smaller(energy->beta, beta);
    for (int64_t r = 0; r < n; r++) {
        forces.at[r] = plastic.at[r] + beta * (forces.at[r] - plastic.at[r]);
    }
    return FSM_CONTINUE;
}

/* The meeting of the closed contacts, their rows and their numbers; of several answers arrest is taken. */
FSM_LOCAL struct fsm_contact_problem fsm_build_impact_problem(struct fsm_arena *arena, const struct fsm_tables *tables,
                                                              const struct fsm_terms *terms, fsm_vector u,
                                                              fsm_indices closed, int64_t purpose,
                                                              fsm_indices *which_found, fsm_indices *who_found)
{
    double slow = tables->tolerances->speed;
    int64_t count = 0;
    for (int64_t k = 0; k < closed.n; k++) {
        count += closed.at[k];
    }
    struct fsm_contact_problem m = fsm_allocate_problem(arena, count);
    fsm_indices which = fsm_arena_indices(arena, 3 * count), who = fsm_arena_indices(arena, count);
    int64_t n = 0, at = 0;
    for (int64_t k = 0; k < closed.n; k++) {
        if (closed.at[k] == 0) {
            continue;
        }
        who.at[at] = k;
        int64_t flags = tables->contact_flags.at[k];
        m.normal.at[at] = n;
        which.at[n] = AT(tables->contact_rows, k, 0);
        n++;
        m.two_sided.at[at] = (flags & FSM_FLAG_TWO_SIDED) ? 1 : 0;
        AT(m.allowed, at, FSM_CHOICE_OPEN) = 1 - m.two_sided.at[at];
        AT(m.allowed, at, FSM_CHOICE_HOLD) = 1;
        AT(m.cost, at, FSM_CHOICE_OPEN) = 2.0;
        if (AT(tables->contact_rows, k, 1) >= 0) {
            m.tangent.at[at] = n;
            which.at[n] = AT(tables->contact_rows, k, 1);
            n++;
            if (flags & FSM_FLAG_IN_SPACE) {
                m.spatial.at[at] = 1;
                which.at[n] = AT(tables->contact_rows, k, 1) + 1;
                n++;
            }
            m.kinetic_friction.at[at] = terms->kinetic_friction.at[k];
            m.static_friction.at[at] = m.kinetic_friction.at[at];
            double slip = fsm_row_speed(terms, AT(tables->contact_rows, k, 1), u);
            if (flags & FSM_FLAG_STICKS_ALWAYS) {
                m.infinite.at[at] = 1;
                // without a normal impulse it would also be free to slip: it is caught
                AT(m.allowed, at, FSM_CHOICE_OPEN) =
                    fsm_row_speed(terms, AT(tables->contact_rows, k, 0), u) > slow ? 1 : 0;
                AT(m.allowed, at, FSM_CHOICE_OPEN) |= count > 1 ? 1 : 0;
                // where catching it would take a pull, the friction alone catches it, and throws it off
                AT(m.allowed, at, FSM_CHOICE_PARTED_HOLD) = 1;
                AT(m.cost, at, FSM_CHOICE_PARTED_HOLD) = 3.0;
            } else if (m.spatial.at[at] == 1) {
                AT(m.allowed, at, FSM_CHOICE_FORWARD) = 1;
                AT(m.cost, at, FSM_CHOICE_FORWARD) = 1.0;
                if (purpose == FSM_IMPACT_ARREST && fsm_slip_speed(tables, terms, k, u) > slow) {
                    AT(m.allowed, at, FSM_CHOICE_OPEN) = 0;
                    AT(m.allowed, at, FSM_CHOICE_FORWARD) = 0;
                }
            } else {
                int64_t last = m.two_sided.at[at] == 1 ? FSM_CHOICE_UNDER_BACKWARD : FSM_CHOICE_BACKWARD;
                for (int64_t choice = FSM_CHOICE_FORWARD; choice < last + 1; choice++) {
                    if (choice <= FSM_CHOICE_BACKWARD || choice >= FSM_CHOICE_UNDER_FORWARD) {
                        AT(m.allowed, at, choice) = 1;
                        AT(m.cost, at, choice) = 1.0;
                    }
                }
                if (purpose == FSM_IMPACT_ARREST && fabs(slip) > slow) {
                    int64_t along = slip > 0.0 ? FSM_CHOICE_FORWARD : FSM_CHOICE_BACKWARD;
                    AT(m.allowed, at, FSM_CHOICE_OPEN) = 0;
                    AT(m.allowed, at, along) = 0;
                }
            }
        }
        at++;
    }
    *which_found = fsm_indices_first(which, n);
    *who_found = who;
    return m;
}

/* Ask each striking contact for its speed of rebound; returns by which law they rebound. */
static int64_t set_targets(const struct fsm_tables *tables, const struct fsm_terms *terms,
                           const struct fsm_contact_problem *m, fsm_indices who, fsm_vector speed, int64_t purpose)
{
    int64_t law = FSM_IMPACT_NO_REBOUND;
    double slow = tables->tolerances->speed;
    for (int64_t at = 0; at < who.n; at++) {
        int64_t a = m->normal.at[at];
        double e = terms->restitution.at[who.at[at]];
        if (purpose == FSM_IMPACT_REBOUND && speed.at[a] < -slow && e > 0.0 && m->two_sided.at[at] == 0) {
            if (tables->contact_flags.at[who.at[at]] & FSM_FLAG_POISSON) {
                law = FSM_IMPACT_BY_IMPULSES;
            } else {
                law = fsm_most(law, FSM_IMPACT_BY_SPEEDS);
                m->target.at[a] = -e * speed.at[a];
            }
        }
    }
    return law;
}

/* Poisson's second phase: what was compressed gives back e times the impulse, and friction goes on meanwhile. */
static void expansion_phase(const struct fsm_tables *tables, const struct fsm_terms *terms,
                            const struct fsm_contact_problem *m, fsm_indices who, fsm_vector compression, bool every)
{
    for (int64_t at = 0; at < who.n; at++) {
        if ((tables->contact_flags.at[who.at[at]] & FSM_FLAG_POISSON) == 0 && !every) {
            continue;
        }
        int64_t a = m->normal.at[at];
        m->floor.at[a] = terms->restitution.at[who.at[at]] * compression.at[a];
        if (m->tangent.at[at] >= 0 && m->infinite.at[at] == 0 && m->floor.at[a] > 0.0) {
            AT(m->allowed, at, FSM_CHOICE_OPEN) = 0;
            for (int64_t choice = FSM_CHOICE_PARTED_HOLD; choice < FSM_CHOICE_PARTED_BACKWARD + 1 - m->spatial.at[at];
                 choice++) {
                AT(m->allowed, at, choice) = 1;
                AT(m->cost, at, choice) = choice == FSM_CHOICE_PARTED_HOLD ? 1.0 : 2.0;
            }
        } else if (m->infinite.at[at] == 1 && m->floor.at[a] > 0.0) {
            AT(m->allowed, at, FSM_CHOICE_OPEN) = 0;
            AT(m->allowed, at, FSM_CHOICE_PARTED_HOLD) = 1;
        }
    }
}
