/* Impacts: their problem, laws and energies. */

#include "contacts.h"

/* -- Energy-consistent impacts: largest admissible fraction of the restitution (docs/theory.md, "Impacts"). */

/* Whether contact impulses `forces` (n,), after which the rows have the speeds `motions` (n,), raise the energy.

   The energy is that seen from the moving constraints: the gain is `½ Σ Λ (v⁺ + v⁻)` over all rows. */
FSM_LOCAL bool fsm_gains_energy(const struct fsm_impact_balance *balance, fsm_vector forces, fsm_vector motions)
{
    double gain = balance->base_work, size = fabs(balance->base_work);
    for (int64_t r = 0; r < forces.n; r++) {
        double before = balance->before.at[r], work = balance->work.at[r];
        gain += forces.at[r] * (motions.at[r] + before + work);
        size += fabs(forces.at[r]) * (fabs(motions.at[r]) + fabs(before) + fabs(work));
    }
    return gain > balance->tolerance * size;
}

/* Return the largest β ≤ 1 at which the impulses `plastic + β (forces - plastic)` do not raise the energy.

   `plastic_motions` and `motions` (n,) are the speeds of the rows after the two solutions; the gain is a quadratic in β
   that is not positive at 0. */
FSM_LOCAL double fsm_energy_consistent_fraction(const struct fsm_impact_balance *balance, fsm_vector plastic,
                                                fsm_vector plastic_motions, fsm_vector forces, fsm_vector motions)
{
    if (!fsm_gains_energy(balance, forces, motions)) {
        return 1.0;
    }
    double constant = balance->base_work, linear = 0.0, square = 0.0;
    for (int64_t r = 0; r < plastic.n; r++) { // gain(β) = Σ (P + βD)(V + βE), P and V of the plastic solution
        double step = forces.at[r] - plastic.at[r], rise = motions.at[r] - plastic_motions.at[r];
        double total = plastic_motions.at[r] + balance->before.at[r] + balance->work.at[r];
        constant += plastic.at[r] * total;
        linear += step * total + plastic.at[r] * rise;
        square += step * rise;
    }
    double discriminant = linear * linear - 4.0 * square * constant;
    if (constant >= 0.0 || !(discriminant >= 0.0)) {
        return 0.0;
    }
    double beta; // the positive root, without cancellation
    if (linear > 0.0) {
        beta = -2.0 * constant / (linear + sqrt(discriminant));
    } else if (square > 0.0) {
        beta = (-linear + sqrt(discriminant)) / (2.0 * square);
    } else {
        return 1.0;
    }
    return fsm_smaller(1.0, fsm_larger(0.0, beta));
}

/* -- The contact problem of an impact, and the speeds that its solution leads to (docs/theory.md, "Impacts"). */

/* Return the rows of constraints, and of engaged locks without the flag `except`. */
static fsm_indices rows_except(struct fsm_arena *arena, const struct fsm_tables *tables, fsm_codes states,
                               int64_t except)
{
    fsm_indices rows = fsm_arena_indices(arena, tables->sizes->n_rows);
    int64_t count = 0;
    for (int64_t r = 0; r < rows.n; r++) {
        if (tables->row_role.at[r] == FSM_ROLE_ALWAYS || tables->row_role.at[r] == FSM_ROLE_ALWAYS_POSITION) {
            rows.at[count++] = r;
        }
    }
    for (int64_t k = 0; k < states.n; k++) {
        int64_t flags = tables->contact_flags.at[k];
        if ((flags & FSM_FLAG_SWITCHED) != 0 && (flags & except) == 0 && states.at[k] == FSM_CONTACT_HELD) {
            rows.at[count++] = AT(tables->contact_rows, k, 0);
        }
    }
    return fsm_indices_first(rows, count);
}

/* Return the bilateral constraint rows: constraints, and the locks that are engaged in `states` (n_contacts,). */
FSM_LOCAL fsm_indices fsm_bilateral_rows(struct fsm_arena *arena, const struct fsm_tables *tables, fsm_codes states)
{
    return rows_except(arena, tables, states, 0);
}

/* Return the bilateral constraint rows without those of locks that let go at a force. */
FSM_LOCAL fsm_indices fsm_unlimited_rows(struct fsm_arena *arena, const struct fsm_tables *tables, fsm_codes states)
{
    return rows_except(arena, tables, states, FSM_FLAG_FORCE_LIMIT);
}

/* Allow choice `choice` of contact `at`, at this cost. */
static void allow(const struct fsm_contact_problem *problem, int64_t at, enum fsm_choice choice, double cost)
{
    AT(problem->allowed, at, choice) = 1;
    AT(problem->cost, at, choice) = cost;
}

/* Allow what a contact with infinite friction can do: it is caught. */
static void allow_caught(const struct fsm_resolution *r, const struct fsm_contact_problem *problem, int64_t at,
                         bool single)
{
    int64_t row = AT(r->tables->contact_rows, problem->contact.at[at], 0);
    double speed = fsm_row_speed(r->terms, row, r->u);
    // without a normal impulse it could also slide on; an open one is admitted only if others act on it, or it parts
    AT(problem->allowed, at, FSM_CHOICE_OPEN) = speed > fsm_speed_tolerance(r->tables, row) || !single;
    // where the normal impulse would have to pull, friction alone stops the slip, and the contact opens
    allow(problem, at, FSM_CHOICE_PARTED_HOLD, 3.0);
}

/* Allow a contact with friction to slide; in an impact without collision it does not keep sliding, and of the contacts that
   do not at least one stays closed. */
static void allow_sliding(const struct fsm_resolution *r, const struct fsm_contact_problem *problem, int64_t at,
                          enum fsm_purpose purpose)
{
    int64_t k = problem->contact.at[at];
    double slow = fsm_slip_tolerance(r->tables, k);
    bool arrest = purpose == FSM_IMPACT_ARREST && fsm_slip_speed(r->tables, r->terms, k, r->u) > slow;
    allow(problem, at, FSM_CHOICE_FORWARD, 1.0);
    if (!problem->spatial.at[at]) {
        allow(problem, at, FSM_CHOICE_BACKWARD, 1.0);
        if (problem->bilateral.at[at]) {
            allow(problem, at, FSM_CHOICE_UNDER_FORWARD, 1.0);
            allow(problem, at, FSM_CHOICE_UNDER_BACKWARD, 1.0);
        }
    }
    if (arrest) {
        double slip = fsm_row_speed(r->terms, AT(r->tables->contact_rows, k, 1), r->u);
        bool forward = problem->spatial.at[at] || slip > 0.0;
        problem->excluded.at[at] = FSM_CHOICE_OPEN;
        AT(problem->allowed, at, forward ? FSM_CHOICE_FORWARD : FSM_CHOICE_BACKWARD) = 0;
    }
}

/* Return the unscaled contact problem of the contacts marked in `closed` (n_contacts,) on the velocity level.

   Of several consistent candidates the costs prefer that which stops the slip. */
FSM_LOCAL struct fsm_contact_problem fsm_build_impact_problem(const struct fsm_resolution *r, fsm_indices closed,
                                                              enum fsm_purpose purpose)
{
    int64_t count = 0;
    for (int64_t k = 0; k < closed.n; k++) {
        count += closed.at[k];
    }
    struct fsm_contact_problem problem = fsm_allocate_problem(r->arena, count);
    for (int64_t k = 0; k < closed.n; k++) {
        if (closed.at[k] == 0) {
            continue;
        }
        int64_t at = problem.contact.n;
        fsm_add_contact(&problem, r->tables, k, true);
        AT(problem.allowed, at, FSM_CHOICE_OPEN) = !problem.bilateral.at[at];
        AT(problem.allowed, at, FSM_CHOICE_HOLD) = 1;
        AT(problem.cost, at, FSM_CHOICE_OPEN) = 2.0;
        if (problem.tangent.at[at] < 0) {
            continue;
        }
        problem.kinetic_friction.at[at] = r->terms->kinetic_friction.at[k];
        problem.static_friction.at[at] = r->terms->kinetic_friction.at[k];
        if (problem.infinite.at[at]) {
            allow_caught(r, &problem, at, count == 1);
        } else {
            allow_sliding(r, &problem, at, purpose);
        }
    }
    return problem;
}

/* Write the impact of the bilateral rows alone, from the current speeds; false if they are inconsistent. */
FSM_LOCAL bool fsm_base_impact(const struct fsm_resolution *r, const struct fsm_bilateral_system *bilateral,
                               struct fsm_base_motion *base)
{
    const struct fsm_terms *terms = r->terms;
    fsm_vector u = r->u;
    fsm_indices held = bilateral->held;
    fsm_vector momentum = fsm_arena_vector(r->arena, u.n), target = fsm_arena_vector(r->arena, held.n);
    double twice = 0.0;
    fsm_momentum(terms, u, momentum);
    for (int64_t i = 0; i < u.n; i++) {
        twice += momentum.at[i] * u.at[i];
    }
    for (int64_t k = 0; k < held.n; k++) {
        target.at[k] = -terms->b.at[held.at[k]];
    }
    *base = (struct fsm_base_motion){.u = fsm_arena_vector(r->arena, u.n),
                                     .reaction = fsm_arena_vector(r->arena, held.n),
                                     .scale = sqrt(fsm_larger(twice, 0.0))};
    return fsm_solve_bilateral(bilateral, momentum, target, base->u, base->reaction,
                               fsm_rounding_of(r->tables, terms, u, false));
}

/* Set the speeds to those after contact impulses `forces` (n,) along `rows` (n,); add these and the reactions.

   `held` (m,): the bilateral rows; `response`: the unit responses of the contact rows. */
FSM_LOCAL void fsm_apply_impulses(const struct fsm_resolution *r, fsm_indices rows, fsm_indices held,
                                  const struct fsm_base_motion *base, const struct fsm_response *response,
                                  fsm_vector forces)
{
    fsm_vector u = r->u, impulse = r->outcome->impulse;
    for (int64_t i = 0; i < u.n; i++) {
        u.at[i] = base->u.at[i];
        for (int64_t k = 0; k < rows.n; k++) {
            u.at[i] += AT(response->motions, k, i) * forces.at[k];
        }
    }
    for (int64_t k = 0; k < rows.n; k++) {
        impulse.at[rows.at[k]] += forces.at[k];
    }
    for (int64_t m = 0; m < held.n; m++) {
        impulse.at[held.at[m]] += base->reaction.at[m];
        for (int64_t k = 0; k < rows.n; k++) {
            impulse.at[held.at[m]] += AT(response->reactions, k, m) * forces.at[k];
        }
    }
}

/* -- Impacts: velocities that jump because a contact closes or a constraint is imposed (docs/theory.md, "Impacts").

   `M (u⁺ - u⁻) = AᵀΛ` over bilateral rows and closed contacts with `0 ≤ Λ_n ⊥ v_n⁺ + e v_n⁻ ≥ 0` and Coulomb's
   law for the tangential impulse, of the slip `v_t⁺ + e_t v_t⁻` (Newton, Moreau), or with the normal impulse of compression returned e-fold (Poisson).  Either,
   together with friction, can raise the energy; an energy-consistent impact keeps only the part β of the restitution
   beyond the plastic solution at which it does not (impacts.c).

   F. Pfeiffer and Ch. Glocker, *Multibody Dynamics with Unilateral Contacts*, 1996, ch. 8; B. Brogliato, *Nonsmooth
   Mechanics*. */

#define FSM_MOST_IMPACT_SWEEPS 20000 // of sequential impacts, each over all closed contacts
#define FSM_PULL               1e-12 // part of the largest impulse below which one that pulls is rounding

/* The impact law of the contacts of an impact. */
enum impact_law {
    NO_RESTITUTION,
    NEWTON, // restitution of speeds
    POISSON // restitution of impulses, by some contacts at least
};

/* One impact: its contact problem, unscaled and scaled, and what its energy balance needs. */
struct impact {
    struct fsm_contact_problem unscaled;
    struct fsm_contact_problem problem;
    struct fsm_impact_balance balance;
    enum impact_law law;
    fsm_vector base;     // (n,), speeds of the contact rows without contact impulses
    fsm_vector returned; // (n,), slip that is returned, e_t times that before, at the tangential rows
};

/* Whether the speeds violate the rows of closed contact `k`. */
static bool strikes(const struct fsm_resolution *r, int64_t k)
{
    int64_t row = AT(r->tables->contact_rows, k, 0);
    double slow = fsm_larger(fsm_speed_tolerance(r->tables, row), fsm_speed_of_succession(r, k));
    double speed = fsm_row_speed(r->terms, row, r->u);
    int64_t flags = r->tables->contact_flags.at[k];
    if (speed < -slow || ((flags & FSM_FLAG_TWO_SIDED) && speed > slow)) {
        return true;
    }
    bool caught = (flags & FSM_FLAG_STICKS_ALWAYS) && AT(r->tables->contact_rows, k, 1) >= 0 && speed <= slow;
    return caught && fsm_slip_speed(r->tables, r->terms, k, r->u) > fsm_slip_tolerance(r->tables, k);
}

/* Whether the speeds violate the rows of any closed contact. */
FSM_LOCAL bool fsm_any_strikes(const struct fsm_resolution *r)
{
    for (int64_t k = 0; k < r->closed.n; k++) {
        if (r->closed.at[k] == 1 && strikes(r, k)) {
            return true;
        }
    }
    return false;
}

/* Write the slip that the contact `at`, which strikes, is to return; false if it returns none. */
static bool set_returned(const struct fsm_resolution *r, const struct fsm_contact_problem *unscaled, int64_t at,
                         fsm_vector speed, fsm_vector returned)
{
    double along = r->terms->tangential_restitution.at[unscaled->contact.at[at]];
    int64_t first = unscaled->tangent.at[at];
    bool any = first >= 0 && along > 0.0;
    for (int64_t i = first; any && i < first + (unscaled->spatial.at[at] ? 2 : 1); i++) {
        returned.at[i] = along * speed.at[i];
    }
    return any;
}

/* Set the target speeds of contacts that rebound by Newton's law, and the slip to return; return the law of the impact. */
static enum impact_law set_targets(const struct fsm_resolution *r, const struct fsm_contact_problem *unscaled,
                                   fsm_vector speed, enum fsm_purpose purpose, fsm_vector returned)
{
    enum impact_law law = NO_RESTITUTION;
    if (purpose != FSM_IMPACT_REBOUND) {
        return law;
    }
    for (int64_t at = 0; at < unscaled->contact.n; at++) {
        int64_t k = unscaled->contact.at[at], normal = unscaled->normal.at[at];
        double e = r->terms->restitution.at[k];
        double slow = fsm_speed_tolerance(r->tables, unscaled->row.at[normal]);
        if (!(speed.at[normal] < -slow) || unscaled->bilateral.at[at] || r->answers.at[k] == 1) {
            continue;
        }
        if (set_returned(r, unscaled, at, speed, returned) && law == NO_RESTITUTION) {
            law = NEWTON;
        }
        if (!(e > 0.0)) {
            continue;
        }
        if (r->tables->contact_flags.at[k] & FSM_FLAG_POISSON) {
            law = POISSON;
        } else {
            law = law == NO_RESTITUTION ? NEWTON : law;
            unscaled->target.at[normal] = -e * speed.at[normal];
        }
    }
    return law;
}

/* Prepare Poisson's expansion: contacts return e times the normal impulse of compression (n,), and friction continues.

   `every`: also those that rebound by Newton's law. */
static void set_expansion(const struct fsm_resolution *r, const struct fsm_contact_problem *unscaled,
                          fsm_vector compression, bool every)
{
    for (int64_t at = 0; at < unscaled->contact.n; at++) {
        int64_t k = unscaled->contact.at[at], normal = unscaled->normal.at[at];
        if (((r->tables->contact_flags.at[k] & FSM_FLAG_POISSON) == 0 && !every) || r->answers.at[k] == 1) {
            continue;
        }
        unscaled->floor.at[normal] = r->terms->restitution.at[k] * compression.at[normal];
        if (unscaled->tangent.at[at] < 0 || !(unscaled->floor.at[normal] > 0.0)) {
            continue;
        }
        AT(unscaled->allowed, at, FSM_CHOICE_OPEN) = 0;
        AT(unscaled->allowed, at, FSM_CHOICE_PARTED_HOLD) = 1;
        if (unscaled->infinite.at[at]) {
            continue;
        }
        int64_t last = unscaled->spatial.at[at] ? FSM_CHOICE_PARTED_FORWARD : FSM_CHOICE_PARTED_BACKWARD;
        AT(unscaled->cost, at, FSM_CHOICE_PARTED_HOLD) = 1.0;
        for (int64_t choice = FSM_CHOICE_PARTED_FORWARD; choice <= last; choice++) {
            AT(unscaled->allowed, at, choice) = 1;
            AT(unscaled->cost, at, choice) = 2.0;
        }
    }
}

/* Solve the contact problem of an impact as it is now; returns a status, FSM_CONTINUE also where several motions agree. */
static int64_t solve_impact(const struct fsm_resolution *r, const struct fsm_contact_problem *problem,
                            const struct fsm_contact_solution *solution)
{
    struct fsm_enumeration_result result;
    r->outcome->log.count = 0;
    double tolerance = r->tables->tolerances->impact;
    int64_t status = fsm_solve_contact_problem(r->arena, problem, tolerance, solution, &r->outcome->log, &result);
    return status == FSM_NON_UNIQUE_STATE ? FSM_CONTINUE : status;
}

/* Solve the contact problem of an impact from the speeds `base` (n,) of its rows.

   Coulomb's law is that of the slip after the impact plus what is returned of the slip before: this sum is the motion of
   the problem that is solved. */
static int64_t solve_returning(const struct fsm_resolution *r, const struct impact *impact, fsm_vector base,
                               const struct fsm_contact_solution *solution)
{
    fsm_vector sum = fsm_arena_copy(r->arena, base);
    for (int64_t i = 0; i < sum.n; i++) {
        sum.at[i] += impact->returned.at[i];
    }
    fsm_retarget(&impact->problem, &impact->unscaled, sum);
    int64_t status = solve_impact(r, &impact->problem, solution);
    for (int64_t i = 0; i < sum.n; i++) {
        solution->motions.at[i] -= impact->returned.at[i];
    }
    return status;
}

/* Add the impulses of Poisson's expansion to those of compression. */
static int64_t expand(const struct fsm_resolution *r, const struct impact *impact, bool every,
                      const struct fsm_contact_solution *plastic, const struct fsm_contact_solution *solution)
{
    set_expansion(r, &impact->unscaled, plastic->forces, every);
    int64_t status = solve_returning(r, impact, plastic->motions, solution);
    for (int64_t i = 0; i < plastic->forces.n; i++) {
        solution->forces.at[i] += plastic->forces.at[i];
    }
    return status;
}

/* Find the contact impulses `forces` (n,) of one impact; returns a status. */
static int64_t find_impulses(const struct fsm_resolution *r, const struct impact *impact, fsm_vector forces)
{
    int64_t n = forces.n, count = impact->unscaled.contact.n;
    struct fsm_contact_solution solution = fsm_allocate_solution(r->arena, count, n);
    solution.forces = forces;
    bool jammed = false;
    if (impact->law != POISSON) {
        int64_t status = solve_returning(r, impact, impact->base, &solution);
        if (status == FSM_CONTINUE &&
            (impact->law == NO_RESTITUTION || !fsm_gains_energy(&impact->balance, forces, solution.motions))) {
            return FSM_CONTINUE;
        }
        jammed = status == FSM_INCONSISTENT && impact->law == NEWTON;
        if (status != FSM_CONTINUE && !jammed) {
            return status;
        }
    }
    // the plastic impact: Poisson's compression, and what the energy of Newton's law is compared with
    struct fsm_contact_solution plastic = fsm_allocate_solution(r->arena, count, n);
    fsm_retarget(&impact->problem, &impact->unscaled, impact->base);
    for (int64_t i = 0; i < n; i++) {
        impact->problem.target.at[i] = 0.0;
    }
    int64_t status = solve_impact(r, &impact->problem, &plastic);
    if (status != FSM_CONTINUE) {
        return status;
    }
    if (jammed) { // no speeds of Newton's law lie within the friction cones: the impulses are returned instead
        for (int64_t i = 0; i < n; i++) {
            impact->unscaled.target.at[i] = impact->returned.at[i] = 0.0;
        }
    }
    if (impact->law == POISSON || jammed) {
        status = expand(r, impact, jammed, &plastic, &solution);
        if (status != FSM_CONTINUE) {
            return status;
        }
    }
    double beta =
        fsm_energy_consistent_fraction(&impact->balance, plastic.forces, plastic.motions, forces, solution.motions);
    r->outcome->energy->beta = fsm_smaller(r->outcome->energy->beta, beta);
    for (int64_t i = 0; i < n; i++) {
        forces.at[i] = plastic.forces.at[i] + beta * (forces.at[i] - plastic.forces.at[i]);
    }
    return FSM_CONTINUE;
}

/* Remove impulses that pull: those within the tolerance of the laws would do work nevertheless. */
static void remove_tension(const struct fsm_contact_problem *unscaled, fsm_vector forces)
{
    double largest = 0.0;
    for (int64_t i = 0; i < forces.n; i++) {
        largest = fsm_larger(largest, fabs(forces.at[i]));
    }
    for (int64_t at = 0; at < unscaled->contact.n; at++) {
        int64_t normal = unscaled->normal.at[at], tangent = unscaled->tangent.at[at];
        if (unscaled->bilateral.at[at] || !(forces.at[normal] < -FSM_PULL * largest)) {
            continue;
        }
        forces.at[normal] = 0.0;
        for (int64_t i = 0; tangent >= 0 && !unscaled->infinite.at[at] && i < (unscaled->spatial.at[at] ? 2 : 1); i++) {
            forces.at[tangent + i] = 0.0;
        }
    }
}

/* Return the terms of the energy balance of an impact of the contact rows `rows`. */
static struct fsm_impact_balance impact_balance(const struct fsm_resolution *r, fsm_indices rows, fsm_indices held,
                                                const struct fsm_base_motion *base, const struct fsm_response *response)
{
    struct fsm_impact_balance balance = {.before = fsm_arena_vector(r->arena, rows.n),
                                         .work = fsm_arena_vector(r->arena, rows.n),
                                         .tolerance = r->tables->tolerances->energy};
    for (int64_t i = 0; i < rows.n; i++) {
        balance.before.at[i] = fsm_row_speed(r->terms, rows.at[i], r->u);
    }
    for (int64_t k = 0; k < held.n; k++) { // held rows have no speed after, so only that before counts
        double before = fsm_row_speed(r->terms, held.at[k], r->u);
        balance.base_work += base->reaction.at[k] * before;
        for (int64_t i = 0; i < rows.n; i++) {
            balance.work.at[i] += AT(response->reactions, i, k) * before;
        }
    }
    return balance;
}

/* Carry out one impact of the contacts marked in `closed` (n_contacts,) and all bilateral rows; returns a status.

   Changes the speeds, adds to the impulses, and writes the log and the part of the restitution kept. */
FSM_LOCAL int64_t fsm_simultaneous_impact(const struct fsm_resolution *r, const struct fsm_bilateral_system *bilateral,
                                          fsm_indices closed, enum fsm_purpose purpose)
{
    struct fsm_base_motion base;
    if (!fsm_base_impact(r, bilateral, &base)) {
        return FSM_SINGULAR;
    }
    struct impact impact = {.unscaled = fsm_build_impact_problem(r, closed, purpose)};
    fsm_indices rows = impact.unscaled.row;
    struct fsm_response response = fsm_unit_responses(r->arena, r->terms, bilateral, rows, r->u.n);
    fsm_vector free_response = fsm_free_response(r->arena, r->terms, rows);
    fsm_vector base_speed = fsm_arena_vector(r->arena, rows.n), forces = fsm_arena_vector(r->arena, rows.n);
    for (int64_t i = 0; i < rows.n; i++) {
        base_speed.at[i] = fsm_row_speed(r->terms, rows.at[i], base.u);
    }
    impact.balance = impact_balance(r, rows, bilateral->held, &base, &response);
    impact.base = base_speed;
    impact.returned = fsm_arena_vector(r->arena, rows.n);
    impact.law = set_targets(r, &impact.unscaled, impact.balance.before, purpose, impact.returned);
    impact.problem = fsm_scale_problem(r->arena, &impact.unscaled, response.K, base_speed, free_response, base.scale);
    int64_t status = find_impulses(r, &impact, forces);
    if (status == FSM_CONTINUE) {
        remove_tension(&impact.unscaled, forces);
        fsm_apply_impulses(r, rows, bilateral->held, &base, &response, forces);
    }
    return status;
}

/* Carry out an impact whose workspace is released afterwards. */
static int64_t impact_in_turn(const struct fsm_resolution *r, const struct fsm_bilateral_system *bilateral,
                              fsm_indices closed, enum fsm_purpose purpose)
{
    fsm_mark top = fsm_arena_mark(r->arena);
    int64_t status = fsm_simultaneous_impact(r, bilateral, closed, purpose);
    fsm_arena_release(r->arena, top);
    return status;
}

/* Carry out impacts of one contact after the other, in file order, until none strikes; returns a status. */
static int64_t sequential_impacts(const struct fsm_resolution *r, const struct fsm_bilateral_system *bilateral,
                                  enum fsm_purpose purpose, bool bilateral_violated)
{
    fsm_indices single = fsm_arena_indices(r->arena, r->closed.n);
    if (bilateral_violated) {
        int64_t status = impact_in_turn(r, bilateral, single, purpose);
        if (status != FSM_CONTINUE) {
            return status;
        }
    }
    for (int64_t pass = 0; pass < FSM_MOST_IMPACT_SWEEPS; pass++) {
        if (!fsm_any_strikes(r)) { // what the last sweeps left within the tolerance comes to rest
            return fsm_simultaneous_impact(r, bilateral, r->closed, FSM_IMPACT_PLASTIC);
        }
        for (int64_t k = 0; k < r->closed.n; k++) {
            if (r->closed.at[k] == 0 || !strikes(r, k)) {
                continue;
            }
            single.at[k] = 1;
            int64_t status = impact_in_turn(r, bilateral, single, purpose);
            single.at[k] = 0;
            if (status != FSM_CONTINUE) {
                return status;
            }
        }
    }
    return FSM_IMPACTS_DIVERGE;
}

/* Carry out the impacts of the closed contacts and the bilateral rows if the speeds violate them; returns a status. */
static int64_t resolve_violation(const struct fsm_resolution *r, enum fsm_purpose purpose)
{
    fsm_indices held = fsm_bilateral_rows(r->arena, r->tables, r->outcome->wanted);
    bool violated = false;
    for (int64_t k = 0; k < held.n; k++) {
        violated =
            violated || fabs(fsm_row_speed(r->terms, held.at[k], r->u)) > fsm_speed_tolerance(r->tables, held.at[k]);
    }
    if (!violated && !fsm_any_strikes(r)) {
        return FSM_CONTINUE;
    }
    struct fsm_bilateral_system bilateral = fsm_factor_bilateral(r->arena, r->terms, held, r->u.n);
    if (r->tables->sizes->sequential == 0) {
        return fsm_simultaneous_impact(r, &bilateral, r->closed, purpose);
    }
    return sequential_impacts(r, &bilateral, purpose, violated);
}

/* Carry out the impacts of the closed contacts if the speeds violate rows that hold now; returns a status.

   They are simultaneous or sequential, as the model says. */
FSM_LOCAL int64_t fsm_resolve_impact(const struct fsm_resolution *r, enum fsm_purpose purpose)
{
    fsm_suspend_limited_locks(r);
    int64_t status = resolve_violation(r, purpose);
    fsm_resume_limited_locks(r);
    return status;
}
