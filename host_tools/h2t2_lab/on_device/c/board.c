/* What a program needs where there is no operating system: a start, memory functions, and by semihosting text and an end. The
   compiler's command defines STACK, the end of the stack, and where the clock is: TIMER of ARM's MPS2, MTIME of a RISC-V. */
#include <stddef.h>
#include <stdint.h>

int main(void);

void *memcpy(void *restrict to, const void *restrict from, size_t n)
{
    unsigned char *target = to;
    const unsigned char *source = from;
    while (n--) *target++ = *source++;
    return to;
}

void *memset(void *to, int value, size_t n)
{
    unsigned char *target = to;
    while (n--) *target++ = (unsigned char)value;
    return to;
}

static int call(int operation, const void *argument)
{
#ifdef __arm__
    register int r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
#else
    register int a0 __asm__("a0") = operation;
    register const void *a1 __asm__("a1") = argument;
    __asm__ volatile(".balign 16\n.option push\n.option norvc\nslli x0, x0, 0x1f\nebreak\nsrai x0, x0, 7\n.option pop"
                     : "+r"(a0) : "r"(a1) : "memory");
    return a0;
#endif
}

void show(const char *text) { (void)call(4, text); }

/* A rising number: ticks of a clock that counts instructions, or the cycles that rp2040.mjs tells. */
uint32_t ticks(void)
{
#if defined TIMER
    return ~((volatile uint32_t *)TIMER)[1];
#elif defined MTIME
    return *(volatile uint32_t *)MTIME;
#else
    return (uint32_t)call(256, 0);
#endif
}

static void begin(void)
{
#ifdef TIMER
    ((volatile uint32_t *)TIMER)[2] = 0xffffffff;
    ((volatile uint32_t *)TIMER)[0] = 1;
#endif
    main();
    (void)call(24, (const void *)0x20026); /* the application exits */
    for (;;) {}
}

#ifdef __arm__
__attribute__((section(".start"), used)) const struct {
    uint32_t stack;
    void (*reset)(void);
} _start = {STACK, begin};
#else
__attribute__((section(".start"), used, naked)) void _start(void)
{
    __asm__ volatile("li sp, %0\nj %1" : : "i"(STACK), "i"(begin));
}
#endif
