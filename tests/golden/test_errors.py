"""Errors: by their class, their place, their remedy and what they know, whatever their words."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any
from unittest.mock import patch

import pytest

import nexus_core
from nexus_core import (
    AgentResult,
    Nexus,
    NexusError,
    Request,
    Section,
    check,
    fit,
    get_dialect,
    hookimpl,
    repair,
)
from tests.golden import replies
from tests.golden.cases import Case, gist, without_install
from tests.golden.conftest import Golden, GoldenCase
from tests.golden.trees import PLAIN
from tests.golden.world import World

Wrong = Callable[[Nexus], object]


def _asked(nexus: Nexus, **options: Any) -> Any:
    session = nexus.session("s", model="claude-sonnet-4", tools=replies.TOOLS, **options)
    session.ask("Why?")
    return session


def _called(nexus: Nexus) -> Any:
    session = _asked(nexus)
    session.record(replies.claude(replies.use("t1", path="a"), replies.use("t2", path="b"), id="m1"))
    return session


def _closed(nexus: Nexus) -> Any:
    session = _asked(nexus)
    session.record(replies.says("Because.", id="m1"))
    return session


def _other_result(nexus: Nexus) -> None:
    session = _called(nexus)
    call = session.pending_calls[0]
    session.record(call.result("one"))
    session.record(call.result("two"))


def _after_close(nexus: Nexus) -> None:
    nexus.close()
    nexus.system_prompt()


def _home_in_project(nexus: Nexus) -> None:
    with patch.dict(os.environ, {"NEXUS_HOME": str(nexus.cwd / ".nexus3")}):
        Nexus(nexus.cwd)


def _two_writers(nexus: Nexus) -> None:
    first = _asked(nexus)
    with Nexus(nexus.cwd) as other:
        other.session("s").interrupt()
    first.record(replies.says("Too late.", id="m9"))


def _compact_twice(nexus: Nexus) -> None:
    session = _closed(nexus)
    session.undo()


def _unsummarized(nexus: Nexus) -> None:
    def fail(_: object) -> str:
        raise RuntimeError("no model today")

    settings = {"compaction": {"summarisers": ["given"], "keep_turns": 1}}
    (nexus.home / "config.json").write_text(json.dumps(settings), encoding="utf-8")
    with Nexus(nexus.cwd, summarize=fail) as own:
        session = own.session("s", model="gpt-4o")
        for number in range(4):
            session.ask(f"Question {number} " + "why " * 50)
            session.record(replies.completion("because " * 50, id=f"c{number}"))
        session.compact()


def _settings(text: str) -> Wrong:
    def wrong(nexus: Nexus) -> None:
        (nexus.cwd / ".nexus3/config.json").write_text(text, encoding="utf-8")
        nexus.system_prompt()

    return wrong


def _servers(text: str) -> Wrong:
    def wrong(nexus: Nexus) -> None:
        (nexus.cwd / ".nexus3/mcp.json").write_text(text, encoding="utf-8")
        nexus.system_prompt()

    return wrong


class _Bad:
    @hookimpl
    def nexus_static_sections(self, request: Request) -> list[Section]:
        return [f"not a section in {request.cwd.name}"]  # type: ignore[list-item]


def _bad_plugin(nexus: Nexus) -> None:
    with Nexus(nexus.cwd, plugins=[_Bad()], strict=True) as own:
        own.system_prompt()


def _small(nexus: Nexus) -> None:
    (nexus.home / "config.json").write_text('{"models": {"dwarf": {"window": 100}}}', encoding="utf-8")
    with Nexus(nexus.cwd) as own:
        own.session("s", model="dwarf").ask("Why?")


def _large(nexus: Nexus) -> None:
    (nexus.home / "config.json").write_text('{"models": {"slim": {"request_bytes": 900}}}', encoding="utf-8")
    with Nexus(nexus.cwd) as own:
        own.session("s", model="slim").ask([replies.text("Why?"), replies.image()])


def _damaged(nexus: Nexus) -> None:
    (nexus.home / "ledger.db").write_bytes(b"not a database, however one looks at it" * 40)
    nexus.session("s").ask("Why?")


def _without_driver(nexus: Nexus) -> None:
    with pytest.MonkeyPatch.context() as patched, Nexus(nexus.cwd, ledger="postgresql://localhost/x") as own:
        # Not patch.dict, which forgets every other module that is imported meanwhile.
        patched.setitem(sys.modules, "psycopg", None)
        own.session("s").ask("Why?")


LONG = [{"role": "user", "content": "why " * 500}]
WRONG: Mapping[str, Wrong] = {
    "no-such-directory": lambda nexus: Nexus(nexus.cwd / "missing"),
    "home-in-the-project": _home_in_project,
    "used-after-close": _after_close,
    "unknown-renderer": lambda nexus: nexus.system_prompt(renderer="labeled"),
    "unknown-role": lambda nexus: nexus.system_prompt(role="wroker"),
    "worker-without-a-task": lambda nexus: nexus.system_prompt(role="worker"),
    "unknown-mode": lambda nexus: nexus.system_prompt(mode="serve"),  # type: ignore[arg-type]  # that is the mistake
    "unknown-dialect": lambda _: get_dialect("opena"),
    "unknown-dialect-of-a-call": lambda nexus: nexus.assemble(nexus.request(message="Why?", model="gpt-4o")).to(
        "antropic"
    ),
    "unknown-session": lambda nexus: (_closed(nexus), nexus.assemble(nexus.request(session="t"))),
    "no-session-at-all": lambda nexus: nexus.assemble(nexus.request(session="t")),
    "argument-of-the-wrong-type": lambda nexus: nexus.session("s", permissions="read"),
    "label-that-is-none": lambda nexus: nexus.session(""),
    "tool-that-is-none": lambda nexus: nexus.session("s", tools=[{"nam": "x"}]),
    "tools-with-one-name": lambda nexus: nexus.session("s", tools=[*replies.TOOLS, replies.TOOLS[0]]).ask("Why?"),
    "nothing-said": lambda nexus: nexus.session("s").ask(""),
    "unknown-event": lambda nexus: nexus.session("s").ask("Why?", timzone="UTC"),  # type: ignore[call-arg]  # as above
    "message-of-no-api": lambda nexus: nexus.session("s").ask({"role": "user", "content": 3}),
    "message-of-another-role": lambda nexus: nexus.session("s").ask({"role": "assistant", "content": "x"}),
    "turn-is-open": lambda nexus: _asked(nexus).ask("And?"),
    "no-turn-is-open": lambda nexus: _closed(nexus).next(),
    "calls-are-pending": lambda nexus: _called(nexus).next(),
    "reply-without-a-turn": lambda nexus: _closed(nexus).record(replies.says("More.", id="m2")),
    "result-without-a-call": lambda nexus: _asked(nexus).record({"role": "tool", "tool_call_id": "x", "content": "y"}),
    "other-result": _other_result,
    "unfinished-stream": lambda nexus: _asked(nexus).record(replies.streamed("Once", id="m1", ended=False)),
    "reply-of-no-api": lambda nexus: _asked(nexus).record({"choices": "none"}),
    "agent-result-with-garbage": lambda nexus: nexus.session("s").record(AgentResult(messages=[{"role": "usr"}])),
    "another-writer": _two_writers,
    "fork-to-a-name-that-is-taken": lambda nexus: (_closed(nexus), nexus.session("s").fork("s")),
    "fork-at-an-unknown-turn": lambda nexus: _closed(nexus).fork("t", at="01KGS59YQ0ZZZZ0000000000ZZ"),
    "replay-an-unknown-step": lambda nexus: (_closed(nexus), nexus.replay("01KGS59YQ0ZZZZ0000000000ZZ")),
    "undo-nothing": _compact_twice,
    "expand-nothing": lambda nexus: _closed(nexus).expand("01KGS59YQ0ZZZZ0000000000ZZ"),
    "pin-an-unknown-step": lambda nexus: _closed(nexus).pin("01KGS59YQ0ZZZZ0000000000ZZ"),
    "delete-an-unknown-session": lambda nexus: nexus.delete_session("s"),
    "spawn-in-no-directory": lambda nexus: _called(nexus).spawn("Look.", cwd="missing"),
    "recover-from-another-error": lambda nexus: _asked(nexus).recover(ValueError("something else")),
    "nobody-summarizes": _unsummarized,
    "does-not-fit": _small,
    "too-many-bytes": _large,
    "fit-that-cannot": lambda _: fit(LONG, model="gpt-4o", budget=10),
    "fit-with-an-unknown-strategy": lambda _: fit(LONG, model="gpt-4o", strategy="newest_first"),
    "fit-what-is-no-message": lambda _: fit([{"role": "usr", "content": "x"}], model="gpt-4o"),
    "check-what-is-no-message": lambda _: check([{"role": "user", "content": [{"type": 3}]}]),
    "repair-for-an-unknown-api": lambda _: repair(LONG, "opena"),
    "settings-that-are-no-json": _settings('{\n  "budget": {"memory": 1000,}\n}\n'),
    "settings-with-a-comment": _settings('{\n  // why not\n  "budget": {}\n}\n'),
    "settings-of-no-object": _settings("[1, 2]\n"),
    "settings-given-twice": _settings('{"budget": {"memory": 1}, "budget": {}}\n'),
    "unknown-setting": _settings('{\n  "budgets": {"memory": 1000}\n}\n'),
    "unknown-setting-below": _settings('{\n  "budget": {\n    "memmory": 1000\n  }\n}\n'),
    "setting-of-the-wrong-type": _settings('{\n  "budget": {\n    "memory": "much"\n  }\n}\n'),
    "setting-out-of-range": _settings('{"context": {"ancestor_depth": 11}}\n'),
    "setting-of-an-unknown-name": _settings('{"renderer": "labeled"}\n'),
    "setting-of-an-unknown-strategy": _settings('{"truncation": {"strategy": "oldest"}}\n'),
    "setting-of-a-plugin": _settings('{"plugins": {"tagged": {"limit": "many"}}}\n'),
    "aliases-of-each-other": lambda nexus: (
        (nexus.home / "config.json").write_text('{"models": {"a": {"id": "b"}, "b": {"id": "a"}}}', encoding="utf-8"),
        nexus.system_prompt(),
    ),
    "servers-that-are-no-json": _servers('{"servers": [{"name": "docs", "env": {"KEY": "value"}]}\n'),
    "server-without-a-command": _servers('{\n  "servers": [\n    {"name": "docs"}\n  ]\n}\n'),
    "server-with-both": _servers('{"docs": {"command": "x", "url": "https://docs.example"}}\n'),
    "server-of-the-wrong-type": _servers('{"mcpServers": {"docs": {"command": 3}}}\n'),
    "plugin-that-breaks-its-contract": _bad_plugin,
    "unknown-ledger": lambda nexus: Nexus(nexus.cwd, ledger="mongo://x").session("s").ask("Why?"),
    "ledger-below-a-file": lambda nexus: (
        Nexus(nexus.cwd, ledger=f"sqlite:///{nexus.cwd}/AGENTS.md/l.db").session("s").ask("Why?")
    ),
    "ledger-that-is-none": _damaged,
    "missing-extra": _without_driver,
    "unreadable-text": lambda nexus: (
        (nexus.cwd / ".nexus3/NEXUS.md").write_bytes(b"\xff\xfe\x00broken"),
        nexus.system_prompt(),
    ),
}

COMMANDS = {
    "unknown-command": "sohw",
    "unknown-option": "show --rednerer tagged",
    "unknown-session-command": "session shwo",
    "deleting-command": "session rm tools",
    "no-such-directory": "-C missing show",
    "no-home": "--home '' show",
    "unknown-agent": "show --as cluade",
    "unknown-renderer": "-C work show --renderer labeled",
    "unknown-role": "-C work show --role wroker",
    "options-that-exclude-each-other": "-C work show --as claude --renderer tagged",
    "unknown-dialect": "-C work assemble Why? --api opena",
    "tools-that-are-missing": "-C work assemble Why? --tools missing.json",
    "tools-that-are-none": "-C work assemble Why? --tools said.txt",
    "unknown-session": "session show tool-loop",
    "nearly-known-session": "session show tols",
    "ambiguous-session": "session show c",
    "unknown-step": "session show tools --step ZZZZZZ",
    "ambiguous-step": "session show tools --step 000001",
    "too-short-step": "session show tools --step 01K",
    "replay-of-nothing": "session replay nothing",
    "replay-of-an-import": "session replay claude-bakery-1",
    "export-over-a-file": "session export tools -o work/said.txt",
    "export-of-no-original": "session export tools --format original -o x.jsonl",
    "import-of-what-is-none": "session import work/said.txt --json",
    "import-of-what-is-missing": "session import missing.jsonl --json",
    "import-of-another-program": "session import work/gemini-chat.json --json",
    "fork-to-a-taken-name": "session fork tools chat",
    "acp-of-a-missing-program": "acp -- no-such-program",
    "rpc-without-a-server": "rpc list_agents --json",
    "rpc-of-wrong-parameters": "rpc get_messages a many",
    "serve-on-an-impossible-port": "serve --port 99999 --json",
    "rename-to-a-taken-name": "session rename tools chat",
    "undo-of-nothing": "session compact tools --undo",
    "delete-without-yes": "session delete tools",
    "record-without-sense": "session record tools --error",
    "record-of-an-unknown-speaker": "session record tools work/said.txt --role robot",
    "record-without-a-turn": "session record tools work/reply.json",
    "record-to-without-json": "session record tools --api openai",
    "ledger-that-is-missing": "session list --ledger missing.db",
    "copy-over-a-ledger": "ledger copy user/.nexus3/ledger.db",
    "check-of-what-is-none": "check work/said.txt",
    "check-of-what-is-broken": "check work/broken.jsonl",
    "check-for-an-unknown-api": "check work/reply.json --api opena",
    "context-of-what-is-none": "context work/said.txt",
    "context-of-an-unknown-role": "context work/unknown-role.json",
    "tokens-of-what-is-no-text": "tokens work/picture.png work/said.txt",
    "tokens-of-what-is-missing": "tokens missing.txt",
    "unknown-setting": "-C work config get budget.memmory",
    "set-an-unknown-setting": "-C work config set budget.memmory 1",
    "set-what-is-ignored": "-C work config set ledger.url x.db",
    "set-what-is-not-allowed": "-C work config set budget.memory much",
    "explain-nothing": "-C work explain ''",
    "diff-of-what-is-unknown": "-C work diff nothing nowhere",
    "init-again": "-C work init\n-C work init",
    "unknown-plugin": "plugin info mpc",
    "unknown-hook": "plugin hooks nexus_layer",
    "plugin-with-a-bad-name": "plugin new Bad_Name",
    "unknown-server": "-C work mcp remove dcos",
    "login-to-an-unknown-server": "-C work mcp login dcos",
    "server-without-anything": "-C work mcp add x",
    "unknown-tool-of-mcp": "-C work mcp export --format vim",
    "unknown-skill": "-C work skill show deplyo",
    "nothing-to-allow": "-C work trust allow nothing --yes",
    "require-trusted": "-C untrusted show --require-trusted",
}
FILES = {
    "work/said.txt": "Hello.\n",
    "work/reply.json": json.dumps(replies.says("More.", id="m2")),
    "work/broken.jsonl": '{"role": "user", "content": "x"}\n{"role": \n',
    "work/unknown-role.json": '[{"role": "usr", "content": ""}]',
    "work/picture.png": "\x00\x01\x02",
    "work/gemini-chat.json": '{"sessionId": "x", "projectHash": "y", "messages": [{"type": "user", "content": "x"}]}',
    "untrusted/.nexus3/mcp.json": '{"servers": [{"name": "x", "command": ["x"]}]}\n',
}
CASES = {name: Case(line, ledger="stored", files=FILES, words=True, fails=True) for name, line in COMMANDS.items()}


def _told(world: World, wrong: Wrong) -> str:
    world.write(PLAIN)
    with Nexus(world.root / "work") as nexus, suppress(RuntimeError):
        try:
            wrong(nexus)
        except (NexusError, ValueError) as error:
            return without_install(world.mask(describe(error)))
    raise AssertionError("nothing was wrong")


def describe(error: BaseException) -> str:
    """What a program can know of an error; of sentences only what counts in them."""
    told = {"class": public_name(error)}
    known = {name: value for name, value in vars(error).items() if not name.startswith("_") and value is not None}
    if failures := known.pop("failures", ()):
        told["failed"] = ", ".join(name for name, _ in failures)
    for name, value in sorted(known.items()):
        is_place = name == "where" and " " not in value
        told[name] = repr(value) if name in PRECISE or is_place else _known(value)
    return "\n".join(f"{name}: {value}" for name, value in told.items()) + "\n"


def _known(value: Any) -> str:
    if isinstance(value, str):
        return gist(value)
    if isinstance(value, tuple):
        return ", ".join(map(_known, value))
    return repr(value) if isinstance(value, int | Mapping) else f"the extra {value.name}"


PRECISE = frozenset({"calls", "code", "hook", "kind", "name", "path", "plugin", "unit"})
"""What errors know that is no sentence."""


KNOWN = (
    "BudgetError",
    "NexusClosedError",
    "ConfigError",
    "ConflictError",
    "SessionExistsError",
    "FileError",
    "LedgerError",
    "MessageError",
    "MissingExtraError",
    "PendingToolCallsError",
    "PluginError",
    "SummaryError",
    "TurnError",
    "UnknownNameError",
    "LedgerUnreachableError",
    "UsageError",
    "NexusError",
)
"""The names by which programs have caught errors so far; a class that gets another is still known by this one."""


def public_name(error: BaseException) -> str:
    """The name by which programs know the class of an error, or the next above that they know."""
    for kind in type(error).__mro__:
        for name in KNOWN:
            if getattr(nexus_core, name, None) is kind:
                return name
    return type(error).__name__


@pytest.mark.parametrize("name", WRONG)
def test_an_error_is_as_it_was(name: str, golden: Golden) -> None:
    golden("errors", name, lambda world: _told(world, WRONG[name]))


@pytest.mark.parametrize("name", CASES)
def test_the_error_of_a_command_is_as_it_was(name: str, golden_case: GoldenCase) -> None:
    golden_case("errors-of-commands", name, CASES[name])
