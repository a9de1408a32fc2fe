"""Commands in a real terminal: widths, styles, the pager, Markdown and progress."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from nexus_core import Nexus
from nexus_core.ledger.in_memory import MemoryLedger
from nexus_core.testing import write_files
from nexus_core.text.layout import measure_width
from nexus_core.transcripts.read import read_transcript
from nexus_core.transfer.importer import TranscriptImporter
from tests.cli.conftest import Watch
from tests.cli.session.conftest import Talk, talk  # noqa: F401 - a fixture
from tests.conftest import Cli
from tests.effort import sampled
from tests.terminal import run_in_terminal
from tests.transcripts.support import SAMPLES, write_opencode_tree

LONG = "".join(f"Rule {number} of many.\n\n" for number in range(200))

pytestmark = pytest.mark.usefixtures("nexus_home")
needs_less = pytest.mark.skipif(shutil.which("less") is None, reason="there is no less here")


TABLES = [
    ["session", "list"],
    ["status"],
    ["layers"],
    ["layers", "--all"],
    ["context", "-C", "."],
    ["context", "transcript.jsonl"],
    ["session", "stats"],
    ["session", "tree"],
    ["session", "search", "brief"],
    ["plugin", "list"],
    ["plugin", "hooks"],
    ["skill", "list"],
    ["mcp", "list"],
    ["trust", "status"],
    ["doctor"],
    ["doctor", "--codes"],
    ["tokens", "transcript.jsonl", ".nexus3/NEXUS.md"],
    ["config", "show"],
]


@pytest.fixture
def project(work: Path) -> Path:
    return write_files(
        work,
        {
            ".nexus3/NEXUS.md": "Be brief.",
            ".nexus3/skills/deploy/SKILL.md": "---\nname: deploy\ndescription: Deploys.\n---\n- **build** it",
            "a/very/long/path/to/services/authentication/NEXUS.md": "hi",
            "transcript.jsonl": (SAMPLES / "claude.jsonl").read_text(encoding="utf-8"),
        },
    )


@pytest.mark.acceptance("R20")
@pytest.mark.parametrize(
    ("columns", "arguments"),
    sampled([(columns, arguments) for columns in (80, 120) for arguments in TABLES], one_in=6),
    ids=str,
)
def test_no_line_is_longer_than_the_terminal_is_wide(
    arguments: list[str],
    columns: int,
    project: Path,
    nexus: Nexus,
    talk: Talk,  # noqa: F811 - the fixture
) -> None:
    talk("a-session-with-quite-a-long-name/and-a-second-part", "Be brief, please, whatever happens.")
    nexus.close()

    screen = run_in_terminal(["--no-pager", *arguments], project, columns=columns)

    assert screen.code == 0
    assert "Traceback" not in screen.text
    for line in screen.text.splitlines():
        is_one_word = " " not in line.strip()  # a long path stays whole, so that it can be copied
        assert measure_width(line) <= columns or is_one_word, line


def test_terminal_gets_styles_and_bars_and_a_pipe_neither(project: Path) -> None:
    rich = run_in_terminal(["--no-pager", "context", "transcript.jsonl"], project)
    plain = run_in_terminal(["--no-pager", "context", "transcript.jsonl"], project, variables={"NO_COLOR": "1"})
    dumb = run_in_terminal(["--no-pager", "context", "transcript.jsonl"], project, variables={"TERM": "dumb"})

    assert "\x1b[1mROLE" in rich.written
    assert "█" in rich.written
    assert "\x1b" not in plain.written
    assert "█" in plain.written
    assert "\x1b" not in dumb.written
    assert "##" in dumb.written


def test_piped_output_does_not_import_what_only_a_terminal_needs(project: Path) -> None:
    command = [sys.executable, "-X", "importtime", "-m", "nexus_core", "context", "transcript.jsonl"]
    outcome = subprocess.run(command, cwd=project, capture_output=True, text=True, check=True)

    imported = {line.rpartition("|")[2].strip() for line in outcome.stderr.splitlines()}
    assert "nexus_core.text.console" in imported
    assert not {name for name in imported if name.partition(".")[0] in ("rich", "markdown_it", "pygments")}


def test_long_output_goes_to_the_pager_of_the_user(project: Path) -> None:
    write_files(project, {".nexus3/NEXUS.md": LONG})

    screen = run_in_terminal(["show"], project, variables={"PAGER": "sed 's/^/paged: /'"})

    assert "paged: Rule 199 of many." in screen.text


def test_short_output_starts_no_pager(project: Path) -> None:
    screen = run_in_terminal(["plugin", "info", "models"], project, variables={"PAGER": "sed 's/^/paged: /'"})

    assert screen.code == 0
    assert "paged:" not in screen.text


def test_own_pager_comes_before_the_general_one(project: Path) -> None:
    write_files(project, {".nexus3/NEXUS.md": LONG})
    pagers = {"PAGER": "sed 's/^/general: /'", "NEXUS_PAGER": "sed 's/^/own: /'"}

    assert "own: Rule 7 " in run_in_terminal(["show"], project, variables=pagers).text


@pytest.mark.parametrize("variables", [{"NEXUS_PAGER": ""}, {"NEXUS_PAGER": "cat"}, {"PAGER": "no-such-pager"}])
def test_without_a_pager_long_output_is_printed(project: Path, variables: dict[str, str]) -> None:
    write_files(project, {".nexus3/NEXUS.md": LONG})

    screen = run_in_terminal(["show"], project, variables=variables)

    assert screen.code == 0
    assert "Rule 199 of many." in screen.text


def test_no_pager_prints_long_output_directly(project: Path) -> None:
    write_files(project, {".nexus3/NEXUS.md": LONG})

    screen = run_in_terminal(["show", "--no-pager"], project, variables={"PAGER": "sed 's/^/paged: /'"})

    assert "paged:" not in screen.text
    assert "Rule 199 of many." in screen.text


@pytest.mark.acceptance("R20")
def test_pager_that_is_left_early_is_no_error(project: Path) -> None:
    write_files(project, {".nexus3/NEXUS.md": LONG * 200})

    screen = run_in_terminal(["show"], project, variables={"PAGER": "head -1"})

    assert (screen.code, screen.text) == (0, "# System Configuration\n")


@needs_less
def test_less_shows_the_first_page_and_q_leaves_it(project: Path) -> None:
    write_files(project, {".nexus3/NEXUS.md": LONG * 50})

    screen = run_in_terminal(["show"], project, keys={"# System Configuration": "q"})

    assert screen.code == 0
    assert "Rule 199 of many." not in screen.text


def test_messages_beside_long_output_are_in_the_pager(project: Path) -> None:
    screen = run_in_terminal(["layers", "--as", "claude"], project, rows=3, variables={"PAGER": "sed 's/^/paged: /'"})

    assert re.search(r"paged: .*--all lists them", screen.text)


def test_skill_is_shown_as_markdown_and_raw_as_it_is_written(project: Path) -> None:
    screen = run_in_terminal(["skill", "show", "deploy"], project)
    raw = run_in_terminal(["skill", "show", "deploy", "--raw"], project)

    assert "• \x1b[0m\x1b[1mbuild\x1b[0m it" in screen.written
    assert "- **build** it" in raw.text


def test_replies_are_shown_as_markdown_and_user_messages_as_they_are_written(
    project: Path,
    nexus: Nexus,
    talk: Talk,  # noqa: F811 - the fixture
) -> None:
    talk("main", "see [this](http://evil.example) and **that**")
    nexus.close()

    screen = run_in_terminal(["session", "show", "main"], project)
    raw = run_in_terminal(["session", "show", "main", "--raw"], project)

    assert "  re see [this](http://evil.example) and \x1b[1mthat\x1b[0m\r\n" in screen.written
    assert "  see [this](http://evil.example) and **that**\r\n" in screen.written
    assert "  re see [this](http://evil.example) and **that**\n" in raw.text


def test_hostile_names_do_not_reach_the_terminal(project: Path) -> None:
    messages = [{"role": "user", "content": "[bold]x[/bold] \x1b]0;owned\x07 \u202e"}]
    write_files(project, {"a.json": json.dumps(messages)})

    screen = run_in_terminal(["--no-pager", "context", "a.json"], project)

    assert "\x1b]0" not in screen.written
    assert "\u202e" not in screen.written
    assert "[bold]x[/bold]" in screen.text


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["context", str(SAMPLES / "claude.jsonl")], "Reading"),
        (["session", "import", str(SAMPLES / "claude.jsonl")], "Importing"),
        (["tokens", str(SAMPLES / "claude.jsonl")], "Counting"),
    ],
    ids=["context", "import", "tokens"],
)
def test_long_work_with_a_file_shows_progress(cli: Cli, watch: Watch, arguments: list[str], shown: str) -> None:
    terminal = watch()

    assert cli(*arguments).code == 0

    assert re.search(rf"\r\x1b\[2K{shown} .*%.*\r\x1b\[2K", terminal.getvalue())  # drawn, and erased


def test_import_reports_all_of_its_work() -> None:
    text = (SAMPLES / "claude.jsonl").read_text(encoding="utf-8")
    read: list[float] = []
    written: list[float] = []

    transcript = read_transcript(text, advance=read.append)
    TranscriptImporter(MemoryLedger()).import_transcript(transcript, text.encode(), advance=written.append)

    assert sum(read) == pytest.approx(1)
    assert sum(written) == pytest.approx(0.7, abs=0.002)  # in tenths of a percent; the rest is the transaction


# ---- nexus context without an argument ------------------------------------------------------------------------------


@pytest.fixture
def user(tmp_path: Path) -> Path:
    """The home directory of a person who uses two coding agents."""
    home = tmp_path / "person"
    claude, pi = ((SAMPLES / name).read_text(encoding="utf-8") for name in ("claude.jsonl", "pi.jsonl"))
    write_files(home, {".claude/projects/-srv-shop/new.jsonl": claude, ".pi/agent/sessions/--srv-web--/old.jsonl": pi})
    os.utime(home / ".pi/agent/sessions/--srv-web--/old.jsonl", (1_700_000_000,) * 2)
    return home


QUESTION = "Which one?"
NO_OTHERS = {"CLAUDE_CONFIG_DIR": "", "CODEX_HOME": "", "GEMINI_CLI_HOME": "", "PI_CODING_AGENT_DIR": ""}


def test_enter_takes_the_newest_transcript(work: Path, user: Path) -> None:
    screen = run_in_terminal(
        ["context"], work, rows=90, keys={QUESTION: "\n"}, variables={"HOME": str(user), **NO_OTHERS}
    )

    lines = screen.text.splitlines()
    assert screen.code == 0
    assert next(line for line in lines if line.startswith("1 ")).split()[1:3] == ["Claude", "Code"]
    assert next(line for line in lines if line.startswith("2 ")).split()[1] == "pi"
    assert f"nexus context {user}/.claude/projects/-srv-shop/new.jsonl" in screen.text.replace("\n", " ")
    assert "ROLE" in screen.text


def test_menu_shows_the_first_message_of_each_conversation(work: Path, user: Path) -> None:
    screen = run_in_terminal(
        ["context"], work, columns=200, keys={QUESTION: "q\n"}, variables={"HOME": str(user), **NO_OTHERS}
    )

    lines = screen.text.splitlines()
    assert next(line for line in lines if line.startswith("1 ")).endswith("  Which loaves cost more than four francs?")
    assert next(line for line in lines if line.startswith("2 ")).endswith("  Which beds need water?")


def test_menu_shows_the_first_message_that_is_not_a_bare_command(work: Path, user: Path) -> None:
    session = user / ".claude/projects/-srv-shop/new.jsonl"
    lines = session.read_text(encoding="utf-8").splitlines(keepends=True)
    at = next(number for number, line in enumerate(lines) if '"type": "user"' in line or '"type":"user"' in line)
    clear = json.loads(lines[at]) | {"uuid": "0-clear"}
    clear["message"] = {"role": "user", "content": "<command-name>/clear</command-name>"}
    begun = json.loads(lines[at]) | {"parentUuid": "0-clear"}
    session.write_text("".join([*lines[:at], f"{json.dumps(clear)}\n{json.dumps(begun)}\n", *lines[at + 1 :]]), "utf-8")

    screen = run_in_terminal(
        ["context"], work, columns=200, keys={QUESTION: "q\n"}, variables={"HOME": str(user), **NO_OTHERS}
    )

    menu = next(line for line in screen.text.splitlines() if line.startswith("1 "))
    assert menu.endswith("  Which loaves cost more than four francs?")


def test_menu_begins_with_the_newest_conversation_of_this_directory_even_if_it_is_in_many_files(
    work: Path, user: Path
) -> None:
    session = write_opencode_tree(user / ".local/share/opencode")
    info = json.loads(session.read_text(encoding="utf-8")) | {"directory": str(work)}
    session.write_text(json.dumps(info), encoding="utf-8")
    os.utime(session, (1_600_000_000,) * 2)

    screen = run_in_terminal(
        ["context"], work, columns=300, keys={QUESTION: "q\n"}, variables={"HOME": str(user), **NO_OTHERS}
    )

    first, second = (next(line for line in screen.text.splitlines() if line.startswith(f"{n} ")) for n in (1, 2))
    assert first.split()[1] == "OpenCode"
    assert f"{work} (here)  How warm is the oven?" in first
    assert "(here)" not in second


def test_menu_is_not_paged_and_the_report_is(work: Path, user: Path) -> None:
    variables = {"HOME": str(user), "PAGER": "sed 's/^/paged: /'", **NO_OTHERS}
    screen = run_in_terminal(["context"], work, rows=6, keys={QUESTION: "2\n"}, variables=variables)

    menu, _, report = screen.text.partition(QUESTION)
    assert screen.code == 0
    assert "paged: " not in menu
    assert "paged: ROLE" in report


def test_directory_in_the_menu_is_cut_at_its_beginning(work: Path, user: Path) -> None:
    deep = "/srv/" + "a-very-long-name/" * 4 + "shop"
    session = user / ".claude/projects/-srv-shop/new.jsonl"
    lines = session.read_text(encoding="utf-8").splitlines()
    session.write_text("\n".join(json.dumps(json.loads(line) | {"cwd": deep}) for line in lines), encoding="utf-8")

    screen = run_in_terminal(["context"], work, keys={QUESTION: "q\n"}, variables={"HOME": str(user), **NO_OTHERS})

    assert " …/a-very-long-name/shop\n" in screen.text
    assert deep not in screen.text


def test_number_takes_another_transcript(work: Path, user: Path) -> None:
    screen = run_in_terminal(
        ["context"], work, rows=90, keys={QUESTION: "2\n"}, variables={"HOME": str(user), **NO_OTHERS}
    )

    assert "old.jsonl: pi" in screen.text.replace("\n", " ")


def test_dot_shows_the_request_of_this_directory(work: Path, user: Path) -> None:
    screen = run_in_terminal(
        ["context"], work, rows=90, keys={QUESTION: ".\n"}, variables={"HOME": str(user), **NO_OTHERS}
    )

    assert "ZONE" in screen.text


def test_answer_that_is_none_of_them_is_asked_again_and_then_refused(work: Path, user: Path) -> None:
    screen = run_in_terminal(
        ["context"], work, rows=90, keys={QUESTION: "7\nx\n3\n"}, variables={"HOME": str(user), **NO_OTHERS}
    )

    assert screen.code == 2
    assert screen.text.count(QUESTION) == 3
    assert "'x' is not a number from 1 to 2." in screen.text
    assert "'3' is not one of them" in screen.text


def test_quitting_shows_nothing(work: Path, user: Path) -> None:
    screen = run_in_terminal(
        ["context"], work, rows=90, keys={QUESTION: "q\n"}, variables={"HOME": str(user), **NO_OTHERS}
    )

    assert screen.code == 0
    assert "ROLE" not in screen.text


def test_machine_without_transcripts_is_told_whose_were_looked_for(work: Path, tmp_path: Path) -> None:
    screen = run_in_terminal(["context"], work, rows=90, variables={"HOME": str(tmp_path / "nobody"), **NO_OTHERS})

    text = screen.text.replace("\n", " ")
    assert screen.code == 0
    assert "No transcripts of Claude Code, Codex, Gemini CLI, pi, " in text
    assert " were found. This is what a request from here would send." in text
    assert "`nexus context FILE`" in text
    assert "ZONE" in text


@pytest.mark.parametrize("arguments", [["-C", "."], ["--tree"], ["--json"], ["--as", "claude"]])
def test_other_arguments_ask_for_the_request_and_offer_nothing(work: Path, user: Path, arguments: list[str]) -> None:
    screen = run_in_terminal(["--no-pager", "context", *arguments], work, variables={"HOME": str(user), **NO_OTHERS})

    assert screen.code == 0
    assert QUESTION not in screen.text


def test_without_a_terminal_the_newest_is_named_with_its_command_and_not_taken(
    cli: Cli, user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"HOME": str(user), **NO_OTHERS}.items():
        monkeypatch.setenv(name, value)

    outcome = cli("context")

    assert "ZONE" in outcome.out
    assert "ROLE" not in outcome.out
    assert f"`nexus context {user}/.claude/projects/-srv-shop/new.jsonl`" in outcome.err


def test_hostile_directory_of_a_transcript_is_escaped(work: Path, tmp_path: Path) -> None:
    line = json.dumps({"type": "user", "cwd": "/srv/\x1b]0;owned\x07[bold]x[/bold]", "message": {"role": "user"}})
    write_files(tmp_path / "person", {".claude/projects/-srv/a.jsonl": line + "\n"})

    screen = run_in_terminal(
        ["context"],
        work,
        columns=120,
        keys={QUESTION: "q\n"},
        variables={"HOME": str(tmp_path / "person"), **NO_OTHERS},
    )

    assert "\x1b]0" not in screen.written
    assert "/srv/\\x1b]0;owned\\x07[bold]x[/bold]" in screen.text
