"""Every string comes back as it was, or as a declared rule has it, from every field of every ledger."""

from __future__ import annotations

import re

import pytest

from nexus_core.errors import SessionExistsError, UsageError
from nexus_core.ledger.ledger import StoreLedger
from nexus_core.types.ledger import NewStep
from nexus_core.types.messages import File, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from tests.conftest import ROOT
from tests.ledger.backends import tell
from tests.ledger.naughty import NAUGHTY


def whole(text: str) -> str:
    """The declared rule: halves of characters are joined, or become U+FFFD."""
    joined = re.sub("[\ud800-\udbff][\udc00-\udfff]", lambda pair: _character(pair.group()), text)
    return re.sub("[\ud800-\udfff]", "\ufffd", joined)


def _character(pair: str) -> str:
    return chr(0x10000 + (ord(pair[0]) - 0xD800) * 0x400 + ord(pair[1]) - 0xDC00)


def parts_of(text: str) -> tuple[Part, ...]:
    return (
        Text(text, {"extra": text, text: 1}),
        Reasoning(text=text, signature=text),
        ToolCall(text, text, {text: [text]}, raw=text),
        ToolResult(text, text),
        File(name=text, data=text),
        Opaque("x", {text: {text: text}, "data": text}),
    )


@pytest.mark.acceptance("R12")
def test_a_string_comes_back_from_every_field(ledger: StoreLedger) -> None:
    for number, text in enumerate(NAUGHTY):
        ledger.create(f"work {number}", data={text: text})
        new = NewStep(
            kind="turn",
            closes=True,
            messages=(Message("user", parts_of(text), name=text, extra={text: text}),),
            counter=text,
            data={text: text, "deep": [{text: text}]},
        )

        step = ledger.append(f"work {number}", new, after=None)

        kept = whole(text)
        read = ledger.step(step.id)
        assert read is not None
        assert read.messages == (Message("user", parts_of(kept), name=kept, extra={kept: kept}),)
        assert read.data == {kept: kept, "deep": [{kept: kept}]}
        assert read.counter == kept.replace("\0", "\ufffd")
        assert ledger.session(f"work {number}").data == {kept: kept}  # type: ignore[union-attr]
    assert list(ledger.verify()) == []


@pytest.mark.acceptance("R12", "T19")
def test_a_session_of_any_name_is_found_by_it_and_by_nothing_else(ledger: StoreLedger) -> None:
    ledger.create("other")
    kept: dict[str, str] = {}
    for text in NAUGHTY:
        if not text.strip() or len(text) > 500:
            with pytest.raises(UsageError):
                ledger.create(text)
            continue
        name = whole(text).replace("\0", "\ufffd")
        if name in kept:  # two strings that are one by the rule
            with pytest.raises(SessionExistsError):
                ledger.create(text)
            continue
        kept[name] = ledger.create(text, origin=text).origin
        (step,) = tell(ledger, text, text)
        ledger.rename(text, f"new {len(kept)}")
        found = ledger.session(text)
        assert found is not None
        assert (found.label, found.origin, found.tip) == (f"new {len(kept)}", name, step.id)
        ledger.rename(f"new {len(kept)}", text)

    assert {session.label for session in ledger.sessions()} == {"other", *kept}
    assert ledger.session("other").tip is None  # type: ignore[union-attr]
    assert list(ledger.verify()) == []


@pytest.mark.acceptance("T19")
def test_no_string_is_taken_for_a_step_a_blob_or_a_pattern(ledger: StoreLedger) -> None:
    ledger.create("a session of no naughty name")
    for text in NAUGHTY:
        (step,) = tell(ledger, "a session of no naughty name", f"before {text} after")

        assert ledger.step(text) is None
        assert ledger.blob(text) is None
        assert ledger.session(text) is None
        assert ledger.scan(step.id, text, limit=1) == [step]


@pytest.mark.acceptance("T19")
def test_no_statement_is_put_together_while_it_runs() -> None:
    """Statements are constants; only numbers of our own, for pragmas, are joined to one."""
    folder = ROOT / "plugins/nexus_plugins/ledger"
    sources = {path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in folder.rglob("*.py")}

    for name, source in sources.items():
        assert not re.search(r"(execute|fetch|run)\w*\(\s*f[\"']", source), name
        assert not re.search(r"execute\w*\([^)]*(\.format\(|%\s*\()", source), name
        assert "pickle" not in source, name
        assert not re.search(r"\beval\(|\bexec\(|yaml\.load|marshal", source), name
