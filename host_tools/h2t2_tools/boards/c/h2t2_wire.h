/* The wire format, version @WIRE@ (docs/wire.md): requests that a device sends, replies that it gets. */
#ifndef H2T2_WIRE_H
#define H2T2_WIRE_H

#include "h2t2.h"

#define H2T2_REQUEST_TOPIC(device) "h2t2/@WIRE@/" device "/request/" H2T2_MODEL_TEXT
#define H2T2_REPLY_TOPIC(device) "h2t2/@WIRE@/" device "/reply"
#define H2T2_REQUEST_HEAD (21 + 2 * H2T2_DIMENSIONS + H2T2_RAW * (3 + H2T2_MEDIA_SIZE)) /* bytes before the data */
#define H2T2_REQUEST_SIZE (H2T2_REQUEST_HEAD + H2T2_DATA_SIZE)
#define H2T2_REPLY_SIZE 14

typedef struct h2t2_reply {
    int32_t status; /* 0: label and score are valid */
    uint32_t boot;
    int32_t sequence;
    int32_t label; /* -1: none */
    int32_t score; /* Q15 */
} h2t2_reply;

/* Write what precedes the data of a request into H2T2_REQUEST_HEAD bytes; return this number, or H2T2_REFUSED.

   boot: number of this start, new each time. sequence: the ticket. remaining_ms: for which an answer is of use; 0: unknown.
   chance: the policy's offload_chance(). bin: of the score. size: bytes of the data; only raw data may have another size than
   H2T2_DATA_SIZE. */
static inline int32_t h2t2_encode_request(
    uint8_t *bytes, uint32_t boot, int32_t sequence, uint32_t remaining_ms, int32_t chance, int32_t bin, uint32_t size)
{
    static const uint16_t shape[] = H2T2_SHAPE;
    static const char media[] = H2T2_MEDIA;
    int32_t n;
    if (size == 0 || size > H2T2_DATA_LIMIT || (!H2T2_RAW && size != H2T2_DATA_SIZE)) {
        return H2T2_REFUSED;
    }
    if (bin < 0 || bin > 255 || chance < 0) return H2T2_REFUSED;
    bytes[0] = @WIRE@;
    bytes[1] = 0;
    h2t2_put16(bytes + 2, H2T2_MODEL);
    h2t2_put32(bytes + 4, boot);
    h2t2_put32(bytes + 8, (uint32_t)sequence);
    h2t2_put32(bytes + 12, remaining_ms);
    h2t2_put16(bytes + 16, (uint32_t)h2t2_min(chance, 32768));
    bytes[18] = (uint8_t)bin;
    bytes[19] = H2T2_DTYPE;
    bytes[20] = H2T2_DIMENSIONS;
    bytes += 21;
    if (H2T2_RAW) {
        h2t2_put32(bytes, size);
        bytes[4] = H2T2_MEDIA_SIZE;
        for (n = 0; n < H2T2_MEDIA_SIZE; n++) bytes[5 + n] = (uint8_t)media[n];
    } else {
        for (n = 0; n < H2T2_DIMENSIONS; n++) h2t2_put16(bytes + 2 * n, shape[n]);
    }
    return H2T2_REQUEST_HEAD;
}

/* Read a reply; return 0, or H2T2_REFUSED for bytes that are none. */
static inline int32_t h2t2_decode_reply(const uint8_t *bytes, uint32_t size, h2t2_reply *reply)
{
    if (size != H2T2_REPLY_SIZE || bytes[0] != @WIRE@) return H2T2_REFUSED;
    reply->status = bytes[1];
    reply->boot = h2t2_get32(bytes + 2);
    reply->sequence = h2t2_signed(h2t2_get32(bytes + 6));
    reply->label = (int32_t)h2t2_get16(bytes + 10);
    if (reply->label > 32767) reply->label -= 65536;
    reply->score = (int32_t)h2t2_get16(bytes + 12);
    if (reply->status > @LATER@ || reply->score > 32768 || (reply->status == 0) != (reply->label >= 0)) return H2T2_REFUSED;
    return 0;
}
@REQUESTS@
#endif
