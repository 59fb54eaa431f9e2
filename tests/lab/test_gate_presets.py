"""The presets' days and pages: every message is decided once, and a page shows what a run publishes."""

import json
import re

import pytest
import yaml
from jinja2 import Environment
from measured import PRESET_DAY
from support import ROOT, need_mosquitto

from h2t2_lab.bench import presets as bench
from h2t2_lab.gate_day import DAYS, play, preset_pages
from h2t2_lab.gate_day.day_costs import measured
from h2t2_lab.gate_day.entities import entities
from h2t2_lab.pages import page_parts
from h2t2_tools.fleet.gate.presets import PRESETS
from h2t2_tools.fleet.home_assistant import discovery

DOCS = ROOT / "docs"
ENTITY = re.compile(r"\b[a-z_]+\.(?:frigate|birdnet_go|generic)_\w+")  # of the gate's device, in an automation


def page(preset):
    return preset_pages.page(DOCS, preset).read_text()


def automations(preset):
    """The automations on a page."""
    blocks = re.findall(r"```yaml\n(.*?)```", page(preset), re.S)
    return [block for block in map(yaml.safe_load, blocks) if "triggers" in block]


def rendered(template, **values):
    return Environment().from_string(template).render(**values)


def fires(automation, topic, decision):
    """Whether a decision passes a trigger by MQTT and the conditions."""
    passed = any(
        trigger["topic"] == topic and rendered(trigger["value_template"], value_json=decision) == trigger["payload"]
        for trigger in automation["triggers"]
        if trigger["trigger"] == "mqtt"
    )
    values = {"trigger": {"payload_json": decision}}
    return passed and all(
        rendered(condition["value_template"], **values) == "True" for condition in automation.get("conditions", ())
    )


@pytest.mark.parametrize("preset", PRESETS)
def test_each_preset_has_a_page_that_a_run_has_filled(preset):
    text, gate = page(preset), (DOCS / "gate.md").read_text()
    assert preset in DAYS and f"(gate-{preset}.md)" in gate and f"h2t2 gate --preset {preset} " in text
    for section in preset_pages.SECTIONS:
        assert page_parts.inside(text, preset_pages.mark(section)), f"{section}: run: make presets"
    for stream in DAYS[preset].streams:
        assert f"| {stream} |" in page_parts.inside(text, preset_pages.mark("saving"))
    assert len(automations(preset)) == 1


@pytest.mark.whole
@pytest.mark.parametrize("preset", PRESETS)
def test_a_day_decides_each_message_once_and_publishes_what_the_page_shows(preset):
    need_mosquitto()
    day = DAYS[preset]()
    played = play(day, range(11, 13), 4)
    assert len(played.counts) == 8 * len(day.streams) and set(played.counts.values()) == {1}
    content = measured(day, played)
    assert content["twice"] == content["undecided"] == 0
    shown = page_parts.inside(page(preset), preset_pages.mark("entities")).splitlines()[2:]
    columns = [[cell.strip() for cell in line.strip("|").split("|")] for line in shown]
    expected = {(row["name"], row["kind"], f"`{row['entity']}`", row["unit"]) for row in content["entities"]}
    assert {(name, kind, entity, unit) for name, kind, entity, _, unit in columns} == expected, "run: make presets"
    (automation,) = automations(preset)
    named = set(ENTITY.findall(json.dumps(automation)))
    assert named <= {row["entity"] for row in content["entities"]}
    assert named or any(fires(automation, topic, decision) for topic, decision in played.decisions)


def test_entities_have_home_assistants_names_and_states():
    state = {
        "samples": 4,
        "offloads": 1,
        "last": [3, 1, 1],
        "streams": {"front door": [0, 4, 1]},
        "beta": 8192,
        "paused": False,
    }
    rows = entities(json.loads(discovery("gate", ["occupancy"], {**state, "model": 0})), {**state, "model": 0})
    by_entity = {row["entity"]: (row["name"], row["kind"], row["state"], row["unit"]) for row in rows}
    assert by_entity == {
        "binary_sensor.gate_decision": ("Decision", "binary sensor (occupancy)", "on", ""),
        "binary_sensor.gate_front_door": ("front door", "binary sensor (occupancy)", "off", ""),
        "sensor.gate_offload_share": ("Offload share", "sensor", "25.0", "%"),
        "number.gate_price_of_asking": ("Price of asking", "number", "0.25", ""),
        "switch.gate_pause": ("Pause", "switch", "off", ""),
        "update.gate_model": ("Model", "update", "off", ""),
    }


def test_a_page_gets_the_measured_parts_and_keeps_its_text():
    text = "# A\n" + "".join(
        f"{preset_pages.mark(section)}\nformer\n{page_parts.END}\nkept {section}\n" for section in preset_pages.SECTIONS
    )
    renewed = preset_pages.renew(text, "generic", PRESET_DAY)
    assert "former" not in renewed and all(f"kept {section}" in renewed for section in preset_pages.SECTIONS)
    assert (
        '```toml\ntopic = "x"\n```' in renewed and "| porch | 9 | 3 | 20% | 0.100 | 0.200 | 0.300 | 0.400 | 0.100 |" in renewed
    )
    assert "| Decision | sensor | `sensor.gate_decision` | on | % |" in renewed and '{"id": "2"}' in renewed
    assert max(map(len, renewed.splitlines())) <= preset_pages.WIDTH
    assert preset_pages.renew(renewed, "generic", PRESET_DAY) == renewed


def test_the_benchmark_names_a_rule_that_is_cheaper_and_a_message_without_a_decision():
    assert bench.broken({"generic": PRESET_DAY}) == []
    rows = [PRESET_DAY["rows"][0], {**PRESET_DAY["rows"][1], "always": 0.05}]
    first, second = bench.broken({"generic": {**PRESET_DAY, "rows": rows, "undecided": 2}})
    assert "2 not at all" in first and "'always' costs 0.050" in second
    (table, _) = bench.report({"generic": PRESET_DAY})
    assert (
        table.title == "generic: mean cost of a message; beta 0.2, false alarm 0.7, miss 1" and "threshold 0.8" in table.columns
    )
