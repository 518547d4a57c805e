/* The contact problem of a step of time stepping, by projected Gauss-Seidel sweeps.

   M. Jean (1999), *The non-smooth contact dynamics method*, Comput. Methods Appl. Mech. Eng. 177. */

#include "elementary.h"
#include "time_stepping.h"

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
    double load = fsm_bearing_load(step->tables, k, active->held, reaction);
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

   `K` (n, n): Delassus matrix; `target` (n,): speeds of restitution; `fastest`: the fastest speed (m/s).  `speed` (n,):
   in, without contact impulses; out, after them.  `impulse` (n,), zero before, and `kept`, the part of the restitution
   that is kept, are written.  Returns the change of a speed in the last sweep. */
FSM_LOCAL double fsm_contact_impulses(const struct fsm_time_step *step, const struct fsm_active_rows *active,
                                      fsm_matrix K, fsm_vector target, double fastest, fsm_vector speed,
                                      fsm_vector impulse, double *kept)
{
    int64_t n = speed.n;
    fsm_vector zero = fsm_arena_vector(step->arena, n);
    struct fsm_impact_balance balance = {.before = fsm_arena_copy(step->arena, speed),
                                         .base_work = 0.0,
                                         .work = zero,
                                         .tolerance = step->tables->tolerances->energy};
    double change = sweep_to_convergence(step, active, K, target, fastest, speed, impulse);
    bool rebounds = false;
    for (int64_t r = 0; r < n; r++) {
        rebounds = rebounds || target.at[r] > 0.0;
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
