/* A mechanism on the board of its motor: the exported virtual_wall held by a paddle with one axis.

   Each tick the handle's position leads the tool of the mechanism through a virtual coupler, a spring with a damper, and the
   motor shows the coupler's force.  The board speaks the protocol of the paddle (hapkit_protocol.h): a host that says
   hello gets the position and the force of every tick, and may set the zero; it need not be there.

   Compile with the files of `fsm-dyn export virtual_wall --to c99`, of doubles or with `--real float`, and
   hapkit_protocol.h of the package's firmware; the functions of the board are the reader's.  For another mechanism change the names that begin with virtual_wall. */

#include "hapkit_protocol.h"
#include "virtual_wall.h"

#include "paddle.h"

#define PERIOD    1e-3  // s
#define STIFFNESS 500.0 // of the coupler, N/m
#define DAMPING   5.0   // N s/m
#define CUTOFF    300.0 // of the filter of the handle's velocity, rad/s
#define MICRO     1e6

static int64_t memory[VIRTUAL_WALL_BYTES / sizeof(int64_t)];

/* Whole micrometres, or other small units, of a number. */
static int32_t rounded(double value)
{
    double most = (double)INT32_MAX;
    return (int32_t)fmax(-most, fmin(most, value));
}

/* Carry out what a host says. */
static void listen(hapkit_board *board, hapkit_reader *reader, double *zero)
{
    uint8_t frame[HAPKIT_LONGEST];
    for (int byte = board_receive(); byte >= 0; byte = board_receive()) {
        uint8_t kind = hapkit_read(reader, (uint8_t)byte);
        if (kind == HAPKIT_FORCE) {
            continue; // the force is the mechanism's
        }
        if (kind != 0 && hapkit_obey(board, kind, reader->piece + 1, board_time())) {
            board_send(frame, hapkit_identity(board, frame));
        }
    }
    if (board->wants_zero) {
        board->wants_zero = 0;
        *zero = board_position();
    }
}

/* Force of the coupler on the handle (N) where it stands, from the tool's state. */
static double coupler_force(const struct fsm_machine *machine, double position, double velocity)
{
    const fsm_real *state = fsm_machine_state(machine);
    double y = (double)state[virtual_wall_state_y], vy = (double)state[virtual_wall_state_vy];
    return STIFFNESS * (y - position) + DAMPING * (vy - velocity);
}

/* Hold the mechanism until the board says stop; return how it ended. */
enum fsm_status paddle_run(hapkit_board *board)
{
    struct fsm_machine *machine = fsm_machine_create(&virtual_wall_model, memory, (int64_t)sizeof memory);
    hapkit_reader reader = {{0}, 0, 0, 0};
    uint8_t frame[HAPKIT_LONGEST];
    double zero = board_position() - (double)fsm_machine_state(machine)[virtual_wall_state_y]; // the tool is at the handle
    double before = board_position() - zero, velocity = 0.0;
    enum fsm_status status = FSM_DONE;
    hapkit_begin(board);
    board->let_go = 0;
    fsm_machine_hold_input(machine, virtual_wall_input_pull, 0);
    while (status == FSM_DONE && board_goes_on()) {
        listen(board, &reader, &zero);
        double position = board_position() - zero;
        velocity += CUTOFF * PERIOD / (1.0 + CUTOFF * PERIOD) * ((position - before) / PERIOD - velocity);
        before = position;
        double push = -coupler_force(machine, position, velocity);
        fsm_machine_hold_input(machine, virtual_wall_input_push, (fsm_real)push);
        fsm_machine_set_time(machine, 0); // small times are resolved best
        status = fsm_machine_advance(machine, (fsm_real)PERIOD);
        double force = status == FSM_DONE ? coupler_force(machine, position, velocity) : 0.0; // a failure ends the force
        double most = (double)board->most / MICRO;
        board->limited = fabs(force) > most;
        force = fmax(-most, fmin(most, force));
        board->force = rounded(force * MICRO);
        board_show(force);
        if (board->talks) {
            int32_t counts = rounded(position * 1e9 / (double)board->resolution);
            board_send(frame, hapkit_sample(board, frame, board_time(), counts, rounded(velocity * MICRO), reader.dropped));
        }
        board_wait(PERIOD);
    }
    hapkit_let_go(board);
    board_show(0.0);
    return status;
}
