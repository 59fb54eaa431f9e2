"""What every package above needs: errors, units, policies by name, model pairs, pictures."""
