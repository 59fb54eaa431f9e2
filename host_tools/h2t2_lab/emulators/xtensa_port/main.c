// Runs a script, as MicroPython's unix port does: firmware.elf [-X heapsize=N[k|m]] script.py; MICROPYPATH says where imports are.
#include <stdio.h>
#include <string.h>

#include "py/builtin.h"
#include "py/compile.h"
#include "py/gc.h"
#include "py/mperrno.h"
#include "py/runtime.h"
#include "py/stream.h"

#include "linux.h"

#ifndef MP_NORETURN // MicroPython 1.25
#define MP_NORETURN NORETURN
#endif

#define HEAP_MAX (16 * 1024 * 1024)
#define HEAP_DEFAULT (4 * 1024 * 1024)
#define PAGE (4096)
#define READABLE_WRITABLE_EXECUTABLE (7)

static char heap[HEAP_MAX] __attribute__((aligned(PAGE)));
static char *stack_top;

static void MP_NORETURN leave(int status) {
    linux_call(SYS_EXIT, status, 0, 0);
    for (;;) {
    }
}

void mp_hal_stdout_tx_strn_cooked(const char *text, size_t size) {
    linux_call(SYS_WRITE, 1, (long)text, size);
}

mp_uint_t mp_hal_stdout_tx_strn(const char *text, size_t size) {
    mp_hal_stdout_tx_strn_cooked(text, size);
    return size;
}

void mp_hal_stdout_tx_str(const char *text) {
    mp_hal_stdout_tx_strn_cooked(text, strlen(text));
}

int mp_hal_stdin_rx_chr(void) {
    return 4;
}

static void read_file(qstr path, vstr_t *content) {
    long descriptor = linux_call(SYS_OPEN, (long)qstr_str(path), 0, 0);
    if (descriptor < 0) {
        mp_raise_OSError(-descriptor);
    }
    char part[1024];
    long count;
    vstr_init(content, sizeof(part));
    while ((count = linux_call(SYS_READ, descriptor, (long)part, sizeof(part))) > 0) {
        vstr_add_strn(content, part, count);
    }
    linux_call(SYS_CLOSE, descriptor, 0, 0);
    if (count < 0) {
        mp_raise_OSError(-count);
    }
}

mp_lexer_t *mp_lexer_new_from_file(qstr path) {
    vstr_t content;
    read_file(path, &content);
    return mp_lexer_new_from_str_len(path, content.buf, content.len, content.alloc);
}

void mp_reader_new_file(mp_reader_t *reader, qstr path) {
    vstr_t content;
    read_file(path, &content);
    mp_reader_new_mem(reader, (byte *)content.buf, content.len, MP_READER_IS_ROM);
}

mp_import_stat_t mp_import_stat(const char *path) {
    long descriptor = linux_call(SYS_OPEN, (long)path, 0, 0);
    if (descriptor < 0) {
        return MP_IMPORT_STAT_NO_EXIST;
    }
    char byte;
    long count = linux_call(SYS_READ, descriptor, (long)&byte, 1); // a folder cannot be read
    linux_call(SYS_CLOSE, descriptor, 0, 0);
    return count < 0 ? MP_IMPORT_STAT_DIR : MP_IMPORT_STAT_FILE;
}

void gc_collect(void) {
    nlr_buf_t registers;
    gc_collect_start();
    if (nlr_push(&registers) == 0) {
        gc_collect_root((void **)&registers, (stack_top - (char *)&registers) / sizeof(void *));
        nlr_pop();
    }
    gc_collect_end();
}

void nlr_jump_fail(void *value) {
    (void)value;
    mp_hal_stdout_tx_str("an exception that nothing catches\n");
    leave(3);
}

void MP_NORETURN __fatal_error(const char *message) {
    mp_hal_stdout_tx_str(message);
    leave(4);
}

static size_t heap_size(const char *text) {
    size_t size = 0;
    while (*text >= '0' && *text <= '9') {
        size = 10 * size + *text++ - '0';
    }
    size *= *text == 'k' || *text == 'K' ? 1024 : *text == 'm' || *text == 'M' ? 1024 * 1024 : 1;
    return size < HEAP_MAX ? size : HEAP_MAX;
}

static void add_paths(const char *paths) {
    while (*paths) {
        size_t size = strcspn(paths, ":");
        mp_obj_list_append(mp_sys_path, mp_obj_new_str(paths, size));
        paths += size + (paths[size] == ':');
    }
}

static int run(const char *script, char **environment) {
    nlr_buf_t exception;
    if (nlr_push(&exception) == 0) {
        for (; *environment; environment++) {
            if (strncmp(*environment, "MICROPYPATH=", 12) == 0) {
                add_paths(*environment + 12);
            }
        }
        mp_lexer_t *lexer = mp_lexer_new_from_file(qstr_from_str(script));
        qstr name = lexer->source_name;
        mp_parse_tree_t tree = mp_parse(lexer, MP_PARSE_FILE_INPUT);
        mp_call_function_0(mp_compile(&tree, name, false));
        nlr_pop();
        return 0;
    }
    mp_obj_t value = MP_OBJ_FROM_PTR(exception.ret_val);
    if (mp_obj_is_subclass_fast(MP_OBJ_FROM_PTR(mp_obj_get_type(value)), MP_OBJ_FROM_PTR(&mp_type_SystemExit))) {
        mp_obj_t status = mp_obj_exception_get_value(value);
        mp_int_t number = 1;
        return status == mp_const_none ? 0 : mp_obj_get_int_maybe(status, &number) ? number : 1;
    }
    mp_obj_print_exception(&mp_plat_print, value);
    return 1;
}

// words: argc, then argv, 0, the environment, 0: as Linux leaves them on the stack
void start(long *words) {
    int argc = words[0];
    char **argv = (char **)(words + 1);
    char **environment = argv + argc + 1;
    size_t size = HEAP_DEFAULT;
    stack_top = (char *)words;
    linux_call(SYS_MPROTECT, (long)heap, HEAP_MAX, READABLE_WRITABLE_EXECUTABLE); // machine code is on it
    if (argc > 2 && strcmp(argv[1], "-X") == 0 && strncmp(argv[2], "heapsize=", 9) == 0) {
        size = heap_size(argv[2] + 9);
        argc -= 2;
        argv += 2;
    }
    gc_init(heap, heap + size);
    mp_init();
    if (argc < 2) {
        mp_hal_stdout_tx_str("want a script\n");
        leave(2);
    }
    leave(run(argv[1], environment));
}

__asm__ (
    ".section .text._start\n.literal_position\n.align 4\n.global _start\n"
    "_start: mov a2, a1\nmovi a0, 0\ncall0 start\n");
