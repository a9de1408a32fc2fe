"""`nexus session export`."""

from __future__ import annotations

import io
import json
import stat
import sys
from pathlib import Path

import pytest

from nexus_core import Nexus
from tests.cli.session.conftest import Talk
from tests.conftest import Cli
from tests.transcripts.support import SAMPLES

CLAUDE = str(SAMPLES / "claude.jsonl")


def test_a_session_goes_elsewhere_and_comes_back(cli: Cli, talk: Talk, work: Path) -> None:
    talk("s", "one", "two")

    written = cli("session", "export", "s", "-o", "s.jsonl")
    cli("session", "import", "s.jsonl", "--ledger", "other.db")

    assert written.code == 0
    assert "Wrote s to s.jsonl: " in written.err
    assert cli("session", "export", "s", "--ledger", "other.db").out == (work / "s.jsonl").read_text(encoding="utf-8")
    assert cli("ledger", "verify", "--ledger", "other.db").code == 0


@pytest.mark.parametrize("form", ["markdown", "html"])
def test_page_of_a_recorded_session_has_as_many_tokens_as_it_shows(cli: Cli, work: Path, form: str) -> None:
    messages = [{"role": "user", "content": "Why does the login fail?"}, {"role": "assistant", "content": "Because."}]
    (work / "m.jsonl").write_text("\n".join(map(json.dumps, messages)), encoding="utf-8")
    cli("session", "record", "s", "m.jsonl")

    shown = json.loads(cli("session", "show", "s", "--json").out)
    page = cli("session", "export", "s", "--format", form).out

    assert f"~{shown['session']['tokens']} tokens" in page
    for turn in shown["turns"]:
        assert f"~{sum(step['tokens'] for step in turn['steps'])} tokens" in page


def test_only_its_owner_may_read_it(cli: Cli, talk: Talk, work: Path) -> None:
    talk("s", "one")

    cli("session", "export", "s", "-o", "s.jsonl")

    assert stat.S_IMODE((work / "s.jsonl").stat().st_mode) == 0o600


def test_a_file_that_is_there_is_replaced_only_by_force(cli: Cli, talk: Talk, work: Path) -> None:
    talk("s", "one")
    (work / "s.jsonl").write_text("mine", encoding="utf-8")

    refused = cli("session", "export", "s", "-o", "s.jsonl")

    assert refused.code == 3
    assert "--force" in refused.err
    assert (work / "s.jsonl").read_text(encoding="utf-8") == "mine"
    assert cli("session", "export", "s", "-o", "s.jsonl", "--force").code == 0
    assert (work / "s.jsonl").read_text(encoding="utf-8").startswith('{"nexus_session":1')


def test_nothing_is_written_through_a_link_or_into_a_directory(cli: Cli, talk: Talk, work: Path) -> None:
    talk("s", "one")
    (work / "target").write_text("mine", encoding="utf-8")
    (work / "link").symlink_to("target")

    assert cli("session", "export", "s", "-o", "link", "--force").code == 3
    assert cli("session", "export", "s", "-o", ".").code == 3
    assert cli("session", "export", "s", "-o", "no/such/place").code == 3
    assert (work / "target").read_text(encoding="utf-8") == "mine"


def test_forks_go_with_it(cli: Cli) -> None:
    cli("session", "import", CLAUDE)

    alone, together = (
        cli("session", "export", "claude-bakery-1").out,
        cli("session", "export", "claude-bakery-1", "--with-forks").out,
    )

    assert len(json.loads(alone.splitlines()[0])["sessions"]) == 1
    assert len(json.loads(together.splitlines()[0])["sessions"]) == 3


@pytest.mark.parametrize("api", ["openai", "responses", "anthropic", "gemini", "neutral"])
def test_messages_are_written_for_other_programs(cli: Cli, work: Path, api: str) -> None:
    cli("session", "import", CLAUDE)

    outcome = cli("session", "export", "claude-bakery-1", "--api", api, "-o", "m.json")

    assert outcome.code == 0
    assert isinstance(json.loads((work / "m.json").read_text(encoding="utf-8")), list)
    assert cli("check", "m.json", "--api", api).code == 0
    assert cli("context", "m.json").code == 0


def test_what_was_compacted_is_written_where_everything_is_wanted(cli: Cli) -> None:
    cli("session", "import", CLAUDE)

    short = json.loads(cli("session", "export", "claude-bakery-1", "--api", "openai").out)
    long = json.loads(cli("session", "export", "claude-bakery-1", "--api", "openai", "--include-compacted").out)

    assert short[0]["content"].startswith("[Previous conversation summary]")
    assert long[0]["content"] == "Which loaves cost more than four francs?"


def test_the_file_that_was_imported_is_given_back(cli: Cli, work: Path, talk: Talk) -> None:
    cli("session", "import", CLAUDE)
    talk("s", "one")

    assert cli("session", "export", "claude-bakery-1", "--format", "original", "-o", "o.jsonl").code == 0

    assert (work / "o.jsonl").read_bytes() == (SAMPLES / "claude.jsonl").read_bytes()
    refused = cli("session", "export", "s", "--format", "original", "-o", "p.jsonl")
    assert refused.code == 2
    assert "was not imported" in refused.err


def test_facts_about_a_file_are_told_in_json(cli: Cli, talk: Talk, work: Path) -> None:
    talk("s", "one")

    facts = json.loads(cli("session", "export", "s", "-o", "s.jsonl", "--json").out)

    assert facts["schema"] == 1
    assert (facts["session"], facts["format"], facts["bytes"]) == ("s", "nexus", (work / "s.jsonl").stat().st_size)


@pytest.mark.parametrize(
    "arguments", [("--json",), ("--format", "original"), ("--format", "opnai"), ("--format", "nexus", "--json")]
)
def test_what_makes_no_sense_is_refused(cli: Cli, talk: Talk, arguments: tuple[str, ...]) -> None:
    talk("s", "one")

    assert cli("session", "export", "s", *arguments).code == 2


def test_a_session_that_is_not_there_is_named_with_one_that_is(cli: Cli, talk: Talk) -> None:
    talk("auth-bug", "one")

    outcome = cli("session", "export", "auth-bgu")

    assert outcome.code == 2
    assert "did you mean 'auth-bug'" in outcome.err


def test_a_terminal_that_knows_no_other_signs_gets_json_all_the_same(
    cli: Cli, nexus: Nexus, monkeypatch: pytest.MonkeyPatch
) -> None:
    nexus.session("s", model="claude-sonnet-4").ask("Warum? 漢字 \x1b[31m\u202e")
    printed = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", printed)

    cli("session", "export", "s")

    printed.flush()
    text = printed.buffer.getvalue().decode("ascii")
    monkeypatch.undo()
    assert any("漢字" in json.dumps(json.loads(line), ensure_ascii=False) for line in text.splitlines())
    assert "\x1b" not in text


@pytest.mark.acceptance("T10")
def test_messages_are_exported_without_secrets_unless_they_are_wanted(cli: Cli, talk: Talk) -> None:
    secret = "AK" + "IA" + "ABCDEFGHIJKLMNOP"
    talk("s", f"use {secret}")

    out = cli("session", "export", "s", "--api", "openai").out

    assert secret not in out
    assert "use [redacted:aws-key]" in out
    assert secret in cli("session", "export", "s", "--api", "openai", "--with-secrets").out


@pytest.mark.parametrize("form", ["markdown", "html"])
def test_document_is_the_same_in_a_file_and_on_standard_output(cli: Cli, work: Path, form: str) -> None:
    cli("session", "import", CLAUDE)

    written = cli("session", "export", "claude-bakery-1", "--format", form, "-o", "page", "--json")
    printed = cli("session", "export", "claude-bakery-1", "--format", form)

    assert json.loads(written.out)["format"] == form
    assert printed.out == (work / "page").read_text(encoding="utf-8")
    assert "claude-bakery-1" in printed.out


@pytest.mark.parametrize("form", ["markdown", "html"])
def test_document_has_no_secrets_unless_asked_for(cli: Cli, talk: Talk, form: str) -> None:
    key = "sk-ant-api03-" + "A1b2C3d4" * 12
    talk("s", f"my key is {key}")

    assert key not in cli("session", "export", "s", "--format", form).out
    assert key in cli("session", "export", "s", "--format", form, "--with-secrets").out


def test_page_on_an_ascii_terminal_has_references_for_other_characters(
    cli: Cli, talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk("s", "Grüße")
    monkeypatch.setattr("nexus_core.cli.commands.session.export._can_print_unicode", lambda: False)

    assert "Gr&#252;&#223;e" in cli("session", "export", "s", "--format", "html").out


def test_document_options_that_do_not_fit_are_refused(cli: Cli, talk: Talk) -> None:
    talk("s", "one")

    assert cli("session", "export", "s", "--format", "html", "--with-forks").code == 2
    assert cli("session", "export", "s", "--format", "html", "--api", "openai").code == 2
    assert "html" in cli("session", "export", "s", "--format", "htm").err
