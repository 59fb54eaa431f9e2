"""The command `h2t2 rdl`."""

import logging
import os
from functools import partial
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from ..common import places
from ..common.fields import KERNELS, ModelNumber, Share, TfliteKernels, file, option
from ..common.untrusted import parse_integer
from ..fleet.rdl.worker_options import WorkerOptions
from .options import Connected, Daemon, Reporting, address, words

LOG = logging.getLogger(__name__)

LOGIN = ("user", "password_file", "cert", "key")  # options in which {} is a worker's number


def _output(text: str) -> str:
    """A check that a text is an output of a model, or all of them."""
    if text != "all" and parse_integer(text, 65535) is None:
        raise ValueError("want a number from 0, or all")
    return text


class Rdl(WorkerOptions, Connected, Reporting, Daemon):
    """It answers offloaded samples until SIGTERM or Ctrl-C; SIGHUP reloads the model."""

    examples = (
        "h2t2 rdl --pair digits --broker mqtt://localhost:1883 --resolver optimised",
        "h2t2 rdl --pair digits --workers 4 --metrics 9100   # /metrics and /healthz on ports 9100 to 9103",
        "h2t2 rdl --pair digits --workers 4 --user rdl-{} --password-file broker/secrets/rdl-{}   # each its own login",
        "h2t2 rdl --pair digits --remote big.onnx",
        "h2t2 rdl --pair digits --remote mine.py:scores   # int8 array (n, ...) in, n scores out",
        "h2t2 rdl --pair digits --remote http://gpu.lan:8000/v2/models/digits#predict_proba",
        "h2t2 rdl --pair digits --remote human --classes other eight --keep kept   # you answer by key",
        "h2t2 rdl --pair doorbell --remote small.onnx --then vision.toml --then-beta 0.3   # asked where the first is unsure",
    )

    pair: str = option("breast_cancer", "shipped pair or folder of one", metavar="PAIR")
    resolver: TfliteKernels = option(KERNELS, "TFLite's kernels")
    remote: str | None = option(
        None,
        "the remote model: .tflite, .onnx, FILE.py:FUNCTION, a URL, http://HOST/v2/models/NAME (KServe, Triton, MLServer), "
        ".toml (a language model that sees pictures), or human: somebody at this terminal",
        unset="the pair's",
        metavar="MODEL",
    )
    output: str = option(
        "", "the output of an .onnx --remote that holds the scores", unset="the one beside labels", metavar="NAME"
    )
    classes: list[str] | None = option(None, "names of the classes, for --remote human", unset="0, 1, ...", metavar="NAME")
    remote_secret: str = file("", "token of the remote model's server", unset="$H2T2_REMOTE_TOKEN")
    then: str | None = option(None, "a second model, asked where the first one is unsure", metavar="MODEL")
    then_beta: Share = option(0.2, "cost of asking the second model, as beta", metavar="B")
    then_secret: str = file("", "token of the second model's server", unset="$H2T2_THEN_TOKEN")
    event: Annotated[str, AfterValidator(_output)] | None = option(
        None, "which output is class 1, or all: each output is a class", unset="the pair's", metavar="N"
    )
    model_id: ModelNumber | None = option(None, "number of the requests that it answers", unset="the pair's", metavar="N")
    workers: Annotated[int, Field(ge=1, le=1024)] = option(1, "processes on this machine", metavar="N")
    keep_refused: str = option(
        "h2t2-refused", "where the data of a request go that hung the model twice and is then refused", metavar="DIR"
    )
    metrics: str | None = option(
        None, "serve Prometheus and a health check; the default host is 127.0.0.1", metavar="[HOST:]PORT"
    )

    def run(self) -> None:
        from ..fleet.rdl import pool, watchdog

        metrics = address(self.metrics, "--metrics") if self.metrics else None
        self.begin_log("rdl")
        if self.remote == "human":
            counts = self._ask_person(metrics)
        elif watchdog.NOTE_DESCRIPTOR in os.environ:
            counts = self._serve(metrics)
        else:
            if not (places.models() / self.pair).is_dir():
                from ..common import pairs

                pairs.load_info(self.pair)  # a question about it is asked here, not by each worker
            counts = pool.supervise(self._workers(metrics), Path(self.keep_refused))
            LOG.info("answered: %s", ", ".join(f"{n} {status}" for status, n in counts.items()) or "nothing")
        self.report(counts)

    def _workers(self, metrics: tuple[str, int] | None) -> list[list[str]]:
        """The command line of each worker, with its number for {} in the options of its login.

        A password comes by file or environment, never by command line.
        """
        if self.workers > 1 and self.user and "{}" not in self.user:
            LOG.warning("a broker of h2t2 broker-config lets a user connect once: give --user NAME-{}")
        commands = []
        for n in range(self.workers):
            login = {name: value.replace("{}", str(n + 1)) for name in LOGIN if "{}" in (value := getattr(self, name))}
            shared = words(self.model_copy(update=login), "workers", "metrics", "json_file", "keep_refused", "log")
            commands.append(shared + ([f"--metrics={metrics[0]}:{metrics[1] + n}"] if metrics else []))
        return commands

    def _ask_person(self, metrics: tuple[str, int] | None) -> dict[str, int]:
        """Somebody at this terminal answers; the counts of the answers."""
        from ..common import pairs
        from ..fleet.rdl import person
        from .terminal_person import ask

        pair = pairs.load(self.pair)
        names = person.classes(pair, self.classes)
        model_id = pair.info.model_id if self.model_id is None else self.model_id
        with person.by_a_person(pair, model_id, self.connection(), self, metrics=metrics) as (server, desk):
            LOG.info("ready: you are model %d", model_id)
            ask(pair, desk, names, LOG.info)
        return dict(server.worker.counts)

    def _serve(self, metrics: tuple[str, int] | None) -> dict[str, int]:
        """One worker, a child of pool.supervise(); the counts of its answers."""
        from ..common import pairs
        from ..fleet.rdl import models, server

        pair = pairs.load(self.pair)
        source_of = partial(models.of_pair, pair, event=self.event, resolver=self.resolver)
        second = source_of(self.then, secret=self.then_secret, variable=models.SECOND_TOKEN) if self.then else None
        source = source_of(
            self.remote, output=self.output, secret=self.remote_secret, second=second, second_beta=self.then_beta
        )
        model_id = pair.info.model_id if self.model_id is None else self.model_id
        return server.serve(source, model_id, self.connection(), self, LOG.info, metrics=metrics)
