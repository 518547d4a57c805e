#ifndef FSM_STEPPING_H
#define FSM_STEPPING_H

#include "contacts.h"

/* input_tables.c */
FSM_LOCAL void fsm_update_inputs(const struct fsm_input_tables *drive, double t, int64_t segment, fsm_vector x,
                                 fsm_vector c);
FSM_LOCAL void fsm_write_inputs(const struct fsm_input_tables *drive, double t, int64_t segment, fsm_vector x,
                                fsm_vector c);
FSM_LOCAL double fsm_next_breakpoint(const struct fsm_input_tables *drive, int64_t segment);

/* runge_kutta.c */
FSM_LOCAL void fsm_runge_kutta_step(fsm_kernel rhs, const struct fsm_input_tables *drive,
                                    const struct fsm_method *method, double t, double h, fsm_vector x, fsm_vector c,
                                    fsm_vector k, fsm_vector y, fsm_vector x_end, int64_t segment);
FSM_LOCAL void fsm_middle_state(const struct fsm_method *method, double h, fsm_vector x, fsm_vector k,
                                fsm_vector x_mid);
FSM_LOCAL double fsm_error_norm(const struct fsm_method *method, double h, fsm_vector x, fsm_vector x_end, fsm_vector k,
                                double rtol, fsm_vector atol, fsm_code_table mask, int64_t row);
FSM_LOCAL double fsm_step_factor(double error, double error_before, int64_t order);
FSM_LOCAL double fsm_rejection_factor(double error, int64_t order);
FSM_LOCAL double fsm_first_step(fsm_kernel rhs, const struct fsm_method *method, double t, fsm_vector x,
                                fsm_vector x_dot, fsm_vector c, fsm_vector k, fsm_vector y, double rtol,
                                fsm_vector atol, double longest);

/* dense_output.c */
FSM_LOCAL void fsm_dense_state(const struct fsm_method *method, double t, fsm_vector x);

/* quintic_roots.c */
#define FSM_NONE      2.0 // returned instead of a root; every root is at most 1
#define FSM_WORKSPACE 471
FSM_LOCAL double fsm_quintic(double g0, double s0, double gm, double sm, double g1, double s1, double h,
                             fsm_vector work, double *sixth);
FSM_LOCAL double fsm_first_crossing(fsm_vector work, double tolerance, bool waiting);
FSM_LOCAL double fsm_back_to_zero(fsm_vector work, double tolerance, double root);
FSM_LOCAL bool fsm_surely_positive(fsm_vector work, double tolerance, double sixth);

/* drift_projection.c */
FSM_LOCAL int64_t fsm_project(struct fsm_work *work, const struct fsm_tables *tables, double t, fsm_vector x,
                              fsm_vector c, int64_t mode, fsm_vector drift);
FSM_LOCAL bool fsm_gate_opened_late(struct fsm_work *work, const struct fsm_tables *tables, double t, fsm_vector x,
                                    fsm_vector c, int64_t mode);

/* row_landing.c */
FSM_LOCAL bool fsm_land(struct fsm_work *work, const struct fsm_tables *tables, double t, fsm_vector x, fsm_vector c,
                        int64_t mode, struct fsm_rank *rank, double farthest);

/* change_points.c */
FSM_LOCAL void fsm_known_sizes(struct fsm_work *work, const struct fsm_tables *tables, double t, fsm_vector x,
                               fsm_vector c, const struct fsm_terms *terms, fsm_vector sizes);
FSM_LOCAL void fsm_assess(struct fsm_work *work, const struct fsm_tables *tables, double t, fsm_vector x,
                          fsm_vector x_dot, fsm_vector c, int64_t mode, struct fsm_rank *rank);
FSM_LOCAL double fsm_motion(fsm_vector x, fsm_vector x_dot, int64_t n_q);
FSM_LOCAL fsm_matrix fsm_rows_along(struct fsm_work *work, const struct fsm_tables *tables,
                                    const struct fsm_terms *terms, double t, fsm_vector x, fsm_vector x_dot,
                                    fsm_vector c, fsm_indices rows, fsm_vector scale, fsm_vector sizes, double extent,
                                    double later);
FSM_LOCAL void fsm_combination_of(fsm_matrix L, int64_t first, int64_t k, fsm_vector out);
FSM_LOCAL double fsm_scaled_speed(const struct fsm_tables *tables, fsm_vector x, const struct fsm_terms *terms);
FSM_LOCAL double fsm_speed_norm(struct fsm_rank *rank);
FSM_LOCAL bool fsm_is_weak(struct fsm_rank *rank, double left);
FSM_LOCAL bool fsm_is_near(struct fsm_rank *rank, double h, double left);
FSM_LOCAL double fsm_least_left(const struct fsm_tables *tables, double rtol);
FSM_LOCAL double fsm_clear_length(double ahead, double h, double fraction);
FSM_LOCAL double fsm_passing_fraction(int64_t stages, bool guards);
FSM_LOCAL bool fsm_look_ahead(struct fsm_work *work, const struct fsm_tables *tables, double t, fsm_vector x,
                              fsm_vector x_dot, fsm_vector c, int64_t mode, struct fsm_rank *rank);
FSM_LOCAL double fsm_least_passage(double turn, double rtol);
FSM_LOCAL double fsm_allowance(struct fsm_rank *rank, double h, double rtol);
FSM_LOCAL bool fsm_is_rounding(double error, double h, double tried_error, double tried);
FSM_LOCAL void fsm_note_passage(struct fsm_rank *rank, double t, double t_end, double error);

/* change_point_steps.c */
#define FSM_SHORTEN 1
#define FSM_RETAKE  2
FSM_LOCAL int64_t fsm_look(const struct fsm_tables *tables, struct fsm_state *state, struct fsm_work *work, double t,
                           double h, double *out1);
FSM_LOCAL double fsm_keep_clear(const struct fsm_tables *tables, const struct fsm_method *method,
                                const struct fsm_options *options, struct fsm_state *state, double h,
                                bool *passes_found);
FSM_LOCAL int64_t fsm_judge(const struct fsm_method *method, const struct fsm_options *options, struct fsm_state *state,
                            struct fsm_work *work, double h, int64_t row, bool passes, bool forced, double tried,
                            double tried_error, bool finite, double *error_found);
FSM_LOCAL double fsm_shorter(struct fsm_state *state, double h, double error, int64_t order, bool passes);

/* end_reasons.c */
FSM_LOCAL int64_t fsm_why_not(struct fsm_work *work, const struct fsm_tables *tables, double t, fsm_vector x,
                              fsm_vector x_dot, fsm_vector c, int64_t mode, struct fsm_rank *rank, int64_t status);
FSM_LOCAL int64_t fsm_vanishing(struct fsm_work *work, const struct fsm_tables *tables, double t, fsm_vector x,
                                fsm_vector c, int64_t mode, struct fsm_rank *rank);
FSM_LOCAL bool fsm_rests_in_change_point(struct fsm_work *work, const struct fsm_tables *tables, double t, fsm_vector x,
                                         fsm_vector c, int64_t mode, struct fsm_rank *rank);

/* chart_selection.c */
FSM_LOCAL int64_t fsm_better_chart(const struct fsm_tables *tables, struct fsm_state *state, struct fsm_work *work,
                                   double t, fsm_vector x, double pivot);
FSM_LOCAL int64_t fsm_entry_chart(const struct fsm_tables *tables, struct fsm_state *state, struct fsm_work *work,
                                  int64_t target);

/* row_writer.c */
FSM_LOCAL void fsm_write_row(const struct fsm_tables *tables, struct fsm_state *state, struct fsm_buffers *buffers,
                             fsm_vector x_mid);
FSM_LOCAL void fsm_write_transition(const struct fsm_tables *tables, struct fsm_state *state, struct fsm_work *work,
                                    struct fsm_buffers *buffers, int64_t source);
FSM_LOCAL void fsm_write_passage(const struct fsm_tables *tables, struct fsm_state *state, struct fsm_buffers *buffers);

/* constraint_consistency.c */
#define FSM_CONSTRAINT_CONSISTENCY_CLEAR                                                                               \
    10.0                // times the speed that counts as zero: beyond this the rows of a mode contradict each other
#define FSM_LATE 1000.0 // times that speed: the step went too far past the instant where they began to
FSM_LOCAL double fsm_constraint_violation_speed(struct fsm_work *work, const struct fsm_tables *tables, double t,
                                                fsm_vector x, fsm_vector c, int64_t mode);

/* trial_step.c */
FSM_LOCAL int64_t fsm_guard_count(const struct fsm_tables *tables, int64_t mode);
FSM_LOCAL void fsm_normalise_quaternions(const struct fsm_tables *tables, fsm_vector x);
FSM_LOCAL void fsm_evaluate_end(const struct fsm_tables *tables, const struct fsm_input_tables *drive,
                                const struct fsm_method *method, struct fsm_state *state, struct fsm_work *work,
                                double t_end);
FSM_LOCAL void fsm_trial_step(const struct fsm_tables *tables, const struct fsm_input_tables *drive,
                              const struct fsm_method *method, struct fsm_state *state, struct fsm_work *work, double h,
                              double t_end);
FSM_LOCAL bool fsm_landed_step(const struct fsm_tables *tables, const struct fsm_input_tables *drive,
                               const struct fsm_method *method, struct fsm_state *state, struct fsm_work *work,
                               double h, double t_end);
FSM_LOCAL int64_t fsm_project_end(const struct fsm_tables *tables, const struct fsm_input_tables *drive,
                                  const struct fsm_method *method, struct fsm_state *state, struct fsm_work *work,
                                  double t_end);
FSM_LOCAL void fsm_evaluate_middle(const struct fsm_tables *tables, const struct fsm_input_tables *drive,
                                   const struct fsm_method *method, struct fsm_state *state, struct fsm_work *work,
                                   double h);
FSM_LOCAL bool fsm_evaluate_here(const struct fsm_tables *tables, struct fsm_state *state, struct fsm_work *work);
FSM_LOCAL bool fsm_commit_step_end(const struct fsm_tables *tables, struct fsm_state *state, struct fsm_work *work,
                                   int64_t n);
FSM_LOCAL bool fsm_end_is_finite(const struct fsm_method *method, struct fsm_work *work);

/* event_location.c */
#define FSM_NO_EVENT               -1
#define FSM_INTERPOLANT_UNRELIABLE -2 // the interpolant cannot be trusted: the step must be shorter
FSM_LOCAL double fsm_clock_resolution(const struct fsm_tables *tables, double t);
FSM_LOCAL double fsm_first_event(const struct fsm_tables *tables, struct fsm_state *state, struct fsm_work *work,
                                 double h, int64_t *which_found);
FSM_LOCAL double fsm_locate(const struct fsm_tables *tables, const struct fsm_input_tables *drive,
                            const struct fsm_method *method, struct fsm_state *state, struct fsm_work *work, double h,
                            double fraction, int64_t j, int64_t *guard);
FSM_LOCAL void fsm_collect_fired(const struct fsm_tables *tables, struct fsm_state *state, struct fsm_work *work,
                                 int64_t lead);

/* zeno_detection.c */
#define FSM_LONGEST_CYCLE 4
FSM_LOCAL bool fsm_remember_event(const struct fsm_tables *tables, struct fsm_state *state);
FSM_LOCAL double fsm_zeno_duration(struct fsm_state *state, double gap, int64_t *strokes);
FSM_LOCAL void fsm_add_cycle_guards(const struct fsm_tables *tables, struct fsm_state *state, int64_t cycle);
FSM_LOCAL bool fsm_cycle_is_closed(const struct fsm_tables *tables, struct fsm_state *state, int64_t mode);

/* guard_arming.c */
FSM_LOCAL int64_t fsm_arm(const struct fsm_tables *tables, struct fsm_state *state, struct fsm_work *work);
FSM_LOCAL void fsm_arm_positive(const struct fsm_tables *tables, struct fsm_state *state);
FSM_LOCAL bool fsm_rearm(const struct fsm_tables *tables, struct fsm_state *state);

/* transition.c */
FSM_LOCAL void fsm_begin(const struct fsm_tables *tables, const struct fsm_input_tables *drive, struct fsm_state *state,
                         struct fsm_work *work, struct fsm_buffers *buffers);
FSM_LOCAL int64_t fsm_arrive(const struct fsm_tables *tables, const struct fsm_input_tables *drive,
                             struct fsm_state *state, struct fsm_work *work, struct fsm_buffers *buffers, double t_end);
FSM_LOCAL int64_t fsm_make_transition(const struct fsm_tables *tables, const struct fsm_input_tables *drive,
                                      const struct fsm_method *method, const struct fsm_options *options,
                                      struct fsm_state *state, struct fsm_work *work, struct fsm_buffers *buffers);

/* stepper.c */
FSM_LOCAL int64_t fsm_choose_chart(const struct fsm_tables *tables, struct fsm_state *state, struct fsm_work *work);
FSM_LOCAL int64_t fsm_find_step(const struct fsm_tables *tables, const struct fsm_input_tables *drive,
                                const struct fsm_method *method, const struct fsm_options *options,
                                struct fsm_state *state, struct fsm_work *work, double target, double *t_end_found,
                                int64_t *lead_found);
FSM_LOCAL int64_t fsm_accept_step(const struct fsm_tables *tables, const struct fsm_input_tables *drive,
                                  const struct fsm_method *method, const struct fsm_options *options,
                                  struct fsm_state *state, struct fsm_work *work, struct fsm_buffers *buffers,
                                  double t_end, double target, int64_t lead);
FSM_API int64_t fsm_advance(const struct fsm_tables *tables, const struct fsm_input_tables *drive,
                            const struct fsm_method *method, const struct fsm_options *options, struct fsm_state *state,
                            struct fsm_work *work, struct fsm_buffers *buffers);

/* implicit_steps.c */
FSM_API int64_t fsm_implicit_step(int64_t what, const struct fsm_tables *tables, const struct fsm_input_tables *drive,
                                  const struct fsm_method *method, const struct fsm_options *options,
                                  struct fsm_state *state, struct fsm_work *work, struct fsm_buffers *buffers, double t,
                                  double target);

#endif
