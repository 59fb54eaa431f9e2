"""The pictures of commands: nothing that is written covers the data, and a policy looks the same everywhere."""

import numpy as np
import pytest

from h2t2_lab import lab_plots
from h2t2_tools.common import plot_style, plots

ROUNDS = np.arange(1, 6)
POLICIES = ("adaptive", "H2T2 (paper)", "H2T2 all + anytime", "full offload", "no offload", "best pair of 200 samples, kept")
LINES = {
    name: [{"x": int(x), "y": 1 / x + (n % 3) * 1e-4, "y_sd": 0.05} for x in ROUNDS] for n, name in enumerate(POLICIES)
}  # three pairs of lines that end at the same place
AXES, LABELS = ("x", "y"), ("samples", "cost")
LONG = (
    "The adaptive policy costs 40% less than always asking, and is within 1% of the best fixed pair of thresholds in hindsight"
)
ROWS = [{"stream": f"stream {n}", **dict.fromkeys(POLICIES, n * 0.1), "adaptive_sd": 0.1} for n in range(4)]
PLANE = [
    {"trace": trace, "kind": kind, "fpr": n / 9, "fnr": 1 - n / 9, "cost": n / 9}
    for trace in ("a", "b")
    for kind in ("one threshold", "two thresholds", "best two thresholds")
    for n in range(10)
]
SOAK = [
    {"process": name, "hours": h, "memory_mb": 9 + h, "descriptors": 5, "threads": 2, "worst_ms": h}
    for name in ("node", "rdl")
    for h in range(4)
]
CALIBRATION = {name: [{"score": x / 10, "share": x / 10} for x in range(11)] for name in ("float", "int8")}
COST = np.tile([0.0, 0.2], 20)
KINDS = {
    "curves": lambda path: plots.curves(path, LINES, AXES, LABELS, LONG, "a note", log="xy"),
    "two panels": lambda path: lab_plots.grid(path, {"a": LINES, "b": LINES}, AXES, LABELS, LONG, "a note"),
    "many panels": lambda path: lab_plots.grid(path, dict.fromkeys("abcd", LINES), AXES, LABELS, LONG, "a note"),
    "rows": lambda path: plots.row_marks(path, ROWS, "stream", POLICIES, "cost", LONG, "a note"),
    "plane": lambda path: lab_plots.error_plane(path, PLANE, LONG, "a note"),
    "running cost": lambda path: plots.running_cost(path, "adaptive", COST, dict.fromkeys(POLICIES[1:], COST), LONG),
    "intervals": lambda path: plots.intervals(path, np.tile([0.1, 0.5, 0.9], (16, 1)), [0.2, 0.8], 0.4, LONG),
    "weights": lambda path: plots.expert_weights(path, np.arange(8), np.arange(8), (2, 5), LONG),
    "conversion": lambda path: plots.conversion(path, ROUNDS / 6, ROUNDS / 6, CALIBRATION, "model"),
    "soak": lambda path: lab_plots.soak(path, SOAK),
}


@pytest.fixture
def drawn(monkeypatch, tmp_path):
    """Draw a kind of picture; return its figure as it is saved."""
    figures = []
    for module in (plots, lab_plots):
        monkeypatch.setattr(module, "save", lambda figure, path: figures.append(figure))

    def draw(kind):
        KINDS[kind](tmp_path / "a.png")
        figures[-1].draw_without_rendering()
        return figures[-1]

    return draw


def written(figure):
    """The boxes of legends, titles and the labels of line ends, in pixels."""
    labels = [text for axes in figure.axes for text in axes.texts]
    legends = [*figure.legends, *(axes.get_legend() for axes in figure.axes if axes.get_legend())]
    titles = [text for text in (figure._suptitle, figure._supxlabel) if text is not None]
    return [item.get_window_extent() for item in (*labels, *legends, *titles)]


@pytest.mark.parametrize("kind", KINDS)
def test_no_legend_and_no_label_covers_data(drawn, kind):
    """Data are inside the axes, so nothing that is written touches the inside of axes, another text, or the border."""
    figure = drawn(kind)
    boxes, inside = written(figure), [axes.get_window_extent() for axes in figure.axes]
    assert boxes or kind == "conversion"
    for n, box in enumerate(boxes):
        assert not any(overlap(box, axes) for axes in inside)
        assert not any(overlap(box, other) for other in boxes[n + 1 :])
        assert figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1 + 1, "a text is cut off"


def overlap(a, b, margin=1.0):
    """Whether two boxes share more than a border of `margin` pixels."""
    wide, high = min(a.x1, b.x1) - max(a.x0, b.x0), min(a.y1, b.y1) - max(a.y0, b.y0)
    return wide > margin and high > margin


def test_a_picture_shows_six_lines_and_the_most_important_ones():
    names = ["other", "Sedna's entropy filter", *POLICIES]
    assert plot_style.important(names) == list(POLICIES)


def test_a_policy_has_one_colour_and_mark_and_ours_are_thick():
    assert plot_style.look("never asking") == plot_style.look("no offload", 3)
    seen = [(at.colour, at.mark, str(at.style)) for at in plot_style.LOOKS.values()]
    assert len(set(seen)) == len(seen)
    thick = {name for name, at in plot_style.LOOKS.items() if at.width == plot_style.OURS}
    assert thick == {name for name in plot_style.LOOKS if name.startswith("adaptive")}


def test_a_message_says_less_or_more():
    assert lab_plots.compared(0.6, 1.0) == "40% less" and lab_plots.compared(1.03, 1.0) == "3% more"


def test_labels_move_apart_and_stay_beside_the_axes():
    places = plot_style.apart(np.array([0.5, 0.5, 0.99, 1.4]), np.full(4, 0.1))
    gaps = np.diff(np.sort(places))
    assert (gaps > 0.0999).all() and places.max() <= 1 and list(np.argsort(places, kind="stable")) == [0, 1, 2, 3]


def test_labels_that_move_apart_stay_around_the_ends_of_their_lines():
    places = plot_style.apart(np.array([0.4, 0.4, 0.4, 0.9]), np.full(4, 0.1))
    assert np.allclose(places, [0.3, 0.4, 0.5, 0.9])
