"""Emulated boards for evidence: scripts on them, QEMU's boards, counted instructions, the build of the native modules."""
