"""What a fleet says of itself on its broker, and what follows from it."""
