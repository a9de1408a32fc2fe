"""Plugins that are odd, careless or hostile: none of them stops the others, and each is named."""

from __future__ import annotations

import functools
import inspect
import logging
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock

import pytest

from nexus_core import ConfigError, NexusError, PluginError, Request, Section, Source, hookimpl
from nexus_core.host.bundled import BUNDLED
from nexus_core.host.calls import (
    MAX_RESULT_ITEMS,
    RESULT_CHECKS,
    ProblemReporter,
    describe_exception,
    get_hooks,
    list_parameter_names,
    wrap_implementation,
)
from nexus_core.host.discovery import PluginCandidate, PluginPolicy, build_given_candidates
from nexus_core.host.loader import find_contract_errors
from nexus_core.host.manager import Host
from nexus_core.plugin import Command, Extra, HookCall, Layer, LayerText, LoadedLayers, Problem, SkippedFile
from nexus_core.testing.samples import build_sample_context, build_sample_record
from nexus_core.types.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

REQUEST = Request(cwd=Path("/project"), home=Path("/home"))


class Answering:
    """A plugin that answers `nexus_static_sections` with whatever a function returns."""

    def __init__(self, answer: Callable[[], Any]) -> None:
        self._answer = answer

    @hookimpl
    def nexus_static_sections(self) -> Any:
        return self._answer()


def raising(error: BaseException) -> Callable[[], Any]:
    def answer() -> Any:
        raise error

    return answer


def section(id: str = "fine") -> Section:  # noqa: A002 - the name of the field
    return Section(id, title="Fine", text="fine")


def ask(*answers: Callable[[], Any], strict: bool = False) -> tuple[tuple[Section, ...], list[Problem]]:
    problems: list[Problem] = []
    host = Host(build_given_candidates(map(Answering, answers)), PluginPolicy(strict=strict), report=problems.append)
    return host.static_sections(REQUEST, LoadedLayers()), problems


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ValueError("boom"), "raised ValueError: boom"),
        (SystemExit(3), "called sys.exit(3)"),
        (SystemExit("no disk"), "called sys.exit('no disk')"),
        (GeneratorExit(), "raised GeneratorExit"),
    ],
)
def test_a_hook_that_raises_costs_its_own_answer_only(error: BaseException, words: str) -> None:
    sections, problems = ask(raising(error), lambda: [section()])

    assert [each.id for each in sections] == ["fine"]
    assert [str(problem) for problem in problems] == [
        f"plugin Answering, nexus_static_sections: its result is dropped, because it {words}"
    ]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (42, "returned int, expected a list of Section"),
        ("text", "returned str, expected a list of Section"),
        ([section(), "text"], "returned a list with str in it, expected a list of Section"),
        (section(), "returned Section, expected a list of Section"),
        ({"a": 1}, "returned a list with str in it, expected a list of Section"),
    ],
)
def test_an_answer_of_the_wrong_type_is_left_out_and_described(answer: object, words: str) -> None:
    sections, problems = ask(lambda: answer, lambda: [section()])

    assert [each.id for each in sections] == ["fine"]
    assert words in str(problems[0])


def test_none_and_an_empty_list_are_answers() -> None:
    assert ask(lambda: None, list) == ((), [])


def test_a_generator_that_raises_half_way_is_left_out() -> None:
    def answer() -> Iterator[Section]:
        yield section()
        raise ValueError("boom")

    sections, problems = ask(answer)

    assert sections == ()
    assert "boom" in str(problems[0])


def test_an_error_meant_for_the_user_reaches_the_user() -> None:
    with pytest.raises(ConfigError, match="no such remote"):
        ask(raising(ConfigError("no such remote")))


def test_an_interrupt_interrupts() -> None:
    with pytest.raises(KeyboardInterrupt):
        ask(raising(KeyboardInterrupt()))


def test_strictness_makes_a_wrong_answer_fatal() -> None:
    with pytest.raises(PluginError) as caught:
        ask(lambda: 42, strict=True)

    assert (caught.value.plugin, caught.value.hook) == ("Answering", "nexus_static_sections")
    assert "left out" not in str(caught.value)


def test_a_bundled_plugin_that_raises_is_fatal() -> None:
    candidate = PluginCandidate(name="own", origin="bundled", load=lambda: Answering(raising(ValueError("boom"))))
    host = Host([candidate], PluginPolicy())

    with pytest.raises(PluginError, match="raised ValueError: boom"):
        host.static_sections(REQUEST, LoadedLayers())


def test_a_bundled_plugin_that_fails_to_listen_is_named_and_not_fatal() -> None:
    class Deaf:
        @hookimpl
        def nexus_step_recorded(self) -> None:
            raise ValueError("boom")

    problems: list[Problem] = []
    candidate = PluginCandidate(name="own", origin="bundled", load=Deaf)

    Host([candidate], PluginPolicy(), report=problems.append).recorded(*build_sample_record())

    assert [str(problem) for problem in problems] == [
        "plugin own, nexus_step_recorded: Nexus continues without it, because it raised ValueError: boom"
    ]


def test_a_bundled_plugin_that_does_not_listen_is_not_loaded_to_be_told() -> None:
    def load() -> object:
        raise AssertionError("it was loaded")

    candidate = PluginCandidate(name="own", origin="bundled", load=load, hooks=("nexus_roles",))
    host = Host([candidate], PluginPolicy())

    host.recorded(*build_sample_record())
    host.assembled(build_sample_context(REQUEST))


def test_the_same_problem_is_reported_once() -> None:
    problems: list[Problem] = []
    host = Host(build_given_candidates([Answering(lambda: 42)]), PluginPolicy(), report=problems.append)

    host.static_sections(REQUEST, LoadedLayers())
    host.static_sections(REQUEST, LoadedLayers())

    assert len(problems) == 1
    assert host.problems == tuple(problems)


def test_without_a_reporter_problems_go_to_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="nexus_core"):
        Host(build_given_candidates([Answering(lambda: 42)]), PluginPolicy()).static_sections(REQUEST, LoadedLayers())

    assert "returned int" in caplog.text


def test_every_section_knows_the_plugin_it_came_from() -> None:
    (computed, read), _ = ask(
        lambda: [section(), Section("read", title="Read", text="x", source=Source(uri="/etc/motd"))]
    )

    assert computed.source == Source(uri="plugin:Answering", plugin="Answering")
    assert read.source == Source(uri="/etc/motd", plugin="Answering")


def test_a_plugin_cannot_pass_for_another() -> None:
    (forged,), _ = ask(lambda: [Section("x", title="X", text="x", source=Source(uri="/a", plugin="file_layers"))])

    assert forged.source is not None
    assert forged.source.plugin == "Answering"


def test_layers_are_stamped_and_sorted() -> None:
    class Finder:
        @hookimpl
        def nexus_layers(self, request: Request) -> list[Layer | SkippedFile]:
            return [
                Layer("local", request.cwd, "local"),
                SkippedFile(request.cwd / ".git", "not there"),
                Layer("global", request.home, "global"),
            ]

    found, skipped = Host(build_given_candidates([Finder()]), PluginPolicy()).layers(REQUEST)

    assert skipped == [SkippedFile(Path("/project/.git"), "not there", plugin="Finder")]
    assert [(layer.name, layer.plugin) for layer in found] == [("global", "Finder"), ("local", "Finder")]


def test_texts_are_stamped_with_layer_and_source() -> None:
    class Reader:
        @hookimpl
        def nexus_layer_texts(self, layer: Layer) -> list[LayerText | SkippedFile]:
            return [LayerText(layer.directory / "RULES.md", "rules"), SkippedFile(layer.directory / "X.md", "blank")]

    layer = Layer("local", Path("/project/.nexus3"), "local")

    (text,), skipped = Host(build_given_candidates([Reader()]), PluginPolicy()).layer_texts(layer, Settings())

    assert skipped == [SkippedFile(Path("/project/.nexus3/X.md"), "blank", layer="local", plugin="Reader")]
    assert text.layer == layer
    assert text.source == Source(uri="/project/.nexus3/RULES.md", layer="local", plugin="Reader", trust="project")


@pytest.mark.acceptance("C-21")
def test_a_memory_in_the_system_prompt_is_used_and_reported_because_it_breaks_the_cache() -> None:
    plugin = Answering(lambda: [Section("likes", title="Likes", text="Tea.", kind="memory")])
    problems: list[Problem] = []
    host = Host(build_given_candidates([plugin]), PluginPolicy(), report=problems.append)

    told = [host.static_sections(REQUEST, LoadedLayers()) for _ in range(2)]

    assert [[(each.text, each.zone) for each in sections] for sections in told] == [[("Tea.", "static")]] * 2
    (problem,) = problems
    assert "'likes' is a memory in the system prompt" in str(problem)


def test_of_two_commands_with_one_name_the_first_stays_and_the_other_is_named() -> None:
    class One:
        @hookimpl
        def nexus_commands(self) -> list[Command]:
            return [Command("git", "one", "one:app")]

    class Two:
        @hookimpl
        def nexus_commands(self) -> list[Command]:
            return [Command("git", "two", "two:app")]

    problems: list[Problem] = []

    registry = Host(build_given_candidates([Two(), One()]), PluginPolicy(), report=problems.append).commands()

    assert registry.get("git").help == "one"
    assert "'git' is taken by plugin 'One'" in str(problems[0])
    with pytest.raises(PluginError, match="is taken by plugin 'One'"):
        Host(build_given_candidates([Two(), One()]), PluginPolicy(strict=True)).commands()


def test_an_installed_plugin_cannot_take_the_command_of_a_bundled_one() -> None:
    class Early:
        @hookimpl
        def nexus_commands(self) -> list[Command]:
            return [Command("environment", "mine now", "early:app")]

    problems: list[Problem] = []
    early = PluginCandidate(name="a_name_that_sorts_first", origin="installed", load=Early)

    registry = Host([*BUNDLED, early], PluginPolicy(), report=problems.append).commands()

    assert registry.get("environment").help != "mine now"
    assert [problem.plugin for problem in problems] == ["a_name_that_sorts_first"]


def test_none_from_a_stand_in_lets_pluggy_ask_the_next_plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(
        RESULT_CHECKS, "nexus_layers", lambda answer: answer
    )  # as a hook would where the first answer wins
    candidate = PluginCandidate(name="silent", origin="installed", load=object)
    reporter = ProblemReporter(strict=True, report=None)

    ask = wrap_implementation(
        candidate, get_hooks()["nexus_layers"], lambda: lambda: None, reporter=reporter, trace=None
    )

    assert ask(REQUEST) is None


def test_every_call_can_be_traced() -> None:
    calls: list[HookCall] = []
    plugins = build_given_candidates([Answering(lambda: [section(), section("other")]), Answering(lambda: 42)])

    Host(plugins, PluginPolicy(), report=lambda _: None, trace=calls.append).static_sections(REQUEST, LoadedLayers())

    traced = {call.plugin: (call.hook, call.answers, call.failed) for call in calls}
    assert traced == {
        "Answering": ("nexus_static_sections", 2, False),
        "Answering#2": ("nexus_static_sections", 0, True),
    }
    assert all(call.seconds >= 0 for call in calls)


def test_a_call_that_refuses_to_go_on_is_traced_as_failed() -> None:
    calls: list[HookCall] = []
    plugins = build_given_candidates([Answering(raising(ConfigError("no such remote")))])
    host = Host(plugins, PluginPolicy(), trace=calls.append)

    with pytest.raises(ConfigError):
        host.static_sections(REQUEST, LoadedLayers())

    assert [(call.answers, call.failed) for call in calls] == [(0, True)]


def test_every_hook_of_the_contract_has_its_answers_checked() -> None:
    assert RESULT_CHECKS.keys() == get_hooks().keys()


class Nameless(type):
    @property
    def __name__(cls) -> str:  # type: ignore[override]
        raise RuntimeError


def exploding(error: BaseException) -> type[Exception]:
    def text(_: object) -> str:
        raise error

    return type("Mute", (Exception,), {"__str__": text})


def ask_odd_plugin(answer: Any) -> tuple[tuple[Section, ...], list[Problem]]:
    @hookimpl
    def nexus_static_sections() -> Any:
        return answer()

    problems: list[Problem] = []
    plugin = SimpleNamespace(nexus_static_sections=nexus_static_sections)
    candidate = PluginCandidate(name="odd", origin="installed", load=lambda: plugin)
    return Host([candidate], PluginPolicy(), report=problems.append).static_sections(REQUEST, LoadedLayers()), problems


@pytest.mark.parametrize("error", [SystemExit(9), RuntimeError(), GeneratorExit()])
def test_an_exception_that_cannot_be_printed_is_still_described(error: BaseException) -> None:
    assert describe_exception(exploding(error)()) == "raised Mute"


def test_an_exception_that_cannot_be_named_is_still_described() -> None:
    kind = Nameless("X", (Exception,), {})

    assert describe_exception(kind()) == "raised an exception whose type cannot be named"


def test_an_endless_answer_ends() -> None:
    def endless() -> Any:
        while True:
            yield Section("x", title="X", text="x")

    sections, problems = ask_odd_plugin(endless)

    assert sections == ()
    assert f"more than {MAX_RESULT_ITEMS} items" in str(problems[0])


@dataclass(frozen=True)
class OwnSection(Section):
    def __init__(self) -> None:
        object.__setattr__(self, "id", "x")


def altered() -> Section:
    section = Section("x", title="X", text="x")
    object.__setattr__(section, "text", None)
    return section


@pytest.mark.parametrize("make", [OwnSection, lambda: Mock(spec=Section), altered])
def test_what_only_passes_for_a_section_is_left_out_and_its_maker_named(make: Any) -> None:
    sections, problems = ask_odd_plugin(lambda: [make()])

    assert sections == ()
    assert problems[0].plugin == "odd"


@pytest.mark.parametrize(
    "make",
    [
        lambda: Source(uri=Path("/x")),  # type: ignore[arg-type]
        lambda: Source(uri=None),  # type: ignore[arg-type]
        lambda: Command("zed", 5, "bad:app"),  # type: ignore[arg-type]
        lambda: Extra("x", modules="json"),  # type: ignore[arg-type]
        lambda: Extra("x", modules=(5,)),  # type: ignore[arg-type]
        lambda: Extra("x", modules=None),  # type: ignore[arg-type]
    ],
)
def test_a_value_with_a_wrong_field_cannot_be_made(make: Any) -> None:
    with pytest.raises(ValueError, match="must be"):
        make()


def test_a_lazy_attribute_that_fails_is_no_reason_to_refuse_a_plugin() -> None:
    class Proxy:
        def __getattr__(self, name: str) -> object:
            raise RuntimeError("Working outside of request context")

        def __call__(self) -> None: ...

    module = ModuleType("plugin")
    module.request = Proxy()  # type: ignore[attr-defined]

    assert list(find_contract_errors(module)) == []


def test_two_functions_for_one_hook_are_a_fault() -> None:
    @hookimpl
    def nexus_layers() -> None: ...

    @hookimpl(specname="nexus_layers")
    def other() -> None: ...

    (fault,) = find_contract_errors(SimpleNamespace(nexus_layers=nexus_layers, other=other))

    assert fault == "nexus_layers and other both implement nexus_layers; make them one"


def test_an_error_class_that_forgot_its_constructor_can_still_be_printed() -> None:
    class CarelessError(NexusError):
        def __init__(self) -> None:
            pass

    assert str(CarelessError()) == "something went wrong"


def _plain(request: Request, loaded: LoadedLayers, mine: int = 0) -> None: ...


def _empty() -> None: ...


def _with_keywords(request: Request, *, loaded: LoadedLayers, mine: int = 0) -> None: ...


def _with_rest(request: Request, *rest: object, **more: object) -> None: ...


@functools.wraps(_plain)
def _wrapped(*arguments: Any) -> None: ...


def _declared(*arguments: Any) -> None: ...


_declared.__signature__ = inspect.signature(_empty)  # type: ignore[attr-defined]


class _Object:
    def method(self, request: Request, mine: int = 0) -> None: ...

    def __call__(self, request: Request) -> None: ...


@pytest.mark.parametrize(
    "function",
    [
        *(_plain, _empty, _with_keywords, _with_rest, _wrapped, _declared),
        *(_Object().method, _Object(), functools.partial(_plain, mine=1)),
    ],
)
def test_a_function_is_called_with_the_parameters_of_its_signature_that_have_no_default(function: Any) -> None:
    parameters = inspect.signature(function).parameters.values()

    assert list_parameter_names(function) == tuple(p.name for p in parameters if p.default is p.empty)
