# For freezing the runtime into a firmware: make BOARD=... FROZEN_MANIFEST=<this file> in MicroPython's port folder.
include("$(PORT_DIR)/boards/manifest.py")
include("../runtime_manifest.py", links=("mqtt", "wifi"))
module("main.py", base_path=".")
module("finish.py", base_path="..")
