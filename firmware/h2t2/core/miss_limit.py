# What an adaptive policy calls of its limit for misses. miss_rate and miss_guarantee have the limits; a policy may have none.
if 0:  # for type checkers
    from ..annotations import Any


class Limit:
    """Limits nothing: each limit has methods of its own in place of these, and further ones.

    Attributes:
        alarm: The class to act on where the normal one would be a miss too many; a policy of many classes sets it.
    """

    alarm = 1
    if 0:  # for type checkers

        def __getattr__(self, name: str) -> "Any":
            """A further one."""

    def take_rates(self, policy: "Any") -> None:
        """Follow a change of the policy's costs or of its state."""
        return

    def raise_wish(self, policy: "Any", share: int) -> int:
        """Return the smallest P(offload) of a round, to which the wish rises. share: The forecaster's of the weight, Q15."""
        return share

    def check(self, policy: "Any", k: int, action: int) -> int:
        """Count a round in bin k, and return what the policy is to do instead of its action."""
        return action

    def learn(self, at: int, label: int) -> None:
        """Learn the label of the ticket in slot `at`."""
        return
