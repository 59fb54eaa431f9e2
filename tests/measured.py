"""What benchmarks might have measured, for the tests of their reports."""

from h2t2_tools.proof.bench import overload

# of bench overload, every goal met
MET = {
    "capacity": 100.0,
    "devices": 50,
    "loads": [{"load": load, "offered": 100 * load, "in time": 90.0, "busy": 9.0, "late": 1.0} for load in overload.LOADS],
    "fair": {
        "quiet": {"offered": 40.0, "in time": 40.0, "busy": 0.0, "late": 0.0},
        "loud": {"offered": 400.0, "in time": 55.0, "busy": 300.0, "late": 45.0},
    },
}


SEEN = {
    "devices": 500,
    "states_per_s": 499.0,
    "cpu_ms": 150.0,
    "rss_mb": 100.0,
    "rss_end_mb": 101.0,
    "delay_ms": [900.0, 1200.0, 300.0],
    "page": True,
}  # by `h2t2 bench dashboard`
