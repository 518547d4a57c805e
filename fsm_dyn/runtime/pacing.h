/* The paced loop: ticks at deadlines, and drivers whose reading and writing is compiled. */

#ifndef FSM_PACING_H
#define FSM_PACING_H

#include "live.h"

#ifdef FSM_HAS_PACING

/* Why the loop returns to its caller. */
enum fsm_back {
    FSM_BACK_CHECK_END = 1, // the caller decides whether the run is over
    FSM_BACK_COMMANDS_ARRIVED = 2,
    FSM_BACK_COMMAND_PENDING = 3,  // a command has waited until the engagement is zero
    FSM_BACK_SUPPLY_NEEDED = 4,    // the tick cannot go on without a mode, a chart or room
    FSM_BACK_ATTENTION_NEEDED = 5, // something happened in the tick, or it ended late
    FSM_BACK_READ_FAILED = 6,
    FSM_BACK_WRITE_FAILED = 7,
    FSM_BACK_RECORDER_CHECK = 8, // not paced: a recorder may be behind
};

/* A driver: reads positions, velocities (m, m/s or rad, rad/s), sequence number, buttons and time (s, by the device's
   clock) of the latest sample, and writes forces (N or N m per axis).  Both return at once: 0, or what failed. */
typedef int64_t (*fsm_read)(void *data, double *sample);
typedef int64_t (*fsm_write)(void *data, const double *force);

/* Numbers of the paced loop. */
struct fsm_pace_numbers {
    fsm_read read;
    fsm_write write;
    void *data;                // handed to both
    int64_t period;            // ns; 0: as fast as it goes
    int64_t start;             // ns of the monotonic clock
    int64_t deadline;          // ns
    int64_t wakeup;            // ns
    int64_t cpu_time_at_start; // ns of the thread's time, when the tick began
    int64_t execution_time;    // ns of the tick before
    int64_t cpu_time;          // ns of the thread's time, likewise
    int64_t overrun;           // ns from the next deadline to the end of the tick, 0 if earlier
    int64_t commands_read;     // messages taken
    int64_t end_check_from;    // tick from which on the end of the run is checked
    int64_t must_run;          // 1: the next tick is not the last, even if requested
};

/* Data of the paced loop apart from those of the tick. */
struct fsm_pace {
    struct fsm_pace_numbers *numbers;
    int64_t numbers_count;
    fsm_vector sample; // (2 n_d + 3,), written by the driver
};

/* Flags of a sample by UDP. */
enum fsm_sample_flag {
    FSM_HAS_VELOCITY = 1, // velocities follow the positions
};

/* Flags of a force by UDP. */
enum fsm_force_flag {
    FSM_FORCE_RUNNING = 1, // the model runs: the force is to be shown
    FSM_FORCE_FAULT = 2,   // the run has a fault, until it is cleared
    FSM_FORCE_LET_GO = 4,  // show no force, whatever the sequence number: the run or its process has ended
};

/* Why a datagram was dropped, or not sent (`fsm_udp_link.dropped`). */
enum fsm_drop_reason {
    FSM_DROPPED_SIZE = 0,
    FSM_DROPPED_MAGIC = 1,
    FSM_DROPPED_VERSION = 2,
    FSM_DROPPED_AXES = 3,
    FSM_DROPPED_NUMBER = 4,
    FSM_DROPPED_OLD = 5,
    FSM_DROPPED_NOT_SENT = 6,
};

#define FSM_MOST_DATAGRAMS 64 // taken in a tick

/* Numbers of a connection by UDP. */
struct fsm_udp_numbers {
    int64_t descriptor; // of the socket
    int64_t longest;    // most bytes read of a datagram
    int64_t sample;     // magic, version and number of axes of a sample, as the first 48 bits
    int64_t force;      // the same of a force
    int64_t sequence;   // of the latest sample
    int64_t buttons;
    int64_t sent;   // forces
    int64_t heard;  // ns of the monotonic clock, when the latest sample came
    int64_t before; // 1: a position is known from which a velocity can be estimated
};

/* State of a connection by UDP (pacing.c). */
struct fsm_udp_link {
    struct fsm_udp_numbers *numbers;
    int64_t numbers_count;
    fsm_indices dropped; // datagrams by enum fsm_drop_reason
    fsm_indices words;   // the datagram, in one memory with `floats`
    fsm_vector floats;
    fsm_vector position; // per axis, m or rad
    fsm_vector velocity;
    fsm_vector times; // the device's time of the latest sample (s), and the rate of the velocity's filter (rad/s)
    struct fsm_live_header *header;
    int64_t header_count;
};

/* Numbers of a scripted hand. */
struct fsm_hand_numbers {
    double mass;      // kg
    double stiffness; // N/m
    double damping;   // N s/m
    double period;    // s between readings
    double gentle;    // s in which the motion grows to its size
    double readings;  // so far
};

/* A scripted hand (pacing.c). */
struct fsm_hand {
    struct fsm_hand_numbers *numbers;
    int64_t numbers_count;
    fsm_matrix motion; // axis, amplitude, rad/s and phase of each sinusoid
    fsm_vector position; // per axis
    fsm_vector velocity;
    fsm_vector force;
};

/* pacing.c */
FSM_LOCAL int64_t fsm_monotonic(void);
FSM_API void fsm_end_tick(struct fsm_pace *pace);
FSM_API int64_t fsm_run_ticks(struct fsm_tick *tick, struct fsm_pace *pace);
FSM_API void fsm_beat_on(int64_t *beats, const int64_t *ends, int64_t interval);

#endif
#endif
