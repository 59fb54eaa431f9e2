"""What shows that it works: demo, validation, benchmarks, chaos, hardware in the loop."""
