"""Local models brought to devices in the field: keys, signed packages, rollout in steps. docs/updates.md."""
