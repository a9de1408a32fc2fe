"""`nexus session export --format claude-code`, `codex`, `gemini-cli`, `opencode`, `pi` and `atif`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from nexus_core import Nexus
from nexus_core.transcripts.read import read_transcript
from nexus_core.transcripts.writer import ExportReport, PortableConversation, ResumeHint, TranscriptWriter
from tests.cli.session.conftest import Talk
from tests.conftest import ROOT, Cli
from tests.session.support import TOOLS, calls, says
from tests.transcripts.support import SAMPLES
from tests.transfer.round_trips import WRITERS

CLAUDE = str(SAMPLES / "claude.jsonl")
COUNTS = re.compile(r"(?:count_left_out|count_changed)\((.*)\)")
KINDS = re.compile(r'"([a-z-]+)"')
HOW_TO = (ROOT / "docs/how-to/continue-in-another-agent.md").read_text(encoding="utf-8")
REFERENCE = (ROOT / "docs/reference/session-exports.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("form", WRITERS)
def test_a_session_is_written_for_another_agent_and_imported_again(
    cli: Cli, talk: Talk, nexus: Nexus, form: str
) -> None:
    talk("s", "one", "two")

    written = cli("session", "export", "s", "--format", form, "-o", "out")
    imported = cli("session", "import", "out", "--name", "again")

    assert (written.code, imported.code) == (0, 0)
    assert "4 messages, 0 tool calls." in written.err
    assert [each.content for each in nexus.session("again").messages] == ["one", "re one", "two", "re two"]


def test_the_report_counts_what_was_left_out_and_says_how_to_continue(cli: Cli, work: Path) -> None:
    cli("session", "import", CLAUDE)

    told = cli("session", "export", "claude-bakery-1", "--format", "codex", "-o", "r.jsonl").err
    facts = json.loads(
        cli("session", "export", "claude-bakery-1", "--format", "codex", "-o", "r.jsonl", "--force", "--json").out
    )

    session = json.loads((work / "r.jsonl").read_text(encoding="utf-8").splitlines()[0])["payload"]["id"]
    assert "Left out: 5 cache-write-tokens, 5 cost, 5 model-name, 1 reasoning." in told
    assert f"Continue with: codex resume {session}" in told
    assert facts["left_out"] == {"cache-write-tokens": 5, "cost": 5, "model-name": 5, "reasoning": 1}
    assert facts["changed"] == {}
    assert facts["expected_at"].startswith("~/.codex/sessions/2026/03/02/rollout-2026-03-02T09-00-00-")
    assert facts["command"] == f"codex resume {session}"


def test_the_how_to_shows_what_is_printed_and_lists_every_format(cli: Cli) -> None:
    cli("session", "import", CLAUDE)

    printed = cli("session", "export", "claude-bakery-1", "--format", "codex", "-o", "rollout.jsonl").err

    assert f"--format codex -o rollout.jsonl\n{printed}```" in HOW_TO
    assert [form for form in WRITERS if f"| `{form}` |" not in HOW_TO] == []


def test_the_reference_lists_every_kind_that_a_report_counts() -> None:
    writers = [
        *ROOT.glob("nexus_core/transcripts/*writer.py"),
        *ROOT.glob("plugins/nexus_plugins/transcripts/*_writer.py"),
    ]
    sources = [path.read_text(encoding="utf-8") for path in (*writers, ROOT / "nexus_core/transfer/agent_export.py")]
    counted = {kind for text in sources for call in COUNTS.findall(text) for kind in KINDS.findall(call)}

    assert len(counted) > 15
    assert {kind for kind in counted if f"`{kind}`" not in REFERENCE} == set()


def test_the_report_goes_to_standard_error_if_the_file_goes_to_standard_output(cli: Cli, talk: Talk) -> None:
    talk("s", "one")

    outcome = cli("session", "export", "s", "--format", "opencode")

    assert json.loads(outcome.out)["info"]["title"] == "s"
    assert "Continue with: opencode import FILE && opencode --session ses_" in outcome.err


def test_nothing_is_written_where_the_agent_expects_it(cli: Cli, talk: Talk, nexus_home: Path) -> None:
    talk("s", "one")
    before = sorted(nexus_home.parent.rglob("*"))

    cli("session", "export", "s", "--format", "claude-code")

    assert not [path for path in sorted(nexus_home.parent.rglob("*")) if path not in before and ".claude" in str(path)]


def test_an_open_turn_gets_a_result_for_each_call(cli: Cli, nexus: Nexus) -> None:
    session = nexus.session("s", model="claude-sonnet-4", tools=TOOLS)
    session.ask("Look.")
    session.record(calls("c1", "c2"))

    outcome = cli("session", "export", "s", "--format", "claude-code")
    back = read_transcript(outcome.out)

    assert "Changed: 2 open-call." in outcome.err
    assert [result.call_id for result in back.messages[-1].tool_results] == ["c1", "c2"]
    assert session.is_open


def test_a_compacted_session_is_whole_and_an_undone_compaction_is_not_in_it(cli: Cli, talk: Talk) -> None:
    session = talk("s", *(f"Question {number}: {'why is that so? ' * 30}" for number in range(6)))
    cli("session", "compact", "s")

    compacted = read_transcript(cli("session", "export", "s", "--format", "pi").out)
    session.undo()
    undone = read_transcript(cli("session", "export", "s", "--format", "pi").out)

    assert [message.content for message in compacted.messages] == [message.content for message in undone.messages]
    assert len(compacted.messages) == 12
    assert len(compacted.compactions) == 1
    assert undone.compactions == ()


def test_a_fork_is_written_without_its_origins_later_turns(cli: Cli, talk: Talk) -> None:
    session = talk("s", "one")
    fork = session.fork("other")
    talk("s", "two")
    fork.ask("three")
    fork.record(says("re three", name="msg 3"))

    back = read_transcript(cli("session", "export", "other", "--format", "gemini-cli").out)

    assert [message.content for message in back.messages] == ["one", "re one", "three", "re three"]


def test_messages_that_were_taken_back_are_not_written(cli: Cli, work: Path) -> None:
    lines = (SAMPLES / "gemini_cli.jsonl").read_text(encoding="utf-8").splitlines()
    rewound = next(number for number, line in enumerate(lines) if "$rewindTo" in line)
    (work / "g.jsonl").write_text("\n".join(lines[:rewound]) + "\n", encoding="utf-8")
    cli("session", "import", "g.jsonl", "--name", "g")
    (work / "g.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    cli("session", "import", "g.jsonl", "--name", "g")

    written = read_transcript(cli("session", "export", "g", "--format", "gemini-cli").out)
    original = read_transcript("\n".join(lines))

    assert [message.content for message in written.messages] == [message.content for message in original.messages]


@pytest.mark.parametrize("form", ["claude-code", "atif"])
def test_files_of_agents_have_no_secrets_unless_asked_for(cli: Cli, talk: Talk, form: str) -> None:
    key = "sk-ant-api03-" + "A1b2C3d4" * 12
    talk("s", f"my key is {key}")

    redacted = cli("session", "export", "s", "--format", form)

    assert key not in redacted.out
    assert "Changed: 2 secret." in redacted.err
    assert key in cli("session", "export", "s", "--format", form, "--with-secrets").out


def test_a_session_without_messages_is_refused(cli: Cli, nexus: Nexus) -> None:
    nexus.ledger.create("empty")

    outcome = cli("session", "export", "empty", "--format", "codex")

    assert outcome.code != 0
    assert "no message that another agent could continue" in outcome.err


def test_an_ascii_terminal_gets_escapes(cli: Cli, talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    talk("s", "Grüße 🥖")
    monkeypatch.setattr("nexus_core.cli.commands.session.export._can_print_unicode", lambda: False)

    out = cli("session", "export", "s", "--format", "pi").out

    assert out.isascii()
    assert read_transcript(out).messages[0].content == "Grüße 🥖"


def test_options_of_other_formats_are_refused(cli: Cli, talk: Talk) -> None:
    talk("s", "one")

    assert cli("session", "export", "s", "--format", "codex", "--with-forks").code == 2
    assert cli("session", "export", "s", "--format", "codex", "--include-compacted").code == 2
    assert cli("session", "export", "s", "--format", "codex", "--api", "openai").code == 2


def test_the_name_of_an_api_that_is_almost_an_agents_names_both(cli: Cli, talk: Talk) -> None:
    talk("s", "one")

    outcome = cli("session", "export", "s", "--format", "gemini")

    assert "use `--api gemini`, or `--format gemini-cli` for that agent" in outcome.err
    assert "agent" not in cli("session", "export", "s", "--format", "anthropic").err


def test_an_unknown_format_lists_formats_only(cli: Cli, talk: Talk) -> None:
    talk("s", "one")

    unknown = cli("session", "export", "s", "--format", "nope")
    similar = cli("session", "export", "s", "--format", "codx")

    assert (unknown.code, similar.code) == (2, 2)
    assert [form for form in ("nexus", "original", "markdown", "html", *WRITERS) if form not in unknown.err] == []
    assert "anthropic" not in unknown.err
    assert "did you mean 'codex'?" in similar.err


def test_directories_are_created_for_an_agents_file_only(cli: Cli, talk: Talk, work: Path) -> None:
    talk("s", "one")

    written = cli("session", "export", "s", "--format", "codex", "-o", "2026/03/02/r.jsonl")
    refused = cli("session", "export", "s", "-o", "nowhere/s.jsonl")

    assert (written.code, refused.code) == (0, 3)
    assert read_transcript((work / "2026/03/02/r.jsonl").read_text(encoding="utf-8")).messages[0].content == "one"
    assert not (work / "nowhere").exists()


def write_lines(conversation: PortableConversation, report: ExportReport) -> str:
    report.count_left_out("everything", len(conversation.items))
    return f"{conversation.name} in {conversation.cwd}\n"


SECOND = TranscriptWriter(write_lines, lambda _conversation: ResumeHint("", "notes FILE"))
"""A writer that another plugin could have."""


def test_a_plugin_adds_a_writer_with_its_format(
    cli: Cli, talk: Talk, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from nexus_core.transcripts.base import TranscriptFormat
    from nexus_plugins.transcripts import _sharegpt

    form: TranscriptFormat = _sharegpt.FORMAT._replace(writer=SECOND)
    monkeypatch.setattr(_sharegpt, "FORMAT", form)
    talk("s", "one")

    outcome = cli("session", "export", "s", "--format", "sharegpt", "-o", "a b.txt")

    assert (work / "a b.txt").read_text(encoding="utf-8") == f"s in {work}\n"
    assert "Left out: 2 everything." in outcome.err
    assert "Continue with: notes 'a b.txt'" in outcome.err
