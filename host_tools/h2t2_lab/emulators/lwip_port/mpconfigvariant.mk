# A variant of MicroPython's unix port whose `socket` is MicroPython's own lwIP, as on a Pico W, and whose TLS takes its memory
# from MicroPython's heap, as on every board. The network's line is SLIP on a file descriptor: network.c.
FROZEN_MANIFEST = $(VARIANT_DIR)/manifest.py
MICROPY_PY_BTREE = 0
MICROPY_PY_FFI = 0
MICROPY_PY_SOCKET = 0
MICROPY_PY_TERMIOS = 0
MICROPY_PY_THREAD = 0
MICROPY_VFS_FAT = 0
MICROPY_VFS_LFS1 = 0
MICROPY_VFS_LFS2 = 0
MICROPY_PY_LWIP = 1
MBEDTLS_CONFIG_FILE = \"mbedtls_of_a_board.h\"
INC += -I$(TOP)/lib/lwip/src/include
SRC_THIRDPARTY_C += lib/lwip/src/netif/slipif.c
# modlwip.c compares its timeouts with -1 and wants the port's backlog
CFLAGS_EXTRA += -Wno-sign-compare -DSOMAXCONN=128
