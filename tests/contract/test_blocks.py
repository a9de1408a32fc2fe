"""No code in the documents is unwatched: programs are checked, data is read, commands and their options are there.

Most programs are also run, and what they print is compared, by the tests of what they show.
"""

from __future__ import annotations

import ast
import builtins
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from nexus_core.config.schema import Config
from tests.conftest import ROOT, Cli, Outcome
from tests.contract.pages import PAGES, Block, blocks, name_of, spans

BLOCKS = [block for page in PAGES for block in blocks(page)]
PROGRAMS = [block for block in BLOCKS if block.language == "python"]
DATA = {"json": json.loads, "toml": tomllib.loads}
COMMANDS = {"", "console", "sh", "text"}
PYTHON_PROGRAMS = {"pip", "python", "python3", "pytest"}
PROGRAMS_OF_A_SHELL = {"nexus", "make", "export", "claude", "codex", "code", "llm", *PYTHON_PROGRAMS}
HIDDEN = {"--init-global"}  # it works, and is in no help page
ELSEWHERE = {"hello"}  # the command of the example plugin
WORDS = {"csv", "markdown"}  # files that the reader writes, and prompts
BY_OTHERS = {"docs/reference/hooks.md": "test_the_example_of_a_hook_keeps_the_contract"}
CHEAP = {"nexus_core", "nexus_core.context", "nexus_core.plugin", "nexus_core.testing"}
GIVEN = {
    "docs/how-to/find-out-what-a-model-read.md": (
        "from nexus_core.thread.state import RecordedStep; step: RecordedStep"
    ),
    "docs/reference/findings.md": "from typing import Any; messages: list[dict[str, Any]]; request: dict[str, Any]",
}
"""What the words of a page say is there already."""

MYPY = f"""\
[mypy]
python_version = 3.11
mypy_path = {ROOT}:{ROOT / "plugins"}
explicit_package_bases = true
namespace_packages = true
check_untyped_defs = true
cache_dir = {ROOT / ".mypy_cache/documents"}
# A page may leave out that something could be None, and the types of what is empty; frameworks take more than they say.
disable_error_code = union-attr, var-annotated, call-overload
[mypy-boto3.*]
# It brings no types.
ignore_missing_imports = true
[mypy-acme]
# A module that the page has its reader write.
ignore_missing_imports = true
"""


def bound(program: ast.AST) -> set[str]:
    """The names that a program gives a meaning, anywhere in it."""
    names = {node.id for node in ast.walk(program) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    names |= {node.arg for node in ast.walk(program) if isinstance(node, ast.arg)}
    for node in ast.walk(program):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
    return names


def missing(program: ast.AST) -> set[str]:
    """The names that a program takes for granted."""
    used = {node.id for node in ast.walk(program) if isinstance(node, ast.Name)}
    return used - bound(program) - set(dir(builtins))


def write_modules(programs: list[Block], folder: Path) -> None:
    """A module for each program; what it takes for granted comes from those before it on the page."""
    earlier: dict[str, str] = {}
    page = None
    for block in programs:
        if block.page != page:
            page, earlier = block.page, {}
        module = re.sub(r"\W", "_", f"{name_of(block.page)}_{block.line}")
        program = ast.parse(block.text)
        imports = [f"from {earlier[name]} import {name}" for name in sorted(missing(program) & set(earlier))]
        given = GIVEN.get(name_of(block.page), "pass")
        (folder / f"{module}.py").write_text("; ".join([given, *imports]) + f"\n{block.text}", encoding="utf-8")
        earlier |= dict.fromkeys(bound(program), module)


def test_a_block_that_does_not_say_what_it_is_consists_of_commands() -> None:
    unnamed = [(block.place, line) for block in BLOCKS if not block.language for line in block.text.splitlines()]

    assert [f"{place} {line}" for place, line in unnamed if line and line.split()[0] not in PROGRAMS_OF_A_SHELL] == []


def test_every_block_is_of_a_kind_that_is_checked() -> None:
    kinds = {"python", *DATA, *COMMANDS, *WORDS}

    assert len(BLOCKS) > 100
    assert [block.place for block in BLOCKS if block.language not in kinds] == []


@pytest.mark.parametrize("block", PROGRAMS, ids=lambda block: block.place)
def test_a_program_can_be_compiled_and_takes_from_nexus_what_is_there(block: Block) -> None:
    program = compile(block.text, block.place, "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)

    assert isinstance(program, ast.Module)
    imports = [node for node in ast.walk(program) if isinstance(node, ast.ImportFrom) and node.module in CHEAP]
    names = [(node.module, alias.name) for node in imports for alias in node.names]
    assert [name for module, name in names if not hasattr(import_module(str(module)), name)] == []


@pytest.mark.slow
def test_every_program_is_right_about_types(tmp_path: Path) -> None:
    programs = [block for block in PROGRAMS if name_of(block.page) not in BY_OTHERS]
    write_modules(programs, tmp_path)
    (tmp_path / "mypy.ini").write_text(MYPY, encoding="utf-8")

    command = [sys.executable, "-m", "mypy", "--config-file", "mypy.ini", "--no-error-summary", "."]
    outcome = subprocess.run(command, cwd=tmp_path, text=True, capture_output=True, check=False)

    assert len(list(tmp_path.glob("*.py"))) == len(programs) > 40
    assert (outcome.stdout, outcome.stderr, outcome.returncode) == ("", "", 0)


@pytest.mark.parametrize("page", BY_OTHERS)
def test_what_is_checked_elsewhere_is_checked_there(page: str) -> None:
    tests = (ROOT / "tests/contract/test_hooks.py").read_text(encoding="utf-8")

    assert f"def {BY_OTHERS[page]}(" in tests


@pytest.mark.parametrize("block", [each for each in BLOCKS if each.language in DATA], ids=lambda block: block.place)
def test_data_can_be_read_and_settings_are_settings(block: Block, cli: Cli, nexus_home: Path) -> None:
    data = DATA[block.language](block.text)

    if set(data) <= set(Config.model_fields):
        (nexus_home / "config.json").write_text(block.text, encoding="utf-8")
        assert cli("config", "validate") == Outcome(0, "", "1 file, 0 faults.\n")


def lines(block: Block) -> Iterator[str]:
    """What is typed; in a console and in text only what stands behind a prompt, or is a command of ours."""
    for line in block.text.replace("\\\n", " ").splitlines():
        if line.startswith(("$ ", "nexus ")) or block.language in {"", "sh"}:
            yield line.removeprefix("$ ")


def calls(line: str, program: str) -> Iterator[list[str]]:
    """The words behind the name of a program, wherever it is called; descriptions and comments are no words."""
    for match in re.finditer(rf"(?:^|[|;&(] *)(?:\w+=\S* )*{program} ([^|;&)\n]*)", line):
        words = re.split(r"   ?|\s#\s|[<>]", match[1])[0]
        yield [word.strip("[]\"'") for word in words.split()]


TYPED = [(block.place, line) for block in BLOCKS if block.language in COMMANDS for line in lines(block)]


def mentioned() -> list[tuple[str, str]]:
    """The code between the words of each page."""
    return [(name_of(page), span) for page in PAGES for span in spans(page)]


class Manual:
    """The help of every command, each asked for once."""

    def __init__(self, cli: Cli) -> None:
        self._cli = cli
        self._known: dict[tuple[str, ...], str] = {}

    def help(self, path: tuple[str, ...]) -> str:
        if path not in self._known:
            self._known[path] = self._cli(*path, "--help").out.partition("\n  Examples:")[0]
        return self._known[path]

    def commands(self, path: tuple[str, ...]) -> list[str]:
        return re.findall(r"^  (\w+) ", self.help(path).partition("\nCommands:\n")[2], re.MULTILINE)

    def fault(self, words: list[str]) -> str:
        """What is not there of a call of `nexus`; "" if all of it is."""
        words = words[: words.index("--")] if "--" in words else words
        paths: list[tuple[str, ...]] = [()]
        rest = [word for before, word in zip(["", *words], words, strict=False) if before not in {"-C", "--home"}]
        for word in (word for word in rest if not word.startswith("-")):
            known = self.commands(paths[0])
            if not known or not re.fullmatch(r"[a-z|]+", word):
                break
            if unknown := [each for each in word.split("|") if each not in {*known, *ELSEWHERE}]:
                return f"no command {' '.join([*paths[0], *unknown])}"
            paths = [(*paths[0], each) for each in word.split("|")]
        options = [word.partition("=")[0] for word in words if re.match(r"--?[a-zA-Z]", word)]
        options = [each for each in options if each not in HIDDEN]
        helps = "\n".join(self.help(path) for path in [(), *paths])
        lost = [each for each in options if not re.search(rf"(?<![\w-]){re.escape(each)}(?![\w-])", helps)]
        return f"no option {lost} of {paths[0]}" if lost else ""


def test_every_command_is_there_with_its_options(cli: Cli) -> None:
    manual = Manual(cli)
    found = [(place, words) for place, line in [*TYPED, *mentioned()] for words in calls(line, "nexus")]

    faults = [f"{place}: {fault}" for place, words in found if (fault := manual.fault(words))]

    assert len(found) > 200
    assert manual.fault(["session", "shwo"])
    assert manual.fault(["show", "--jsn"])
    assert faults == []


def test_what_is_installed_made_or_started_is_there() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    places = [*TYPED, *mentioned()]

    of_nexus = [line for place, line in places if not place.startswith("examples/")]

    named = {extra for line in of_nexus for extra in re.findall(r"'\.\[([\w,]+)\]'", line)}
    made = {words[0] for _, line in places for words in calls(line, "make") if words}
    started = {words[0] for _, line in places for words in calls(line, "python") if words and words[0].endswith(".py")}

    assert {each for extra in named for each in extra.split(",")} - set(extras) == set()
    assert made - set(targets) == set()
    assert [
        path for path in started if path.startswith(("benchmarks/", "scripts/")) and not (ROOT / path).exists()
    ] == []
    assert named
    assert made
    assert started
