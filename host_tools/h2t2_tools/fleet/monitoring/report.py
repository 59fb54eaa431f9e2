"""What `h2t2 fleet` shows: a row a device, the gravest alarms first, and everything of one."""

from __future__ import annotations

import logging
from collections import Counter
from typing import Any

from h2t2.core.numbers import ONE
from h2t2.link import wire
from h2t2.node.service import SOURCES

from ...common.report import Report, Table
from ...common.untrusted import printable
from . import alarms
from .device import Device
from .fleet import Fleet
from .worker import Worker

LOG = logging.getLogger(__name__)
COLUMNS = {
    "device": "left", "online": "left", "model": "right", "policy": "left", "costs": "left", "per s": "right",
    "asked": "right", "fell back": "right", "cost": "right", "never": "right", "last": "left", "energy": "right",
    "alarms": "left",
}  # fmt: skip

WORKER_COLUMNS = {
    "worker": "left", "model": "right", "where": "left", "for": "right", "waiting": "right", "answers/s": "right",
    "p50 ms": "right", "p99 ms": "right", "not ok": "right", "version": "left",
}  # fmt: skip


def of_device(device: Device, now: float, listening: float = 0.0) -> dict[str, Any]:
    """A device as JSON; docs/json.md says what each key means. listening: as Fleet's."""
    state, rates, lately, costs = device.state, device.rates(), device.lately, device.costs()
    raised = alarms.of_device(device, rates, lately, now, listening)
    made: dict[str, Any] = {
        "device": device.name,
        "online": device.online,
        "since": round(device.since, 3) or None,
        "heard": round(device.heard, 3) or None,
        "restarts": device.restarts(now),
        "alarms": [{"kind": alarm.kind, "text": alarm.text} for alarm in raised],
        "rates": None,
        "costs": None,
        "state": None,
    }
    if rates:
        made["rates"] = {name: round(value, 6) for name, value in vars(rates).items()}
    if costs:
        made["costs"] = {name: round(value, 6) for name, value in vars(costs).items()}
    if state:
        made["state"] = state.model_dump()
        made["scores"] = {"usual": device.usual, "lately": lately}
    return made


def minute(one: dict[str, Any]) -> dict[str, Any]:
    """A device as a row of the history."""
    state, costs = one["state"], one["costs"] or {"own": None, "always": None, "never": None}
    made = {name: state[name] for name in ("boot", "samples", "offloads", "replies", "fallbacks", "saturated")}
    made["unasked"] = not_asked(state)
    return {"at": one["heard"], **made, **{name: costs[name] for name in ("own", "always", "never")}}


def not_asked(state: dict[str, Any]) -> int:
    """Samples that were decided without asking, as one could not: a pause, a full window, a spent budget."""
    return int(state["unasked"] + state["crowded"] + state["unaffordable"])


def of_fleet(fleet: Fleet, now: float) -> dict[str, Any]:
    """All of them, those with alarms first, then by name: as they were when the broker was lost, where it is."""
    now = now if fleet.lost is None else fleet.lost
    devices = sorted((_described(fleet, device, now) for device in fleet.devices.values()), key=_order)
    workers = [of_worker(worker) for _, there in sorted(fleet.workers.items()) for worker in there.values()]
    return {
        "at": round(now, 3), "lost": None if fleet.lost is None else round(fleet.lost, 3), "devices": devices,
        "workers": workers, "unread": fleet.unread, "refused": fleet.refused,
    }  # fmt: skip


def _described(fleet: Fleet, device: Device, now: float) -> dict[str, Any]:
    """A device as JSON. One whose state no page can show loses that state: the others are shown all the same."""
    try:
        return of_device(device, now, fleet.listening)
    except Exception as error:
        LOG.exception("the state of %s", printable(device.name))
        fleet.refuse(wire.topic(device.name, "state"), f"{type(error).__name__}: {error}")
        fleet.devices[device.name] = without = Device(device.name, device.online, device.boot, device.since, device.heard)
        return of_device(without, now, fleet.listening)


def of_worker(worker: Worker) -> dict[str, Any]:
    """A worker as JSON."""
    state, per_s = worker.state, worker.per_s()
    made: dict[str, Any] = {"model": worker.model, "worker": worker.name, "heard": round(worker.heard, 3) or None}
    made["per_s"] = None if per_s is None else round(per_s, 3)
    for name, share in (("p50_ms", 0.5), ("p99_ms", 0.99)):
        value = worker.waits(share)
        made[name] = None if value is None else round(value, 3)
    made["state"] = state.model_dump() if state else None
    return made


def _order(one: dict[str, Any]) -> tuple[int, str]:
    kinds = [alarms.KINDS.index(alarm["kind"]) for alarm in one["alarms"]]
    return (min(kinds, default=len(alarms.KINDS)), one["device"])


def table(fleet: dict[str, Any], now: float) -> Report:
    """A row a device, and who serves which model."""
    devices = fleet["devices"]
    serving = Counter(one["model"] for one in fleet["workers"])
    workers = ", ".join(f"{n} of model {model}" for model, n in serving.items()) or "none"
    troubled = sum(bool(one["alarms"]) for one in devices)
    title = f"{len(devices)} device{'s' * (len(devices) != 1)}, {troubled} with alarms; workers: {workers}"
    rows = [row(one, now) for one in devices]
    used = [n for n in range(len(COLUMNS)) if n == 0 or any(cells[n] != "-" for cells in rows)]
    columns = {name: side for n, (name, side) in enumerate(COLUMNS.items()) if n in used}
    report: Report = [Table(title, columns, [[cells[n] for n in used] for cells in rows])]
    if fleet["workers"]:
        report.append(Table("workers", WORKER_COLUMNS, [worker_row(one) for one in fleet["workers"]]))
    report += [f"{one['device']}: {alarm['text']}" for one in devices for alarm in one["alarms"]]
    if fleet["refused"]:
        report.append(fleet["refused"])
    return report


def row(one: dict[str, Any], now: float) -> list[str]:
    state, rates, costs = one["state"], one["rates"], one["costs"]
    online = {True: "for " + ago(now - one["since"]) if one["since"] else "yes", False: "no", None: "?"}[one["online"]]
    alarm = ", ".join(alarm["kind"] for alarm in one["alarms"])
    if state is None:
        return [one["device"], online, *["-"] * (len(COLUMNS) - 3), alarm]
    return [
        one["device"],
        online,
        str(state["model"]),
        state["policy"],
        " ".join(_cost(state[name]) for name in ("beta", "delta_fp", "delta_fn")),
        f"{rates['per_s']:.3g}" if rates else "-",
        f"{rates['offloads']:.0%}" if rates else "-",
        f"{rates['fallbacks']:.0%}" if rates else "-",
        *(f"{costs[name]:.3f}" if costs else "-" for name in ("own", "never")),
        _last(state["last"]),
        f"{state['energy_mj'] / 1000:.1f} J" if state["energy_mj"] is not None else "-",
        alarm,
    ]


def worker_row(one: dict[str, Any]) -> list[str]:
    state = one["state"]
    numbers = [("-" if one[name] is None else f"{one[name]:.3g}") for name in ("per_s", "p50_ms", "p99_ms")]
    if state is None:
        return [one["worker"], str(one["model"]), "-", "-", "-", *numbers, "-", "-"]
    ok = wire.STATUS[wire.OK]
    failed = sum(n for status, n in state["replies"].items() if status != ok)
    where = f"{state['host']}:{state['pid']}"
    return [
        one["worker"],
        str(one["model"]),
        where,
        ago(state["uptime_s"]),
        str(state["waiting"]),
        *numbers,
        str(failed),
        state["version"],
    ]


def _last(last: tuple[int, int, int] | None) -> str:
    if last is None:
        return "-"
    _, decision, source = last
    return f"{decision} {SOURCES[source] if 0 <= source < len(SOURCES) else '?'}"


def _cost(q15: int | None) -> str:
    return "-" if q15 is None else f"{q15 / ONE:.2g}"


def ago(seconds: float) -> str:
    """A time in the largest unit that is whole: 40 s, 12 min, 5 h, 3 d."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(0, seconds):.0f} s"


def details(one: dict[str, Any], now: float) -> Report:
    """Everything that is known of a device."""
    rows = [["online", row(one, now)[1]], ["starts within an hour", str(one["restarts"])]]
    for part, unit in (("costs", "a sample"), ("rates", "of late")):
        rows += [[f"{name}, {unit}", f"{value:.4g}"] for name, value in (one[part] or {}).items()]
    rows += [[name, str(value)] for name, value in (one["state"] or {}).items() if value is not None]
    report: Report = [Table(one["device"], {"what": "left", "value": "left"}, rows)]
    return report + [f"{alarm['kind']}: {alarm['text']}" for alarm in one["alarms"]]
