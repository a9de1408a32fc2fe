"""Money beside tokens, in every command that shows usage."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest

from nexus_core import Nexus
from nexus_core.testing import write_files
from nexus_core.types.messages import Message, Reply, Usage
from tests.conftest import Cli

USAGE = Usage(
    input_tokens=100_000,
    cached_input_tokens=80_000,
    cache_write_tokens=10_000,
    cache_write_1h_tokens=4_000,
    output_tokens=1_000,
)
# 10,000 at 3, 80,000 at 0.30, 6,000 at 3.75, 4,000 at 6, 1,000 at 15
COST = 0.03 + 0.024 + 0.0225 + 0.024 + 0.015
DATE = "2026-10-10"


def say(nexus: Nexus, label: str, *models: str, usage: Usage = USAGE) -> None:
    session = nexus.session(label, model="claude-sonnet-4-5")
    for model in models:
        session.ask("question")
        session.record(Reply(messages=(Message("assistant", "answer"),), stop="end", model=model, usage=usage))


@pytest.fixture
def costly(nexus: Nexus) -> Nexus:
    """A session with calls of a known price, one of an unknown price, and one of both."""
    say(nexus, "known", "claude-sonnet-4-5", "claude-sonnet-4-5-20250929")
    say(nexus, "other", "acme-1")
    say(nexus, "mixed", "claude-sonnet-4-5", "acme-1")
    return nexus


def test_session_list_says_that_forks_repeat_the_cost_of_their_calls(cli: Cli, costly: Nexus) -> None:
    note = "COST of forks includes the calls that they share"
    before = cli("session", "list").err

    costly.session("known").fork("again")
    listed = cli("session", "list")

    assert note not in before
    assert note in listed.err
    assert listed.out.count(" $0.2310 ") == 2


@pytest.mark.usefixtures("costly")
def test_session_list_shows_the_cost_and_the_date_of_the_prices(cli: Cli) -> None:
    listed = cli("session", "list")
    facts = {each["label"]: each["cost"] for each in json.loads(cli("session", "list", "--json").out)["sessions"]}

    rows = {line.split()[0]: line for line in listed.out.splitlines()}
    assert " $0.2310 " in rows["known"]
    assert " unknown " in rows["other"]
    assert " $0.1155 + unknown " in rows["mixed"]
    assert f"prices of {DATE}" in listed.err
    assert facts["known"]["total"] == pytest.approx(2 * COST, abs=1e-6)
    assert facts["known"]["prices_of"] == DATE
    assert facts["other"] is None
    assert facts["mixed"]["unpriced_calls"] == 1


@pytest.mark.usefixtures("costly")
def test_session_stats_has_the_cost_of_each_model(cli: Cli) -> None:
    printed = cli("session", "stats")
    facts = json.loads(cli("session", "stats", "--json").out)

    costs = {each["model"]: each["cost"] for each in facts["models"]}
    assert costs["acme-1"] is None
    assert costs["claude-sonnet-4-5"]["total"] == pytest.approx(2 * COST, abs=1e-6)
    assert facts["cost"]["total"] == pytest.approx(3 * COST, abs=1e-6)
    assert facts["cost"]["unpriced_calls"] == 2
    assert "$0.3465 + unknown" in printed.out
    assert f"prices of {DATE}" in printed.err


def test_session_without_usage_has_no_cost(cli: Cli, nexus: Nexus) -> None:
    say(nexus, "free", "claude-sonnet-4-5", usage=Usage())

    assert json.loads(cli("session", "list", "--json").out)["sessions"][0]["cost"] is None
    assert "$" not in cli("session", "list").out


def test_session_list_leaves_out_costs_on_request(cli: Cli, costly: Nexus) -> None:
    del costly

    assert "COST" not in cli("session", "list", "--no-cost").out
    assert all("cost" not in each for each in json.loads(cli("session", "list", "--no-cost", "--json").out)["sessions"])


def test_session_list_works_with_invalid_settings(cli: Cli, costly: Nexus, nexus_home: Path, work: Path) -> None:
    costly.close()
    write_files(work, {".nexus3/config.json": '{"models": 3}'})

    listed = cli("session", "list", "--ledger", str(nexus_home / "ledger.db"))

    assert listed.code == 0, listed.err
    assert "$0.2310" in listed.out


def test_own_price_in_settings_counts(cli: Cli, costly: Nexus, nexus_home: Path) -> None:
    del costly
    write_files(nexus_home, {"config.json": '{"models": {"acme-1": {"price": {"input": 1, "output": 10}}}}'})

    assert " $0.1100 " in next(line for line in cli("session", "list").out.splitlines() if line.startswith("other"))


def test_own_price_counts_beside_instructions_that_cannot_be_read(
    cli: Cli, costly: Nexus, nexus_home: Path, work: Path
) -> None:
    del costly
    write_files(nexus_home, {"config.json": '{"models": {"acme-1": {"price": {"input": 1, "output": 10}}}}'})
    (work / "NEXUS.md").write_bytes(b"Caf\xe9\n")

    assert " $0.1100 " in next(line for line in cli("session", "list").out.splitlines() if line.startswith("other"))


@pytest.mark.parametrize("form", ["markdown", "html"])
@pytest.mark.usefixtures("costly")
def test_exports_have_the_cost_of_every_turn(cli: Cli, form: str) -> None:
    known, mixed = (cli("session", "export", label, "--format", form).out for label in ("known", "mixed"))

    assert f"cost $0.2310, at prices of {DATE}" in known
    assert known.count("1,000 out · $0.1155") >= 2
    assert "1,000 out · cost unknown" in mixed


def test_context_shows_the_cost_of_the_input(cli: Cli, work: Path) -> None:
    write_files(work, {"AGENTS.md": "Be kind. " * 2000})

    known, unknown = (cli("context", "-m", model) for model in ("claude-sonnet-4-5", "gpt-4o-audio-preview"))
    facts = json.loads(cli("context", "-m", "claude-sonnet-4-5", "--json").out)

    assert "Cost of the input: ~$0.0" in known.out
    assert f"if all of it comes from the cache (prices of {DATE})" in known.out
    assert "Cost of the input: unknown" in unknown.out
    assert facts["input_cost"]["total"] == pytest.approx(facts["total"] * 3 / 1_000_000, abs=1e-6)
    assert facts["cached_input_cost"]["total"] == pytest.approx(facts["total"] * 0.3 / 1_000_000, abs=1e-6)
    assert facts["input_cost"]["estimated"] is True


def test_context_of_a_transcript_adds_up_its_calls(cli: Cli, work: Path) -> None:
    usage = {
        "input_tokens": 10_000,
        "cache_read_input_tokens": 80_000,
        "cache_creation_input_tokens": 10_000,
        "cache_creation": {"ephemeral_5m_input_tokens": 6_000, "ephemeral_1h_input_tokens": 4_000},
        "output_tokens": 1_000,
    }
    lines = [
        {"type": "user", "uuid": "1", "sessionId": "s", "message": {"role": "user", "content": "hello"}},
        {
            "type": "assistant",
            "uuid": "2",
            "parentUuid": "1",
            "sessionId": "s",
            "message": {
                "id": "m",
                "role": "assistant",
                "model": "claude-sonnet-4-5-20250929",
                "content": [{"type": "text", "text": "hi"}],
                "usage": usage,
            },
        },
    ]
    write_files(work, {"s.jsonl": "\n".join(map(json.dumps, lines)) + "\n"})

    assert f"All calls in the file cost $0.1155, at prices of {DATE}." in cli("context", "s.jsonl").out
    assert json.loads(cli("context", "s.jsonl", "--json").out)["cost"]["cache_write"] == 0.0465


@pytest.mark.usefixtures("costly")
def test_diff_shows_the_cost_of_what_is_sent_again(cli: Cli) -> None:
    printed = cli("diff", "known")
    facts = json.loads(cli("diff", "known", "--json").out)

    assert "That input costs ~$" in printed.out
    assert "from the cache, " in printed.out
    assert facts["cost"]["cache_read"] == pytest.approx(facts["stable"] * 0.3 / 1_000_000, abs=1e-6)
    assert facts["cost"]["input"] == pytest.approx((facts["again"] + facts["new"]) * 3 / 1_000_000, abs=1e-6)


def test_doctor_says_when_prices_are_old(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    young = cli("doctor").out
    monkeypatch.setattr("nexus_core.tokens.prices.get_today", lambda: date(2027, 6, 1))

    old = cli("doctor")

    assert "old-prices" not in young
    assert f"the prices of models are of {DATE}, 234 days ago" in old.out
    assert old.code == 0


def test_doctor_names_the_configured_model(cli: Cli, nexus_home: Path) -> None:
    write_files(nexus_home, {"config.json": '{"provider": {"model": "gpt-4o"}}'})

    assert "the price of 'gpt-4o' is of 2025-11-13, 369 days ago" in cli("doctor").out


def test_lifetime_of_the_cache_is_stored_only_where_it_is_not_the_usual_one(nexus: Nexus) -> None:
    say(nexus, "hour", "claude-sonnet-4-5")
    say(nexus, "usual", "claude-sonnet-4-5", usage=Usage(input_tokens=10, cache_write_tokens=5))

    stored = {}
    for label in ("hour", "usual"):
        record = nexus.ledger.session(label)
        assert record is not None
        tip = nexus.ledger.step(str(record.tip))
        assert tip is not None
        stored[label] = [tip.data[name] for name in ("usage", "spent")]

    assert all(each["cache_write_1h_tokens"] == 4_000 for each in stored["hour"])  # type: ignore[index] # JSON
    assert not any("cache_write_1h_tokens" in each for each in stored["usual"])  # type: ignore[operator] # JSON
