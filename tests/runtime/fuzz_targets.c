/* Inner functions of the runtime on arbitrary bytes: for libFuzzer, and with -DFSM_ALONE on numbers of its own. */

#include "exported.c" // first: what the system declares follows from it

#include <stdlib.h>
#include <string.h>

#define ROOM 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The next number of the input; zero beyond its end. */
static double next(const uint8_t **data, size_t *size)
{
    double value = 0.0;
    size_t taken = *size < sizeof value ? *size : sizeof value;
    memcpy(&value, *data, taken);
    *data += taken;
    *size -= taken;
    return value;
}

static fsm_vector numbers(int64_t n, const uint8_t **data, size_t *size)
{
    fsm_vector made = {malloc((size_t)(n > 0 ? n : 1) * sizeof(double)), n};
    for (int64_t i = 0; i < n; i++) {
        made.at[i] = next(data, size);
    }
    return made;
}

static fsm_indices integers(int64_t n)
{
    return (fsm_indices){calloc((size_t)(n > 0 ? n : 1), sizeof(int64_t)), n};
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2) {
        return 0;
    }
    int target = data[0] % 5;
    int64_t n = data[1] % 9;
    data += 2;
    size -= 2;
    struct fsm_arena_top top;
    memset(&top, 0, sizeof top);
    struct fsm_arena arena = {
        {malloc(ROOM * sizeof(double)), ROOM}, integers(ROOM), &top, sizeof top / sizeof(int64_t)};
    fsm_vector square = numbers(n * n, &data, &size), first = numbers(n, &data, &size);
    fsm_vector second = numbers(n, &data, &size), found;
    fsm_matrix matrix = {square.at, n, n};
    if (target == 0) {
        fsm_eigenvalues(matrix, first, second);
    } else if (target == 1) {
        struct fsm_lu lu = fsm_factor(&arena, matrix, 1e-10);
        fsm_solve(&lu, first, second);
    } else if (target == 2) {
        fsm_solve_lcp(&arena, matrix, first, second);
    } else if (target == 3) {
        fsm_maximise_margin(&arena, matrix, first, n > 0 ? fabs(second.at[0]) : 1.0, &found);
    } else {
        fsm_vector work = {calloc(1000, sizeof(double)), 1000};
        double g[7], sixth;
        for (int i = 0; i < 7; i++) {
            g[i] = next(&data, &size);
        }
        fsm_quintic(g[0], g[1], g[2], g[3], g[4], g[5], g[6], work, &sixth);
        fsm_surely_positive(work, 1e-12, sixth);
        fsm_first_crossing(work, 1e-12, n % 2 == 1);
        free(work.at);
    }
    void *made[] = {arena.floats.at, arena.integers.at, square.at, first.at, second.at};
    for (size_t i = 0; i < sizeof made / sizeof made[0]; i++) {
        free(made[i]);
    }
    return 0;
}

#ifdef FSM_ALONE
int main(void)
{
    uint64_t state = 1;
    for (int turn = 0; turn < 3000; turn++) {
        uint8_t bytes[900];
        for (size_t i = 0; i < sizeof bytes; i++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            bytes[i] = (uint8_t)(state >> 56);
        }
        for (size_t i = 9; i < sizeof bytes && turn % 2; i += 8) {
            bytes[i] = bytes[i] % 2 ? 0x3f : 0xbf; // numbers below two, of either sign
        }
        LLVMFuzzerTestOneInput(bytes, sizeof bytes);
    }
    return 0;
}
#endif
