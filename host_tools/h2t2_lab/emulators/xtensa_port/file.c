// open(): files that exist already, for reading, bytes or text.
#include <string.h>

#include "py/builtin.h"
#include "py/mperrno.h"
#include "py/runtime.h"
#include "py/stream.h"

#include "linux.h"

typedef struct {
    mp_obj_base_t base;
    long descriptor;
} file_t;

static mp_uint_t file_read(mp_obj_t self, void *buffer, mp_uint_t size, int *error) {
    long count = linux_call(SYS_READ, ((file_t *)MP_OBJ_TO_PTR(self))->descriptor, (long)buffer, size);
    if (count < 0) {
        *error = -count;
        return MP_STREAM_ERROR;
    }
    return count;
}

static mp_uint_t file_ioctl(mp_obj_t self_in, mp_uint_t request, uintptr_t argument, int *error) {
    file_t *self = MP_OBJ_TO_PTR(self_in);
    long result = 0;
    if (request == MP_STREAM_SEEK) {
        struct mp_stream_seek_t *seek = (struct mp_stream_seek_t *)argument;
        result = linux_call(SYS_LSEEK, self->descriptor, seek->offset, seek->whence);
        seek->offset = result;
    } else if (request == MP_STREAM_CLOSE) {
        linux_call(SYS_CLOSE, self->descriptor, 0, 0);
        self->descriptor = -1;
    } else if (request != MP_STREAM_FLUSH) {
        result = -MP_EINVAL;
    }
    if (result < 0) {
        *error = -result;
        return MP_STREAM_ERROR;
    }
    return 0;
}

static const mp_rom_map_elem_t file_locals_table[] = {
    { MP_ROM_QSTR(MP_QSTR_read), MP_ROM_PTR(&mp_stream_read_obj) },
    { MP_ROM_QSTR(MP_QSTR_readinto), MP_ROM_PTR(&mp_stream_readinto_obj) },
    { MP_ROM_QSTR(MP_QSTR_readline), MP_ROM_PTR(&mp_stream_unbuffered_readline_obj) },
    { MP_ROM_QSTR(MP_QSTR_readlines), MP_ROM_PTR(&mp_stream_unbuffered_readlines_obj) },
    { MP_ROM_QSTR(MP_QSTR_seek), MP_ROM_PTR(&mp_stream_seek_obj) },
    { MP_ROM_QSTR(MP_QSTR_tell), MP_ROM_PTR(&mp_stream_tell_obj) },
    { MP_ROM_QSTR(MP_QSTR_close), MP_ROM_PTR(&mp_stream_close_obj) },
    { MP_ROM_QSTR(MP_QSTR___enter__), MP_ROM_PTR(&mp_identity_obj) },
    { MP_ROM_QSTR(MP_QSTR___exit__), MP_ROM_PTR(&mp_stream___exit___obj) },
};
static MP_DEFINE_CONST_DICT(file_locals, file_locals_table);

static const mp_stream_p_t bytes_protocol = { .read = file_read, .ioctl = file_ioctl };
static const mp_stream_p_t text_protocol = { .read = file_read, .ioctl = file_ioctl, .is_text = true };

MP_DEFINE_CONST_OBJ_TYPE(
    bytes_type, MP_QSTR_FileIO, MP_TYPE_FLAG_ITER_IS_STREAM, protocol, &bytes_protocol, locals_dict, &file_locals);
MP_DEFINE_CONST_OBJ_TYPE(
    text_type, MP_QSTR_TextIOWrapper, MP_TYPE_FLAG_ITER_IS_STREAM, protocol, &text_protocol, locals_dict, &file_locals);

static mp_obj_t file_open(size_t count, const mp_obj_t *arguments, mp_map_t *named) {
    (void)named; // an encoding, which is UTF-8
    const char *mode = count > 1 ? mp_obj_str_get_str(arguments[1]) : "r";
    if (mode[0] != 'r' || strchr(mode, '+')) {
        mp_raise_OSError(MP_EROFS);
    }
    long descriptor = linux_call(SYS_OPEN, (long)mp_obj_str_get_str(arguments[0]), 0, 0);
    if (descriptor < 0) {
        mp_raise_OSError(-descriptor);
    }
    file_t *self = mp_obj_malloc(file_t, strchr(mode, 'b') ? &bytes_type : &text_type);
    self->descriptor = descriptor;
    return MP_OBJ_FROM_PTR(self);
}
MP_DEFINE_CONST_FUN_OBJ_KW(mp_builtin_open_obj, 1, file_open);
