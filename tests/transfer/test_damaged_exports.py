"""Rejection of exports that are incomplete or were changed."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nexus_core.errors import FileError, LedgerError
from nexus_core.ledger.in_memory import MemoryLedger
from nexus_core.transfer.exporter import export_session, import_export, read_export
from tests.effort import examples
from tests.session.support import add_turns
from tests.transfer.support import import_sample


def export(name: str = "claude.jsonl") -> list[str]:
    ledger = MemoryLedger()
    label = import_sample(ledger, name).label
    return list(export_session(ledger, label, with_forks=True))


LINES = export()
STEP = next(place for place, line in enumerate(LINES) if line.startswith('{"step"'))
BLOB = next(place for place, line in enumerate(LINES) if line.startswith('{"blob"'))


def changed(place: int, change: Callable[[dict[str, Any]], Any]) -> str:
    """The export with a line that somebody has changed."""
    body = json.loads(LINES[place])
    change(body)
    return "".join(
        [*LINES[:place], json.dumps(body, ensure_ascii=False, separators=(",", ":")) + "\n", *LINES[place + 1 :]]
    )


def refusal(text: str) -> str:
    with pytest.raises(FileError) as caught:
        read_export(text, "export.jsonl")
    assert str(caught.value.where).startswith("export.jsonl:")
    return caught.value.what


def test_changed_text_is_rejected_with_its_line() -> None:
    text = "".join(LINES).replace("Which loaves", "What loaves")

    assert "was changed since it was exported" in refusal(text)
    with pytest.raises(FileError) as caught:
        read_export(text, "export.jsonl")
    assert caught.value.where == f"export.jsonl:{STEP + 1}"


@pytest.mark.parametrize(
    ("place", "change", "what"),
    [
        (0, lambda body: body.update(nexus_session=2), "expected version 1, not 2"),
        (0, lambda body: body.update(sessions=[]), "it was changed"),
        (0, lambda body: body["sessions"][0].pop("label"), "of another kind"),
        (0, lambda body: body["sessions"][0].update(label="other"), "it was changed"),
        (BLOB, lambda body: body.update(base64="AAAA"), "was changed since"),
        (BLOB, lambda body: body.update(base64=7), "of another kind"),
        (STEP, lambda body: body.update(tokens=1), "was changed since"),
        (STEP, lambda body: body.update(step="../../etc"), "of another kind"),
        (STEP, lambda body: body.update(created="now"), "of another kind"),
        (STEP, lambda body: body.update(messages=7), "of another kind"),
        (STEP, lambda body: body.update(messages=[{"nexus": 9}]), "expected version 1"),
        (STEP, lambda body: body.update(kind="spell"), "unknown kind of step"),
        (STEP, lambda body: body.pop("data"), "of another kind"),
        (STEP + 1, lambda body: body.update(parent=None), "was changed since"),
        (STEP + 1, lambda body: body.update(parent="0" * 26), "is missing"),
        (len(LINES) - 1, lambda body: body.update(end="0"), "it was changed"),
    ],
)
def test_changed_field_is_rejected(place: int, change: Callable[[dict[str, Any]], Any], what: str) -> None:
    assert what in refusal(changed(place, change))


@pytest.mark.parametrize("end", range(1, len(LINES)))
def test_truncated_export_is_rejected(end: int) -> None:
    assert "its end is missing" in refusal("".join(LINES[:end]))
    assert "cannot be used" in refusal("".join(LINES[:end]) + LINES[end][:-5])


@pytest.mark.parametrize("place", range(1, len(LINES) - 1))
def test_missing_or_repeated_line_is_rejected(place: int) -> None:
    refusal("".join([*LINES[:place], *LINES[place + 1 :]]))
    refusal("".join([*LINES[:place], LINES[place], *LINES[place:]]))


def test_text_after_the_end_is_rejected() -> None:
    assert "after its end" in refusal("".join(LINES) + LINES[STEP])


def test_export_with_crlf_line_ends_is_accepted() -> None:
    assert (
        read_export("".join(LINES).replace("\n", "\r\n"), "x").steps.keys()
        == read_export("".join(LINES), "x").steps.keys()
    )


def test_import_keeps_another_step_with_the_same_id() -> None:
    ledger = MemoryLedger()
    add_turns(ledger, "s", "1")
    (step,) = ledger.steps()
    other = MemoryLedger(name=lambda _: step.id)
    add_turns(other, "s", "another 1")
    before = list(other.steps())

    with pytest.raises(LedgerError, match=f"there is another step {step.id}"):
        import_export(other, read_export("".join(export_session(ledger, "s")), "x"))

    assert list(other.steps()) == before


@settings(deadline=None, max_examples=examples(60))
@given(st.integers(0, len("".join(LINES)) - 1), st.characters(exclude_categories=["Cs"]))
def test_any_changed_character_is_rejected(place: int, sign: str) -> None:
    text = "".join(LINES)
    spoiled = text[:place] + sign + text[place + 1 :]
    if spoiled == text or (sign in "\r\n \t" and spoiled.strip() == text.strip()):
        return

    refusal(spoiled)


@settings(deadline=None, max_examples=examples(40))
@given(st.text(max_size=60))
def test_any_other_text_is_rejected(text: str) -> None:
    refusal('{"nexus_session":1' + text)
