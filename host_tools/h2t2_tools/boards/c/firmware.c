/* The module h2t2_steps of a firmware: the steps of the policies, each under the name of its class. Its frozen h2t2/core/native.py
   hands them to the runtime. */
#include "py/objtuple.h"
#include "py/runtime.h"

extern const mp_rom_obj_tuple_t h2t2_H2T2, h2t2_Adaptive, h2t2_Ordered;

static const mp_rom_map_elem_t names[] = {
    {MP_ROM_QSTR(MP_QSTR___name__), MP_ROM_QSTR(MP_QSTR_h2t2_steps)},
    {MP_ROM_QSTR(MP_QSTR_H2T2), MP_ROM_PTR(&h2t2_H2T2)},
    {MP_ROM_QSTR(MP_QSTR_Adaptive), MP_ROM_PTR(&h2t2_Adaptive)},
    {MP_ROM_QSTR(MP_QSTR_Ordered), MP_ROM_PTR(&h2t2_Ordered)},
};
static MP_DEFINE_CONST_DICT(globals, names);
const mp_obj_module_t h2t2_steps = {{&mp_type_module}, (mp_obj_dict_t *)&globals};
MP_REGISTER_MODULE(MP_QSTR_h2t2_steps, h2t2_steps);
