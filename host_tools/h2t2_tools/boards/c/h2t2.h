/* The policies of H2T2 Edge in C99, for one pair of a local and a remote model. `h2t2 export-c` wrote this file from
   firmware/h2t2/core: the same integers, so the same decisions and snapshots as in Python.

   Every integer has 32 bits and every intermediate fits 31. There is no malloc, no float and no state outside of the structs.
   h2t2_pair.h has the pair's numbers. Costs and probabilities are Q15: 32768 is 1.0.

   decide(self, k)                      0 or 1: act on that class; H2T2_OFFLOAD: ask, then self->ticket is set.
                                        k: the score in steps(self) steps, which are the bins; of h2t2_ordered 256
   learn(self, ticket, label, beta)     1: the answer taught something; beta: what the offload cost, -1: what decide() charged
   lose(self, ticket)                   gives an offload up; the class to act on, -1: the ticket is not outstanding
   begin(self, seed)                    starts the policy; each device has its own seed, 0..268435455
   snapshot(self, bytes)                writes the state, and returns its size
   restore(self, bytes, size)           continues bit for bit, without outstanding tickets; 1: costs have changed since, else 0
   likely(self, k)                      the class to act on without an offload
   offload_chance(self)                 the probability of an offload in the last round, for the request
   set_beta(self, beta), set_deltas(self, fp, fn), reset(self)

   Any of them returns H2T2_REFUSED for a wrong argument and then changes nothing. */
#ifndef H2T2_H
#define H2T2_H

#include <stdint.h>

#include "h2t2_pair.h"

#define H2T2_OFFLOAD (-1)
#define H2T2_REFUSED (-2)

@OPERATIONS@
static inline int32_t h2t2_check(int32_t x, int32_t low, int32_t high) { return x < low || x > high ? H2T2_REFUSED : 0; }

/* Bytes, little-endian */

static inline void h2t2_put16(uint8_t *bytes, uint32_t x)
{
    bytes[0] = (uint8_t)(x & 255);
    bytes[1] = (uint8_t)(x >> 8 & 255);
}

static inline void h2t2_put32(uint8_t *bytes, uint32_t x)
{
    h2t2_put16(bytes, x);
    h2t2_put16(bytes + 2, x >> 16);
}

static inline uint32_t h2t2_get16(const uint8_t *bytes) { return bytes[0] | (uint32_t)bytes[1] << 8; }
static inline uint32_t h2t2_get32(const uint8_t *bytes) { return h2t2_get16(bytes) | h2t2_get16(bytes + 2) << 16; }

static inline int32_t h2t2_signed(uint32_t x) { return x <= 0x7fffffff ? (int32_t)x : -(int32_t)~x - 1; }

/* A snapshot: its header, the costs, the settings, then the state, 32 bits each */

#define H2T2_SNAPSHOT_HEADER 12
#define H2T2_SNAPSHOT_VERSION @VERSION@

typedef enum { H2T2_WRITE, H2T2_VERIFY, H2T2_READ } h2t2_access;

typedef struct h2t2_rows {
    h2t2_access access;
    uint8_t *out; /* of H2T2_WRITE */
    const uint8_t *in;
    int32_t wrong; /* a number is out of range */
} h2t2_rows;

static inline int32_t h2t2_row(h2t2_rows *rows, int32_t x, int32_t low, int32_t high, int32_t reference)
{
    if (rows->access == H2T2_WRITE) {
        h2t2_put32(rows->out, (uint32_t)x);
        rows->out += 4;
        return x;
    }
    x = h2t2_signed(h2t2_get32(rows->in));
    if (x < low || x > high || (reference && x > h2t2_signed(h2t2_get32(rows->in - 4 * reference)))) rows->wrong = 1;
    rows->in += 4;
    return x;
}

static inline void h2t2_number(h2t2_rows *rows, int32_t *number, int32_t low, int32_t high)
{
    int32_t x = h2t2_row(rows, h2t2_min(*number, high), low, high, 0);
    if (rows->access == H2T2_READ) *number = x;
}

@ITEMS@

static inline void h2t2_snapshot_head(uint8_t *bytes, int32_t kind, int32_t settings, int32_t size)
{
    const uint8_t magic[4] = {'H', '2', 'T', '2'};
    int32_t n;
    for (n = 0; n < 4; n++) bytes[n] = magic[n];
    bytes[4] = H2T2_SNAPSHOT_VERSION;
    bytes[5] = (uint8_t)kind;
    h2t2_put16(bytes + 6, (uint32_t)(3 + settings));
    h2t2_put32(bytes + 8, (uint32_t)(size - H2T2_SNAPSHOT_HEADER));
}

@CORE@
@POLICIES@
#endif
