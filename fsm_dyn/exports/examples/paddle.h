/* What paddle.c asks of a board, and gives to its main function. */

#ifndef PADDLE_H
#define PADDLE_H

#include "fsm_machine.h"
#include "hapkit_protocol.h"

uint32_t board_time(void);                               // us; modulo 2^32      
double board_position(void);                             // of the handle, m, from any zero
void board_show(double force);                           // at the handle, N
int board_receive(void);                                 // a byte from the host, -1: there is none
void board_send(const uint8_t *bytes, size_t length);    // to the host
void board_wait(double seconds);                         // until the next tick
bool board_goes_on(void);                                // false: the run is to end

/* Hold the mechanism until the board says stop.  `board`: its radius, resolution, most and watchdog are set. */
enum fsm_status paddle_run(hapkit_board *board);

#endif
