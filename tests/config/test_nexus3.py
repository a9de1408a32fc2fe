"""Settings of NEXUS3 in the same config.json: they lock nobody out, and become settings of Nexus."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nexus_core import ConfigError, Nexus
from nexus_core.config.migrate import migrate_text
from nexus_core.config.nexus3 import find_nexus3_settings
from tests.conftest import Cli

CONFIG: dict[str, Any] = {
    "default_model": "openrouter/fast",
    "providers": {
        "openrouter": {
            "type": "openrouter",
            "api_key_env": "OPENROUTER_API_KEY",
            "base_url": "https://openrouter.ai/api/v1",
            "request_timeout": 60.0,
            "models": {"fast": {"id": "x-ai/grok-4.1-fast", "context_window": 2000000, "guidance": "Quick."}},
        },
        "anthropic": {
            "type": "anthropic",
            "api_key_env": "ANTHROPIC_API_KEY",
            "models": {"haiku": {"id": "claude-haiku-4-5", "context_window": 200000}},
        },
    },
    "stream_output": True,
    "max_tool_iterations": 100,
    "default_permission_level": "sandboxed",
    "skill_timeout": 120.0,
    "permissions": {"default_preset": "sandboxed", "presets": {}},
    "compaction": {"enabled": True, "model": "fast", "trigger_threshold": 0.9},
    "context": {"ancestor_depth": 1, "instruction_files": ["NEXUS.md", "AGENTS.md"]},
    "gitlab": {"instances": {"default": {"url": "https://gitlab.com", "token": "glpat-hush-hush-hush"}}},
    "server": {"port": 8765},
}


@pytest.fixture
def own(nexus_home: Path) -> Path:
    """The user's own config.json, as NEXUS3 has it."""
    nexus_home.mkdir(parents=True, exist_ok=True)
    path = nexus_home / "config.json"
    path.write_text(json.dumps(CONFIG, indent=2), encoding="utf-8")
    return path


def test_settings_of_nexus3_do_not_keep_a_command_from_running(cli: Cli, own: Path) -> None:
    outcome = cli("show")

    assert outcome.code == 0
    assert f"{own}: settings of NEXUS3 are not used: default_model, providers" in outcome.err
    assert "`nexus config migrate` translates them" in outcome.err
    assert cli("config", "validate").code == 0


def test_a_setting_can_be_changed_beside_those_of_nexus3(cli: Cli, own: Path) -> None:
    assert cli("config", "set", "--global", "budget.memory", "9").code == 0
    assert json.loads(own.read_text(encoding="utf-8"))["providers"] == CONFIG["providers"]


def test_an_unknown_setting_is_still_an_error_which_names_the_migration(cli: Cli, own: Path) -> None:
    own.write_text(json.dumps(CONFIG | {"permisions": {}}, indent=2), encoding="utf-8")

    outcome = cli("show")

    assert outcome.code == 3
    assert "unknown setting 'permisions'; did you mean 'permissions'?" in outcome.err
    assert "Correct or remove it first; then `nexus config migrate` translates" in " ".join(outcome.err.split())


@pytest.mark.parametrize("settings", [{"providers": {"model": "x"}}, {"stream_output": 1}, {"server": []}])
def test_a_value_that_nexus3_would_not_have_is_an_error(work: Path, nexus_home: Path, settings: dict[str, Any]) -> None:
    (work / ".nexus3").mkdir()
    (work / ".nexus3/config.json").write_text(json.dumps(settings), encoding="utf-8")

    with pytest.raises(ConfigError, match="unknown setting"):
        Nexus(work, home=nexus_home).load()


def test_a_dry_run_writes_nothing(cli: Cli, own: Path) -> None:
    before = own.read_bytes()

    outcome = cli("config", "migrate", "--dry-run")

    assert outcome.code == 0
    assert own.read_bytes() == before
    assert [path.name for path in own.parent.glob("config.json*")] == ["config.json"]
    rows = [line.split(maxsplit=1) for line in outcome.out.splitlines()]
    assert ["default_model", 'provider.model = "fast"'] in rows
    assert ["providers.openrouter.type", 'provider.provider = "openai"'] in rows
    assert ["providers.openrouter.api_key_env", "provider.api_key_env"] in rows
    assert ["compaction.enabled", "stays"] in rows
    assert ["context.instruction_files", "stays"] in rows
    assert ["gitlab", "not carried: Nexus has no such setting"] in rows
    assert "hush" not in outcome.out + outcome.err


def test_migrating_translates_the_file_and_keeps_it_as_it_was(cli: Cli, own: Path) -> None:
    before = own.read_bytes()

    outcome = cli("config", "migrate")

    assert outcome.code == 0
    assert own.with_name("config.json.nexus3").read_bytes() == before
    assert "NEXUS3 refuses such a file" in outcome.err
    assert json.loads(own.read_text(encoding="utf-8")) == {
        "compaction": {"enabled": True, "model": "fast", "trigger_ratio": 0.9},
        "context": CONFIG["context"],
        "provider": {
            "model": "fast",
            "provider": "openai",
            "api_key_env": "OPENROUTER_API_KEY",
            "base_url": "https://openrouter.ai/api/v1",
        },
        "models": {
            "fast": {"id": "x-ai/grok-4.1-fast", "window": 2000000},
            "haiku": {"id": "claude-haiku-4-5", "window": 200000},
        },
        "permissions": {"level": "sandboxed"},
    }
    assert cli("config", "validate").code == 0
    assert "nexus3-settings" not in cli("show").err


def test_migrating_again_does_nothing(cli: Cli, own: Path) -> None:
    cli("config", "migrate")
    before = own.read_bytes()

    outcome = cli("config", "migrate")

    assert outcome.code == 0
    assert "Nothing to migrate" in outcome.err
    assert own.read_bytes() == before
    assert sorted(path.name for path in own.parent.glob("config.json*")) == ["config.json", "config.json.nexus3"]


def test_migrating_without_a_config_says_that_there_is_none(cli: Cli, nexus_home: Path) -> None:
    outcome = cli("config", "migrate")

    assert (outcome.code, outcome.err) == (0, f"Nothing to migrate: there is no {nexus_home}/config.json.\n")


def test_migrating_lists_what_stays_in_json_too(cli: Cli, own: Path) -> None:
    rows = json.loads(cli("config", "migrate", "--json").out)["settings"]

    assert {"from": "compaction.model", "to": "compaction.model", "value": None, "reason": None} in rows
    assert {"from": "default_model", "to": "provider.model", "value": "fast", "reason": None} in rows
    assert "hush" not in json.dumps(rows)
    assert own.exists()


def test_an_earlier_backup_is_kept(cli: Cli, own: Path) -> None:
    own.with_name("config.json.nexus3").write_text("mine", encoding="utf-8")

    cli("config", "migrate")

    assert own.with_name("config.json.nexus3").read_text(encoding="utf-8") == "mine"
    assert json.loads(own.with_name("config.json.nexus3-2").read_text(encoding="utf-8")) == CONFIG


def test_a_link_is_not_replaced_and_nothing_is_left_beside_it(cli: Cli, own: Path, tmp_path: Path) -> None:
    own.rename(tmp_path / "shared.json")
    own.symlink_to(tmp_path / "shared.json")

    outcome = cli("config", "migrate")

    assert outcome.code == 3
    assert "is a link" in outcome.err
    assert [path.name for path in own.parent.glob("config.json*")] == ["config.json"]


def test_config_migrate_reports_an_unknown_setting_and_translates_the_rest(cli: Cli, own: Path) -> None:
    own.write_text(json.dumps(CONFIG | {"permisions": {}}), encoding="utf-8")

    outcome = cli("config", "migrate")

    assert outcome.code == 0
    assert "unknown setting 'permisions'; did you mean 'permissions'?" in outcome.err
    assert json.loads(own.read_text(encoding="utf-8"))["provider"]["model"] == "fast"
    assert "permisions" in own.read_text(encoding="utf-8")


def test_config_migrate_leaves_out_a_value_of_a_wrong_type(cli: Cli, own: Path) -> None:
    models = {"models": {"a/b": {"id": "a/b-1", "context_window": "large"}}}
    given = {"default_model": "x/a/b", "providers": {"x": {"type": "openrouter", **models}}}
    own.write_text(json.dumps(given | {"compaction": {"trigger_threshold": "high"}}), encoding="utf-8")

    outcome = cli("config", "migrate")

    assert outcome.code == 0
    assert "not carried: compaction.trigger_ratio: should be a valid number" in outcome.out
    assert "not carried: models.a/b.window: should be a valid integer" in outcome.out
    assert json.loads(own.read_text(encoding="utf-8")) == {
        "provider": {"model": "a/b", "provider": "openai"},
        "models": {"a/b": {"id": "a/b-1"}},
    }


@pytest.mark.parametrize(
    ("default", "model"),
    [
        ("x/a/b", "a/b"),
        ("a/b", "a/b"),  # an alias of a provider that is not named
        ("y/c", "c"),
    ],
)
def test_config_migrate_keeps_an_alias_with_a_slash(default: str, model: str) -> None:
    given = {"default_model": default, "providers": {"x": {"models": {"a/b": {"id": "a/b-1"}}}}}

    text, _ = migrate_text(json.dumps(given))

    assert json.loads(text)["provider"]["model"] == model


def test_config_migrate_refuses_a_file_that_is_not_an_object(cli: Cli, own: Path) -> None:
    own.write_text("[]", encoding="utf-8")

    outcome = cli("config", "migrate")

    assert outcome.code == 3
    assert "a configuration must be a JSON object" in outcome.err


def test_an_error_in_a_project_names_the_migration_of_the_project(cli: Cli, work: Path) -> None:
    (work / ".nexus3").mkdir(parents=True, exist_ok=True)
    (work / ".nexus3/config.json").write_text('{"contxt": 4, "skill_timeout": 3}', encoding="utf-8")

    outcome = cli("show")

    assert outcome.code == 3
    assert "then `nexus config migrate --project` translates" in " ".join(outcome.err.split())


def test_a_project_gets_nothing_that_only_the_user_decides(cli: Cli, work: Path) -> None:
    (work / ".nexus3").mkdir()
    path = work / ".nexus3/config.json"
    path.write_text(json.dumps(CONFIG), encoding="utf-8")

    outcome = cli("config", "migrate", "--project", "--json")

    written = json.loads(path.read_text(encoding="utf-8"))
    assert (written["provider"], written["models"]["fast"]) == (
        {"model": "fast", "provider": "openai"},
        {"window": 2000000},
    )
    reasons = {row["from"]: row["reason"] for row in json.loads(outcome.out)["settings"]}
    assert reasons["providers.openrouter.base_url"] == "only your own config may have it"


def test_a_setting_that_is_there_already_stays() -> None:
    text, moved = migrate_text('{\n  "default_model": "fast",\n  "provider": {"model": "gpt-4o"}\n}\n')

    assert text == '{\n  "provider": {"model": "gpt-4o"}\n}\n'
    assert moved[0].reason == "provider.model is set already"


def test_an_older_file_with_one_provider_is_translated() -> None:
    old = {
        "provider": {"type": "anthropic", "api_key_env": "KEY", "model": "haiku", "max_retries": 3},
        "models": {"haiku": {"id": "claude-haiku-4-5", "context_window": 200000, "reasoning": True}},
    }

    text, _ = migrate_text(json.dumps(old))

    assert json.loads(text) == {
        "provider": {"api_key_env": "KEY", "model": "haiku", "provider": "anthropic"},
        "models": {"haiku": {"id": "claude-haiku-4-5", "window": 200000}},
    }
    assert find_nexus3_settings(json.loads(text)) == []


# ---- aliases of models --------------------------------------------------------------------------------------------


def set_models(home: Path, models: dict[str, Any], **more: Any) -> None:
    home.mkdir(parents=True, exist_ok=True)
    (home / "config.json").write_text(json.dumps({"models": models, **more}), encoding="utf-8")


def test_an_alias_is_asked_by_the_id_of_its_model(work: Path, nexus_home: Path) -> None:
    set_models(nexus_home, {"fast": {"id": "acme-large-7", "window": 3000}})

    with Nexus(work, home=nexus_home) as nexus:
        context = nexus.session("s", model="fast").ask("Hello?")

    assert (context.model, context.token_budget.limit) == ("acme-large-7", 3000)


def test_the_configured_model_may_be_an_alias(cli: Cli, nexus_home: Path) -> None:
    set_models(nexus_home, {"fast": {"id": "acme-large-7", "window": 3000}}, provider={"model": "fast"})

    shown = cli("show", "--loaded").out

    assert "Model: acme-large-7" in shown
    assert "Context window: 3000 tokens" in shown


@pytest.mark.parametrize("name", ["fast", "acme-large-7"])
def test_a_command_takes_an_alias_and_what_is_said_of_it(cli: Cli, work: Path, nexus_home: Path, name: str) -> None:
    set_models(nexus_home, {"fast": {"id": "acme-large-7", "window": 3000}})
    (work / "talk.json").write_text('[{"role": "user", "content": "hi"}]', encoding="utf-8")

    facts = json.loads(cli("context", "talk.json", "--model", name, "--json").out)

    assert (facts["model"], facts["window"]) == ("acme-large-7", 3000)


def test_an_alias_of_an_alias_is_the_same_model_for_every_command(cli: Cli, work: Path, nexus_home: Path) -> None:
    models = {"fast": {"id": "acme"}, "acme": {"id": "acme-large-7", "window": 3000}, "solo": {"id": "solo"}}
    set_models(nexus_home, models, provider={"model": "fast"})
    with Nexus(work, home=nexus_home) as nexus:
        context = nexus.session("s").ask("Hello?")

    facts = json.loads(cli("context", "--session", "s", "--json").out)

    assert (context.model, context.token_budget.limit) == ("acme-large-7", 3000)
    assert (facts["model"], facts["window"]) == ("acme-large-7", 3000)
    assert "Model: acme-large-7" in cli("show", "--loaded").out


def test_aliases_that_stand_for_each_other_are_refused(cli: Cli, nexus_home: Path) -> None:
    set_models(nexus_home, {"a": {"id": "b"}, "b": {"id": "a"}})

    outcome = cli("show")

    assert outcome.code == 3
    assert "these aliases refer to each other, and to no model: a → b → a" in outcome.err


def test_a_project_cannot_say_what_a_name_stands_for(cli: Cli, work: Path) -> None:
    (work / ".nexus3").mkdir()
    settings = {"models": {"gpt-4o": {"id": "acme-large-7", "window": 3000}}}
    (work / ".nexus3/config.json").write_text(json.dumps(settings), encoding="utf-8")
    (work / "talk.json").write_text('[{"role": "user", "content": "hi"}]', encoding="utf-8")

    outcome = cli("context", "talk.json", "--model", "gpt-4o", "--json")

    assert json.loads(outcome.out)["model"] == "gpt-4o"
    assert "models.gpt-4o.id can only be set in your own config" in cli("show").err
