/* Online embedding: modes without kernels of their own, embedded at run time. */

#ifndef FSM_ONLINE_H
#define FSM_ONLINE_H

#include "contacts.h"
#include "online_mode.h"

/* online_chart.c */
FSM_LOCAL double fsm_product_with_row(struct fsm_online_mode *o, int64_t row, int64_t vector, int64_t constant);
FSM_LOCAL int64_t fsm_tangent_count(struct fsm_online_mode *o, int64_t k);
FSM_LOCAL double fsm_slip_along(struct fsm_online_mode *o, const double *c, int64_t k, int64_t vector,
                                int64_t constant);
FSM_LOCAL void fsm_online_slip_directions(struct fsm_online_mode *o, const double *c);
FSM_LOCAL void fsm_online_slip_direction(struct fsm_online_mode *o, const double *c, int64_t k, double *way);
FSM_LOCAL double fsm_friction_ratio(struct fsm_online_mode *o, int64_t k, int64_t i);

/* online_pivoting.c */
FSM_LOCAL double fsm_row_pivots(struct fsm_online_mode *o, double least);
FSM_LOCAL double fsm_part_of_row(const struct fsm_online_mode *o, int64_t row);

/* online_embedding.c */
FSM_LOCAL void fsm_eliminate_held_rows(struct fsm_online_mode *o, double t, const double *x, const double *c);
FSM_LOCAL void fsm_force_rows(struct fsm_online_mode *o, int64_t out);
FSM_LOCAL void fsm_swap_entries(double *array, int64_t i, int64_t j);
FSM_LOCAL double fsm_accelerate(struct fsm_online_mode *o, double t, const double *x, const double *c,
                                enum fsm_online_program program, bool judge);

FSM_LOCAL double fsm_online_load(const struct fsm_online_mode *o, int64_t k);
#define FSM_FEW_SPEEDS 12 // up to which full loops cost less than lists
FSM_LOCAL void fsm_eliminate_few(double *w, int64_t at, int64_t rank, int64_t width, int64_t columns);
FSM_LOCAL void fsm_substitute_back_few(double *w, int64_t at, int64_t rank, int64_t width, int64_t first,
                                       int64_t columns);
FSM_LOCAL void fsm_reduce_few(struct fsm_online_mode *o, int64_t test, int64_t test_width);
FSM_LOCAL double fsm_solve_reduced_few(struct fsm_online_mode *o, int64_t n, bool general, bool judge);
FSM_LOCAL void fsm_exchange_reduced(double *w, int64_t *chart, int64_t k, int64_t n, int64_t U);
FSM_LOCAL void fsm_weigh(struct fsm_online_mode *o, int64_t n, bool general);
FSM_LOCAL double fsm_solve_reduced(struct fsm_online_mode *o, int64_t n, bool general, bool judge);

/* online_pivoting.c */
FSM_LOCAL void fsm_swap_indices(int64_t *array, int64_t i, int64_t j);
FSM_LOCAL double fsm_square_of(double *w, int64_t at, int64_t count, int64_t stride);
FSM_LOCAL void fsm_choose_rows(struct fsm_online_mode *o, int64_t Q);
FSM_LOCAL void fsm_choose_columns(struct fsm_online_mode *o, int64_t A, int64_t H);
FSM_LOCAL void fsm_order_chart(struct fsm_online_mode *o, int64_t A, int64_t H);
FSM_LOCAL void fsm_list_nonzero(struct fsm_online_mode *o);

/* online_chart.c */
FSM_LOCAL void fsm_list_rows(struct fsm_online_mode *o);
FSM_LOCAL void fsm_online_choose_chart(struct fsm_online_mode *o, double t, const double *x, const double *c);
FSM_LOCAL const int64_t *fsm_online_choices(const struct fsm_online_mode *o);
FSM_LOCAL void fsm_forget_chart(struct fsm_online_mode *o);
FSM_LOCAL void fsm_keep_chart(struct fsm_online_mode *o);
FSM_LOCAL void fsm_own_arrays(struct fsm_online_mode *o);
FSM_LOCAL bool fsm_reorder(int64_t *list, int64_t *with, const uint64_t *wanted, int64_t n);
FSM_LOCAL void fsm_online_shares(struct fsm_online_mode *o);
FSM_LOCAL void fsm_share_multipliers(struct fsm_online_mode *o);
FSM_LOCAL double fsm_shared_entry(struct fsm_online_mode *o, int64_t k, int64_t speed);
FSM_LOCAL void fsm_find_shared_rows(struct fsm_online_mode *o);
FSM_LOCAL bool fsm_shares_count_now(struct fsm_online_mode *o);
FSM_LOCAL void fsm_solve_transposed(const struct fsm_online_mode *o, const double *rows, int64_t width, double *right);
FSM_LOCAL void fsm_online_multipliers(struct fsm_online_mode *o);

/* online_evaluation.c */
FSM_LOCAL void fsm_guard_values(struct fsm_online_mode *o, const double *c, double *out, int64_t at, bool all);
FSM_LOCAL bool fsm_has_exact_slope(struct fsm_online_mode *o, int64_t guard);
FSM_LOCAL bool fsm_is_law(struct fsm_online_mode *o, int64_t guard);
FSM_LOCAL double fsm_exact_slope(struct fsm_online_mode *o, const double *c, int64_t guard);
FSM_API int64_t fsm_online_evaluate(struct fsm_online_mode *o, int64_t what, double t, const double *x, const double *c,
                                    double *out);

#endif
