/* Enclosures of straight-line programs: intervals of values and of their first two rates over a piece of motion. */

#ifndef FSM_ENCLOSURE_H
#define FSM_ENCLOSURE_H

#include "types.h"

struct fsm_interval {
    double low, high;
};

/* Bounds of a quantity, its rate and its second rate (per s, per s^2) over a piece of motion. */
struct fsm_jet {
    struct fsm_interval value, rate, second;
};

/* A part of a step of length h (s), from the fraction a to the fraction b. */
struct fsm_part {
    double a, b, h;
};

/* A piece of a step: where it begins and ends, values and slopes there. */
struct fsm_piece {
    double a, b, ga, gb, sa, sb;
};

#define FSM_JET_NUMBERS  6  // bounds of a value, of its rate and of its second rate
#define FSM_OPERAND_BITS 18 // of an operand in an instruction, after eight of the operation

/* A program for enclosures, a view of `fsm_tables.enclosure_code` and `enclosure_constants`.

   Values are numbered: moving arguments, fixed arguments, the parameters first, constants, operations on these two, other
   operations. */
struct fsm_enclosure {
    int64_t moving, fixed, parameters, constants, fixed_operations, operations, n_terms;
    const int64_t *arguments; // (moving + fixed,): numbers of arguments: 0 the time, then the state, then the context
    const int64_t *code;      // (fixed_operations + operations,)
    const int64_t *terms;     // (n_terms,): numbers of the values from which forces are solved for
    const double *numbers;    // (constants,)
};

/* Operations; the first are those of fsm_dyn.programs.graph in their order. */
enum fsm_enclosed_operation {
    FSM_OP_NEG,
    FSM_OP_ADD,
    FSM_OP_SUB,
    FSM_OP_MUL,
    FSM_OP_DIV,
    FSM_OP_POW,
    FSM_OP_SQRT,
    FSM_OP_EXP,
    FSM_OP_LOG,
    FSM_OP_SIN,
    FSM_OP_COS,
    FSM_OP_TAN,
    FSM_OP_ASIN,
    FSM_OP_ACOS,
    FSM_OP_ATAN,
    FSM_OP_ATAN2,
    FSM_OP_SINH,
    FSM_OP_COSH,
    FSM_OP_TANH,
    FSM_OP_ABS,
    FSM_OP_SIGN,
    FSM_OP_FLOOR,
    FSM_OP_MOD,
    FSM_OP_MIN,
    FSM_OP_MAX,
    FSM_OP_LT,
    FSM_OP_LE,
    FSM_OP_EQ,
    FSM_OP_NE,
    FSM_OP_AND,
    FSM_OP_OR,
    FSM_OP_NOT,
    FSM_OP_WHERE,
    FSM_OP_NORM, // root of the sum of the squares of two or three numbers
};

/* Whether an interval is zero alone, as the rate of a constant. */
static inline bool fsm_is_zero(struct fsm_interval a)
{
    return a.low == 0.0 && a.high == 0.0;
}

static inline struct fsm_interval fsm_hull(struct fsm_interval a, struct fsm_interval b)
{
    return (struct fsm_interval){a.low < b.low ? a.low : b.low, a.high > b.high ? a.high : b.high};
}

/* enclosure_code.c */
FSM_LOCAL struct fsm_enclosure fsm_enclosure_at(const int64_t *code, const double *constants);
FSM_LOCAL int64_t fsm_enclosure_size(const struct fsm_enclosure *program);
FSM_LOCAL void fsm_mark_needed(const struct fsm_enclosure *program, int8_t *needed);
FSM_LOCAL double fsm_cone(double ga, double gb, struct fsm_interval rate, double w);
FSM_LOCAL double fsm_parabola(double ga, double sa, double gb, double sb, double w, double bend);
FSM_LOCAL double fsm_chord(double ga, double gb, double w, double bend);
FSM_LOCAL bool fsm_is_proved(const struct fsm_piece *z, const struct fsm_jet *jet, const struct fsm_jet *middle, double h,
                             double tolerance, bool waiting);
FSM_LOCAL double fsm_size_of(struct fsm_interval a);
FSM_LOCAL bool fsm_jumps_in(const struct fsm_jet *jet, double size);
FSM_LOCAL double fsm_largest_ratio(const double *bounds, const double *region, int64_t n);

/* enclosure.c */
FSM_LOCAL void fsm_enclose_fixed(const struct fsm_enclosure *program, const double *c, int64_t n_x, struct fsm_jet *jets);
FSM_LOCAL void fsm_enclose_any(const struct fsm_enclosure *program, int64_t begin, int64_t end, struct fsm_jet *jets);
FSM_LOCAL int64_t fsm_enclose(const struct fsm_enclosure *program, const int8_t *needed, int64_t order, struct fsm_jet *jets,
                              struct fsm_jet *middle, double reach);
FSM_LOCAL void fsm_enclose_rates(const struct fsm_enclosure *program, const int8_t *needed, struct fsm_jet *jets);
FSM_LOCAL int64_t fsm_enclose_values(const struct fsm_enclosure *program, const int8_t *needed, struct fsm_jet *jets);
FSM_LOCAL void fsm_narrow(struct fsm_jet *jet, const struct fsm_jet *middle, double reach);
FSM_LOCAL struct fsm_interval fsm_less_product(struct fsm_interval a, struct fsm_interval x, struct fsm_interval y);
FSM_LOCAL struct fsm_jet fsm_jet_product(const struct fsm_jet *x, const struct fsm_jet *y);
FSM_LOCAL struct fsm_jet fsm_jet_sum(const struct fsm_jet *x, const struct fsm_jet *y, double sign);
FSM_LOCAL struct fsm_jet fsm_jet_absolute(const struct fsm_jet *x);
FSM_LOCAL struct fsm_jet fsm_jet_norm(const struct fsm_jet *x, const struct fsm_jet *y);

#endif
