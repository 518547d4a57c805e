/* Contacts of a time step: their problem, shares, sweeps. */

#include "time_stepping.h"
#include "elementary.h"

/* -- Active contacts of a time step (docs/theory.md, "Time stepping").

   A negative gap alone does not decide: behind a face that ends it is negative without contact.  A contact of such a face
   takes part only if it was on the free side of the face before, or succeeds a neighbour within the depth that the steps
   leave.  That is recorded per contact, 1 for "on the free side, or in contact since".

   Corners are selected as in event-driven integration (contact_features.c), but on predicted gaps: within
   a step's travel of a convex corner two faces of one outline are alternatives, and the one whose gap is predicted largest
   for the end of the step carries; both faces of a concave corner hold; of contacts on one line between two bodies the outer
   two do. */

#define FSM_LINE_ALIKE 0.05 // part by which the normals of contacts on one line may differ
#define FSM_LINE_FLUSH 1e-3 // part of depths by which a contact between two others may be off their line

/* Mark the contacts that are in contact or on the free side of their face where a step begins. */
FSM_LOCAL void fsm_begin_sides(const struct fsm_time_step *step)
{
    const struct fsm_tables *tables = step->tables;
    const struct fsm_terms *terms = step->terms;
    fsm_codes codes = step->codes;
    fsm_codes free_side = step->free_side;
    for (int64_t k = 0; k < codes.n; k++) {
        int64_t row = AT(tables->contact_rows, k, 0);
        bool limited = (tables->contact_flags.at[k] & FSM_FLAG_LIMITED) != 0;
        if (!limited || codes.at[k] != FSM_CONTACT_FREE || terms->residual.at[row] >= -fsm_gap_tolerance(tables, row)) {
            free_side.at[k] = 1;
        }
    }
}

/* Return the penetration of the contacts that a contact may succeed (m), of those listed in `closed`: rigid ones, and
   compliant ones of its shapes. */
static double neighbour_depth(const struct fsm_time_step *step, fsm_indices closed, int64_t k)
{
    const struct fsm_tables *tables = step->tables;
    double depth = 0.0;
    for (int64_t i = 0; i < closed.n; i++) {
        int64_t j = closed.at[i], flags = tables->contact_flags.at[j];
        bool beside = (flags & FSM_FLAG_COMPLIANT) != 0 &&
                      tables->contact_flags.at[j] / FSM_FLAG_GROUP == tables->contact_flags.at[k] / FSM_FLAG_GROUP;
        if ((flags & FSM_FLAG_RIGID) != 0 || beside) {
            depth = fsm_larger(depth, -step->terms->residual.at[AT(tables->contact_rows, j, 0)]);
        }
    }
    return depth;
}

/* List the contacts that are closed where a step begins. */
static fsm_indices list_closed_before(const struct fsm_time_step *step)
{
    fsm_indices closed = fsm_indices_first(fsm_arena_indices(step->arena, step->codes.n), 0);
    for (int64_t k = 0; k < step->codes.n; k++) {
        if (step->codes.at[k] != FSM_CONTACT_FREE) {
            closed.at[closed.n++] = k;
        }
    }
    return closed;
}

/* Update the marks for the predicted configuration.

   A contact that is not before its face keeps its mark as long as its gap is no deeper than contacts are in this
   step: the depth of a neighbour, and what the contact itself moves in the step, from the middle before to this one.  One
   that is before it keeps its mark. */
FSM_LOCAL void fsm_update_sides(const struct fsm_time_step *step)
{
    const struct fsm_tables *tables = step->tables;
    const struct fsm_terms *terms = step->terms;
    fsm_codes free_side = step->free_side;
    fsm_mark top = fsm_arena_mark(step->arena);
    fsm_indices closed = list_closed_before(step);
    for (int64_t k = 0; k < free_side.n; k++) {
        if ((tables->contact_flags.at[k] & FSM_FLAG_LIMITED) == 0) {
            continue;
        }
        int64_t row = AT(tables->contact_rows, k, 0);
        double depth = neighbour_depth(step, closed, k) + step->h * fabs(fsm_row_speed(terms, row, step->u));
        depth += fsm_gap_tolerance(tables, row); // what fell freely since that middle is as deep as it moved, up to rounding
        bool shallow = terms->residual.at[row] >= -depth;
        if (shallow || !fsm_within_face(tables, terms, k)) {
            free_side.at[k] = shallow;
        }
    }
    fsm_arena_release(step->arena, top);
}

/* Whether a compliant contact is compressed and pushes; of several on one line between two bodies the outer two do. */
FSM_LOCAL bool fsm_presses(const struct fsm_time_step *step, int64_t k)
{
    const struct fsm_tables *tables = step->tables;
    const struct fsm_terms *terms = step->terms;
    if ((tables->contact_flags.at[k] & FSM_FLAG_COMPLIANT) == 0 || step->free_side.at[k] == 0) {
        return false;
    }
    bool deep = terms->residual.at[AT(tables->contact_rows, k, 0)] < 0.0 && terms->elastic.at[k] > 0.0;
    return deep && terms->closes_if.at[k] != 0.0 && fsm_within_face(tables, terms, k) &&
           !fsm_is_inner_compression(tables, terms, k);
}

/* Whether a corner is beyond the ends of face `k` and another one by no more than it is deep in the other. */
static bool is_concave(const struct fsm_time_step *step, int64_t k)
{
    const struct fsm_tables *tables = step->tables;
    const struct fsm_terms *terms = step->terms;
    fsm_codes free_side = step->free_side;
    double small = tables->tolerances->gap;
    int64_t row = AT(tables->contact_rows, k, 0);
    if ((tables->contact_flags.at[k] & FSM_FLAG_LIMITED) == 0 || AT(tables->contact_ends, k, 0) < 0 ||
        terms->aspect.at[k] < -small) {
        return false;
    }
    for (int64_t j = 0; j < free_side.n; j++) {
        if (j == k || AT(tables->contact_ends, j, 0) != AT(tables->contact_ends, k, 0) || free_side.at[j] == 0) {
            continue;
        }
        double other = terms->residual.at[AT(tables->contact_rows, j, 0)];
        if (other < 0.0 && terms->reach.at[k] >= other - small &&
            terms->reach.at[j] >= fsm_smaller(terms->residual.at[row], 0.0) - small) {
            return true;
        }
    }
    return false;
}

/* Whether two contacts are those of one corner with faces that meet in a convex corner. */
static bool share_an_end(const struct fsm_tables *tables, int64_t j, int64_t k)
{
    if (j == k || AT(tables->contact_ends, j, 0) < 0 ||
        AT(tables->contact_ends, j, 0) != AT(tables->contact_ends, k, 0)) {
        return false;
    }
    for (int64_t i = 1; i < 3; i++) {
        int64_t end = AT(tables->contact_ends, j, i);
        if (end >= 0 && (end == AT(tables->contact_ends, k, 1) || end == AT(tables->contact_ends, k, 2))) {
            return true;
        }
    }
    return false;
}

/* Whether a contact lies between two others that take part, on one line with them and as deep as they are there. */
static bool is_inner_contact(const struct fsm_tables *tables, const struct fsm_terms *terms, fsm_indices part,
                             int64_t k)
{
    if (AT(tables->contact_ends, k, 0) < 0) {
        return false;
    }
    double gap = terms->residual.at[AT(tables->contact_rows, k, 0)];
    for (int64_t j = 0; j < part.n; j++) {
        if (j == k || part.at[j] == 0 || (tables->contact_flags.at[j] & FSM_FLAG_RIGID) == 0 ||
            !fsm_exchangeable(tables, j, k)) {
            continue;
        }
        for (int64_t m = j + 1; m < part.n; m++) {
            if (m == k || part.at[m] == 0 || (tables->contact_flags.at[m] & FSM_FLAG_RIGID) == 0 ||
                !fsm_exchangeable(tables, m, k)) {
                continue;
            }
            double s = fsm_between(tables, terms, k, j, m, FSM_LINE_ALIKE);
            double one = terms->residual.at[AT(tables->contact_rows, j, 0)],
                   other = terms->residual.at[AT(tables->contact_rows, m, 0)];
            double flush = tables->tolerances->gap + FSM_LINE_FLUSH * (fabs(one) + fabs(other));
            if (0.0 < s && s < 1.0 && fabs((1.0 - s) * one + s * other - gap) <= flush) {
                return true;
            }
        }
    }
    return false;
}

/* Remove from `part` (n_contacts,) the contacts of corners and faces that others determine.

   A face behind which a corner has come across another one does not act on it from there. */
static void choose_corners(const struct fsm_time_step *step, fsm_indices part)
{
    const struct fsm_tables *tables = step->tables;
    const struct fsm_terms *terms = step->terms;
    int64_t n = part.n;
    for (int64_t k = 0; k < n; k++) {
        if (part.at[k] == 0 || (tables->contact_flags.at[k] & FSM_FLAG_RIGID) == 0) {
            continue;
        }
        int64_t row = AT(tables->contact_rows, k, 0);
        double end = terms->residual.at[row] + 0.5 * step->h * fsm_row_speed(terms, row, step->u);
        for (int64_t j = 0; j < n; j++) {
            if ((tables->contact_flags.at[j] & FSM_FLAG_RIGID) == 0 || !share_an_end(tables, j, k)) {
                continue;
            }
            int64_t other = AT(tables->contact_rows, j, 0);
            bool touches = terms->residual.at[other] <= tables->tolerances->gap && terms->closes_if.at[j] != 0.0;
            if (part.at[j] == 0 && !(touches && fsm_within_face(tables, terms, j))) {
                continue;
            }
            if (terms->residual.at[other] + 0.5 * step->h * fsm_row_speed(terms, other, step->u) > end) {
                part.at[k] = 0;
                step->free_side.at[k] = 0;
            }
        }
    }
    for (int64_t k = 0; k < n; k++) {
        if (part.at[k] == 1 && (tables->contact_flags.at[k] & FSM_FLAG_RIGID) != 0 &&
            is_inner_contact(tables, terms, part, k)) {
            part.at[k] = 0;
        }
    }
}

/* Whether a contact was closed in the step before, or one of the same corner was: at a seam the next face takes over. */
static bool was_closed(const struct fsm_time_step *step, int64_t k)
{
    const struct fsm_tables *tables = step->tables;
    if (step->codes.at[k] != FSM_CONTACT_FREE) {
        return true;
    }
    int64_t corner = AT(tables->contact_ends, k, 0);
    for (int64_t j = 0; corner >= 0 && j < step->codes.n; j++) {
        if (AT(tables->contact_ends, j, 0) == corner && step->codes.at[j] != FSM_CONTACT_FREE &&
            (tables->contact_flags.at[j] & FSM_FLAG_RIGID) != 0) {
            return true;
        }
    }
    return false;
}

/* Whether a contact takes part in the step; one that was closed does up to the gap tolerance, in spite of rounding. */
static bool takes_part_in_step(const struct fsm_time_step *step, int64_t k)
{
    const struct fsm_tables *tables = step->tables;
    const struct fsm_terms *terms = step->terms;
    int64_t flags = tables->contact_flags.at[k];
    if (flags & FSM_FLAG_COMPLIANT) {
        return fsm_presses(step, k);
    }
    if (flags & (FSM_FLAG_FRICTION_ONLY | FSM_FLAG_TWO_SIDED)) {
        return true;
    }
    if ((flags & FSM_FLAG_RIGID) == 0) {
        return (flags & FSM_FLAG_FORCE_LIMIT) != 0 && step->codes.at[k] == FSM_CONTACT_HELD;
    }
    int64_t row = AT(tables->contact_rows, k, 0);
    double near = fsm_gap_tolerance(tables, row);
    if (terms->residual.at[row] > near) {
        return false;
    }
    near = was_closed(step, k) ? near : 0.0;
    return terms->residual.at[row] <= near && step->free_side.at[k] != 0 && terms->closes_if.at[k] != 0.0 &&
           (fsm_within_face(tables, terms, k) || is_concave(step, k));
}

/* Return the constraint rows of the contacts that take part in the step. */
FSM_LOCAL struct fsm_active_rows fsm_list_active(const struct fsm_time_step *step)
{
    const struct fsm_tables *tables = step->tables;
    int64_t count = step->codes.n;
    struct fsm_active_rows active = {.rows =
                                         fsm_indices_first(fsm_arena_indices(step->arena, tables->sizes->n_rows), 0),
                                     .normal = fsm_arena_indices(step->arena, count),
                                     .tangent = fsm_arena_indices(step->arena, count)};
    fsm_indices part = fsm_arena_indices(step->arena, count);
    for (int64_t k = 0; k < count; k++) {
        part.at[k] = takes_part_in_step(step, k);
    }
    choose_corners(step, part);
    fsm_indices_fill(active.normal, -1);
    fsm_indices_fill(active.tangent, -1);
    for (int64_t k = 0; k < count; k++) {
        bool lock = (tables->contact_flags.at[k] & FSM_FLAG_FORCE_LIMIT) != 0; // its force has a bound, as friction has
        int64_t tangent = AT(tables->contact_rows, k, lock ? 0 : 1);
        if (part.at[k] == 0) {
            continue;
        }
        if ((tables->contact_flags.at[k] & FSM_FLAG_RIGID) != 0) {
            active.normal.at[k] = active.rows.n;
            active.rows.at[active.rows.n++] = AT(tables->contact_rows, k, 0);
        }
        if (tangent >= 0) {
            active.tangent.at[k] = active.rows.n;
            active.rows.at[active.rows.n++] = tangent;
            if (tables->contact_flags.at[k] & FSM_FLAG_IN_SPACE) {
                active.rows.at[active.rows.n++] = tangent + 1;
            }
        }
    }
    return active;
}

/* Whether no open rigid contact is deeper than the gap tolerance where a run begins; compliant ones are marked.

   Behind a face that ends a negative gap is no violation, unless the corner is inside the body. */
FSM_LOCAL bool fsm_may_begin(const struct fsm_tables *tables, const struct fsm_terms *terms, fsm_indices states,
                             fsm_codes free_side)
{
    for (int64_t k = 0; k < states.n; k++) {
        int64_t flags = tables->contact_flags.at[k], row = AT(tables->contact_rows, k, 0);
        if ((flags & (FSM_FLAG_RIGID | FSM_FLAG_COMPLIANT)) == 0 || (flags & FSM_FLAG_TWO_SIDED) != 0 ||
            states.at[k] != FSM_CONTACT_FREE || terms->closes_if.at[k] == 0.0 ||
            terms->residual.at[row] >= -fsm_gap_tolerance(tables, row)) {
            continue;
        }
        bool inside = (flags & FSM_FLAG_LIMITED) == 0 || fsm_is_placed_inside(tables, terms, states, k);
        if (inside && (flags & FSM_FLAG_RIGID) != 0) {
            return false;
        }
        free_side.at[k] = inside ? 1 : free_side.at[k];
    }
    return !fsm_edges_cross(tables, terms, states) && !fsm_solids_overlap(tables, terms, states);
}

/* -- The contact problem of a step of time stepping, by projected Gauss-Seidel sweeps.

   M. Jean (1999), *The non-smooth contact dynamics method*, Comput. Methods Appl. Mech. Eng. 177. */

#define FSM_CONVERGED   1e-12 // change of a speed in a sweep, as a fraction of the fastest: the sweeps end
#define FSM_SHARED      1e-10 // part of the largest impulse by which shares that the motion depends on may be missed
#define FSM_SOLVED      1e-7  // such a change in the last sweep, above which the problem was not solved

/* Whether sweeps have converged, by the change of a speed in the last one and the fastest speed (m/s). */
FSM_LOCAL bool fsm_is_converged(double change, double fastest)
{
    return change <= FSM_CONVERGED * fastest;
}

/* Whether sweeps have solved a problem, likewise; what is not a number is found at the end of the step. */
FSM_LOCAL bool fsm_is_solved(double change, double fastest)
{
    return !(change > FSM_SOLVED * fastest);
}

/* Return the resultant of the impulses that load a bearing in the step (N s). */
static double load_of(const struct fsm_time_step *step, const struct fsm_active_rows *active, int64_t k,
                      fsm_vector impulse)
{
    fsm_mark top = fsm_arena_mark(step->arena);
    fsm_vector reaction = fsm_arena_vector(step->arena, active->held.n);
    fsm_reactions_under(active->response, active->reaction, impulse, reaction);
    double load = fsm_bearing_load(step->tables, k, (struct fsm_row_forces){active->held, reaction},
                                   (struct fsm_row_forces){active->rows, impulse});
    fsm_arena_release(step->arena, top);
    return load;
}

/* Return the largest impulse (N s) of a contact's friction, `still` or sliding, or of a lock with a limit;
   negative: there is none. */
static double largest_friction(const struct fsm_time_step *step, const struct fsm_active_rows *active, int64_t k,
                               fsm_vector impulse, bool still)
{
    const struct fsm_terms *terms = step->terms;
    if (step->tables->contact_flags.at[k] & FSM_FLAG_STICKS_ALWAYS) {
        return -1.0;
    }
    double ratio = still ? terms->static_friction.at[k] : terms->kinetic_friction.at[k];
    int64_t flags = step->tables->contact_flags.at[k];
    if (flags & FSM_FLAG_LOADED) {
        return ratio * load_of(step, active, k, impulse);
    }
    if (flags & (FSM_FLAG_FRICTION_ONLY | FSM_FLAG_FORCE_LIMIT)) {
        return ratio * step->h;
    }
    if (flags & FSM_FLAG_COMPLIANT) {
        return ratio * step->h * terms->elastic.at[k];
    }
    return ratio * fabs(impulse.at[active->normal.at[k]]);
}

/* Return the largest friction impulse of a contact, or impulse of a lock with a limit (N s), static where it stuck before; negative: there is none. */
FSM_LOCAL double fsm_friction_bound(const struct fsm_time_step *step, const struct fsm_active_rows *active, int64_t k,
                                    fsm_vector impulse)
{
    return largest_friction(step, active, k, impulse, step->codes.at[k] == FSM_CONTACT_HELD);
}

/* Whether a contact that slides comes to rest within the step, where static friction exceeds kinetic: its speed along row
   `r`, and the next one in space, goes from one sense to the other, `slip`. */
static bool comes_to_rest(const struct fsm_time_step *step, const struct fsm_active_rows *active, int64_t k, int64_t r,
                          const double *slip)
{
    const struct fsm_terms *terms = step->terms;
    if (step->codes.at[k] < FSM_CONTACT_SLIDING || terms->static_friction.at[k] <= terms->kinetic_friction.at[k]) {
        return false;
    }
    double along = fsm_row_speed(terms, active->rows.at[r], step->u) * slip[0];
    if (step->tables->contact_flags.at[k] & FSM_FLAG_IN_SPACE) {
        along += fsm_row_speed(terms, active->rows.at[r] + 1, step->u) * slip[1];
    }
    return along < 0.0;
}

/* Return an impulse of friction within a bound; negative: there is none. */
static double within(double bound, double impulse)
{
    return bound < 0.0 ? impulse : fsm_smaller(bound, fsm_larger(-bound, impulse));
}

/* Write the friction impulse in space of the tangent rows `r` and `r + 1`, within a circle, to `after` (2,), and the
   speeds that follow to `slip` (2,); returns the change of a speed. */
static double project_disc(fsm_matrix K, fsm_vector speed, fsm_vector impulse, int64_t r, double bound, double *after,
                           double *slip)
{
    double stiff = fsm_larger(AT(K, r, r), AT(K, r + 1, r + 1)) + fabs(AT(K, r, r + 1));
    after[0] = impulse.at[r] - speed.at[r] / stiff;
    after[1] = impulse.at[r + 1] - speed.at[r + 1] / stiff;
    double size = fsm_hypot(after[0], after[1]);
    if (0.0 <= bound && bound < size) {
        after[0] = after[0] * bound / size;
        after[1] = after[1] * bound / size;
    }
    double first = after[0] - impulse.at[r], second = after[1] - impulse.at[r + 1];
    for (int64_t i = 0; i < 2; i++) {
        slip[i] = speed.at[r + i] + AT(K, r + i, r) * first + AT(K, r + i, r + 1) * second;
    }
    return stiff * fsm_larger(fabs(first), fabs(second));
}

/* Update the friction impulse in space of a contact; returns the change of a speed. */
static double rub_in_space(const struct fsm_time_step *step, const struct fsm_active_rows *active, int64_t k,
                           double bound, fsm_matrix K, fsm_vector speed, fsm_vector impulse)
{
    int64_t r = active->tangent.at[k];
    double after[2], slip[2];
    double change = project_disc(K, speed, impulse, r, bound, after, slip);
    if (comes_to_rest(step, active, k, r, slip)) {
        bound = largest_friction(step, active, k, impulse, true);
        change = project_disc(K, speed, impulse, r, bound, after, slip);
    }
    double first = after[0] - impulse.at[r], second = after[1] - impulse.at[r + 1];
    impulse.at[r] += first;
    impulse.at[r + 1] += second;
    for (int64_t s = 0; s < speed.n; s++) {
        speed.at[s] += AT(K, s, r) * first + AT(K, s, r + 1) * second;
    }
    return change;
}

/* Set the impulse of row `r`, and update the speeds; returns the change of its speed. */
static double set_impulse(fsm_matrix K, fsm_vector speed, fsm_vector impulse, int64_t r, double after)
{
    double change = after - impulse.at[r];
    impulse.at[r] = after;
    if (change != 0.0) {
        for (int64_t s = 0; s < speed.n; s++) {
            speed.at[s] += AT(K, s, r) * change;
        }
    }
    return fabs(change) * AT(K, r, r);
}

/* Update the impulses of all contacts once; returns the largest change of a speed, as that of a length.  `speed` (n,) follows `impulse`. */
static double sweep(const struct fsm_time_step *step, const struct fsm_active_rows *active, fsm_matrix K,
                    fsm_vector target, fsm_vector speed, fsm_vector impulse)
{
    double largest = 0.0;
    for (int64_t k = 0; k < active->normal.n; k++) {
        int64_t normal = active->normal.at[k], tangent = active->tangent.at[k],
                flags = step->tables->contact_flags.at[k];
        if (normal >= 0 && AT(K, normal, normal) > 0.0) {
            double after = impulse.at[normal] - (speed.at[normal] - target.at[normal]) / AT(K, normal, normal);
            if ((flags & FSM_FLAG_TWO_SIDED) == 0) {
                after = fsm_larger(0.0, after);
            }
            double unit = step->tables->row_unit.at[active->rows.at[normal]];
            largest = fsm_larger(largest, set_impulse(K, speed, impulse, normal, after) / unit);
        }
        if (tangent < 0 || AT(K, tangent, tangent) <= 0.0) {
            continue;
        }
        double bound = fsm_friction_bound(step, active, k, impulse);
        double unit = step->tables->row_unit.at[active->rows.at[tangent]];
        if (bound < 0.0 && normal >= 0 && impulse.at[normal] == 0.0) {
            bound = 0.0; // infinite friction does not act without a normal impulse
        }
        if (flags & FSM_FLAG_IN_SPACE) {
            largest = fsm_larger(largest, rub_in_space(step, active, k, bound, K, speed, impulse) / unit);
            continue;
        }
        double stop = impulse.at[tangent] - (speed.at[tangent] - target.at[tangent]) / AT(K, tangent, tangent);
        double after = within(bound, stop);
        double slip = speed.at[tangent] + AT(K, tangent, tangent) * (after - impulse.at[tangent]);
        if (comes_to_rest(step, active, k, tangent, &slip)) { // it slides on beyond the static limit only
            after = within(largest_friction(step, active, k, impulse, true), stop);
        }
        largest = fsm_larger(largest, set_impulse(K, speed, impulse, tangent, after) / unit);
    }
    return largest;
}

/* Sweep until nothing changes; returns the change of a speed in the last sweep. */
static double sweep_to_convergence(const struct fsm_time_step *step, const struct fsm_active_rows *active, fsm_matrix K,
                                   fsm_vector target, double fastest, fsm_vector speed, fsm_vector impulse)
{
    double change = 0.0;
    for (int64_t pass = 0; speed.n > 0 && pass < FSM_MOST_SWEEPS; pass++) {
        change = sweep(step, active, K, target, speed, impulse);
        if (fsm_is_converged(change, fastest) &&
            fsm_share_impulses(step, active, K, fastest, speed, impulse) <= FSM_SHARED) {
            break;
        }
    }
    return change;
}

/* Solve the contact problem of a step, and keep of its restitution what does not raise the energy, as in impacts; nothing
   where other contacts prevent it.

   `K` (n, n): Delassus matrix; `target` (n,): speeds of restitution; `returned` (n,): slip to return; `fastest`: the fastest speed (m/s).  `speed` (n,):
   in, without contact impulses; out, after them.  `impulse` (n,), zero before, and `kept`, the part of the restitution
   that is kept, are written.  Returns the change of a speed in the last sweep. */
FSM_LOCAL double fsm_contact_impulses(const struct fsm_time_step *step, const struct fsm_active_rows *active,
                                      fsm_matrix K, fsm_vector target, fsm_vector returned, double fastest,
                                      fsm_vector speed, fsm_vector impulse, double *kept)
{
    int64_t n = speed.n;
    fsm_vector zero = fsm_arena_vector(step->arena, n);
    struct fsm_impact_balance balance = {.before = fsm_arena_copy(step->arena, speed),
                                         .base_work = 0.0,
                                         .work = zero,
                                         .tolerance = step->tables->tolerances->energy};
    bool rebounds = false;
    for (int64_t r = 0; r < n; r++) { // Coulomb's law is of the slip plus what is returned
        rebounds = rebounds || target.at[r] > 0.0 || returned.at[r] != 0.0;
        speed.at[r] += returned.at[r];
    }
    double change = sweep_to_convergence(step, active, K, target, fastest, speed, impulse);
    bool solved = fsm_is_converged(change, fastest);
    if (!rebounds && fsm_stick_on(step, active, K, balance.before, fastest, solved, speed, impulse)) {
        change = sweep_to_convergence(step, active, K, target, fastest, speed, impulse);
    }
    for (int64_t r = 0; r < n; r++) {
        speed.at[r] -= returned.at[r];
    }
    *kept = 1.0;
    bool jammed = rebounds && !fsm_is_solved(change, fastest); // a stop whose body is held from behind, say
    if (!rebounds || !(jammed || fsm_gains_energy(&balance, impulse, speed))) {
        return change;
    }
    fsm_vector plastic = fsm_arena_vector(step->arena, n);
    fsm_vector plastic_speed = fsm_arena_copy(step->arena, balance.before);
    double again = sweep_to_convergence(step, active, K, zero, fastest, plastic_speed, plastic);
    *kept = jammed ? 0.0 : fsm_energy_consistent_fraction(&balance, plastic, plastic_speed, impulse, speed);
    for (int64_t r = 0; r < n; r++) {
        impulse.at[r] = plastic.at[r] + *kept * (impulse.at[r] - plastic.at[r]);
        speed.at[r] = plastic_speed.at[r] + *kept * (speed.at[r] - plastic_speed.at[r]);
    }
    return jammed ? again : fsm_larger(change, again);
}
