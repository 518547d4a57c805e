/* A hand that follows sines, read and written like a device: an example of a driver for fast loops. */

#include "elementary.h"
#include "pacing.h"

#ifdef FSM_HAS_PACING

FSM_API int64_t fsm_hand_read(void *data, double *sample);
FSM_API int64_t fsm_hand_write(void *data, const double *force);

/* Move the hand by one period and tell where it is. */
FSM_API int64_t fsm_hand_read(void *data, double *sample)
{
    struct fsm_hand *hand = data;
    struct fsm_hand_numbers *numbers = hand->numbers;
    int64_t n = hand->position.n;
    double t = numbers->readings * numbers->period;
    double gentle = fsm_smaller(t / numbers->gentle, 1.0);
    numbers->readings += 1.0;
    for (int64_t i = 0; i < n; i++) {
        double target = 0.0, rate = 0.0;
        for (int64_t k = 0; k < hand->motion.n; k++) {
            if (AT(hand->motion, k, 0) == (double)i) {
                double amplitude = AT(hand->motion, k, 1), frequency = AT(hand->motion, k, 2);
                double phase = AT(hand->motion, k, 3);
                target += gentle * amplitude * fsm_sin(frequency * t + phase);
                rate += gentle * amplitude * frequency * fsm_cos(frequency * t + phase);
            }
        }
        double pull =
            numbers->stiffness * (target - hand->position.at[i]) + numbers->damping * (rate - hand->velocity.at[i]);
        hand->velocity.at[i] += numbers->period * (pull + hand->force.at[i]) / numbers->mass;
        hand->position.at[i] += numbers->period * hand->velocity.at[i];
        sample[i] = hand->position.at[i];
        sample[n + i] = hand->velocity.at[i];
    }
    sample[2 * n] = numbers->readings;
    sample[2 * n + 1] = 0.0;
    sample[2 * n + 2] = t;
    return 0;
}

/* Let the force act on the hand until the next reading. */
FSM_API int64_t fsm_hand_write(void *data, const double *force)
{
    struct fsm_hand *hand = data;
    for (int64_t i = 0; i < hand->force.n; i++) {
        hand->force.at[i] = force[i];
    }
    return 0;
}

#endif
