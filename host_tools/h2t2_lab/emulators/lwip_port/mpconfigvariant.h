// The features of the standard unix port, without what a board's network stack replaces.
#define MICROPY_CONFIG_ROM_LEVEL (MICROPY_CONFIG_ROM_LEVEL_EXTRA_FEATURES)
#include "ports/unix/variants/mpconfigvariant_common.h"

// As on a board: select.poll() asks lwIP's sockets and waits for events, no file descriptors.
#undef MICROPY_PY_SELECT_POSIX_OPTIMISATIONS
#define MICROPY_PY_SELECT_POSIX_OPTIMISATIONS (0)

// mbedtls allocates from MicroPython's heap.
#define MICROPY_TRACKED_ALLOC (1)

// An interrupt must not leave lwIP half way.
#undef MICROPY_ASYNC_KBD_INTR
#define MICROPY_ASYNC_KBD_INTR (0)

// lwIP runs between bytecodes, as it runs in interrupts on a Pico W, and while MicroPython waits.
void network_poll(void);
void network_wait(long timeout_ms);
#define MICROPY_VM_HOOK_COUNT (64)
#define MICROPY_VM_HOOK_INIT static unsigned int vm_hook_divisor = MICROPY_VM_HOOK_COUNT;
#define MICROPY_VM_HOOK_POLL if (--vm_hook_divisor == 0) { vm_hook_divisor = MICROPY_VM_HOOK_COUNT; network_poll(); }
#define MICROPY_VM_HOOK_LOOP MICROPY_VM_HOOK_POLL
#define MICROPY_VM_HOOK_RETURN MICROPY_VM_HOOK_POLL
#define MICROPY_INTERNAL_EVENT_HOOK network_poll()

// network.ipconfig("dns") tells the name server.
#define MICROPY_PY_NETWORK (1)
#define MICROPY_PY_NETWORK_HOSTNAME_DEFAULT "mpy-lwip"
