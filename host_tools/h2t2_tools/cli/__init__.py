"""The `h2t2` command: what it accepts and prints. What a command does is in the packages below."""
