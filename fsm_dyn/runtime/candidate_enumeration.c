/* Candidate enumeration for a contact island.

   So it is known which candidate is chosen, and how many others are consistent (docs/theory.md, "Resolution"). */

#include "elementary.h"
#include "contacts.h"

#define FSM_SAME_MOTION 1e-6  // motions that differ by less than this part of the scale are one
#define FSM_EXACT       1e-3  // part of the tolerance up to which redundant rows are inconsistent by rounding alone
#define FSM_INEXACT     100.0 // cost of rows that agree no better than that: more than all contacts can cost
#define FSM_BRACING     1e4   // cost of contacts that can brace each other: more than all else can cost

/* Contacts of a problem as one number: as bits where a double has enough of them, else, of up to FSM_LISTED contacts, the
   negative of their numbers from 1 as digits to the base FSM_LISTED_BASE.  Otherwise a number that a double does not represent
   exactly, and readers omit. */
#define FSM_EXACT_BITS 53
#define FSM_LISTED  5
#define FSM_LISTED_BASE 1024.0
static double contacts_as_number(fsm_indices contact)
{
    double bits = 0.0, digits = 0.0;
    for (int64_t k = 0; k < contact.n; k++) {
        bits += fsm_pow(2.0, (double)contact.at[k]);
        digits = FSM_LISTED_BASE * digits + (double)(contact.at[k] + 1);
    }
    bool few = contact.n <= FSM_LISTED && contact.n > 0 && (double)contact.at[contact.n - 1] < FSM_LISTED_BASE - 1.0;
    return few && contact.at[contact.n - 1] >= FSM_EXACT_BITS ? -digits : bits;
}

/* Enter one candidate in the log; one that no longer fits is only counted. */
static void enter_candidate(struct fsm_candidate_log *log, const struct fsm_contact_problem *problem,
                            fsm_indices choices, const struct fsm_candidate_result *trial)
{
    int64_t at = FSM_LOG_WIDTH * log->count++;
    if (at + FSM_LOG_WIDTH > log->entries.n) {
        return;
    }
    double digits = 0.0;
    for (int64_t k = 0; k < choices.n; k++) {
        digits = 10.0 * digits + (double)choices.at[k];
    }
    log->entries.at[at] = contacts_as_number(problem->contact);
    log->entries.at[at + 1] = digits;
    log->entries.at[at + 2] = trial->violation;
    log->entries.at[at + 3] = 1000.0 * (double)trial->law + (double)problem->contact.at[trial->contact];
}

/* Whether all contacts that together have to leave their states keep them. */
static bool is_excluded(const struct fsm_contact_problem *problem, fsm_indices choices)
{
    bool any = false;
    for (int64_t k = 0; k < choices.n; k++) {
        if (problem->excluded.at[k] >= 0) {
            any = true;
            if (problem->excluded.at[k] != choices.at[k]) {
                return false;
            }
        }
    }
    return any;
}

/* Different motions, counted up to 2; the first is kept in `first` (n,). */
struct motion_count {
    fsm_vector first;
    int64_t found;
};

/* Count the motion `v` (n,), if it differs from the first by more than `close`. */
static void count_motion(struct motion_count *count, fsm_vector v, double close)
{
    if (count->found == 0) {
        fsm_put(count->first, v);
        count->found = 1;
    }
    for (int64_t i = 0; i < v.n && count->found == 1; i++) {
        count->found += fabs(v.at[i] - count->first.at[i]) > close;
    }
}

/* Whether all contacts stick that stuck just before and are not at a limit. */
static bool goes_on(const struct fsm_contact_problem *problem, fsm_indices choices)
{
    for (int64_t k = 0; k < choices.n; k++) {
        if (problem->lasting.at[k] && choices.at[k] != FSM_CHOICE_HOLD) {
            return false;
        }
    }
    return true;
}

/* Of several motions the one that continues is taken, if the candidate kept has it: sticking ends at a limit of
   friction. */
static void decide_by_continuity(struct fsm_enumeration_result *result, const struct motion_count *all,
                                 const struct motion_count *going_on, bool best_goes_on)
{
    result->continuity = all->found > 1 && going_on->found == 1 && best_goes_on;
    result->motions = result->continuity ? 1 : all->found;
}

/* Return the cost of a consistent candidate.

   Redundant rows that nearly agree make contacts stick that slide slowly: what agrees exactly is preferred, and what needs
   no contacts that brace each other. */
static double total_cost(const struct fsm_contact_problem *problem, fsm_indices choices,
                         const struct fsm_candidate_result *found, double tolerance)
{
    double total = found->remainder > FSM_EXACT * tolerance ? FSM_INEXACT : 0.0;
    total += found->braced ? FSM_BRACING : 0.0;
    for (int64_t k = 0; k < choices.n; k++) {
        total += AT(problem->cost, k, choices.at[k]);
    }
    return total;
}

/* Set the first allowed candidate; false if a contact has no allowed choice. */
static bool first_candidate(fsm_indices choices, fsm_index_table allowed)
{
    for (int64_t k = 0; k < choices.n; k++) {
        while (choices.at[k] < FSM_CHOICE_COUNT && !AT(allowed, k, choices.at[k])) {
            choices.at[k]++;
        }
        if (choices.at[k] == FSM_CHOICE_COUNT) {
            return false;
        }
    }
    return true;
}

/* Step to the next allowed candidate; false after the last. */
static bool next_candidate(fsm_indices choices, fsm_index_table allowed)
{
    for (int64_t k = 0; k < choices.n; k++) {
        for (int64_t choice = choices.at[k] + 1; choice < FSM_CHOICE_COUNT; choice++) {
            if (AT(allowed, k, choice)) {
                choices.at[k] = choice;
                return true;
            }
        }
        choices.at[k] = 0;
        while (choices.at[k] < FSM_CHOICE_COUNT - 1 && !AT(allowed, k, choices.at[k])) {
            choices.at[k]++;
        }
    }
    return false;
}

/* Try every allowed candidate and keep the consistent one of least cost.

   `tolerance`: violation up to which a law counts as satisfied, as a fraction of the scale.  `best`, scaled, and the slip
   directions in the problem become those of the candidate kept. */
FSM_LOCAL struct fsm_enumeration_result fsm_enumerate_candidates(struct fsm_arena *arena,
                                                                 const struct fsm_contact_problem *problem,
                                                                 double tolerance,
                                                                 const struct fsm_contact_solution *best,
                                                                 struct fsm_candidate_log *log)
{
    int64_t count = problem->normal.n, n = problem->K.n;
    struct fsm_contact_solution trial = fsm_allocate_solution(arena, count, n);
    fsm_matrix directions = fsm_arena_matrix(arena, count, 2);
    struct motion_count all = {fsm_arena_vector(arena, n), 0}, going_on = {fsm_arena_vector(arena, n), 0};
    bool best_goes_on = false;
    struct fsm_enumeration_result result = {.nearest = FSM_NO_CANDIDATE};
    if (!first_candidate(trial.choices, problem->allowed)) {
        return result;
    }
    double least = FSM_NO_CANDIDATE;
    do {
        fsm_mark top = fsm_arena_mark(arena);
        struct fsm_candidate_result found =
            fsm_evaluate_candidate(arena, problem, trial.choices, trial.forces, trial.motions, tolerance);
        fsm_arena_release(arena, top);
        if (found.violation <= tolerance && is_excluded(problem, trial.choices)) {
            found = (struct fsm_candidate_result){1.0, FSM_LAW_EXCLUDED, 0, 0.0, 0.0, false, found.shared};
        }
        enter_candidate(log, problem, trial.choices, &found);
        result.tried++;
        result.shared += found.shared;
        if (!(found.violation <= tolerance)) {
            result.nearest = fsm_smaller(result.nearest, found.violation);
            result.undetermined += found.law == FSM_LAW_MOTION_INDETERMINATE;
            result.non_finite += !fsm_is_finite(found.violation);
            continue;
        }
        result.consistent++;
        result.braced += found.braced;
        if (found.excess <= tolerance) {
            double close = FSM_SAME_MOTION * fsm_reference_scale(problem, trial.forces);
            count_motion(&all, trial.motions, close);
            if (goes_on(problem, trial.choices) && !found.braced) {
                count_motion(&going_on, trial.motions, close);
            }
        }
        double cost = total_cost(problem, trial.choices, &found, tolerance);
        if (cost < least) {
            least = cost;
            best_goes_on = goes_on(problem, trial.choices);
            fsm_put_indices(best->choices, trial.choices);
            fsm_put(best->forces, trial.forces);
            fsm_put(best->motions, trial.motions);
            for (int64_t k = 0; k < count; k++) {
                fsm_put(fsm_row(directions, k), fsm_row(problem->slip_direction, k));
            }
        }
    } while (next_candidate(trial.choices, problem->allowed));
    if (least >= FSM_BRACING) {
        result.braced = 0;
    }
    decide_by_continuity(&result, &all, &going_on, best_goes_on);
    for (int64_t k = 0; k < count; k++) {
        fsm_put(fsm_row(problem->slip_direction, k), fsm_row(directions, k));
    }
    return result;
}
