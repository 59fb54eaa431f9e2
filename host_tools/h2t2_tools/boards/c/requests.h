
/* @TITLE@, and its requests */

/* Play a round for a score in 256ths, 0..255. H2T2_OFFLOAD: H2T2_REQUEST_SIZE bytes are to be sent; else the class to act on.

   boot, remaining_ms: as of h2t2_encode_request(). sample: H2T2_DATA_SIZE bytes for the remote model. */
static inline int32_t @name@_play(
    @name@ *self, int32_t score, uint32_t boot, uint32_t remaining_ms, const uint8_t *sample, uint8_t *request)
{
    int32_t n, k = score >> (8 - H2T2_BITS), action = @name@_decide(self, @READING@);
    if (action != H2T2_OFFLOAD) return action;
    h2t2_encode_request(request, boot, self->ticket, remaining_ms, @name@_offload_chance(self), k, H2T2_DATA_SIZE);
    for (n = 0; n < H2T2_DATA_SIZE; n++) request[H2T2_REQUEST_HEAD + n] = sample[n];
    return action;
}

/* Learn from a reply; return its label, or H2T2_REFUSED for bytes that are none, or hold no label of this start, 0 or 1. */
static inline int32_t @name@_take(@name@ *self, uint32_t boot, const uint8_t *bytes, uint32_t size)
{
    h2t2_reply reply;
    if (h2t2_decode_reply(bytes, size, &reply) != 0 || reply.status != 0 || reply.boot != boot) return H2T2_REFUSED;
    return @name@_learn(self, reply.sequence, reply.label, -1) < 0 ? H2T2_REFUSED : reply.label;
}
