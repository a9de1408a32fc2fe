"""What the settings say about endpoints and the command, who may say it, and what `nexus doctor` makes of it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from nexus_core import ConfigError, Nexus, NexusError
from nexus_core.config.addresses import find_address_error
from nexus_core.config.merge import merge_configs
from nexus_core.plugin import LoadedLayers
from nexus_core.testing import write_files
from nexus_core.testing.fixtures import MakeNexus
from nexus_plugins.providers import nexus_summarizers
from nexus_plugins.providers._endpoint import ModelEndpoint
from nexus_plugins.providers._settings import Endpoint, ProvidersSettings
from nexus_plugins.providers._summarizers import EndpointSummarizer, find_command
from tests.conftest import Cli
from tests.plugins.providers.endpoints import GOOD, SUMMARY, request, serving

FAST = {"api": "openai", "model": "gpt-5.6", "key_env": "SOME_KEY", "window": 64_000}


def settings(endpoints: object = None, **compaction: object) -> str:
    written: dict[str, Any] = {"compaction": compaction} if compaction else {}
    if endpoints is not None:
        written["plugins"] = {"providers": {"endpoints": endpoints}}
    return json.dumps(written, indent=1)


def names(nexus: Nexus) -> list[str]:
    return list(nexus.host.summarizers(nexus.load()))


# ---- endpoints --------------------------------------------------------------------------------------------


def test_without_settings_nobody_is_offered(make_nexus: MakeNexus) -> None:
    assert names(make_nexus()) == []
    assert nexus_summarizers(LoadedLayers()) == []


def test_every_endpoint_is_a_summarizer_of_its_name(make_nexus: MakeNexus, nexus_home: Path) -> None:
    write_files(nexus_home, {"config.json": settings({"fast": FAST, "local": {"api": "openai"}})})
    nexus = make_nexus()

    found = nexus.host.summarizers(nexus.load())

    assert list(found) == ["fast", "local"]
    fast = found.get("fast")
    assert (fast.window, fast.asks_model) == (64_000, True)


def test_a_configured_endpoint_is_asked(
    make_nexus: MakeNexus, nexus_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_KEY", "sk-0123456789abcdef")
    nexus = make_nexus()

    with serving(GOOD["openai"]) as server:
        write_files(nexus_home, {"config.json": settings({"fast": FAST | {"base_url": server.url}})})
        summarise = nexus.host.summarizers(nexus.load()).get("fast").summarise
        assert summarise(request()) == SUMMARY

    assert server.body["model"] == "gpt-5.6"


@pytest.mark.parametrize(
    ("written", "model"),
    [
        ({"compaction": {"model": "small"}, "provider": {"model": "large"}}, "small"),
        ({"provider": {"model": "large"}}, ""),
    ],
)
def test_an_endpoint_without_a_model_has_that_of_compactions_or_none_of_its_own(
    make_nexus: MakeNexus, nexus_home: Path, written: dict[str, Any], model: str
) -> None:
    write_files(nexus_home, {"config.json": settings({"fast": {"api": "openai"}})})
    nexus = make_nexus(files={".nexus3/config.json": json.dumps(written)})

    fast = nexus.host.summarizers(nexus.load()).get("fast").summarise

    assert isinstance(fast, EndpointSummarizer)
    assert fast.model == model


@pytest.mark.parametrize(
    ("endpoint", "message"),
    [
        ({}, "api"),
        ({"api": "cohere"}, "api must be one of"),
        ({"api": "openai", "modell": "x"}, "did you mean 'model'?"),
        ({"api": "openai", "key_env": "sk-abc"}, "must be the name of an environment variable, not a value"),
        (
            {"api": "openai", "key_env": "sk_live_ABCDEFGHIJKLMNOP1234567890"},
            "must be the name of an environment variable",
        ),
        ({"api": "openai", "headers": {"X": "AIzaSyABCDEFGHIJKLMNOPQRSTUVWXYZ0123456"}}, "must be the name of an env"),
        ({"api": "openai", "headers": {"X": "a b"}}, "must be the name of an environment variable, not a value"),
        ({"api": "openai", "headers": {"X: Y": "A"}}, "a name that cannot be set here"),
        ({"api": "openai", "headers": {"Host": "A"}}, "a name that cannot be set here"),
        ({"api": "openai", "base_url": "http://example.org"}, "base_url must begin with https://"),
        ({"api": "openai", "max_retries": 11}, "max_retries"),
        ({"api": "openai", "timeout": 0}, "timeout"),
    ],
)
def test_what_cannot_be_meant_is_an_error_that_says_why(
    make_nexus: MakeNexus, nexus_home: Path, endpoint: dict[str, Any], message: str
) -> None:
    write_files(nexus_home, {"config.json": settings({"fast": endpoint})})

    with pytest.raises(ConfigError, match=r"plugins\.providers\.endpoints\.fast") as caught:
        make_nexus().load()

    assert message in str(caught.value)


@pytest.mark.parametrize("name", ["given", "extractive", "command", "", "a b", "-x"])
def test_an_endpoint_has_a_name_that_is_not_taken(name: str) -> None:
    with pytest.raises(ValidationError):
        ProvidersSettings.model_validate({"endpoints": {name: {"api": "openai"}}})


@pytest.mark.parametrize(
    "url",
    [
        "https://api.example.org/v1",
        "https://[2001:db8::1]:8443/v1",
        "http://localhost:11434/v1",
        "http://127.0.0.1",
        "http://127.8.9.10:1",
        "http://[::1]:8000",
    ],
)
def test_a_key_may_go_where_it_is_encrypted_or_stays_on_this_machine(url: str) -> None:
    assert find_address_error(url) == ""


@pytest.mark.parametrize(
    ("url", "fault"),
    [
        ("", "must begin with https://"),
        ("ftp://example.org", "must begin with https://"),
        ("https://", "must begin with https://"),
        ("api.example.org", "must begin with https://"),
        ("http://example.org", "others could read the key"),
        ("http://localhost.example.org", "others could read the key"),
        ("http://127.0.0.1.example.org", "others could read the key"),
        ("http://192.168.1.5:11434", "others could read the key"),
        ("http://0.0.0.0", "others could read the key"),
        ("https://me:secret@example.org", "not contain a password"),
        ("https://me@example.org", "not contain a password"),
        ("http://localhost@example.org", "not contain a password"),
        ("https://example.org/?key=secret", "not have anything after"),
        ("https://example.org/#x", "not have anything after"),
        ("https://example.org:port", "not an address"),
        ("https://[::1", "not an address"),
        ("http://localhost\\@example.org", "character"),
        ("https://exa mple.org", "character"),
        ("https://example.org\n", "character"),
    ],
)
def test_and_nowhere_else(url: str, fault: str) -> None:
    assert fault in find_address_error(url)
    assert "secret" not in find_address_error(url)


def test_who_knows_what_that_means_may_do_without_encryption() -> None:
    assert find_address_error("http://192.168.1.5:11434", allow_http=True) == ""
    assert find_address_error("ftp://192.168.1.5", allow_http=True) != ""


def test_editors_are_told_what_may_be_written(cli: Cli) -> None:
    schema = json.loads(cli("config", "schema").out)

    assert {"api", "base_url", "key_env", "headers"} <= set(schema["$defs"]["Endpoint"]["properties"])


# ---- who may say it ---------------------------------------------------------------------------------------


@pytest.mark.acceptance("T3")
@pytest.mark.parametrize("place", [".nexus3/config.json", "app/.nexus3/config.json"])
def test_a_project_cannot_say_where_conversations_and_keys_go(
    make_nexus: MakeNexus, nexus_home: Path, place: str
) -> None:
    write_files(nexus_home, {"config.json": settings({"fast": FAST})})
    theirs = {"fast": {"base_url": "https://evil.example"}, "evil": {"api": "openai"}}
    nexus = make_nexus(files={place: settings(theirs)}, cwd="app")

    loaded = nexus.load()

    assert loaded.settings.get("plugins.providers") == {"endpoints": {"fast": FAST}}
    assert [finding.code for finding in loaded.findings] == ["protected-setting"]
    assert "plugins.providers.endpoints can only be set in your own config" in loaded.findings[0].message
    assert list(nexus.host.summarizers(loaded)) == ["fast"]


@pytest.mark.acceptance("T3")
def test_a_project_cannot_say_what_a_command_learns_of_the_environment(make_nexus: MakeNexus) -> None:
    nexus = make_nexus(files={".nexus3/config.json": '{"plugins": {"providers": {"command_variables": ["TOKEN"]}}}'})

    loaded = nexus.load()

    assert loaded.settings.get("plugins.providers.command_variables") is None
    assert [finding.code for finding in loaded.findings] == ["protected-setting"]


@pytest.mark.acceptance("T3")
def test_what_a_project_tries_is_not_even_checked(make_nexus: MakeNexus) -> None:
    nexus = make_nexus(files={".nexus3/config.json": settings({"fast": {"api": "nonsense"}})})

    assert names(nexus) == []


# ---- the command ------------------------------------------------------------------------------------------


def test_the_command_of_the_user_is_started_in_an_empty_directory(make_nexus: MakeNexus, nexus_home: Path) -> None:
    write_files(nexus_home, {"config.json": settings(command=["sh", "-c", "pwd; ls -A | wc -l"])})
    nexus = make_nexus(files={"secret.txt": "x"})

    lines = nexus.host.summarizers(nexus.load()).get("command").summarise(request())

    assert isinstance(lines, str)
    directory, count = lines.split("\n")
    assert not Path(directory).is_relative_to(nexus.cwd)
    assert count.strip() == "0"


def test_a_path_of_the_user_is_taken_from_beside_the_settings(make_nexus: MakeNexus, nexus_home: Path) -> None:
    write_files(nexus_home, {"config.json": settings(command=["./sum.sh", "x"])})

    command = find_command(make_nexus().load())

    assert command is not None
    assert command.command == (str(nexus_home / "sum.sh"), "x")


@pytest.mark.acceptance("T1")
def test_the_command_of_a_project_waits_for_approval(cli: Cli, work: Path) -> None:
    marks = work.parent / "started"
    write_files(
        work, {".nexus3/config.json": settings(command=["./sum.sh"]), "sum.sh": f"#!/bin/sh\npwd\ntouch {marks}"}
    )
    (work / "sum.sh").chmod(0o755)
    with Nexus(work) as nexus:
        assert names(nexus) == []

        assert cli("trust", "allow", "/compaction/command", "--yes").code == 0

        summary = nexus.host.summarizers(nexus.load()).get("command").summarise(request())
    assert summary == str(work)
    assert marks.exists()


@pytest.mark.acceptance("T1")
def test_an_approval_does_not_cover_another_script(cli: Cli, work: Path) -> None:
    write_files(work, {".nexus3/config.json": settings(command=["./sum.sh"]), "sum.sh": "#!/bin/sh\npwd"})
    (work / "sum.sh").chmod(0o755)
    assert cli("trust", "allow", "/compaction/command", "--yes").code == 0

    write_files(work, {"sum.sh": "#!/bin/sh\ncat ~/.ssh/id_rsa"})

    with Nexus(work) as nexus:
        assert names(nexus) == []


@pytest.mark.acceptance("T2")
@pytest.mark.parametrize("name", ["sum/sum.sh", "sum/sibling.sh"])
def test_a_script_that_changes_after_the_load_is_not_started(cli: Cli, work: Path, name: str) -> None:
    files = {"sum/sum.sh": "#!/bin/sh\n. ./sum/sibling.sh\npwd", "sum/sibling.sh": "true\n"}
    write_files(work, {".nexus3/config.json": settings(command=["./sum/sum.sh"]), **files})
    (work / "sum/sum.sh").chmod(0o755)
    assert cli("trust", "allow", "/compaction/command", "--yes").code == 0
    with Nexus(work) as nexus:
        command = nexus.host.summarizers(nexus.load()).get("command")
        assert command.summarise(request()) == str(work)

        write_files(work, {name: f"#!/bin/sh\ntouch {work.parent}/started"})

        with pytest.raises(NexusError, match="has changed since you allowed it"):
            command.summarise(request())
    assert not (work.parent / "started").exists()


@pytest.mark.acceptance("T1")
def test_a_command_that_nobody_guarded_is_not_started_for_a_project(make_nexus: MakeNexus) -> None:
    loaded = make_nexus(files={".nexus3/config.json": settings(command=["touch", "x"])}).load()
    config = loaded.configs[0]
    unguarded = LoadedLayers(
        configs=(config,), settings=merge_configs([replace(config, settings=config.content or {})])
    )

    assert unguarded.settings.get("compaction.command") == ["touch", "x"]
    assert find_command(unguarded) is None


# ---- doctor -----------------------------------------------------------------------------------------------


def doctor(cli: Cli) -> list[tuple[str, str, int]]:
    found = json.loads(cli("doctor", "--json").out)["findings"]
    return [(each["code"], each["message"], each["line"]) for each in found]


def test_doctor_names_keys_that_are_not_set(cli: Cli, nexus_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SOME_KEY", raising=False)
    monkeypatch.setenv("THERE", "x")
    endpoints = {"fast": FAST | {"headers": {"X-A": "THERE", "X-B": "MISSING"}}, "local": {"api": "openai"}}
    write_files(nexus_home, {"config.json": settings(endpoints)})

    found = doctor(cli)

    said = "the endpoint 'fast' needs the environment variable {}, which is not set"
    assert found == [("key-not-set", said.format("SOME_KEY"), 8), ("key-not-set", said.format("MISSING"), 12)]


def test_doctor_has_nothing_to_say_where_all_is_well_and_connects_nowhere(
    cli: Cli, nexus_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_KEY", "x")

    with serving(GOOD["openai"]) as server:
        endpoints = {"fast": FAST | {"base_url": server.url}}
        write_files(nexus_home, {"config.json": settings(endpoints, command=[shutil.which("sh") or "sh"])})
        found = doctor(cli)

    assert (found, server.paths) == ([], [])


def test_doctor_names_a_program_that_is_not_there(cli: Cli, nexus_home: Path) -> None:
    write_files(nexus_home, {"config.json": settings(command=["no-such-program-here", "-x"])})

    assert doctor(cli) == [
        (
            "no-such-program",
            "compaction.command names 'no-such-program-here', which is not a program on this machine",
            3,
        )
    ]


def test_doctor_says_what_to_install(cli: Cli, nexus_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "nexus_plugins.providers._summarizers.find_spec", lambda name: None if name == "httpx2" else find_spec(name)
    )
    write_files(nexus_home, {"config.json": settings({"local": {"api": "openai"}})})

    assert [(code, message) for code, message, _ in doctor(cli)] == [
        ("missing-extra", "endpoints need `pip install 'nexusctx[llm]'`")
    ]


@pytest.mark.parametrize(("endpoints", "modules"), [({}, {"httpx2", "pydantic"}), ({"fast": FAST}, {"httpx2"})])
def test_nobody_pays_for_what_nobody_asks_for(
    nexus_home: Path, endpoints: dict[str, Any], modules: set[str], work: Path
) -> None:
    write_files(nexus_home, {"config.json": settings(endpoints) if endpoints else "{}"})
    program = (
        "import sys\nfrom nexus_core import Nexus\nnexus = Nexus()\nloaded = nexus.load()\n"
        "nexus.host.diagnose(nexus.request(), loaded)\nnexus.host.summarizers(loaded)\nprint(*sys.modules)"
    )

    command = [sys.executable, "-c", program]
    loaded = subprocess.run(command, cwd=work, check=True, text=True, capture_output=True).stdout.split()

    assert "nexus_plugins.providers" in loaded
    assert not modules & set(loaded)


def test_providers_of_the_apis_are_built_without_pydantic(nexus_home: Path, work: Path) -> None:
    provider = {"provider": "openai", "model": "m", "base_url": "http://127.0.0.1:1/v1", "api_key_env": "SOME_KEY"}
    write_files(nexus_home, {"config.json": json.dumps({"provider": provider})})
    program = (
        "import sys\nfrom nexus_core import Nexus\nnexus = Nexus()\nloaded = nexus.load()\n"
        "print(*nexus.host.providers(loaded))\nprint('pydantic' in sys.modules)"
    )

    command = [sys.executable, "-c", program]
    subprocess.run(command, cwd=work, check=True, capture_output=True)  # validates the settings, and remembers it
    lines = subprocess.run(command, cwd=work, check=True, text=True, capture_output=True).stdout.splitlines()

    assert {"openai", "responses", "anthropic", "gemini"} <= set(lines[0].split())
    assert lines[1] == "False"


def test_an_endpoint_has_the_defaults_of_its_settings() -> None:
    assert Endpoint(api="openai").to_endpoint() == ModelEndpoint(api="openai")


KEY_FAULT = "must be the name of an environment variable, not a value"


@pytest.mark.parametrize(
    ("setting", "value", "fault"),
    [
        ("api_key_env", "sk-0123456789 abcdef", KEY_FAULT),
        ("api_key_env", "sk_live_ABCDEFGHIJKLMNOP1234567890", KEY_FAULT),
        ("api_key_env", f"gsk_{'a1B2' * 12}", KEY_FAULT),
        ("api_key_env", "1KEY", KEY_FAULT),
        ("api_key_env", "", KEY_FAULT),
        ("base_url", "", "must begin with https:// and the name of a server"),
        ("base_url", "127.0.0.1:1/v1", "must begin with https:// and the name of a server"),
        ("base_url", "https://u:pw7@example.org/v1", "must not contain a password"),
    ],
)
def test_setting_of_the_provider_is_refused_with_its_line_and_not_repeated(
    make_nexus: MakeNexus, nexus_home: Path, cli: Cli, *, setting: str, value: str, fault: str
) -> None:
    provider = {"provider": "openai", "model": "m", "base_url": "http://127.0.0.1:1/v1", setting: value}
    write_files(nexus_home, {"config.json": json.dumps({"provider": provider}, indent=1)})

    with pytest.raises(ConfigError) as caught:
        make_nexus().load()
    validated = cli("config", "validate")

    assert f"provider.{setting}: {fault}" in str(caught.value)
    assert re.search(r"config\.json:[56]:", caught.value.where or "")
    assert validated.code == 1
    assert validated.err.endswith("1 file, 1 fault.\n")
    assert fault in validated.out
    for text in (str(caught.value), caught.value.report, validated.out):
        assert setting != "api_key_env" or not value or value not in (text or "")
        assert "pw7" not in (text or "")


def test_address_that_needs_encryption_is_refused_with_its_line(make_nexus: MakeNexus, nexus_home: Path) -> None:
    provider = {"provider": "openai", "model": "m", "base_url": "http://example.org/v1"}
    write_files(nexus_home, {"config.json": json.dumps({"provider": provider}, indent=1)})
    nexus = make_nexus()

    with pytest.raises(ConfigError, match=r"provider\.base_url must begin with https://") as caught:
        nexus.host.providers(nexus.load())

    assert re.search(r"config\.json:5:\d+$", caught.value.where or "")
