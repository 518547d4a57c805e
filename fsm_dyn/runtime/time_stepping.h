#ifndef FSM_TIME_STEPPING_H
#define FSM_TIME_STEPPING_H

#include "stepping.h"

/* moreau_contacts.c */
FSM_LOCAL void fsm_begin_sides(const struct fsm_tables *tables, const struct fsm_terms *terms, fsm_codes codes,
                               fsm_codes free_side);
FSM_LOCAL void fsm_keep_sides(const struct fsm_tables *tables, const struct fsm_terms *terms, double h, fsm_vector u,
                              fsm_codes codes, fsm_codes free_side);
FSM_LOCAL bool fsm_presses(const struct fsm_tables *tables, const struct fsm_terms *terms, int64_t k,
                           fsm_codes free_side);
FSM_LOCAL int64_t fsm_list_active(const struct fsm_tables *tables, const struct fsm_terms *terms, double h,
                                  fsm_vector u, fsm_codes codes, fsm_codes free_side, fsm_indices part,
                                  fsm_indices which, fsm_indices normal, fsm_indices tangent);
FSM_LOCAL bool fsm_deep_at_start(const struct fsm_tables *tables, const struct fsm_terms *terms, fsm_codes codes);

/* moreau_step_limit.c */
FSM_LOCAL double fsm_longest_step(struct fsm_work *work, const struct fsm_tables *tables, const struct fsm_terms *terms,
                                  const struct fsm_bilateral_system *bilateral, double t, fsm_vector x, fsm_vector c,
                                  fsm_codes free_side);

/* moreau_jean.c */
FSM_LOCAL int64_t fsm_moreau_jean_step(struct fsm_work *work, const struct fsm_tables *tables,
                                       const struct fsm_input_tables *drive, double t, double h, int64_t segment,
                                       fsm_vector x, fsm_vector c, fsm_codes codes, fsm_codes free_side,
                                       fsm_vector unheld, fsm_vector middle, fsm_vector impulses, fsm_vector energies,
                                       fsm_vector report);
FSM_API int64_t fsm_moreau_jean_steps(const struct fsm_tables *tables, const struct fsm_input_tables *drive,
                                      struct fsm_work *work, int64_t segment, fsm_vector times, fsm_matrix x,
                                      fsm_matrix c, fsm_code_table codes, fsm_codes free_side, fsm_matrix unheld,
                                      fsm_matrix middle, fsm_matrix impulses, fsm_matrix energies, fsm_vector report,
                                      int64_t *row, int64_t *last_segment);
FSM_API bool fsm_moreau_jean_may_start(const struct fsm_tables *tables, struct fsm_work *work, double t, fsm_vector x,
                                       fsm_vector c, fsm_codes codes);

#endif
