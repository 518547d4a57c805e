/* The next mode: the combination of contact states that agrees with forces and accelerations.

   Which answers are admitted, and which is preferred where several agree (docs/theory.md, "Resolution"):

   - the state whose guard fired is left, unless nothing else agrees;
   - a contact that stuck keeps sticking while it can, one whose slip has come to rest sticks if it can (so with
     static above kinetic friction both may agree, and this decides);
   - otherwise the combination that changes least. */

#include "contacts.h"

#define FSM_MODE_SELECTION_CHANGE 1.0 // cost of a state that differs
#define FSM_NO_ACCELERATION 1e-3 // m/s^2; against less than this no acceleration is judged: all of it may be rounding
#define FSM_SMALL_CHANGE    0.25 // cost of the less preferred of two states that both carry on

// how the answer was found (``notes[CHOSEN_BY]``)
#define FSM_CHOSEN_NO_CANDIDATES 0
#define FSM_CHOSEN_UNIQUE        1
#define FSM_CHOSEN_LEAST_CHANGE  2
#define FSM_CHOSEN_POLICY        4 // several motions agreed, and the model says that what changes least goes on

static struct fsm_contact_problem gather(struct fsm_arena *arena, const struct fsm_tables *tables,
                                         const struct fsm_terms *terms, fsm_vector u, fsm_indices before,
                                         fsm_indices event, fsm_indices closed, fsm_codes wanted, fsm_vector sigma,
                                         double slow, fsm_indices *which_found, fsm_indices *who_found);
static void exclude_fired_state(int64_t before, int64_t event, double direction, double sigma, bool two_sided,
                                fsm_indices allowed);
static bool readmit_fired_states(const struct fsm_contact_problem *m, fsm_indices who, fsm_indices event,
                                 fsm_indices before, fsm_index_table wide);
static bool vanishes(const struct fsm_tables *tables, fsm_codes wanted, fsm_matrix K, fsm_vector unheld, int64_t row);
static void admissible_states(const struct fsm_contact_problem *m, int64_t at, int64_t before, int64_t event,
                              double slip, double sigma, double slow);

/* Find the contact states after the instant; fills `wanted` and `sigma`.

   `slack`: see read_slack; it counts for contacts in the event it belongs to.

   Returns
   -------
   status : int
       `GOING`, `INCONSISTENT`, `SEVERAL`, `NON_UNIQUE` or `SINGULAR`.
   tried, consistent, chosen_by : int
       How many combinations were tried and agreed, and how the one taken was found. */
FSM_LOCAL int64_t fsm_select_contact_states(struct fsm_arena *arena, const struct fsm_tables *tables,
                                            const struct fsm_terms *terms, fsm_vector state, fsm_indices before,
                                            fsm_indices event, fsm_vector direction, fsm_matrix slack,
                                            fsm_indices closed, fsm_codes wanted, fsm_vector sigma, fsm_vector log,
                                            int64_t *tried_found, int64_t *consistent, int64_t *chosen_by_found)
{
    int64_t n_u = tables->sizes->n_u, n_contacts = closed.n;
    fsm_vector u = fsm_vector_from(state, tables->sizes->n_q);
    double slow = tables->tolerances->speed;
    for (int64_t k = 0; k < n_contacts; k++) {
        bool parts = closed.at[k] == 1 ? fsm_row_speed(terms, AT(tables->contact_rows, k, 0), u) > slow : false;
        if (parts && (tables->contact_flags.at[k] & FSM_FLAG_TWO_SIDED) == 0) {
            closed.at[k] = 0; // it parts, whatever the accelerations
        }
    }
    fsm_vector force = fsm_arena_copy(arena, fsm_vector_first(terms->f, n_u));
    fsm_add_compliant_forces(tables, terms, u, before, event, wanted, force);
    fsm_indices which;
    fsm_indices who;
    struct fsm_contact_problem m =
        gather(arena, tables, terms, u, before, event, closed, wanted, sigma, slow, &which, &who);
    int64_t n = which.n, count = who.n;
    fsm_indices held = fsm_bilateral_rows(arena, tables, wanted);
    struct fsm_bilateral_system bilateral = fsm_factor_bilateral(arena, terms, held, n_u);
    fsm_vector target = fsm_arena_vector(arena, held.n), base_motion = fsm_arena_vector(arena, n_u),
               reaction = fsm_arena_vector(arena, held.n);
    for (int64_t i = 0; i < held.n; i++) {
        target.at[i] = -terms->gamma.at[held.at[i]];
    }
    double rounding = fsm_rounding_of(terms, fsm_vector_first(u, n_u), true);
    if (!fsm_solve_bilateral(&bilateral, force, target, base_motion, reaction, rounding)) {
        *tried_found = 0;
        *consistent = 0;
        *chosen_by_found = FSM_CHOSEN_NO_CANDIDATES;
        return FSM_SINGULAR;
    }
    fsm_matrix unused;
    fsm_matrix K;
    fsm_delassus_response(arena, terms, &bilateral, which, n_u, &unused, &K);
    fsm_vector base = fsm_arena_vector(arena, n);
    double twice = 0.0;
    for (int64_t r = 0; r < n; r++) {
        base.at[r] = terms->gamma.at[which.at[r]];
        for (int64_t i = 0; i < n_u; i++) {
            base.at[r] += AT(terms->A, which.at[r], i) * base_motion.at[i];
        }
    }
    for (int64_t i = 0; i < n_u; i++) {
        for (int64_t j = 0; j < n_u; j++) {
            twice += base_motion.at[i] * AT(terms->M, i, j) * base_motion.at[j];
        }
    }
    double tolerance = tables->tolerances->acceleration;
    fsm_indices best = fsm_arena_indices(arena, count);
    fsm_vector forces = fsm_arena_vector(arena, n);
    fsm_vector answers = fsm_arena_vector(arena, n);
    double heaviest = 0.0;
    for (int64_t i = 0; i < n_u; i++) {
        heaviest = fsm_larger(heaviest, AT(terms->M, i, i));
    }
    fsm_vector unheld = fsm_free_response(arena, terms, which, n_u);
    double scale = sqrt(fsm_larger(twice, heaviest * fsm_square(FSM_NO_ACCELERATION)));
    fsm_index_table wide = fsm_arena_index_table(arena, count, FSM_CHOICE_COUNT);
    for (int64_t at = 0; at < count; at++) {
        int64_t k = who.at[at];
        for (int64_t choice = 0; choice < FSM_CHOICE_COUNT; choice++) {
            AT(wide, at, choice) = AT(m.allowed, at, choice);
        }
        if (event.at[k] == FSM_EVENT_OPENS || event.at[k] == FSM_EVENT_SLIDES) {
            AT(m.slack, at, 0) = AT(slack, k, 0);
            AT(m.slack, at, 1) = AT(slack, k, 1);
        }
        if (m.normal.at[at] >= 0 && m.two_sided.at[at] == 0 && vanishes(tables, wanted, K, unheld, m.normal.at[at])) {
            for (int64_t choice = FSM_CHOICE_HOLD; choice < FSM_CHOICE_COUNT; choice++) {
                AT(m.allowed, at, choice) = 0;
                AT(wide, at, choice) = 0;
            }
        }
        double kept = m.spatial.at[at] == 0 ? sigma.at[k] : 0.0; // in space slip may go on in any direction
        exclude_fired_state(before.at[k], event.at[k], direction.at[k], kept, m.two_sided.at[at] == 1,
                            fsm_index_row(m.allowed, at));
    }
    struct fsm_contact_problem problem = fsm_scale_problem(arena, &m, K, base, unheld, scale);
    struct fsm_enumeration_result verdict;
    int64_t status =
        fsm_solve_contact_problem(arena, &problem, tolerance, best, forces, answers, who, log, 0, &verdict);
    int64_t tried = verdict.tried, chosen_by = FSM_CHOSEN_NO_CANDIDATES;
    if (count > 0) {
        chosen_by = verdict.consistent == 1 ? FSM_CHOSEN_UNIQUE : FSM_CHOSEN_LEAST_CHANGE;
    }
    if (status == FSM_INCONSISTENT && readmit_fired_states(&m, who, event, before, wide)) {
        const bool each2[] = {true, false};
        for (int64_t n2 = 0; n2 < 2; n2++) {
            bool only_together = each2[n2];
            if (only_together || status == FSM_INCONSISTENT) {
                if (!only_together) {
                    for (int64_t at = 0; at < count; at++) {
                        m.banned.at[at] = -1;
                    }
                }
                status = fsm_solve_contact_problem(arena, &problem, tolerance, best, forces, answers, who, log, tried,
                                                   &verdict);
                tried += verdict.tried;
                chosen_by = only_together ? FSM_CHOSEN_LEAST_CHANGE : FSM_CHOSEN_FIRED_STATE_KEPT;
            }
        }
    }
    if (status == FSM_NON_UNIQUE_STATE && tables->sizes->on_several == 1) {
        status = FSM_CONTINUE;
        chosen_by = FSM_CHOSEN_POLICY;
    }
    if (status != FSM_CONTINUE) {
        *tried_found = tried;
        *consistent = verdict.consistent;
        *chosen_by_found = chosen_by;
        return status;
    }
    fsm_vector old_sigma = fsm_arena_copy(arena, sigma);
    for (int64_t k = 0; k < n_contacts; k++) {
        if (tables->contact_kind.at[k] == FSM_KIND_GAP) {
            wanted.at[k] = FSM_CONTACT_FREE;
        }
        sigma.at[k] = 0.0;
    }
    for (int64_t at = 0; at < count; at++) {
        int64_t choice = best.at[at];
        wanted.at[who.at[at]] = (int8_t)(choice < FSM_CHOICE_UNDER_FORWARD ? fsm_least(choice, FSM_CONTACT_SLIDING)
                                                                           : FSM_CONTACT_SLIDING_UNDER);
        sigma.at[who.at[at]] = fsm_direction_of(choice);
        if (m.spatial.at[at] == 1 && sigma.at[who.at[at]] != 0.0) {
            bool goes_on = before.at[who.at[at]] == FSM_CONTACT_SLIDING;
            sigma.at[who.at[at]] =
                fsm_angle_of(AT(m.way, at, 0), AT(m.way, at, 1), goes_on ? old_sigma.at[who.at[at]] : 0.0);
        }
    }
    *tried_found = tried;
    *consistent = verdict.consistent;
    *chosen_by_found = chosen_by;
    return FSM_CONTINUE;
}

/* Whether the constraints leave nothing of a contact's normal row, as at a dead point: it transmits no force.

   An engaged lock that holds the same row is no such constraint: what rests on it stays closed. */
static bool vanishes(const struct fsm_tables *tables, fsm_codes wanted, fsm_matrix K, fsm_vector unheld, int64_t row)
{
    for (int64_t k = 0; k < wanted.n; k++) {
        if (tables->contact_kind.at[k] == FSM_KIND_LOCK && wanted.at[k] != FSM_CONTACT_FREE) {
            return false;
        }
    }
    return AT(K, row, row) <= FSM_HIDDEN * unheld.at[row];
}

/* The meeting of all contacts that have something to choose, their rows and their numbers. */
static struct fsm_contact_problem gather(struct fsm_arena *arena, const struct fsm_tables *tables,
                                         const struct fsm_terms *terms, fsm_vector u, fsm_indices before,
                                         fsm_indices event, fsm_indices closed, fsm_codes wanted, fsm_vector sigma,
                                         double slow, fsm_indices *which_found, fsm_indices *who_found)
{
    int64_t n_contacts = closed.n;
    fsm_indices who = fsm_arena_indices(arena, n_contacts);
    int64_t count = 0;
    for (int64_t k = 0; k < n_contacts; k++) {
        bool rubs = tables->contact_kind.at[k] == FSM_KIND_COMPLIANT && wanted.at[k] != FSM_CONTACT_FREE &&
                    AT(tables->contact_rows, k, 1) >= 0;
        if (closed.at[k] == 1 || rubs || tables->contact_kind.at[k] == FSM_KIND_DRY_FRICTION) {
            who.at[count] = k;
            count++;
        }
    }
    struct fsm_contact_problem m = fsm_allocate_problem(arena, count);
    fsm_indices which = fsm_arena_indices(arena, 3 * count);
    int64_t n = 0;
    bool gives_way = false;
    for (int64_t k = 0; k < n_contacts; k++) {
        gives_way = gives_way || event.at[k] == FSM_EVENT_SLIDES;
    }
    for (int64_t at = 0; at < count; at++) {
        int64_t k = who.at[at];
        int64_t kind = tables->contact_kind.at[k], flags = tables->contact_flags.at[k];
        if (kind == FSM_KIND_GAP) {
            m.normal.at[at] = n;
            which.at[n] = AT(tables->contact_rows, k, 0);
            n++;
        }
        m.two_sided.at[at] = (flags & FSM_FLAG_TWO_SIDED) ? 1 : 0;
        m.infinite.at[at] = (flags & FSM_FLAG_STICKS_ALWAYS) ? 1 : 0;
        double slip = 0.0;
        if (AT(tables->contact_rows, k, 1) >= 0) {
            m.tangent.at[at] = n;
            which.at[n] = AT(tables->contact_rows, k, 1);
            n++;
            slip = fsm_row_speed(terms, AT(tables->contact_rows, k, 1), u);
            if (flags & FSM_FLAG_IN_SPACE) {
                m.spatial.at[at] = 1;
                which.at[n] = AT(tables->contact_rows, k, 1) + 1;
                double across = fsm_row_speed(terms, which.at[n], u);
                n++;
                AT(m.way, at, 0) = slip;
                AT(m.way, at, 1) = across;
                slip = hypot(slip, across);
            }
            double load = kind == FSM_KIND_COMPLIANT ? terms->elastic.at[k] : 1.0;
            m.static_friction.at[at] = load * terms->static_friction.at[k];
            m.kinetic_friction.at[at] = load * terms->kinetic_friction.at[k];
        }
        // as if it had been held
        bool flush = kind == FSM_KIND_GAP && AT(tables->contact_ends, k, 0) >= 0 && before.at[k] == FSM_CONTACT_FREE;
        admissible_states(&m, at, flush ? FSM_CONTACT_HELD : before.at[k], event.at[k], slip, sigma.at[k], slow);
        if (gives_way && m.spatial.at[at] == 1 && before.at[k] == FSM_CONTACT_SLIDING &&
            event.at[k] != FSM_EVENT_STICKS) {
            AT(m.cost, at, FSM_CHOICE_FORWARD) = 0.0; // at its limit and not slipping yet: it lets go with the others
        }
    }
    *which_found = fsm_indices_first(which, n);
    *who_found = fsm_indices_first(who, count);
    return m;
}

/* List the choices a contact has by its velocities, and what each would cost. */
static void admissible_states(const struct fsm_contact_problem *m, int64_t at, int64_t before, int64_t event,
                              double slip, double sigma, double slow)
{
    int64_t came = before;
    if (event == FSM_EVENT_CLOSES) {
        came = FSM_CONTACT_HELD;
    }
    if (m->normal.at[at] >= 0 && m->two_sided.at[at] == 0) {
        AT(m->allowed, at, FSM_CHOICE_OPEN) = 1;
        AT(m->cost, at, FSM_CHOICE_OPEN) = came == FSM_CONTACT_FREE ? 0.0 : FSM_MODE_SELECTION_CHANGE;
    }
    if (m->tangent.at[at] < 0 || m->infinite.at[at] == 1) {
        AT(m->allowed, at, FSM_CHOICE_HOLD) = 1;
        AT(m->cost, at, FSM_CHOICE_HOLD) = came == FSM_CONTACT_HELD ? 0.0 : FSM_SMALL_CHANGE;
        return;
    }
    if (m->spatial.at[at] == 1) {
        bool turns = event == FSM_EVENT_STICKS || event == FSM_EVENT_SLIDES;
        m->slipping.at[at] = slip > (turns ? FSM_TURNING * slow : slow) ? 1 : 0;
        AT(m->allowed, at, FSM_CHOICE_HOLD) = 1 - m->slipping.at[at];
        AT(m->allowed, at, FSM_CHOICE_FORWARD) = 1;
        AT(m->cost, at, FSM_CHOICE_HOLD) = came == FSM_CONTACT_HELD ? 0.0 : FSM_SMALL_CHANGE;
        AT(m->cost, at, FSM_CHOICE_FORWARD) =
            came == FSM_CONTACT_SLIDING ? 2.0 * FSM_SMALL_CHANGE : FSM_MODE_SELECTION_CHANGE;
        if (m->slipping.at[at] == 1) {
            double next1 = AT(m->way, at, 0) / slip;
            double next2 = AT(m->way, at, 1) / slip;
            double next3 = 0.0;
            AT(m->way, at, 0) = next1;
            AT(m->way, at, 1) = next2;
            AT(m->cost, at, FSM_CHOICE_FORWARD) = next3;
        }
        return;
    }
    bool under = m->two_sided.at[at] == 1;
    bool still = fabs(slip) <= slow || event == FSM_EVENT_STICKS || event == FSM_EVENT_SLIDES;
    if (!still) {
        m->slipping.at[at] = 1;
        AT(m->allowed, at, slip > 0.0 ? FSM_CHOICE_FORWARD : FSM_CHOICE_BACKWARD) = 1;
        if (under) {
            AT(m->allowed, at, slip > 0.0 ? FSM_CHOICE_UNDER_FORWARD : FSM_CHOICE_UNDER_BACKWARD) = 1;
            AT(m->cost, at, FSM_CHOICE_UNDER_BACKWARD) =
                came == FSM_CONTACT_SLIDING_UNDER ? 0.0 : FSM_MODE_SELECTION_CHANGE;
            AT(m->cost, at, FSM_CHOICE_UNDER_FORWARD) = AT(m->cost, at, FSM_CHOICE_UNDER_BACKWARD);
            AT(m->cost, at, FSM_CHOICE_BACKWARD) = came == FSM_CONTACT_SLIDING_UNDER ? FSM_MODE_SELECTION_CHANGE : 0.0;
            AT(m->cost, at, FSM_CHOICE_FORWARD) = AT(m->cost, at, FSM_CHOICE_BACKWARD);
        }
        return;
    }
    AT(m->allowed, at, FSM_CHOICE_HOLD) = 1;
    AT(m->cost, at, FSM_CHOICE_HOLD) = came == FSM_CONTACT_HELD ? 0.0 : FSM_SMALL_CHANGE;
    const int64_t each4[] = {FSM_CHOICE_FORWARD, FSM_CHOICE_BACKWARD, FSM_CHOICE_UNDER_FORWARD,
                             FSM_CHOICE_UNDER_BACKWARD};
    for (int64_t n4 = 0; n4 < 4; n4++) {
        int64_t choice = each4[n4];
        if (choice <= FSM_CHOICE_BACKWARD || under) {
            AT(m->allowed, at, choice) = 1;
            bool same = came >= FSM_CONTACT_SLIDING && (sigma > 0.0) == (fsm_direction_of(choice) > 0.0);
            AT(m->cost, at, choice) = same ? 2.0 * FSM_SMALL_CHANGE : FSM_MODE_SELECTION_CHANGE;
        }
    }
}

/* Strike out the state whose guard fired; at a release or a friction limit it would still look consistent. */
static void exclude_fired_state(int64_t before, int64_t event, double direction, double sigma, bool two_sided,
                                fsm_indices allowed)
{
    if (event == FSM_EVENT_OPENS && two_sided) { // pressed on the other face now
        bool over = before == FSM_CONTACT_SLIDING;
        for (int64_t choice = FSM_CHOICE_FORWARD; choice < FSM_CHOICE_COUNT; choice++) {
            if ((choice >= FSM_CHOICE_UNDER_FORWARD) != over) {
                allowed.at[choice] = 0;
            }
        }
    } else if (event == FSM_EVENT_OPENS) {
        for (int64_t choice = FSM_CHOICE_HOLD; choice < FSM_CHOICE_COUNT; choice++) {
            allowed.at[choice] = 0;
        }
    } else if (event == FSM_EVENT_SLIDES) {
        allowed.at[FSM_CHOICE_HOLD] = 0;
        for (int64_t choice = FSM_CHOICE_FORWARD; choice < FSM_CHOICE_COUNT; choice++) {
            if (fsm_direction_of(choice) * direction < 0.0) {
                allowed.at[choice] = 0;
            }
        }
    } else if (event == FSM_EVENT_STICKS && sigma != 0.0) {
        for (int64_t choice = FSM_CHOICE_FORWARD; choice < FSM_CHOICE_COUNT; choice++) {
            if (fsm_direction_of(choice) * sigma > 0.0) {
                allowed.at[choice] = 0;
            }
        }
    }
}

/* Allow the states that fired again, but not all of them together; returns whether that allows anything more. */
static bool readmit_fired_states(const struct fsm_contact_problem *m, fsm_indices who, fsm_indices event,
                                 fsm_indices before, fsm_index_table wide)
{
    bool more = false;
    for (int64_t at = 0; at < who.n; at++) {
        for (int64_t choice = 0; choice < FSM_CHOICE_COUNT; choice++) {
            more = more || AT(m->allowed, at, choice) != AT(wide, at, choice);
            AT(m->allowed, at, choice) = AT(wide, at, choice);
        }
        if (event.at[who.at[at]] == FSM_EVENT_SLIDES ||
            (event.at[who.at[at]] == FSM_EVENT_OPENS && before.at[who.at[at]] == FSM_CONTACT_HELD)) {
            m->banned.at[at] = FSM_CHOICE_HOLD;
        }
    }
    return more;
}
