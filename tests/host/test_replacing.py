"""Third-party plugins replace what is bundled under the same name; two of them with one name are a conflict."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nexus_core import Message, PluginError, Tool, hookimpl
from nexus_core.compaction.summarisers import find_summarisers
from nexus_core.plugin import Arranged, Renderer, TextCounter, Truncation
from nexus_core.testing import write_files
from nexus_core.testing.fixtures import MakeNexus
from tests.conftest import Cli, InstallPlugin

TRUNCATION = """
from nexus_core import hookimpl
from nexus_core.plugin import Truncation

@hookimpl
def nexus_truncations():
    return [Truncation("oldest_first", lambda groups, budget: [slice(0, 1)])]
"""
RENDERER = """
from nexus_core import Message, hookimpl
from nexus_core.plugin import Renderer

@hookimpl
def nexus_renderers():
    def current(request, sections, now):
        return Message("user", "asked: " + request.message.content)
    return [
        Renderer(name=name, system=lambda sections: "Mine.", current=current) for name in ("labelled", "tagged")
    ]
"""
ROLE = """
from nexus_core import hookimpl
from nexus_core.plugin import AgentRole

@hookimpl
def nexus_roles():
    return [AgentRole(name=name, scopes=("general",)) for name in ("unified", "worker")]
"""
SUMMARIZER = """
from nexus_core import hookimpl
from nexus_core.plugin import Summariser

@hookimpl
def nexus_summarisers():
    return [Summariser(name=name, summarise=lambda request: "Mine.") for name in ("extractive", "fast")]
"""
MODEL = """
from nexus_core import hookimpl
from nexus_core.plugin import Model

@hookimpl
def nexus_models():
    return [Model(name="gpt-4o*", window=777)]
"""
COUNTER = """
from nexus_core import hookimpl
from nexus_core.plugin import TextCounter

class Mine(TextCounter):
    name = "mine"
    exact = True

    def count(self, text):
        return 7

@hookimpl
def nexus_token_counter(model):
    return Mine()
"""
DIALECT = """
from nexus_core import hookimpl
from nexus_core.plugin import ApiRules
from tests.dialects.telegraph import Telegraph

class Mine(Telegraph):
    def __init__(self, name):
        self.name = name
        self.rules = ApiRules(name=name)

@hookimpl
def nexus_dialects():
    return [Mine("bedrock"), Mine("openai")]
"""
FAST = """
{"plugins": {"providers": {"endpoints": {
  "fast": {"api": "openai", "base_url": "http://localhost:1", "model": "m"}
}}}}
"""


def test_an_installed_truncation_replaces_the_bundled_one(make_nexus: MakeNexus, install_plugin: InstallPlugin) -> None:
    install_plugin("acme", TRUNCATION)

    fitted = make_nexus().fit(
        [{"role": "user", "content": f"{number} {'word ' * 300}"} for number in range(5)],
        budget=900,
    )

    assert [message["content"][0] for message in fitted.messages] == ["0", "4"]


def test_an_installed_renderer_replaces_the_built_in_one(make_nexus: MakeNexus, install_plugin: InstallPlugin) -> None:
    install_plugin("acme", RENDERER)
    nexus = make_nexus()

    call = nexus.session("main", model="gpt-4o").ask("Why?")

    assert (call.system_prompt, call.messages[-1].content) == ("Mine.", "asked: Why?")


def test_an_installed_renderer_replaces_the_bundled_one(make_nexus: MakeNexus, install_plugin: InstallPlugin) -> None:
    install_plugin("acme", RENDERER)

    call = make_nexus().session("main", model="gpt-4o", renderer="tagged").ask("Why?")

    assert (call.system_prompt, call.messages[-1].content) == ("Mine.", "asked: Why?")


@pytest.mark.parametrize(("role", "task"), [("unified", None), ("worker", "Look.")])
def test_an_installed_role_replaces_the_bundled_one(
    make_nexus: MakeNexus, install_plugin: InstallPlugin, role: str, task: str | None
) -> None:
    install_plugin("acme", ROLE)
    nexus = make_nexus()

    tools = [Tool(name="spawn", scope="spawn")]
    call = nexus.session("main", role=role, model="gpt-4o", tools=tools, task=task).ask("Why?")

    assert [each.name for each in call.tools] == []


def test_an_installed_model_replaces_the_bundled_one(make_nexus: MakeNexus, install_plugin: InstallPlugin) -> None:
    install_plugin("acme", MODEL)

    assert make_nexus().host.models()["gpt-4o*"].window == 777


def test_an_installed_counter_counts_before_the_bundled_one(
    cli: Cli, work: Path, install_plugin: InstallPlugin
) -> None:
    install_plugin("acme", COUNTER)
    write_files(work, {"a.txt": "one two three"})

    document = json.loads(cli("tokens", "a.txt", "--model", "gpt-4o", "--json").out)

    assert (document["counter"], document["files"][0]["tokens"]) == ("mine", 7)


def test_installed_summarizers_replace_the_bundled_ones(
    make_nexus: MakeNexus, nexus_home: Path, install_plugin: InstallPlugin
) -> None:
    install_plugin("acme", SUMMARIZER)
    write_files(nexus_home, {"config.json": FAST})
    nexus = make_nexus()

    found = find_summarisers(nexus.host, nexus.load(), ["extractive", "fast"], count=len)

    assert [each.summarise(None) for each in found] == ["Mine.", "Mine."]  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["bedrock", "openai"])
def test_an_installed_dialect_replaces_the_bundled_one(
    make_nexus: MakeNexus, install_plugin: InstallPlugin, name: str
) -> None:
    install_plugin("acme", DIALECT)
    nexus = make_nexus()

    call = nexus.session("main", model="gpt-4o").ask("Why?")

    assert call.to(name)["line"]


def test_the_list_of_plugins_says_what_is_replaced(cli: Cli, install_plugin: InstallPlugin) -> None:
    install_plugin("acme", TRUNCATION)

    outcome = cli("plugins", "list")
    rows = {row["name"]: row for row in json.loads(cli("plugins", "list", "--json").out)["plugins"]}

    assert "Plugin acme replaces the truncation 'oldest_first' of the bundled plugin truncation.\n" in outcome.err
    assert rows["acme"]["replaces"] == [{"kind": "truncation", "name": "oldest_first", "of": "truncation"}]
    assert rows["truncation"]["replaces"] == []


def test_both_plugins_say_what_is_replaced(cli: Cli, install_plugin: InstallPlugin) -> None:
    install_plugin("acme", ROLE)

    mine, bundled = cli("plugins", "info", "acme").out, cli("plugins", "info", "roles").out

    assert "Replaces  the role 'unified' of Nexus itself" in mine
    assert "Replaces  the role 'worker' of the bundled plugin roles" in mine
    assert "Replaced  the role 'worker' of the bundled plugin roles, by plugin acme" in bundled


def test_the_doctor_notes_what_is_replaced(cli: Cli, install_plugin: InstallPlugin) -> None:
    install_plugin("acme", DIALECT + MODEL + SUMMARIZER)

    outcome = cli("doctor", "--json")

    found = [each["message"] for each in json.loads(outcome.out)["findings"] if each["code"] == "replaced-name"]
    assert (outcome.code, found) == (
        0,
        [
            "plugin acme replaces the dialect 'bedrock' of the bundled plugin bedrock",
            "plugin acme replaces the dialect 'openai' of Nexus itself",
            "plugin acme replaces the model 'gpt-4o*' of the bundled plugin models",
            "plugin acme replaces the summariser 'extractive' of Nexus itself",
        ],
    )


@pytest.mark.parametrize(
    ("source", "kind", "name"),
    [
        (TRUNCATION, "truncation", "oldest_first"),
        (RENDERER, "renderer", "labelled"),
        (ROLE, "role", "unified"),
        (SUMMARIZER, "summariser", "extractive"),
        (DIALECT, "dialect", "openai"),
        (MODEL, "model", "gpt-4o*"),
    ],
)
def test_two_third_party_plugins_with_one_name_are_a_conflict(
    cli: Cli, install_plugin: InstallPlugin, source: str, kind: str, name: str
) -> None:
    for plugin in ("zebra", "ape"):
        install_plugin(plugin, source)

    findings = json.loads(cli("doctor", "--json").out)["findings"]

    (problem,) = {
        each["message"] for each in findings if each["code"] == "plugin-problem" and repr(name) in each["message"]
    }
    assert "plugin zebra, nexus_" in problem
    assert f"the {kind} {name!r} is taken by plugin 'ape'; it is left out" in problem
    assert f"plugin ape replaces the {kind} {name!r}" in str(findings)


def test_what_was_sent_is_replayed_by_the_renderer_that_wrote_it(make_nexus: MakeNexus) -> None:
    with make_nexus() as before:
        session = before.session("main", model="gpt-4o")
        sent = session.ask("Why?")
        reply = session.record({"role": "assistant", "content": "Because."})
        was_sent = json.dumps(sent.to("openai"))

    class Rearranging:
        @hookimpl
        def nexus_renderers(self) -> list[Renderer]:
            return [
                Renderer(
                    name="labelled",
                    system=lambda _sections: "Mine.",
                    current=lambda request, _sections, _now: Message("user", f"asked in {request.cwd.name}"),
                    arrange=lambda given: Arranged((), given.current),
                )
            ]

    with make_nexus(plugins=[Rearranging()]) as after:
        replayed = after.replay(reply)
        words = after.session("main").preview("And now?").system_prompt

    assert json.dumps(replayed.to("openai")) == was_sent
    assert words == "Mine."


@pytest.mark.parametrize("choose", [lambda _groups, _budget: 1 / 0, max], ids=["lambda", "built-in"])
def test_an_error_names_the_plugin_whose_truncation_failed(make_nexus: MakeNexus, choose: object) -> None:
    class Acme:
        @hookimpl
        def nexus_truncations(self) -> list[Truncation]:
            return [Truncation("oldest_first", choose)]  # type: ignore[arg-type]

    messages = [{"role": "user", "content": "word " * 300} for _ in range(5)]

    with pytest.raises(PluginError) as caught:
        make_nexus(plugins=[Acme()]).fit(messages, budget=900)

    assert (caught.value.plugin, caught.value.hook) == ("Acme", "nexus_truncations")
    assert caught.value.what.startswith("plugin Acme, nexus_truncations: its truncation 'oldest_first' ")


def test_an_error_names_the_plugin_whose_renderer_failed(make_nexus: MakeNexus) -> None:
    broken: Any = max  # its module is none of a plugin's

    class Acme:
        @hookimpl
        def nexus_renderers(self) -> list[Renderer]:
            configured = Renderer(name="mine", system=broken, current=broken)
            return [Renderer(name="mine", system=broken, current=broken, configure=lambda _: configured)]

    with pytest.raises(PluginError, match="plugin Acme, nexus_renderers: "):
        make_nexus(plugins=[Acme()]).session("main", renderer="mine").ask("Why?")


def test_an_error_names_the_plugin_whose_counter_failed(make_nexus: MakeNexus) -> None:
    counter = TextCounter()
    counter.name, counter.exact = "bad", True
    plugin = SimpleNamespace(nexus_token_counter=hookimpl(lambda: counter))
    plugin.__name__ = "acme"

    with pytest.raises(
        PluginError, match="plugin acme, nexus_token_counter: its counter 'bad' raised NotImplementedError"
    ):
        make_nexus(plugins=[plugin]).session("main").ask("Why?")


def _leave(*_given: object) -> Any:
    sys.exit(4)


class _LeavingCounter(TextCounter):
    name, exact = "mine", True

    def count(self, _text: str) -> int:
        return int(_leave())


@pytest.mark.parametrize(
    ("hook", "answer"),
    [
        ("nexus_truncations", [Truncation("oldest_first", _leave)]),
        ("nexus_renderers", [Renderer(name="labelled", system=_leave, current=_leave)]),
        ("nexus_token_counter", _LeavingCounter()),
    ],
)
def test_what_a_plugin_offers_cannot_end_the_program(make_nexus: MakeNexus, hook: str, answer: object) -> None:
    plugin = SimpleNamespace(**{hook: hookimpl(lambda: answer), "__name__": "acme"})
    nexus = make_nexus(plugins=[plugin])
    messages = [{"role": "user", "content": "word " * 300} for _ in range(5)]
    session = nexus.session("main", model="gpt-4o")
    use: Callable[[], object] = partial(nexus.fit, messages, budget=900)
    if hook != "nexus_truncations":
        use = partial(session.ask, "Why?")

    with pytest.raises(PluginError, match=rf"plugin acme, {hook}: .* called sys\.exit\(4\)"):
        use()
