"""Evidence that the system works: demo, validation, benchmarks, chaos, hardware in the loop."""
