
/* @TITLE@ */

static inline int32_t @name@_begin(@name@ *self, int32_t seed)
{
    static const @name@ start = @NAME@_BEGIN;
    *self = start;
    @name@_reset(self);
    return h2t2_rng_init(&self->rng, seed);
}

static inline int32_t @name@_snapshot(@name@ *self, uint8_t *bytes)
{
    static const int32_t costs[] = {H2T2_BETA, H2T2_DELTA_FP, H2T2_DELTA_FN}, settings[@COUNT@] = @NAME@_SETTINGS;
    h2t2_rows rows = {H2T2_WRITE, 0, 0, 0};
    int32_t n;
    h2t2_snapshot_head(bytes, @KIND@, @COUNT@, @NAME@_SNAPSHOT);
    rows.out = bytes + H2T2_SNAPSHOT_HEADER;
    for (n = 0; n < 3; n++) h2t2_row(&rows, costs[n], 0, 0, 0);
    for (n = 0; n < @COUNT@; n++) h2t2_row(&rows, settings[n], 0, 0, 0);
    @name@_number_rows(self, &rows);
    @name@_array_rows(self, &rows);
    return @NAME@_SNAPSHOT;
}

static inline int32_t @name@_restore(@name@ *self, const uint8_t *bytes, int32_t size)
{
    static const int32_t costs[] = {H2T2_BETA, H2T2_DELTA_FP, H2T2_DELTA_FN}, settings[@COUNT@] = @NAME@_SETTINGS;
    uint8_t head[H2T2_SNAPSHOT_HEADER], numbers[4 * @NUMBERS@];
    h2t2_rows rows = {H2T2_VERIFY, 0, 0, 0};
    int32_t n, changed = 0;
    if (size != @NAME@_SNAPSHOT) return H2T2_REFUSED;
    h2t2_snapshot_head(head, @KIND@, @COUNT@, size);
    for (n = 0; n < H2T2_SNAPSHOT_HEADER; n++) {
        if (bytes[n] != head[n]) return H2T2_REFUSED;
    }
    bytes += H2T2_SNAPSHOT_HEADER;
    for (n = 0; n < 3; n++) changed |= h2t2_signed(h2t2_get32(bytes + 4 * n)) != costs[n];
    bytes += 12;
    for (n = 0; n < @COUNT@; n++) {
        if (h2t2_signed(h2t2_get32(bytes + 4 * n)) != settings[n]) return H2T2_REFUSED;
    }
    bytes += 4 * @COUNT@;
    rows.in = bytes;
    @name@_number_rows(self, &rows);
    if (rows.wrong) return H2T2_REFUSED;
    rows.access = H2T2_WRITE;
    rows.out = numbers;
    @name@_number_rows(self, &rows);
    rows.access = H2T2_READ; /* the bounds of the arrays depend on the numbers */
    rows.in = bytes;
    @name@_number_rows(self, &rows);
    bytes = rows.in;
    rows.access = H2T2_VERIFY;
    @name@_array_rows(self, &rows);
    if (rows.wrong) {
        rows.access = H2T2_READ;
        rows.in = numbers;
        @name@_number_rows(self, &rows);
        return H2T2_REFUSED;
    }
    rows.access = H2T2_READ;
    rows.in = bytes;
    @name@_array_rows(self, &rows);
    h2t2_tickets_drop_all(&self->tickets);
    @name@_derive(self);
    if (changed) {
        @name@_set_deltas(self, H2T2_DELTA_FP, H2T2_DELTA_FN);
        @name@_set_beta(self, H2T2_BETA);
    }
    return changed;
}
