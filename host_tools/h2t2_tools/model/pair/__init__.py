"""`h2t2 pair`: two models and labelled samples to the folder that nodes, workers and boards run from."""
