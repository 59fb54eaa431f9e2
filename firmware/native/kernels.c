/*
 * SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The H2T2 Edge authors
 *
 * Convolutions and dense layers of the integer LDL as a module of MicroPython: h2t2_native.mpy, or a part of a firmware. Nothing
 * needs it; h2t2/ldl/conv.py takes it where it is. It gives the same integers as h2t2/ldl/kernels.py, which explains the parameters p and
 * the constants k: activations and weights are bytes u = q + 128, and gemmlowp's two roundings scale a sum.
 *
 * h2t2/ldl/bounds.py has checked p and k: every place lies inside the arena and the bundle. Sums stay below 2^29.
 */
#ifdef MICROPY_ENABLE_DYNRUNTIME
#include "py/dynruntime.h"
#else
#include "py/runtime.h"
#endif
#include "py/objtuple.h"

#define FORMAT (3) /* of the bundles whose p and k it reads */

/* places of the parameters that all kernels share, and of those that both convolutions share */
enum { X, Y, ZERO, OFFSET, LOW, HIGH, WEIGHTS };
enum {
    HEIGHT = 7, WIDTH, DEPTH, OUT_HEIGHT, OUT_WIDTH, CHANNELS, KERNEL_HEIGHT, KERNEL_WIDTH, STRIDE_Y, STRIDE_X, PAD_Y, PAD_X,
    DILATION_Y, DILATION_X, W_ZERO, DEPTH_MULTIPLIER
};

typedef struct {
    uint8_t *arena;
    const uint8_t *blob;
    const int32_t *p;
    /* of each channel: four bytes, three limbs of two bytes, two bytes; they may lie anywhere */
    const uint8_t *bias, *limbs, *shifts;
    /* of convolutions: memory for a column of the input, or a sum of each channel */
    void *room;
} step_t;

static void *bytes_of(mp_obj_t object) {
    mp_buffer_info_t info;
    mp_get_buffer_raise(object, &info, MP_BUFFER_READ);
    return info.buf;
}

static step_t read_step(const mp_obj_t *args) {
    mp_obj_tuple_t *k = MP_OBJ_TO_PTR(args[3]);
    step_t step = {
        bytes_of(args[0]), bytes_of(args[1]), bytes_of(args[2]),
        bytes_of(k->items[0]), bytes_of(k->items[1]), bytes_of(k->items[2]), NULL,
    };
    if (k->len > 3) {
        step.room = bytes_of(mp_obj_subscr(k->items[3], MP_OBJ_NEW_SMALL_INT(0), MP_OBJ_SENTINEL));
    }
    return step;
}

static inline int32_t read_bias(const step_t *step, int channel) {
    const uint8_t *b = step->bias + 4 * channel;
    return (int32_t)(b[0] | b[1] << 8 | b[2] << 16 | (uint32_t)b[3] << 24);
}

/* The sum of a channel times its multiplier, plus the output's zero point, within the bounds of the activation. */
static __attribute__((noinline)) uint8_t output(const step_t *step, int channel, int32_t sum) {
    const uint8_t *limbs = step->limbs + 6 * channel;
    const uint8_t *shifts = step->shifts + 2 * channel;
    int32_t sign = sum >> 31;
    int32_t x = (int32_t)((uint32_t)((sum ^ sign) - sign) << shifts[0]);
    int32_t a = limbs[0] | limbs[1] << 8, b = limbs[2] | limbs[3] << 8, c = limbs[4] | limbs[5] << 8;
#if defined(__ARM_ARCH_6M__)
    /* no product of 64 bits: limb by limb; a sum below 0 has its nudge less by one in 2^31 */
    int32_t h = 0, s;
    if (x >> 19) {
        h = x >> 15;
        x &= 32767;
    }
    s = x * c + sign;
    s = x * b + (s >> 10);
    if (h) {
        s += h * c << 5;
        x = ((x * a + (s >> 10) + (h * b << 5) + 1024) >> 11) + (h * a << 4);
    } else {
        x = (x * a + (s >> 10) + 1024) >> 11;
    }
#else
    x = (int32_t)(((int64_t)x * (a << 20 | b << 10 | c) + (1 << 30) + sign) >> 31);
#endif
    int right = shifts[1];
    if (right) {
        x = (x + (1 << (right - 1))) >> right;
    }
    x = ((x ^ sign) - sign) + step->p[OFFSET];
    return x < step->p[LOW] ? step->p[LOW] : x > step->p[HIGH] ? step->p[HIGH] : x;
}

/*
 * A column holds the bytes under a window less their zero point, with 0 for the padding. Its products with two filters are
 * summed at once. With two multiply-accumulates in one instruction (Cortex-M4 and newer), four weights are read as a word, and
 * the column has the second and the third number of each four in each other's place, as that instruction wants them.
 */
#if defined(__ARM_FEATURE_DSP)
typedef int16_t number_t;
#define PAIRED 1

static inline int32_t add_pair(int32_t sum, uint32_t numbers, uint32_t weights) {
    __asm__("smlad %0, %1, %2, %0" : "+r"(sum) : "r"(numbers), "r"(weights));
    return sum;
}

static inline int32_t add_four(int32_t sum, const number_t *x, const uint8_t *w) {
    uint32_t weights, even, odd, first, second;
    __builtin_memcpy(&weights, w, 4);
    __builtin_memcpy(&first, x, 4);
    __builtin_memcpy(&second, x + 2, 4);
    __asm__("uxtb16 %0, %1" : "=r"(even) : "r"(weights));
    __asm__("uxtb16 %0, %1, ror #8" : "=r"(odd) : "r"(weights));
    return add_pair(add_pair(sum, first, even), second, odd);
}

static void pair_up(number_t *x, int size) {
    for (; size >= 4; size -= 4, x += 4) {
        number_t second = x[1];
        x[1] = x[2];
        x[2] = second;
    }
}
#else
typedef int32_t number_t;
#define PAIRED 0
/* one product after the other, or the registers of a Cortex-M0 do not suffice */
#define ADD(i) s += x[i] * v[i]; t += x[i] * w[i]; __asm__("" : "+r"(s), "+r"(t));
#endif

/* sums[0] and sums[1] grow by the products of a column with the filters v and w. */
static __attribute__((noinline)) void add_products(const number_t *x, const uint8_t *v, const uint8_t *w, int size, int32_t *sums) {
    int32_t s = sums[0], t = sums[1];
    const number_t *end = x + (size & ~3);
    while (x != end) {
#if PAIRED
        s = add_four(s, x, v);
        t = add_four(t, x, w);
#else
        ADD(0)
        ADD(1)
        ADD(2)
        ADD(3)
#endif
        x += 4;
        v += 4;
        w += 4;
    }
    for (end = x + (size & 3); x != end; x++) {
        s += *x * *v++;
        t += *x * *w++;
    }
    sums[0] = s;
    sums[1] = t;
}

/* Writes the column of a window whose first row and column are `top` and `left`; returns the sum of its numbers. */
static int32_t gather(const step_t *step, int top, int left, number_t *to) {
    const int32_t *p = step->p;
    int height = p[HEIGHT], width = p[WIDTH], depth = p[DEPTH], zero = p[ZERO];
    int32_t total = 0;
    int iy = top;
    for (int row = p[KERNEL_HEIGHT]; row; row--, iy += p[DILATION_Y]) {
        int ix = left;
        for (int column = p[KERNEL_WIDTH]; column; column--, ix += p[DILATION_X]) {
            number_t *end = to + depth;
            if ((unsigned)iy < (unsigned)height && (unsigned)ix < (unsigned)width) {
                const uint8_t *from = step->arena + p[X] + (iy * width + ix) * depth;
                while (to != end) {
                    int n = *from++ - zero;
                    total += n;
                    *to++ = n;
                }
            } else {
                while (to != end) {
                    *to++ = 0;
                }
            }
        }
    }
    return total;
}

static mp_obj_t conv_2d(size_t count, const mp_obj_t *args) {
    step_t step = read_step(args);
    const int32_t *p = step.p;
    int channels = p[CHANNELS], size = p[KERNEL_HEIGHT] * p[KERNEL_WIDTH] * p[DEPTH];
    number_t *column = step.room;
    uint8_t *y = step.arena + p[Y];
    for (int oy = 0; oy < p[OUT_HEIGHT]; oy++) {
        for (int ox = 0; ox < p[OUT_WIDTH]; ox++) {
            /* of the sum of (x - zero) (w - w_zero), what all filters share */
            int32_t shared = gather(&step, oy * p[STRIDE_Y] - p[PAD_Y], ox * p[STRIDE_X] - p[PAD_X], column) * p[W_ZERO];
#if PAIRED
            pair_up(column, size);
#endif
            const uint8_t *w = step.blob + p[WEIGHTS];
            for (int o = 0; o < channels; o += 2) {
                int both = o + 1 < channels;
                int32_t sums[2] = {read_bias(&step, o) - shared, both ? read_bias(&step, o + 1) - shared : 0};
                add_products(column, w, both ? w + size : w, size, sums);
                *y++ = output(&step, o, sums[0]);
                if (both) {
                    *y++ = output(&step, o + 1, sums[1]);
                }
                w += 2 * size;
            }
        }
    }
    return mp_const_none;
}

/* The sums of all channels, up to `end`, grow by their products at one tap. */
static __attribute__((noinline)) void add_tap(int32_t *sums, const int32_t *end, const uint8_t *x, const uint8_t *w, const int32_t *p) {
    int zero = p[ZERO], w_zero = p[W_ZERO], multiplier = p[DEPTH_MULTIPLIER];
    if (multiplier == 1) {
#define ADD_CHANNEL(i) sums[i] += (x[i] - zero) * (w[i] - w_zero);
        for (; end - sums >= 4; sums += 4, x += 4, w += 4) {
            ADD_CHANNEL(0)
            ADD_CHANNEL(1)
            ADD_CHANNEL(2)
            ADD_CHANNEL(3)
        }
    }
    for (; sums != end; x++) {
        for (int n = multiplier; n; n--) {
            *sums++ += (*x - zero) * (*w++ - w_zero);
        }
    }
}

/* Tap by tap; the sums of all channels stand in the room. */
static mp_obj_t depthwise_conv_2d(size_t count, const mp_obj_t *args) {
    step_t step = read_step(args);
    const int32_t *p = step.p;
    int channels = p[CHANNELS], depth = p[DEPTH], width = p[WIDTH], kernel_width = p[KERNEL_WIDTH];
    int32_t *sums = step.room;
    uint8_t *y = step.arena + p[Y];
    for (int oy = 0; oy < p[OUT_HEIGHT]; oy++) {
        for (int ox = 0; ox < p[OUT_WIDTH]; ox++) {
            for (int o = 0; o < channels; o++) {
                sums[o] = read_bias(&step, o);
            }
            const uint8_t *w = step.blob + p[WEIGHTS];
            int iy = oy * p[STRIDE_Y] - p[PAD_Y];
            for (int row = p[KERNEL_HEIGHT]; row; row--, iy += p[DILATION_Y]) {
                int ix = ox * p[STRIDE_X] - p[PAD_X];
                for (int column = kernel_width; column; column--, ix += p[DILATION_X], w += channels) {
                    if ((unsigned)iy < (unsigned)p[HEIGHT] && (unsigned)ix < (unsigned)width) {
                        add_tap(sums, sums + channels, step.arena + p[X] + (iy * width + ix) * depth, w, p);
                    }
                }
            }
            for (int o = 0; o < channels; o++) {
                *y++ = output(&step, o, sums[o]);
            }
        }
    }
    return mp_const_none;
}

static mp_obj_t fully_connected(size_t count, const mp_obj_t *args) {
    step_t step = read_step(args);
    const int32_t *p = step.p;
    int inputs = p[7], outputs = p[8], zero = p[ZERO], w_zero = p[9];
    const uint8_t *w = step.blob + p[WEIGHTS];
    for (int o = 0; o < outputs; o++) {
        const uint8_t *x = step.arena + p[X], *end = x + inputs;
        int32_t sum = read_bias(&step, o);
        while (x != end) {
            sum += (*x++ - zero) * (*w++ - w_zero);
        }
        step.arena[p[Y] + o] = output(&step, o, sum);
    }
    return mp_const_none;
}

static MP_DEFINE_CONST_FUN_OBJ_VAR_BETWEEN(conv_2d_obj, 4, 4, conv_2d);
static MP_DEFINE_CONST_FUN_OBJ_VAR_BETWEEN(depthwise_conv_2d_obj, 4, 4, depthwise_conv_2d);
static MP_DEFINE_CONST_FUN_OBJ_VAR_BETWEEN(fully_connected_obj, 4, 4, fully_connected);

#ifdef MICROPY_ENABLE_DYNRUNTIME
mp_obj_t mpy_init(mp_obj_fun_bc_t *self, size_t n_args, size_t n_kw, mp_obj_t *args) {
    MP_DYNRUNTIME_INIT_ENTRY
    mp_store_global(MP_QSTR_FORMAT, MP_OBJ_NEW_SMALL_INT(FORMAT));
    mp_store_global(MP_QSTR_conv_2d, MP_OBJ_FROM_PTR(&conv_2d_obj));
    mp_store_global(MP_QSTR_depthwise_conv_2d, MP_OBJ_FROM_PTR(&depthwise_conv_2d_obj));
    mp_store_global(MP_QSTR_fully_connected, MP_OBJ_FROM_PTR(&fully_connected_obj));
    MP_DYNRUNTIME_INIT_EXIT
}
#else
static const mp_rom_map_elem_t names[] = {
    {MP_ROM_QSTR(MP_QSTR___name__), MP_ROM_QSTR(MP_QSTR_h2t2_native)},
    {MP_ROM_QSTR(MP_QSTR_FORMAT), MP_ROM_INT(FORMAT)},
    {MP_ROM_QSTR(MP_QSTR_conv_2d), MP_ROM_PTR(&conv_2d_obj)},
    {MP_ROM_QSTR(MP_QSTR_depthwise_conv_2d), MP_ROM_PTR(&depthwise_conv_2d_obj)},
    {MP_ROM_QSTR(MP_QSTR_fully_connected), MP_ROM_PTR(&fully_connected_obj)},
};
static MP_DEFINE_CONST_DICT(globals, names);
const mp_obj_module_t h2t2_native = {{&mp_type_module}, (mp_obj_dict_t *)&globals};
MP_REGISTER_EXTENSIBLE_MODULE(MP_QSTR_h2t2_native, h2t2_native); /* a file of this name is first */
#endif
