"""What `h2t2 fleet` shows: a row a device, the gravest alarms first. details.py shows one device."""

import logging
from collections import Counter
from typing import Any

from h2t2.link import wire
from h2t2.link.statuses import STATUS
from h2t2.node.asking import UNIT

from ...common import durations
from ...common.report import Report, Table
from ...common.untrusted import printable
from . import alarms
from .costs import Costs
from .intervals import LISTS
from .savings import CHOICES, figures, in_words, total
from .watched_device import Device, Rates
from .watched_fleet import Fleet
from .watched_worker import Worker
from .words import last_decision

LOG = logging.getLogger(__name__)
COLUMNS = {
    "device": "left", "alarms": "left", "asked": "right", "cost": "right", "against always": "right",
    "against never": "right", "no answer": "right", "per s": "right", "online": "left", "last": "left", "model": "right",
    "policy": "left", "energy": "right",
}  # fmt: skip

WORKER_COLUMNS = {
    "worker": "left", "model": "right", "where": "left", "for": "right", "waiting": "right", "answers/s": "right",
    "p50 ms": "right", "p99 ms": "right", "not ok": "right", "version": "left",
}  # fmt: skip

# a narrow terminal hides them, the first one first
OPTIONAL = ("policy", "energy", "model", "last", "online", "no answer", "per s", "against always", "against never")
WORKER_OPTIONAL = ("version", "p50 ms", "for", "where", "model")


def of_device(device: Device, unix_s: float, listening: float = 0.0) -> dict[str, Any]:
    """A device as JSON; docs/json.md says what each key means. listening: as Fleet's."""
    state, rates = device.state, device.rates()
    lately, _, costs, saved, excess = device.slow_figures()
    raised = alarms.of_device(device, rates, excess, unix_s=unix_s, listening=listening)
    content: dict[str, Any] = {
        "device": device.name,
        "online": device.online,
        "since": round(device.since, 3) or None,
        "heard": round(device.last_message, 3) or None,
        "restarts": device.restarts(unix_s),
        "alarms": [{"kind": alarm.kind, "text": alarm.text} for alarm in raised],
        "rates": _rounded(rates) if rates else None,
        "costs": _rounded(costs) if costs else None,
        "saved": saved,
        "excess": dict(vars(excess)) if excess else None,
        "state": state.content() if state else None,
    }
    return {**content, "scores": {"usual": device.usual, "lately": lately}} if state else content


def _rounded(figures: Rates | Costs) -> dict[str, float]:
    return {name: round(value, 6) for name, value in vars(figures).items()}


def minute(device: dict[str, Any]) -> dict[str, Any]:
    """A device as a row of the history."""
    state, costs = device["state"], device["costs"] or {"own": None, "always": None, "never": None}
    counters = {name: state[name] for name in ("boot", "samples", "offloads", "replies", "fallbacks", "saturated")}
    counters["unasked"] = not_offloaded(state)
    means = {name: costs[name] for name in ("own", "always", "never")}
    return {"at": device["heard"], **counters, **means, "account": account(state)}


def account(state: dict[str, Any]) -> dict[str, Any] | None:
    """The counters a bin in a state, and what it paid for offloads; None where a list is missing."""
    lists = {name: state[name] for name in LISTS}
    valid = all(lists.values()) and len({len(counts) for counts in lists.values()}) == 1
    return {**lists, "paid": state["paid"]} if valid else None


def not_offloaded(state: dict[str, Any]) -> int:
    """Samples that the device could not offload: a pause, a full window, a spent budget."""
    return int(state["unasked"] + state["crowded"] + state["unaffordable"])


def of_fleet(fleet: Fleet, unix_s: float) -> dict[str, Any]:
    """The fleet as JSON, devices with alarms first, then by name. While the connection is lost: as it was before."""
    unix_s = unix_s if fleet.lost is None else fleet.lost
    devices = sorted((_described(fleet, device, unix_s) for device in fleet.devices.values()), key=_order)
    workers = [of_worker(worker) for _, group in sorted(fleet.workers.items()) for worker in group.values()]
    return {
        "at": round(unix_s, 3), "lost": None if fleet.lost is None else round(fleet.lost, 3), "devices": devices,
        "workers": workers, "unread": fleet.refused_count, "refused": fleet.refused_text,
    }  # fmt: skip


def _described(fleet: Fleet, device: Device, unix_s: float) -> dict[str, Any]:
    """A device as JSON. A device whose state raises loses that state: the others are shown all the same."""
    try:
        return of_device(device, unix_s, fleet.listening)
    except Exception as error:
        LOG.exception("the state of %s", printable(device.name))
        fleet.refuse(wire.topic(device.name, "state"), f"{type(error).__name__}: {error}")
        stateless = Device(device.name, device.online, device.boot, device.since, device.last_message)
        fleet.devices[device.name] = stateless
        return of_device(stateless, unix_s, fleet.listening)


def of_worker(worker: Worker) -> dict[str, Any]:
    """A worker as JSON."""
    state, per_s = worker.state, worker.per_s()
    content: dict[str, Any] = {"model": worker.model, "worker": worker.name, "heard": round(worker.last_message, 3) or None}
    content["per_s"] = None if per_s is None else round(per_s, 3)
    for name, share in (("p50_ms", 0.5), ("p99_ms", 0.99)):
        value = worker.waits(share)
        content[name] = None if value is None else round(value, 3)
    content["state"] = state.model_dump() if state else None
    return content


def _order(device: dict[str, Any]) -> tuple[int, str]:
    kinds = [alarms.KINDS.index(alarm["kind"]) for alarm in device["alarms"]]
    return (min(kinds, default=len(alarms.KINDS)), device["device"])


def table(fleet: dict[str, Any], unix_s: float) -> Report:
    """A table of devices, and one of workers."""
    devices = fleet["devices"]
    serving = Counter(worker["model"] for worker in fleet["workers"])
    workers = ", ".join(f"{n} of model {model}" for model, n in serving.items()) or "none"
    troubled = sum(bool(device["alarms"]) for device in devices)
    title = f"{len(devices)} device{'s' * (len(devices) != 1)}, {troubled} with alarms; workers: {workers}"
    rows = [row(device, unix_s) for device in devices]
    used = [n for n in range(len(COLUMNS)) if n == 0 or any(cells[n] != "-" for cells in rows)]
    columns = {name: side for n, (name, side) in enumerate(COLUMNS.items()) if n in used}
    report: Report = [Table(title, columns, [[cells[n] for n in used] for cells in rows], OPTIONAL)]
    if fleet["workers"]:
        report.append(Table("workers", WORKER_COLUMNS, [worker_row(worker) for worker in fleet["workers"]], WORKER_OPTIONAL))
    if saved := total(device["saved"] for device in devices):
        report.append(f"saved so far: {in_words(saved)}")
    report += [f"{device['device']}: {alarm['text']}" for device in devices for alarm in device["alarms"]]
    if fleet["refused"]:
        report.append(fleet["refused"])
    return report


def row(device: dict[str, Any], unix_s: float) -> list[str]:
    """The cells of a device, as COLUMNS."""
    state, rates, costs, saved = device["state"], device["rates"], device["costs"], device["saved"]
    alarm = ", ".join(alarm["kind"] for alarm in device["alarms"])
    cells = dict.fromkeys(COLUMNS, "-") | {"device": device["device"], "alarms": alarm, "online": online(device, unix_s)}
    if state:
        cells |= {"last": last_decision(state) or "-", "model": str(state["model"]), "policy": state["policy"]}
        cells["energy"] = f"{state['energy_mj'] / 1000:.1f} J" if state["energy_mj"] is not None else "-"
    if rates:
        shares = {"asked": rates["offloads"], "no answer": rates["fallbacks"]}
        cells |= {"per s": f"{rates['per_s']:.3g}", **{name: f"{share:.0%}" for name, share in shares.items()}}
    if costs and saved:
        cells |= {"cost": f"{costs['own']:.3f}", **{f"against {choice}": figures(saved[choice]) for choice in CHOICES}}
    return list(cells.values())


def online(device: dict[str, Any], unix_s: float) -> str:
    """Whether a device is online, and for how long."""
    if not device["online"]:
        return "?" if device["online"] is None else "no"
    return "for " + durations.in_words(unix_s - device["since"]) if device["since"] else "yes"


def head_saved(state: dict[str, Any]) -> float | None:
    """What the head of a device saved, a sample, as the device estimates it; None: it has no head or no samples."""
    if state["head_saved"] is None or not state["samples"]:
        return None
    return float(state["head_saved"] / UNIT / state["samples"])


def worker_row(worker: dict[str, Any]) -> list[str]:
    """The cells of a worker, as WORKER_COLUMNS."""
    state, first = worker["state"], [worker["worker"], str(worker["model"])]
    numbers = [("-" if worker[name] is None else f"{worker[name]:.3g}") for name in ("per_s", "p50_ms", "p99_ms")]
    if state is None:
        return [*first, "-", "-", "-", *numbers, "-", "-"]
    failed = sum(n for status, n in state["replies"].items() if status != STATUS[wire.OK])
    first += [f"{state['host']}:{state['pid']}", durations.in_words(state["uptime_s"]), str(state["waiting"])]
    return [*first, *numbers, str(failed), state["version"]]
