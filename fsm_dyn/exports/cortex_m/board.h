/* What a program needs of a board. */

#ifndef BOARD_H
#define BOARD_H

#include <stdint.h>

/* A counter of 25 MHz, modulo 2^32.  Under `qemu -icount shift=10` an instruction takes 25.6 of its units. */
uint32_t board_counter(void);

/* Bytes of the stack that were used since the start. */
uint32_t board_stack(void);

#endif
