/* decide() and learn() of a policy for MicroPython: a native module, or a part of a firmware. compiler/native.py of
   h2t2_tools/boards writes this file from firmware/h2t2/core: the same integers. */
#ifdef MICROPY_ENABLE_DYNRUNTIME
#include "py/dynruntime.h"
#define H2T2_OWN /* the linker of native modules has no static variables */
#define NAME(name) #name "\0"
#else
#include "py/runtime.h"
#define H2T2_OWN static
#define NAME(name) MP_QSTR_##name,
#endif
#include "py/objarray.h"
#include "py/objlist.h"
#include "py/objtuple.h"
#include "py/objtype.h"

#define H2T2_REFUSED (-2)

@OPERATIONS@
#if defined(MICROPY_ENABLE_DYNRUNTIME) && defined(__ARM_ARCH_6M__) /* it cannot divide, and no library is linked */
#define h2t2_div(x, y) mp_fun_table.small_int_floor_divide(x, y)
#define h2t2_mod(x, y) mp_fun_table.small_int_modulo(x, y)
#endif
static inline int32_t h2t2_check(int32_t x, int32_t low, int32_t high) { return x < low || x > high ? H2T2_REFUSED : 0; }

@CORE@

/* names of the attributes that a step reads or writes, and the place of each in the last object */
#define NAMES @SIZE@
H2T2_OWN uint8_t places[NAMES];
#ifdef MICROPY_ENABLE_DYNRUNTIME
static const char names[] = @NAMES@;
mp_obj_t keys[NAMES];
#define KEY(n) keys[n]
#else
static const uint16_t names[] = {@NAMES@};
#define KEY(n) MP_OBJ_NEW_QSTR(names[n])
#endif

typedef uintptr_t __attribute__((may_alias)) word; /* a member of a struct: a number, a pointer, a size */

static inline mp_map_elem_t *table(mp_obj_t object) { return ((mp_obj_instance_t *)MP_OBJ_TO_PTR(object))->members.table; }

/* Look for an attribute, and note its place. */
static __attribute__((noinline)) mp_map_elem_t *find(mp_obj_t object, int n)
{
    mp_map_t *map = &((mp_obj_instance_t *)MP_OBJ_TO_PTR(object))->members;
    mp_obj_t key = KEY(n);
    for (mp_map_elem_t *found = map->table; found != map->table + map->alloc; found++) {
        if (found->key == key) {
            places[n] = found - map->table;
            return found;
        }
    }
    mp_raise_TypeError(MP_ERROR_TEXT("of another class"));
}

static inline mp_obj_t value(mp_obj_t object, int n)
{
    mp_map_elem_t *found = table(object) + places[n];
    return (found->key == KEY(n) ? found : find(object, n))->value;
}

static __attribute__((noinline)) int32_t no_small_int(mp_obj_t object)
{
    return object == mp_const_true ? 1 : object == mp_const_false ? 0 : mp_obj_get_int(object);
}

static inline int32_t number(mp_obj_t object)
{
    return mp_obj_is_small_int(object) ? MP_OBJ_SMALL_INT_VALUE(object) : no_small_int(object);
}

/* Read numbers, then arrays. */
static __attribute__((noinline)) void read(mp_obj_t object, int n, int arrays, int end, word *to)
{
    mp_map_elem_t *first = table(object);
    for (; n < arrays; n++) {
        mp_obj_t found = first[places[n]].value;
        if (first[places[n]].key != KEY(n)) found = find(object, n)->value;
        *to++ = number(found);
    }
    for (; n < end; n++) {
        mp_obj_array_t *array = MP_OBJ_TO_PTR(value(object, n));
        *to++ = (word)array->items;
        *to++ = array->len;
    }
}

static __attribute__((noinline)) void write(mp_obj_t object, int n, int end, const word *from)
{
    mp_map_elem_t *first = table(object);
    for (; n < end; n++) first[places[n]].value = MP_OBJ_NEW_SMALL_INT(*from++);
}

static void read_list(mp_obj_t object, int32_t *to, int32_t size)
{
    mp_obj_list_t *list = MP_OBJ_TO_PTR(object);
    while (size--) to[size] = number(list->items[size]);
}

@OBJECTS@
/* A method of the policy: MicroPython binds no built-in function to an object whose class is written in Python. */
static mp_obj_t call(mp_obj_t method, size_t count, size_t keywords, const mp_obj_t *args);
#ifdef MICROPY_ENABLE_DYNRUNTIME
mp_obj_full_type_t method_type;
mp_obj_base_t methods[2];
#else
static MP_DEFINE_CONST_OBJ_TYPE(method_type, MP_QSTR_function, MP_TYPE_FLAG_BINDS_SELF, call, call);
static const mp_obj_base_t methods[2] = {{&method_type}, {&method_type}};
#endif
#define DECIDE (methods)
#define LEARN (methods + 1)

static mp_obj_t call(mp_obj_t method, size_t count, size_t keywords, const mp_obj_t *args)
{
    @STRUCT@ self;
    int is_decide = MP_OBJ_TO_PTR(method) == DECIDE;
    if (!keywords && (is_decide ? count == 2 : count == 3 || count == 4)) {
        int32_t result, x = number(args[1]);
        @STRUCT@_read(&self, args[0], is_decide);
        if (is_decide) {
            result = @STRUCT@_decide(&self, x);
        } else {
            result = @STRUCT@_learn(&self, x, number(args[2]), count == 4 ? number(args[3]) : -1);
        }
        @STRUCT@_write(&self, args[0], is_decide);
        if (result != H2T2_REFUSED) return is_decide ? MP_OBJ_NEW_SMALL_INT(result) : mp_obj_new_bool(result);
    }
    /* the plain method says what is wrong with the arguments */
    return mp_call_function_n_kw(
        mp_load_attr(args[0], is_decide ? MP_QSTR_plain_decide : MP_QSTR_plain_learn), count - 1, keywords, args + 1);
}

/* what a module has under the name of the policy's class */
#ifdef MICROPY_ENABLE_DYNRUNTIME
mp_obj_t mpy_init(mp_obj_fun_bc_t *self, size_t n_args, size_t n_kw, mp_obj_t *args)
{
    MP_DYNRUNTIME_INIT_ENTRY
    mp_obj_t step[2]; /* an initialiser would be in .data, which no module has */
    method_type.base.type = &mp_type_type;
    method_type.flags = MP_TYPE_FLAG_BINDS_SELF;
    MP_OBJ_TYPE_SET_SLOT(&method_type, call, call, 0);
    DECIDE->type = LEARN->type = (const mp_obj_type_t *)&method_type;
    const char *name = names;
    for (int n = 0; n < NAMES; n++) { /* each is a qstr already, since the class has been loaded */
        const char *end = name;
        while (*end) end++;
        keys[n] = mp_obj_new_str(name, end - name);
        name = end + 1;
    }
    step[0] = MP_OBJ_FROM_PTR(DECIDE);
    step[1] = MP_OBJ_FROM_PTR(LEARN);
    mp_store_global(MP_QSTR_@CLASS@, mp_obj_new_tuple(2, step));
    MP_DYNRUNTIME_INIT_EXIT
}
#else
const mp_rom_obj_tuple_t h2t2_@CLASS@ = {{&mp_type_tuple}, 2, {MP_ROM_PTR(DECIDE), MP_ROM_PTR(LEARN)}};
#endif
