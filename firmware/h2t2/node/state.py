# What a node says of itself: its retained state, and the summary at its end. docs/json.md says what each entry means.
from .. import __version__
from ..clock import unix_now
from ..link import wire
from . import snapshot
from .node import STANDING

NODE = (
    "samples", "offloads", "replies", "late", "fallbacks", "unasked", "unaffordable", "crowded", "strangers",
    "paused", "last", "boot",
)  # fmt: skip
LINK = ("connections", "oversize", "dropped", "refused")


def state(running) -> dict:
    """The counters and the condition of a service."""
    node = running.node
    policy = node.policy
    made = {name: getattr(node, name) for name in NODE}
    made.update(
        model=node.model_id,
        taught=policy.lessons,
        complaints=node.complain.total,
        errors=running.errors,
        sensor_errors=running.sensing.errors,
        act_errors=node.complain.counts.get("act", 0),
        skipped=running.sensing.skipped,
        budget=node.budget.level * 100 // node.budget.capacity if node.budget else 100,
        link=STANDING[node.standing()],
        trouble=running.trouble,
        namesakes=running.namesakes,
        time=unix_now(),
        uptime_s=running.watch.seconds(),
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
    made.update(node.account.report())
    if policy.classes == 2:
        made["delta_fp"] = policy.delta_fp
        made["delta_fn"] = policy.delta_fn
    if running.app:
        made.update(running.app.report())
    if running.sleep:
        running.sleep.count(node.offloads)
        made.update(running.sleep.report())
    if running.updates:
        made["update"] = running.updates.report()
    made.update(policy.report())
    return made


def summary(running) -> dict:
    """What a service has counted, at its end: its state, and what its keeper, its link and its commands know."""
    made = state(running)
    keeper = running.keeper
    made.update(restored=keeper.restored, saves=keeper.saves, unsaved=keeper.unsaved)
    made.update(commands=running.desk.carried_out, commands_refused=running.desk.refused)
    for name in LINK:
        made[name] = getattr(running.node.link, name)
    return made
