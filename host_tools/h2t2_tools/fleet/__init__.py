"""Everything around a broker: nodes, workers, monitoring, updates, commands, certificates, the broker itself."""
