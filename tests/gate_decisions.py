"""Decisions of a gate, and remote models that a test answers for."""

import threading

from h2t2_tools.fleet.gate.detection import Decision
from h2t2_tools.fleet.gate.remote import Answer


def decision(identity, **entries):
    """A local decision about a sample of one stream, with some entries of its own."""
    usual = {
        "key": "porch", "decision": 1, "label": "1", "source": "local", "score": 0.9, "bin": 14, "cost": 0.1,
        "unfamiliar": False, "detected": "", "ms": 1, "topic": "x/porch",
    }  # fmt: skip
    return Decision(id=str(identity), **{**usual, **entries})


class Scripted:
    """A remote model whose answers a test gives. questions: (question, its callback), the oldest first."""

    def __init__(self):
        self.questions = []

    def test(self, done):
        pass

    def ask(self, question, done):
        self.questions.append((question, done))

    def close(self):
        pass

    def answer(self, label=-1, **more):
        _, done = self.questions.pop(0)
        done(Answer(label, **more))


class Held(Scripted):
    """Gives each question the same answer, 1, in a thread of its own, once it is released."""

    def __init__(self, released=False):
        super().__init__()
        self.released, self.given = threading.Event(), Answer(label=1)
        if released:
            self.released.set()

    def ask(self, question, done):
        super().ask(question, done)
        threading.Thread(target=lambda: self.released.wait(60) and done(self.given), daemon=True).start()

    @property
    def asked(self):
        """The payloads of all questions."""
        return [question.payload for question, _ in self.questions]

    def close(self):
        self.released.set()
