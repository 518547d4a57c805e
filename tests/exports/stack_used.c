/* Runs an exported model's own schedule on a stack that is filled before, and prints how much of it was used. */

#define _POSIX_C_SOURCE 200809L

#include NAMES

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES (1L << 20)
#define UNUSED 0xA5

struct example {
    void *memory;
    int64_t bytes;
    void (*work)(struct example *);
};

static void advance(struct example *example)
{
    struct fsm_machine *machine = fsm_machine_create(&MODEL, example->memory, example->bytes);
    (void)fsm_machine_advance(machine, MODEL.until);
}

static void nothing(struct example *example)
{
    (void)example;
}

static void *run(void *data)
{
    struct example *example = data;
    example->work(example);
    return NULL;
}

static long used(struct example *example, unsigned char *stack)
{
    pthread_attr_t attributes;
    pthread_t thread;
    memset(stack, UNUSED, BYTES);
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, stack, BYTES);
    if (pthread_create(&thread, &attributes, run, example) != 0) {
        exit(1);
    }
    pthread_join(thread, NULL);
    long unused = 0;
    while (unused < BYTES && stack[unused] == UNUSED) {
        unused++;
    }
    return BYTES - unused;
}

int main(void)
{
    struct example example = {.bytes = fsm_machine_bytes(&MODEL), .work = nothing};
    void *stack = NULL;
    example.memory = malloc((size_t)example.bytes);
    if (example.memory == NULL || posix_memalign(&stack, 4096, BYTES) != 0) {
        return 1;
    }
    long of_the_thread = used(&example, stack);
    example.work = advance;
    printf("%ld\n", used(&example, stack) - of_the_thread);
    free(example.memory);
    free(stack);
    return 0;
}
