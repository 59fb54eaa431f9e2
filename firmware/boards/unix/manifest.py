# For freezing the runtime into a firmware: make BOARD=... FROZEN_MANIFEST=<this file> in MicroPython's port folder.
include("$(PORT_DIR)/boards/manifest.py")
package(
    "h2t2",
    base_path="../..",
    files=(
        "__init__.py",
        "calibrating.py",
        "clock.py",
        "experts.py",
        "fixed.py",
        "kernels.py",
        "kernels_viper.py",
        "ldl.py",
        "ldl_bounds.py",
        "ldl_open.py",
        "link_mqtt.py",
        "node.py",
        "policy.py",
        "recorded.py",
        "rng.py",
        "service.py",
        "snapshot.py",
        "start.py",
        "tickets.py",
        "wire.py",
    ),
)
module("main.py", base_path=".")
module("finish.py", base_path="..")
