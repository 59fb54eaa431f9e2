"""Without a device: traces, data sets, the compiled simulation of every policy, the experiments."""
