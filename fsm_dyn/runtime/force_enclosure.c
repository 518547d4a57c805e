/* Enclosures of the contact forces of modes that are embedded online, for which no program gives them.

   The program encloses the terms A, M, f and gamma.  Accelerations and forces solve

       M u_dot - G^T lambda = f,    A u_dot = -gamma,

   with the rows A of the mode and their forces G, sliding contacts pushing off their normals.  With any approximate inverse
   Y, E = I - Y K, an approximate solution z and its residual d, the solution differs from z by no more than e / (1 - rho),
   e = |Y| |d|, where |E| e <= rho e and rho < 1.  Rates solve the same equations: K z' = b' - K' z, K z'' = b'' - 2 K' z' -
   K'' z.  Where rho is not below 1 there are no bounds.

   Of redundant rows the mode chooses the forces with the widest margin of all laws.  Any other choice that satisfies the
   laws proves that the widest margin is above zero; here the forces on dependent rows follow straight lines through those
   chosen at the start, the middle and the end of the step, and the laws at these three instants are the guards.

   R. E. Moore, R. B. Kearfott, M. J. Cloud, Introduction to Interval Analysis, SIAM 2009, chapter 7. */

#include "online_mode.h"
#include "stepping.h"

#define FSM_TERMS_PASSES 3    // solutions after which the direction of a bearing's load is known well enough
#define FSM_TERMS_LEFT   1e-9 // of a row that is independent
#define FSM_TERMS_ENTRY     12 // steps of elimination that an entry of the matrix costs too,
#define FSM_TERMS_OPERATION 25 // and an operation of a program

static const struct fsm_jet UNBOUNDED = {{-FSM_INFINITY, FSM_INFINITY}, {-FSM_INFINITY, FSM_INFINITY}, {-FSM_INFINITY, FSM_INFINITY}};
static const struct fsm_jet NOTHING = {{0.0, 0.0}, {0.0, 0.0}, {0.0, 0.0}};

/* The equations of a mode over one piece; `rows` and `slides` (n - n_u + implied,): rows held, and contacts that slide on
   them or -1; the last ones depend on others. */
struct balance {
    const struct fsm_run *run;
    const struct fsm_tables *tables;
    const int64_t *codes;        // of the guards
    const struct fsm_part *part; // of the step; NULL: a region
    const int8_t *states;
    const double *sigma;
    const int64_t *terms; // numbers of the values of the terms, one after the other (run/online.py)
    const struct fsm_jet *values;
    int64_t *rows, *slides;
    int64_t n, implied, bearings;
    struct fsm_interval *toward; // (2 n_contacts,): direction of the loads of bearings that slide
    struct fsm_jet *matrix;  // (n, n): K
    double *middle, *radius; // (n, n): of its values
    double *inverse, *rest;  // (n, n): Y, bounds of |E|
    double *sides;           // (4, n): work
    int64_t *columns;        // (n, n): of K's rows, one behind the other, those not zero; then (n + 1,): where they begin
    struct fsm_jet *right, *solution;
};

static const struct fsm_jet *term_at(const struct balance *b, int64_t place)
{
    return b->values + b->terms[place];
}

static const struct fsm_jet *entry_of_row(const struct balance *b, int64_t row, int64_t j)
{
    return term_at(b, row * b->tables->sizes->n_u + j);
}

/* Where f begins among the terms; gamma, and what contacts have, follow. */
static int64_t place_of_loads(const struct fsm_sizes *s)
{
    return s->n_rows * s->n_u + s->n_u * s->n_u;
}

static const struct fsm_jet *of_contact(const struct balance *b, int64_t part, int64_t k)
{
    const struct fsm_sizes *s = b->tables->sizes;
    return term_at(b, place_of_loads(s) + s->n_u + s->n_rows + part * s->n_contacts + k);
}

enum { ELASTIC, KINETIC, STATIC, FIRST_PART, SECOND_PART }; // the last two: of the unit slip in space

static bool is_in_space(const struct balance *b, int64_t k)
{
    return (b->tables->contact_flags.at[k] & FSM_FLAG_IN_SPACE) != 0;
}

/* Whether a contact is a bearing that slides: its friction follows the forces on its load rows. */
static bool slides_by_load(const struct balance *b, int64_t k)
{
    return (b->tables->contact_flags.at[k] & FSM_FLAG_LOADED) != 0 && b->states[k] >= FSM_CONTACT_SLIDING;
}

/* Take the friction of a sliding contact per unit of its load from a force along speed `i`. */
static void take_friction(const struct balance *b, int64_t k, int64_t i, const struct fsm_jet *load, struct fsm_jet *force)
{
    int64_t tangent = AT(b->tables->contact_rows, k, 1), count = is_in_space(b, k) ? 2 : 1;
    double way = b->states[k] == FSM_CONTACT_SLIDING_UNDER ? -b->sigma[k] : b->sigma[k];
    struct fsm_jet sign = {{way, way}, {0.0, 0.0}, {0.0, 0.0}};
    for (int64_t t = 0; t < count; t++) {
        const struct fsm_jet *toward = count == 2 ? of_contact(b, FIRST_PART + t, k) : &sign;
        struct fsm_jet along = fsm_jet_product(of_contact(b, KINETIC, k), toward);
        along = fsm_jet_product(&along, entry_of_row(b, tangent + t, i));
        along = fsm_jet_product(&along, load);
        *force = fsm_jet_sum(force, &along, -1.0);
    }
}

/* The force along speed `i` of a unit force on the row number `j` of those held, with the friction that follows it.

   The friction of a bearing is in proportion to |N| = n N; the direction n of the load has no part in the rate of |N|. */
static struct fsm_jet force_of_unit(const struct balance *b, int64_t j, int64_t i)
{
    static const struct fsm_jet unit = {{1.0, 1.0}, {0.0, 0.0}, {0.0, 0.0}};
    struct fsm_jet force = *entry_of_row(b, b->rows[j], i);
    if (b->slides[j] >= 0) {
        take_friction(b, b->slides[j], i, &unit, &force);
    }
    for (int64_t k = 0; k < b->tables->sizes->n_contacts && b->bearings > 0; k++) {
        for (int64_t l = 0; l < 2 && slides_by_load(b, k); l++) {
            if (AT(b->tables->contact_rows, k, 2 + l) == b->rows[j]) {
                struct fsm_jet part = {b->toward[2 * k + l], {0.0, 0.0}, {0.0, 0.0}};
                take_friction(b, k, i, &part, &force);
            }
        }
    }
    return force;
}

/* An entry of the matrix K. */
static struct fsm_jet entry_of_balance(const struct balance *b, int64_t i, int64_t j)
{
    const struct fsm_sizes *s = b->tables->sizes;
    int64_t U = s->n_u;
    if (i < U && j < U) {
        return *term_at(b, s->n_rows * U + i * U + j);
    }
    if (i >= U) {
        return j < U ? *entry_of_row(b, b->rows[i - U], j) : NOTHING;
    }
    struct fsm_jet force = force_of_unit(b, j - U, i);
    return fsm_jet_sum(&NOTHING, &force, -1.0);
}

static bool is_nothing(const struct fsm_jet *a)
{
    return a->value.low == 0.0 && a->value.high == 0.0 && a->rate.low == 0.0 && a->rate.high == 0.0 &&
           a->second.low == 0.0 && a->second.high == 0.0;
}

/* The middle of an interval, and bounds of what it differs from it. */
static double middle_of(struct fsm_interval a, double *radius)
{
    double m = 0.5 * (a.low + a.high);
    *radius = fsm_larger(a.high - m, m - a.low) * (1.0 + 4.0 * FSM_EPS);
    return m;
}

/* List what the mode holds. */
static void list_balance(struct balance *b)
{
    const struct fsm_tables *tables = b->tables;
    int64_t count = 0;
    for (int64_t r = 0; r < tables->sizes->n_rows; r++) {
        if (tables->row_role.at[r] == FSM_ROLE_ALWAYS || tables->row_role.at[r] == FSM_ROLE_ALWAYS_POSITION) {
            b->rows[count] = r;
            b->slides[count++] = -1;
        }
    }
    for (int64_t k = 0; k < tables->sizes->n_contacts; k++) {
        int64_t code = b->states[k], flags = tables->contact_flags.at[k];
        int64_t normal = AT(tables->contact_rows, k, 0), tangent = AT(tables->contact_rows, k, 1);
        bool slides = code >= FSM_CONTACT_SLIDING && tangent >= 0;
        if (code == FSM_CONTACT_FREE) {
            continue;
        }
        b->bearings += slides_by_load(b, k) ? 1 : 0;
        int64_t tangents = code != FSM_CONTACT_HELD || tangent < 0 ? 0 : (flags & FSM_FLAG_IN_SPACE) != 0 ? 2 : 1;
        if (normal >= 0 && (flags & FSM_FLAG_COMPLIANT) == 0) {
            b->rows[count] = normal;
            b->slides[count++] = slides ? k : -1;
        }
        for (int64_t i = 0; i < tangents; i++) {
            b->rows[count] = tangent + i;
            b->slides[count++] = -1;
        }
    }
    b->n = tables->sizes->n_u + count;
}

/* Order the rows, dependent ones last; false where there is no room to find out. */
static bool order_rows(struct balance *b)
{
    int64_t U = b->tables->sizes->n_u, m = b->n - U;
    struct fsm_arena *arena = &b->run->work->arena;
    int64_t floats = m * (U + m + 1) + 4 * b->tables->sizes->n_contacts;
    if (arena->top->floats + floats > arena->floats.n || arena->top->integers + m * (U + 4) > arena->integers.n) {
        return false;
    }
    fsm_mark before = fsm_arena_mark(arena);
    fsm_matrix B = fsm_arena_matrix(arena, m, U), L = fsm_arena_matrix(arena, m, m);
    fsm_indices order = fsm_arena_indices(arena, m), found = fsm_arena_indices(arena, 2 * m);
    for (int64_t i = 0; i < m; i++) {
        double size = 0.0, radius;
        for (int64_t j = 0; j < U; j++) {
            double inertia = middle_of(term_at(b, b->tables->sizes->n_rows * U + j * (U + 1))->value, &radius);
            double entry = middle_of(entry_of_row(b, b->rows[i], j)->value, &radius);
            AT(B, i, j) = entry / sqrt(inertia > 0.0 ? inertia : 1.0);
            size += AT(B, i, j) * AT(B, i, j);
        }
        for (int64_t j = 0; j < U && size > 0.0; j++) {
            AT(B, i, j) /= sqrt(size);
        }
        found.at[i] = b->rows[i];
        found.at[m + i] = b->slides[i];
    }
    int64_t rank = m == 0 ? 0 : fsm_orthogonalise(arena, B, order, L, FSM_TERMS_LEFT);
    for (int64_t i = 0; i < m && rank < m; i++) {
        b->rows[i] = found.at[order.at[i]];
        b->slides[i] = found.at[m + order.at[i]];
    }
    b->n = U + rank;
    b->implied = m - rank;
    fsm_arena_release(arena, before);
    return true;
}

/* The force on a row, from the laws of its contact, at the start, the middle and the end of the step; false where no law
   tells it. */
static bool forces_on_row(const struct balance *b, int64_t row, double *force)
{
    const struct fsm_tables *tables = b->tables;
    const struct fsm_work *work = b->run->work;
    int64_t first = tables->mode_guard_start.at[b->run->state->counters->mode];
    int64_t n_g = fsm_guard_count(tables, b->run->state->counters->mode);
    int64_t at = b->run->state->x.n + tables->sizes->n_u + 1, ways = 0;
    const double *values[3] = {b->run->state->guards.at, work->full_mid.at + at, work->full_end.at + at};
    force[0] = force[1] = force[2] = 0.0;
    for (int64_t j = 0; j < n_g; j++) {
        int64_t k = tables->guard_contact.at[first + j], quantity = (-b->codes[j] - 2) / 2;
        if (b->codes[j] >= -1 || k < 0) {
            continue;
        }
        bool normal = quantity == FSM_ONLINE_NORMAL_FORCE && row == AT(tables->contact_rows, k, 0);
        bool held = quantity == FSM_ONLINE_HOLDING_LIMIT && row == AT(tables->contact_rows, k, 0);
        bool rubs = quantity == FSM_ONLINE_FRICTION_LIMIT && row == AT(tables->contact_rows, k, 1);
        double sign = (-b->codes[j] - 2) % 2 == 1 ? 1.0 : -1.0;
        for (int64_t i = 0; i < 3 && (normal || held || rubs); i++) {
            force[i] += normal ? sign * values[i][j] : 0.5 * sign * values[i][j]; // limits both ways
        }
        ways += normal ? 2 : held || rubs ? 1 : 0;
    }
    return ways == 2;
}

/* The force on a dependent row, over the piece of the step, or at its middle where `point`. */
static struct fsm_jet force_chosen(const struct balance *b, int64_t row, bool point)
{
    double force[3];
    if (b->part == NULL || !forces_on_row(b, row, force)) {
        return UNBOUNDED;
    }
    double m = 0.5 * (b->part->a + b->part->b), a = point ? m : b->part->a, z = point ? m : b->part->b;
    double rates[2] = {2.0 * (force[1] - force[0]) / b->part->h, 2.0 * (force[2] - force[1]) / b->part->h};
    bool bent = a <= 0.5 && z >= 0.5 && rates[0] != rates[1];
    double rate = a < 0.5 ? rates[0] : rates[1], other = z > 0.5 ? rates[1] : bent ? rates[1] : rate;
    double from = force[1] + (a - 0.5) * b->part->h * (a < 0.5 ? rates[0] : rates[1]);
    double to = force[1] + (z - 0.5) * b->part->h * (z < 0.5 ? rates[0] : rates[1]);
    double low = fsm_smaller(from, to), high = fsm_larger(from, to);
    low = bent ? fsm_smaller(low, force[1]) : low;
    high = bent ? fsm_larger(high, force[1]) : high;
    double room = 8.0 * FSM_EPS * fsm_larger(fabs(low), fabs(high));
    double turn = bent ? FSM_INFINITY : 0.0;
    return (struct fsm_jet){{low - room, high + room},
                            {fsm_smaller(rate, other), fsm_larger(rate, other)},
                            {-turn, turn}};
}

/* Add `load` times a row to the right-hand side. */
static void add_row_times(const struct balance *b, int64_t row, const struct fsm_jet *load)
{
    for (int64_t i = 0; i < b->tables->sizes->n_u; i++) {
        const struct fsm_jet *entry = entry_of_row(b, row, i);
        if (!is_nothing(entry)) {
            struct fsm_jet force = fsm_jet_product(load, entry);
            b->right[i] = fsm_jet_sum(b->right + i, &force, 1.0);
        }
    }
}

/* Write the right-hand side: loads, what contacts push with whose forces are known, and the rows' own accelerations. */
static void put_right_side(const struct balance *b, bool point)
{
    const struct fsm_tables *tables = b->tables;
    int64_t U = tables->sizes->n_u, loads = place_of_loads(tables->sizes);
    for (int64_t i = 0; i < b->n; i++) {
        b->right[i] = i < U ? *term_at(b, loads + i) : fsm_jet_sum(&NOTHING, term_at(b, loads + U + b->rows[i - U]), -1.0);
    }
    for (int64_t i = b->n - U; i < b->n - U + b->implied; i++) {
        struct fsm_jet force = force_chosen(b, b->rows[i], point);
        for (int64_t j = 0; j < U; j++) {
            struct fsm_jet unit = force_of_unit(b, i, j), part = fsm_jet_product(&unit, &force);
            b->right[j] = fsm_jet_sum(b->right + j, &part, 1.0);
        }
    }
    for (int64_t k = 0; k < tables->sizes->n_contacts; k++) {
        int64_t flags = tables->contact_flags.at[k];
        bool known = (flags & (FSM_FLAG_RIGID | FSM_FLAG_SWITCHED | FSM_FLAG_LOADED)) == 0;
        if (b->states[k] == FSM_CONTACT_FREE || !known || (flags & (FSM_FLAG_COMPLIANT | FSM_FLAG_FRICTION_ONLY)) == 0) {
            continue;
        }
        bool compliant = (flags & FSM_FLAG_COMPLIANT) != 0;
        if (compliant) {
            add_row_times(b, AT(tables->contact_rows, k, 0), of_contact(b, ELASTIC, k));
        }
        if (b->states[k] >= FSM_CONTACT_SLIDING && AT(tables->contact_rows, k, 1) >= 0) {
            static const struct fsm_jet unit = {{1.0, 1.0}, {0.0, 0.0}, {0.0, 0.0}};
            for (int64_t i = 0; i < U; i++) {
                take_friction(b, k, i, compliant ? of_contact(b, ELASTIC, k) : &unit, b->right + i);
            }
        }
    }
}

/* List the columns in which one of two rows (n,) is not zero; returns how many. */
static int64_t list_columns(const double *row, const double *other, int64_t n, int64_t *columns)
{
    int64_t count = 0;
    for (int64_t j = 0; j < n; j++) {
        if (row[j] != 0.0 || other[j] != 0.0) {
            columns[count++] = j;
        }
    }
    return count;
}

/* Invert the matrix (n, n) in place by Gauss-Jordan elimination with row pivots; `order`, `columns` (n,): work; false where it
   has no inverse.  Of many bodies that do not touch most entries stay zero. */
static bool invert(double *a, int64_t n, double *order, int64_t *columns)
{
    for (int64_t k = 0; k < n; k++) {
        int64_t best = k;
        for (int64_t i = k + 1; i < n; i++) {
            best = fabs(a[i * n + k]) > fabs(a[best * n + k]) ? i : best;
        }
        double pivot = a[best * n + k];
        if (!(fabs(pivot) > 0.0) || !(fabs(pivot) < FSM_INFINITY)) {
            return false;
        }
        order[k] = (double)best;
        for (int64_t j = 0; j < n; j++) {
            double entry = a[best * n + j];
            a[best * n + j] = a[k * n + j];
            a[k * n + j] = j == k ? 1.0 / pivot : entry / pivot;
        }
        int64_t count = list_columns(a + k * n, a + k * n, n, columns);
        for (int64_t i = 0; i < n; i++) {
            double factor = a[i * n + k];
            if (i == k || factor == 0.0) {
                continue;
            }
            a[i * n + k] = 0.0;
            for (int64_t c = 0; c < count; c++) {
                a[i * n + columns[c]] -= factor * a[k * n + columns[c]];
            }
        }
    }
    for (int64_t k = n - 1; k >= 0; k--) {
        int64_t other = (int64_t)order[k];
        for (int64_t i = 0; i < n && other != k; i++) {
            double entry = a[i * n + k];
            a[i * n + k] = a[i * n + other];
            a[i * n + other] = entry;
        }
    }
    return true;
}

/* Write K, an approximate inverse and bounds of what is left of the unit matrix; false where there is no inverse. */
static bool factor_balance(const struct balance *b)
{
    int64_t n = b->n;
    double rounding = (double)(n + 8) * FSM_EPS;
    for (int64_t i = 0; i < n * n; i++) {
        b->matrix[i] = entry_of_balance(b, i / n, i % n);
        b->inverse[i] = b->middle[i] = middle_of(b->matrix[i].value, &b->radius[i]);
        b->rest[i] = i / n == i % n ? 1.0 : 0.0;
        if (!(b->radius[i] < FSM_INFINITY)) {
            return false;
        }
        b->radius[i] += rounding * fabs(b->middle[i]);
    }
    if (!invert(b->inverse, n, b->sides, b->columns)) {
        return false;
    }
    int64_t *begin = b->columns + n * n;
    begin[0] = 0;
    for (int64_t k = 0; k < n; k++) {
        begin[k + 1] = begin[k] + list_columns(b->middle + k * n, b->radius + k * n, n, b->columns + begin[k]);
    }
    for (int64_t i = 0; i < n; i++) {
        double *totals = b->rest + i * n, *offs = b->sides;
        for (int64_t j = 0; j < n; j++) {
            offs[j] = FSM_EPS;
        }
        for (int64_t k = 0; k < n; k++) {
            double entry = b->inverse[i * n + k], size = fabs(entry);
            const double *middles = b->middle + k * n, *radii = b->radius + k * n;
            for (int64_t c = begin[k]; c < begin[k + 1] && size > 0.0; c++) {
                int64_t j = b->columns[c];
                totals[j] -= entry * middles[j];
                offs[j] += size * radii[j];
            }
        }
        for (int64_t j = 0; j < n; j++) {
            totals[j] = (fabs(totals[j]) + offs[j]) * (1.0 + rounding);
        }
    }
    return true;
}

/* Bound how far the solution is from the approximate one, from |Y| |d| in `error` (n,), in place; false where it is not. */
static bool widen_solution(const struct balance *b, double *error, double *again)
{
    int64_t n = b->n;
    double ratio = 0.0;
    for (int64_t pass = 0; pass < 2; pass++) { // the first one makes room where others alone leave something
        ratio = 0.0;
        for (int64_t i = 0; i < n; i++) {
            again[i] = FSM_TINIEST;
            for (int64_t j = 0; j < n; j++) {
                again[i] += b->rest[i * n + j] * error[j];
            }
        }
        for (int64_t i = 0; i < n; i++) {
            error[i] = pass == 0 ? fsm_larger(error[i], 4.0 * again[i]) : error[i];
            ratio = fsm_larger(ratio, again[i] / error[i]);
        }
    }
    ratio *= 1.0 + (double)(n + 8) * FSM_EPS;
    if (!(ratio < 1.0)) {
        return false;
    }
    for (int64_t i = 0; i < n; i++) {
        error[i] *= (1.0 + 8.0 * FSM_EPS) / (1.0 - ratio);
    }
    return true;
}

static struct fsm_interval *part_of(struct fsm_jet *jet, int64_t rate)
{
    return rate == 0 ? &jet->value : rate == 1 ? &jet->rate : &jet->second;
}

/* Solve K z = `right` for the value, or one of the rates, of the solution, from that of the right-hand side. */
static bool solve_rate(const struct balance *b, int64_t rate)
{
    int64_t n = b->n;
    const int64_t *begin = b->columns + n * n;
    double *about = b->sides, *left = about + n, *error = left + n, *again = error + n, radius;
    double rounding = (double)(n + 8) * FSM_EPS;
    for (int64_t i = 0; i < n; i++) {
        about[i] = 0.0;
    }
    for (int64_t j = 0; j < n; j++) {
        double middle = middle_of(*part_of(b->right + j, rate), &radius);
        if (!(radius < FSM_INFINITY)) {
            return false;
        }
        for (int64_t i = 0; i < n; i++) {
            about[i] += b->inverse[i * n + j] * middle;
        }
    }
    for (int64_t i = 0; i < n; i++) {
        double total = middle_of(*part_of(b->right + i, rate), &radius);
        double off = radius + rounding * fabs(total);
        for (int64_t c = begin[i]; c < begin[i + 1]; c++) {
            int64_t j = b->columns[c];
            total -= b->middle[i * n + j] * about[j];
            off += b->radius[i * n + j] * fabs(about[j]);
        }
        left[i] = (fabs(total) + off) * (1.0 + rounding);
    }
    for (int64_t i = 0; i < n; i++) {
        error[i] = FSM_TINIEST;
        for (int64_t j = 0; j < n; j++) {
            error[i] += fabs(b->inverse[i * n + j]) * left[j] * (1.0 + rounding);
        }
    }
    if (!widen_solution(b, error, again)) {
        return false;
    }
    for (int64_t i = 0; i < n; i++) {
        double room = error[i] + 2.0 * FSM_EPS * fabs(about[i]);
        *part_of(b->solution + i, rate) = (struct fsm_interval){about[i] - room, about[i] + room};
    }
    return true;
}

/* Take what the solution and its rate do in the equation of the next rate to the right-hand side. */
static void shift_right(const struct balance *b, int64_t rate)
{
    for (int64_t i = 0; i < b->n; i++) {
        struct fsm_interval *right = part_of(b->right + i, rate);
        for (int64_t j = 0; j < b->n; j++) {
            struct fsm_jet *entry = b->matrix + i * b->n + j;
            const struct fsm_jet *z = b->solution + j;
            struct fsm_interval change = *part_of(entry, rate);
            if (!fsm_is_zero(change)) {
                *right = fsm_less_product(*right, change, z->value);
            }
            if (rate == 2 && !fsm_is_zero(entry->rate)) {
                struct fsm_interval twice = {2.0 * entry->rate.low, 2.0 * entry->rate.high};
                *right = fsm_less_product(*right, twice, z->rate);
            }
        }
    }
}

/* The force along a row: of the solution, of a compliant contact, or chosen. */
static struct fsm_jet force_of(const struct balance *b, int64_t row, int64_t k, bool point)
{
    int64_t kept = b->n - b->tables->sizes->n_u;
    if ((b->tables->contact_flags.at[k] & FSM_FLAG_COMPLIANT) != 0 && row == AT(b->tables->contact_rows, k, 0)) {
        return *of_contact(b, ELASTIC, k);
    }
    for (int64_t i = 0; i < kept + b->implied; i++) {
        if (b->rows[i] == row) {
            return i < kept ? b->solution[b->n - kept + i] : force_chosen(b, row, point);
        }
    }
    return UNBOUNDED;
}

/* The load of a bearing, and its two parts in `parts`. */
static struct fsm_jet bearing_load_of(const struct balance *b, int64_t k, bool point, struct fsm_jet *parts)
{
    int64_t first = AT(b->tables->contact_rows, k, 2), second = AT(b->tables->contact_rows, k, 3);
    parts[0] = force_of(b, first, k, point);
    parts[1] = second < 0 ? NOTHING : force_of(b, second, k, point);
    return second < 0 ? fsm_jet_absolute(parts) : fsm_jet_norm(parts, parts + 1);
}

/* Bound the directions of the loads of bearings that slide by the forces found. */
static void direct_loads(const struct balance *b, bool point)
{
    for (int64_t k = 0; k < b->tables->sizes->n_contacts && b->bearings > 0; k++) {
        struct fsm_jet parts[2], load = NOTHING;
        if (slides_by_load(b, k)) {
            load = bearing_load_of(b, k, point, parts);
        }
        for (int64_t l = 0; l < 2 && load.value.low > 0.0; l++) {
            double low = parts[l].value.low, high = parts[l].value.high;
            low /= low < 0.0 ? load.value.low : load.value.high;
            high /= high > 0.0 ? load.value.low : load.value.high;
            low = fsm_larger(-1.0, low - 4.0 * FSM_EPS);
            b->toward[2 * k + l] = (struct fsm_interval){low, fsm_smaller(1.0, high + 4.0 * FSM_EPS)};
        }
    }
}

/* Take from the right-hand side what the turning of the loads of bearings adds to the second rate of |N|: no more than
   |N'|^2 / |N|. */
static void turn_loads(const struct balance *b, bool point)
{
    for (int64_t k = 0; k < b->tables->sizes->n_contacts; k++) {
        if (!slides_by_load(b, k)) {
            continue;
        }
        struct fsm_jet parts[2], load = bearing_load_of(b, k, point, parts), more = NOTHING;
        if (AT(b->tables->contact_rows, k, 3) >= 0 || !(load.value.low > 0.0)) {
            double first = fsm_larger(-parts[0].rate.low, parts[0].rate.high);
            double second = fsm_larger(-parts[1].rate.low, parts[1].rate.high);
            double turn = load.value.low > 0.0 ? (first * first + second * second) / load.value.low : FSM_INFINITY;
            more.value.high = turn * (1.0 + 8.0 * FSM_EPS);
        }
        for (int64_t i = 0; i < b->tables->sizes->n_u; i++) {
            struct fsm_jet force = NOTHING;
            take_friction(b, k, i, &more, &force);
            b->right[i].second.low += force.value.low - FSM_EPS * fabs(b->right[i].second.low);
            b->right[i].second.high += force.value.high + FSM_EPS * fabs(b->right[i].second.high);
        }
    }
}

/* Write the jets of accelerations and forces over the piece whose terms are in `b->values`, or at its middle where `point`, up
   to the rate of `order`. */
static void solve_balance(const struct balance *b, bool point, int64_t order)
{
    for (int64_t k = 0; k < 2 * b->tables->sizes->n_contacts; k++) {
        b->toward[k] = (struct fsm_interval){-1.0, 1.0};
    }
    bool bounded = true;
    for (int64_t pass = 0; pass < (b->bearings > 0 ? FSM_TERMS_PASSES : 1) && bounded; pass++) {
        put_right_side(b, point);
        for (int64_t i = 0; i < b->n; i++) {
            b->solution[i] = NOTHING;
        }
        bounded = factor_balance(b) && solve_rate(b, 0);
        direct_loads(b, point);
    }
    for (int64_t i = 0; i < b->n && !bounded; i++) {
        b->solution[i] = UNBOUNDED;
    }
    int64_t known = 0;
    for (int64_t rate = 1; rate <= order && bounded; rate++) {
        shift_right(b, rate);
        if (rate == 2 && b->bearings > 0) {
            turn_loads(b, point);
        }
        bounded = solve_rate(b, rate);
        known += bounded ? 1 : 0;
    }
    for (int64_t i = 0; i < b->n; i++) {
        for (int64_t rate = known + 1; rate < 3; rate++) {
            *part_of(b->solution + i, rate) = UNBOUNDED.value;
        }
    }
}

/* The jet of a guard on forces: `code`, negative, says which quantity and sign (run/online.py). */
static struct fsm_jet jet_of_law(const struct balance *b, int64_t code, int64_t k, bool point)
{
    int64_t quantity = (-code - 2) / 2, normal = AT(b->tables->contact_rows, k, 0);
    int64_t tangent = AT(b->tables->contact_rows, k, 1), flags = b->tables->contact_flags.at[k];
    double sign = (-code - 2) % 2 == 1 ? 1.0 : -1.0;
    if (quantity == FSM_ONLINE_NORMAL_FORCE || quantity == FSM_ONLINE_HOLDING_LIMIT) {
        struct fsm_jet force = force_of(b, normal, k, point);
        return fsm_jet_sum(quantity == FSM_ONLINE_NORMAL_FORCE ? &NOTHING : of_contact(b, STATIC, k), &force, sign);
    }
    bool circle = quantity == FSM_ONLINE_FRICTION_CIRCLE; // asked of the forces of least norm
    if (tangent < 0 || (circle && b->implied > 0)) {
        return UNBOUNDED;
    }
    struct fsm_jet bound = *of_contact(b, STATIC, k), first = force_of(b, tangent, k, point);
    if (normal >= 0) {
        struct fsm_jet load = force_of(b, normal, k, point);
        load = (flags & FSM_FLAG_TWO_SIDED) != 0 ? fsm_jet_absolute(&load) : load;
        bound = fsm_jet_product(&bound, &load);
    }
    if ((flags & FSM_FLAG_LOADED) != 0) {
        struct fsm_jet parts[2], load = bearing_load_of(b, k, point, parts);
        bound = fsm_jet_product(&bound, &load);
    }
    if (!circle) {
        return fsm_jet_sum(&bound, &first, sign);
    }
    struct fsm_jet second = force_of(b, tangent + 1, k, point);
    bound = fsm_jet_product(&bound, &bound);
    first = fsm_jet_product(&first, &first);
    second = fsm_jet_product(&second, &second);
    first = fsm_jet_sum(&first, &second, 1.0);
    return fsm_jet_sum(&bound, &first, -1.0);
}

/* The equations of the present mode, without values. */
static void take_balance(const struct fsm_run *run, const struct fsm_enclosure *program, struct balance *b)
{
    const struct fsm_tables *tables = run->tables;
    const struct fsm_sizes *s = tables->sizes;
    b->run = run;
    b->tables = tables;
    b->states = tables->mode_states.at + run->state->counters->mode * s->n_contacts;
    b->sigma = run->state->c.at + fsm_sigma_at(s);
    b->terms = program->terms;
    b->rows = run->work->proof_numbers.at + FSM_PROOF_LISTS(s);
    b->slides = b->rows + s->n_rows;
    list_balance(b);
}

static void mark_term(int64_t value, int64_t first, int8_t *needed)
{
    if (value >= first) {
        needed[value - first] = 1;
    }
}

static void mark_terms_of(const struct balance *b, int64_t row, int64_t first, int8_t *needed)
{
    int64_t U = b->tables->sizes->n_u;
    for (int64_t i = 0; i < U && row >= 0; i++) {
        mark_term(b->terms[row * U + i], first, needed);
    }
}

/* Mark the operations (operations,) that give the terms of the present mode. */
FSM_LOCAL void fsm_mark_terms(const struct fsm_run *run, const struct fsm_enclosure *program, int8_t *needed)
{
    struct balance b = {0};
    take_balance(run, program, &b);
    const struct fsm_sizes *s = run->tables->sizes;
    int64_t first = fsm_enclosure_size(program) - program->operations, loads = place_of_loads(s), gamma = loads + s->n_u;
    for (int64_t i = s->n_rows * s->n_u; i < gamma; i++) {
        mark_term(b.terms[i], first, needed);
    }
    for (int64_t i = 0; i < b.n - s->n_u; i++) {
        mark_terms_of(&b, b.rows[i], first, needed);
        mark_term(b.terms[gamma + b.rows[i]], first, needed);
    }
    for (int64_t k = 0; k < s->n_contacts; k++) {
        if (b.states[k] == FSM_CONTACT_FREE) {
            continue;
        }
        mark_terms_of(&b, AT(b.tables->contact_rows, k, 0), first, needed);
        mark_terms_of(&b, AT(b.tables->contact_rows, k, 1), first, needed);
        if (is_in_space(&b, k)) {
            mark_terms_of(&b, AT(b.tables->contact_rows, k, 1) + 1, first, needed);
        }
        for (int64_t part = ELASTIC; part <= SECOND_PART; part++) {
            mark_term(b.terms[gamma + s->n_rows + part * s->n_contacts + k], first, needed);
        }
    }
}

/* Write the jets of the mode's guards on forces behind the values of the program, over a piece and in its middle, `reach`
   (s) from its ends; `part`: the part of a step that it is, NULL: of none.

   `codes` (n_g,): below -1 where a guard is one on a force; `order` 1 or 2: the rate up to which they are written, one less in
   the middle; `jets`, `middle`: the values of the program, with room for the guards, 4 n jets and 2 n^2 more
   (run/structures.py); `middle` NULL: nothing is narrowed.  Returns the work, in operations of a program. */
FSM_LOCAL int64_t fsm_enclose_forces(const struct fsm_run *run, const struct fsm_enclosure *program, const int64_t *codes,
                                     int64_t order, struct fsm_jet *jets, struct fsm_jet *middle, double reach,
                                     const struct fsm_part *part)
{
    const struct fsm_tables *tables = run->tables;
    const struct fsm_sizes *s = tables->sizes;
    int64_t mode = run->state->counters->mode, n_g = fsm_guard_count(tables, mode), sides = middle == NULL ? 1 : 2;
    int64_t size = fsm_enclosure_size(program), most = s->n_u + fsm_least(s->n_u, s->n_rows);
    struct balance b = {0};
    take_balance(run, program, &b);
    b.codes = codes;
    b.part = part;
    b.values = middle != NULL ? middle : jets;
    bool ordered = order_rows(&b);
    fsm_mark before = fsm_arena_mark(&run->work->arena);
    b.toward = (struct fsm_interval *)fsm_arena_vector(&run->work->arena, ordered ? 4 * s->n_contacts : 0).at;
    b.matrix = jets + size + n_g + 2 * most;
    b.middle = (double *)(b.matrix + most * most);
    b.radius = b.middle + most * most;
    b.inverse = b.radius + most * most;
    b.rest = b.inverse + most * most;
    b.sides = b.rest + most * most;
    b.columns = (int64_t *)(b.sides + 4 * most);
    for (int64_t side = 0; side < sides && ordered; side++) {
        struct fsm_jet *own = side == 0 ? jets : middle;
        b.values = own;
        b.right = own + size + n_g;
        b.solution = b.right + most;
        solve_balance(&b, side == 1, order - side);
    }
    for (int64_t i = 0; i < b.n && ordered && middle != NULL; i++) {
        fsm_narrow(jets + size + n_g + most + i, middle + size + n_g + most + i, reach);
    }
    for (int64_t j = 0; j < n_g; j++) {
        if (codes[j] >= -1) {
            continue;
        }
        int64_t k = tables->guard_contact.at[tables->mode_guard_start.at[mode] + j];
        for (int64_t side = 0; side < sides; side++) {
            struct fsm_jet *own = side == 0 ? jets : middle;
            b.values = own;
            b.solution = own + size + n_g + most;
            own[size + j] = ordered ? jet_of_law(&b, codes[j], k, side == 1) : UNBOUNDED;
        }
        if (middle != NULL) {
            fsm_narrow(jets + size + j, middle + size + j, reach);
        }
    }
    fsm_arena_release(&run->work->arena, before);
    return sides * b.n * b.n * (b.n + FSM_TERMS_ENTRY) / FSM_TERMS_OPERATION;
}
