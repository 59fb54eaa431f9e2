# A node: one sample (node), the loop around it (service), its sensor (sensing), what it learned (keeper, snapshot), what it is
# told and tells (commands, state, complaints), its machine (board), and its assembly from a configuration (start).
