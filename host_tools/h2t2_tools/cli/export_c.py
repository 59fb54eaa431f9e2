"""The command export-c: the policies of a pair in C."""

from pathlib import Path
from typing import Any

from ..common import policies
from ..common.errors import UserError, as_user_error
from ..common.fields import option
from .options import Reporting, checked
from .output import show_next
from .policy_choice import PolicyChoice


class ExportC(PolicyChoice, Reporting):
    """The paper's, adaptive and adaptive with its past decide as they do in Python. For Arduino, ESP-IDF, Zephyr, any C99."""

    examples = (
        "h2t2 export-c breast_cancer --out h2t2_breast_cancer",
        "h2t2 export-c digits --bits 5 --beta 0.2 --prior models/digits/prior.json --out h2t2_digits",
        "h2t2 export-c digits --feedback explored --exploration epsilon --out h2t2_digits   # h2t2 is Algorithm 1 as printed",
    )
    pair: str = option(..., "shipped pair or folder of one", positional=True)
    out: str = option("h2t2_c", "the library's folder, new or empty", metavar="DIR")
    force: bool = option(False, "overwrite files of the same names in the folder")
    ordered: bool = option(False, "", hidden=True)
    # the library has all policies for two classes; a device names its seed
    without = frozenset("policy miss_rate confidence class_costs rdl_confusion corollary seed in_flight".split())

    @classmethod
    def parsed(cls, words: dict[str, Any]) -> "ExportC":
        checked(cls, words)  # a wrong option is named before the pair is read
        return super().parsed(words)

    def _check_options(self) -> None:
        if self._pair.info.classes > 2:
            pair = f"{self._pair.info.name}: a pair of {self._pair.info.classes} classes"
            raise UserError(f"{pair}; policies in C decide between two")

    def run(self) -> None:
        from ..boards import c_library
        from ..model.pair.build import new_folder

        with as_user_error():
            arguments = {name: policies.policy_arguments(name, self.policy_numbers()) for name in policies.NAMES}
            files = c_library.files(self._pair.info, arguments)
        with new_folder(Path(self.out), self.force) as folder:
            for name, text in files.items():
                (folder / name).parent.mkdir(exist_ok=True)
                (folder / name).write_text(text)
        if self.report({"folder": self.out, "files": [*files]}):
            print(f"{self.out}: {', '.join(files)}")
            show_next({"try it here": ["cc", "-std=c99", f"-I{self.out}/src", f"{self.out}/main.c", "-o", "try"]})
