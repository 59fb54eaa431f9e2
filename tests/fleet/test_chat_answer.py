"""Which class the answer of a language model names, and how probable it is."""

import math

import pytest

from h2t2_tools.fleet.failures import Cause, of_error
from h2t2_tools.fleet.rdl.models.chat_answer import EndlessThinking, NoAnswer, Reader


def token(text, tops):
    """A token as OpenAI documents it. tops: {token: probability}; the text's own is 1 where it is not among them."""
    listed = [{"token": word, "logprob": math.log(p), "bytes": None} for word, p in tops.items()]
    return {"token": text, "logprob": math.log(tops.get(text, 1)), "bytes": None, "top_logprobs": listed}


def certain(text):
    """A token that has no other in its place."""
    return text, {text: 1.0}


def choice(content, tokens=None, finish="stop", **message):
    """A choice. tokens: [(text, {token: probability})]."""
    logprobs = None if tokens is None else {"content": [token(text, tops) for text, tops in tokens], "refusal": None}
    return {"message": {"role": "assistant", "content": content, **message}, "finish_reason": finish, "logprobs": logprobs}


def read(said, classes=("no", "yes"), event=None):
    return Reader(classes, event).read(said)


@pytest.mark.parametrize(
    "text, label",
    [
        ("yes", 1), ("No.", 0), (" **no**", 0), ('"Yes"', 1), ("yes it is", 1), ("Yes, I can see a person.", 1),
        ("No. The street is empty.", 0), ("Answer: yes", 1), ("**Answer:** no", 0), ("answer yes", 1), ("The answer is no.", 0),
        ("My final answer: yes", 1), ("Antwort: no", 0), ("Person: no", 0),
        ('{"answer": "yes"}', 1), ('```json\n{"answer": "no"}\n```', 0), ("<answer>yes</answer>", 1), ("yes<|im_end|>", 1),
        ("<|begin_of_box|>yes<|end_of_box|>", 1),
        ("<think>no, or is there?</think>yes", 1), ("<think>\n\n</think>\n\nNo", 0), ("no person... wait</think>\nyes", 1),
        ("[THINK]no[/THINK]yes", 1), ("◁think▷No◁/think▷ yes", 1), ("<thinking>yes</thinking><answer>no</answer>", 0),
        ("<|channel|>analysis<|message|>no<|end|><|start|>assistant<|channel|>final<|message|>yes", 1),
        ([{"type": "text", "text": "yes"}], 1),
        ("No, I don't see a person.", 0), ("No, there are no people in the image.", 0),
        ("Yes, there is a person in the picture.", 1), ("Yes, 2 people are visible", 1), ("yes (0.95)", 1),
        ("No.\n\nThis is a cat.", 0), ("Yes, yes!", 1), ("yes indeed", 1),
        ("No - the yard is empty", 0), ("- yes", 1),
    ],
)  # fmt: skip
def test_an_answer(text, label):
    answer = read(choice(text))
    assert answer.label == label and answer.scores == [1 - label, label]


@pytest.mark.parametrize(
    "text",
    [
        "perhaps", "No, I can't help with that.", "No, I can’t do that", "No, wait: yes", "No wait: yes", "Yes or no?",
        "yes/no", "Yes?", "yes and no", "No. I'm sorry, this is not something that I discuss.", "Is there a person? yes",
        "no, I am unable to see pictures", "Not yes", "not sure: yes", "Yes, but it may be a no", "nobody", "yes-ish",
        "I cannot tell. Answer: yes", '{"no": 0.2, "yes": 0.8}', '{"answer": null}', '{"answer": "yes or no"}',
        # "no" before a noun
        "No idea", "No idea.", "No image was provided.", "No image", "no comment", "No clue!", "No problem! Send the picture.",
        "No answer", "No way to tell", "No, no idea", "No visible content", "no picture attached",
        # there was no picture to see
        "No, there is no image.", "No. There is no picture here", "No, you have not attached a picture", "No, it did not load",
        "No, I don't see an image", "No, the image is blank", "No, it is too dark", "No, the photo is missing",
        # refusals and courtesies
        "No, that would violate the privacy of others", "No. That is against my guidelines", "No, this violates our policy",
        "No, as an AI model I do not identify people", "No, I'd rather not", "No: it is inappropriate",
        "Yes, please send the picture", "Yes, of course! Please upload it.", "Yes, happy to look at it", "Yes, I'd love to",
        "Yes. What would you like to see", "Yes, I see the image. It has been received", "Yes, let me look", "Yes I understand",
        '{"answer": "no", "reason": "No image was provided"}',
    ],
)  # fmt: skip
def test_no_answer(text):
    with pytest.raises(NoAnswer, match="want one of no, yes"):
        read(choice(text))


@pytest.mark.parametrize("text", ["", " \n", "no <think>hm</think>", None, 7])
def test_an_empty_answer_is_the_set_ups_fault(text):
    with pytest.raises(NoAnswer, match="empty") as raised:
        read(choice(text))
    assert of_error(raised.value) is Cause.SETUP


@pytest.mark.parametrize(
    "text, label",
    [
        ("Person", 0), ("Person walking a dog", 0), ("person (standing)", 0), ("Nobody", 1), ("Nobody is there.", 1),
        ("Person not visible", None), ("Person is not there", None), ("Person: absent", None), ("person, no picture", None),
        ("Nobody. No image was provided.", None), ("nobody, please send a picture", None),
    ],
)  # fmt: skip
def test_other_names_than_yes_and_no(text, label):
    if label is None:
        with pytest.raises(NoAnswer):
            read(choice(text), ("person", "nobody"))
    else:
        assert read(choice(text), ("person", "nobody")).label == label


def test_the_cut_end_of_a_text_may_be_that_of_a_refusal():
    assert read(choice("No, there is no person in", finish="length")).label == 0
    for text in "No, I", "No, as an":
        with pytest.raises(NoAnswer):
            read(choice(text, finish="length"))


@pytest.mark.parametrize(
    "said, why",
    [
        (choice(None, refusal="I can't assist with that."), "refuses: \"I can't"),
        (choice("yes", finish="content_filter"), "want one of"),
        ({"message": None}, "no choices"), ({}, "no choices"), (None, "no choices"), ([], "no choices"),
    ],
)  # fmt: skip
def test_a_choice_without_an_answer(said, why):
    with pytest.raises(NoAnswer, match=why):
        read(said)


@pytest.mark.parametrize(
    "said",
    [
        choice("<think>There is no person, yes", finish="length"), choice("", finish="length", reasoning="The picture"),
        choice(None, finish="length", reasoning_content="No"), choice("<|channel|>analysis<|message|>no", finish="length"),
    ],
)  # fmt: skip
def test_thinking_that_was_cut_is_told(said):
    with pytest.raises(EndlessThinking, match="within the limit of tokens"):
        read(said)
    with pytest.raises(EndlessThinking, match="gives no answer$"):
        read({**said, "finish_reason": "stop"})


def test_the_longest_class_counts():
    birds = ("black", "blackbird", "blue tit", "blue")
    for text, label in ("Blackbird", 1), ("black.", 0), ("Blue tit!", 2), ("blue", 3), ("Answer: blue-tit", None):
        if label is None:
            with pytest.raises(NoAnswer):
                read(choice(text), birds)
        else:
            assert read(choice(text), birds).label == label
    assert read(choice("no person"), ("person", "no person")).label == 1


THINKING = [
    ("<think>", {"<think>": 0.999, "No": 1e-5, "Yes": 1e-6}),
    certain("\n\n"),
    certain("</think>"),
    certain("\n\n"),
]
JSON_BEFORE = [certain(text) for text in ('{"', "answer", '":', ' "')]
YES = ("yes", {"yes": 0.9, "no": 0.08})


@pytest.mark.parametrize(
    "said, score",
    [
        (choice("Yes.", [("Yes", {"Yes": 0.5, " yes": 0.1, "No": 0.3, "n": 0.05, "maybe": 0.05}), certain(".")]), 0.6 / 0.95),
        (choice("no", [("no", {"no": 0.9, "yes": 0.1})]), 0.1),
        (choice("\n\nyes", [*THINKING, YES]), 0.9 / 0.98),
        (choice("<think>\n\n</think>\n\nyes", [*THINKING, YES]), 0.9 / 0.98),
        (choice("yes", [certain("No"), certain(" person"), certain("\n"), YES]), 0.9 / 0.98),
        (choice("Answer: yes", [("Answer", {"No": 0.1}), certain(":"), (" yes", {" yes": 0.7, " no": 0.3})]), 0.7),
        (choice('{"answer": "yes"}', [*JSON_BEFORE, ("yes", {"yes": 0.8, "no": 0.2}), certain('"}')]), 0.8),
        (choice("yes", [(" y", {" y": 0.8, "n": 0.2}), certain("es"), certain("<|im_end|>")]), 0.8),
        (choice("yes", [("yes", {"maybe": 1.0})]), 1.0),
        (choice("yes", [("yes", {"yes": 0.3, "no": 0.1, "maybe": 0.6})]), 1.0),  # less than half of the probability
        (choice("yes", [("yes", {"yes": 0.4, "no": 0.3, " No": 0.3})]), 1.0),  # they contradict the text
        (choice("yes", [("no", {"no": 1.0})]), 1.0),  # of another text
        (choice("yes", [("yes", {"yes": 0.9}), (" it", {" it": 1.0})]), 1.0),
        (choice("yes", []), 1.0),
    ],
)  # fmt: skip
@pytest.mark.parametrize("event", [None, 1])
def test_probabilities_begin_with_the_answer_and_never_contradict_it(said, score, event):
    label = 0 if score < 0.5 else 1
    answer = read(said, event=event)
    assert answer.label == label and answer.scores == pytest.approx([1 - score, score])


@pytest.mark.parametrize(
    "logprobs",
    [
        {},
        {"content": None},
        {"content": [7]},
        {"content": [{"token": "no", "logprob": "x"}]},
        {"content": [{"token": 1}]},
        "no",
        [1],
    ],
)
def test_probabilities_that_are_none(logprobs):
    assert read({**choice("yes"), "logprobs": logprobs}).scores == [0, 1]


def test_names_that_begin_alike_share_their_first_tokens():
    """A class's probability is that of all the tokens that tell it from others."""
    birds = ("blackbird", "blackcap", "black")
    tokens = [
        (" black", {" black": 0.9, "robin": 0.1}),
        ("bird", {"bird": 0.6, "cap": 0.3, ".": 0.1}),
    ]
    assert read(choice("Blackbird", [(" Black", tokens[0][1]), tokens[1]]), birds).scores == pytest.approx([0.6, 0.3, 0.1])
    alone = [("black", {"black": 0.9, "robin": 0.1})]
    assert read(choice("black", alone), birds).scores == pytest.approx([0, 0, 1])


def test_a_score_of_the_event_never_contradicts_the_text():
    """The event's score decides at 1/2; of three classes the named one may hold less."""
    said = choice("a", [("a", {"a": 0.4, "b": 0.3, "c": 0.3})])
    assert read(said, "abc").scores == pytest.approx([0.4, 0.3, 0.3])
    assert read(said, "abc", event=0).scores == [1, 0, 0]
    assert read(said, "abc", event=1).scores == pytest.approx([0.4, 0.3, 0.3])
