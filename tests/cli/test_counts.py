"""One count for one thing, whichever command shows it; the rows of every table sum to its last line."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from nexus_core import Nexus
from nexus_core.session.session import Session
from nexus_core.testing import write_files
from tests.conftest import Cli
from tests.session.support import TOOLS, calls, says
from tests.transcripts.support import SAMPLES

SESSION_TABLES = ("ZONE", "KIND", "LAYER", "SECTION", "TOOL", "LARGEST")
FILE_TABLES = ("ROLE", "KIND", "TOOL", "LARGEST")
Prepare = Callable[[Nexus], str]


def talk(nexus: Nexus, turns: int = 4, *, ratio: float = 1.0, **options: Any) -> Session:
    """A session of several turns with calls; the provider counts `ratio` tokens for each of ours."""
    session = nexus.session("auth-bug", tools=TOOLS, **{"model": "claude-sonnet-4", **options})
    for number in range(turns):
        context = session.ask(f"Why does login {number} fail? " + "Please look. " * 120)
        step = session.record(costing(calls(f"t{number}"), context.token_budget.total * ratio))
        session.record(step.tool_calls[0].result("word " * 300))
        context = session.next()
        session.record(
            costing(says(f"It expires, case {number}.", name=f"m{number}"), context.token_budget.total * ratio)
        )
    return session


def costing(reply: Any, tokens: float) -> Any:
    return {**reply, "usage": {"input_tokens": int(tokens), "output_tokens": 20}}


def closed(nexus: Nexus) -> str:
    return talk(nexus).name


def calibrated_up(nexus: Nexus) -> str:
    return talk(nexus, 6, ratio=1.3).name


def calibrated_down(nexus: Nexus) -> str:
    return talk(nexus, 6, ratio=0.8).name


def counted_exactly(nexus: Nexus) -> str:
    return talk(nexus, model="gpt-4o").name


def left_open(nexus: Nexus) -> str:
    session = talk(nexus, 2)
    session.ask("And then? " * 50)
    return session.name


def compacted(nexus: Nexus) -> str:
    session = talk(nexus, 6)
    session.compact()
    session.ask("Go on.")
    return session.name


def rearranged(nexus: Nexus) -> str:
    session = talk(nexus, 2, renderer="tagged")
    session.ask("And then?")
    return session.name


def too_long(nexus: Nexus) -> str:
    session = talk(nexus, 2)
    write_files(nexus.cwd, {".nexus3/config.json": '{"models": {"claude-sonnet-4": {"window": 600}}}'})
    return session.name


CASES = [closed, calibrated_up, calibrated_down, counted_exactly, left_open, compacted, rearranged, too_long]


@pytest.fixture(params=CASES, ids=[case.__name__ for case in CASES])
def label(request: pytest.FixtureRequest, work: Path, nexus_home: Path) -> Iterator[str]:
    """A session in each state."""
    write_files(work, {".nexus3/NEXUS.md": "Be brief.", "AGENTS.md": "Use tabs. " * 30})
    with Nexus(work, home=nexus_home) as nexus:
        yield request.param(nexus)


def tables(out: str) -> dict[str, list[tuple[str, int, str]]]:
    """By heading, the rows of each table with tokens: name, tokens and bar."""
    found: dict[str, list[tuple[str, int, str]]] = {}
    for block in out.split("\n\n"):
        heading, *lines = block.splitlines()
        if re.match(r"[A-Z]+ +TOKENS", heading):
            found[heading.split()[0]] = [*map(read_row, lines)]
    return found


def read_row(line: str) -> tuple[str, int, str]:
    name, tokens, *_ = re.split(r" {2,}", line)
    bar = re.search(r"  (#+)(?:  |$)", line)
    return name, int(tokens.replace(",", "")), bar[1] if bar else ""


# ---- sums -----------------------------------------------------------------------------------------------------------


def test_rows_of_every_table_of_a_session_sum_to_its_last_line(cli: Cli, label: str) -> None:
    found = tables(cli("context", "--session", label, "-n", "3").out)

    assert set(found) >= set(SESSION_TABLES[:-1])
    for rows in found.values():
        assert sum(tokens for _, tokens, _ in rows[:-1]) == rows[-1][1]


def test_tables_of_a_session_sum_to_the_window_and_to_the_total(cli: Cli, label: str) -> None:
    document = json.loads(cli("context", "--session", label, "--json").out)

    found = tables(cli("context", "--session", label).out)

    assert found["ZONE"][-1][:2] == ("window", document["window"])
    assert found["KIND"][-1][1] == found["LAYER"][-1][1] == document["total"]
    listed = found["LARGEST"][-1][1] if document["messages"] else 0
    assert listed == sum(message["tokens"] for message in document["messages"])


def test_every_breakdown_in_json_sums_to_the_total(cli: Cli, label: str) -> None:
    document = json.loads(cli("context", "--session", label, "--json", "--tree").out)

    total, zones = document["total"], document["zones"]
    assert sum(zones.values()) == sum(document["kinds"].values()) == sum(document["layers"].values()) == total
    assert total + document["correction"] + document["reserved"] + document["free"] == document["window"]
    sections, tools = (sum(each["tokens"] for each in document[name]) for name in ("sections", "tools"))
    assert sections + document["framing"] + tools == zones["static"]
    assert sum(each["tokens"] for each in document["messages"]) == zones["history"] + zones["current"]
    assert document["tree"]["tokens"] == total
    assert_adds_up(document["tree"])
    by_zone = {child["name"]: child["tokens"] for child in document["tree"]["children"]}
    assert by_zone == {name: tokens for name, tokens in zones.items() if tokens}


def assert_adds_up(node: dict[str, Any]) -> None:
    if node["children"]:
        assert node["tokens"] == sum(child["tokens"] for child in node["children"])
        for child in node["children"]:
            assert_adds_up(child)


def test_a_bar_is_as_long_as_the_share_beside_it(cli: Cli, label: str) -> None:
    document = json.loads(cli("context", "--session", label, "--json").out)

    found = tables(cli("context", "--session", label).out)

    for heading, whole in (("ZONE", document["window"]), ("KIND", document["total"]), ("LAYER", document["total"])):
        for _, tokens, bar in found[heading][:-1]:
            assert len(bar) == max(min(round(40 * tokens / whole), 40), 0)


def test_the_count_of_a_provider_is_a_row(cli: Cli, work: Path, nexus_home: Path) -> None:
    with Nexus(work, home=nexus_home) as nexus:
        talk(nexus, 6, ratio=1.3)
        budget = nexus.assemble(nexus.request(session="auth-bug")).token_budget

    rows = {name: tokens for name, tokens, _ in tables(cli("context", "--session", "auth-bug").out)["ZONE"]}

    assert rows["margin of the estimate"] == budget.high - budget.total > 0
    assert rows["free"] == budget.remaining


@pytest.mark.parametrize(
    "name", ["claude.jsonl", "codex.jsonl", "gemini_cli.jsonl", "pi.jsonl", "chat.json", "chatgpt.json"]
)
@pytest.mark.parametrize("options", [[], ["--include-compacted"], ["-m", "gpt-4o"], ["-n", "2"]])
def test_rows_of_every_table_of_a_file_sum_to_its_last_line(name: str, options: list[str], cli: Cli) -> None:
    file = str(SAMPLES / name)
    document = json.loads(cli("context", file, "--json", *options).out)

    found = tables(cli("context", file, *options).out)

    for rows in found.values():
        assert sum(tokens for _, tokens, _ in rows[:-1]) == rows[-1][1]
    assert found["ROLE"][-1][1] == found["KIND"][-1][1] == document["total"]
    assert sum(share["tokens"] for share in document["roles"]) == document["total"]
    assert sum(share["tokens"] for share in document["kinds"]) == document["total"]
    assert document["messages"][-1]["cumulative"] + document["not_in_file"] == document["total"]


def test_tokens_that_only_the_provider_counted_are_a_row(cli: Cli) -> None:
    outcome = cli("context", str(SAMPLES / "claude.jsonl"))
    document = json.loads(cli("context", str(SAMPLES / "claude.jsonl"), "--json").out)

    rows = {name: tokens for name, tokens, _ in tables(outcome.out)["ROLE"]}

    before_the_reply = document["messages"][-1]["cumulative"] - document["messages"][-1]["tokens"]
    assert rows["not in the file"] == document["last_usage"]["input_tokens"] - before_the_reply
    assert f"{rows['not in the file']:,} more than the file has up to there" in outcome.out


# ---- the same thing in several commands ---------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["", "gpt-4o", "claude-sonnet-4"])
def test_the_prompt_has_the_same_tokens_in_every_command(model: str, cli: Cli, work: Path, nexus_home: Path) -> None:
    config = {"provider": {"model": model}} if model else {}
    write_files(work, {"AGENTS.md": "Use tabs. " * 300, ".nexus3/config.json": json.dumps(config)})
    with Nexus(work, home=nexus_home) as nexus:
        system = nexus.session("s").preview("Hello").token_budget.used["system"]

    status, context = json.loads(cli("--json").out), json.loads(cli("context", "--json").out)
    numbers = json.loads(cli("--json", "--brief").out)
    assembled = json.loads(cli("assemble", "--json").out)

    assert (status["counter"], status["exact"]) == (context["counter"], context["exact"])
    assert status["prompt_tokens_estimate"] == numbers["prompt_tokens_estimate"] == context["total"] == system
    assert assembled["budget"]["used"]["system"] == system
    assert f"{'' if status['exact'] else 'about '}{system:,} tokens" in cli().out


def test_sessions_have_the_same_tokens_in_every_command(cli: Cli, work: Path, nexus_home: Path) -> None:
    with Nexus(work, home=nexus_home) as nexus:
        used = nexus.session(left_open(nexus)).preview().token_budget.used

    listed = json.loads(cli("session", "list", "--json").out)["sessions"][0]["tokens"]
    stats = json.loads(cli("session", "stats", "auth-bug", "--json").out)["tokens"]
    shown = cli("session", "show", "auth-bug").out
    context = json.loads(cli("context", "--session", "auth-bug", "--json").out)
    assembled = json.loads(cli("assemble", "--session", "auth-bug", "--json").out)

    assert stats == {context["counter"]: listed}
    assert listed == context["zones"]["history"] + context["zones"]["current"]
    assert f", {listed:,} tokens, " in shown
    assert assembled["budget"]["used"] == dict(used)
    assert assembled["budget"]["total"] == context["total"] == sum(used.values())
    assert assembled["budget"]["margin"] == context["zones"]["margin"] > 0


def test_a_compacted_session_says_why_it_is_listed_with_more_than_is_sent(
    cli: Cli, work: Path, nexus_home: Path
) -> None:
    with Nexus(work, home=nexus_home) as nexus:
        compacted(nexus)

    outcome, (facts,) = cli("session", "list"), json.loads(cli("session", "list", "--json").out)["sessions"]

    assert facts["compacted"]
    assert f"{facts['tokens']:,}*" in outcome.out
    assert "* with the messages that a summary stands for" in outcome.err
    assert f"{facts['tokens']:,}* tokens" in cli("session", "show", "auth-bug").out


def test_a_file_and_the_session_made_of_it_have_the_same_tokens(cli: Cli) -> None:
    file = str(SAMPLES / "codex.jsonl")
    cli("session", "import", file)
    (record, *_) = json.loads(cli("session", "list", "--json").out)["sessions"]

    read = json.loads(cli("context", file, "--json").out)
    sent = json.loads(cli("context", "--session", record["label"], "--json").out)

    assert sent["counter"] == read["counter"]
    assert [each["tokens"] for each in sent["messages"]] == [each["tokens"] for each in read["messages"]]


def test_tokens_of_an_import_say_that_they_are_estimated(cli: Cli) -> None:
    imported = cli("session", "import", str(SAMPLES / "claude.jsonl"))
    outcome = cli("session", "list")
    facts = json.loads(cli("session", "list", "--json").out)["sessions"][0]

    assert (facts["counter"], facts["estimated"]) == ("estimate", True)
    assert f"~{facts['tokens']:,}" in outcome.out
    assert f"~{facts['tokens']:,}" in imported.out
    assert "~ estimated, because it was imported, or recorded without a tokenizer; " in outcome.err


# ---- the largest messages -----------------------------------------------------------------------------------------


def test_largest_messages_are_shown_as_they_were_said(cli: Cli, work: Path, nexus_home: Path) -> None:
    with Nexus(work, home=nexus_home) as nexus:
        left_open(nexus)
    cli("session", "export", "auth-bug", "--output", "export.jsonl")

    for arguments in (["--session", "auth-bug"], ["export.jsonl"]):
        out = cli("context", *arguments).out
        assert "Current time" not in out
        assert "user: Why does login 0 fail? Please look." in out
        assert "user: And then? And then?" in out


def test_largest_calls_are_shown_with_their_arguments(cli: Cli, work: Path) -> None:
    call = {"name": "edit", "arguments": json.dumps({"path": "src/login.py", "lines": [3, 4], "text": "x" * 500})}
    messages = [
        {"role": "user", "content": "Fix it."},
        {"role": "assistant", "content": "I do.", "tool_calls": [{"id": "c", "type": "function", "function": call}]},
        {"role": "tool", "tool_call_id": "c", "content": "done"},
    ]
    write_files(work, {"chat.json": json.dumps(messages)})

    out = cli("context", "chat.json").out

    assert 'assistant: I do.; edit(path="src/' in out
