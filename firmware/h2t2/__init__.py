"""H2T2 Edge: a small model on the device decides, and asks a big one where that is worth the price. Integers only.

h2t2.node.node.Node.from_pair(folder, sense, act)   a node on a Pi or a desktop
h2t2.core.policies.make(name, arguments)            a policy: decide(), decide_score(), learn()
h2t2.units.policy(beta=0.2)                         its arguments in people's numbers
h2t2.ldl.open.open_ldl(path)                        a local model
h2t2.node.run.main("config.json")                   a board

Nothing is imported here: a microcontroller loads only what it runs.
"""

__version__ = "1.0.0"
