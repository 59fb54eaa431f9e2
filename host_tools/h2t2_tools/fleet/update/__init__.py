"""Updates of local models in the field: keys, signed packages, rollout in steps. docs/updates.md."""
