// CONV_2D as h2t2/ldl/kernels.py describes it, for MicroPython as a native module: only to measure what that would bring.
#include "py/dynruntime.h"

static int32_t times(int32_t acc, int32_t m, int left, int right) {
    int64_t ab = (int64_t)(acc << left) * m;
    int32_t h = ab >= 0 ? (int32_t)((ab + (1 << 30)) >> 31) : -(int32_t)((-ab + (1 << 30) - 1) >> 31);
    if (!right) return h;
    int32_t a = h < 0 ? -h : h;
    a = (a + (1 << (right - 1))) >> right;
    return h < 0 ? -a : a;
}
static mp_obj_t conv_2d(size_t n_args, const mp_obj_t *args) {
    mp_buffer_info_t ab, bb, pb, kb, lb, sb;
    mp_get_buffer_raise(args[0], &ab, MP_BUFFER_RW);
    mp_get_buffer_raise(args[1], &bb, MP_BUFFER_READ);
    mp_get_buffer_raise(args[2], &pb, MP_BUFFER_READ);
    mp_get_buffer_raise(args[3], &kb, MP_BUFFER_READ);
    mp_get_buffer_raise(args[4], &lb, MP_BUFFER_READ);
    mp_get_buffer_raise(args[5], &sb, MP_BUFFER_READ);
    uint8_t *arena = ab.buf; const uint8_t *blob = bb.buf; const int32_t *p = pb.buf;
    const uint8_t *bias = kb.buf, *limbs = lb.buf, *shifts = sb.buf;
    const uint8_t *x = arena + p[0]; uint8_t *y = arena + p[1];
    int zero = p[2], offset = p[3], low = p[4], high = p[5];
    int height = p[7], width = p[8], depth = p[9], wz = p[21];
    for (int oy = 0; oy < p[10]; oy++)
        for (int ox = 0; ox < p[11]; ox++) {
            const uint8_t *w = blob + p[6];
            for (int o = 0; o < p[12]; o++) {
                int32_t acc = bias[4*o] | bias[4*o+1] << 8 | bias[4*o+2] << 16 | bias[4*o+3] << 24;
                int iy = oy * p[15] - p[17];
                for (int ky = 0; ky < p[13]; ky++, iy += p[19]) {
                    int ix = ox * p[16] - p[18];
                    for (int kx = 0; kx < p[14]; kx++, ix += p[20], w += depth)
                        if (0 <= iy && iy < height && 0 <= ix && ix < width) {
                            const uint8_t *a = x + (iy * width + ix) * depth;
                            for (int i = 0; i < depth; i++) acc += (a[i] - zero) * (w[i] - wz);
                        }
                }
                const uint8_t *l = limbs + 6 * o;
                int32_t m = (l[0] | l[1] << 8) << 20 | (l[2] | l[3] << 8) << 10 | l[4] | l[5] << 8;
                acc = times(acc, m, shifts[2*o], shifts[2*o+1]) + offset;
                *y++ = acc < low ? low : acc > high ? high : acc;
            }
        }
    return mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_VAR_BETWEEN(conv_obj, 6, 6, conv_2d);
mp_obj_t mpy_init(mp_obj_fun_bc_t *self, size_t n_args, size_t n_kw, mp_obj_t *args) {
    MP_DYNRUNTIME_INIT_ENTRY
    mp_store_global(MP_QSTR_conv_2d, MP_OBJ_FROM_PTR(&conv_obj));
    MP_DYNRUNTIME_INIT_EXIT
}
