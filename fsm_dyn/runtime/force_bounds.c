/* Bounds of the contact forces of modes that are embedded online over a region of some steps, from bounds of how fast their
   terms change over a larger one. */

#include "online_mode.h"
#include "stepping.h"

#define FSM_TERMS_WIDE   8.0 // times what a region extends, by which the one for bounds of terms does
#define FSM_TERMS_MISSED 4.0 // steps enclosed after which that is chosen again; twice as many each time that it did not help
#define FSM_TERMS_MOST   64.0 // times as many at most

/* Whether terms are bounded over a large region that holds [low, high] (moving,). */
static bool holds_region(const struct fsm_term_bounds *t, const double *low, const double *high, int64_t n)
{
    bool inside = t->known[0] != 0.0 && t->known[1] < FSM_TERMS_MISSED * t->known[0];
    for (int64_t k = 0; k < n && inside; k++) {
        inside = low[k] >= t->low[k] && high[k] <= t->high[k];
    }
    return inside;
}

/* Bound rates of all terms over a large region about [low, high], at speeds that cross it in unit time, for slips in any
   direction: contacts begin to slide often. */
static void bound_terms(const struct fsm_run *run, const struct fsm_enclosure *p, const struct fsm_term_bounds *t,
                        const double *low, const double *high, struct fsm_jet *jets)
{
    const struct fsm_sizes *s = run->tables->sizes;
    int64_t n = run->state->x.n, ways = 1 + n + fsm_sigma_at(s);
    double times = t->known[0];
    bool served = times > 0.0 && t->known[1] < FSM_TERMS_MISSED * times; // it was only left
    for (int64_t k = 0; k < p->moving; k++) {
        double around = FSM_TERMS_WIDE * (high[k] - low[k]);
        around = served ? fsm_larger(around, 0.5 * (t->high[k] - t->low[k])) : around;
        t->low[k] = low[k] - (p->arguments[k] == 0 ? 0.0 : around);
        t->high[k] = high[k] + around;
        double width = t->high[k] - t->low[k];
        jets[k] = (struct fsm_jet){{t->low[k], t->high[k]}, {-width, width}, {0.0, 0.0}};
    }
    fsm_enclose_any(p, ways, ways + s->n_contacts, jets);
    fsm_enclose(p, NULL, 2, jets, NULL, 0.0);
    fsm_enclose_fixed(p, run->state->c.at, n, jets);
    for (int64_t i = 0; i < p->n_terms; i++) {
        const struct fsm_jet *jet = jets + p->terms[i];
        t->rate[i] = fsm_larger(-jet->rate.low, jet->rate.high);
        t->second[i] = fsm_larger(-jet->second.low, jet->second.high);
    }
    t->known[0] = times == 0.0 ? 1.0 : served ? fsm_larger(0.5 * times, 1.0) : fsm_smaller(2.0 * times, FSM_TERMS_MOST);
    t->known[1] = 0.0;
}

/* Write the jets of the mode's guards on forces over the region [low, high] (moving,), along lines that cross it in unit
   time, as far as bounds of the terms over a larger region give them: no program is evaluated but in its middle.

   `needed` (operations,): those of the mode's terms. */
FSM_LOCAL void fsm_bound_forces(const struct fsm_run *run, const struct fsm_enclosure *p, const struct fsm_term_bounds *t,
                                const int64_t *codes, const int8_t *needed, const double *low, const double *high,
                                struct fsm_jet *jets)
{
    int64_t first = fsm_enclosure_size(p) - p->operations;
    if (!holds_region(t, low, high, p->moving)) {
        bound_terms(run, p, t, low, high, jets);
    }
    double part = 0.0;
    for (int64_t k = 0; k < p->moving; k++) {
        double m = 0.5 * (low[k] + high[k]), extent = high[k] - low[k];
        jets[k] = (struct fsm_jet){{m, m}, {0.0, 0.0}, {0.0, 0.0}};
        part = extent > 0.0 ? fsm_larger(part, extent / (t->high[k] - t->low[k])) : part;
    }
    part *= 1.0 + 16.0 * FSM_EPS;
    fsm_enclose_values(p, needed, jets);
    for (int64_t i = 0; i < p->n_terms && part > 0.0; i++) {
        struct fsm_jet *jet = jets + p->terms[i];
        if (p->terms[i] >= first && fsm_is_zero(jet->rate)) { // once, where several terms are one value
            double rate = part * t->rate[i], second = part * part * t->second[i];
            jet->value = (struct fsm_interval){jet->value.low - 0.5 * rate, jet->value.high + 0.5 * rate};
            jet->rate = (struct fsm_interval){-rate, rate};
            jet->second = (struct fsm_interval){-second, second};
        }
    }
    fsm_enclose_forces(run, p, codes, 2, jets, NULL, 0.0, NULL);
}
