/* Energy-consistent impacts: largest admissible fraction of the restitution (docs/theory.md, "Impacts"). */

#include "contacts.h"

/* Whether contact impulses `forces` (n,), after which the rows have the speeds `motions` (n,), raise the energy.

   The energy is that seen from the moving constraints: the gain is `½ Σ Λ (v⁺ + v⁻)` over all rows. */
FSM_LOCAL bool fsm_gains_energy(const struct fsm_impact_balance *balance, fsm_vector forces, fsm_vector motions)
{
    double gain = balance->base_work, size = fabs(balance->base_work);
    for (int64_t r = 0; r < forces.n; r++) {
        double before = balance->before.at[r], work = balance->work.at[r];
        gain += forces.at[r] * (motions.at[r] + before + work);
        size += fabs(forces.at[r]) * (fabs(motions.at[r]) + fabs(before) + fabs(work));
    }
    return gain > balance->tolerance * size;
}

/* Return the largest β ≤ 1 at which the impulses `plastic + β (forces - plastic)` do not raise the energy.

   `plastic_motions` and `motions` (n,) are the speeds of the rows after the two solutions; the gain is a quadratic in β
   that is not positive at 0. */
FSM_LOCAL double fsm_energy_consistent_fraction(const struct fsm_impact_balance *balance, fsm_vector plastic,
                                                fsm_vector plastic_motions, fsm_vector forces, fsm_vector motions)
{
    if (!fsm_gains_energy(balance, forces, motions)) {
        return 1.0;
    }
    double constant = balance->base_work, linear = 0.0, square = 0.0;
    for (int64_t r = 0; r < plastic.n; r++) { // gain(β) = Σ (P + βD)(V + βE), P and V of the plastic solution
        double step = forces.at[r] - plastic.at[r], rise = motions.at[r] - plastic_motions.at[r];
        double total = plastic_motions.at[r] + balance->before.at[r] + balance->work.at[r];
        constant += plastic.at[r] * total;
        linear += step * total + plastic.at[r] * rise;
        square += step * rise;
    }
    double discriminant = linear * linear - 4.0 * square * constant;
    if (constant >= 0.0 || !(discriminant >= 0.0)) {
        return 0.0;
    }
    double beta; // the positive root, without cancellation
    if (linear > 0.0) {
        beta = -2.0 * constant / (linear + sqrt(discriminant));
    } else if (square > 0.0) {
        beta = (-linear + sqrt(discriminant)) / (2.0 * square);
    } else {
        return 1.0;
    }
    return fsm_smaller(1.0, fsm_larger(0.0, beta));
}
