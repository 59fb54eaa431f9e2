"""A Grafana dashboard of the metrics of `h2t2 metrics`, as JSON that Grafana imports."""

from __future__ import annotations

from typing import Any

SOURCE = {"type": "prometheus", "uid": "${DS_PROMETHEUS}"}
SCHEMA = 39  # of Grafana 10 and later, which read older ones too
WIDTH, HEIGHT = 12, 8  # of a panel, in Grafana's 24 columns

# title, unit, what is drawn: (PromQL, legend)
PANELS = [
    ("Devices online", "none", [("sum(h2t2_node_online)", "online"), ("count(h2t2_node_online)", "known")]),
    ("Alarms", "none", [("sum by (kind) (h2t2_node_alarm) > 0", "{{kind}}")]),
    (
        "Cost a sample",
        "none",
        [
            ('avg(h2t2_node_sample_cost_ratio{device=~"$device", of="own"})', "these devices"),
            ('avg(h2t2_node_sample_cost_ratio{device=~"$device", of="always"})', "asking always"),
            ('avg(h2t2_node_sample_cost_ratio{device=~"$device", of="never"})', "asking never"),
        ],
    ),
    ("Samples", "ops", [('sum by (device) (rate(h2t2_node_samples_total{device=~"$device"}[5m]))', "{{device}}")]),
    (
        "Share asked",
        "percentunit",
        [
            (
                'sum by (device) (rate(h2t2_node_offloads_total{device=~"$device"}[5m]))'
                ' / sum by (device) (rate(h2t2_node_samples_total{device=~"$device"}[5m]))',
                "{{device}}",
            )
        ],
    ),
    (
        "Share that fell back",
        "percentunit",
        [
            (
                'sum by (device) (rate(h2t2_node_fallbacks_total{device=~"$device"}[5m]))'
                ' / sum by (device) (rate(h2t2_node_samples_total{device=~"$device"}[5m]))',
                "{{device}}",
            )
        ],
    ),
    (
        "Answers to devices, 99 % within",
        "s",
        [('histogram_quantile(0.99, sum by (le) (rate(h2t2_node_answer_seconds_bucket{device=~"$device"}[5m])))', "p99")],
    ),
    ("Workers: requests", "ops", [("sum by (worker, status) (rate(h2t2_worker_replies_total[5m]))", "{{worker}} {{status}}")]),
    ("Workers: waiting", "none", [("h2t2_worker_waiting_requests", "{{worker}}")]),
    (
        "Workers, 99 % within",
        "s",
        [("histogram_quantile(0.99, sum by (le, worker) (rate(h2t2_worker_answer_seconds_bucket[5m])))", "{{worker}}")],
    ),
]


def dashboard() -> dict[str, Any]:
    """The whole of it."""
    return {
        "__inputs": [
            {
                "name": "DS_PROMETHEUS",
                "label": "Prometheus",
                "type": "datasource",
                "pluginId": "prometheus",
                "pluginName": "Prometheus",
            }
        ],
        "uid": "h2t2-fleet",
        "title": "H2T2 fleet",
        "tags": ["h2t2"],
        "schemaVersion": SCHEMA,
        "editable": True,
        "refresh": "10s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {
            "list": [
                {
                    "name": "device",
                    "label": "Device",
                    "type": "query",
                    "datasource": SOURCE,
                    "query": {"query": "label_values(h2t2_node_info, device)", "refId": "devices"},
                    "refresh": 2,
                    "multi": True,
                    "includeAll": True,
                    "current": {"text": "All", "value": "$__all"},
                }
            ]
        },
        "panels": [_panel(n, *panel) for n, panel in enumerate(PANELS)],
    }


def _panel(n: int, title: str, unit: str, drawn: list[tuple[str, str]]) -> dict[str, Any]:
    return {
        "id": n + 1,
        "type": "timeseries",
        "title": title,
        "datasource": SOURCE,
        "gridPos": {"x": n % 2 * WIDTH, "y": n // 2 * HEIGHT, "w": WIDTH, "h": HEIGHT},
        "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}},
        "targets": [
            {"refId": chr(65 + i), "datasource": SOURCE, "expr": expression, "legendFormat": legend}
            for i, (expression, legend) in enumerate(drawn)
        ],
    }
