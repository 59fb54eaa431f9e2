"""The options of a command that runs a policy on a pair."""

from pathlib import Path
from typing import Any, ClassVar, TypeVar

from pydantic import PrivateAttr

from ..common import policies
from ..common.corollary import optimal_rates
from ..common.errors import UserError, as_user_error
from ..common.fields import Count, option
from ..fleet.config import PolicyConfig, described
from .options import Command, checked, flag

ChosenPolicy = TypeVar("ChosenPolicy", bound="PolicyChoice")


class PolicyChoice(PolicyConfig, Command):
    """A command that runs a policy on a pair."""

    pair: str = option("breast_cancer", "shipped pair or folder of one", metavar="PAIR")
    corollary: Count | None = option(
        None,
        "h2t2: epsilon and eta of the paper's Corollary 1 for T rounds, with fixed exploration and explored feedback",
        group="policy",
        metavar="T",
    )

    judges_by_truth: ClassVar[bool] = True  # otherwise the remote model's answers count as the truth

    _pair: Any = PrivateAttr()  # pairs.Pair

    @classmethod
    def parsed(cls: type[ChosenPolicy], words: dict[str, Any]) -> ChosenPolicy:
        """As Command.parsed(). What the pair describes is the default of beta, class_costs, model_id ..."""
        from ..common import pairs

        entries = cls.configured(words)
        pair = pairs.load(words.get("pair", entries.get("pair", cls.model_fields["pair"].default)))
        policy = {**entries, **words}.get("policy", policies.NAMES[0]) if cls.judges_by_truth else ""
        defaults = {name: value for name, value in described(pair.info, policy).items() if name in cls.model_fields}
        command = checked(cls, {**defaults, **entries, **words})
        command._pair = pair
        command._check_options()
        return command

    @property
    def in_time(self) -> bool:
        """As PolicyConfig.in_time: the test samples of some pairs do."""
        info = self._pair.info
        return super().in_time or bool(info.ordered and not info.features)

    def policy_numbers(self) -> dict[str, Any]:
        """The numbers of the policy, as units.policy takes them."""
        return self.numbers(Path("."), self._pair.info.classes, self._pair.info.class_names) | self.corollary_rates()

    def corollary_rates(self) -> dict[str, Any]:
        """The options that --corollary sets; {} without it."""
        if not self.corollary:
            return {}
        if not 0 < self.beta <= 1:
            raise UserError(f"--corollary needs a beta in (0, 1], not {self.beta:g}")
        epsilon, eta = optimal_rates(self.bits, self.corollary, self.beta)
        return {**policies.PAPER, "epsilon": epsilon, "eta": eta}

    def _check_options(self) -> None:
        """Raise UserError for an option that the policy does not have."""
        classes = self._pair.info.classes
        with as_user_error():
            available = policies.option_names(self.policy, classes > 2)
        for name in (*PolicyConfig.model_fields.keys() - {"policy", "in_flight", "beta"}, "corollary"):
            needed = {"corollary": "eta", "class_costs": "costs"}.get(name, name)
            field = type(self).model_fields[name]
            option_flag = flag(name, field)
            if needed in available or getattr(self, name) == field.default:
                continue
            if classes > 2 or name in ("class_costs", "rdl_confusion"):
                raise UserError(f"{option_flag}: not of a pair of {classes} classes, as {self._pair.info.name} is")
            policy = next(name for name in policies.NAMES if needed in policies.option_names(name))
            raise UserError(f"{option_flag} is an option of --policy {policy}, not of {self.policy}")
