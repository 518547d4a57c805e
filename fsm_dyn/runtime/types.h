/* Views of arrays, kernels, and arithmetic shared by all of the runtime.

   Everything the runtime works on lives in memory of its caller.  A view is an address with the lengths that belong to
   it; it is passed by value.  Indices count from zero and are not checked. */

#ifndef FSM_TYPES_H
#define FSM_TYPES_H

/* The paced loop and its drivers need a system with deadlines and sockets. */
#if defined(__linux__) && !defined(FSM_NO_HOST)
#define FSM_HAS_PACING
#define _POSIX_C_SOURCE 200809L
#endif

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* In one translation unit everything but the public functions is static, unless tests want to call it. */
#if defined(FSM_ALL_VISIBLE)
#define FSM_LOCAL FSM_API
#elif defined(FSM_ONE_UNIT)
#define FSM_LOCAL static
#else
#define FSM_LOCAL
#endif

/* What callers of the library see, unless a program around it has another opinion. */
#if defined(FSM_API)
#elif defined(_WIN32)
#define FSM_API __declspec(dllexport)
#else
#define FSM_API __attribute__((visibility("default")))
#endif

#define FSM_INFINITY     ((double)INFINITY)
#define FSM_NAN          ((double)NAN)
#define FSM_PI           3.141592653589793
#define FSM_GOLDEN_RATIO 0.6180339887498949
#define FSM_EPS          2.220446049250313e-16 // distance from 1 to the next larger number
#define FSM_TINIEST      1e-300                // in the place of zero where something is divided by it

/* A kernel evaluates compiled equations: time (s), state, context and result. */
typedef void (*fsm_kernel)(double t, const double *x, const double *c, double *out);

/* clang-format off */
typedef struct { double *at; int64_t n; } fsm_vector;           /* (n,) */
typedef struct { double *at; int64_t n, m; } fsm_matrix;        /* (n, m), row by row */
typedef struct { double *at; int64_t n, m, l; } fsm_cube;       /* (n, m, l) */
typedef struct { int64_t *at; int64_t n; } fsm_indices;         /* (n,) */
typedef struct { int64_t *at; int64_t n, m; } fsm_index_table;  /* (n, m) */
typedef struct { int8_t *at; int64_t n; } fsm_codes;            /* (n,): states of contacts, flags */
typedef struct { int8_t *at; int64_t n, m; } fsm_code_table;    /* (n, m) */
typedef struct { fsm_kernel *at; int64_t n; } fsm_kernels;      /* (n,), NULL where there is none */
/* clang-format on */

/* Entry (i, j) of a matrix or a table; (i, j, k) of a cube. */
#define AT(table, i, j)    ((table).at[(i) * (table).m + (j)])
#define AT3(cube, i, j, k) ((cube).at[((i) * (cube).m + (j)) * (cube).l + (k)])

static inline fsm_vector fsm_row(fsm_matrix a, int64_t i)
{
    return (fsm_vector){a.at + i * a.m, a.m};
}

static inline fsm_vector fsm_row_part(fsm_matrix a, int64_t i, int64_t n)
{
    return (fsm_vector){a.at + i * a.m, n};
}

static inline fsm_indices fsm_index_row(fsm_index_table a, int64_t i)
{
    return (fsm_indices){a.at + i * a.m, a.m};
}

static inline fsm_codes fsm_code_row(fsm_code_table a, int64_t i)
{
    return (fsm_codes){a.at + i * a.m, a.m};
}

static inline fsm_matrix fsm_as_matrix(fsm_vector v, int64_t n, int64_t m)
{
    return (fsm_matrix){v.at, n, m};
}

/* The column of a matrix that has one. */
static inline fsm_vector fsm_only_column(fsm_matrix a)
{
    return (fsm_vector){a.at, a.n};
}

static inline fsm_vector fsm_vector_first(fsm_vector v, int64_t n)
{
    return (fsm_vector){v.at, n};
}

static inline fsm_vector fsm_vector_from(fsm_vector v, int64_t i)
{
    return (fsm_vector){v.at + i, v.n - i};
}

static inline fsm_vector fsm_vector_part(fsm_vector v, int64_t i, int64_t j)
{
    return (fsm_vector){v.at + i, j - i};
}

static inline fsm_indices fsm_indices_first(fsm_indices v, int64_t n)
{
    return (fsm_indices){v.at, n};
}

static inline fsm_indices fsm_indices_from(fsm_indices v, int64_t i)
{
    return (fsm_indices){v.at + i, v.n - i};
}

static inline fsm_matrix fsm_matrix_first(fsm_matrix a, int64_t n)
{
    return (fsm_matrix){a.at, n, a.m};
}

static inline void fsm_put(fsm_vector target, fsm_vector source)
{
    for (int64_t i = 0; i < source.n; i++) {
        target.at[i] = source.at[i];
    }
}

static inline void fsm_vector_fill(fsm_vector target, double value)
{
    for (int64_t i = 0; i < target.n; i++) {
        target.at[i] = value;
    }
}

static inline void fsm_put_indices(fsm_indices target, fsm_indices source)
{
    for (int64_t i = 0; i < source.n; i++) {
        target.at[i] = source.at[i];
    }
}

static inline void fsm_indices_fill(fsm_indices target, int64_t value)
{
    for (int64_t i = 0; i < target.n; i++) {
        target.at[i] = value;
    }
}

/* The smaller and the larger of two numbers; the first where the other is not a number. */
static inline double fsm_smaller(double a, double b)
{
    return b < a ? b : a;
}

static inline double fsm_larger(double a, double b)
{
    return b > a ? b : a;
}

static inline int64_t fsm_least(int64_t a, int64_t b)
{
    return b < a ? b : a;
}

static inline int64_t fsm_most(int64_t a, int64_t b)
{
    return b > a ? b : a;
}

static inline double fsm_square(double a)
{
    return a * a;
}

static inline double fsm_third_power(double a)
{
    return a * (a * a);
}

static inline double fsm_sign(double a)
{
    return a > 0.0 ? 1.0 : a < 0.0 ? -1.0 : a;
}

static inline bool fsm_is_finite(double a)
{
    return fabs(a) < FSM_INFINITY;
}

/* What is left of a division whose quotient is rounded down, for a divisor above zero. */
static inline int64_t fsm_modulo(int64_t a, int64_t b)
{
    return a % b < 0 ? a % b + b : a % b;
}

#endif
