# Starts the node of config.json: LDL, policy, the line to its gateway, recorded or own sensor.
import os

if "flash.todo" in os.listdir():
    import finish  # noqa: F401  a flash was cut off at its end
if "h2t2.runtime" in os.listdir():
    import selector  # noqa: F401  an update has brought a runtime

from h2t2.ldl.buffers import reserve_for_node

reserve_for_node()  # before anything else: later the heap is in pieces
del reserve_for_node

from h2t2.node.run import main  # noqa: E402

main()
