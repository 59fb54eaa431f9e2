/* A plugin of QEMU's user emulation: it counts the instructions that a program executes, and writes their number to a file.
   QEMU's header is not installed with QEMU; these are the declarations that it needs. */
#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef uint64_t id_type;
struct qemu_plugin_tb;
void qemu_plugin_register_vcpu_tb_trans_cb(id_type id, void (*translated)(id_type, struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *block, void (*executed)(unsigned, void *), int flags, void *data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);
void qemu_plugin_register_atexit_cb(id_type id, void (*ended)(id_type, void *), void *data);

__attribute__((visibility("default"))) int qemu_plugin_version = VERSION;
static uint64_t instructions;
static char path[4096];

static void executed(unsigned processor, void *count) { (void)processor; instructions += (uintptr_t)count; }

static void translated(id_type id, struct qemu_plugin_tb *block)
{
    (void)id;
    qemu_plugin_register_vcpu_tb_exec_cb(block, executed, 0, (void *)(uintptr_t)qemu_plugin_tb_n_insns(block));
}

static void ended(id_type id, void *data)
{
    (void)id; (void)data;
    FILE *file = fopen(path, "w");
    if (file) { fprintf(file, "%" PRIu64 "\n", instructions); fclose(file); }
}

__attribute__((visibility("default"))) int qemu_plugin_install(id_type id, const void *info, int count, char **words)
{
    (void)info;
    if (count != 1 || strncmp(words[0], "out=", 4)) return -1;
    snprintf(path, sizeof path, "%s", words[0] + 4);
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, ended, NULL);
    return 0;
}
