/* Plays a script of calls from standard input, for tests under sanitizers. Bytes of a call have a place of just their size.

   A call is six numbers, of 32 bits: policy, function, three arguments, number of the bytes that follow. The result is printed. */
#include "called.c"
#include <stdio.h>
#include <stdlib.h>

#define CALLS(name, NAME) \
    static int32_t name##_fuzzed(const int32_t *call, uint8_t *bytes) \
    { \
        static const uint8_t sample[H2T2_DATA_SIZE]; \
        int32_t n, result, size = call[5]; \
        switch (call[1]) { \
        case 0: return name##_test_begin(call[2]); \
        case 1: return name##_test_decide(call[2]); \
        case 2: return name##_test_learn(call[2], call[3], call[4]); \
        case 3: return name##_test_lose(call[2]); \
        case 4: return name##_test_likely(call[2]); \
        case 5: return name##_test_set_beta(call[2]); \
        case 6: return name##_test_set_deltas(call[2], call[3]); \
        case 7: name##_test_count_question(call[2], call[3]); return 0; \
        case 8: name##_test_reset(); return 0; \
        case 9: return name##_test_restore(bytes, size); \
        case 10: return name##_test_take(bytes, (uint32_t)size); \
        default: \
            bytes = malloc(NAME##_SNAPSHOT + H2T2_REQUEST_SIZE); \
            result = name##_test_snapshot(bytes); \
            for (n = 0; n < result; n++) printf("%02x", bytes[n]); \
            printf(" "); \
            if (call[1] == 12) result = name##_test_play(call[2], sample, bytes); \
            free(bytes); \
            return result; \
        } \
    }

CALLS(h2t2, H2T2)
CALLS(h2t2_adaptive, H2T2_ADAPTIVE)
CALLS(h2t2_ordered, H2T2_ORDERED)

int main(void)
{
    static int32_t (*const policies[])(const int32_t *, uint8_t *) = {h2t2_fuzzed, h2t2_adaptive_fuzzed, h2t2_ordered_fuzzed};
    int32_t call[6];
    while (fread(call, sizeof call, 1, stdin) == 1) {
        size_t size = (size_t)call[5];
        uint8_t *bytes = malloc(size ? size : 1);
        if (fread(bytes, 1, size, stdin) != size) return 1;
        printf("%d\n", (int)policies[call[0]](call, bytes));
        free(bytes);
    }
    return 0;
}
