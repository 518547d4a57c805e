/* Charts of modes embedded online: independent speeds, multipliers, shares, slip. */

#include "elementary.h"
#include "online.h"

/* -- Slip of the contacts of a mode embedded online, and the friction forces against it.

   In the plane the slip direction is a sign of the discrete state.  In space it follows the slip, and is the one kept in
   the discrete state where there is hardly any (docs/theory.md, "Friction in space"); either way its components stand in
   the workspace at `AT_WAY` while a state is worked on. */

/* Return a row times the vector of speeds or accelerations at `vector`, plus its entry of `constant`. */
FSM_LOCAL double fsm_product_with_row(struct fsm_online_mode *o, int64_t row, int64_t vector, int64_t constant)
{
    double *w = o->room.at;
    int64_t U = o->sizes->n_u;
    int64_t at = o->chart.at[FSM_ONLINE_AT_A] + row * U;
    double total = w[constant + row];
    for (int64_t e = o->row_begin.at[row]; e < o->row_begin.at[row + 1]; e++) {
        int64_t j = o->row_columns.at[e];
        total += w[at + j] * w[vector + j];
    }
    return total;
}

/* Return how many rows a contact slips along: none, one, or in space two. */
FSM_LOCAL int64_t fsm_tangent_count(struct fsm_online_mode *o, int64_t k)
{
    if (AT(o->contact_rows, k, 1) < 0) {
        return 0;
    }
    return (o->contact_flags.at[k] & FSM_FLAG_IN_SPACE) ? 2 : 1;
}

/* Return the slip of a contact along the direction kept in the discrete state; or its rate, of accelerations. */
FSM_LOCAL double fsm_slip_along(struct fsm_online_mode *o, const double *c, int64_t k, int64_t vector, int64_t constant)
{
    const struct fsm_sizes *s = o->sizes;
    int64_t row = AT(o->contact_rows, k, 1);
    double sigma = c[fsm_sigma_at(s) + k];
    double first = fsm_product_with_row(o, row, vector, constant);
    if (fsm_tangent_count(o, k) == 1) {
        return sigma * first;
    }
    return fsm_cos(sigma) * first + fsm_sin(sigma) * fsm_product_with_row(o, row + 1, vector, constant);
}

/* Write the slip direction of a sliding contact, one component or two, at the state `AT_X` whose rows are in the
   workspace. */
FSM_LOCAL void fsm_online_slip_direction(struct fsm_online_mode *o, const double *c, int64_t k, double *way)
{
    int64_t *chart = o->chart.at;
    double sigma = c[fsm_sigma_at(o->sizes) + k];
    way[0] = sigma;
    if (fsm_tangent_count(o, k) == 2) {
        int64_t speeds = chart[FSM_ONLINE_AT_X] + o->sizes->n_q, row = AT(o->contact_rows, k, 1);
        double first = fsm_product_with_row(o, row, speeds, chart[FSM_ONLINE_AT_B]);
        double second = fsm_product_with_row(o, row + 1, speeds, chart[FSM_ONLINE_AT_B]);
        way[0] = fsm_cos(sigma);
        way[1] = fsm_sin(sigma);
        double slow = o->limits->follows, ahead = way[0] * first + way[1] * second, rest = 1.0 - ahead / slow;
        double lead = ahead > slow ? 0.0 : ahead > 0.0 ? slow * rest * rest : slow - 2.0 * ahead;
        first += lead * way[0];
        second += lead * way[1];
        double speed = sqrt(first * first + second * second);
        way[0] = first / speed;
        way[1] = second / speed;
    }
}

/* Write the slip directions of all sliding contacts. */
FSM_LOCAL void fsm_online_slip_directions(struct fsm_online_mode *o, const double *c)
{
    int64_t *chart = o->chart.at;
    for (int64_t b = 0; b < chart[FSM_ONLINE_BUSY]; b++) {
        int64_t k = chart[FSM_ONLINE_LISTS + 2 * o->sizes->n_rows + o->sizes->n_u + b];
        if (o->states.at[k] >= FSM_CONTACT_SLIDING && fsm_tangent_count(o, k) > 0) {
            fsm_online_slip_direction(o, c, k, o->room.at + chart[FSM_ONLINE_AT_WAY] + 2 * k);
        }
    }
}

/* Return the friction of a sliding contact per unit of normal force, along tangent row `i` of it; signed. */
FSM_LOCAL double fsm_friction_ratio(struct fsm_online_mode *o, int64_t k, int64_t i)
{
    int64_t *chart = o->chart.at;
    double *w = o->room.at;
    double ratio = w[chart[FSM_ONLINE_AT_KINETIC] + k] * w[chart[FSM_ONLINE_AT_WAY] + 2 * k + i];
    return o->states.at[k] == FSM_CONTACT_SLIDING_UNDER ? -ratio : ratio;
}

/* -- Chart of an active set: its independent rows, and the dependent speeds.

   Asked when a mode is first evaluated in a run and when its pivot falls below the chart threshold.  Rows are scaled by
   `diag(M)^-1/2` and normalised, so that the answer does not depend on units.  Rank and rows by pivoted
   orthogonalisation (QR); dependent speeds by a pivoted QR of the columns, of rows held and rows of forces at once,
   because both are divided by; their order by complete pivoting (docs/theory.md, "Online embedding"). */

static void sort_rest(int64_t *chart, int64_t columns, int64_t first, int64_t last);

/* Whether shares of redundant rows can affect the motion: without sliding friction no forces without effect on the rows do. */
static bool shares_may_count(const int64_t *chart)
{
    int64_t rank = chart[FSM_ONLINE_RANK];
    return chart[FSM_ONLINE_SLIDES] == 1 && 0 < rank && rank < chart[FSM_ONLINE_ACTIVE];
}

/* List the rows that a mode holds, constraints first, and mark the normals of sliding contacts. */
FSM_LOCAL void fsm_list_rows(struct fsm_online_mode *o)
{
    int64_t *chart = o->chart.at;
    int64_t R = o->sizes->n_rows;
    int64_t count = 0;
    chart[FSM_ONLINE_SLIDES] = 0;
    chart[FSM_ONLINE_PUSHES] = 0;
    chart[FSM_ONLINE_BUSY] = 0;
    chart[FSM_ONLINE_SPAN] = 0;
    chart[FSM_ONLINE_SHARED] = 0;
    for (int64_t r = 0; r < R; r++) {
        if (o->row_role.at[r] == FSM_ROLE_ALWAYS || o->row_role.at[r] == FSM_ROLE_ALWAYS_POSITION) {
            chart[FSM_ONLINE_LISTS + count] = r;
            chart[FSM_ONLINE_LISTS + R + count] = -1;
            count++;
        }
    }
    for (int64_t k = 0; k < o->sizes->n_contacts; k++) {
        int64_t code = o->states.at[k], flags = o->contact_flags.at[k], outline = o->contact_outline.at[k];
        if (outline >= 0) {
            chart[FSM_ONLINE_SPAN] = fsm_most(chart[FSM_ONLINE_SPAN], k - outline);
        }
        if (code == FSM_CONTACT_FREE) {
            continue;
        }
        int64_t normal = AT(o->contact_rows, k, 0), tangent = AT(o->contact_rows, k, 1);
        chart[FSM_ONLINE_LISTS + 2 * R + o->sizes->n_u + chart[FSM_ONLINE_BUSY]] = k;
        chart[FSM_ONLINE_BUSY]++;
        if ((flags & FSM_FLAG_FRICTION_ONLY) != 0 || (flags & FSM_FLAG_COMPLIANT) != 0) {
            chart[FSM_ONLINE_PUSHES] = 1;
        }
        if (normal >= 0 && (flags & FSM_FLAG_COMPLIANT) == 0) {
            bool slides = code >= FSM_CONTACT_SLIDING && tangent >= 0;
            chart[FSM_ONLINE_LISTS + count] = normal;
            chart[FSM_ONLINE_LISTS + R + count] = slides ? k : -1;
            if (slides) {
                chart[FSM_ONLINE_SLIDES] = 1;
            }
            count++;
        }
        int64_t tangents = code == FSM_CONTACT_HELD ? fsm_tangent_count(o, k) : 0;
        for (int64_t i = 0; i < tangents; i++) {
            chart[FSM_ONLINE_LISTS + count] = tangent + i;
            chart[FSM_ONLINE_LISTS + R + count] = -1;
            count++;
        }
    }
    chart[FSM_ONLINE_ACTIVE] = count;
    chart[FSM_ONLINE_RANK] = count;
    for (int64_t j = 0; j < o->sizes->n_u; j++) {
        chart[FSM_ONLINE_LISTS + 2 * R + j] = j;
    }
}

/* Scale rows to unit length; rows that vanish beside the others become zero. */
static void normalise(double *w, int64_t at, int64_t count, int64_t U)
{
    double largest = 0.0;
    for (int64_t k = 0; k < count; k++) {
        largest = fsm_larger(largest, fsm_square_of(w, at + k * U, U, 1));
    }
    for (int64_t k = 0; k < count; k++) {
        double norm = fsm_square_of(w, at + k * U, U, 1);
        double factor = norm > FSM_HOLDS_NOTHING * FSM_HOLDS_NOTHING * largest ? 1.0 / sqrt(norm) : 0.0;
        for (int64_t j = 0; j < U; j++) {
            w[at + k * U + j] *= factor;
        }
    }
}

/* Write Gᵀ of the first rows listed as fsm_force_rows does, all entries of each. */
static void full_force_rows(struct fsm_online_mode *o, int64_t count, int64_t out)
{
    int64_t *chart = o->chart.at;
    double *w = o->room.at;
    int64_t at_A = chart[FSM_ONLINE_AT_A], U = o->sizes->n_u, R = o->sizes->n_rows;
    const int64_t *speeds = chart + FSM_ONLINE_LISTS + 2 * R;
    for (int64_t k = 0; k < count; k++) {
        int64_t row = chart[FSM_ONLINE_LISTS + k], contact = chart[FSM_ONLINE_LISTS + R + k];
        for (int64_t j = 0; j < U; j++) {
            w[out + k * U + j] = w[at_A + row * U + speeds[j]];
        }
        int64_t tangents = contact >= 0 ? fsm_tangent_count(o, contact) : 0;
        for (int64_t i = 0; i < tangents; i++) {
            int64_t tangent = AT(o->contact_rows, contact, 1) + i;
            double ratio = fsm_friction_ratio(o, contact, i);
            for (int64_t j = 0; j < U; j++) {
                w[out + k * U + j] -= ratio * w[at_A + tangent * U + speeds[j]];
            }
        }
    }
}

/* Write the first rows listed, and the rows of their forces, scaled and normalised. */
static void scaled_rows(struct fsm_online_mode *o, int64_t count, int64_t A, int64_t H)
{
    int64_t *chart = o->chart.at;
    double *w = o->room.at;
    int64_t at_A = chart[FSM_ONLINE_AT_A], at_M = chart[FSM_ONLINE_AT_M];
    int64_t U = o->sizes->n_u, R = o->sizes->n_rows;
    int64_t columns = FSM_ONLINE_LISTS + 2 * R;
    full_force_rows(o, count, H);
    for (int64_t k = 0; k < count; k++) {
        int64_t row = at_A + chart[FSM_ONLINE_LISTS + k] * U;
        for (int64_t j = 0; j < U; j++) {
            double inertia = w[at_M + chart[columns + j] * (U + 1)];
            double scale = inertia > 0.0 ? 1.0 / sqrt(inertia) : 1.0;
            w[A + k * U + j] = w[row + chart[columns + j]] * scale;
            w[H + k * U + j] *= scale;
        }
    }
    normalise(w, A, count, U);
    normalise(w, H, count, U);
}

/* Write all rows listed as scaled_rows does, each by how much there is of it. */
static void weighted_rows(struct fsm_online_mode *o, int64_t A, int64_t H)
{
    int64_t count = o->chart.at[FSM_ONLINE_ACTIVE], U = o->sizes->n_u;
    scaled_rows(o, count, A, H);
    for (int64_t k = 0; k < count; k++) {
        double part = fsm_part_of_row(o, o->chart.at[FSM_ONLINE_LISTS + k]);
        for (int64_t j = 0; j < U; j++) {
            o->room.at[A + k * U + j] *= part;
        }
    }
}

/* Choose the chart of a mode at a state; it holds until the mode is left or its pivot falls below the chart threshold.
   */
FSM_LOCAL void fsm_online_choose_chart(struct fsm_online_mode *o, double t, const double *x, const double *c)
{
    int64_t *chart = o->chart.at;
    double *w = o->room.at;
    int64_t at_A = chart[FSM_ONLINE_AT_A], at_q_dot = chart[FSM_ONLINE_AT_Q_DOT], at_x = chart[FSM_ONLINE_AT_X],
            at_H = chart[FSM_ONLINE_AT_H];
    int64_t at_Q = chart[FSM_ONLINE_AT_Q];
    int64_t n_q = o->sizes->n_q, U = o->sizes->n_u, R = o->sizes->n_rows;
    chart[FSM_ONLINE_CHOSEN] = 1;
    chart[FSM_ONLINE_CHOICES]++;
    o->limits->level = 0.0;
    fsm_list_rows(o);
    if (chart[FSM_ONLINE_ACTIVE] == 0) {
        fsm_list_nonzero(o);
        fsm_keep_chart(o);
        return;
    }
    for (int64_t i = 0; i < n_q + U; i++) {
        w[at_x + i] = x[i];
    }
    o->programs.at[FSM_ONLINE_ROWS](t, w + at_x, c, w + at_A);
    o->programs.at[FSM_ONLINE_MOTION](t, w + at_x, c, w + at_q_dot);
    fsm_online_slip_directions(o, c);
    scaled_rows(o, chart[FSM_ONLINE_ACTIVE], at_Q, at_H);
    fsm_choose_rows(o, at_Q);
    if (chart[FSM_ONLINE_RANK] < chart[FSM_ONLINE_ACTIVE]) { // of those that may be kept, not one that vanishes
        fsm_list_rows(o);
        weighted_rows(o, at_Q, at_H);
        fsm_choose_rows(o, at_Q);
    }
    scaled_rows(o, chart[FSM_ONLINE_RANK], at_Q, at_H);
    fsm_choose_columns(o, at_Q, at_H);
    scaled_rows(o, chart[FSM_ONLINE_RANK], at_Q, at_H);
    fsm_order_chart(o, at_Q, at_H);
    sort_rest(chart, FSM_ONLINE_LISTS + 2 * R, chart[FSM_ONLINE_RANK], U);
    fsm_list_nonzero(o);
    if (shares_may_count(chart)) {
        fsm_eliminate_held_rows(o, t, x, c);
        fsm_find_shared_rows(o);
        fsm_list_nonzero(o);
    }
    fsm_keep_chart(o);
}

/* Put the independent speeds in the order of the model. */
static void sort_rest(int64_t *chart, int64_t columns, int64_t first, int64_t last)
{
    for (int64_t i = first + 1; i < last; i++) {
        for (int64_t j = i; j > first; j--) {
            if (chart[columns + j - 1] <= chart[columns + j]) {
                break;
            }
            fsm_swap_indices(chart, columns + j - 1, columns + j);
        }
    }
}

/* -- Multipliers of a mode embedded online, and the indeterminate multipliers where its rows are redundant. */

static void determinate_forces(struct fsm_online_mode *o, int64_t k);
static void indeterminate_forces(struct fsm_online_mode *o, int64_t at, int64_t width);
static void minimum_norm_multipliers(struct fsm_online_mode *o);
static int64_t hidden_row(struct fsm_online_mode *o, int64_t k);
static void subtract_component(struct fsm_online_mode *o, int64_t at, int64_t along);

/* Write λ of every row, from the dependent rows: `G_Dᵀ λ = (M u̇ - f)_D`. */
FSM_LOCAL void fsm_online_multipliers(struct fsm_online_mode *o)
{
    int64_t *chart = o->chart.at;
    double *w = o->room.at;
    int64_t at_M = chart[FSM_ONLINE_AT_M], at_hidden_M = chart[FSM_ONLINE_AT_HIDDEN_M];
    int64_t at_hidden_f = chart[FSM_ONLINE_AT_HIDDEN_F], at_hidden_A = chart[FSM_ONLINE_AT_HIDDEN_A];
    int64_t at_P = chart[FSM_ONLINE_AT_P], at_H = chart[FSM_ONLINE_AT_H], at_force = chart[FSM_ONLINE_AT_FORCE],
            at_g = chart[FSM_ONLINE_AT_G];
    int64_t at_u_dot = chart[FSM_ONLINE_AT_U_DOT], at_multipliers = chart[FSM_ONLINE_AT_MULTIPLIERS];
    const struct fsm_sizes *s = o->sizes;
    int64_t U = s->n_u, R = s->n_rows, K = s->n_k, rank = chart[FSM_ONLINE_RANK];
    int64_t columns = FSM_ONLINE_LISTS + 2 * R;
    int64_t at = at_P, width = U + 2;
    if (chart[FSM_ONLINE_SLIDES] == 1) {
        at = at_H;
        width = U;
    }
    for (int64_t r = 0; r < R; r++) {
        w[at_multipliers + r] = 0.0;
    }
    for (int64_t k = 0; k < rank; k++) {
        int64_t i = chart[columns + k];
        w[at_g + k] = -w[at_force + i];
        for (int64_t e = o->mass_begin.at[i]; e < o->mass_begin.at[i + 1]; e++) {
            int64_t j = o->mass_columns.at[e];
            w[at_g + k] += w[at_M + i * U + j] * w[at_u_dot + j];
        }
    }
    fsm_solve_transposed(o, w + at, width, w + at_g);
    for (int64_t k = 0; k < rank; k++) {
        w[at_multipliers + chart[FSM_ONLINE_LISTS + k]] = w[at_g + k];
    }
    fsm_share_multipliers(o);
    for (int64_t b = 0; b < chart[FSM_ONLINE_BUSY]; b++) {
        determinate_forces(o, chart[columns + U + b]);
    }
    if (chart[FSM_ONLINE_ACTIVE] > rank + chart[FSM_ONLINE_SHARED]) {
        indeterminate_forces(o, at, width);
        minimum_norm_multipliers(o);
    }
    for (int64_t k = 0; k < K; k++) {
        double total = -w[at_hidden_f + k];
        for (int64_t j = 0; j < U; j++) {
            total += w[at_hidden_M + k * U + j] * w[at_u_dot + j];
        }
        for (int64_t r = 0; r < R; r++) {
            if (o->row_role.at[r] != FSM_ROLE_KINEMATIC) {
                total -= w[at_hidden_A + r * K + k] * w[at_multipliers + r];
            }
        }
        w[at_multipliers + hidden_row(o, k)] = total;
    }
}

/* Solve with the transpose of the eliminated rows, in place. */
FSM_LOCAL void fsm_solve_transposed(const struct fsm_online_mode *o, const double *rows, int64_t width, double *right)
{
    int64_t rank = o->chart.at[FSM_ONLINE_RANK];
    for (int64_t m = 0; m < rank; m++) {
        right[m] *= rows[m * width + m];
        for (int64_t e = o->held_behind.at[m]; e < o->held_rest.at[m]; e++) {
            int64_t k = o->held_columns.at[e];
            right[k] -= rows[m * width + k] * right[m];
        }
    }
    for (int64_t k = rank - 1; k >= 0; k--) {
        for (int64_t e = o->below_begin.at[k]; e < o->below_begin.at[k + 1]; e++) {
            int64_t i = o->below_rows.at[e];
            right[k] -= rows[i * width + k] * right[i];
        }
    }
}

/* Write, for every row left out but those that share the load, the forces on all rows that together do nothing. */
static void indeterminate_forces(struct fsm_online_mode *o, int64_t at, int64_t width)
{
    int64_t *chart = o->chart.at;
    double *w = o->room.at;
    int64_t at_A = chart[FSM_ONLINE_AT_A], at_g = chart[FSM_ONLINE_AT_G], at_open = chart[FSM_ONLINE_AT_OPEN];
    int64_t U = o->sizes->n_u, R = o->sizes->n_rows, rank = chart[FSM_ONLINE_RANK];
    int64_t columns = FSM_ONLINE_LISTS + 2 * R;
    int64_t tangent;
    for (int64_t d = chart[FSM_ONLINE_SHARED]; d < chart[FSM_ONLINE_ACTIVE] - rank; d++) {
        int64_t row = chart[FSM_ONLINE_LISTS + rank + d], contact = chart[FSM_ONLINE_LISTS + R + rank + d];
        for (int64_t k = 0; k < rank; k++) {
            int64_t j = chart[columns + k];
            w[at_g + k] = w[at_A + row * U + j];
            int64_t tangents = contact >= 0 ? fsm_tangent_count(o, contact) : 0;
            for (int64_t i = 0; i < tangents; i++) {
                tangent = AT(o->contact_rows, contact, 1) + i;
                w[at_g + k] -= fsm_friction_ratio(o, contact, i) * w[at_A + tangent * U + j];
            }
        }
        fsm_solve_transposed(o, w + at, width, w + at_g);
        int64_t vector = at_open + d * R;
        for (int64_t r = 0; r < R; r++) {
            w[vector + r] = 0.0;
        }
        w[vector + row] = 1.0;
        for (int64_t k = 0; k < rank; k++) {
            w[vector + chart[FSM_ONLINE_LISTS + k]] = -w[at_g + k];
        }
        for (int64_t k = 0; k < chart[FSM_ONLINE_ACTIVE]; k++) {
            contact = chart[FSM_ONLINE_LISTS + R + k];
            int64_t tangents = contact >= 0 ? fsm_tangent_count(o, contact) : 0;
            for (int64_t i = 0; i < tangents; i++) {
                tangent = AT(o->contact_rows, contact, 1) + i;
                w[vector + tangent] = -fsm_friction_ratio(o, contact, i) * w[vector + chart[FSM_ONLINE_LISTS + k]];
            }
        }
    }
}

/* Make the indeterminate multipliers orthogonal and take their part out of the multipliers, which leaves the least
   norm. */
static void minimum_norm_multipliers(struct fsm_online_mode *o)
{
    int64_t *chart = o->chart.at;
    int64_t at_multipliers = chart[FSM_ONLINE_AT_MULTIPLIERS], at_open = chart[FSM_ONLINE_AT_OPEN];
    int64_t R = o->sizes->n_rows;
    for (int64_t d = chart[FSM_ONLINE_SHARED]; d < chart[FSM_ONLINE_ACTIVE] - chart[FSM_ONLINE_RANK]; d++) {
        int64_t vector = at_open + d * R;
        for (int64_t other = chart[FSM_ONLINE_SHARED]; other < d; other++) {
            subtract_component(o, vector, at_open + other * R);
        }
        subtract_component(o, at_multipliers, vector);
    }
}

/* Find the rows from `first` to before `end` outside which the forces at `along`, of those that do nothing, are zero.

   As a rule they act on one body: of many contacts these are few. */
static void find_extent(struct fsm_online_mode *o, int64_t along, int64_t *first, int64_t *end)
{
    const int64_t *rows = o->chart.at + FSM_ONLINE_LISTS, *contacts = rows + o->sizes->n_rows;
    const double *forces = o->room.at + along;
    *first = o->sizes->n_rows;
    *end = 0;
    for (int64_t k = 0; k < o->chart.at[FSM_ONLINE_ACTIVE]; k++) {
        int64_t tangents = contacts[k] >= 0 ? fsm_tangent_count(o, contacts[k]) : 0;
        for (int64_t i = -1; i < tangents; i++) {
            int64_t row = i < 0 ? rows[k] : AT(o->contact_rows, contacts[k], 1) + i;
            if (forces[row] != 0.0) {
                *first = fsm_least(*first, row);
                *end = fsm_most(*end, row + 1);
            }
        }
    }
}

static void subtract_component(struct fsm_online_mode *o, int64_t at, int64_t along)
{
    double *w = o->room.at, product = 0.0, square = 0.0;
    int64_t first, end;
    find_extent(o, along, &first, &end);
    for (int64_t r = first; r < end; r++) {
        product += w[at + r] * w[along + r];
        square += w[along + r] * w[along + r];
    }
    for (int64_t r = first; r < end; r++) {
        w[at + r] -= product / square * w[along + r];
    }
}

/* Enter the forces of one contact that follow from its state: friction while it slides, a compressed pad. */
static void determinate_forces(struct fsm_online_mode *o, int64_t k)
{
    int64_t *chart = o->chart.at;
    double *w = o->room.at;
    int64_t at_elastic = chart[FSM_ONLINE_AT_ELASTIC], at_multipliers = chart[FSM_ONLINE_AT_MULTIPLIERS];
    int64_t code = o->states.at[k], flags = o->contact_flags.at[k];
    int64_t normal = AT(o->contact_rows, k, 0), tangent = AT(o->contact_rows, k, 1);
    double load = 1.0;
    if ((flags & FSM_FLAG_COMPLIANT) != 0) {
        w[at_multipliers + normal] = w[at_elastic + k];
        load = w[at_elastic + k];
    } else if ((flags & FSM_FLAG_RIGID) != 0) {
        load = w[at_multipliers + normal];
    }
    int64_t tangents = code >= FSM_CONTACT_SLIDING ? fsm_tangent_count(o, k) : 0;
    for (int64_t i = 0; i < tangents; i++) {
        w[at_multipliers + tangent + i] = -fsm_friction_ratio(o, k, i) * load;
    }
}

/* Return the row number of the k-th row eliminated by the choice of speeds. */
static int64_t hidden_row(struct fsm_online_mode *o, int64_t k)
{
    for (int64_t r = 0; r < o->sizes->n_rows; r++) {
        if (o->row_role.at[r] == FSM_ROLE_KINEMATIC) {
            if (k == 0) {
                return r;
            }
            k--;
        }
    }
    return -1;
}

/* -- Redundant rows of a mode embedded online whose friction changes the motion: they carry what equal springs would
   (docs/theory.md, "Shares that the motion depends on").  They stand first among the rows left out. */

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

/* Work out what the redundant rows carry on whose shares the motion depends.

   With the redundant rows `A_D = R A_K` and R without constraint rows, `R'`, equal springs carry `λ_D = R' λ_K`.  In terms of
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

/* Whether rows left out share the load so that the motion depends on it by now, though it did not in the chart.

   The null vectors are overwritten. */
FSM_LOCAL bool fsm_shares_count_now(struct fsm_online_mode *o)
{
    const int64_t *chart = o->chart.at;
    int64_t count = shares_may_count(chart) ? chart[FSM_ONLINE_ACTIVE] - chart[FSM_ONLINE_RANK] : 0;
    for (int64_t d = chart[FSM_ONLINE_SHARED]; d < count; d++) {
        null_vector(o, d);
        if (changes_motion(o, d)) {
            return true;
        }
    }
    return false;
}
