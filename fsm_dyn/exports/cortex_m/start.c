/* Start of a program on the MPS2 boards of QEMU (mps2-an386: Cortex-M4F, mps2-an500: Cortex-M7), with semihosting. */

#include "board.h"

#include <stdint.h>
#include <stdlib.h>

extern uint32_t load_data[], begin_data[], end_data[], begin_bss[], end_bss[], top_of_stack[];

extern int main(void);
extern void initialise_monitor_handles(void); // of the C library: opens standard output of the host
extern void __libc_init_array(void);

void _init(void);
void _fini(void);
void start(void);
void fault(void);

/* Called by the C library, which has nothing to do here. */
void _init(void)
{
}

void _fini(void)
{
}

#define STACK_WORDS 65536           // of the stack, watched
#define UNUSED      0xA5A5A5A5u     // value of what was never written

/* Fill the stack below the present frame. */
static void fill_stack(void)
{
    volatile uint32_t here = 0;
    for (volatile uint32_t *at = top_of_stack - STACK_WORDS; at < &here; at++) {
        *at = UNUSED;
    }
}

void start(void)
{
    fill_stack();
    *(volatile uint32_t *)0xE000ED88u |= 0xFu << 20; // CPACR: full access to the floating-point unit
    __asm volatile("dsb\n isb");
    for (uint32_t *to = begin_data, *from = load_data; to < end_data; to++, from++) {
        *to = *from;
    }
    for (uint32_t *to = begin_bss; to < end_bss; to++) {
        *to = 0;
    }
    initialise_monitor_handles();
    __libc_init_array();
    exit(main());
}

void fault(void)
{
    exit(70);
}

typedef void (*handler)(void);

__attribute__((section(".vectors"), used)) static const handler vectors[16] = {
    (handler)(uintptr_t)top_of_stack, start, fault, fault, fault, fault, fault, [11] = fault, [14] = fault, [15] = fault,
};

uint32_t board_counter(void)
{
    return *(volatile const uint32_t *)0x40028018u;
}

uint32_t board_stack(void)
{
    const uint32_t *at = top_of_stack - STACK_WORDS;
    while (at < top_of_stack && *at == UNUSED) {
        at++;
    }
    return (uint32_t)((uintptr_t)top_of_stack - (uintptr_t)at);
}
