/* Small dense linear algebra for transitions: elimination with complete pivoting, which shows the rank. */

#include "algebra.h"

/* Factor a square matrix in place, `matrix[rows][:, columns] = L U`, and return its rank.

   Parameters
   ----------
   matrix : float64 array, shape (n, n)
       Overwritten by L (unit diagonal, below) and U.
   rows, columns : int64 arrays, shape (n,)
       Out: the order in which rows and columns were taken.
   tolerance : float
       A pivot below this fraction of the first is taken as zero. */
FSM_LOCAL int64_t fsm_factor(fsm_matrix matrix, fsm_indices rows, fsm_indices columns, double tolerance)
{
    int64_t n = matrix.n;
    double largest = -1.0;
    int64_t row = 0;
    int64_t column = 0;
    for (int64_t i = 0; i < n; i++) {
        rows.at[i] = i;
        columns.at[i] = i;
        for (int64_t j = 0; j < n; j++) {
            if (fabs(AT(matrix, i, j)) > largest) {
                largest = fabs(AT(matrix, i, j));
                row = i;
                column = j;
            }
        }
    }
    double first = largest;
    for (int64_t k = 0; k < n; k++) {
        if (!(largest > tolerance * first) || largest == 0.0) {
            return k;
        }
        int64_t kept = rows.at[row];
        rows.at[row] = rows.at[k];
        rows.at[k] = kept;
        int64_t kept2 = columns.at[column];
        columns.at[column] = columns.at[k];
        columns.at[k] = kept2;
        int64_t r = rows.at[k], p = columns.at[k];
        double pivot = AT(matrix, r, p);
        largest = -1.0; // of what is left, found while it is worked out
        row = k + 1;
        column = k + 1;
        for (int64_t i = k + 1; i < n; i++) {
            int64_t at = rows.at[i];
            double quotient = AT(matrix, at, p) / pivot;
            AT(matrix, at, p) = quotient;
            for (int64_t j = k + 1; j < n; j++) {
                double value = AT(matrix, at, columns.at[j]) - quotient * AT(matrix, r, columns.at[j]);
                AT(matrix, at, columns.at[j]) = value;
                if (fabs(value) > largest) {
                    largest = fabs(value);
                    row = i;
                    column = j;
                }
            }
        }
    }
    return n;
}

/* Solve with the factors of factor; unknowns beyond the rank are zero.

   Returns
   -------
   float
       The largest remainder among the equations beyond the rank: zero where they agree with the others. */
FSM_LOCAL double fsm_solve(fsm_matrix matrix, fsm_indices rows, fsm_indices columns, int64_t rank, fsm_vector right,
                           fsm_vector scratch, fsm_vector solution)
{
    int64_t n = matrix.n;
    for (int64_t i = 0; i < n; i++) {
        scratch.at[i] = right.at[rows.at[i]];
        int64_t last1 = fsm_least(i, rank);
        for (int64_t k = 0; k < last1; k++) {
            scratch.at[i] -= AT(matrix, rows.at[i], columns.at[k]) * scratch.at[k];
        }
    }
    double remainder = 0.0;
    for (int64_t i = rank; i < n; i++) {
        remainder = fsm_larger(remainder, fabs(scratch.at[i]));
        solution.at[columns.at[i]] = 0.0;
    }
    for (int64_t back = 0; back < rank; back++) {
        int64_t i = rank - 1 - back;
        double value = scratch.at[i];
        for (int64_t j = i + 1; j < rank; j++) {
            value -= AT(matrix, rows.at[i], columns.at[j]) * solution.at[columns.at[j]];
        }
        solution.at[columns.at[i]] = value / AT(matrix, rows.at[i], columns.at[i]);
    }
    return remainder;
}
