"""`nexus tokens`."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from nexus_core.context import TiktokenCounter
from nexus_core.testing import write_files
from tests.conftest import ROOT, Cli, InstallPlugin


@pytest.fixture
def standard_input(monkeypatch: pytest.MonkeyPatch) -> io.BytesIO:
    content = io.BytesIO()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(content))
    return content


def rows(out: str) -> list[list[str]]:
    return [line.split(maxsplit=3) for line in out.splitlines()]


def test_a_file_is_counted_and_the_counter_named(cli: Cli, work: Path) -> None:
    write_files(work, {"hello.txt": "Hello, world!"})

    outcome = cli("tokens", "hello.txt", "-m", "gpt-4o")

    assert (outcome.code, outcome.err) == (0, "")
    assert rows(outcome.out) == [
        ["TOKENS", "BASIS", "COUNTER", "FILE"],
        ["4", "exact", "tiktoken:o200k_base", "hello.txt"],
    ]


def test_the_second_time_the_count_is_cached(cli: Cli, work: Path) -> None:
    write_files(work, {"hello.txt": "Hello, world!"})

    first, second = (cli("tokens", "hello.txt", "--model", "gpt-4o") for _ in range(2))

    assert [rows(outcome.out)[1][1] for outcome in (first, second)] == ["exact", "cached"]


def test_where_the_model_is_not_known_no_count_is_exact(cli: Cli, work: Path) -> None:
    write_files(work, {"hello.txt": "Hello, world!"})

    counted = json.loads(cli("tokens", "hello.txt", "--json").out)

    assert (counted["counter"], counted["exact"], counted["files"][0]["basis"]) == (
        "tiktoken:cl100k_base",
        False,
        "estimated",
    )


def test_another_process_finds_the_count_without_loading_the_tokeniser(work: Path, nexus_home: Path) -> None:
    write_files(work, {"hello.txt": "Hello, world!"})
    code = (
        "import sys; from nexus_core.cli.run import run; code = run(sys.argv[1:]);"
        "print(not {'tiktoken', 'splintr'}.isdisjoint(sys.modules), file=sys.stderr)"
    )

    def call() -> tuple[str, str]:
        done = subprocess.run(
            [sys.executable, "-c", code, "tokens", "hello.txt", "-m", "gpt-4o"],
            cwd=work,
            env={**os.environ, "NEXUS_HOME": str(nexus_home)},
            capture_output=True,
            text=True,
            check=True,
        )
        return rows(done.stdout)[1][1], done.stderr.strip()

    assert [call(), call()] == [("exact", "True"), ("cached", "False")]


def test_several_files_have_a_total(cli: Cli, work: Path) -> None:
    write_files(work, {"a.txt": "one", "b.txt": "one two", "c.txt": ""})

    lines = rows(cli("tokens", "a.txt", "b.txt", "c.txt").out)

    assert [line[0] for line in lines[1:]] == ["1", "2", "0", "3"]
    assert lines[-1][3] == "total of 3 files"


@pytest.mark.parametrize("model", ["claude-sonnet-4", "gemini-2.5-pro", "nobody-knows-me"])
def test_a_model_without_a_public_tokeniser_is_estimated(cli: Cli, work: Path, model: str) -> None:
    write_files(work, {"hello.txt": "Hello, world!"})

    outcomes = [cli("tokens", "hello.txt", "-m", model) for _ in range(2)]

    assert [rows(outcome.out)[1][1] for outcome in outcomes] == ["estimated"] * 2


def test_without_a_model_the_configured_one_counts(cli: Cli, work: Path) -> None:
    write_files(work, {"a.txt": "x", ".nexus3/config.json": '{"provider": {"model": "gpt-4o"}}'})

    assert rows(cli("tokens", "a.txt").out)[1][2] == "tiktoken:o200k_base"


def test_standard_input_is_counted_when_it_is_named_or_nothing_is(cli: Cli, standard_input: io.BytesIO) -> None:
    for arguments in ((), ("-",)):
        standard_input.truncate(0)
        standard_input.seek(0)
        standard_input.write("数える".encode())
        standard_input.seek(0)

        outcome = cli("tokens", *arguments)

        assert rows(outcome.out)[1][::3] == [str(TiktokenCounter().count("数える")), "-"]


def test_nothing_to_count_is_a_usage_error(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    class Keyboard(io.StringIO):
        def isatty(self) -> bool:
            return True

    for stream in (Keyboard(), None):
        monkeypatch.setattr(sys, "stdin", stream)
        outcome = cli("tokens")

        assert outcome.code == 2
        assert "name files, or pipe text into it" in outcome.err


def test_json_has_a_schema_and_everything_the_table_says(cli: Cli, work: Path) -> None:
    write_files(work, {"a.txt": "Hello, world!", "b.txt": "x"})

    outcome = cli("tokens", "a.txt", "b.txt", "missing", "--json", "-m", "o3")

    assert json.loads(outcome.out) == {
        "schema": 1,
        "model": "o3",
        "counter": "tiktoken:o200k_base",
        "exact": True,
        "error": 0.0,
        "files": [
            {"file": "a.txt", "bytes": 13, "tokens": 4, "basis": "exact"},
            {"file": "b.txt", "bytes": 1, "tokens": 1, "basis": "exact"},
        ],
        "refused": [{"file": "missing", "reason": "no such file"}],
        "total": {"tokens": 5, "basis": "exact"},
    }


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("latin", b"caf\xe9", "not UTF-8: byte 0xe9 at offset 3"),
        ("binary", b"MZ\0\1", "not text: a zero byte at offset 2"),
        ("missing", None, "no such file"),
        (".", None, "is a directory"),
    ],
)
def test_what_is_no_text_is_named_and_the_others_are_counted(
    cli: Cli, work: Path, name: str, content: bytes | None, reason: str
) -> None:
    write_files(work, {"good.txt": "Hello, world!"})
    if content is not None:
        (work / name).write_bytes(content)

    outcome = cli("tokens", name, "good.txt")

    assert outcome.code == (2 if reason == "no such file" else 3)
    assert outcome.err.startswith(f"Error: {reason}\n  at {name}\n")
    assert rows(outcome.out)[1][0] == "4"


def test_a_file_that_cannot_be_counted_alone_prints_no_table(cli: Cli) -> None:
    outcome = cli("tokens", "missing")

    assert (outcome.code, outcome.out) == (2, "")


def test_a_missing_file_beside_an_unreadable_one_exits_with_3(cli: Cli, work: Path) -> None:
    (work / "binary").write_bytes(b"\0")

    assert cli("tokens", "missing", "binary").code == 3


def test_a_large_file_is_counted_in_parts_and_exactly(cli: Cli, work: Path) -> None:
    text = (ROOT / "tests/tokens/samples/english.txt").read_text() * 800  # two parts, and a bit
    write_files(work, {"large.txt": text})

    counted = json.loads(cli("tokens", "large.txt", "--model", "gpt-4", "--json").out)["files"][0]

    assert counted["tokens"] == TiktokenCounter().count(text)
    assert counted["basis"] == "exact"


def test_a_file_above_the_limit_is_refused(cli: Cli, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nexus_core.cli.input.MAX_INPUT_BYTES", 10)
    write_files(work, {"a.txt": "x" * 11})

    assert "larger than 10 bytes" in cli("tokens", "a.txt").err


def test_files_are_looked_for_in_the_directory_one_works_in(cli: Cli, work: Path) -> None:
    write_files(work, {"sub/a.txt": "Hello, world!"})

    assert rows(cli("-C", "sub", "tokens", "a.txt").out)[1][0] == "4"


def test_a_plugin_may_count(cli: Cli, work: Path, install_plugin: InstallPlugin) -> None:
    install_plugin(
        "words",
        "from nexus_core import hookimpl\n"
        "from nexus_core.plugin import TextCounter\n"
        "class Words(TextCounter):\n"
        "    name, exact = 'words', True\n"
        "    def count(self, text): return len(text.split())\n"
        "@hookimpl\n"
        "def nexus_token_counter(): return Words()\n",
    )
    write_files(work, {"a.txt": "three short words"})

    assert rows(cli("tokens", "a.txt").out)[1] == ["3", "exact", "words", "a.txt"]


def test_names_that_steer_the_terminal_are_made_harmless(cli: Cli, work: Path) -> None:
    (work / "a\x1b[31m.txt").write_text("x")

    assert "\x1b" not in cli("tokens", "a\x1b[31m.txt").out


def test_a_model_that_is_only_guessed_is_told_and_its_tokens_are_estimates(cli: Cli, work: Path) -> None:
    write_files(work, {"a.txt": "a few words"})

    outcome = cli("tokens", "a.txt", "--model", "gpt-4oo")

    assert "did you mean 'gpt-4o'?" in outcome.err
    assert "estimated" in outcome.out


def test_an_estimate_says_how_far_it_may_be_off(cli: Cli, work: Path) -> None:
    write_files(work, {"a.txt": "Hello, world! " * 100})

    outcome = cli("tokens", "a.txt", "-m", "claude-sonnet-4")
    document = json.loads(cli("tokens", "a.txt", "-m", "claude-sonnet-4", "--json").out)

    assert "estimated ±10 %" in outcome.out
    assert (document["error"], document["exact"]) == (0.1, False)
