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

from nexus_core import NexusError
from tests.conftest import ROOT, Cli
from tests.dialects.support import Loopback
from tests.session.wire import Api, asks, says

PAGE = (ROOT / "docs/tutorial/agent-with-tools.md").read_text(encoding="utf-8")
STEPS, OTHERS = PAGE.split("## The same with other SDKs")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
APIS: tuple[Api, ...] = ("responses", "anthropic", "gemini")
PROGRAMS = dict(zip(APIS, (program for _, program in BLOCK.findall(OTHERS)), strict=True))
HOME = "/home/you"
LONGEST = 40

KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY")
PLACES = ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL")


class Reader:
    """Somebody who does what a page says, one block after the other."""

    def __init__(
        self, home: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
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
        except (OSError, NexusError) as error:
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
            outcome = self._cli(*arguments)
            return outcome.out + outcome.err
        return ""


def masked(output: str, home: Path) -> str:
    """Without what is different each time: places, names of steps, the time, sums over texts of this machine."""
    output = output.replace(str(home), HOME)
    output = re.sub(r"\b01[0-9A-Z]{24}\b", "STEP", output)
    output = re.sub(r" \[[0-9A-Z]{6}\]$", " [STEP]", output, flags=re.MULTILINE)
    output = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d", "TIME", output)
    output = re.sub(r"\b\d[\d,]+ (tokens|characters|are)\b", r"SUM \1", output)
    return re.sub(r"-> \d+ +", "-> SUM ", output)


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
    assert [len(messages) for messages in sent] == [3, 5, 7, 9, 11]
    assert all(sent[at + 1][: len(sent[at])] == sent[at] for at in range(4))
    assert "rye bread,4.20" in sent[1][-1]["content"]
    assert "FileNotFoundError" in sent[3][-1]["content"]
    assert "+Prices are in euros" in sent[4][-1]["content"]
    assert len(Path("agent.py").read_text(encoding="utf-8").splitlines()) <= LONGEST


def test_one_conversation_goes_through_the_programs_of_all_sdks(reader: Reader, loopback: Loopback) -> None:
    reader.write("prices.csv", "item,price\nroll,0.60\n")
    answers = []

    for number, (api, program) in enumerate(PROGRAMS.items()):
        reader.write("agent.py", program)
        loopback.answers = [
            asks(api, 10 * number, "read_file", path="prices.csv"),
            asks(api, 10 * number + 1, "read_file", path="../../etc/passwd"),
            says(api, 10 * number + 2, f"{api} says 0.60."),
        ]
        answers.append(reader.run("agent.py", f"What does {api} say?"))

    assert answers == [f"{api} says 0.60.\n" for api in PROGRAMS]
    for number, api in enumerate(PROGRAMS):
        _, second, third = map(str, loopback.bodies[3 * number : 3 * number + 3])
        assert second.count("roll,0.60") == number + 1
        assert third.count("There is nothing for you outside") == number + 1
        assert all(f"{before} says 0.60." in third for before in list(PROGRAMS)[:number]), api


def test_no_program_of_the_page_is_longer_than_forty_lines() -> None:
    programs = [program for language, program in BLOCK.findall(PAGE) if language == "python"]

    assert len(programs) == 5
    assert max(len(program.splitlines()) for program in programs) <= LONGEST


def test_what_the_page_tells_to_install_is_what_it_imports() -> None:
    told = {name for line in re.findall(r"pip install ([^`#\n]+)", PAGE) for name in line.split()}
    imported = {"openai", "anthropic", "google-genai"}

    assert told == {".", *imported}  # the checkout itself
    assert all(distribution(name).version for name in ("nexusctx", *imported))
    assert all(key in PAGE for key in KEYS)
