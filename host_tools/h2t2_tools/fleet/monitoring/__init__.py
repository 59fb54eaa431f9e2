"""What devices and workers publish about themselves, and what follows from it: rates, costs, alarms, history, metrics."""

from pathlib import Path

GRAFANA = Path(__file__).with_name("grafana.json")  # a dashboard of the metrics of `h2t2 metrics`, as Grafana imports it
