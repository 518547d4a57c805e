/* The laws of contact and friction in one instant: which combination of choices keeps them.

   All combinations of a connected set of contacts are tried, so that what is chosen, and how many others would have
   done, is known (docs/theory.md, "Resolution").  Where contacts repeat each other, keeping the laws is a question of
   feasibility (feasibility): rows may be redundant, choices never are. */

#include "contacts.h"

#define FSM_CANDIDATE_ENUMERATION_SAME 1e-6 // motions that differ by less than this part of the scale are one
#define FSM_STIRS   1e-8  // a redundant force that moves its contacts by more than this leaves the motion open
#define FSM_EXACT   1e-3  // part of the tolerance up to which rows that repeat each other differ by rounding alone
#define FSM_INEXACT 100.0 // cost of rows that agree no better than that: more than all contacts can cost

// which law a combination breaks
#define FSM_LAW_KEPT                  0
#define FSM_LAW_TENSION               1
#define FSM_LAW_PENETRATION_RATE      2
#define FSM_LAW_FRICTION_EXCEEDED     3
#define FSM_LAW_SLIP_AGAINST_FRICTION 4
#define FSM_LAW_NO_SOLUTION           5
#define FSM_LAW_MOTION_INDETERMINATE  6 // the forces are open, and the motion with them
#define FSM_LAW_EXCLUDED              7 // the states whose guard fired together

static bool affects_motion(const struct fsm_contact_problem *m, fsm_matrix basis);
static double friction_slack(const struct fsm_contact_problem *m, int64_t k, fsm_vector y);
static bool is_banned(const struct fsm_contact_problem *m, fsm_indices choices);
static int64_t count_motion(int64_t motions, fsm_vector first, fsm_vector v, double close);

/* The magnitude against which the laws are judged. */
FSM_LOCAL double fsm_reference_scale(const struct fsm_contact_problem *m, fsm_vector y)
{
    double scale = fsm_larger(m->scale.at[0], 1e-300);
    for (int64_t i = 0; i < y.n; i++) {
        scale = fsm_larger(fsm_larger(fsm_larger(scale, fabs(y.at[i])), fabs(m->base.at[i] - m->target.at[i])),
                           fabs(m->floor.at[i]));
    }
    return scale;
}

/* The laws on forces as `g y >= h`: no pull, and the static limit where a contact sticks. */
static fsm_matrix inequalities(struct fsm_arena *arena, const struct fsm_contact_problem *m, fsm_indices choices,
                               fsm_vector *h_found, int64_t *count_found)
{
    int64_t n = m->K.n, count = choices.n;
    fsm_matrix g = fsm_arena_matrix(arena, 3 * count, n);
    fsm_vector h = fsm_arena_vector(arena, 3 * count);
    int64_t at = 0;
    for (int64_t k = 0; k < count; k++) {
        int64_t choice = choices.at[k], a = m->normal.at[k], b = m->tangent.at[k];
        if (a >= 0 && !fsm_meeting_is_open(choice) && (m->two_sided.at[k] == 0 || fsm_direction_of(choice) != 0.0)) {
            AT(g, at, a) = fsm_side_of(choice);
            h.at[at] = m->floor.at[a];
            at++;
        }
        if (b < 0 || (choice != FSM_CHOICE_HOLD && choice != FSM_CHOICE_PARTED_HOLD) || m->infinite.at[k] == 1 ||
            m->spatial.at[k] == 1) {
            continue; // the circle of friction in space is asked of the forces of smallest norm, as in the modes
        }
        const double each1[] = {-1.0, 1.0};
        for (int64_t n1 = 0; n1 < 2; n1++) {
            double sign = each1[n1];
            AT(g, at, b) = sign;
            if (a >= 0) {
                AT(g, at, a) = m->static_friction.at[k];
            } else {
                h.at[at] = -m->static_friction.at[k];
            }
            at++;
        }
    }
    *h_found = fsm_vector_first(h, at);
    *count_found = at;
    return fsm_matrix_first(g, at);
}

/* Solve one combination and judge it; where forces are open, `y` becomes a choice that keeps the laws. */
FSM_LOCAL struct fsm_candidate_result fsm_evaluate_candidate(struct fsm_arena *arena,
                                                             const struct fsm_contact_problem *m, fsm_indices choices,
                                                             fsm_vector y, fsm_vector v, double tolerance)
{
    int64_t n = m->K.n;
    arena->top->solved++;
    fsm_matrix basis;
    double remainder = fsm_solve_candidate(arena, m, choices, y, v, &basis);
    double scale = fsm_reference_scale(m, y);
    if (remainder > tolerance * scale) {
        return (struct fsm_candidate_result){remainder / scale, FSM_LAW_NO_SOLUTION, 0, 0.0, remainder / scale};
    }
    if (basis.m > 0) {
        fsm_vector h;
        int64_t count;
        fsm_matrix g = inequalities(arena, m, choices, &h, &count);
        fsm_vector slack = fsm_arena_vector(arena, count);
        fsm_matrix along = fsm_arena_matrix(arena, count, basis.m);
        bool needed = false;
        for (int64_t i = 0; i < count; i++) {
            slack.at[i] = -h.at[i];
            for (int64_t j = 0; j < n; j++) {
                slack.at[i] += AT(g, i, j) * y.at[j];
                for (int64_t a = 0; a < basis.m; a++) {
                    AT(along, i, a) += AT(g, i, j) * AT(basis, j, a);
                }
            }
            needed = needed || slack.at[i] < 0.0;
        }
        if (needed) {
            fsm_vector s;
            fsm_maximise_margin(arena, along, slack, scale, &s);
            for (int64_t j = 0; j < n; j++) {
                for (int64_t a = 0; a < basis.m; a++) {
                    y.at[j] += AT(basis, j, a) * s.at[a];
                }
            }
        }
    }
    double worst = -1.0;
    int64_t law = FSM_LAW_KEPT;
    int64_t who = 0;
    double excess = -1.0;
    for (int64_t k = 0; k < choices.n; k++) {
        int64_t choice = choices.at[k], a = m->normal.at[k], b = m->tangent.at[k];
        double along_slip = fsm_direction_of(choice);
        double amount = -1.0;
        if (a >= 0 && fsm_meeting_is_open(choice)) {
            amount = m->target.at[a] - v.at[a] - (1.0 + m->kinetic_friction.at[k]) * AT(m->slack, k, 0);
            if (amount > worst) {
                worst = amount;
                law = FSM_LAW_PENETRATION_RATE;
                who = k;
            }
        } else if (a >= 0 && (m->two_sided.at[k] == 0 || along_slip != 0.0)) {
            amount = m->floor.at[a] - fsm_side_of(choice) * y.at[a] - AT(m->slack, k, 0);
            if (amount > worst) {
                worst = amount;
                law = FSM_LAW_TENSION;
                who = k;
            }
        }
        if (b >= 0 && (choice == FSM_CHOICE_HOLD || choice == FSM_CHOICE_PARTED_HOLD) && m->infinite.at[k] == 0) {
            double load = 1.0;
            if (a >= 0) {
                load = m->two_sided.at[k] == 1 ? fabs(y.at[a]) : y.at[a];
            }
            double friction = m->spatial.at[k] == 1 ? hypot(y.at[b], y.at[b + 1]) : fabs(y.at[b]);
            amount = friction - m->static_friction.at[k] * load;
            excess = fsm_larger(excess, friction - m->kinetic_friction.at[k] * load);
            if (amount > worst) {
                worst = amount;
                law = FSM_LAW_FRICTION_EXCEEDED;
                who = k;
            }
        }
        if (b >= 0 && along_slip != 0.0 && m->slipping.at[k] == 0) {
            amount = -along_slip * v.at[b];
            if (m->spatial.at[k] == 1) { // with its slip, and not beside it
                double beside = fabs(AT(m->way, k, 0) * v.at[b + 1] - AT(m->way, k, 1) * v.at[b]);
                amount = fsm_larger(beside, -AT(m->way, k, 0) * v.at[b] - AT(m->way, k, 1) * v.at[b + 1]);
            }
            amount -= friction_slack(m, k, y);
            if (amount > worst) {
                worst = amount;
                law = FSM_LAW_SLIP_AGAINST_FRICTION;
                who = k;
            }
        }
    }
    if (basis.m > 0 && worst <= tolerance * scale && affects_motion(m, basis)) {
        return (struct fsm_candidate_result){1.0, FSM_LAW_MOTION_INDETERMINATE, 0, 0.0, 0.0};
    }
    return (struct fsm_candidate_result){worst / scale, law, who, excess / scale, remainder / scale};
}

/* How far the friction of a contact that begins to slide may be from its limit; in space that is known squared. */
static double friction_slack(const struct fsm_contact_problem *m, int64_t k, fsm_vector y)
{
    double given = AT(m->slack, k, 1);
    int64_t a = m->normal.at[k];
    if (given == 0.0 || m->spatial.at[k] == 0) {
        return given;
    }
    double bound = m->static_friction.at[k] * (a >= 0 ? fabs(y.at[a]) : 1.0);
    return given / (bound + sqrt(given));
}

/* Whether forces that the equations leave open move anything. */
static bool affects_motion(const struct fsm_contact_problem *m, fsm_matrix basis)
{
    int64_t n = m->K.n;
    for (int64_t a = 0; a < basis.m; a++) {
        double largest = 0.0, work = 0.0;
        for (int64_t i = 0; i < n; i++) {
            largest = fsm_larger(largest, fabs(AT(basis, i, a)));
            for (int64_t j = 0; j < n; j++) {
                work += AT(basis, i, a) * AT(m->K, i, j) * AT(basis, j, a);
            }
        }
        if (work > FSM_STIRS * largest * largest) {
            return true;
        }
    }
    return false;
}

/* Enter one candidate in the log of the instant; what no longer fits is left out. */
FSM_LOCAL void fsm_write_log(fsm_vector log, int64_t at, fsm_indices choices, fsm_indices who,
                             struct fsm_candidate_result trial)
{
    if ((at + 1) * FSM_LOG_WIDTH > log.n) {
        return;
    }
    double members = 0.0, code = 0.0;
    for (int64_t k = 0; k < choices.n; k++) {
        members += pow(2.0, (double)who.at[k]);
        code = 10.0 * code + (double)choices.at[k];
    }
    log.at[at * FSM_LOG_WIDTH] = members;
    log.at[at * FSM_LOG_WIDTH + 1] = code;
    log.at[at * FSM_LOG_WIDTH + 2] = trial.violation;
    log.at[at * FSM_LOG_WIDTH + 3] = 1000.0 * (double)trial.law + (double)who.at[trial.contact];
}

/* Try every allowed combination of choices and keep the consistent one of least cost.

   Parameters
   ----------
   arena : Arena
   m : Meeting
   tolerance : float
       Violation up to which a law counts as kept, as a fraction of the scales at hand.
   best, forces, answers
       Out: the choices taken (n_contacts,), forces (n,) and motions (n,), scaled.
   who, log, logged
       Contacts in the numbering of the model; log of candidates, and how many it holds already. */
FSM_LOCAL struct fsm_enumeration_result fsm_enumerate_candidates(struct fsm_arena *arena,
                                                                 const struct fsm_contact_problem *m, double tolerance,
                                                                 fsm_indices best, fsm_vector forces,
                                                                 fsm_vector answers, fsm_indices who, fsm_vector log,
                                                                 int64_t logged)
{
    int64_t count = m->normal.n, n = m->K.n;
    fsm_indices choices = fsm_arena_indices(arena, count);
    fsm_matrix ways = fsm_arena_matrix(arena, count, 2);
    fsm_vector y = fsm_arena_vector(arena, n), v = fsm_arena_vector(arena, n), first = fsm_arena_vector(arena, n);
    for (int64_t k = 0; k < count; k++) {
        while (choices.at[k] < FSM_CHOICE_COUNT && AT(m->allowed, k, choices.at[k]) == 0) {
            choices.at[k]++;
        }
        if (choices.at[k] == FSM_CHOICE_COUNT) {
            return (struct fsm_enumeration_result){0, 0, 0, 0, FSM_CANDIDATE_ENUMERATION_WORST};
        }
    }
    int64_t consistent = 0;
    int64_t tried = 0;
    int64_t motions = 0;
    int64_t undetermined = 0;
    double nearest = FSM_CANDIDATE_ENUMERATION_WORST;
    double least = FSM_CANDIDATE_ENUMERATION_WORST;
    bool going = true;
    while (going) {
        fsm_mark top = fsm_arena_mark(arena);
        struct fsm_candidate_result trial = fsm_evaluate_candidate(arena, m, choices, y, v, tolerance);
        fsm_arena_release(arena, top);
        if (trial.violation <= tolerance && is_banned(m, choices)) {
            trial = (struct fsm_candidate_result){1.0, FSM_LAW_EXCLUDED, 0, 0.0, 0.0};
        }
        fsm_write_log(log, logged + tried, choices, who, trial);
        tried++;
        if (!(trial.violation <= tolerance)) {
            nearest = fsm_smaller(nearest, trial.violation);
            undetermined += trial.law == FSM_LAW_MOTION_INDETERMINATE ? 1 : 0;
        } else {
            consistent++;
            if (trial.excess <= tolerance) {
                motions = count_motion(motions, first, v, FSM_CANDIDATE_ENUMERATION_SAME * fsm_reference_scale(m, y));
            }
            // rows that nearly agree make contacts stick that slide slowly: what agrees exactly goes first
            double total = trial.apart > FSM_EXACT * tolerance ? FSM_INEXACT : 0.0;
            for (int64_t k = 0; k < count; k++) {
                total += AT(m->cost, k, choices.at[k]);
            }
            if (total < least) {
                least = total;
                fsm_put_indices(best, choices);
                fsm_put(forces, y);
                fsm_put(answers, v);
                for (int64_t k = 0; k < count; k++) {
                    AT(ways, k, 0) = AT(m->way, k, 0);
                    AT(ways, k, 1) = AT(m->way, k, 1);
                }
            }
        }
        going = fsm_advance_choices(choices, m->allowed);
    }
    for (int64_t k = 0; k < count; k++) {
        AT(m->way, k, 0) = AT(ways, k, 0);
        AT(m->way, k, 1) = AT(ways, k, 1);
    }
    return (struct fsm_enumeration_result){consistent, tried, motions, undetermined, nearest};
}

/* Whether all contacts that together have to leave their states keep them. */
static bool is_banned(const struct fsm_contact_problem *m, fsm_indices choices)
{
    bool some = false;
    for (int64_t k = 0; k < choices.n; k++) {
        if (m->banned.at[k] >= 0) {
            some = true;
            if (m->banned.at[k] != choices.at[k]) {
                return false;
            }
        }
    }
    return some;
}

static int64_t count_motion(int64_t motions, fsm_vector first, fsm_vector v, double close)
{
    if (motions == 0) {
        fsm_put(first, v);
        return 1;
    }
    for (int64_t i = 0; i < v.n; i++) {
        if (fabs(v.at[i] - first.at[i]) > close) {
            return 2;
        }
    }
    return motions;
}

/* Step to the next allowed combination; False after the last. */
FSM_LOCAL bool fsm_advance_choices(fsm_indices choices, fsm_index_table allowed)
{
    for (int64_t k = 0; k < choices.n; k++) {
        for (int64_t choice = choices.at[k] + 1; choice < FSM_CHOICE_COUNT; choice++) {
            if (AT(allowed, k, choice) == 1) {
                choices.at[k] = choice;
                return true;
            }
        }
        choices.at[k] = 0;
        while (choices.at[k] < FSM_CHOICE_COUNT - 1 && AT(allowed, k, choices.at[k]) == 0) {
            choices.at[k]++;
        }
    }
    return false;
}
