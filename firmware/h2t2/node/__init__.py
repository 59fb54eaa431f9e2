# A node: one sample (node), the loop around it (service), its assembly from a configuration (start), commands, snapshots.
