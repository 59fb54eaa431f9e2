"""`h2t2 bench`: one claim a file, both of its sides in one run."""
