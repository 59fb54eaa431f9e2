"""Work without a device: traces, data sets, the compiled simulation of every policy, and the experiments."""
