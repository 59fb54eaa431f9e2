"""Evidence and science, for a clone: benchmarks, chaos, played days, experiments, and the writers of pages."""
