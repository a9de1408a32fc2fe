"""The pages about import and export agree with the program."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from nexus_core import Nexus
from nexus_core.ledger.codec import compute_blob_digest
from tests.conftest import ROOT, Cli
from tests.transcripts.support import SAMPLES
from tests.transfer.support import assistant, format_lines, user

HOW_TO = (ROOT / "docs/how-to/import-transcripts.md").read_text(encoding="utf-8")
TRANSCRIPTS = (ROOT / "docs/reference/transcripts.md").read_text(encoding="utf-8")
EXPORTS = (ROOT / "docs/reference/session-exports.md").read_text(encoding="utf-8")


def shape(value: Any) -> Any:
    """The names of the fields, all the way down."""
    if isinstance(value, dict):
        return {key: shape(item) for key, item in value.items() if key not in ("outcomes", "repaired")}
    return [shape(value[0])] if isinstance(value, list) and value else type(value).__name__


def test_example_of_the_import_page_runs(
    cli: Cli, work: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (work / "s.jsonl").write_text(format_lines(user("u", None), assistant("a", "u")), encoding="utf-8")
    cli("session", "import", "s.jsonl", "--name", "claude-2b4ed4c0")
    monkeypatch.chdir(work)
    (program,) = re.findall(r"```python\n(.*?)```", HOW_TO, re.DOTALL)

    exec(program, {})  # noqa: S102 - our own page

    assert capsys.readouterr().out == "2 messages of history\n"


def test_import_report_has_the_documented_fields(cli: Cli, work: Path) -> None:
    (*_, page) = re.findall(r"```json\n(.*?)```", TRANSCRIPTS, re.DOTALL)
    (work / "s.jsonl").write_text(format_lines(user("u", None), "{broken", assistant("a", "u")), encoding="utf-8")

    told = json.loads(cli("session", "import", "s.jsonl", "--json").out)

    assert shape(told) == shape(json.loads(page))


def test_export_has_the_documented_lines(cli: Cli) -> None:
    cli("session", "import", str(SAMPLES / "claude.jsonl"))
    (page,) = re.findall(r"```text\n(.*?)```", EXPORTS, re.DOTALL)

    lines = cli("session", "export", "claude-bakery-1").out.splitlines()

    assert [re.findall(r'"(\w+)":', line)[0] for line in page.splitlines()] == ["nexus_session", "blob", "step", "end"]
    for line in (lines[0], lines[-2]):
        body = json.loads(line)
        for name in {*body, *(body["sessions"][0] if "sessions" in body else ())}:
            assert f'"{name}":' in page
    assert list(json.loads(lines[-1])) == ["end", "blobs", "steps"]
    assert json.loads(lines[-1])["end"] == compute_blob_digest("".join(f"{line}\n" for line in lines[:-1]).encode())


def test_step_digest_is_computed_as_documented(cli: Cli, work: Path, nexus_home: Path) -> None:
    cli("session", "import", str(SAMPLES / "claude.jsonl"))
    chain = ""
    with Nexus(work, home=nexus_home) as nexus:
        record = nexus.ledger.session("claude-bakery-1")
        assert record is not None
        steps = nexus.ledger.thread(str(record.tip))
    for step in steps:
        facts = [step.id, step.parent, step.turn, step.kind, int(step.closes), step.tokens, step.counter, step.created]
        row = step.row  # type: ignore[attr-defined]
        text = "\n".join([json.dumps(facts, separators=(",", ":")), row.messages, row.data])

        assert compute_blob_digest(text.encode()) == step.digest
        chain = compute_blob_digest(f"{chain}{step.digest}".encode())
        assert chain == step.chain


def test_every_option_is_documented() -> None:
    for option in ("--from", "--list", "--name", "--dry-run", "--json"):
        assert option in TRANSCRIPTS + HOW_TO
    for option in ("-o FILE", "--format", "--api", "--with-forks", "--include-compacted", "--force"):
        assert option in EXPORTS
