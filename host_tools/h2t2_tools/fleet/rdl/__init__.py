"""`h2t2 rdl`: the remote model's workers. models: what they run; worker: requests to replies; server: the broker's side;
metrics: what Prometheus and a health check see; pool: several of them on this machine."""
