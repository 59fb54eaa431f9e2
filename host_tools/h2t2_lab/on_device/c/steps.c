/* Counts what a step of a policy takes on a board: decide and learn, the mean of the first 40, as device_bench.py counts it in
   Python. Prints the ticks of the steps, of an empty loop, and the bytes of stack in 2,000 rounds, a snapshot and its return. */
#include "h2t2.h"

#define JOINED(name, suffix) name##suffix
#define WITH(name, suffix) JOINED(name, suffix)
#define CALL(function) WITH(KIND, _##function)
#define STEPS 40
#define DEEPEST 4096 /* bytes of stack that are looked at */
#define MARGIN 8 /* words below a frame's address that may be its own */
#define PAINT 0x5aa5c33cu

void show(const char *text);
uint32_t ticks(void);

static KIND policy;
static uint8_t saved[SNAPSHOT];
static int32_t samples[STEPS];

__attribute__((noinline)) static int32_t decide(int32_t k) { return CALL(decide)(&policy, k); }
__attribute__((noinline)) static int32_t learn(int32_t label) { return CALL(learn)(&policy, policy.ticket, label, -1); }
__attribute__((noinline)) static int32_t restart(void)
{
    return CALL(restore)(&policy, saved, CALL(snapshot)(&policy, saved));
}

static void number(uint32_t value)
{
    char text[12];
    int32_t at = 11;
    text[at] = 0;
    do {
        text[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    show(text + at);
    show(" ");
}

__attribute__((noinline)) static void play(int32_t rounds)
{
    int32_t n;
    for (n = 0; n < rounds; n++) {
        if (decide(samples[n % STEPS]) == H2T2_OFFLOAD) learn(n & 1);
    }
}

__attribute__((noinline)) static volatile uint32_t *paint(void)
{
    volatile uint32_t *end = (volatile uint32_t *)__builtin_frame_address(0) - MARGIN, *low = end - DEEPEST / 4, *each;
    for (each = low; each < end; each++) *each = PAINT;
    return low;
}

__attribute__((noinline)) static uint32_t depth(void)
{
    volatile uint32_t *each = paint();
    play(2000);
    restart();
    while (*each == PAINT) each++;
    return (uint32_t)((volatile uint32_t *)__builtin_frame_address(0) - each) * 4;
}

int main(void)
{
    h2t2_rng stream = {0, 0, 0};
    uint32_t begin, end;
    int32_t n;
    h2t2_rng_init(&stream, 5);
    for (n = 0; n < STEPS; n++) samples[n] = h2t2_rng_draw(&stream) * CALL(steps)(&policy) >> 15;
    CALL(begin)(&policy, 1);
    begin = ticks();
    for (n = 0; n < STEPS; n++) {
        if (decide(samples[n]) == H2T2_OFFLOAD) learn(n & 1);
    }
    end = ticks();
    number(end - begin);
    begin = ticks();
    end = ticks();
    number(end - begin);
    number(depth());
    number((uint32_t)sizeof policy);
    return 0;
}
