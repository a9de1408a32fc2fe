"""What plugins answer when they are asked for dialects."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from nexus_core import Nexus, PluginError, UnknownNameError, hookimpl
from nexus_core.dialects.finding import BUILT_IN, NAMES
from nexus_core.plugin import ApiRules, Dialect, Problem
from nexus_core.values.message import Message
from tests.dialects.telegraph import NAME, Telegraph, TelegraphPlugin

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

    assert names[: len(NAMES)] == NAMES
    assert list(names[len(NAMES) :]) == sorted(names[len(NAMES) :])
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

    assert f"returned a list with SimpleNamespace in it, which is no Dialect: it has no {member}" in told


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


@pytest.mark.parametrize("name", [name for name in NAMES if name != "neutral"])
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
        names = [nexus.dialects.get(name).name for name in NAMES]
        texts = [{"role": "user", "content": [{"type": "text", "text": "Why?"}]}]
        told = nexus.dialects.recognise([{"role": "user", "content": "Why?"}, *texts]).name

    assert (tuple(names), told, asked) == (NAMES, "openai", [])


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
        replace(BUILT_IN.get("openai").rules, **fields)
