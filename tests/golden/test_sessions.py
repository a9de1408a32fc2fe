"""`nexus session …` in JSON, over a ledger that was recorded long ago, and over one that was recorded just now."""

from __future__ import annotations

import json

import pytest

from tests.golden import replies
from tests.golden.cases import Case
from tests.golden.conftest import GoldenCase
from tests.golden.recording import SECRET
from tests.golden.test_context import FILES as TRANSCRIPTS
from tests.golden.test_replay import REPLIES

LABELS = (*REPLIES, "claude-bakery-1", "claude-bakery-1/fork-1", "codex-0199-weather", "pi-5d0c-garden", "messages")
TEXTS = (
    "tools",
    "responses",
    "tagged",
    "manager",
    "media",
    "compacted",
    "undone",
    "interrupted",
    "odd-texts",
    "messages",
)
MANY = 4
"""Of a session with more replies than that, only the newest turns are shown."""
FORMATS = ("openai", "responses", "anthropic", "gemini", "neutral", "bedrock")


def _turns(label: str) -> str:
    return "--limit 2" if REPLIES.get(label, 0) > MANY else "--all"


def _id(label: str) -> str:
    return label.replace("/", "-").replace(".", "-").lower()


READ = {
    "list": Case("session list --json", ledger="stored"),
    "list-text": Case("session list --include-archived", ledger="stored"),
    "list-archived": Case("session list --archived --json", ledger="stored"),
    "list-here": Case("session list --here -n 3 --json", ledger="stored"),
    "list-empty": Case("session list --json"),
    **{f"show-{_id(label)}": Case(f"session show {label} {_turns(label)} --json", ledger="stored") for label in LABELS},
    **{f"show-text-{_id(label)}": Case(f"session show {label} --full", ledger="stored") for label in TEXTS},
    "show-step": Case("session show tools --step @tools:reply:1 --full --json", ledger="stored"),
    "show-compaction": Case("session show compacted --step @compacted:compaction:-1 --full --json", ledger="stored"),
    "show-one-turn": Case("session show compacted --limit 1 --json", ledger="stored"),
    "show-with-secrets": Case("session show odd-texts --with-secrets --json", ledger="stored"),
    "search": Case("session search rounding --json --exact", ledger="stored"),
    "search-text": Case("session search rye --exact", ledger="stored"),
    "search-session": Case("session search why --session compacted --limit 3 --json --exact", ledger="stored"),
    "search-secret": Case(f"session search {SECRET[:12]} --json --exact", ledger="stored"),
    "search-nothing": Case("session search unheard-of --json --exact", ledger="stored"),
    "search-ranked": Case('session search "where was the sum rounded?" --limit 3 --json', ledger="stored"),
    "search-ranked-text": Case('session search "how is rye rounded" --limit 3', ledger="stored"),
    "tree": Case("session tree", ledger="stored"),
    "tree-all": Case("session tree --limit all", ledger="stored"),
    "tree-json": Case("session tree --json", ledger="stored"),
    "tree-tools": Case("session tree tools --json", ledger="stored"),
    "stats": Case("session stats --json", ledger="stored"),
    "stats-text": Case("session stats", ledger="stored"),
    **{
        f"stats-{label}": Case(f"session stats {label} --json", ledger="stored")
        for label in ("tools", "automatic", "claude-bakery-1", "media")
    },
    **{
        f"expand-{label}": Case(f"session show {label} --compacted --full --json", ledger="stored")
        for label in ("compacted", "automatic")
    },
    "expand-text": Case("session show compacted --compacted", ledger="stored"),
    "expand-first": Case("session show @compacted:compaction:0 --compacted --json", ledger="stored"),
    "pins": Case("session pin compacted --json", ledger="stored"),
    **{
        f"export-{label}-{form}": Case(f"session export {label} --format {form}", ledger="stored")
        for label in ("responses", "media", "odd-texts", "claude-bakery-1")
        for form in FORMATS
    },
    "export-tools": Case("session export tools", ledger="stored"),
    "export-compacted": Case("session export compacted", ledger="stored"),
    "export-forks": Case("session export tools --all", ledger="stored"),
    "export-compacted-too": Case("session export compacted --all --format anthropic", ledger="stored"),
    "export-with-secrets": Case("session export odd-texts --format openai --with-secrets", ledger="stored"),
    "export-original": Case("session export claude-bakery-1 --format original -o again.jsonl --json", ledger="stored"),
    "verify": Case("ledger verify --json", ledger="stored"),
    "verify-session": Case("ledger verify tools --json", ledger="stored"),
    "copy": Case("ledger copy copy.db --json\nsession list --ledger copy.db --all --json", ledger="stored"),
    "copy-without": Case(
        "ledger copy copy.db --without tools --without manager --json\nsession verify --ledger copy.db --json",
        ledger="stored",
    ),
    "repair": Case("ledger repair saved.db --json\nsession verify --ledger saved.db --json", ledger="stored"),
    "repair-dry-run": Case("ledger repair saved.db --dry-run --json", ledger="stored"),
}

REPLY = {
    "work/reply.json": json.dumps(
        replies.claude(replies.text("I look."), replies.use("toolu_z1", path="z"), id="msg_z1")
    )
}
ITEMS = {
    "work/items.jsonl": "".join(
        json.dumps(item) + "\n"
        for item in (
            {"ask": "Is it raining?", "platform": "slack", "event_id": "evt-9"},
            replies.completion(None, ("call_9", "look", {"path": "sky"}), id="cc-9"),
            {"call": "call_9", "result": {"rain": True}},
            replies.completion("Yes.", id="cc-10"),
            {"messages": [{"role": "user", "content": "2+2?"}, {"role": "assistant", "content": "4"}], "id": "run-9"},
        )
    )
}
TOOLS = {"work/tools.json": json.dumps(replies.TOOLS)}

WRITE = {
    "fork": Case(
        """-C work session fork tools other --json
        -C work session show other --json
        -C work session tree tools --json""",
        ledger="fresh",
    ),
    "fork-at": Case(
        "-C work session fork tools other --at @tools:input:0 --json\nsession show other --json", ledger="fresh"
    ),
    "fork-dry-run": Case("-C work session fork tools other --dry-run --json", ledger="fresh"),
    "rename": Case(
        """-C work session rename tools login --json
        -C work session show tools --limit 1 --json
        -C work session rename tools login --dry-run --json""",
        ledger="fresh",
    ),
    "archive": Case(
        """-C work session archive tools --json
        -C work session unarchive tools --json
        -C work session archive chat --dry-run --json""",
        ledger="fresh",
    ),
    "delete": Case(
        """-C work session delete manager --workers --reason 'a test' --dry-run --json
        -C work session delete manager --workers --reason 'a test' --yes --json
        -C work session list --json
        -C work ledger verify --json""",
        ledger="fresh",
    ),
    "delete-shared": Case("-C work session delete tools --yes --json\nsession show tools-fork --json", ledger="fresh"),
    "record-state": Case("-C work session record interrupted --json", ledger="fresh"),
    "record-state-to": Case("-C work session record changed --json --api anthropic", ledger="fresh"),
    "record-result": Case(
        """-C work session record interrupted result.txt --call toolu_i3 --json --api anthropic
        -C work session record interrupted result.txt --call toolu_i3 --json""",
        ledger="fresh",
        files={"work/result.txt": "There is no c.\n"},
    ),
    "record-error": Case(
        "-C work session record interrupted result.txt --call toolu_i3 --error --json --api openai",
        ledger="fresh",
        files={"work/result.txt": "no such file\n"},
    ),
    "record-turn": Case(
        """-C work session record new said.txt --role user --model gpt-4o --tools tools.json --json --api anthropic
        -C work session record new reply.json --json
        -C work session record new --json
        -C work session show new --full --json
        -C work session record new --interrupted --json
        -C work ledger verify --json""",
        files={"work/said.txt": "What is z?\n"} | REPLY | TOOLS,
    ),
    "record-items": Case(
        "-C work session record sky items.jsonl --json --model gpt-4o\n-C work session show sky --limit all --json",
        files=ITEMS,
    ),
    "record-dry-run": Case("-C work session record sky items.jsonl --dry-run --json", files=ITEMS),
    **{
        f"record-to-{api}": Case(
            f"-C work session record {label} said.txt --role user --json --api {api}",
            ledger="fresh",
            files={"work/said.txt": "Once more.\n"},
        )
        for label, api in (
            ("tools", "anthropic"),
            ("chat", "openai"),
            ("responses", "responses"),
            ("gemini", "gemini"),
            ("bedrock", "bedrock"),
            ("tagged", "neutral"),
        )
    },
    "record-broken": Case(
        "-C work session record sky items.jsonl --json",
        fails=True,
        files={"work/items.jsonl": '{"ask": "Why?"}\n{"ask": \n'},
    ),
    "pin": Case(
        """-C work session pin tools @tools:reply:1 --json
        -C work session pin tools --json
        -C work session unpin tools @tools:reply:1 --json
        -C work session pin tools @tools:reply:0 --dry-run --json""",
        ledger="fresh",
    ),
    **{
        f"import-{name.replace('.', '-').replace('_', '-')}": Case(
            f"""-C work session import {name} --dry-run --json
            -C work session import {name} --json
            -C work session import {name} --json
            -C work session list --json""",
            files={f"work/{name}": text},
        )
        for name, text in TRANSCRIPTS.items()
    },
    "import-from-claude": Case(
        """-C work session import --from claude --list --json
        -C work session import --from claude --json""",
        files={"user/.claude/projects/-srv-bakery/bakery-1.jsonl": TRANSCRIPTS["claude.jsonl"]},
    ),
    "import-label": Case(
        "-C work session import pi.jsonl --name garden --json\n-C work session show garden --limit all --json",
        files={"work/pi.jsonl": TRANSCRIPTS["pi.jsonl"]},
    ),
    "export-and-import": Case(
        """-C work session export tools-fork -o out.jsonl --json
        -C work session import out.jsonl --ledger new.db --json
        -C work ledger verify --ledger new.db --json
        -C work session show tools-fork --ledger new.db --json""",
        ledger="stored",
    ),
    "diff-session": Case("-C work diff changed --json", ledger="fresh"),
    "diff-session-text": Case("-C work diff changed", ledger="fresh"),
    "diff-steps": Case("-C work diff @tools:reply:0 @tools:reply:1 --json", ledger="fresh"),
    "diff-compacted": Case(
        "-C work diff @compacted:reply:3 @compacted:reply:4 --exit-code --json", ledger="fresh", fails=True
    ),
    "diff-model": Case("-C work diff session:tools model:gpt-4o --json", ledger="fresh"),
    "diff-file": Case(
        "-C work diff a.json b.json --json",
        files={
            f"work/{name}.json": json.dumps(
                {
                    "model": "gpt-4o",
                    "messages": [{"role": "system", "content": said}, {"role": "user", "content": "Why?"}],
                }
            )
            for name, said in (("a", "Be brief."), ("b", "Be long."))
        },
    ),
}


@pytest.mark.parametrize("name", READ)
def test_what_is_read_is_as_it_was(name: str, golden_case: GoldenCase) -> None:
    golden_case("sessions", name, READ[name])


@pytest.mark.parametrize("name", WRITE)
def test_what_is_written_is_as_it_was(name: str, golden_case: GoldenCase) -> None:
    golden_case("sessions-written", name, WRITE[name])
