/* Data of the live loop: a tick, the memory it shares with other processes, checkpoints. */

#ifndef FSM_TICK_H
#define FSM_TICK_H

#include "run.h"

/* Results of a live tick. */
enum fsm_tick_result {
    FSM_TICK_OK = 0,
    FSM_TICK_ATTENTION_NEEDED = 1, // an event for the caller to handle
    FSM_TICK_SUPPLY_NEEDED = 2,    // the tick needs a mode, a chart or room to continue; the caller finishes it
};

/* Passivity observer and controller (`fsm_tick_counts.passivity`). */
enum fsm_passivity {
    FSM_PASSIVITY_OFF = 0,
    FSM_PASSIVITY_OBSERVE = 1,
    FSM_PASSIVITY_CONTROL = 2,
};
#define FSM_OCCASION       1.0 // s without saturation between two occasions
#define FSM_LATEST         8   // largest delay of a force in the energy balance, ticks
#define FSM_CAUGHT_UP_MOST 16  // most additional periods of a tick of a model behind the clock

/* Faults, latched until cleared (`fsm_tick_counts.fault`). */
enum fsm_fault {
    FSM_FAULT_NONE = 0,
    FSM_FAULT_NON_FINITE = 1,
    FSM_FAULT_VELOCITY_EXCEEDED = 2,
    FSM_FAULT_OUT_OF_WORKSPACE = 3,
    FSM_FAULT_DRIVER_EXCEPTION = 4,
    FSM_FAULT_STALLED = 5,
    FSM_FAULT_WATCHDOG_LOST = 6,
    FSM_FAULT_OVERRUN = 7,
    FSM_FAULT_JUMPED = 8,
    FSM_FAULT_LAGGED = 9,
    FSM_FAULT_HAND_FORCE_EXCEEDED = 10,
    FSM_FAULT_HAND_FORCE_JUMPED = 11,
    FSM_FAULT_OUTRUN = 12,
    FSM_FAULT_DISAGREED = 13,
};

/* Why a device was released (`fsm_tick_counts.release_reason`). */
enum fsm_release_reason {
    FSM_RELEASED_NO_SAMPLE = 1,
    FSM_RELEASED_TICK_DELAYED = 2, // no tick for too long
    FSM_RELEASED_WATCHDOG_SILENT = 3,
    FSM_RELEASED_LOOP_ABSENT = 4, // a long operation, or the return from one
};

/* Run states of a live session (`fsm_tick_counts.phase`). */
enum fsm_live_phase {
    FSM_LIVE_RUNNING = 0,
    FSM_LIVE_PAUSED = 1,
    FSM_LIVE_FAULT = 2,   // until the fault is cleared
    FSM_LIVE_FAILED = 3,  // the model cannot go on: reset
    FSM_LIVE_STOPPED = 4, // a transition marked stop: reset
};

/* States of the tick process (`fsm_live_header.tick_state`). */
enum fsm_tick_state {
    FSM_TICK_STARTING = 0,
    FSM_TICK_RUNNING = 1,
    FSM_TICK_BUSY = 2,  // the force is zero during a long operation
    FSM_TICK_ENDED = 3, // in order, with the force at zero
};

/* Actions of the watchdog process (`fsm_live_header.watchdog_action`). */
enum fsm_watchdog_action {
    FSM_WATCHDOG_KILLED = 1,           // it killed the tick process
    FSM_WATCHDOG_FOUND_TERMINATED = 2, // the tick process had ended with an error
};

#define FSM_BINS 1024 // of the histograms of durations and latenesses

#define FSM_CHECKPOINT_EVERY 10   // ticks
#define FSM_CHECKPOINTS_MOST 2000 // of which the oldest goes: 20 s at 1 kHz

/* Numbers of a tick. */
struct fsm_tick_numbers {
    double engagement; // engagement: gain of the virtual coupler, 0 to 1
    double engagement_target;
    double engagement_step; // ramp: change of the engagement in a tick
    double speed;           // model time over wall-clock time
    double force_scale;
    double force_limit;    // norm of the force of each device, N
    double slew_limit;     // its change in a tick, N
    double velocity_limit; // norm of the velocity of each device, m/s
    double torque_limit;   // as the three above, of rotational axes: N m, N m, rad/s
    double torque_slew_limit;
    double angular_velocity_limit;
    double period;                // of the tick, s of the wall clock
    double excess_energy;         // largest excess energy of any tick while the device was engaged, J
    double dissipated;            // by damping, J
    double delay;                 // of the device, ticks, up to FSM_LATEST
    double release_excess_energy; // additional excess energy during the ramp of a release, J
    double engaged_excess;        // excess energy when the device was last engaged, J
    double force_requested;       // norm of the requested force at the beginning of the last occasion of saturation, N
    double torque_requested;      // likewise, N m
    double sample_time;           // of the sample read, by the device's clock, s; not finite: unknown
    double accepted_time;         // of the last accepted sample, likewise
    double hand_force_limit;      // norm of the force measured by each device, N
    double hand_force_rate;       // its rate of change, N/s
    double hand_torque_limit;     // as the two above, of rotational axes: N m, N m/s
    double hand_torque_rate;
    double sample_interval;       // median time between accepted samples, s, at least a period
    double clock_lead;            // of the device's clock over the loop's, most of the last seconds, s
    double sample_age;            // of the last accepted sample on arrival, compared with the youngest lately, s
    double velocity_lag;          // of the velocity in a sample behind the device, s
    double grain;                 // smallest change of position between samples, s at the largest velocity; 0: none yet
    double doubt;                 // part of the force that is withheld, as positions and velocities contradict each other
    double elapsed;               // since the tick before, s of the wall clock; 0 for ticks without a clock
    double running;               // s of the wall clock in which the model had to advance
    double progress;              // s of the wall clock that its advance is worth
};

/* Counts of a tick. */
struct fsm_tick_counts {
    int64_t steps; // steps of the grid since it began
    int64_t substeps;
    int64_t kernel; // address of the kernel of the ports
    int64_t anchor; // 1: the device is to be put at the port
    int64_t fault;
    int64_t advancing;       // 1: the model moves in this tick
    int64_t incomplete;      // 1: the tick before did not reach its end
    int64_t saturated_ticks; // ticks in which the force was limited
    int64_t inputs_set;      // 1: the inputs at the end of the tick stand in ``next`` already
    int64_t status;          // how the tick ended, a status of the outcomes
    int64_t absolute_offset; // 1: the device's zero is given by the mapping, not by the engagement
    int64_t scheduled;       // 1: inputs without a device follow the model's schedule
    int64_t segment;         // of the schedule
    int64_t phase;
    int64_t ticks;
    int64_t transitions;   // since the run began
    int64_t sequence;      // of the sample that was read
    int64_t last_sequence; // of the last examined sample
    int64_t stale_ticks;   // ticks without a new acceptable sample
    int64_t stall_ticks;
    int64_t buttons;
    int64_t dead_man; // mask of the button to hold pressed, 0 for none
    int64_t clutch;
    int64_t engaged;
    int64_t pending_commands; // commands waiting until the engagement is zero
    int64_t steps_left;       // ticks to advance while paused
    int64_t until_transition; // 1: the caller requests a return at transitions
    int64_t attention;        // 1: an event for the caller to handle
    int64_t wall;             // ns since the loop began
    int64_t wakeup_latency;   // ns
    int64_t execution_time;   // ns of the tick before
    int64_t cpu_time;         // ns of the thread's time, likewise
    int64_t watchdog_beats;   // heartbeats of the watchdog process when last looked at
    int64_t watchdog_seen;    // ns since the loop began, when they changed last
    int64_t watchdog_timeout; // ns, 0: there is no watchdog process
    int64_t new_transitions;  // transitions in this tick
    int64_t passivity;        // whether the energy at the port is watched
    int64_t outliers;         // most successive rejected samples
    int64_t rejected;         // samples rejected in succession
    int64_t rejected_total;
    int64_t sample_accepted; // 1: a sample has been taken
    int64_t accepted_wall;   // ns since the loop began, when a sample was taken last
    int64_t accepted_tick;
    int64_t released;       // 1: no force until the device is engaged anew
    int64_t releases;       // how often the device was released
    int64_t release_reason; // of the last one
    int64_t settling;       // ticks in time until the device may be engaged again
    int64_t release_time;
    int64_t release_ticks; // ticks without a new sample likewise
    int64_t owner_beats;   // heartbeats of the owner when last looked at
    int64_t owner_seen;    // ns since the loop began, when they changed last
    int64_t owner_timeout; // ns, 0: no heartbeat required
    int64_t owner_silent;
    int64_t zero_force_packets;    // safe packets of the watchdog process when last looked at
    int64_t may_jump;              // 1: positions may jump, as no force is shown
    int64_t faded_ticks;           // ticks in which the force had faded without samples
    int64_t saturation_ticks_left; // ticks until the occasion of a force beyond the limit is over, 0: there is none
    int64_t saturations;           // occasions since the run began
    int64_t lagging_ticks;         // ticks that ended before their model time was reached
    int64_t behind;                // ticks by which the model is behind the clock
    int64_t periods;               // periods of the model in this tick: 1 unless it catches up
    int64_t admittance;            // 1: the device measures forces and follows velocities
    int64_t paced;                 // 1: ticks keep to the wall clock, and so do ramps and timeouts
    int64_t lag_limit;             // largest lag of the model behind the clock, ns, 0: any
    int64_t samples;               // taken since the run began
    int64_t changed_tick;          // in which the numbers of a sample were not those of the one before
    int64_t slow_device;           // 1: it samples more slowly than the loop ticks
    int64_t follows;               // 1: couplers and prescribed coordinates follow the device in this tick
};

/* Instead of a constraint in `fsm_tick.row`. */
enum fsm_moved_by {
    FSM_APPLIED = -2, // the force of the hand is an input
    FSM_COUPLED = -1, // a coupler
};

/* Header of the shared block. */
struct fsm_live_header {
    int64_t beats; // ticks begun
    int64_t watchdog_beats;
    int64_t stop_requested; // 1: the run is to end
    int64_t tick_state;
    int64_t watchdog_action;
    int64_t rows; // rows written
    int64_t transitions;
    int64_t events;
    int64_t commands; // commands sent
    int64_t commands_read;
    int64_t phase;
    int64_t fault;
    int64_t tick_pid; // 0: the tick process still loads, and has not touched the device
    int64_t overruns;
    int64_t saturated_ticks;
    int64_t pointer;       // samples of the pointer sent
    int64_t recorded;      // rows taken by a recorder
    int64_t excess_energy; // nJ, largest excess energy
    int64_t dissipated;    // nJ, by damping
    int64_t passivity_on;  // whether the energy at the port is
    int64_t reserved_20[12];
    int64_t release_excess_energy; // nJ, additional excess energy during the ramp of a release
    int64_t owner_beats;           // heartbeats of the owner
    int64_t zero_force_packets;    // safe packets of the watchdog process, sent for lack of ticks
    int64_t rejected;              // samples
    int64_t releases;              // how often the device was released
    int64_t faded_ticks;           // ticks in which the force had faded
    int64_t saturations;           // occasions on which the force was saturated
    int64_t lagging_ticks;         // ticks that ended before their model time was reached
    int64_t running_time;          // ns of the wall clock in which the model had to advance
    int64_t progress;              // ns of the wall clock that its advance is worth
    int64_t sample_interval;       // ns, median time between the samples of the device
    int64_t next_event;            // ns of the model's time, when the copy that runs ahead met a transition; -1: none
};

/* Counts of checkpoints. */
struct fsm_checkpoint_counts {
    int64_t saved;
    int64_t since; // ticks since the last one
};

/* The parts of the shared block written by every tick. */
struct fsm_ring {
    struct fsm_live_header *header;
    int64_t header_count;
    fsm_matrix rows;
    fsm_matrix records;
    fsm_indices durations;
    fsm_indices latenesses;
    fsm_indices processor;
};

/* The checkpoints of a session: a ring of copies of the state. */
struct fsm_checkpoints {
    struct fsm_checkpoint_counts *counts;
    int64_t counts_count;
    // The memory of the stepper's state.
    fsm_indices block;
    // (FSM_CHECKPOINTS_MOST, block.n): copies of it.
    fsm_index_table states;
    // (FSM_CHECKPOINTS_MOST, 1 + n_w + 2 n_s): model time (s), inputs, rates and second rates of the smooth ones.
    fsm_matrix inputs;
};

/* Addresses of the data of a tick. */
struct fsm_tick_places {
    struct fsm_run run;
    const struct fsm_input_tables *schedule;
    struct fsm_ring *ring; // 0: no other process reads
    struct fsm_checkpoints *checkpoints;
};

/* Data of a tick; n_a axes of ports, n_d of the device, n_w inputs, n_s of them smooth. */
struct fsm_tick {
    struct fsm_tick_numbers *numbers;
    int64_t numbers_count;
    struct fsm_tick_counts *counts;
    int64_t counts_count;
    struct fsm_tick_places *places;
    int64_t places_count;
    // (n_w,): inputs at the beginning and end of the tick, and target values of those without a device.
    fsm_vector now;
    fsm_vector next;
    fsm_vector targets;
    // (n_s,): inputs whose rates enter the equations: they run as cubics, with continuous rate and second rate.
    fsm_indices smooth;
    // (2 n_s,): rates and second rates of the smooth inputs at the beginning and the end of the tick.
    fsm_vector motion;
    fsm_vector motion_next;
    // (n_s,): rate of the target value.
    fsm_vector target_rate;
    // (n_s,): of the filter of each, rad per tick.
    fsm_vector bandwidth;
    // (n_b,): boolean inputs: they change with the begin of a tick.
    fsm_indices switches;
    // (2 n_d,): position and velocity read from the device, else those of the last accepted sample.
    fsm_vector device;
    // (2 n_d,): position and velocity of the last accepted sample.
    fsm_vector taken;
    // (n_a,): the device axis behind each axis of all ports, -1 for none.
    fsm_indices source;
    // (3 n_a,): the inputs for position, rate and engagement of each axis; of an axis prescribed by the device, the
    // position only, and its index among the smooth ones instead of the rate, with -1 for the engagement.
    fsm_indices slot;
    // (n_a,): the constraint by which a device prescribes the axis, FSM_COUPLED for a coupler, FSM_APPLIED if the force
    // of the hand is an input, the first of `slot`.
    fsm_indices row;
    // (n_a,): model position = offset + scale * device position.
    fsm_vector scale;
    fsm_vector offset;
    // (3 n_a,): force on the model, position and rate of the port, for all axes.
    fsm_vector ports;
    // (n_d,): force on the device, and the same without limits, N or N m.
    fsm_vector force;
    fsm_vector wanted;
    // (n_d,): the device's workspace, and its largest velocity along each axis.
    fsm_vector low;
    fsm_vector high;
    fsm_vector fastest;
    // (n_d,): 1 for an axis in rad.
    fsm_indices turns;
    // (n_d,): number of the device of each axis, from 0 and ascending: norms are of one device each.
    fsm_indices part;
    // (n_d,): position of the device in the tick before; excess energy, J; the force to dissipate it; time for which
    // its own damping does not count, s.
    fsm_vector before;
    fsm_vector balance;
    fsm_vector back;
    fsm_vector distrust;
    // (n_d (FSM_LATEST + 2),): forces of the last ticks, the latest first, for each axis.
    fsm_vector shown;
    // (n_d,): known of the device, N s/m or N m s/rad.
    fsm_vector device_damping;
    // (4 n_a,): of the tick before: forces on the model, positions of the device in the model, rates in the couplers,
    // rates of the ports.
    fsm_vector coupled;
    // (n_a,): position of the port at the end of the last complete tick, of the tick before for an applied force.
    fsm_vector left;
    // (n_d,): of a sample since the one taken last, while it is examined.
    fsm_vector changes;
    // (4 n_d,): for each axis what the velocities leave unexplained of its displacement lately, between two bounds (m or
    // rad), and the range of its velocity.
    fsm_vector tracks;
    // (n_d,): of the track of the last accepted sample what no filter of velocities explains, m or rad.
    fsm_vector unexplained;
    // (n_d,): lag of an admittance device behind its port, because of the limits.
    fsm_vector lag;
    // (2 n_a,): rate of the port beyond the device's at the engagement, and its present remainder: the end of the
    // coupler glides along with the port, and comes to the device's velocity with the ramp.
    fsm_vector glide;
    // (n_a,): displacement of the coupler's end from a device with an absolute zero: it comes from the port with the ramp.
    fsm_vector shift;
    // (2 n_a,): stiffnesses and dampings of the couplers in the context, -1: none.
    fsm_indices law;
    // Output of a mode's kernel, for the multipliers.
    fsm_vector full;
    // (n_c,): in which the schedule is evaluated.
    fsm_vector context;
};

#endif
