/* What encloses without arithmetic of its own: programs as words, and lower bounds from what is known at the ends of a piece. */

#include <string.h>

#include "enclosure.h"

/* Return the program whose words begin at `code`, the first being where its numbers begin in `constants`. */
FSM_LOCAL struct fsm_enclosure fsm_enclosure_at(const int64_t *code, const double *constants)
{
    struct fsm_enclosure p = {code[1], code[2],  code[3], code[4], code[5],
                              code[6], code[7], code + 8, NULL,    NULL,   constants + code[0]};
    p.code = p.arguments + p.moving + p.fixed;
    p.terms = p.code + p.fixed_operations + p.operations;
    return p;
}

/* Return how many values a program has. */
FSM_LOCAL int64_t fsm_enclosure_size(const struct fsm_enclosure *p)
{
    return p->moving + p->fixed + p->constants + p->fixed_operations + p->operations;
}

/* Mark the operations on whose results those marked in `needed` (operations,) depend. */
FSM_LOCAL void fsm_mark_needed(const struct fsm_enclosure *p, int8_t *needed)
{
    const int64_t mask = (1 << FSM_OPERAND_BITS) - 1, first = fsm_enclosure_size(p) - p->operations;
    const int64_t *code = p->code + p->fixed_operations;
    for (int64_t i = p->operations - 1; i >= 0; i--) {
        uint64_t eight = 1;
        if (needed[i] != 0) {
            for (int64_t operands = code[i] >> 8; operands > 0; operands >>= FSM_OPERAND_BITS) {
                if ((operands & mask) >= first) {
                    needed[(operands & mask) - first] = 1;
                }
            }
        } else if (i >= 7) {
            memcpy(&eight, needed + i - 7, sizeof eight);
            i -= eight == 0 ? 7 : 0; // of many contacts few are near
        }
    }
}

/* The lower bound on a piece of length `w` (s) with values `ga gb` at its ends and rates within `rate`. */
FSM_LOCAL double fsm_cone(double ga, double gb, struct fsm_interval rate, double w)
{
    if (rate.low >= 0.0) {
        return ga;
    }
    if (rate.high <= 0.0) {
        return gb;
    }
    double least = (rate.high * ga - rate.low * gb + rate.low * rate.high * w) / (rate.high - rate.low);
    return least == least ? fsm_smaller(least, fsm_smaller(ga, gb)) : -FSM_INFINITY;
}

/* The lower bound on a piece of length `w` (s) with values `ga gb` and slopes `sa sb` at its ends, where slopes fall by no
   more than `bend` (per s^2): each half lies above a parabola, which is lowest at one of its ends. */
FSM_LOCAL double fsm_parabola(double ga, double sa, double gb, double sb, double w, double bend)
{
    double r = 0.5 * w, fall = bend <= 0.0 ? 0.0 : 0.5 * bend * r * r;
    return fsm_smaller(fsm_smaller(ga, ga + sa * r - fall), fsm_smaller(gb, gb - sb * r - fall));
}

/* The lower bound on a piece of length `w` (s) with values `ga gb` at its ends, where slopes rise by no more than `bend`
   (per s^2): it lies no deeper below its chord than a parabola does. */
FSM_LOCAL double fsm_chord(double ga, double gb, double w, double bend)
{
    return fsm_smaller(ga, gb) - (bend <= 0.0 ? 0.0 : 0.125 * bend * w * w);
}

/* Whether a guard is proved on a piece, given its jets there and in its middle: above `-tolerance`, or below it while it
   waits to rise. */
FSM_LOCAL bool fsm_is_proved(const struct fsm_piece *z, const struct fsm_jet *jet, const struct fsm_jet *middle, double h,
                             double tolerance, bool waiting)
{
    double w = 0.5 * (z->b - z->a) * h;
    if (waiting) {
        struct fsm_interval rate = {-jet->rate.high, -jet->rate.low};
        double m = -middle->value.high, bend = jet->second.high, rise = -jet->second.low;
        return -jet->value.high > -tolerance || fsm_cone(-z->ga, -z->gb, rate, 2.0 * w) > -tolerance ||
               (fsm_chord(-z->ga, m, w, rise) > -tolerance && fsm_chord(m, -z->gb, w, rise) > -tolerance) ||
               (fsm_parabola(-z->ga, -z->sa, m, -middle->rate.low, w, bend) > -tolerance &&
                fsm_parabola(m, -middle->rate.high, -z->gb, -z->sb, w, bend) > -tolerance);
    }
    double m = middle->value.low, bend = -jet->second.low, rise = jet->second.high;
    return jet->value.low > -tolerance || fsm_cone(z->ga, z->gb, jet->rate, 2.0 * w) > -tolerance ||
           (fsm_chord(z->ga, m, w, rise) > -tolerance && fsm_chord(m, z->gb, w, rise) > -tolerance) ||
           (fsm_parabola(z->ga, z->sa, m, middle->rate.high, w, bend) > -tolerance &&
            fsm_parabola(m, middle->rate.low, z->gb, z->sb, w, bend) > -tolerance);
}

/* The largest number of an interval in absolute value; infinite where there are no bounds. */
FSM_LOCAL double fsm_size_of(struct fsm_interval a)
{
    double size = fsm_larger(-a.low, a.high);
    return size == size ? size : FSM_INFINITY;
}

#define FSM_OPEN_BY_A_JUMP 1e-6 // part of the size of a quantity by which its value is open where it jumps

/* Whether a quantity whose values have this size jumps at an instant: its bounds there are those of both sides, and no
   rounding. */
FSM_LOCAL bool fsm_jumps_in(const struct fsm_jet *jet, double size)
{
    return jet->value.high - jet->value.low > FSM_OPEN_BY_A_JUMP * size && !(fsm_size_of(jet->rate) < FSM_INFINITY);
}

/* The largest ratio of some bounds of the step to those of a region; infinite where one of these is zero. */
FSM_LOCAL double fsm_largest_ratio(const double *bounds, const double *region, int64_t n)
{
    double largest = 0.0;
    for (int64_t k = 0; k < n; k++) {
        if (bounds[k] > 0.0) {
            double ratio = bounds[k] / region[k];
            largest = ratio > largest || ratio != ratio ? ratio : largest;
        }
    }
    return largest;
}
