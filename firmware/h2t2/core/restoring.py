# Puts a saved state into a policy. A board forgets this module once its node runs.

if 0:  # for type checkers
    from ..annotations import Sequence, array
    from .policy import Policy


def restore(policy: "Policy", state: "Sequence[int]", older: bool = False, absent: "array[int] | None" = None) -> None:
    """Let a policy take over the state of one with equal settings. It continues bit for bit, without outstanding tickets.

    Args:
        policy: A policy.
        state: The integers that Policy.state() yields. Read twice from beginning to end, so it may lie in flash.
        older: Whether it lacks the numbers of Policy.older.
        absent: An array of the policy that it lacks, whose numbers become 0.

    Raises:
        ValueError: The number of integers is wrong, or one is out of range. The policy is unchanged then.
        OSError: The state cannot be read. If this comes late, the policy has forgotten all labels.
    """
    added = policy.older if older else {}
    size = policy.state_size() - len(added) - len(absent or ())
    if len(state) != size:
        raise ValueError("%d integers, want %d" % (len(state), size))
    restored = []  # type: list[int]
    previous = []
    at = 0
    for owner, name, lower, upper in policy.number_rows():
        if name in added:
            restored.append(added[name])
        else:
            restored.append(within(state[at], lower, upper))
            at += 1
        previous.append(getattr(owner, name))
    set_numbers(policy, restored)  # bounds of the arrays depend on them
    stored = False
    try:
        for stored in (False, True):
            read_arrays(policy, state, at, absent, stored)
    except Exception:
        set_numbers(policy, previous)
        if stored:  # a part of the arrays has changed
            policy.reset()
        raise
    policy.tickets.drop_all()
    policy.derive()


def set_numbers(policy: "Policy", numbers: "list[int]") -> None:
    """Set the numbers of a state, in the order of number_rows()."""
    for (owner, name, _, _), number in zip(policy.number_rows(), numbers):
        setattr(owner, name, number)


def read_arrays(policy: "Policy", state: "Sequence[int]", at: int, absent: "array[int] | None", store: bool) -> None:
    """Check the arrays in a state that begin at `at`; store them, too, if `store`. absent: As of restore()."""
    for values, start, stop, lower, upper, reference in policy.array_rows():
        for i in range(start, stop):
            value = 0
            if values is not absent:
                value = within(state[at], lower, min(upper, state[at - reference]) if reference else upper)
                at += 1
            if store:
                values[i] = value


def within(value: int, lower: int, upper: int) -> int:
    """Return the value, or raise ValueError where it is outside lower..upper."""
    if not lower <= value <= upper:
        raise ValueError("%d is not in %d..%d" % (value, lower, upper))
    return value
