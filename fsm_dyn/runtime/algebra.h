/* Dense linear algebra without allocation: factors, eigenvalues, constrained responses, rank of constraint rows. */

#ifndef FSM_ALGEBRA_H
#define FSM_ALGEBRA_H

#include "arena.h"
#include "tables.h"

#define FSM_FEW_ROWS 24 // up to which to look for zeros costs more than to work with them

/* Factors of a square matrix with complete pivoting: `matrix[rows][:, columns] = L U`, L with a unit diagonal. */
struct fsm_lu {
    fsm_matrix matrix;   // (n, n): L and U, in pivoting order
    fsm_indices rows;    // (n,): order in which the rows were taken
    fsm_indices columns; // (n,): order in which the columns were taken
    int64_t rank;
    fsm_vector scratch; // (n,)
};

/* Which entries of factors differ from zero, diagonal left out, in pivoting order: of row i columns from `begin[i]` up to
   (not including) `begin[i + 1]`, those of U from `behind[i]` on. */
struct fsm_lu_lists {
    fsm_indices begin;   // (n + 1,)
    fsm_indices behind;  // (n,)
    fsm_indices columns; // (n * n,)
};

/* The factored system `[M -Bᵀ; B 0]` of the mechanism with its bilateral constraint rows B. */
struct fsm_bilateral_system {
    fsm_indices held;          // (m,): numbers of the bilateral constraint rows
    struct fsm_lu lu;          // of the scaled system, n_u + m equations
    struct fsm_lu_lists lists; // none where there are few equations
    fsm_vector scale;          // (n_u,): diag(M)^-1/2
    fsm_vector row_scale;      // (m,): inverse norms of the scaled rows
    fsm_vector right;          // (n_u + m,): workspace
    fsm_vector solution;       // (n_u + m,): workspace
};

/* Responses to a unit force along each of n contact rows, bilateral rows held. */
struct fsm_response {
    fsm_matrix motions;   // (n, n_u): speeds, or accelerations
    fsm_matrix reactions; // (n, m): multipliers of the bilateral rows
    fsm_matrix K;         // (n, n): Delassus matrix, `K[i, j]` of row i to a force along row j
};

/* linear_algebra.c */
FSM_LOCAL struct fsm_lu fsm_factor(struct fsm_arena *arena, fsm_matrix matrix, double tolerance);
FSM_LOCAL double fsm_solve(const struct fsm_lu *lu, fsm_vector right, fsm_vector solution);
FSM_LOCAL struct fsm_lu_lists fsm_list_factors(struct fsm_arena *arena, const struct fsm_lu *lu);
FSM_LOCAL double fsm_solve_listed(const struct fsm_lu *lu, const struct fsm_lu_lists *lists, fsm_vector right,
                                  fsm_vector solution);
FSM_LOCAL bool fsm_eigenvalues(fsm_matrix H, fsm_vector real, fsm_vector imaginary);

/* contact_problem.c */
FSM_LOCAL struct fsm_bilateral_system fsm_factor_bilateral(struct fsm_arena *arena, const struct fsm_terms *terms,
                                                           fsm_indices held, int64_t n_u);
FSM_LOCAL double fsm_least_pivot(const struct fsm_bilateral_system *bilateral);
FSM_LOCAL bool fsm_solve_bilateral(const struct fsm_bilateral_system *bilateral, fsm_vector force, fsm_vector target,
                                   fsm_vector motion, fsm_vector reaction, double rounding);
FSM_LOCAL double fsm_rounding_of(const struct fsm_tables *tables, const struct fsm_terms *terms, fsm_vector u,
                                 bool accelerations);
FSM_LOCAL bool fsm_base_accelerations(struct fsm_arena *arena, const struct fsm_tables *tables,
                                      const struct fsm_terms *terms, const struct fsm_bilateral_system *bilateral,
                                      fsm_vector force, fsm_vector u, fsm_vector motion, fsm_vector reaction);
FSM_LOCAL double fsm_row_product(const struct fsm_terms *terms, int64_t row, fsm_vector v, double start);
FSM_LOCAL void fsm_momentum(const struct fsm_terms *terms, fsm_vector v, fsm_vector momentum);
FSM_LOCAL double fsm_row_speed(const struct fsm_terms *terms, int64_t row, fsm_vector u);
FSM_LOCAL double fsm_slip_speed(const struct fsm_tables *tables, const struct fsm_terms *terms, int64_t k,
                                fsm_vector u);
FSM_LOCAL struct fsm_response fsm_unit_responses(struct fsm_arena *arena, const struct fsm_terms *terms,
                                                 const struct fsm_bilateral_system *bilateral, fsm_indices rows,
                                                 int64_t n_u);
FSM_LOCAL fsm_vector fsm_free_response(struct fsm_arena *arena, const struct fsm_terms *terms, fsm_indices rows);

/* linear_algebra.c */
#define FSM_SMALL 0.3 // part of the first row left below which a row may be about to vanish
FSM_LOCAL fsm_indices fsm_rows_held(struct fsm_arena *arena, const struct fsm_tables *tables, int64_t mode,
                                    bool positional);
FSM_LOCAL void fsm_column_scales(const struct fsm_terms *terms, fsm_vector scale);
FSM_LOCAL double fsm_row_norm(const struct fsm_terms *terms, int64_t row, fsm_vector scale);
FSM_LOCAL void fsm_fill_scaled(const struct fsm_terms *terms, fsm_indices rows, fsm_vector scale, fsm_vector sizes,
                               fsm_matrix B);
FSM_LOCAL fsm_indices fsm_independent_rows(struct fsm_arena *arena, const struct fsm_tables *tables,
                                           const struct fsm_terms *terms, fsm_indices rows, double amount,
                                           double least_size);
#define FSM_OFF_ROWS 10.0 // times the residual of rows, of which no more is left of a redundant one
FSM_LOCAL int64_t fsm_orthogonalise(struct fsm_arena *arena, fsm_matrix B, fsm_indices order, fsm_matrix L,
                                    double least);
FSM_LOCAL void fsm_least_move(fsm_matrix B, fsm_indices order, fsm_matrix L, int64_t rank, fsm_vector right,
                              fsm_vector move);

#endif
