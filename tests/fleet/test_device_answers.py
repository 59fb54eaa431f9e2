"""What a device's page concludes: costs of an interval, whether an update helped, whether a threshold is right."""

import json
import math
import re
from contextlib import closing

import pytest
from lives import BINS, PRICES, Life, Past
from states import EPOCH, state

from h2t2_tools.fleet.dashboard import chart_options, sentences
from h2t2_tools.fleet.monitoring.answer_lifetime import sentence as sentence_of_past
from h2t2_tools.fleet.monitoring.history import History
from h2t2_tools.fleet.monitoring.intervals import Interval, around, buckets, costs_across, gained, since
from h2t2_tools.fleet.monitoring.state import parse_state
from h2t2_tools.fleet.monitoring.thresholds import Z_ALL, Prices, judge, wilson

PAIR = Prices(PRICES["beta"], PRICES["delta_fp"], PRICES["delta_fn"])


@pytest.fixture
def past(tmp_path):
    with closing(History(tmp_path / "h.db")) as history:
        yield Past(history, EPOCH)


def rows_of(past, life, minutes, samples=200):
    for _ in range(minutes):
        life.work(samples)
        past.minute(kitchen=life)
    return past.watcher.series("kitchen", 0)


def test_the_costs_of_an_interval_are_not_those_of_a_whole_life(past):
    life = Life(asks=(0, BINS))  # it asks always, and then hardly ever
    rows_of(past, life, 20)
    changed = past.time
    life.asks = (0, 0)
    rows = rows_of(past, life, 20)
    before, after = (gained([row for row in rows if (row["at"] < changed) == early]) for early in (True, False))
    assert before.costs.own == pytest.approx(PRICES["beta"], abs=0.001) and before.offloads == before.samples
    assert after.offloads < 0.05 * after.samples and after.costs.own != pytest.approx(before.costs.own, abs=0.005)
    parts = buckets(rows, 8)
    assert len(parts) == 8 and sum(part.samples for part in parts) == rows[-1]["samples"] - rows[0]["samples"]


def test_a_restart_takes_nothing_away_from_an_interval(past):
    life = Life()
    rows_of(past, life, 5)
    life.restart()
    rows = rows_of(past, life, 5)
    assert gained(rows).samples == 9 * 200  # all but what the first row already held


def test_costs_of_a_time_with_an_update_count_each_answer_for_its_own_model(past):
    """Before, it asked about everything and guessed badly; these many answers say nothing of the present model."""
    life = Life(sharpness=0.0, asks=(0, BINS))
    rows_of(past, life, 20)
    life.restart(package=3)
    life.sharpness, life.asks, at = 40.0, (7, 9), past.time
    rows = rows_of(past, life, 60)
    after = gained(since(rows, at)).costs
    whole = costs_across(rows, [at])
    assert whole.own == pytest.approx((19 * PRICES["beta"] + 60 * after.own) / 79, abs=0.003)
    assert gained(rows).costs.own > whole.own + 5 * whole.error  # as all answers together would have it
    assert costs_across(rows, []) == gained(rows).costs and costs_across(rows[:1], [at]) is None


def test_the_last_seconds_before_an_update_count(past):
    """The history keeps a row a minute, and one for the last state of each start."""
    life = Life()
    rows_of(past, life, 2)
    for seconds in (30, 5):  # within a minute
        life.work(150)
        past.minute(seconds, kitchen=life)
    at = past.time
    life.restart(package=3)
    life.work(100)
    past.minute(5, kitchen=life)
    comparison = around(past.watcher.series("kitchen", 0), at)
    assert (comparison.before.samples, comparison.after.samples) == (200 + 2 * 150, 100)


@pytest.mark.parametrize(
    "old, new, verdict",
    [(0.5, 9.0, "The update helped"), (9.0, 0.5, "The update did harm"), (4.0, 4.0, "No change can be told")],
)
def test_did_the_update_help(past, old, new, verdict):
    life = Life(sharpness=old)
    rows_of(past, life, 30)
    life.restart(package=3)
    life.sharpness = new
    at = past.time
    rows = rows_of(past, life, 30)
    text = sentences.of_comparison(around(rows, at), "the update")
    assert text.startswith(verdict) and "± 0.0" in text, text
    assert gained(since(rows, at)).samples == 30 * 200  # the new model's alone
    log = [sentences.of_line(line) for line in past.watcher.log("kitchen")]
    assert "update 3 came into force: kept: better" in log and "it started anew" in log


def test_the_errors_of_a_comparison_hold_what_chance_does(past):
    """Of 40 changes that are none, about two are called certain."""
    called = 0
    for seed in range(40):
        life = Life(seed=seed)
        rows = []
        past.watcher.devices.clear()
        for _ in range(10):
            life.work(100)
            state = json.loads(life.state(past.time))
            account = {key: state[key] for key in ("scores", "answered", "events", "local_cost", "paid")}
            counters = {"samples": state["samples"], "offloads": state["offloads"], "fallbacks": 0, "unasked": 0}
            rows.append({"at": past.time, "boot": 7, "always": PRICES["beta"], "account": account, **counters})
            past.time += 60
        called += around(rows, rows[5]["at"]).is_certain
    assert called <= 6


@pytest.mark.parametrize(
    "asks, samples, sentence",
    [
        ((6, 9), 40_000, r"asks between 0\.38 and 0\.56: right"),
        ((0, 16), 40_000, r"asks between 0\.00 and 1\.00: too wide: this costs 0\.\d+ a sample"),
        (
            (7, 8),
            40_000,
            r"asks between 0\.44 and 0\.50: perhaps too narrow; about \d+ more answers will tell what deciding alone costs "
            r"at scores from 0\.\d\d to 0\.44 and 0\.50 to 0\.\d\d$",
        ),
        ((4, 11), 200, r"asks between 0\.25 and 0\.69: .*about [\d,]+ more (answers will tell|will make sure)"),
    ],
)
def test_is_the_threshold_right(past, asks, samples, sentence):
    life = Life(asks=asks)
    rows = rows_of(past, life, 4, samples // 4)
    text = judge(gained(rows), PAIR).text
    assert re.match(sentence, text), text


@pytest.mark.parametrize("answers, certain", [(8, False), (20, False), (21, True)])
def test_a_bin_is_called_wrong_only_where_all_sixteen_are_certain(answers, certain):
    """Of a bin without an event, n answers leave a share below z^2 / (n + z^2) possible, which is to be less than beta, .3.

    For this bin alone nine answers would do.
    """
    lists = {"scores": [100] + [0] * 15, "answered": [answers] + [0] * 15, "events": [0] * 16, "local_cost": [0] * 16}
    interval = Interval(0.0, 60.0, 100, offloads=answers, unserved=0, paid=answers * 9830, price=0.3, **lists)
    judgement = judge(interval, Prices(0.3, 0.7, 1.0))
    assert judgement.verdict == "too wide" and (judgement.answers == 0) == certain, judgement.text


def test_sixteen_bins_lie_within_their_intervals_together():
    assert math.erf(Z_ALL / math.sqrt(2)) ** 16 == pytest.approx(0.95, abs=0.001)


@pytest.mark.parametrize("asks, verdict", [((4, 12), "right"), ((2, 12), "too wide")])
def test_a_bin_that_two_thresholds_cannot_leave_out_is_not_too_wide(past, asks, verdict):
    """Two bins between doubtful ones hold no event. At the ends of the span such bins are wasted."""
    chances = [0.01] * 4 + [0.5] * 3 + [0.01] * 2 + [0.5] * 3 + [0.99] * 4
    judgement = judge(gained(rows_of(past, Life(asks=asks, chances=chances), 4, 10_000)), PAIR)
    assert judgement.verdict == verdict, judgement.text


def test_more_answers_settle_what_was_open(past):
    """The number that the sentence gives is of the right size."""
    life = Life(asks=(5, 10))
    judgement = judge(gained(rows_of(past, life, 3, 60)), PAIR)
    assert judgement.answers > 0
    rows = rows_of(past, life, 2, 6 * judgement.answers)
    settled = judge(gained(rows), PAIR)
    assert settled.answers < judgement.answers and settled.verdict in ("right", "too wide")


def test_without_answers_nothing_is_concluded(past):
    life = Life(asks=(0, 0), explores=0)
    assert "no answer has come yet" in judge(gained(rows_of(past, life, 3)), PAIR).text


def test_the_error_of_few_samples_is_that_of_their_luck():
    """Of samples that cost .25 each on the average, 1 or 0: sqrt(.25 * .75 / n), where the answers leave no other doubt."""
    for n in (16, 64):
        lists = {"scores": [n], "answered": [n], "events": [0], "local_cost": [0]}
        interval = Interval(0.0, 60.0, n, offloads=n, unserved=0, paid=n * 8192, price=0.25, **lists)
        assert interval.costs.own == 0.25 and interval.costs.error == pytest.approx(math.sqrt(0.25 * 0.75 / n), rel=0.05)


def test_an_interval_of_a_share():
    assert wilson(0, 0) == (0.0, 1.0)
    low, high = wilson(30, 100)
    assert low == pytest.approx(0.2189, abs=1e-4) and high == pytest.approx(0.3958, abs=1e-4)  # Newcombe 1998


@pytest.mark.parametrize(
    "kind, text, sentence",
    [
        ("command", '{"set":{"beta":9830},"id":"a"}', "operator set the price of asking to 0.30"),
        (
            "command",
            '{"set":{"delta_fp":16384,"delta_fn":32768}}',
            "operator set the cost of a false alarm to 0.50, the cost of",
        ),
        ("command", '{"pause":600}', "operator paused asking for 10 min"),
        ("command", '{"pause":5400}', "operator paused asking for 1.5 h"),
        ("command", '{"pause":0}', "operator ended the pause"),
        ("command", '{"prior":[1,2,3', "operator gave it another table"),
        ("command", '{"snapshot":true}', "operator told it to save"),
        ("command", "nonsense", "somebody sent a command that is not one of ours: nonsense"),
        ("command", '{"set":{"beta":"x"}}', "somebody sent a command"),
        ("answer", '{"id":"a","ok":true,"why":""}', "it carried the command out"),
        ("answer", '{"id":"a","ok":false,"why":"too many"}', "it refused the command: too many"),
        ("answer", "[1]", "it answered: [1]"),
        ("alarm", "drift: its scores", "alarm 'drift': its scores"),
        ("alarm", "drift: over", "alarm 'drift' is over"),
        ("restart", "wdt", "it started anew, because of: wdt"),
        ("update", "0 back: worse", "it went back to the model that was flashed: back: worse"),
    ],
)
def test_the_log_speaks_in_sentences(kind, text, sentence):
    assert sentences.of_line({"kind": kind, "text": text}).startswith(sentence)


def test_a_sentence_says_for_how_long_an_answer_holds():
    """Its best head reads one trace, which fades by a quarter a sample, with the weight 4."""
    said = parse_state(json.dumps(state(past_share=16384, past=[4096, 0, 0, 0, 0])).encode()).content()
    assert sentence_of_past(said) == (
        "The past carries 50% of its forecasts. Where scores say nothing, an answer holds for 7 samples after no event and "
        "for 8 after an event."
    )


def test_every_picture_has_its_data_as_a_table(past):
    life = Life()
    rows = rows_of(past, life, 10)
    marks = [chart_options.Mark(rows[5]["at"], "update", "update 3 came into force")]
    drawn = [
        chart_options.costs(buckets(rows, 24), marks),
        chart_options.shares(buckets(rows, 24), marks),
        chart_options.thresholds(judge(gained(rows), PAIR), gained(rows).answered, PAIR, "fault"),
        chart_options.histogram([10] * BINS, [20] * BINS),
        chart_options.waits([1, 2, 3]),
    ]
    for picture in drawn:
        assert picture.rows and all(len(row) == len(picture.columns) for row in picture.rows)
        json.dumps(picture.options)
    axis, (bars, *_) = drawn[2].options["xAxis"], drawn[2].options["series"]
    answers = json.dumps([row[2] for row in drawn[2].rows])  # below the axis, where no bar and no line is
    assert answers in axis["axisLabel"][":formatter"] and "label" not in bars
    assert (drawn[2].options["yAxis"]["min"], drawn[2].options["yAxis"]["max"]) == (0, 100)  # per cent
    assert drawn[0].options["series"][0]["markLine"]["data"][0]["label"]["formatter"] == "update"
    assert [line["label"]["formatter"] for line in drawn[2].options["series"][0]["markLine"]["data"]] == [
        "ask above 20 %",
        "ask below 71 %",
    ]
