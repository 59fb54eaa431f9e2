static inline void h2t2_items_@ITEM@(
    h2t2_rows *rows, @ITEM@ *items, int32_t start, int32_t stop, int32_t low, int32_t high, int32_t reference)
{
    int32_t x;
    for (; start < stop; start++) {
        x = h2t2_row(rows, items[start], low, high, reference);
        if (rows->access == H2T2_READ) items[start] = (@ITEM@)x;
    }
}
