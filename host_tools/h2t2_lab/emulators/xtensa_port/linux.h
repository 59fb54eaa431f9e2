// Linux's system calls on Xtensa: the number in a2, arguments in a6, a3, a4; a negative result is an error.
enum { SYS_OPEN = 8, SYS_CLOSE = 9, SYS_READ = 12, SYS_WRITE = 13, SYS_LSEEK = 15, SYS_MPROTECT = 82, SYS_EXIT = 118 };

static inline long linux_call(long number, long first, long second, long third) {
    register long a2 __asm__ ("a2") = number;
    register long a6 __asm__ ("a6") = first;
    register long a3 __asm__ ("a3") = second;
    register long a4 __asm__ ("a4") = third;
    __asm__ volatile ("syscall" : "+r" (a2) : "r" (a6), "r" (a3), "r" (a4) : "memory");
    return a2;
}
