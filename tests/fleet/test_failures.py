"""Whose fault a failure is: the table of docs/architecture.md."""

import re

import pytest
from http_server import serving
from support import ROOT, worker_replies

from h2t2.link import wire
from h2t2.link.statuses import STATUS
from h2t2_tools.common.errors import UserError
from h2t2_tools.fleet import failures
from h2t2_tools.fleet.failures import Cause, Later, Misconfigured, Refused
from h2t2_tools.fleet.rdl import models
from h2t2_tools.fleet.rdl.worker import Worker

PAGE = (ROOT / "docs/architecture.md").read_text()
ROWS = {cause: re.search(rf"^\| the {cause.value}: .*", PAGE, re.M)[0].split("|") for cause in Cause}


def test_every_http_status_of_the_table_has_its_cause():
    statuses = {int(number): cause for cause, row in ROWS.items() for number in re.findall(r"\d{3}", row[2].partition(";")[0])}
    assert len(statuses) > 25
    for status, cause in {**statuses, 418: Cause.SAMPLE, 507: Cause.SERVER, 520: Cause.SERVER, 308: Cause.SETUP}.items():
        error = failures.status_error(status, "why", 3.0)
        assert failures.of_status(status) is failures.of_error(error) is cause, status
    assert failures.of_picture_status(404) is Cause.SERVER and failures.of_picture_status(401) is Cause.SETUP


def test_a_server_that_fails_on_one_picture_is_not_away_and_one_that_is_busy_has_not_begun():
    errors = {status: failures.status_error(status, "why", 3.0) for status in (500, 429, 502, 529)}
    assert [errors[status].of_sample for status in errors] == [True, False, False, False]
    assert [errors[status].untaken for status in errors] == [False, True, False, True] and errors[429].retry_s == 3.0


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (Later("why"), Cause.SERVER), (ConnectionResetError(), Cause.SERVER), (TimeoutError(), Cause.SERVER),
        (MemoryError(), Cause.SERVER), (Misconfigured("why"), Cause.SETUP), (UserError("why"), Cause.SETUP),
        (ModuleNotFoundError("torch"), Cause.SETUP), (FileNotFoundError("m.onnx"), Cause.SETUP),
        (Refused("why"), Cause.SAMPLE), (ValueError("why"), Cause.SAMPLE), (KeyError("why"), Cause.SAMPLE),
    ],
    ids=repr,
)  # fmt: skip
def test_every_exception_has_a_cause_and_a_status_on_the_wire(error, cause):
    assert failures.of_error(error) is cause
    assert failures.reply_status(failures.of_error(error)) == (wire.FAILED if cause is Cause.SAMPLE else wire.LATER)


@pytest.mark.parametrize(
    ("answer", "status"),
    [((503, b"loading"), wire.LATER), ((529, b""), wire.LATER), ((500, b""), wire.LATER), ((401, b""), wire.LATER),
     ((400, b""), wire.FAILED), (b"[]", wire.LATER), (b"", wire.LATER), (b'{"predictions": [[0.8]]}', wire.OK)],
)  # fmt: skip
def test_a_worker_answers_later_while_its_server_is_away(answer, status):
    with serving(lambda *_: answer) as url:
        worker = Worker(models.load(models.Source(f"{url}/v1/models/big:predict")), 3)
        (reply,) = worker_replies(worker, [wire.encode_request(3, 1, 1, (1,), b"x")])
    assert wire.decode_reply(reply)[0] == status


def test_every_status_of_a_reply_has_the_cause_of_the_table():
    for status in range(1, len(STATUS)):
        words = STATUS[status].partition(":")[0]
        assert [cause for cause, row in ROWS.items() if words in row[3].strip().split(", ")] == [failures.of_reply(status)], (
            words
        )
