"""The micro:bit's program: H2T2 on one page, dense layers and a node that fit into its 16 KB of RAM."""
