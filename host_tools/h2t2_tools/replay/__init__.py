"""Work without a device: traces, the compiled simulation of every policy, and which policy to choose."""
