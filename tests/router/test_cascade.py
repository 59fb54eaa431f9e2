"""docs/cascade.md runs as it is written, between two servers that answer as OpenAI's do."""

import json
import math
import re

import pytest
from http_server import serving
from support import ROOT

MESSAGES = [f"{'please call back' if n % 3 == 0 else 'a newsletter'} {n}" for n in range(90)]
PAGE = (ROOT / "docs/cascade.md").read_text()


def server(calls, sure):
    """A model that says yes to calls with the probability `sure`."""

    def answer(_, content, __):
        body = json.loads(content)
        text = body["messages"][0]["content"]
        calls.append(body["model"])
        yes = sure if "call back" in text else 1 - sure
        tokens = [{"token": " Yes", "logprob": math.log(yes)}, {"token": " no", "logprob": math.log(1 - yes)}]
        return json.dumps({"choices": [{"logprobs": {"content": [{"top_logprobs": tokens}]}}]}).encode()

    return answer


def test_the_page_runs_as_it_is_written(capsys):
    pytest.importorskip("httpx")
    code = re.search(r"```python\n(.*?)```", PAGE, re.S).group(1)
    calls = []
    with serving(server(calls, 0.6)) as small, serving(server(calls, 0.99)) as big:
        code = code.replace("http://localhost:8081", small).replace("http://localhost:8082", big)
        names = {"messages": MESSAGES}
        exec(compile(code, "docs/cascade.md", "exec"), names)
    assert calls.count("small") == 90 > calls.count("big") > 3
    lines = capsys.readouterr().out.splitlines()
    right = sum((line.split()[0] == "today") == ("call back" in line) for line in lines)
    assert len(lines) == 90 and right == 90 and names["router"].report().fallbacks == 0
