"""Third-party plugins replace what is bundled under the same name; two of them with one name are a conflict."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nexus_core import Message, Nexus, PluginError, Tool, UnknownNameError, hookimpl
from nexus_core.compaction.summarize import find_summarizers
from nexus_core.dialects.registry import BUILT_IN_DIALECTS, BUILT_IN_NAMES
from nexus_core.host.manager import ContributionRegistry
from nexus_core.plugin import ArrangedMessages, Dialect, Model, Problem, Renderer, TextCounter, TruncationStrategy
from nexus_core.plugin.dialects import ApiRules
from nexus_core.testing import write_files
from nexus_core.testing.fixtures import MakeNexus
from tests.conftest import Cli, InstallPlugin
from tests.dialects.telegraph import NAME, Telegraph, TelegraphPlugin


def test_names_come_out_sorted_whatever_the_order_they_went_in() -> None:
    registry: ContributionRegistry[int] = ContributionRegistry("renderer")
    registry.add("tagged", 1, "a")
    registry.add("labelled", 2, "b")

    assert list(registry) == ["labelled", "tagged"]
    assert len(registry) == 2


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    registry: ContributionRegistry[int] = ContributionRegistry("renderer")
    registry.add("tagged", 1, "a")

    with pytest.raises(UnknownNameError, match="unknown renderer 'taged'") as caught:
        registry.get("taged")

    assert caught.value.hint == "did you mean 'tagged'?"


def test_the_first_of_two_equal_names_stays_and_its_owner_is_told() -> None:
    registry: ContributionRegistry[str] = ContributionRegistry("renderer")

    assert registry.add("tagged", "first", "a") is None
    assert registry.add("tagged", "second", "b") == "a"
    assert registry.get("tagged") == "first"
    assert "tagged" in registry


TRUNCATION = """
from nexus_core import hookimpl
from nexus_core.plugin import TruncationStrategy

@hookimpl
def nexus_truncation_strategies():
    return [TruncationStrategy("oldest_first", lambda groups, budget: [slice(0, 1)])]
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
from nexus_core.plugin import Summarizer

@hookimpl
def nexus_summarizers():
    return [Summarizer(name=name, summarise=lambda request: "Mine.") for name in ("extractive", "fast")]
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
from nexus_core.plugin.dialects import ApiRules
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

    found = find_summarizers(nexus.host, nexus.load(), ["extractive", "fast"], count=len)

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

    outcome = cli("plugin", "list")
    rows = {row["name"]: row for row in json.loads(cli("plugin", "list", "--json").out)["plugins"]}

    assert "Plugin acme replaces the truncation 'oldest_first' of the bundled plugin truncation.\n" in outcome.err
    assert rows["acme"]["replaces"] == [{"kind": "truncation", "name": "oldest_first", "of": "truncation"}]
    assert rows["truncation"]["replaces"] == []


def test_both_plugins_say_what_is_replaced(cli: Cli, install_plugin: InstallPlugin) -> None:
    install_plugin("acme", ROLE)

    mine, bundled = cli("plugin", "info", "acme").out, cli("plugin", "info", "roles").out

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
            "plugin acme replaces the summarizer 'extractive' of Nexus itself",
        ],
    )


@pytest.mark.parametrize(
    ("source", "kind", "name"),
    [
        (TRUNCATION, "truncation", "oldest_first"),
        (RENDERER, "renderer", "labelled"),
        (ROLE, "role", "unified"),
        (SUMMARIZER, "summarizer", "extractive"),
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
                    arrange=lambda given: ArrangedMessages((), given.current),
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
        def nexus_truncation_strategies(self) -> list[TruncationStrategy]:
            return [TruncationStrategy("oldest_first", choose)]  # type: ignore[arg-type]

    messages = [{"role": "user", "content": "word " * 300} for _ in range(5)]

    with pytest.raises(PluginError) as caught:
        make_nexus(plugins=[Acme()]).fit(messages, budget=900)

    assert (caught.value.plugin, caught.value.hook) == ("Acme", "nexus_truncation_strategies")
    assert caught.value.what.startswith("plugin Acme, nexus_truncation_strategies: its truncation 'oldest_first' ")


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
        ("nexus_truncation_strategies", [TruncationStrategy("oldest_first", _leave)]),
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
    if hook != "nexus_truncation_strategies":
        use = partial(session.ask, "Why?")

    with pytest.raises(PluginError, match=rf"plugin acme, {hook}: .* called sys\.exit\(4\)"):
        use()


class Fixed:
    """A counter that always says 7."""

    name = "fixed"
    exact = True

    def count(self, text: str) -> int:  # noqa: ARG002 - it is not a good counter
        return 7

    def count_many(self, texts: Sequence[str]) -> list[int]:
        return [7 for _ in texts]

    def count_messages(self, messages: Sequence[Message]) -> int:
        return 7 * len(messages)


class Acme:
    @hookimpl
    def nexus_models(self) -> list[Model]:
        return [Model(name="acme-large", window=64_000), Model(name="gpt-4o", window=1000)]

    @hookimpl
    def nexus_token_counter(self, model: str) -> Fixed | None:
        return Fixed() if model.startswith("acme-") else None

    @hookimpl
    def nexus_truncation_strategies(self) -> list[TruncationStrategy]:
        return [
            TruncationStrategy("oldest_first", lambda _groups, _budget: []),
            TruncationStrategy("none", lambda _groups, _budget: []),
        ]


class Wrong:
    @hookimpl
    def nexus_token_counter(self) -> int:
        return 4


def test_what_a_plugin_says_of_a_model_replaces_what_ships() -> None:
    with Nexus(layers=False, plugins=[Acme()]) as nexus:
        models = nexus.host.models()

    assert models["acme-large"].window == 64_000
    assert models["gpt-4o"].window == 1000


def test_a_plugin_that_answers_counts_before_the_bundled_one() -> None:
    with Nexus(layers=False, plugins=[Acme()]) as nexus:
        counter = nexus.host.token_counter("acme-large", "")

    assert counter is not None
    assert (counter[0].count("hello"), counter[1]) == (7, "Acme")


def test_a_plugin_that_answers_none_leaves_it_to_the_others() -> None:
    with Nexus(layers=False, plugins=[Acme()]) as nexus:
        counter = nexus.host.token_counter("gpt-4o", "o200k_base")

    assert counter is not None
    assert (counter[0].name, counter[1]) == ("tiktoken:o200k_base", "tiktoken_counter")


def test_something_that_does_not_count_is_blamed_and_the_next_is_asked() -> None:
    problems: list[Problem] = []
    with Nexus(layers=False, plugins=[Wrong()], report=problems.append, strict=False) as nexus:
        counter = nexus.host.token_counter("gpt-4o", "o200k_base")

    assert counter is not None
    assert "returned int, expected a ModelCounter or None" in problems[0].message


def test_hooks_about_what_a_plugin_is_like_are_asked_once() -> None:
    asked = []

    class Counted:
        @hookimpl
        def nexus_truncation_strategies(self) -> list[TruncationStrategy]:
            asked.append(1)
            return []

    with Nexus(layers=False, plugins=[Counted()]) as nexus:
        nexus.host.truncations()
        nexus.host.truncations()

    assert asked == [1]


MEMBERS = [name for name in vars(Dialect) if not name.startswith("_")]


class Offering:
    """A plugin that offers what it is given."""

    def __init__(self, *offered: object) -> None:
        self.offered = list(offered)

    @hookimpl
    def nexus_dialects(self) -> list[object]:
        return self.offered


def like(name: str = NAME, **other: object) -> Any:
    """The telegraph under another name, or with something else in it."""
    real = Telegraph()
    members = {each: getattr(real, each) for each in MEMBERS} | {"name": name, "rules": ApiRules(name=name)}
    return SimpleNamespace(**(members | other))


def called(name: object) -> Any:
    """The telegraph with something else for a name."""
    other = like()
    other.name = name
    return other


def problems_of(*plugins: object) -> list[str]:
    """What is said about plugins when a dialect is asked for that nobody has."""
    problems: list[Problem] = []
    with (
        Nexus(layers=False, plugins=plugins, report=problems.append, strict=False) as nexus,
        pytest.raises(UnknownNameError),
    ):
        nexus.dialects.get("no such")
    return [str(problem) for problem in problems]


def test_a_plugin_offers_a_dialect() -> None:
    with Nexus(layers=False, plugins=[TelegraphPlugin()]) as nexus:
        found = nexus.dialects.get(NAME)

    assert (found.name, found.rules.name) == (NAME, NAME)
    assert found.read({"from": "caller", "words": ["WHY"]}) == Message("user", "WHY", api=NAME)


def test_the_built_in_ones_come_first_and_then_those_of_plugins_by_name() -> None:
    with Nexus(layers=False, plugins=[Offering(like("zebra"), like("aardvark"))]) as nexus:
        names = nexus.dialects.names

    assert names[: len(BUILT_IN_NAMES)] == BUILT_IN_NAMES
    assert list(names[len(BUILT_IN_NAMES) :]) == sorted(names[len(BUILT_IN_NAMES) :])
    assert {"aardvark", "bedrock", "zebra"} <= set(names)


def test_a_name_that_nobody_has_is_answered_with_the_nearest_of_all() -> None:
    with (
        Nexus(layers=False, plugins=[TelegraphPlugin()]) as nexus,
        pytest.raises(UnknownNameError, match=r"did you mean 'telegraph'\?"),
    ):
        nexus.dialects.get("telegraf")


@pytest.mark.parametrize("member", MEMBERS)
def test_what_a_dialect_lacks_is_named(member: str) -> None:
    lacking = like()
    delattr(lacking, member)

    (told,) = problems_of(Offering(lacking))

    assert f"returned a list with SimpleNamespace in it, which is not a Dialect: it has no {member}" in told


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (Telegraph, "returned the class Telegraph in place of a dialect; make one: Telegraph()"),
        (like(read=3), "returned the Dialect 'telegraph' whose read cannot be called"),
        (like(rules=None), "whose rules are NoneType, expected ApiRules of its own name"),
        (like(rules=ApiRules(name="telex")), "whose rules are those of 'telex', expected ApiRules of its own name"),
        (called(""), "returned a Dialect whose name is '', expected a word"),
        (called(7), "returned a Dialect whose name is 7, expected a word"),
        (called("a\nb"), r"returned a Dialect whose name is 'a\nb', expected a word"),
    ],
)
def test_what_is_wrong_with_a_dialect_is_said(wrong: object, said: str) -> None:
    (told,) = problems_of(Offering(wrong))

    assert said in told


def test_one_that_is_not_in_a_list_is_refused() -> None:
    class Bare:
        @hookimpl
        def nexus_dialects(self) -> Telegraph:
            return Telegraph()

    (told,) = problems_of(Bare())

    assert "returned Telegraph, expected a list of Dialect" in told


@pytest.mark.parametrize("name", [name for name in BUILT_IN_NAMES if name != "neutral"])
def test_a_dialect_replaces_a_built_in_one_of_its_name(name: str) -> None:
    with Nexus(layers=False, plugins=[Offering(like(name))], strict=True) as nexus:
        found = nexus.dialects.get(name)
        names, rules = nexus.dialects.names, nexus.dialects.rules(name)

    assert found.read({"from": "caller", "words": ["WHY"]}).content == "WHY"
    assert rules == ApiRules(name=name)
    assert names.count(name) == 1


def test_no_dialect_replaces_the_form_in_which_conversations_are_kept() -> None:
    (told,) = problems_of(Offering(like("neutral")))

    assert "the dialect 'neutral' is taken by Nexus itself; it is left out" in told


def test_of_two_with_one_name_both_plugins_are_named() -> None:
    class First(Offering):
        pass

    class Second(Offering):
        pass

    (told,) = problems_of(First(Telegraph()), Second(Telegraph()))

    assert "Second" in told
    assert "the dialect 'telegraph' is taken by plugin" in told
    assert "First" in told


def test_a_strict_run_stops_at_a_name_that_is_taken() -> None:
    with (
        Nexus(layers=False, plugins=[Offering(like("neutral"))], strict=True) as nexus,
        pytest.raises(PluginError, match="the dialect 'neutral' is taken by Nexus itself"),
    ):
        nexus.dialects.get("no such")


def test_plugins_are_asked_once() -> None:
    asked = []

    class Counted:
        @hookimpl
        def nexus_dialects(self) -> list[Telegraph]:
            asked.append(1)
            return [Telegraph()]

    with Nexus(layers=False, plugins=[Counted()]) as nexus:
        nexus.dialects.get(NAME)
        nexus.dialects.get(NAME)

    assert asked == [1]


def test_bundled_plugins_are_not_asked_for_what_is_built_in() -> None:
    asked: list[str] = []

    with Nexus(layers=False, installed=False, trace=lambda call: asked.append(call.hook)) as nexus:
        names = [nexus.dialects.get(name).name for name in BUILT_IN_NAMES]
        texts = [{"role": "user", "content": [{"type": "text", "text": "Why?"}]}]
        told = nexus.dialects.recognise([{"role": "user", "content": "Why?"}, *texts]).name

    assert (tuple(names), told, asked) == (BUILT_IN_NAMES, "openai", [])


@pytest.mark.parametrize(
    ("wrong", "fields"),
    [
        ("ApiRules.name must not be empty", {"name": ""}),
        ("ApiRules.system must be one of field, first, anywhere, not 'top'", {"system": "top"}),
        ("ApiRules.results must be one of each, together, anywhere, not 'Each'", {"results": "Each"}),
        ("ApiRules.first must be frozenset, not str", {"first": "user"}),
        (r"ApiRules.id_pattern must be a regular expression: .*", {"id_pattern": "("}),
    ],
)
def test_rules_that_mean_nothing_are_refused_where_they_are_made(wrong: str, fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=wrong):
        replace(BUILT_IN_DIALECTS.get("openai").rules, **fields)
