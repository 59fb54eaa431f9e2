/* The policy of a device, with a link that answers at once: put your sensor, model and network in the place of the first
   three functions. */
#include <stdio.h>

#include "h2t2_wire.h"

#define BOOT 1 /* number of this start: a new one each time, such as a random number */

static int32_t score(int32_t n) { return n * 37 % 256 - 128; } /* the local model's int8 output */

static const uint8_t *sample(void) /* what the remote model gets */
{
    static const uint8_t data[H2T2_DATA_SIZE] = {0};
    return data;
}

static int32_t send(const uint8_t *request, uint8_t *reply)
{
    int32_t n;
    for (n = 0; n < H2T2_REPLY_SIZE; n++) reply[n] = 0;
    reply[0] = request[0];
    for (n = 2; n < 10; n++) reply[n] = request[n + 2]; /* boot, sequence */
    reply[10] = request[18] >= H2T2_BINS / 2; /* the label */
    return H2T2_REPLY_SIZE;
}

int main(void)
{
    static h2t2_adaptive policy;
    static uint8_t request[H2T2_REQUEST_SIZE];
    uint8_t reply[H2T2_REPLY_SIZE];
    int32_t n, offloads = 0;
    h2t2_adaptive_begin(&policy, 1);
    for (n = 0; n < 1000; n++) {
        int32_t action = h2t2_adaptive_play(&policy, score(n) + 128, BOOT, 3000, sample(), request);
        if (action == H2T2_OFFLOAD) {
            int32_t size = send(request, reply);
            offloads++;
            action = h2t2_adaptive_take(&policy, BOOT, reply, (uint32_t)size);
            if (action == H2T2_REFUSED) {
                action = policy.local; /* without an answer */
                h2t2_adaptive_lose(&policy, policy.ticket);
            }
        }
        /* act on `action` */
    }
    printf("%ld offloads of %ld samples\n", (long)offloads, (long)n);
    return 0;
}
