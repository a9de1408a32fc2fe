import json
from pathlib import Path

import pytest

from nexus_core.testing import write_files
from tests.conftest import Cli


@pytest.fixture
def layered(work: Path, nexus_home: Path) -> None:
    write_files(nexus_home, {"config.json": '{\n  "provider": {"model": "own"}\n}'})
    write_files(work, {".nexus3/config.json": '{"provider": {"model": "project"}}'})


@pytest.mark.usefixtures("layered")
def test_every_setting_is_shown_with_where_it_comes_from(cli: Cli, work: Path, nexus_home: Path) -> None:
    row = next(line for line in cli("config", "show", "--origins").out.splitlines() if "provider.model" in line)

    assert row.split() == [
        "provider.model",
        '"project"',
        f"{work}/.nexus3/config.json:1",
        "(local)",
        f"{nexus_home}/config.json:2",
    ]


@pytest.mark.usefixtures("layered")
def test_settings_as_json(cli: Cli) -> None:
    document = json.loads(cli("config", "show", "--json").out)

    assert document["settings"]["provider"]["model"] == "project"
    assert [origin["layer"] for origin in document["origins"]["/provider/model"]] == ["local", "global"]


def test_the_environment_of_a_server_is_never_shown(cli: Cli, nexus_home: Path) -> None:
    server = {"name": "a", "command": ["x"], "env": {"TOKEN": "sk-secret"}}
    write_files(nexus_home, {"mcp.json": json.dumps({"servers": [server]})})

    for command in (["show"], ["show", "--origins"], ["show", "--json"], ["get", "mcp_servers"]):
        out = cli("config", *command).out
        assert ("sk-secret" in out, "(hidden)" in out) == (False, True)
    assert "sk-secret" not in cli("config", "get", "mcp_servers", "--json").out


@pytest.mark.usefixtures("layered")
def test_one_setting_is_printed_plainly(cli: Cli) -> None:
    assert cli("config", "get", "provider.model").out == "project\n"
    assert cli("config", "get", "compaction.keep_turns").out == "3\n"
    assert json.loads(cli("config", "get", "context.ancestor_depth", "--json").out)["value"] == 2


def test_an_unknown_setting_suggests_the_nearest(cli: Cli) -> None:
    outcome = cli("config", "get", "provider.modle")

    assert (outcome.code, "did you mean 'provider.model'?" in outcome.err) == (2, True)


def test_setting_a_value_leaves_the_rest_of_the_file_alone(cli: Cli, work: Path) -> None:
    text = '{\n\t"_comment": "mine",\n\t"provider" : { "model":"old" },\n\t"context": {}\n}'
    write_files(work, {".nexus3/config.json": text})

    outcome = cli("config", "set", "provider.model", "new")

    path = work / ".nexus3/config.json"
    assert (outcome.code, outcome.out) == (0, f"{path}\n")
    assert path.read_text() == text.replace('"old"', '"new"')


def test_config_unset_removes_one_setting_and_nothing_else(cli: Cli, work: Path) -> None:
    text = '{\n\t"_comment": "mine",\n\t"context": {"clock": "off", "max_tokens": 9000}\n}'
    write_files(work, {".nexus3/config.json": text})

    outcome = cli("config", "unset", "context.max_tokens")

    path = work / ".nexus3/config.json"
    assert (outcome.code, outcome.out) == (0, f"{path}\n")
    assert path.read_text() == text.replace(', "max_tokens": 9000', "")


def test_config_unset_removes_a_group_that_becomes_empty(cli: Cli, nexus_home: Path) -> None:
    write_files(nexus_home, {"config.json": '{"provider": {"model": "old"}, "renderer": "tagged"}'})

    cli("config", "unset", "--global", "provider.model")

    assert json.loads((nexus_home / "config.json").read_text()) == {"renderer": "tagged"}


def test_config_unset_removes_a_setting_that_keeps_other_commands_from_running(cli: Cli, nexus_home: Path) -> None:
    write_files(nexus_home, {"config.json": '{"provder": 3, "renderer": "labelled"}'})

    assert cli("config", "unset", "--global", "provder").code == 0
    assert cli("show").code == 0


def test_config_unset_suggests_the_nearest_setting_of_the_file(cli: Cli, work: Path) -> None:
    write_files(work, {".nexus3/config.json": '{"provider": {"model": "old"}}'})

    outcome = cli("config", "unset", "provider.modle")

    assert outcome.code == 2
    assert "did you mean 'provider.model'?" in outcome.err


def test_config_unset_says_that_a_known_setting_is_not_set(cli: Cli, work: Path) -> None:
    write_files(work, {".nexus3/config.json": '{"provider": {"model": "old"}}'})

    outcome = cli("config", "unset", "context.ancestor_depth")

    assert outcome.code == 2
    assert f"context.ancestor_depth is not set in {work}/.nexus3/config.json\n" in outcome.err
    assert "unknown" not in outcome.err


def test_config_unset_lists_no_comments_among_the_known_settings(cli: Cli, work: Path) -> None:
    content = '{"_comment": "Mine.", "$schema": "x", "provider": {"_comment": "Whose.", "model": "old"}}'
    write_files(work, {".nexus3/config.json": content})

    outcome = cli("config", "unset", "zzz")

    assert outcome.code == 2
    assert "known: provider, provider.model\n" in outcome.err


def test_config_unset_says_where_a_setting_is_still_set(cli: Cli, work: Path, nexus_home: Path) -> None:
    write_files(work, {".nexus3/config.json": '{"renderer": "labelled"}'})
    write_files(nexus_home, {"config.json": '{"renderer": "tagged"}'})

    outcome = cli("config", "unset", "renderer")

    assert f"renderer is still set in {nexus_home / 'config.json'}:1." in outcome.err


def test_config_unset_writes_nothing_in_a_dry_run(cli: Cli, work: Path) -> None:
    write_files(work, {".nexus3/config.json": '{"renderer": "labelled", "context": {"clock": "off"}}'})

    outcome = cli("config", "unset", "renderer", "--dry-run")

    assert json.loads(outcome.out) == {"context": {"clock": "off"}}
    assert "labelled" in (work / ".nexus3/config.json").read_text()


def test_a_file_is_made_where_there_is_none(cli: Cli, nexus_home: Path) -> None:
    cli("config", "set", "--global", "context.ancestor_depth", "4")

    assert json.loads((nexus_home / "config.json").read_text()) == {"context": {"ancestor_depth": 4}}


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        (
            "provider.base_url",
            "https://example.com",
            "can only be set in your own config, not by a project, so it would be ignored",
        ),
        (
            "provider",
            '{"base_url": "https://example.com"}',
            "provider.base_url can only be set in your own config, not by a project",
        ),
        ("plugins.providers.endpoints", "{}", "can only be set in your own config, not by a project"),
        ("permissions.level", "yolo", "a project may only tighten it, so it would be ignored"),
    ],
)
def test_a_setting_that_a_project_does_not_decide_is_refused(
    cli: Cli, work: Path, key: str, value: str, words: str
) -> None:
    for options in ((), ("--dry-run",)):
        outcome = cli("config", "set", key, value, *options)

        assert (outcome.code, outcome.out) == (2, "")
        assert words in outcome.err
        assert f"nexus config set --global {key}" in outcome.err
    assert not (work / ".nexus3").exists()


def test_a_setting_that_waits_for_approval_is_written_and_said_to(cli: Cli, work: Path) -> None:
    outcome = cli("config", "set", "compaction.command", '["summarize"]')

    assert (outcome.code, outcome.out) == (0, f"{work}/.nexus3/config.json\n")
    assert outcome.err == "It takes effect after `nexus trust allow`.\n"


def test_permissions_that_a_project_tightens_are_written(cli: Cli) -> None:
    assert cli("config", "set", "permissions.level", "sandboxed").err == ""


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("context.ancestor_depth", "99", "cannot set context.ancestor_depth: should be"),
        ("permissions.level", "wild", "cannot set permissions.level: must be one of"),
        ("plugins.environment.git", "7", "cannot set plugins.environment.git: should be a valid boolean"),
        ("plugins.enviroment.git", "true", "unknown plugin 'enviroment'; did you mean 'environment'?"),
        ("truncation.strategy", "oldest", "cannot set truncation.strategy: unknown truncation 'oldest'"),
        ("models.acme.window", "none", "cannot set models.acme.window: should be a valid integer"),
    ],
)
def test_a_value_that_is_not_allowed_is_refused_naming_the_setting_once(
    cli: Cli, work: Path, key: str, value: str, said: str
) -> None:
    outcome = cli("config", "set", key, value)

    assert outcome.code == 2
    assert not (work / ".nexus3").exists()
    assert outcome.err.count(key) == 1
    assert said in outcome.err


def test_what_is_known_of_a_model_is_set_and_found_whatever_its_name(cli: Cli, work: Path) -> None:
    outcome = cli("config", "set", "models.acme-4.1.window", "9000")

    config = work / ".nexus3/config.json"
    assert outcome.code == 0
    assert json.loads(config.read_text()) == {"models": {"acme-4.1": {"window": 9000}}}
    assert cli("config", "get", "models.acme-4.1.window").out == "9000\n"
    assert f"{config}:4  9000 (local)" in cli("explain", "models.acme-4.1.window").out


@pytest.mark.parametrize("command", [("get",), ("set", "1")])
def test_what_nobody_says_of_a_model_is_refused(cli: Cli, command: tuple[str, ...]) -> None:
    verb, *value = command

    outcome = cli("config", verb, "models.acme-4.1.windw", *value)

    assert outcome.code == 2
    assert "did you mean 'models.acme-4.1.window'?" in outcome.err


def test_an_option_of_the_provider_is_set_by_its_name(cli: Cli, nexus_home: Path) -> None:
    cli("config", "set", "--global", "provider.options.temperature", "0.2")

    config = json.loads((nexus_home / "config.json").read_text())
    assert config == {"provider": {"options": {"temperature": 0.2}}}


def test_what_would_be_ignored_as_part_of_something_else_is_refused_too(cli: Cli, work: Path) -> None:
    outcome = cli("config", "set", "provider.options.temperature", "0.2")

    assert outcome.code == 2
    assert (
        "provider.options can only be set in your own config, not by a project, so it would be ignored" in outcome.err
    )
    assert not (work / ".nexus3").exists()


@pytest.mark.usefixtures("layered")
def test_a_setting_that_has_an_effect_is_written_without_a_word(cli: Cli, work: Path) -> None:
    write_files(work, {"AGENTS.md": "hid\u200bden", "NEXUS.md": "x"})

    assert cli("config", "set", "truncation.strategy", "middle_out").err == ""


def test_what_is_wrong_with_the_project_does_not_stop_a_change_of_ones_own(
    cli: Cli, work: Path, nexus_home: Path
) -> None:
    write_files(work, {".nexus3/config.json": "{"})

    outcome = cli("config", "set", "--global", "provider.model", "x")

    assert (outcome.code, outcome.err) == (0, "")
    assert json.loads((nexus_home / "config.json").read_text()) == {"provider": {"model": "x"}}


def test_ones_own_settings_are_changed_only_on_purpose(
    cli: Cli, nexus_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(nexus_home.parent))

    outcome = cli("-C", str(nexus_home.parent), "config", "set", "provider.model", "x")

    assert (outcome.code, "nexus config set --global" in outcome.err) == (2, True)
    assert list(nexus_home.iterdir()) == []


@pytest.mark.parametrize(
    ("key", "value"), [("context.ancestor_depth", "11"), ("permissions.level", "root"), ("provider", "x")]
)
def test_a_value_that_is_not_allowed_is_not_written(cli: Cli, work: Path, key: str, value: str) -> None:
    outcome = cli("config", "set", key, value)

    assert outcome.code == 2
    assert key.partition(".")[0] in outcome.err
    assert not (work / ".nexus3").exists()


def test_a_broken_file_is_not_touched(cli: Cli, work: Path) -> None:
    write_files(work, {".nexus3/config.json": "{"})

    assert cli("config", "set", "provider.model", "x").code == 3
    assert (work / ".nexus3/config.json").read_text() == "{"


def test_a_dry_run_prints_the_file_and_writes_nothing(cli: Cli, work: Path) -> None:
    outcome = cli("config", "set", "provider.model", "x", "--dry-run")

    assert json.loads(outcome.out) == {"provider": {"model": "x"}}
    assert not (work / ".nexus3").exists()


@pytest.mark.parametrize(
    "written",
    [
        '{"mcp_servers": [{"name": "a", "command": ["x"], "environment": {"A": "hunter2hunter2"}}]}',
        '{"mcp_servers": {"a": {"url": "https://x.example", "http_headers": {"A": "hunter2hunter2"}}}}',
        '{"mcpServers": {"a": {"command": "x", "env": {"A": "hunter2hunter2"}}}}',
        '{"mcp_servers": {"a": {"command": ["x", "--token", "hunter2hunter2"]}}}',
    ],
)
def test_a_dry_run_prints_no_secret_that_is_in_the_file(cli: Cli, work: Path, written: str) -> None:
    write_files(work, {".nexus3/config.json": written})

    outcome = cli("config", "set", "provider.model", "x", "--dry-run")

    assert (outcome.code, '"model": "x"' in outcome.out) == (0, True)
    assert "hunter2" not in outcome.out + outcome.err


def test_what_is_named_like_a_secret_is_shown_nowhere_and_the_name_of_a_variable_is(cli: Cli, nexus_home: Path) -> None:
    headers = {"X-Auth-Token": "hunter2", "X-Other-Token": "OTHER_TOKEN"}
    options = {"api_key": "hunter2", "extra_headers": headers, "prompt_cache_key": "mine"}
    (nexus_home / "config.json").write_text(json.dumps({"provider": {"options": options}}))
    change = ["set", "--global", "provider.model", "x", "--dry-run"]

    for words in (["show"], ["show", "--json"], ["get", "provider.options"], change):
        out = cli("config", *words).out
        assert ("hunter2" in out, "mine" in out, "OTHER_TOKEN" in out) == (False, True, True)


def test_every_fault_is_shown(cli: Cli, work: Path) -> None:
    write_files(work, {".nexus3/config.json": '{"a": 1, "context": {"b": 2}}'})

    outcome = cli("config", "validate")

    assert outcome.code == 1
    assert outcome.out.count("Configuration Error: Invalid setting in") == 2
    assert len(json.loads(cli("config", "validate", "--json").out)["faults"]) == 2


@pytest.mark.acceptance("T16")
@pytest.mark.parametrize("faults", [200, pytest.param(3000, marks=pytest.mark.slow)])
def test_of_many_faults_the_first_are_shown(cli: Cli, work: Path, faults: int) -> None:
    write_files(work, {".nexus3/config.json": json.dumps({f"k{number}": 1 for number in range(faults)})})

    outcome = cli("config", "validate", "--json")

    assert (outcome.code, len(json.loads(outcome.out)["faults"])) == (1, 100)
    assert "100 faults and more." in outcome.err


def test_a_name_as_long_as_a_book_is_not_printed_whole(cli: Cli, work: Path) -> None:
    write_files(work, {".nexus3/config.json": json.dumps({"k" * 50_000: 1})})

    outcome = cli("show")

    assert (outcome.code, len(outcome.err) < 2000) == (3, True)


def test_a_name_that_nobody_knows_is_a_warning_and_no_fault(cli: Cli, nexus_home: Path) -> None:
    config = {"provider": {"model": "gpt-4oo", "provider": "opnai"}}
    (nexus_home / "config.json").write_text(json.dumps(config))

    outcome = cli("config", "validate")

    assert (outcome.code, outcome.out) == (0, "")
    assert "did you mean 'gpt-4o'?" in outcome.err
    assert "did you mean 'openai'?" in outcome.err


def test_valid_settings_are_found_valid(cli: Cli) -> None:
    outcome = cli("config", "validate")

    assert (outcome.code, outcome.out) == (0, "")


def test_the_schema_knows_every_group_and_allows_comments(cli: Cli) -> None:
    schema = json.loads(cli("config", "schema").out)

    assert {"provider", "permissions", "context", "plugins"} <= schema["properties"].keys()
    assert schema["patternProperties"]
    assert schema["additionalProperties"] is False


def test_a_protected_setting_of_a_project_is_named_in_a_warning(cli: Cli, work: Path) -> None:
    write_files(work, {".nexus3/config.json": '{"provider": {\n"base_url": "https://evil"}}'})

    for command in (["show"], ["config", "show"], ["layers"]):
        outcome = cli(*command)
        assert outcome.code == 0
        warning = f"Warning: {work}/.nexus3/config.json:2:1: provider.base_url can only be set in your own config"
        assert warning in outcome.err
        assert "evil" not in outcome.out


@pytest.mark.parametrize(
    "command", [("config", "set", "model", "gpt-5.5"), ("config", "get", "model"), ("explain", "model")]
)
def test_the_end_of_a_name_suggests_the_whole_of_it(cli: Cli, command: tuple[str, ...]) -> None:
    outcome = cli(*command)

    assert outcome.code in (1, 2)
    assert "id you mean 'provider.model' or 'compaction.model'?" in outcome.err


@pytest.mark.parametrize(("key", "value"), [("provider.provider", "opnai"), ("provider", '{"provider": "opnai"}')])
def test_config_set_refuses_a_provider_whose_name_resembles_a_known_one(
    cli: Cli, nexus_home: Path, key: str, value: str
) -> None:
    outcome = cli("config", "set", "--global", key, value)

    assert (outcome.code, "did you mean 'openai'?" in outcome.err) == (2, True)
    assert not (nexus_home / "config.json").exists()


@pytest.mark.parametrize("name", ["openai", "our-own-server"])
def test_config_set_accepts_a_known_provider_and_one_like_no_other(cli: Cli, nexus_home: Path, name: str) -> None:
    assert cli("config", "set", "--global", "provider.provider", name).code == 0

    assert json.loads((nexus_home / "config.json").read_text()) == {"provider": {"provider": name}}


def test_setting_a_model_in_a_project_warns_that_agents_refuse_it(cli: Cli) -> None:
    warned = cli("config", "set", "provider.model", "gpt-4o")
    cli("config", "set", "--global", "provider.provider", "openai")
    decided = cli("config", "set", "provider.model", "gpt-5")

    assert (warned.code, "agents refuse it without --provider NAME" in warned.err) == (0, True)
    assert (decided.code, decided.err) == (0, "")
