"""What `nexus config schema` prints, held by a JSON Schema validator against what Nexus itself accepts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import Field

from nexus_core import ConfigError
from nexus_core.config.editor_schema import build_json_schema
from nexus_core.config.merge import merge_configs
from nexus_core.config.schema import Config, StrictModel
from nexus_core.config.servers import normalize_servers
from nexus_core.config.validate import find_config_errors
from nexus_core.plugin import LayerConfig
from nexus_core.testing import write_files
from nexus_core.testing.fixtures import MakeNexus
from nexus_core.types.settings import InitScope
from tests.conftest import Cli, InstallPlugin
from tests.effort import conclude, concludes, examples, mostly
from tests.plugins.mcp.test_files import SERVERS


class GitSettings(StrictModel):
    depth: int = Field(default=1, ge=0)
    remotes: list[str] = Field(default_factory=list)


MODELS = {"git": GitSettings}
VALIDATOR = Draft202012Validator(build_json_schema(MODELS))


def complaints(value: object, validator: Draft202012Validator = VALIDATOR) -> list[str]:
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(value)]


def is_accepted(value: dict[str, object]) -> bool:
    """Whether Nexus takes it for settings."""
    try:
        merged = merge_configs(normalize_servers([LayerConfig(Path("/config.json"), value)], []))
    except ConfigError:
        return False
    return not any(find_config_errors(merged, MODELS))


def test_it_is_a_schema() -> None:
    Draft202012Validator.check_schema(build_json_schema(MODELS))

    assert build_json_schema()["$schema"] == "https://json-schema.org/draft/2020-12/schema"


def test_it_is_the_same_every_time() -> None:
    assert json.dumps(build_json_schema(MODELS)) == json.dumps(build_json_schema(dict(reversed(MODELS.items()))))


@pytest.mark.acceptance("F-14", "I-08")
@pytest.mark.parametrize("scope", ["local", "global"])
def test_what_init_writes_is_valid(make_nexus: MakeNexus, scope: InitScope) -> None:
    written = make_nexus().host.init_files(scope)["config.json"]

    assert complaints(json.loads(written)) == []


@pytest.mark.acceptance("F-13")
def test_the_defaults_as_a_whole_are_valid() -> None:
    assert complaints(Config().model_dump(mode="json")) == []


@pytest.mark.acceptance("F-14")
@pytest.mark.parametrize("group", [[], ["provider"], ["permissions", "tools"], ["plugins", "git"]])
def test_comments_are_allowed_in_every_group(group: list[str]) -> None:
    value: dict[str, object] = {"_comment": "why", "_": 1, "$schema": "./nexus.schema.json"}
    for name in reversed(group):
        value = {name: value}

    assert complaints(value) == []
    assert is_accepted(value)


@pytest.mark.acceptance("F-06")
@pytest.mark.parametrize(
    "value",
    [
        {"provder": {}},
        {"provider": {"modle": "x"}},
        {"provider": None},
        {"permissions": {"level": "root"}},
        {"permissions": {"tools": {"deny": "x"}}},
        {"permissions": {"tools": {"deny": {"$replace": [1]}}}},
        {"permissions": {"tools": {"deny": {"$append": ["x"]}}}},
        {"context": {"ancestor_depth": 11}},
        {"context": {"ancestor_depth": True}},
        {"plugins": {"git": {"depht": 1}}},
        {"plugins": {"git": {"depth": -1}}},
        {"plugins": {"disabled": "git"}},
        {"mcp_servers": 1},
        {"mcp_servers": [{"command": ["x"]}]},
        {"mcp_servers": [{"name": " ", "command": ["x"]}]},
        {"mcp_servers": {"": {"command": ["x"]}}},
        {"mcpServers": {"a": {}}},
        {"mcp_servers": {"a": {"command": {}}}},
        {"mcp_servers": {"a": {"command": "x", "enabled": "yes"}}},
        {"servers": []},
    ],
    ids=str,
)
def test_what_nexus_refuses_an_editor_marks(value: dict[str, object]) -> None:
    assert not is_accepted(value)
    assert complaints(value)


@pytest.mark.parametrize(
    "value",
    [
        {"permissions": {"tools": {"allow": {"$replace": ["x"]}, "deny": {"$remove": ["x"]}}}},
        {"plugins": {"git": {"depth": 2, "remotes": {"$replace": []}}, "elsewhere": {"x": 1}, "disabled": ["y"]}},
        {"mcp_servers": [{"name": "a", "command": "npx", "args": ["x", 1, True], "env": {"A": None, "B": 1}}]},
        {"mcpServers": {"a": {"transport": {"type": "sse", "url": "https://x"}, "alwaysAllow": []}, "_old": 1}},
        {"mcp_servers": {"$replace": [{"name": "a", "url": "https://x"}]}},
        {"mcp_servers": {"$remove": ["a"]}},
    ],
    ids=str,
)
def test_every_way_to_write_a_setting_is_valid(value: dict[str, object]) -> None:
    assert is_accepted(value)
    assert complaints(value) == []


NUMBERS = st.integers(-2, 20_000) | st.floats(-1, 2, exclude_min=True).filter(lambda number: not number.is_integer())
WORDS = st.sampled_from(["", "x", "yolo", "sandboxed", "oldest_first", "message", "warn", "off"])
LISTS = st.lists(WORDS | st.integers(), max_size=2)
EDITS = st.builds(lambda key, items: {key: items}, st.sampled_from(["$replace", "$remove"]), LISTS)
VALUES = st.none() | st.booleans() | NUMBERS | WORDS | LISTS | EDITS
# Not what depends on another setting, nor what may be anything.
GROUPS = {
    name: sorted(field.annotation.model_fields.keys() - {"options", "reserve_tokens", "max_tokens"})
    for name, field in Config.model_fields.items()
    if isinstance(field.annotation, type) and issubclass(field.annotation, StrictModel)
}


@st.composite
def configs(draw: st.DrawFn) -> dict[str, Any]:
    config: dict[str, Any] = {}
    for name in draw(st.lists(st.sampled_from([*GROUPS, "bogus"]), unique=True, max_size=2)):
        keys = st.sampled_from([*GROUPS.get(name, []), "bogus", "_comment"])
        config[name] = draw(st.dictionaries(keys, VALUES, max_size=2) | VALUES)
    if draw(st.booleans()):
        section = st.dictionaries(st.sampled_from(["depth", "remotes", "_x", "y"]), VALUES, max_size=2)
        config["plugins"] = {"git": draw(section), "elsewhere": draw(VALUES)}
    return config


@settings(deadline=None, max_examples=examples(300))
@given(configs())
def test_an_editor_marks_exactly_what_nexus_refuses(config: dict[str, Any]) -> None:
    assert (complaints(config) == []) == is_accepted(config)


TEXTS = st.sampled_from(["npx", "a b", "${A}", "${A:-b}", "./x"])
STARTED = st.fixed_dictionaries(
    {"command": TEXTS | st.lists(TEXTS, min_size=1, max_size=3)},
    optional={
        "type": st.just("stdio"),
        "args": st.lists(TEXTS | st.integers() | st.booleans(), max_size=3),
        "env": st.dictionaries(st.sampled_from(["A", "B"]), TEXTS | st.integers() | st.none() | st.booleans()),
        "cwd": TEXTS,
        "enabled": st.booleans(),
        "disabled": st.booleans(),
        "timeout": st.integers(1, 60),
        "_comment": TEXTS,
        "alwaysAllow": st.lists(TEXTS, max_size=2),
    },
)
REACHED = st.fixed_dictionaries(
    {"url": st.sampled_from(["https://a.example/mcp", "http://localhost:1", "${URL}"])},
    optional={
        "type": st.sampled_from(["http", "sse", "streamable-http"]),
        "headers": st.dictionaries(st.sampled_from(["A", "Authorization"]), TEXTS),
        "enabled": st.booleans(),
        "_comment": TEXTS,
    },
)
NAMED = st.dictionaries(st.sampled_from(["a", "b c", "d/e", "_old"]), STARTED | REACHED, min_size=1, max_size=3)
WRITTEN = NAMED | NAMED.map(lambda servers: [{"name": name, **server} for name, server in servers.items()])
"""Servers as people write them."""


@concludes(0.6)
@settings(deadline=None)
@given(mostly(WRITTEN, SERVERS), st.sampled_from(["mcp_servers", "mcpServers"]))
def test_an_editor_marks_no_server_that_nexus_takes(servers: object, key: str) -> None:
    if is_accepted({key: servers}):
        assert complaints({key: servers}) == []
        conclude()


def test_models_of_one_name_are_kept_apart() -> None:
    class ContextConfig(StrictModel):
        width: int = 1

    validator = Draft202012Validator(build_json_schema({"one": ContextConfig, "two": GitSettings}))

    assert complaints({"plugins": {"one": {"width": 2}}, "context": {"ancestor_depth": 1}}, validator) == []
    assert complaints({"plugins": {"one": {"ancestor_depth": 2}}}, validator)
    assert complaints({"context": {"width": 1}}, validator)


def test_the_command_prints_a_schema_with_the_sections_of_bundled_and_installed_plugins(
    cli: Cli, install_plugin: InstallPlugin
) -> None:
    install_plugin(
        "loud",
        """
from nexus_core import hookimpl
from nexus_core.plugin import PluginSettings
from nexus_core.plugin.settings import StrictModel

class Settings(StrictModel):
    volume: int = 1

@hookimpl
def nexus_settings():
    return [PluginSettings("nexus_loud_loud:Settings")]
""",
    )

    printed = Draft202012Validator(json.loads(cli("config", "schema").out))

    assert complaints({"plugins": {"environment": {"terminal": False}, "loud": {"volume": 3}}}, printed) == []
    assert complaints({"plugins": {"environment": {"terminal": "no"}}}, printed)
    assert complaints({"plugins": {"loud": {"volume": "high"}}}, printed)


def test_the_schema_is_printed_even_where_the_settings_are_broken(cli: Cli, work: Path) -> None:
    write_files(work, {".nexus3/config.json": "{"})

    outcome = cli("config", "schema")

    assert (outcome.code, outcome.err) == (0, "")
