"""`nexus assemble`: the body of a call, in every dialect and with both renderers."""

from __future__ import annotations

import json

import pytest

from tests.golden import replies
from tests.golden.cases import Case
from tests.golden.conftest import GoldenCase

AREA = "assemble"
DIALECTS = ("openai", "responses", "anthropic", "gemini", "neutral", "bedrock")
RENDERERS = ("labelled", "tagged")
MODELS = {
    "openai": "gpt-4o",
    "responses": "gpt-5",
    "anthropic": "claude-sonnet-4",
    "gemini": "gemini-2.5-pro",
    "neutral": "gpt-4o",
    "bedrock": "anthropic.claude-sonnet-4-20250514-v1:0",
}
TOOLS = {"work/tools.json": json.dumps([*replies.TOOLS, replies.MAIL | {"permissions": ["mail.send"]}])}
CALL = "-C work assemble 'Why does the total differ?' --tools tools.json"
EVENT = "--timezone Europe/Zurich --platform slack --action reply --action react --data unread=3 --data 'git=clean'"
SESSIONS = {
    **dict.fromkeys(("tools", "responses", "tagged", "media"), DIALECTS),
    "tools-fork": ("openai", "anthropic"),
    "chat": ("openai", "gemini"),
    "gemini": ("gemini", "anthropic"),
    "bedrock": ("bedrock", "openai"),
    "compacted": ("anthropic", "responses"),
    "agent": ("openai", "bedrock"),
}
"""By session, the dialects in which it goes on."""

CASES = {
    **{
        f"{renderer}-{dialect}": Case(
            f"{CALL} -m {MODELS[dialect]} --api {dialect} --renderer {renderer} {EVENT}", files=TOOLS
        )
        for renderer in RENDERERS
        for dialect in DIALECTS
    },
    **{f"{renderer}-json": Case(f"{CALL} --renderer {renderer} {EVENT} --json", files=TOOLS) for renderer in RENDERERS},
    **{f"{renderer}-text": Case(f"{CALL} --renderer {renderer} {EVENT}", files=TOOLS) for renderer in RENDERERS},
    "alone": Case("-C work assemble"),
    "alone-anthropic": Case("-C work assemble --api anthropic"),
    "no-model": Case("-C work assemble Why? --api openai", "bare"),
    "unknown-model": Case("-C work assemble Why? -m home-made --json"),
    "guessed-model": Case("-C work assemble Why? -m claude-sonet-5 --json"),
    "other-api": Case("-C work assemble Why? -m gpt-4o --api anthropic"),
    "alias": Case("-C work/api assemble Why? -m fast --api gemini", "shop"),
    "options": Case("-C work/api assemble Why? --api openai", "shop"),
    "shop-json": Case(f"-C work/api assemble 'Ship it.' --tools ../tools.json {EVENT} --json", "shop", files=TOOLS),
    "shop-worker-json": Case(
        "-C work/api assemble 'Ship it.' --role worker --task 'Ship it.' --skill deploy --tools ../tools.json --json",
        "shop",
        files=TOOLS,
    ),
    "permissions": Case(f"{CALL} --permissions read --json", files=TOOLS),
    "permissions-granted": Case(f"{CALL} --permissions mail.send --api anthropic", files=TOOLS),
    "manager": Case(f"{CALL} --role manager {EVENT} --api anthropic", files=TOOLS),
    "server": Case(f"{CALL} --mode server --api anthropic", files=TOOLS),
    "from-stdin": Case(
        "-C work assemble - --api openai < work/said.txt", files={"work/said.txt": "Line one.\nLine two.\n"}
    ),
    "cache-hour": Case(
        "-C work assemble Why? --api anthropic --tools tools.json",
        files=TOOLS
        | {
            "user/.nexus3/config.json": '{"provider": {"model": "claude-sonnet-4"}, "cache": {"ttl": "1h"}}\n',
            "work/AGENTS.md": "Mind the gap. " * 400 + "\n",
        },
    ),
    "does-not-fit": Case(
        "-C work assemble Why? -m dwarf",
        files={"user/.nexus3/config.json": '{"models": {"dwarf": {"window": 100, "encoding": "o200k_base"}}}\n'},
        words=True,
        fails=True,
    ),
    **{
        f"session-{session}-{dialect}": Case(
            f"-C work assemble 'And now?' --session {session} --api {dialect}", ledger="fresh"
        )
        for session, dialects in SESSIONS.items()
        for dialect in dialects
    },
    **{
        f"session-{session}-json": Case(f"-C work assemble 'And now?' --session {session} --json", ledger="fresh")
        for session in ("tools", "compacted", "media", "undone", "cut", "changed")
    },
    **{
        f"session-{session}-json": Case(f"-C work assemble --session {session} --json", ledger="fresh")
        for session in ("interrupted", "manager")
    },
    "session-waiting": Case("-C work assemble --session interrupted --api anthropic", ledger="fresh"),
    "session-nothing-said": Case("-C work assemble --session tools --api anthropic", ledger="fresh"),
    "session-new": Case("-C work assemble 'Hello.' --session brand-new --json", ledger="fresh"),
    "session-tagged-again": Case(
        "-C work assemble 'And now?' --session tools --renderer tagged --api anthropic", ledger="fresh"
    ),
    "session-other-model": Case("-C work assemble 'And now?' --session tools -m gpt-4o --json", ledger="fresh"),
    "session-small-window": Case(
        "-C work assemble 'And now?' --session undone -m dwarf --json",
        ledger="fresh",
        files={"user/.nexus3/config.json": '{"models": {"dwarf": {"window": 1000, "encoding": "o200k_base"}}}\n'},
    ),
    "session-middle-out": Case(
        "-C work assemble 'And now?' --session undone -m dwarf --json",
        ledger="fresh",
        files={
            "user/.nexus3/config.json": json.dumps(
                {
                    "models": {"dwarf": {"window": 1000, "encoding": "o200k_base"}},
                    "truncation": {"strategy": "middle_out"},
                }
            )
        },
    ),
    "session-small-request": Case(
        "-C work assemble 'And now?' --session media -m slim --json",
        ledger="fresh",
        files={"user/.nexus3/config.json": '{"models": {"slim": {"request_bytes": 5200}}}\n'},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_call_is_as_it_was(name: str, golden_case: GoldenCase) -> None:
    golden_case(AREA, name, CASES[name])
