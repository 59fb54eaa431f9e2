/* Gives Python's ctypes the functions of h2t2.h and h2t2_wire.h, which are static. */
#include "h2t2_wire.h"

#define POLICY(name) \
    static name name##_policy; \
    int32_t name##_test_begin(int32_t seed) { return name##_begin(&name##_policy, seed); } \
    int32_t name##_test_decide(int32_t k) { return name##_decide(&name##_policy, k); } \
    int32_t name##_test_learn(int32_t ticket, int32_t label, int32_t beta) \
    { \
        return name##_learn(&name##_policy, ticket, label, beta); \
    } \
    int32_t name##_test_lose(int32_t ticket) { return name##_lose(&name##_policy, ticket); } \
    int32_t name##_test_likely(int32_t k) { return name##_likely(&name##_policy, k); } \
    void name##_test_count_question(int32_t k, int32_t came) { name##_count_question(&name##_policy, k, came); } \
    int32_t name##_test_offload_chance(void) { return name##_offload_chance(&name##_policy); } \
    int32_t name##_test_steps(void) { return name##_steps(&name##_policy); } \
    int32_t name##_test_set_beta(int32_t beta) { return name##_set_beta(&name##_policy, beta); } \
    int32_t name##_test_set_deltas(int32_t fp, int32_t fn) { return name##_set_deltas(&name##_policy, fp, fn); } \
    void name##_test_reset(void) { name##_reset(&name##_policy); } \
    int32_t name##_test_ticket(void) { return name##_policy.ticket; } \
    int32_t name##_test_local(void) { return name##_policy.local; } \
    int32_t name##_test_snapshot(uint8_t *bytes) { return name##_snapshot(&name##_policy, bytes); } \
    int32_t name##_test_restore(const uint8_t *bytes, int32_t size) { return name##_restore(&name##_policy, bytes, size); } \
    int32_t name##_test_play(int32_t score, const uint8_t *sample, uint8_t *request) \
    { \
        return name##_play(&name##_policy, score, 4000000000u, 3000, sample, request); \
    } \
    int32_t name##_test_take(const uint8_t *bytes, uint32_t size) { return name##_take(&name##_policy, 4000000000u, bytes, size); }

POLICY(h2t2)
POLICY(h2t2_adaptive)
POLICY(h2t2_ordered)

int32_t test_request(
    uint8_t *bytes, uint32_t boot, int32_t sequence, uint32_t remaining_ms, int32_t chance, int32_t bin, uint32_t size)
{
    return h2t2_encode_request(bytes, boot, sequence, remaining_ms, chance, bin, size);
}

int32_t test_reply(const uint8_t *bytes, uint32_t size, int32_t *fields)
{
    h2t2_reply reply;
    int32_t result = h2t2_decode_reply(bytes, size, &reply);
    if (result < 0) return result;
    fields[0] = reply.status;
    fields[1] = h2t2_signed(reply.boot);
    fields[2] = reply.sequence;
    fields[3] = reply.label;
    fields[4] = reply.score;
    return 0;
}

int32_t test_operation(int32_t operation, int32_t x, int32_t y)
{
    switch (operation) {
    case 0: return h2t2_div(x, y);
    case 1: return h2t2_mod(x, y);
    case 2: return h2t2_shl(x, y);
    default: return h2t2_shr(x, y);
    }
}
