MPY_DIR = {tree}
MOD = native
SRC = kernels.c
ARCH = {arch}
CFLAGS_EXTRA = {flags}
include $(MPY_DIR)/py/dynruntime.mk
