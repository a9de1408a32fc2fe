"""What the settings say about compaction, and who may say it."""

from __future__ import annotations

import pytest

from nexus_core import ConfigError, Nexus
from nexus_core.compaction.trigger import CompactionOptions, read_compaction_options
from nexus_core.config.schema import CompactionConfig, Config
from nexus_core.testing import write_files
from nexus_core.testing.fixtures import MakeNexus
from nexus_core.types.settings import Settings


def test_the_defaults_are_those_of_the_schema() -> None:
    said = CompactionConfig().model_dump()
    said = {name: tuple(value) if isinstance(value, list) else value for name, value in said.items()}

    assert CompactionOptions()._asdict() == said
    assert read_compaction_options(Settings()) == CompactionOptions()


def test_what_was_set_counts() -> None:
    settings = Settings({"compaction": {"keep_turns": 5, "summarizers": ["local"], "command": ["llm", "-m", "x"]}})

    options = read_compaction_options(settings)

    assert (options.keep_turns, options.summarizers, options.command) == (5, ("local",), ("llm", "-m", "x"))
    assert options.target_ratio == 0.6


@pytest.mark.acceptance("C-22")
def test_all_of_it_can_be_said_in_config_json() -> None:
    value = {
        "enabled": True,
        "trigger_ratio": 0.85,
        "trigger_tokens": 100_000,
        "trigger_turns": 40,
        "target_ratio": 0.5,
        "overflow_ratio": 0.3,
        "keep_turns": 2,
        "recent_preserve_ratio": 0.25,
        "summary_budget_ratio": 0.2,
        "summary_marker": "[Before]",
        "summary_role": "system",
        "redact_secrets": False,
        "evidence": False,
        "evidence_tokens": 100,
        "user_tokens": 100,
        "fidelity": "warn",
        "summarizers": ["given"],
        "form": "cached",
        "model": "small",
        "command": ["llm"],
        "timeout": 5.0,
    }

    assert Config.model_validate({"compaction": value}).compaction.model_dump() == value


@pytest.mark.parametrize(
    "value",
    [
        '{"target_ratio": 0}',
        '{"target_ratio": 1.5}',
        '{"keep_turns": 0}',
        '{"fidelity": "loud"}',
        '{"form": "short"}',
        '{"timeout": 0}',
        '{"summarizers": []}',
        '{"command": "llm"}',
        '{"evidence_tokens": -1}',
        '{"sumarisers": ["x"]}',
    ],
)
def test_what_makes_no_sense_is_refused(make_nexus: MakeNexus, value: str) -> None:
    nexus = make_nexus()
    write_files(nexus.home, {"config.json": f'{{"compaction": {value}}}'})

    with pytest.raises(ConfigError, match="compaction"):
        nexus.load()


@pytest.mark.acceptance("T3")
def test_a_project_cannot_turn_off_that_secrets_are_taken_out(make_nexus: MakeNexus) -> None:
    nexus = make_nexus(files={".nexus3/config.json": '{"compaction": {"redact_secrets": false, "keep_turns": 9}}'})

    loaded = nexus.load()

    assert read_compaction_options(loaded.settings)[6:10] == (9, 0.25, 0.25, True)
    assert [finding.code for finding in loaded.findings] == ["protected-setting"]


@pytest.mark.acceptance("T1")
@pytest.mark.parametrize("setting", ['"command": ["llm"]', '"summarizers": ["remote"]'])
def test_who_summarises_waits_for_approval_in_a_project(make_nexus: MakeNexus, setting: str) -> None:
    nexus = make_nexus(files={".nexus3/config.json": f'{{"compaction": {{{setting}}}}}'})

    loaded = nexus.load()

    assert read_compaction_options(loaded.settings) == CompactionOptions()
    assert [part.decision for part in loaded.active] == ["pending"]


@pytest.mark.acceptance("C-01")
def test_a_chain_of_one_layer_takes_the_place_of_that_of_another(make_nexus: MakeNexus) -> None:
    nexus = make_nexus()
    write_files(nexus.home, {"config.json": '{"compaction": {"summarizers": ["a", "b"], "command": ["x", "y"]}}'})
    write_files(nexus.cwd, {".nexus3/config.json": '{"compaction": {"summarizers": ["c"], "command": ["z"]}}'})
    approve_all(nexus)

    options = read_compaction_options(nexus.load().settings)

    assert (options.summarizers, options.command) == (("c",), ("z",))


def approve_all(nexus: Nexus) -> None:
    from nexus_core.trust.store import TrustStore

    TrustStore(nexus.home).allow(nexus.load().active)
