"""Writers of the documentation pages: `make pages` and `h2t2-lab results`."""
