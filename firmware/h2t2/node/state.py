# The reports of a node: its retained state, and the summary at its end. docs/json.md explains each entry.
from .. import __version__
from ..clock import unix_now
from ..link import wire
from . import snapshot
from .node import STANDING

if 0:  # for type checkers
    from ..annotations import Any
    from .service import Service

LINK = ("connections", "oversize", "dropped", "refused")


def state(running: "Service") -> "dict[str, Any]":
    """Return the counters and the condition of a service."""
    node = running.node
    policy = node.policy
    entries = node.report("strangers", "paused", "boot")
    entries.update(
        model=node.model_id,
        taught=policy.lessons,
        complaints=node.complain.total,
        errors=running.errors,
        sensor_errors=running.sensing.errors,
        act_errors=node.complain.counts.get("act", 0),
        skipped=running.sensing.skipped,
        budget=max(0, node.budget.level) * 100 // node.budget.capacity if node.budget else 100,
        link=STANDING[node.standing()],
        trouble=running.trouble,
        namesakes=running.namesakes,
        time=unix_now(),
        uptime_s=running.watch.seconds(),
        telemetry_s=running.telemetry_s,
        start=running.cause,
        policy=policy.name,
        bits=policy.bits,
        classes=policy.classes,
        beta=policy.beta,
        runtime=__version__,
        wire=wire.VERSION,
        snapshot=snapshot.VERSION,
        snapshot_age_s=running.keeper.age(),
    )
    if policy.classes == 2:
        entries["delta_fp"] = policy.delta_fp
        entries["delta_fn"] = policy.delta_fn
        entries["rdl_fp"] = policy.rdl_fp
        entries["rdl_fn"] = policy.rdl_fn
    if running.class_names:
        entries["class_names"] = running.class_names
    if running.app:
        entries.update(running.app.report())
    if running.sleep:
        running.sleep.count(node.offloads)
        entries.update(running.sleep.report())
    if running.updates:
        entries["update"] = running.updates.report()
    if not node.policy_torn:
        entries.update(policy.report())
    return entries


def summary(running: "Service") -> "dict[str, Any]":
    """Return the state of a service at its end, with the counters of its keeper, its link and its commands."""
    entries = state(running)
    keeper = running.keeper
    entries.update(restored=keeper.restored, saves=keeper.saves, unsaved=keeper.unsaved)
    entries.update(commands=running.desk.carried_out, commands_refused=running.desk.refused)
    for name in LINK:
        entries[name] = getattr(running.node.link, name)
    return entries
