// The mbedtls of MicroPython's rp2 port: memory from MicroPython's heap, no operating system.
#define MBEDTLS_ECP_NIST_OPTIM
#define MICROPY_MBEDTLS_CONFIG_BARE_METAL (1)
#include "extmod/mbedtls/mbedtls_config_common.h"
