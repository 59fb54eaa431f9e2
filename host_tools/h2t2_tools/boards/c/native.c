/* decide() and learn() of a policy for MicroPython: a native module, or a part of a firmware. compiler/native.py of
   h2t2_tools/boards writes this file from firmware/h2t2/core: the same integers. */
#ifdef MICROPY_ENABLE_DYNRUNTIME
#include "py/dynruntime.h"
#define H2T2_OWN /* the linker of native modules has no static variables */
#else
#include "py/runtime.h"
#define H2T2_OWN static
#endif
#include "py/objarray.h"
#include "py/objlist.h"
#include "py/objtuple.h"
#include "py/objtype.h"

#define H2T2_REFUSED (-2)

#if defined(MICROPY_ENABLE_DYNRUNTIME) && defined(__ARM_ARCH_6M__) /* it cannot divide, and no library is linked; no number here is negative */
static __attribute__((noinline)) uint64_t divided(uint32_t x, uint32_t y)
{
    uint32_t bit = 1, quotient = 0;
    for (; y <= x >> 1; y <<= 1) bit <<= 1;
    for (; bit; bit >>= 1, y >>= 1) {
        if (x >= y) {
            x -= y;
            quotient |= bit;
        }
    }
    return (uint64_t)x << 32 | quotient; /* the remainder in the second register */
}
uint64_t __aeabi_idivmod(uint32_t x, uint32_t y) { return divided(x, y); }
uint64_t __aeabi_uidivmod(uint32_t x, uint32_t y) { return divided(x, y); }
uint32_t __aeabi_idiv(uint32_t x, uint32_t y) { return (uint32_t)divided(x, y); }
uint32_t __aeabi_uidiv(uint32_t x, uint32_t y) { return (uint32_t)divided(x, y); }
#endif

@OPERATIONS@
static inline int32_t h2t2_check(int32_t x, int32_t low, int32_t high) { return x < low || x > high ? H2T2_REFUSED : 0; }

@CORE@

static mp_map_t *attributes(mp_obj_t object) { return &((mp_obj_instance_t *)MP_OBJ_TO_PTR(object))->members; }

/* Return an attribute. hint: its place in the last object of this class */
static __attribute__((noinline)) mp_obj_t read(mp_map_t *map, qstr name, uint8_t *hint)
{
    mp_obj_t key = MP_OBJ_NEW_QSTR(name);
    if (map->table[*hint].key != key) {
        for (*hint = 0; map->table[*hint].key != key; ++*hint) {
            if (*hint == map->alloc - 1) mp_raise_TypeError(MP_ERROR_TEXT("of another class"));
        }
    }
    return map->table[*hint].value;
}

static __attribute__((noinline)) int32_t number(mp_obj_t object)
{
    return mp_obj_is_small_int(object) ? MP_OBJ_SMALL_INT_VALUE(object) : mp_obj_get_int(object);
}

static __attribute__((noinline)) int32_t read_number(mp_map_t *map, qstr name, uint8_t *hint)
{
    return number(read(map, name, hint));
}

static inline mp_obj_array_t *array(mp_obj_t object) { return MP_OBJ_TO_PTR(object); }

static void numbers(mp_obj_t object, int32_t *to, int32_t size)
{
    mp_obj_list_t *list = MP_OBJ_TO_PTR(object);
    while (size--) to[size] = number(list->items[size]);
}

/* Call the plain method, which says what is wrong with the arguments. */
static mp_obj_t plain(qstr name, size_t count, const mp_obj_t *args)
{
    return mp_call_function_n_kw(mp_load_attr(args[0], name), count - 1, 0, args + 1);
}

@OBJECTS@
@STEPS@

/* what a module has under the name of the policy's class */
#ifdef MICROPY_ENABLE_DYNRUNTIME
mp_obj_t mpy_init(mp_obj_fun_bc_t *self, size_t n_args, size_t n_kw, mp_obj_t *args)
{
    MP_DYNRUNTIME_INIT_ENTRY
    mp_obj_t step[2]; /* an initialiser would be in .data, which no module has */
    step[0] = MP_OBJ_FROM_PTR(&decide_obj);
    step[1] = MP_OBJ_FROM_PTR(&learn_obj);
    mp_store_global(MP_QSTR_@CLASS@, mp_obj_new_tuple(2, step));
    MP_DYNRUNTIME_INIT_EXIT
}
#else
const mp_rom_obj_tuple_t h2t2_@CLASS@ = {{&mp_type_tuple}, 2, {MP_ROM_PTR(&decide_obj), MP_ROM_PTR(&learn_obj)}};
#endif
