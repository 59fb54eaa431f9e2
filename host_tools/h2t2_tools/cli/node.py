"""The command `h2t2 node`."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from h2t2.core.defaults import SEED

from ..common import toml_file
from ..common.errors import UserError
from ..common.fields import KERNELS, Count, file, option
from ..common.places import working_in
from ..fleet import profile
from ..fleet.config import PATHS, PI, SECRETS, NodeConfig, ProjectFile, located, project_path
from ..fleet.endpoint import Endpoint
from ..fleet.queue.queue_options import QueueOptions
from .options import Connected, Daemon, Reporting
from .policy_choice import PolicyChoice

if TYPE_CHECKING:
    from ..fleet.queue.queueing_node import QueueFile

NODE_FILES = {*PATHS, "ldl", "snapshot"}  # entries of a project that name files of a node on this machine
BESIDE = "SNAPSHOT.queue"  # the file of a bare --queue


class Node(PolicyChoice, NodeConfig, QueueOptions, Connected, Daemon, Reporting):
    """It holds local model, policy and MQTT link, and prints a JSON line for each decision; --json - prints the
    summary alone."""

    examples = (
        "h2t2 node --pair breast_cancer --broker mqtt://localhost --device kitchen",
        "h2t2 node porch --deadline 300ms   # a project of h2t2 new: its entries are the defaults of these options",
        "h2t2 node --pair digits --ldl digits.h2m   # the bundle, by the integer interpreter",
        "h2t2 node --broker mqtts://broker.lan --ca ca.crt --user kitchen --password-file kitchen.secret --device kitchen",
    )

    project: str | None = option(
        None, "folder of a project; options override its h2t2.toml", unset="none", positional=True, metavar="PROJECT"
    )
    pair: str = option("breast_cancer", "shipped pair or folder of one", metavar="PAIR")
    ldl: str = file("", "a local model, .tflite or .h2m bundle", unset="the pair's", group="models")
    resolver: Literal["reference", "optimised", "exact"] = option(
        KERNELS, "TFLite's kernels, or exact: the integer interpreter, bit for bit as on boards", group="models"
    )
    samples: Count = option(2000, "test samples of the pair to stream")
    order: str | None = file(None, "stream these test samples instead: their numbers, one per line")
    out: str = file("-", "where the JSON lines go; -: to standard output")
    hold: int = option(256, "offloads whose label, however late, still teaches", group="operation", metavar="N", ge=1, le=4096)
    snapshot: str = option(
        "", "keep what the policy has learned in PATH.0 and PATH.1", unset="nowhere", group="operation", metavar="PATH"
    )
    queue: str = file(
        "",
        f"keep offloads without an answer here and ask again when workers answer; bare: {BESIDE}, beside the snapshot",
        unset="they are lost",
        group="operation",
        const=BESIDE,
    )

    @classmethod
    def configured(cls, words: dict[str, Any]) -> dict[str, Any]:
        """The entries of the project, whose paths are relative to its folder; below them, the profile."""
        entries: dict[str, Any] = {}
        if "project" in words:
            path = project_path(Path(words["project"]))
            from ..boards.project import board_sections

            board_sections(project := ProjectFile(path))
            entries = project.entries(PI)
            toml_file.validate({"model_id": 0, "remote_shape": [1], **entries}, path, NodeConfig, SECRETS)
            for name in NODE_FILES & entries.keys():
                if isinstance(entries[name], str) and entries[name]:
                    entries[name] = located(path.parent, entries[name]) if name == "pair" else str(path.parent / entries[name])
        return {**profile.defaults({**entries, **words}), **entries}

    @property
    def url(self) -> str:
        """The broker as mqtt[s]://HOST[:PORT]."""
        if "://" in self.broker:
            return self.broker
        host, port = self.address
        return f"mqtt{'s' if self.ca else ''}://{f'[{host}]' if ':' in host else host}:{port}"

    def connection(self) -> Endpoint:
        """As Connected.connection(), with the password of the configuration."""
        endpoint = super().connection()
        return replace(endpoint, password=endpoint.password or self.password or None)

    def run(self) -> None:
        from ..common import pairs
        from ..fleet import edge_node

        self.begin_log("node")
        pair, to = self._pair, self.connection()
        files = {name: getattr(self, name) for name in NODE_FILES if isinstance(getattr(self, name), str)}
        absolute = {name: os.path.abspath(value) for name, value in files.items() if value}
        config = self.model_copy(update={**self.corollary_rates(), **absolute, "pair": str(pair.folder.resolve())})
        samples = None
        if not self.app:
            if self.order:
                stream = edge_node.order(Path(self.order), len(pair.x))
            else:
                stream = pairs.draw_indices(pair, self.samples, SEED if self.seed is None else self.seed).tolist()
            samples = edge_node.Samples(pair, stream)
        ldl = os.path.abspath(self.ldl or pair.ldl)
        queue = self._queue_file()
        lines = os.devnull if self.quiet and self.out == "-" else self.out
        with edge_node.output(lines) as out, working_in(Path(self.project or ".")):  # an app reads files as it does on a board
            opener = _opener(self.resolver)
            runner = edge_node.Runner(
                config, ldl, self.resolver, title=pair.info.event, samples=samples, out=out, opener=opener, queue=queue
            )  # fmt: skip
            summary = runner.stream(to)
            print(json.dumps({"summary": summary}), file=out, flush=True)
        self.report(summary)

    def _queue_file(self) -> QueueFile | None:
        """Where the queue lies; None without one. UserError for a bare --queue without a snapshot."""
        from ..fleet.queue.queueing_node import QueueFile

        if self.queue == BESIDE and not self.snapshot:
            raise UserError("--queue: also give --snapshot, beside which it lies, or name a file: --queue node.queue")
        path = self.queue.replace("SNAPSHOT", self.snapshot) if self.queue == BESIDE else self.queue
        return QueueFile(Path(os.path.abspath(path)), self) if path else None


def _opener(resolver: str) -> Callable[..., Any]:
    """The function that opens a node's local model."""
    from h2t2.ldl.open import open_ldl

    def open_integer(model: str, event: int, *options: Any) -> Any:
        from ..model.exact import open_exact

        return open_exact(Path(model), event) if model.endswith(".tflite") else open_ldl(model, event, *options)

    return open_integer if resolver == "exact" else open_ldl
