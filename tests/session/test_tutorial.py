"""Whoever does what docs/tutorial/agent-with-tools.md says sees what it says."""

from __future__ import annotations

import re
import shlex
import sys
import traceback
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT, Cli
from tests.dialects.support import Loopback
from tests.session.wire import Api, asks, says

PAGE = (ROOT / "docs/tutorial/agent-with-tools.md").read_text(encoding="utf-8")
STEPS, OTHERS = PAGE.split("## The same with other SDKs")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROGRAMS = {
    api: program
    for api, (_, program) in zip(("responses", "anthropic", "gemini"), BLOCK.findall(OTHERS), strict=True)
}
HOME = "/home/you"
LONGEST = 40

KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY")
PLACES = ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL")


class Reader:
    """Somebody who does what a page says, one block after the other."""

    def __init__(self, home: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.home = home
        self._cli = cli
        self._monkeypatch = monkeypatch
        self._capsys = capsys
        monkeypatch.chdir(home)

    def follow(self, page: str) -> None:
        for language, content in BLOCK.findall(page):
            if language == "console":
                self._type(content)
            elif language == "python" and content.startswith("def run"):
                program = Path("agent.py").read_text(encoding="utf-8")
                self.write("agent.py", re.sub(r"def run.*?\n\n\n", content + "\n\n", program, flags=re.DOTALL))
            else:
                names = {"python": "agent.py", "markdown": ".nexus3/NEXUS.md", "csv": "prices.csv"}
                self.write(names[language], content)

    def write(self, name: str, content: str) -> None:
        Path(name).write_text(content, encoding="utf-8")

    def run(self, *arguments: str) -> str:
        """What `python` prints."""
        self._capsys.readouterr()
        self._monkeypatch.setattr(sys, "argv", list(arguments))
        names: dict[str, Any] = {"__name__": "__main__"}
        try:
            exec(compile(Path(arguments[0]).read_text(encoding="utf-8"), arguments[0], "exec"), names)  # noqa: S102 - our own page
        except OSError as error:
            return f"Traceback (most recent call last):\n  …\n{''.join(traceback.format_exception_only(error))}"
        finally:
            names["client"].close()
        return self._capsys.readouterr().out

    def _type(self, content: str) -> None:
        for typed in re.findall(r"^\$ (.*\n(?:(?!\$ ).*\n)*)", content, re.MULTILINE):
            line, _, expected = typed.partition("\n")
            assert masked(self._obey(*shlex.split(line)), self.home) == masked(expected, self.home), line

    def _obey(self, program: str, *arguments: str) -> str:
        if program == "mkdir":
            Path(arguments[0]).mkdir()
        elif program == "cd":
            self._monkeypatch.chdir(arguments[0])
        elif program == "python":
            return self.run(*arguments)
        else:
            assert program == "nexus"
            return self._cli(*arguments).out
        return ""


def masked(output: str, home: Path) -> str:
    """Without what is different each time: places, names of steps, the time, sums over texts of this machine."""
    output = output.replace(str(home), HOME)
    output = re.sub(r"\b01[0-9A-Z]{24}\b", "STEP", output)
    output = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d", "TIME", output)
    output = re.sub(r"\b\d[\d,]{2,} (tokens|characters|are)\b", r"SUM \1", output)
    return output


@pytest.fixture
def reader(
    tmp_path: Path,
    cli: Cli,
    loopback: Loopback,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Reader:
    home = tmp_path / "you"
    home.mkdir()
    for name in KEYS:
        monkeypatch.setenv(name, "none")
    for name in PLACES:
        monkeypatch.setenv(name, loopback.url)
    monkeypatch.delenv("GOOGLE_API_KEY", raising=False)
    return Reader(home, cli, monkeypatch, capsys)


def agent(reader: Reader, program: str) -> None:
    """A directory like that of the page, with one of its programs."""
    reader.write("prices.csv", "item,price\nroll,0.60\n")
    reader.write("agent.py", program)


def test_the_steps_of_the_page_lead_to_what_the_page_shows(reader: Reader, loopback: Loopback) -> None:
    loopback.answers = [
        asks("openai", 1, "read_file", path="prices.csv"),
        says("openai", 2, "A croissant costs 1.80 (prices.csv)."),
        asks("openai", 3, "read_file", path="recipes.txt"),
        says("openai", 4, "I cannot tell: there is no recipes.txt here."),
        says("openai", 5, "A roll costs €0.60 (prices.csv)."),
    ]

    reader.follow(STEPS)

    sent = [body["messages"] for body in loopback.bodies]
    assert [len(messages) for messages in sent] == [2, 4, 6, 8, 10]
    assert all(sent[at + 1][: len(sent[at])] == sent[at] for at in range(4))
    assert "rye bread,4.20" in sent[1][-1]["content"]
    assert "FileNotFoundError" in sent[3][-1]["content"]
    assert "+Prices are in euros" in sent[4][-1]["content"]
    assert len(Path("agent.py").read_text(encoding="utf-8").splitlines()) <= LONGEST


@pytest.mark.parametrize("api", ["responses", "anthropic", "gemini"])
def test_the_same_agent_runs_with_another_sdk(reader: Reader, loopback: Loopback, api: Api) -> None:
    agent(reader, PROGRAMS[api])
    loopback.answers = [
        asks(api, 1, "read_file", path="prices.csv"),
        asks(api, 2, "read_file", path="../../etc/passwd"),
        says(api, 3, "A roll costs 0.60."),
    ]

    answer = reader.run("agent.py", "What does a roll cost?")

    assert answer == "A roll costs 0.60.\n"
    assert "roll,0.60" in str(loopback.bodies[1])
    assert "There is nothing for you outside" in str(loopback.bodies[2])
    assert len(PROGRAMS[api].splitlines()) <= LONGEST


def test_one_conversation_goes_through_all_four_programs(reader: Reader, loopback: Loopback) -> None:
    ((_, first), *_) = [block for block in BLOCK.findall(STEPS) if block[0] == "python"]
    loopback.answers = [
        asks("openai", 1, "read_file", path="prices.csv"),
        says("openai", 2, "One."),
        says("responses", 3, "Two."),
        asks("anthropic", 4, "read_file", path="prices.csv"),
        says("anthropic", 5, "Three."),
        says("gemini", 6, "Four."),
    ]

    for number, program in enumerate([first, *PROGRAMS.values()], 1):
        agent(reader, program)
        reader.run("agent.py", f"Question {number}?")

    last = str(loopback.bodies[-1])
    assert all(word in last for word in ("Question 1?", "One.", "Two.", "Question 3?", "roll,0.60", "Three."))


def test_what_the_page_tells_to_install_is_what_it_imports() -> None:
    told = {name for line in re.findall(r"pip install ([^`\n]+)", PAGE) for name in line.split()}
    imported = {"openai", "anthropic", "google-genai"}

    assert told == {"nexus-core", *imported}
    assert all(distribution(name).version for name in told)
    assert all(key in PAGE for key in KEYS)
