/* Redundant rows of a mode embedded online whose friction changes the motion: they bear what equal springs would
   (docs/theory.md, "Shares that the motion depends on").  They stand first among the rows left out. */

#include "online.h"

#define FSM_CHANGES_MOTION 1e-4 // part of the forces of rows, above which what redundant ones add up to changes the motion
#define FSM_TAKES_PART     1e-9 // entry of a null vector above which a row takes part in it

static bool is_constraint(const struct fsm_online_mode *o, int64_t row)
{
    return o->row_role.at[row] == FSM_ROLE_ALWAYS || o->row_role.at[row] == FSM_ROLE_ALWAYS_POSITION;
}

/* Write the combination of the rows held that vanishes, one for row `d` of those left out. */
static void null_vector(struct fsm_online_mode *o, int64_t d)
{
    const int64_t *chart = o->chart.at;
    double *w = o->room.at, *g = w + chart[FSM_ONLINE_AT_G];
    int64_t U = o->sizes->n_u, R = o->sizes->n_rows, rank = chart[FSM_ONLINE_RANK];
    const int64_t *rows = chart + FSM_ONLINE_LISTS, *speeds = rows + 2 * R;
    double *vector = w + chart[FSM_ONLINE_AT_OPEN] + d * R;
    int64_t row = rows[rank + d];
    for (int64_t k = 0; k < rank; k++) {
        g[k] = w[chart[FSM_ONLINE_AT_A] + row * U + speeds[k]];
    }
    fsm_solve_transposed(o, w + chart[FSM_ONLINE_AT_P], U + 2, g);
    for (int64_t r = 0; r < R; r++) {
        vector[r] = 0.0;
    }
    vector[row] = 1.0;
    for (int64_t k = 0; k < rank; k++) {
        vector[rows[k]] = -g[k];
    }
}

/* Return the entry of Gᵀ for row `k` of those listed and a speed. */
static double force_entry(struct fsm_online_mode *o, int64_t k, int64_t speed)
{
    const int64_t *chart = o->chart.at;
    const double *A = o->room.at + chart[FSM_ONLINE_AT_A];
    int64_t U = o->sizes->n_u, contact = chart[FSM_ONLINE_LISTS + o->sizes->n_rows + k];
    double entry = A[chart[FSM_ONLINE_LISTS + k] * U + speed];
    for (int64_t i = 0; contact >= 0 && i < fsm_tangent_count(o, contact); i++) {
        entry -= fsm_friction_ratio(o, contact, i) * A[(AT(o->contact_rows, contact, 1) + i) * U + speed];
    }
    return entry;
}

/* Return the shares of row `d` of those left out: (rank,) parts of the pushes on the rows kept, then workspace. */
static double *shares_of(struct fsm_online_mode *o, int64_t d)
{
    int64_t R = o->sizes->n_rows;
    return o->room.at + o->chart.at[FSM_ONLINE_AT_OPEN] + (R + d) * R;
}

/* Solve `S C = R` for the shares C, by elimination; S is symmetric and positive definite. */
static void solve_for_shares(struct fsm_online_mode *o, int64_t rank, int64_t count)
{
    for (int64_t d = 0; d < count; d++) {
        double *pivot = shares_of(o, d), inverse = 1.0 / pivot[rank + d];
        for (int64_t j = 0; j < rank + count; j++) {
            pivot[j] *= inverse;
        }
        for (int64_t other = 0; other < count; other++) {
            double *row = shares_of(o, other), factor = row[rank + d];
            for (int64_t j = 0; other != d && j < rank + count; j++) {
                row[j] -= factor * pivot[j];
            }
        }
    }
}

/* Work out what the redundant rows bear on whose shares the motion depends.

   With the redundant rows `A_D = R A_K` and R without constraint rows, `R'`, equal springs bear `λ_D = R' λ_K`.  In terms of
   the pushes `ν = λ_K + Rᵀ λ_D` on the rows kept this is `λ_D = C ν`, `(1 + R' Rᵀ) C = R'`. */
FSM_LOCAL void fsm_online_shares(struct fsm_online_mode *o)
{
    const int64_t *chart = o->chart.at, *rows = chart + FSM_ONLINE_LISTS;
    const double *vectors = o->room.at + chart[FSM_ONLINE_AT_OPEN];
    int64_t R = o->sizes->n_rows, rank = chart[FSM_ONLINE_RANK], count = chart[FSM_ONLINE_SHARED];
    for (int64_t d = 0; d < count; d++) {
        null_vector(o, d);
        double *shares = shares_of(o, d);
        for (int64_t k = 0; k < rank; k++) { // constraint rows do not yield beside contacts, which are equal springs
            bool spring = is_constraint(o, rows[rank + d]) || !is_constraint(o, rows[k]);
            shares[k] = spring ? -vectors[d * R + rows[k]] : 0.0;
        }
    }
    for (int64_t d = 0; d < count; d++) {
        double *shares = shares_of(o, d);
        for (int64_t other = 0; other < count; other++) {
            shares[rank + other] = d == other ? 1.0 : 0.0;
            for (int64_t k = 0; k < rank; k++) {
                shares[rank + other] -= shares[k] * vectors[other * R + rows[k]];
            }
        }
    }
    solve_for_shares(o, rank, count);
}

/* Return by how much an entry of Gᵀ for the push on row `k` of those kept differs from that of the row's own force. */
FSM_LOCAL double fsm_shared_entry(struct fsm_online_mode *o, int64_t k, int64_t speed)
{
    const int64_t *chart = o->chart.at, *rows = chart + FSM_ONLINE_LISTS;
    int64_t R = o->sizes->n_rows, rank = chart[FSM_ONLINE_RANK];
    double entry = 0.0;
    for (int64_t d = 0; d < chart[FSM_ONLINE_SHARED]; d++) {
        double share = shares_of(o, d)[k];
        if (share == 0.0) {
            continue;
        }
        const double *vector = o->room.at + chart[FSM_ONLINE_AT_OPEN] + d * R;
        double friction = force_entry(o, rank + d, speed);
        for (int64_t j = 0; j < rank; j++) {
            friction += vector[rows[j]] == 0.0 ? 0.0 : vector[rows[j]] * force_entry(o, j, speed);
        }
        entry += share * friction;
    }
    return entry;
}

/* Turn pushes on the rows kept into the forces of these rows and of those that share the load with them. */
FSM_LOCAL void fsm_share_multipliers(struct fsm_online_mode *o)
{
    const int64_t *chart = o->chart.at, *rows = chart + FSM_ONLINE_LISTS;
    double *multipliers = o->room.at + chart[FSM_ONLINE_AT_MULTIPLIERS];
    int64_t R = o->sizes->n_rows, rank = chart[FSM_ONLINE_RANK];
    for (int64_t d = 0; d < chart[FSM_ONLINE_SHARED]; d++) {
        double force = 0.0;
        for (int64_t k = 0; k < rank; k++) {
            force += shares_of(o, d)[k] * multipliers[rows[k]];
        }
        multipliers[rows[rank + d]] = force;
    }
    for (int64_t d = 0; d < chart[FSM_ONLINE_SHARED]; d++) {
        const double *vector = o->room.at + chart[FSM_ONLINE_AT_OPEN] + d * R;
        for (int64_t k = 0; k < rank; k++) {
            multipliers[rows[k]] += vector[rows[k]] * multipliers[rows[rank + d]];
        }
    }
}

/* Whether the forces of a null vector of the rows add up to friction that changes the motion. */
static bool changes_motion(struct fsm_online_mode *o, int64_t d)
{
    const int64_t *chart = o->chart.at;
    const double *w = o->room.at, *vector = w + chart[FSM_ONLINE_AT_OPEN] + d * o->sizes->n_rows;
    int64_t U = o->sizes->n_u;
    double largest = 0.0, remainder = 0.0;
    for (int64_t j = 0; j < U; j++) {
        double inertia = w[chart[FSM_ONLINE_AT_M] + j * (U + 1)], total = 0.0;
        double scale = inertia > 0.0 ? 1.0 / sqrt(inertia) : 1.0;
        for (int64_t k = 0; k < chart[FSM_ONLINE_ACTIVE]; k++) {
            double entry = force_entry(o, k, j) * scale;
            largest = fsm_larger(largest, fabs(entry));
            total += vector[chart[FSM_ONLINE_LISTS + k]] * entry;
        }
        remainder = fsm_larger(remainder, fabs(total));
    }
    return remainder > FSM_CHANGES_MOTION * largest;
}

/* Whether contacts that slide in space, in directions that change with the motion, take part in a null vector. */
static bool may_turn_about(struct fsm_online_mode *o, int64_t d)
{
    const int64_t *chart = o->chart.at, *rows = chart + FSM_ONLINE_LISTS;
    const double *vector = o->room.at + chart[FSM_ONLINE_AT_OPEN] + d * o->sizes->n_rows;
    for (int64_t k = 0; k < chart[FSM_ONLINE_ACTIVE]; k++) {
        int64_t contact = rows[o->sizes->n_rows + k];
        if (contact >= 0 && fsm_tangent_count(o, contact) > 1 && fabs(vector[rows[k]]) > FSM_TAKES_PART &&
            (fsm_friction_ratio(o, contact, 0) != 0.0 || fsm_friction_ratio(o, contact, 1) != 0.0)) {
            return true;
        }
    }
    return false;
}

/* Whether row `d` of those left out shares forces with the first `count`. */
static bool shares_with(const struct fsm_online_mode *o, int64_t d, int64_t count)
{
    int64_t R = o->sizes->n_rows;
    const double *vectors = o->room.at + o->chart.at[FSM_ONLINE_AT_OPEN];
    for (int64_t other = 0; other < count; other++) {
        for (int64_t r = 0; r < R; r++) {
            if (fabs(vectors[d * R + r]) > FSM_TAKES_PART && fabs(vectors[other * R + r]) > FSM_TAKES_PART) {
                return true;
            }
        }
    }
    return false;
}

/* Put row `d` of those left out, with its vector, in the place of row `to`. */
static void put_first(struct fsm_online_mode *o, int64_t d, int64_t to)
{
    int64_t *chart = o->chart.at, R = o->sizes->n_rows, rank = chart[FSM_ONLINE_RANK];
    fsm_swap_indices(chart, FSM_ONLINE_LISTS + rank + d, FSM_ONLINE_LISTS + rank + to);
    fsm_swap_indices(chart, FSM_ONLINE_LISTS + R + rank + d, FSM_ONLINE_LISTS + R + rank + to);
    for (int64_t r = 0; r < R; r++) {
        fsm_swap_entries(o->room.at + chart[FSM_ONLINE_AT_OPEN], d * R + r, to * R + r);
    }
}

/* Find which of the rows left out share the load with others so that the motion depends on it, and put them first.

   The rows kept are eliminated; terms and slip directions are in the workspace. */
FSM_LOCAL void fsm_find_shared_rows(struct fsm_online_mode *o)
{
    int64_t *chart = o->chart.at, count = chart[FSM_ONLINE_ACTIVE] - chart[FSM_ONLINE_RANK], shared = 0, before;
    for (int64_t d = 0; d < count; d++) {
        null_vector(o, d);
    }
    do {
        before = shared;
        for (int64_t d = shared; d < count; d++) {
            if (shares_with(o, d, shared) || may_turn_about(o, d) || changes_motion(o, d)) {
                put_first(o, d, shared++);
            }
        }
    } while (shared > before);
    chart[FSM_ONLINE_SHARED] = shared;
}
