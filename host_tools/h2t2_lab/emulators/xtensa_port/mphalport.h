#include <stddef.h>

#include "py/mpconfig.h"

// Nothing here asks for the time.
static inline mp_uint_t mp_hal_ticks_ms(void) {
    return 0;
}

static inline void mp_hal_set_interrupt_char(char c) {
    (void)c;
}
