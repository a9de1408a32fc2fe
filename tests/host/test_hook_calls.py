from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from nexus_core import ConfigError, PluginError, Request, Section, Source, hookimpl
from nexus_core.host.answers import CHECKS
from nexus_core.host.blame import Blame
from nexus_core.host.bundled import BUNDLED
from nexus_core.host.candidates import Candidate, given_candidates
from nexus_core.host.contract import hooks
from nexus_core.host.host import Host
from nexus_core.host.implementation import stand_in
from nexus_core.host.policy import PluginPolicy
from nexus_core.plugin import Command, HookCall, Layer, LayerText, Loaded, Problem, Skipped
from nexus_core.testing.samples import sample_context, sample_record
from nexus_core.values.settings import Settings

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
    host = Host(given_candidates(map(Answering, answers)), PluginPolicy(strict=strict), report=problems.append)
    return host.static_sections(REQUEST, Loaded()), problems


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
        f"plugin Answering, nexus_static_sections: its answer is left out, because it {words}"
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
    candidate = Candidate(name="own", origin="bundled", load=lambda: Answering(raising(ValueError("boom"))))
    host = Host([candidate], PluginPolicy())

    with pytest.raises(PluginError, match="raised ValueError: boom"):
        host.static_sections(REQUEST, Loaded())


def test_a_bundled_plugin_that_fails_to_listen_is_named_and_not_fatal() -> None:
    class Deaf:
        @hookimpl
        def nexus_recorded(self) -> None:
            raise ValueError("boom")

    problems: list[Problem] = []
    candidate = Candidate(name="own", origin="bundled", load=Deaf)

    Host([candidate], PluginPolicy(), report=problems.append).recorded(*sample_record())

    assert [str(problem) for problem in problems] == [
        "plugin own, nexus_recorded: Nexus goes on without it, because it raised ValueError: boom"
    ]


def test_a_bundled_plugin_that_does_not_listen_is_not_loaded_to_be_told() -> None:
    def load() -> object:
        raise AssertionError("it was loaded")

    candidate = Candidate(name="own", origin="bundled", load=load, hooks=("nexus_roles",))
    host = Host([candidate], PluginPolicy())

    assert not host.listens("nexus_recorded")
    host.recorded(*sample_record())
    host.assembled(sample_context(REQUEST))


def test_the_same_problem_is_reported_once() -> None:
    problems: list[Problem] = []
    host = Host(given_candidates([Answering(lambda: 42)]), PluginPolicy(), report=problems.append)

    host.static_sections(REQUEST, Loaded())
    host.static_sections(REQUEST, Loaded())

    assert len(problems) == 1
    assert host.problems == tuple(problems)


def test_without_a_reporter_problems_go_to_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="nexus_core"):
        Host(given_candidates([Answering(lambda: 42)]), PluginPolicy()).static_sections(REQUEST, Loaded())

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
        def nexus_layers(self, request: Request) -> list[Layer | Skipped]:
            return [
                Layer("local", request.cwd, "local"),
                Skipped(request.cwd / ".git", "not there"),
                Layer("global", request.home, "global"),
            ]

    found, skipped = Host(given_candidates([Finder()]), PluginPolicy()).layers(REQUEST)

    assert skipped == [Skipped(Path("/project/.git"), "not there", plugin="Finder")]
    assert [(layer.name, layer.plugin) for layer in found] == [("global", "Finder"), ("local", "Finder")]


def test_texts_are_stamped_with_layer_and_source() -> None:
    class Reader:
        @hookimpl
        def nexus_layer_texts(self, layer: Layer) -> list[LayerText | Skipped]:
            return [LayerText(layer.directory / "RULES.md", "rules"), Skipped(layer.directory / "X.md", "blank")]

    layer = Layer("local", Path("/project/.nexus3"), "local")

    (text,), skipped = Host(given_candidates([Reader()]), PluginPolicy()).layer_texts(layer, Settings())

    assert skipped == [Skipped(Path("/project/.nexus3/X.md"), "blank", layer="local", plugin="Reader")]
    assert text.layer == layer
    assert text.source == Source(uri="/project/.nexus3/RULES.md", layer="local", plugin="Reader", trust="project")


@pytest.mark.acceptance("C-21")
def test_a_memory_in_the_system_prompt_is_used_and_reported_because_it_breaks_the_cache() -> None:
    plugin = Answering(lambda: [Section("likes", title="Likes", text="Tea.", kind="memory")])
    problems: list[Problem] = []
    host = Host(given_candidates([plugin]), PluginPolicy(), report=problems.append)

    told = [host.static_sections(REQUEST, Loaded()) for _ in range(2)]

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

    registry = Host(given_candidates([Two(), One()]), PluginPolicy(), report=problems.append).commands()

    assert registry.get("git").help == "one"
    assert "'git' is taken by plugin 'One'" in str(problems[0])
    with pytest.raises(PluginError, match="is taken by plugin 'One'"):
        Host(given_candidates([Two(), One()]), PluginPolicy(strict=True)).commands()


def test_an_installed_plugin_cannot_take_the_command_of_a_bundled_one() -> None:
    class Early:
        @hookimpl
        def nexus_commands(self) -> list[Command]:
            return [Command("environment", "mine now", "early:app")]

    problems: list[Problem] = []
    early = Candidate(name="a_name_that_sorts_first", origin="installed", load=Early)

    registry = Host([*BUNDLED, early], PluginPolicy(), report=problems.append).commands()

    assert registry.get("environment").help != "mine now"
    assert [problem.plugin for problem in problems] == ["a_name_that_sorts_first"]


def test_none_from_a_stand_in_lets_pluggy_ask_the_next_plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CHECKS, "nexus_layers", lambda answer: answer)  # as a hook would where the first answer wins
    candidate = Candidate(name="silent", origin="installed", load=object)
    blame = Blame(strict=True, report=None)

    ask = stand_in(candidate, hooks()["nexus_layers"], lambda: lambda: None, blame=blame, trace=None)

    assert ask(REQUEST) is None


def test_every_call_can_be_traced() -> None:
    calls: list[HookCall] = []
    plugins = given_candidates([Answering(lambda: [section(), section("other")]), Answering(lambda: 42)])

    Host(plugins, PluginPolicy(), report=lambda _: None, trace=calls.append).static_sections(REQUEST, Loaded())

    traced = {call.plugin: (call.hook, call.answers, call.failed) for call in calls}
    assert traced == {
        "Answering": ("nexus_static_sections", 2, False),
        "Answering#2": ("nexus_static_sections", 0, True),
    }
    assert all(call.seconds >= 0 for call in calls)


def test_a_call_that_refuses_to_go_on_is_traced_as_failed() -> None:
    calls: list[HookCall] = []
    plugins = given_candidates([Answering(raising(ConfigError("no such remote")))])
    host = Host(plugins, PluginPolicy(), trace=calls.append)

    with pytest.raises(ConfigError):
        host.static_sections(REQUEST, Loaded())

    assert [(call.answers, call.failed) for call in calls] == [(0, True)]


def test_every_hook_of_the_contract_has_its_answers_checked() -> None:
    assert CHECKS.keys() == hooks().keys()
