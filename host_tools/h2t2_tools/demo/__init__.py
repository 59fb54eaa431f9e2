"""`h2t2 demo`: one node, or a fleet of them, on this machine."""
