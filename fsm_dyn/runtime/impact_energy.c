/* The energy remedy of impacts: how much of the rebound may be kept (docs/theory.md, "Impacts"). */

#include "contacts.h"

#define FSM_IMPACT_ENERGY_ROUNDING 1e-15

/* Whether an impact raises the energy, seen from the moving constraints; arguments as for kept_part. */
FSM_LOCAL bool fsm_gains_energy(fsm_vector forces, fsm_vector answers, fsm_vector speed, double base_work,
                                fsm_vector work)
{
    double gain = base_work, size = fabs(base_work);
    for (int64_t r = 0; r < forces.n; r++) {
        gain += forces.at[r] * (answers.at[r] + speed.at[r] + work.at[r]);
        size += fabs(forces.at[r]) * (fabs(answers.at[r]) + fabs(speed.at[r]) + fabs(work.at[r]));
    }
    return gain > FSM_IMPACT_ENERGY_ROUNDING * size;
}

/* Return the largest β ≤ 1 at which `plastic + β (forces - plastic)` gains no energy.

   The energy gained, seen from the moving constraints, is `½ Σ Λ (v⁺ + v⁻)` over all rows: a quadratic in β that
   is not positive at 0.

   Parameters
   ----------
   plastic, plastic_answers, forces, answers : (n,)
       Impulses and speeds after of the two solutions.
   speed : (n,)
       Speeds of the rows before.
   base_work : float, work : (n,)
       Twice the work of the bilateral rows: without contact impulses, and per unit of each. */
FSM_LOCAL double fsm_energy_consistent_fraction(fsm_vector plastic, fsm_vector plastic_answers, fsm_vector forces,
                                                fsm_vector answers, fsm_vector speed, double base_work, fsm_vector work)
{
    if (!fsm_gains_energy(forces, answers, speed, base_work, work)) {
        return 1.0;
    }
    double constant = base_work, linear = 0.0, square = 0.0;
    for (int64_t r = 0; r < plastic.n; r++) { // gain(β) = Σ (P + βD)(V + βE), P and V of the plastic solution
        double step = forces.at[r] - plastic.at[r], rise = answers.at[r] - plastic_answers.at[r];
        double total = plastic_answers.at[r] + speed.at[r] + work.at[r];
        constant += plastic.at[r] * total;
        linear += step * total + plastic.at[r] * rise;
        square += step * rise;
    }
    double root = linear * linear - 4.0 * square * constant;
    if (constant >= 0.0 || !(root >= 0.0)) {
        return 0.0;
    }
    // the positive root, without taking near equals from each other
    double beta;
    if (linear > 0.0) {
        beta = -2.0 * constant / (linear + sqrt(root));
    } else if (square > 0.0) {
        beta = (-linear + sqrt(root)) / (2.0 * square);
    } else {
        return 1.0;
    }
    return fsm_smaller(1.0, fsm_larger(0.0, beta));
}
