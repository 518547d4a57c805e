/* Enclosures of the contact forces of modes that are embedded online, for which no program gives them.

   The program encloses the terms A, M, f and gamma.  Accelerations and forces solve

       M u_dot - G^T lambda = f,    A u_dot = -gamma,

   with the rows A of the mode and their forces G, sliding contacts pushing off their normals.  With any approximate inverse
   Y, E = I - Y K, an approximate solution z and its residual d, the solution differs from z by no more than e / (1 - rho),
   e = |Y| |d|, where |E| e <= rho e and rho < 1.  Rates solve the same equations: K z' = b' - K' z, K z'' = b'' - 2 K' z' -
   K'' z.  Where rho is not below 1, as for redundant rows, there are no bounds.

   R. E. Moore, R. B. Kearfott, M. J. Cloud, Introduction to Interval Analysis, SIAM 2009, chapter 7. */

#include "online_mode.h"
#include "stepping.h"

#define FSM_TERMS_WIDE   8.0 // times what a region extends, by which the one for bounds of terms does
#define FSM_TERMS_MISSED 4.0 // steps enclosed after which that is chosen anew

static const struct fsm_jet UNBOUNDED = {{-INFINITY, INFINITY}, {-INFINITY, INFINITY}, {-INFINITY, INFINITY}};
static const struct fsm_jet NOTHING = {{0.0, 0.0}, {0.0, 0.0}, {0.0, 0.0}};

/* The equations of a mode over one piece; `rows` and `slides` (n - n_u,): rows held, and contacts that slide on them or -1. */
struct balance {
    const struct fsm_tables *tables;
    const int8_t *states;
    const double *sigma;
    const int64_t *terms; // numbers of the values of A, M, f, gamma, elastic, kinetic and static, one after the other
    const struct fsm_jet *values;
    int64_t *rows, *slides;
    int64_t n;
    struct fsm_jet *matrix;  // (n, n): K
    double *middle, *radius; // (n, n): of its values
    double *inverse, *rest;  // (n, n): Y, bounds of |E|
    double *sides;           // (4, n): work
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

enum { ELASTIC, KINETIC, STATIC };

/* The friction of a sliding contact per unit of normal force, along its tangent row. */
static struct fsm_jet friction_ratio(const struct balance *b, int64_t k)
{
    double way = b->states[k] == FSM_CONTACT_SLIDING_UNDER ? -b->sigma[k] : b->sigma[k];
    struct fsm_jet sign = {{way, way}, {0.0, 0.0}, {0.0, 0.0}};
    return fsm_jet_product(of_contact(b, KINETIC, k), &sign);
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
    struct fsm_jet force = *entry_of_row(b, b->rows[j - U], i);
    int64_t k = b->slides[j - U];
    if (k >= 0) {
        struct fsm_jet ratio = friction_ratio(b, k);
        struct fsm_jet along = fsm_jet_product(&ratio, entry_of_row(b, AT(b->tables->contact_rows, k, 1), i));
        force = fsm_jet_sum(&force, &along, -1.0);
    }
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

/* List what the mode holds; false where its forces are of a kind that is not enclosed. */
static bool list_balance(struct balance *b)
{
    const struct fsm_tables *tables = b->tables;
    int64_t count = 0, most = fsm_least(tables->sizes->n_u, tables->sizes->n_rows);
    for (int64_t r = 0; r < tables->sizes->n_rows; r++) {
        if (tables->row_role.at[r] == FSM_ROLE_ALWAYS || tables->row_role.at[r] == FSM_ROLE_ALWAYS_POSITION) {
            if (count == most) {
                return false;
            }
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
        if (slides && (flags & (FSM_FLAG_IN_SPACE | FSM_FLAG_LOADED)) != 0) {
            return false; // the direction of friction follows the slip, or its size the forces
        }
        int64_t tangents = code != FSM_CONTACT_HELD || tangent < 0 ? 0 : (flags & FSM_FLAG_IN_SPACE) != 0 ? 2 : 1;
        bool holds = normal >= 0 && (flags & FSM_FLAG_COMPLIANT) == 0;
        if (count + (holds ? 1 : 0) + tangents > most) {
            return false;
        }
        if (holds) {
            b->rows[count] = normal;
            b->slides[count++] = slides ? k : -1;
        }
        for (int64_t i = 0; i < tangents; i++) {
            b->rows[count] = tangent + i;
            b->slides[count++] = -1;
        }
    }
    b->n = tables->sizes->n_u + count;
    return true;
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
static void put_right_side(const struct balance *b)
{
    const struct fsm_tables *tables = b->tables;
    int64_t U = tables->sizes->n_u, loads = place_of_loads(tables->sizes);
    for (int64_t i = 0; i < b->n; i++) {
        b->right[i] = i < U ? *term_at(b, loads + i) : fsm_jet_sum(&NOTHING, term_at(b, loads + U + b->rows[i - U]), -1.0);
    }
    for (int64_t k = 0; k < tables->sizes->n_contacts; k++) {
        int64_t flags = tables->contact_flags.at[k];
        bool known = (flags & (FSM_FLAG_RIGID | FSM_FLAG_SWITCHED)) == 0;
        if (b->states[k] == FSM_CONTACT_FREE || !known || (flags & (FSM_FLAG_COMPLIANT | FSM_FLAG_FRICTION_ONLY)) == 0) {
            continue;
        }
        bool compliant = (flags & FSM_FLAG_COMPLIANT) != 0;
        if (compliant) {
            add_row_times(b, AT(tables->contact_rows, k, 0), of_contact(b, ELASTIC, k));
        }
        if (b->states[k] >= FSM_CONTACT_SLIDING && AT(tables->contact_rows, k, 1) >= 0) {
            struct fsm_jet ratio = friction_ratio(b, k);
            struct fsm_jet force = compliant ? fsm_jet_product(&ratio, of_contact(b, ELASTIC, k)) : ratio;
            force = fsm_jet_sum(&NOTHING, &force, -1.0);
            add_row_times(b, AT(tables->contact_rows, k, 1), &force);
        }
    }
}

/* Invert the matrix (n, n) in place by Gauss-Jordan elimination with row pivots; `order` (n,): work; false where it has no
   inverse. */
static bool invert(double *a, int64_t n, double *order)
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
        for (int64_t i = 0; i < n; i++) {
            double factor = a[i * n + k];
            if (i == k || factor == 0.0) {
                continue;
            }
            a[i * n + k] = 0.0;
            for (int64_t j = 0; j < n; j++) {
                a[i * n + j] -= factor * a[k * n + j];
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
    if (!invert(b->inverse, n, b->sides)) {
        return false;
    }
    for (int64_t i = 0; i < n; i++) {
        double *totals = b->rest + i * n, *offs = b->sides;
        for (int64_t j = 0; j < n; j++) {
            offs[j] = FSM_EPS;
        }
        for (int64_t k = 0; k < n; k++) {
            double entry = b->inverse[i * n + k], size = fabs(entry);
            const double *middles = b->middle + k * n, *radii = b->radius + k * n;
            for (int64_t j = 0; j < n && size > 0.0; j++) {
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
        for (int64_t j = 0; j < n; j++) {
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

static bool is_constant(struct fsm_interval a)
{
    return a.low == 0.0 && a.high == 0.0;
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
            if (!is_constant(change)) {
                *right = fsm_less_product(*right, change, z->value);
            }
            if (rate == 2 && !is_constant(entry->rate)) {
                struct fsm_interval twice = {2.0 * entry->rate.low, 2.0 * entry->rate.high};
                *right = fsm_less_product(*right, twice, z->rate);
            }
        }
    }
}

/* Write the jets of accelerations and forces over the piece whose terms are in `b->values`. */
static void solve_balance(const struct balance *b)
{
    put_right_side(b);
    for (int64_t i = 0; i < b->n; i++) {
        b->solution[i] = NOTHING;
    }
    bool bounded = factor_balance(b) && solve_rate(b, 0);
    for (int64_t i = 0; i < b->n && !bounded; i++) {
        b->solution[i] = UNBOUNDED;
    }
    for (int64_t rate = 1; rate < 3 && bounded; rate++) {
        shift_right(b, rate);
        bounded = solve_rate(b, rate);
        for (int64_t i = 0; i < b->n && !bounded; i++) {
            b->solution[i].rate = rate == 1 ? UNBOUNDED.rate : b->solution[i].rate;
            b->solution[i].second = UNBOUNDED.second;
        }
    }
}

/* The force along a row: of the solution, or of a compliant contact. */
static struct fsm_jet force_of(const struct balance *b, int64_t row, int64_t k)
{
    if ((b->tables->contact_flags.at[k] & FSM_FLAG_COMPLIANT) != 0 && row == AT(b->tables->contact_rows, k, 0)) {
        return *of_contact(b, ELASTIC, k);
    }
    for (int64_t i = b->tables->sizes->n_u; i < b->n; i++) {
        if (b->rows[i - b->tables->sizes->n_u] == row) {
            return b->solution[i];
        }
    }
    return UNBOUNDED;
}

/* The jet of a guard on forces: `code`, negative, says which quantity and sign (run/online.py). */
static struct fsm_jet jet_of_law(const struct balance *b, int64_t code, int64_t k)
{
    int64_t quantity = (-code - 2) / 2, normal = AT(b->tables->contact_rows, k, 0);
    int64_t tangent = AT(b->tables->contact_rows, k, 1), flags = b->tables->contact_flags.at[k];
    double sign = (-code - 2) % 2 == 1 ? 1.0 : -1.0;
    if (quantity == FSM_ONLINE_NORMAL_FORCE || quantity == FSM_ONLINE_HOLDING_LIMIT) {
        struct fsm_jet force = force_of(b, normal, k);
        return fsm_jet_sum(quantity == FSM_ONLINE_NORMAL_FORCE ? &NOTHING : of_contact(b, STATIC, k), &force, sign);
    }
    if ((flags & FSM_FLAG_LOADED) != 0 || tangent < 0) {
        return UNBOUNDED;
    }
    struct fsm_jet bound = *of_contact(b, STATIC, k), first = force_of(b, tangent, k);
    if (normal >= 0) {
        struct fsm_jet load = force_of(b, normal, k);
        load = (flags & FSM_FLAG_TWO_SIDED) != 0 ? fsm_jet_absolute(&load) : load;
        bound = fsm_jet_product(&bound, &load);
    }
    if (quantity == FSM_ONLINE_FRICTION_LIMIT) {
        return fsm_jet_sum(&bound, &first, sign);
    }
    struct fsm_jet second = force_of(b, tangent + 1, k);
    bound = fsm_jet_product(&bound, &bound);
    first = fsm_jet_product(&first, &first);
    second = fsm_jet_product(&second, &second);
    first = fsm_jet_sum(&first, &second, 1.0);
    return fsm_jet_sum(&bound, &first, -1.0);
}

/* The equations of the present mode, without values; false where its forces are of a kind that is not enclosed. */
static bool take_balance(const struct fsm_run *run, const struct fsm_enclosure *program, struct balance *b)
{
    const struct fsm_tables *tables = run->tables;
    const struct fsm_sizes *s = tables->sizes;
    b->tables = tables;
    b->states = tables->mode_states.at + run->state->counters->mode * s->n_contacts;
    b->sigma = run->state->c.at + fsm_sigma_at(s);
    b->terms = program->terms;
    b->rows = run->work->proof_numbers.at + FSM_PROOF_LISTS(s);
    b->slides = b->rows + s->n_rows;
    return list_balance(b);
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
    bool listed = take_balance(run, program, &b);
    const struct fsm_sizes *s = run->tables->sizes;
    int64_t first = fsm_enclosure_size(program) - program->operations, loads = place_of_loads(s), gamma = loads + s->n_u;
    for (int64_t i = s->n_rows * s->n_u; i < gamma && listed; i++) {
        mark_term(b.terms[i], first, needed);
    }
    for (int64_t i = 0; i < b.n - s->n_u && listed; i++) {
        mark_terms_of(&b, b.rows[i], first, needed);
        mark_term(b.terms[gamma + b.rows[i]], first, needed);
    }
    for (int64_t k = 0; k < s->n_contacts && listed; k++) {
        if (b.states[k] == FSM_CONTACT_FREE) {
            continue;
        }
        mark_terms_of(&b, AT(b.tables->contact_rows, k, 0), first, needed);
        mark_terms_of(&b, AT(b.tables->contact_rows, k, 1), first, needed);
        for (int64_t part = ELASTIC; part <= STATIC; part++) {
            mark_term(b.terms[gamma + s->n_rows + part * s->n_contacts + k], first, needed);
        }
    }
}

/* Write the jets of the mode's guards on forces behind the values of the program, over a piece and in its middle, `reach`
   (s) from its ends.

   `codes` (n_g,): below -1 where a guard is one on a force; `jets`, `middle`: the values of the program, with room for the
   guards, twice n jets and 2 n^2 more (run/tables.py); `middle` NULL: nothing is narrowed. */
FSM_LOCAL void fsm_enclose_forces(const struct fsm_run *run, const struct fsm_enclosure *program, const int64_t *codes,
                                  struct fsm_jet *jets, struct fsm_jet *middle, double reach)
{
    const struct fsm_tables *tables = run->tables;
    const struct fsm_sizes *s = tables->sizes;
    int64_t mode = run->state->counters->mode, n_g = fsm_guard_count(tables, mode), sides = middle == NULL ? 1 : 2;
    int64_t size = fsm_enclosure_size(program), most = s->n_u + fsm_least(s->n_u, s->n_rows);
    struct balance b = {0};
    bool listed = take_balance(run, program, &b);
    b.matrix = jets + size + n_g + 2 * most;
    b.middle = (double *)(b.matrix + most * most);
    b.radius = b.middle + most * most;
    b.inverse = b.radius + most * most;
    b.rest = b.inverse + most * most;
    b.sides = b.rest + most * most;
    for (int64_t side = 0; side < sides && listed; side++) {
        struct fsm_jet *own = side == 0 ? jets : middle;
        b.values = own;
        b.right = own + size + n_g;
        b.solution = b.right + most;
        solve_balance(&b);
    }
    for (int64_t i = 0; i < b.n && listed && middle != NULL; i++) {
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
            own[size + j] = listed ? jet_of_law(&b, codes[j], k) : UNBOUNDED;
        }
        if (middle != NULL) {
            fsm_narrow(jets + size + j, middle + size + j, reach);
        }
    }
}

/* Whether terms are bounded over a large region that holds [low, high] (moving,). */
static bool holds(const struct fsm_term_bounds *t, const double *low, const double *high, int64_t n)
{
    bool inside = t->known[0] != 0.0 && t->known[1] < FSM_TERMS_MISSED;
    for (int64_t k = 0; k < n && inside; k++) {
        inside = low[k] >= t->low[k] && high[k] <= t->high[k];
    }
    return inside;
}

/* Bound rates of all terms over a large region about [low, high], at speeds that cross it in unit time, for slips in any
   direction: contacts begin to slide often. */
static void bound_terms(const struct fsm_run *run, const struct fsm_enclosure *p, const struct fsm_term_bounds *t,
                        const double *low, const double *high, struct fsm_jet *jets)
{
    const struct fsm_sizes *s = run->tables->sizes;
    int64_t n = run->state->x.n, ways = 1 + n + fsm_sigma_at(s);
    for (int64_t k = 0; k < p->moving; k++) {
        double extent = high[k] - low[k];
        t->low[k] = low[k] - (p->arguments[k] == 0 ? 0.0 : FSM_TERMS_WIDE * extent);
        t->high[k] = high[k] + FSM_TERMS_WIDE * extent;
        double width = t->high[k] - t->low[k];
        jets[k] = (struct fsm_jet){{t->low[k], t->high[k]}, {-width, width}, {0.0, 0.0}};
    }
    fsm_enclose_any(p, ways, ways + s->n_contacts, jets);
    fsm_enclose(p, NULL, jets, NULL, 0.0);
    fsm_enclose_fixed(p, run->state->c.at, n, jets);
    for (int64_t i = 0; i < p->n_terms; i++) {
        const struct fsm_jet *jet = jets + p->terms[i];
        t->rate[i] = fsm_larger(-jet->rate.low, jet->rate.high);
        t->second[i] = fsm_larger(-jet->second.low, jet->second.high);
    }
    t->known[0] = 1.0;
    t->known[1] = 0.0;
}

/* Write the jets of the mode's guards on forces over the region [low, high] (moving,), along lines that cross it in unit
   time, as far as bounds of the terms over a larger region give them: no program is evaluated but in its middle.

   `needed` (operations,): those of the mode's terms. */
FSM_LOCAL void fsm_bound_forces(const struct fsm_run *run, const struct fsm_enclosure *p, const struct fsm_term_bounds *t,
                                const int64_t *codes, const int8_t *needed, const double *low, const double *high,
                                struct fsm_jet *jets)
{
    int64_t first = fsm_enclosure_size(p) - p->operations;
    if (!holds(t, low, high, p->moving)) {
        bound_terms(run, p, t, low, high, jets);
    }
    double part = 0.0;
    for (int64_t k = 0; k < p->moving; k++) {
        double m = 0.5 * (low[k] + high[k]), extent = high[k] - low[k];
        jets[k] = (struct fsm_jet){{m, m}, {0.0, 0.0}, {0.0, 0.0}};
        part = extent > 0.0 ? fsm_larger(part, extent / (t->high[k] - t->low[k])) : part;
    }
    part *= 1.0 + 16.0 * FSM_EPS;
    fsm_enclose_values(p, needed, jets);
    for (int64_t i = 0; i < p->n_terms && part > 0.0; i++) {
        struct fsm_jet *jet = jets + p->terms[i];
        if (p->terms[i] >= first && is_constant(jet->rate)) { // once, where several terms are one value
            double rate = part * t->rate[i], second = part * part * t->second[i];
            jet->value = (struct fsm_interval){jet->value.low - 0.5 * rate, jet->value.high + 0.5 * rate};
            jet->rate = (struct fsm_interval){-rate, rate};
            jet->second = (struct fsm_interval){-second, second};
        }
    }
    fsm_enclose_forces(run, p, codes, jets, NULL, 0.0);
}
