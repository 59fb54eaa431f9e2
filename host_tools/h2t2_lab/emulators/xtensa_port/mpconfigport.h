// The language as a board has it, with machine code; no network, no pins, no floats.
#include <alloca.h>
#include <stdint.h>

#define MICROPY_CONFIG_ROM_LEVEL (MICROPY_CONFIG_ROM_LEVEL_EXTRA_FEATURES)

#define MICROPY_ENABLE_COMPILER (1)
#define MICROPY_EMIT_XTENSA (1)
#define MICROPY_PERSISTENT_CODE_LOAD (1)
#define MICROPY_ENABLE_EXTERNAL_IMPORT (1)
#define MICROPY_ENABLE_GC (1)
#define MICROPY_LONGINT_IMPL (MICROPY_LONGINT_IMPL_MPZ)
#define MICROPY_FLOAT_IMPL (MICROPY_FLOAT_IMPL_NONE) // libgcc has none for this processor
#define MICROPY_ALLOC_PATH_MAX (256)
#define MICROPY_PY_BINASCII (1)
#define MICROPY_PY_BINASCII_CRC32 (1)
#define MICROPY_PY_SYS_PLATFORM "xtensa"
#define MICROPY_HW_BOARD_NAME "qemu-xtensa"
#define MICROPY_HW_MCU_NAME "lx106"

// What that level has and this port lacks
#define MICROPY_STACK_CHECK (0)
#define MICROPY_ENABLE_SCHEDULER (0)
#define MICROPY_KBD_EXCEPTION (0)
#define MICROPY_HELPER_REPL (0)
#define MICROPY_REPL_INFO (0)
#define MICROPY_USE_READLINE_HISTORY (0)
#define MICROPY_HAS_FILE_READER (1) // main.c has it: needed for .mpy
#define MICROPY_READER_POSIX (0)
#define MICROPY_READER_VFS (0)
#define MICROPY_VFS (0)
#define MICROPY_PY_ASYNCIO (0)
#define MICROPY_PY_BUILTINS_HELP (0)
#define MICROPY_PY_BUILTINS_INPUT (0)
#define MICROPY_PY_FRAMEBUF (0)
#define MICROPY_PY_HASHLIB (0)
#define MICROPY_PY_MACHINE (0)
#define MICROPY_PY_ONEWIRE (0)
#define MICROPY_PY_OS (0)
#define MICROPY_PY_RANDOM (0)
#define MICROPY_PY_SELECT (0)
#define MICROPY_PY_SYS_STDFILES (0)
#define MICROPY_PY_SYS_STDIO_BUFFER (0)
#define MICROPY_PY_TIME (0)
#define MICROPY_PY_UCTYPES (0)
#define MICROPY_PY_WEBSOCKET (0)

typedef intptr_t mp_int_t;
typedef uintptr_t mp_uint_t;
typedef long mp_off_t;

#define MP_STATE_PORT MP_STATE_VM
#define MP_SSIZE_MAX (0x7fffffff)
