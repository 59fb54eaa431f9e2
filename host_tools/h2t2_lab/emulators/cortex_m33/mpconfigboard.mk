# QEMU's AN505, whose Cortex-M33 runs in its secure state: the processor of an RP2350, with the same machine code
QEMU_ARCH = arm
QEMU_MACHINE = mps2-an505

FLAGS = -mthumb -mcpu=cortex-m33 -mfloat-abi=hard -mfpu=fpv5-sp-d16
AFLAGS += $(FLAGS)
CFLAGS += $(FLAGS) -DQEMU_SOC_MPS2
CFLAGS += -DMICROPY_HW_MCU_NAME='"Cortex-M33"'

LDSCRIPT = $(BOARD_DIR)/an505.ld

SRC_BOARD_O = shared/runtime/gchelper_native.o shared/runtime/gchelper_thumb1.o

MPY_CROSS_FLAGS += -march=armv7emsp
