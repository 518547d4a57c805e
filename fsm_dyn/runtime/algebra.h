#ifndef FSM_ALGEBRA_H
#define FSM_ALGEBRA_H

#include "arena.h"
#include "tables.h"

/* The factored system: `held` are the bilateral rows, `scratch` room for solving; see the module. */
struct fsm_bilateral_system {
    fsm_indices held;
    fsm_matrix matrix;
    fsm_indices rows;
    fsm_indices columns;
    fsm_vector scale;
    fsm_vector row_scale;
    fsm_vector scratch;
    fsm_indices rank;
};

/* dense_lu.c */
FSM_LOCAL int64_t fsm_factor(fsm_matrix matrix, fsm_indices rows, fsm_indices columns, double tolerance);
FSM_LOCAL double fsm_solve(fsm_matrix matrix, fsm_indices rows, fsm_indices columns, int64_t rank, fsm_vector right,
                           fsm_vector scratch, fsm_vector solution);

/* eigenvalues.c */
FSM_LOCAL bool fsm_eigenvalues(fsm_matrix H, fsm_vector real, fsm_vector imaginary);

/* constrained_response.c */
FSM_LOCAL struct fsm_bilateral_system fsm_factor_bilateral(struct fsm_arena *arena, const struct fsm_terms *terms,
                                                           fsm_indices held, int64_t n_u);
FSM_LOCAL double fsm_least_pivot(const struct fsm_bilateral_system *bilateral);
FSM_LOCAL bool fsm_solve_bilateral(const struct fsm_bilateral_system *bilateral, fsm_vector force, fsm_vector target,
                                   fsm_vector motion, fsm_vector reaction, double rounding);
FSM_LOCAL double fsm_rounding_of(const struct fsm_terms *terms, fsm_vector u, bool accelerations);
FSM_LOCAL double fsm_row_speed(const struct fsm_terms *terms, int64_t row, fsm_vector u);
FSM_LOCAL double fsm_slip_speed(const struct fsm_tables *tables, const struct fsm_terms *terms, int64_t k,
                                fsm_vector u);
FSM_LOCAL fsm_matrix fsm_delassus_response(struct fsm_arena *arena, const struct fsm_terms *terms,
                                           const struct fsm_bilateral_system *bilateral, fsm_indices which, int64_t n_u,
                                           fsm_matrix *reactions_found, fsm_matrix *K_found);
FSM_LOCAL fsm_vector fsm_free_response(struct fsm_arena *arena, const struct fsm_terms *terms, fsm_indices which,
                                       int64_t n_u);

/* row_rank.c */
#define FSM_ROW_RANK_REDUNDANT 1e-6 // a row of which less than this part is left is implied by the others
#define FSM_SMALL              0.3  // part of the first row left below which a row may be about to vanish
FSM_LOCAL fsm_indices fsm_rows_held(struct fsm_arena *arena, const struct fsm_tables *tables, int64_t mode,
                                    bool positional);
FSM_LOCAL void fsm_column_scales(const struct fsm_terms *terms, fsm_vector scale);
FSM_LOCAL double fsm_row_norm(const struct fsm_terms *terms, int64_t row, fsm_vector scale);
FSM_LOCAL void fsm_fill_scaled(const struct fsm_terms *terms, fsm_indices rows, fsm_vector scale, fsm_vector sizes,
                               fsm_matrix B);
FSM_LOCAL fsm_indices fsm_independent_rows(struct fsm_arena *arena, const struct fsm_terms *terms, fsm_indices rows,
                                           int64_t n_u);
FSM_LOCAL int64_t fsm_orthogonalise(fsm_matrix B, fsm_indices order, fsm_matrix L, double least);
FSM_LOCAL void fsm_least_move(fsm_matrix B, fsm_indices order, fsm_matrix L, int64_t rank, fsm_vector right,
                              fsm_vector move);

#endif
