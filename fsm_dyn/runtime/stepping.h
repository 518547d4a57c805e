/* Event-driven integration: steps, event location, change points, transitions. */

#ifndef FSM_STEPPING_H
#define FSM_STEPPING_H

#include "contacts.h"
#include "enclosure.h"

#ifndef FSM_CLEAR
#define FSM_CLEAR 5.0 // times what a guard may change in a step by which one is above zero that cannot fire; tests set more
#endif
#define FSM_NEIGHBOUR 2.3e-16 // two numbers that differ by no more than this part are neighbours

/* inputs.c */
FSM_LOCAL bool fsm_inputs_vary(const struct fsm_input_tables *inputs, int64_t segment);
FSM_LOCAL void fsm_update_inputs(const struct fsm_input_tables *inputs, double t, int64_t segment, fsm_vector x,
                                 fsm_vector c);
FSM_LOCAL void fsm_write_inputs(const struct fsm_input_tables *inputs, double t, int64_t segment, fsm_vector x,
                                fsm_vector c);
FSM_LOCAL double fsm_next_breakpoint(const struct fsm_input_tables *inputs, int64_t segment);
FSM_LOCAL int64_t fsm_enter_segment(const struct fsm_input_tables *inputs, int64_t segment, double *time);
FSM_LOCAL void fsm_decide_again(struct fsm_counters *counters, enum fsm_reason reason);
FSM_LOCAL enum fsm_status fsm_sample(const struct fsm_tables *tables, struct fsm_work *work, double slack, double *time,
                                     fsm_vector x, fsm_vector c);
FSM_LOCAL enum fsm_status fsm_sample_here(const struct fsm_run *run);
FSM_API double fsm_next_jump(const struct fsm_run *run);
FSM_LOCAL enum fsm_status fsm_jump(const struct fsm_run *run);

/* trial_step.c */
FSM_LOCAL bool fsm_proves_without_differences(const struct fsm_run *run);
FSM_LOCAL bool fsm_differences_matter(const struct fsm_run *run);
FSM_LOCAL void fsm_add_rates(const double *weights, int64_t count, const double *rates, double h, fsm_vector x,
                             double *out);
FSM_LOCAL void fsm_runge_kutta_step(const struct fsm_run *run, double h);
FSM_LOCAL void fsm_middle_state(const struct fsm_run *run, double h);
FSM_LOCAL double fsm_error_norm(const struct fsm_run *run, double h);
FSM_LOCAL bool fsm_step_is_too_long(const struct fsm_run *run, double h);
FSM_LOCAL double fsm_step_factor(double error, double error_before, int64_t order);
FSM_LOCAL double fsm_rejection_factor(double error, int64_t order);
FSM_LOCAL double fsm_first_step(const struct fsm_run *run, double longest);
FSM_LOCAL void fsm_dense_state(const struct fsm_method *method, double t, fsm_vector x);

/* event_location.c */
#define FSM_NONE      2.0 // returned instead of a root; every root is at most 1
FSM_LOCAL double fsm_quintic(double g0, double s0, double gm, double sm, double g1, double s1, double h,
                             fsm_vector work, double *sixth);
FSM_LOCAL double fsm_first_crossing(fsm_vector work, double tolerance, bool waiting);
FSM_LOCAL double fsm_back_to_zero(fsm_vector work, double tolerance, double root);
FSM_LOCAL bool fsm_surely_positive(fsm_vector work, double tolerance, double sixth);

/* trial_step.c */
FSM_LOCAL enum fsm_status fsm_project(const struct fsm_run *run, double t, fsm_vector x, bool *moved);
FSM_LOCAL bool fsm_gate_opened_late(const struct fsm_run *run);
FSM_LOCAL bool fsm_land(const struct fsm_run *run, double t, fsm_vector x, double farthest);

/* change_points.c */
FSM_LOCAL double fsm_motion_of(const struct fsm_tables *tables, fsm_vector x, fsm_vector x_dot, int64_t n);
FSM_LOCAL void fsm_assess(const struct fsm_run *run);
FSM_LOCAL bool fsm_look_ahead(const struct fsm_run *run);
FSM_LOCAL fsm_vector fsm_known_row_sizes(const struct fsm_run *run);
FSM_LOCAL fsm_matrix fsm_rows_along(const struct fsm_run *run, fsm_vector x_dot, fsm_indices rows, fsm_vector scale,
                                    fsm_vector sizes, double extent, double later);
FSM_LOCAL void fsm_combination_of(fsm_matrix L, int64_t first, int64_t k, fsm_vector out);
FSM_LOCAL bool fsm_is_in_change_point(const struct fsm_rank *rank);
FSM_LOCAL bool fsm_is_event_in_change_point(const struct fsm_rank *rank, double h, double rtol);
FSM_LOCAL bool fsm_has_event_in_change_point(const struct fsm_run *run);
FSM_LOCAL bool fsm_is_weak(const struct fsm_rank *rank, double left);
FSM_LOCAL bool fsm_is_near(const struct fsm_rank *rank, double h, double left);
FSM_LOCAL double fsm_least_left(const struct fsm_tables *tables, double rtol);
FSM_LOCAL double fsm_clear_length(double ahead, double h, double fraction);
FSM_LOCAL double fsm_passing_fraction(int64_t stages, bool guards);
FSM_LOCAL double fsm_least_passage(double turn, double rtol);
FSM_LOCAL double fsm_allowance(const struct fsm_rank *rank, double h, double rtol);
FSM_LOCAL bool fsm_is_rounding(double error, double h, double tried_error, double tried);
FSM_LOCAL void fsm_note_passage(struct fsm_rank *rank, double t, double t_end, double error);

/* A step while it is found: lengths in s, errors in units of the tolerance. */
struct fsm_trial {
    double target;                   // instant where it ends at the latest
    double t_end;                    // instant where it ends
    double h;                        // length
    double least;                    // length below which the clock does not resolve it
    double asked;                    // length tried first
    double wanted;                   // length before it was changed to keep clear of a change point
    double error;                    // estimated
    double rejected, rejected_error; // length and error of the trial rejected last
    double part;                     // of the length to try next where the step is too long to tell what fires in it
    bool keeps_clear;                // of change points, with its nodes
    bool passes;                     // a change point lies within
    bool forced;                     // accepted near a change point whatever its error
    bool shortened, accepted;
};

/* What becomes of a trial step. */
enum fsm_verdict { FSM_ACCEPT, FSM_SHORTEN, FSM_RETAKE };
FSM_LOCAL enum fsm_status fsm_look(const struct fsm_run *run, double h, double *length);
FSM_LOCAL double fsm_keep_clear(const struct fsm_run *run, double h, bool *passes);
FSM_LOCAL enum fsm_verdict fsm_judge(const struct fsm_run *run, struct fsm_trial *trial, bool finite);
FSM_LOCAL double fsm_shorter(const struct fsm_run *run, const struct fsm_trial *trial);

/* change_point_start.c */
FSM_LOCAL double fsm_time_aside(const struct fsm_run *run, int64_t mode);
FSM_LOCAL int64_t fsm_entry_chart_aside(const struct fsm_run *run, int64_t target, double aside);
FSM_LOCAL bool fsm_evaluate_limit(const struct fsm_run *run, double aside);

/* end_of_run.c */
FSM_LOCAL enum fsm_status fsm_why_not(const struct fsm_run *run, enum fsm_status status);
FSM_LOCAL bool fsm_rests_in_change_point(const struct fsm_run *run);

/* change_point_start.c */
FSM_LOCAL int64_t fsm_better_chart(const struct fsm_run *run);
FSM_LOCAL bool fsm_is_poor_chart(const struct fsm_run *run);
FSM_LOCAL enum fsm_status fsm_change_chart(const struct fsm_run *run, int64_t other);
FSM_LOCAL bool fsm_limits_change(const struct fsm_run *run);
FSM_LOCAL bool fsm_is_void_limit(const struct fsm_run *run, int64_t guard);
FSM_LOCAL bool fsm_has_earned_kernels(const struct fsm_run *run, int64_t mode);
FSM_LOCAL int64_t fsm_own_kernels(const struct fsm_run *run, int64_t target);
FSM_LOCAL int64_t fsm_entry_chart(const struct fsm_run *run, int64_t target);

/* stepper.c */
FSM_LOCAL void fsm_write_row(const struct fsm_run *run, fsm_vector x_mid);
FSM_LOCAL void fsm_write_transition(const struct fsm_run *run, int64_t source);
FSM_LOCAL void fsm_write_passage(const struct fsm_run *run);

/* trial_step.c */
#define FSM_ROWS_INCONSISTENT 10.0   // times the speed that counts as zero: beyond this redundant rows are inconsistent
#define FSM_ROWS_FAR_OFF      1000.0 // times that speed: the step went too far past the instant where they became so
FSM_LOCAL double fsm_constraint_violation_speed(const struct fsm_run *run, double t, fsm_vector x);

/* stepper.c */
FSM_LOCAL int64_t fsm_guard_count(const struct fsm_tables *tables, int64_t mode);
FSM_LOCAL void fsm_normalise_quaternions(const struct fsm_tables *tables, fsm_vector x);
FSM_LOCAL void fsm_trial_step(const struct fsm_run *run, double h, double t_end);
FSM_LOCAL enum fsm_status fsm_project_end(const struct fsm_run *run, double t_end);
FSM_LOCAL void fsm_evaluate_middle(const struct fsm_run *run, double h);
FSM_LOCAL bool fsm_evaluate_here(const struct fsm_run *run);
FSM_LOCAL bool fsm_commit_step_end(const struct fsm_run *run);
FSM_LOCAL bool fsm_end_is_finite(const struct fsm_run *run);

/* Whether a guard is a bound of a coordinate's range. */
static inline bool fsm_is_bound(const struct fsm_tables *tables, int64_t guard)
{
    return tables->guard_event.at[guard] == FSM_EVENT_TRANSITION &&
           AT(tables->transitions, tables->guard_contact.at[guard], FSM_TRANSITION_STOP) == FSM_TRANSITION_LEFT_RANGE;
}

/* Whether a guard is the surface in which a held row or the gap of a closed contact has a kink. */
static inline bool fsm_is_kink(const struct fsm_tables *tables, int64_t guard)
{
    return tables->guard_event.at[guard] == FSM_EVENT_TRANSITION &&
           AT(tables->transitions, tables->guard_contact.at[guard], FSM_TRANSITION_STOP) == FSM_TRANSITION_KINK;
}

/* event_location.c: instead of the number of a guard */
enum { FSM_NO_EVENT = -1, FSM_INTERPOLANT_UNRELIABLE = -2 };
FSM_LOCAL double fsm_clock_resolution(const struct fsm_tables *tables, double t);
FSM_LOCAL bool fsm_is_clear(double start, double start_slope, double middle, double middle_slope, double end,
                            double end_slope, double h);
FSM_LOCAL double fsm_first_event(const struct fsm_run *run, double h, int64_t *guard);
FSM_LOCAL void fsm_take_differences_here(const struct fsm_run *run);
FSM_LOCAL void fsm_take_differences(const struct fsm_run *run, double h, double t_end);
FSM_LOCAL double fsm_locate(const struct fsm_run *run, double h, double *fraction, int64_t j, int64_t *guard);
FSM_LOCAL void fsm_collect_fired(const struct fsm_run *run, int64_t lead);
FSM_LOCAL double fsm_longest_flight(const struct fsm_run *run, double h);

/* state_enclosure.c */
FSM_LOCAL struct fsm_jet fsm_enclose_input(const struct fsm_run *run, int64_t place, double begin, double end,
                                           int64_t *evaluated);
#define FSM_MOTION 10 // numbers of the motion of a state in a step
FSM_LOCAL void fsm_record_state(const struct fsm_run *run, int64_t i, double h, double *motion);
FSM_LOCAL void fsm_bound_state(const struct fsm_run *run, int64_t i, double h, double *least, double *most, double *speed);
FSM_LOCAL struct fsm_jet fsm_enclose_state(const double *motion, double h, double a, double b);

/* Bounds of the rates of terms over a large region [low, high] (moving,), at speeds that cross it in unit time. */
struct fsm_term_bounds {
    double *known; // (2,): above 0 where there are some: how long they are kept; steps enclosed since
    double *low, *high;
    double *rate, *second; // (n_terms,)
};

/* force_enclosure.c */
FSM_LOCAL void fsm_mark_terms(const struct fsm_run *run, const struct fsm_enclosure *program, int8_t *needed);
FSM_LOCAL int64_t fsm_enclose_forces(const struct fsm_run *run, const struct fsm_enclosure *program, const int64_t *codes,
                                     int64_t order, struct fsm_jet *jets, struct fsm_jet *middle, double reach,
                                     const struct fsm_part *part);

/* state_enclosure.c */
FSM_LOCAL int64_t fsm_bound_forces(const struct fsm_run *run, const struct fsm_enclosure *program,
                                   const struct fsm_term_bounds *bounds, const int64_t *codes, const int8_t *needed,
                                   const double *low, const double *high, struct fsm_jet *jets);

/* guard_proof.c: its room, as numbers and as integers */
#define FSM_PROOF_RESTING   10.0   // tolerances within which a guard rests at zero
#define FSM_PROOF_ROOM(sizes) \
    ((FSM_MOTION + 7) * (sizes)->max_moving + 3 * (sizes)->max_guards + 12 * (sizes)->max_values + (sizes)->proof_words + 2)
#define FSM_PROOF_LISTS(sizes) (15 + 4 * (sizes)->max_guards) // integers before the rows that a mode holds
#define FSM_PROOF_NUMBERS(sizes) (FSM_PROOF_LISTS(sizes) + 2 * (sizes)->n_rows)
FSM_LOCAL double fsm_prove_step(const struct fsm_run *run, double h);
FSM_LOCAL bool fsm_proves_unevaluated(const struct fsm_run *run, double h, const int8_t *left_out);
FSM_LOCAL void fsm_doubt_parameters(const struct fsm_run *run);

/* far_guards.c */
FSM_LOCAL int64_t fsm_guards_looked_at(const struct fsm_run *run, const int64_t **numbers);
FSM_LOCAL void fsm_evaluate_guards(const struct fsm_run *run, double t, fsm_vector x, double *out);
FSM_LOCAL double fsm_first_event_of_all(const struct fsm_run *run, double h, double t_end, int64_t *guard);
FSM_LOCAL void fsm_look_at_far_here(const struct fsm_run *run);

/* end_of_run.c */
#define FSM_LONGEST_CYCLE 4 // strokes
FSM_LOCAL bool fsm_remember_event(const struct fsm_run *run);
FSM_LOCAL void fsm_forget_event(const struct fsm_state *state);
FSM_LOCAL double fsm_zeno_duration(const struct fsm_state *state, double gap, int64_t *strokes);
FSM_LOCAL void fsm_add_cycle_guards(const struct fsm_run *run, int64_t cycle);
FSM_LOCAL bool fsm_cycle_is_closed(const struct fsm_run *run, int64_t mode);

/* conditions.c */
FSM_LOCAL void fsm_note_conditions(const struct fsm_run *run);
FSM_LOCAL void fsm_is_made(const struct fsm_state *state, int64_t transition);
FSM_LOCAL void fsm_rearm_conditions(const struct fsm_run *run);
FSM_LOCAL enum fsm_guard_status fsm_arm_condition(const struct fsm_run *run, int64_t j, double value, double slope,
                                                  bool *fires);

/* guards.c */
FSM_LOCAL int64_t fsm_arm(const struct fsm_run *run, int64_t before);
FSM_LOCAL void fsm_arm_positive(const struct fsm_run *run);
FSM_LOCAL bool fsm_rearm(const struct fsm_run *run);
FSM_LOCAL int64_t fsm_write_struck(const struct fsm_run *run, fsm_vector record, int64_t n);

/* transition.c */
FSM_LOCAL bool fsm_is_same_instant(const struct fsm_run *run);
FSM_LOCAL enum fsm_status fsm_arrive(const struct fsm_run *run, double t_end);
FSM_LOCAL enum fsm_status fsm_make_transition(const struct fsm_run *run);

/* end_of_run.c */
FSM_API bool fsm_end_is_near(const struct fsm_run *run);
FSM_API void fsm_judge_rows(const struct fsm_recorded *rows, const int64_t *begin, int64_t runs, bool fixed, int8_t *found);

/* stepper.c */
FSM_LOCAL double fsm_grid_point(const struct fsm_run *run);
FSM_LOCAL enum fsm_status fsm_choose_chart(const struct fsm_run *run);
FSM_LOCAL void fsm_begin_event(const struct fsm_run *run);
FSM_LOCAL enum fsm_status fsm_find_and_accept(const struct fsm_run *run, double target, double end);
FSM_API enum fsm_status fsm_advance(const struct fsm_run *run);

/* end_of_run.c */
FSM_API enum fsm_status fsm_advance_batch(struct fsm_run_batch *batch, int64_t end);

/* trial_step.c: what is asked of fsm_implicit_step */
FSM_API enum fsm_status fsm_implicit_step(const struct fsm_run *run, int64_t what, double t, double target);

#endif
