MPY_DIR = {tree}
MOD = native
SRC = module.c
ARCH = {arch}
CFLAGS_EXTRA = {flags}
include $(MPY_DIR)/py/dynruntime.mk
