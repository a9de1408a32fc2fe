"""Commands that name a dialect, or are given something in its shape, know those of plugins."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nexus_core.testing import write_files
from tests.conftest import Cli, InstallPlugin

PLUGIN = """
from tests.dialects.telegraph import TelegraphPlugin

nexus_dialects = TelegraphPlugin().nexus_dialects
nexus_models = TelegraphPlugin().nexus_models
"""
WHY = {"from": "caller", "words": ["WHY"]}
ANSWER = {"telegram": {"from": "office", "words": ["BECAUSE"]}, "number": "n1"}
ORDER = {"from": "office", "orders": [{"slip": "1", "do": "LOOK", "with": {}}]}


@pytest.fixture(autouse=True)
def installed(install_plugin: InstallPlugin) -> None:
    install_plugin("wire", PLUGIN)


def listed(cli: Cli, *arguments: str) -> Any:
    outcome = cli(*arguments)
    assert outcome.code == 0, outcome.err
    return json.loads(outcome.out)


def test_assemble_prints_the_body_of_its_call(cli: Cli) -> None:
    body = listed(cli, "assemble", "Why?", "--model", "morse-1", "--api", "telegraph")

    assert body["line"][-1]["from"] == "caller"


def test_no_model_is_foreign_to_it(cli: Cli) -> None:
    assert "foreign-model" not in cli("assemble", "Why?", "--model", "gpt-4o", "--api", "telegraph").err


def test_assemble_answers_a_name_that_is_nearly_its_own(cli: Cli) -> None:
    outcome = cli("assemble", "Why?", "--api", "telegraf")

    assert outcome.code == 2
    assert "did you mean 'telegraph'?" in outcome.err


def test_all_that_is_known_of_a_call_tells_its_cache(cli: Cli) -> None:
    facts = listed(cli, "assemble", "Why?", "--model", "morse-1", "--json")

    assert facts["cache"]["api"] == "telegraph"


def test_check_goes_by_its_rules(cli: Cli, work: Path) -> None:
    write_files(work, {"a.json": json.dumps([WHY, ORDER, WHY])})

    outcome = cli("check", "a.json", "--api", "telegraph", "--json")
    fixed = listed(cli, "check", "a.json", "--fix")

    assert [finding["code"] for finding in json.loads(outcome.out)["findings"]] == ["missing-result"]
    assert [item["from"] for item in fixed] == ["caller", "office", "clerk", "caller"]
    assert "did you mean 'telegraph'?" in cli("check", "a.json", "--api", "telegrph").err


def test_a_session_is_kept_and_exported(cli: Cli, work: Path) -> None:
    write_files(work, {"why.json": json.dumps(WHY), "answer.json": json.dumps(ANSWER)})

    asked = listed(cli, "session", "record", "s", "why.json", "--model", "morse-1", "--json", "--api", "telegraph")
    recorded = listed(cli, "session", "record", "s", "answer.json", "--json")
    exported = listed(cli, "session", "export", "s", "--api", "telegraph")

    assert asked["request"]["line"][-1]["from"] == "caller"
    assert recorded["recorded"][0]["text"] == "BECAUSE"
    assert exported[-1]["words"] == ["BECAUSE"]
    assert "did you mean 'telegraph'?" in cli("session", "export", "s", "--api", "telegrap").err


def test_a_file_of_its_messages_is_shown_and_imported(cli: Cli, work: Path) -> None:
    lines = "\n".join(map(json.dumps, [WHY, {"from": "office", "words": ["BECAUSE"]}]))
    write_files(work, {"chat.jsonl": lines, "chat.json": json.dumps([WHY])})

    shown = listed(cli, "context", "chat.jsonl", "--json")
    imported = listed(cli, "session", "import", "chat.jsonl", "--json")

    assert (shown["api"], len(shown["messages"])) == ("telegraph", 2)
    assert imported["files"][0]["label"] == "chat"
    assert cli("context", "chat.json").code == 0


def test_a_request_in_a_file_is_compared_with_what_would_be_sent(cli: Cli, work: Path) -> None:
    write_files(work, {"a.json": json.dumps([WHY]), "b.json": json.dumps([{"from": "caller", "words": ["HOW"]}])})

    outcome = cli("diff", "a.json", "b.json")

    assert "message 0 (user)" in outcome.out, outcome.err


def test_a_provider_that_is_nearly_called_so_is_found_by_the_doctor(cli: Cli, work: Path) -> None:
    write_files(work, {".nexus3/config.json": json.dumps({"provider": {"provider": "telegrap"}})})

    assert "no API is called 'telegrap'; did you mean 'telegraph'?" in cli("doctor").out

    write_files(work, {".nexus3/config.json": json.dumps({"provider": {"provider": "telegraph"}})})

    assert "no API is called" not in cli("doctor").out
