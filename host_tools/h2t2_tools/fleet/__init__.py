"""What runs around a broker: nodes, remote workers, commands, certificates, the broker itself."""
