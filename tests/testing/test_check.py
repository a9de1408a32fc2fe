from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nexus_core import AssembledContext, ConfigError, MessageError, Request, Section, hookimpl
from nexus_core.host.calls import get_hooks
from nexus_core.host.discovery import PluginPolicy, build_given_candidates
from nexus_core.host.manager import Host
from nexus_core.ledger.in_memory import MemoryLedger
from nexus_core.plugin import (
    Command,
    Layer,
    LayerText,
    Ledger,
    LoadedLayers,
    Model,
    ModelCounter,
    TextCounter,
    TruncationStrategy,
)
from nexus_core.plugin.dialects import Reply
from nexus_core.plugin.ledgers import SessionRecord
from nexus_core.testing import check_plugin, write_files
from nexus_core.testing.check import call_every_hook
from tests.dialects.telegraph import Telegraph


class Sections:
    def __init__(self, answer: Any) -> None:
        self._answer = answer

    @hookimpl
    def nexus_static_sections(self) -> Any:
        return self._answer()


def test_a_good_plugin_has_no_findings() -> None:
    class Good:
        @hookimpl
        def nexus_layers(self, request: Request) -> list[Layer]:
            return [Layer("global:team", request.home, "global")]

        @hookimpl
        def nexus_layer_texts(self, layer: Layer) -> list[LayerText]:
            return [LayerText(layer.directory / "NEXUS.md", "text")]

        @hookimpl
        def nexus_static_sections(self, loaded: LoadedLayers) -> list[Section]:
            return [Section("n", title="N", text=str(len(loaded.texts)))]

        @hookimpl
        def nexus_commands(self) -> list[Command]:
            return [Command("check", "help", "nexus_core.cli.commands.show:app")]

    assert check_plugin(Good()) == []


def test_a_plugin_without_hooks_is_a_finding() -> None:
    assert check_plugin(SimpleNamespace()) == ["it implements no hook; mark a function with @hookimpl"]


def test_faults_are_findings() -> None:
    (finding,) = check_plugin(SimpleNamespace(nexus_layers=list))

    assert "not marked @hookimpl" in finding


def test_an_exception_is_a_finding_with_its_hook() -> None:
    def fail() -> None:
        raise ValueError("boom")

    (finding,) = check_plugin(Sections(fail))

    assert finding == "nexus_static_sections: its result is dropped, because it raised ValueError: boom"


def test_an_answer_of_the_wrong_type_is_a_finding() -> None:
    (finding,) = check_plugin(Sections(lambda: 42))

    assert "returned int, expected a list of Section" in finding


def test_a_plugin_that_answers_what_it_is_only_told_is_a_finding() -> None:
    class Answering:
        @hookimpl
        def nexus_step_recorded(self, session: str) -> str:
            return session

    assert check_plugin(Answering()) == [
        "nexus_step_recorded: Nexus continues without it, because it returned str, expected None"
    ]


def test_a_plugin_may_write_the_call_that_it_is_told_of() -> None:
    class Writing:
        @hookimpl
        def nexus_call_assembled(self, context: AssembledContext) -> None:
            assert context.to("openai")["messages"][-1] == {"role": "user", "content": "Why?"}

    assert check_plugin(Writing()) == []


def test_an_answer_that_changes_is_a_finding() -> None:
    counter = itertools.count()

    findings = check_plugin(Sections(lambda: [Section("n", title="N", text=str(next(counter)))]))

    assert findings == ["nexus_static_sections: two equal calls returned different results"]


def test_refusing_the_sample_is_a_finding() -> None:
    def refuse() -> None:
        raise ConfigError("no remote")

    assert check_plugin(Sections(refuse)) == ["refused the sample tree: no remote"]


@pytest.mark.parametrize("target", ["no_such_module:app", "json:no_such_name"])
def test_a_command_that_cannot_be_imported_is_a_finding(target: str) -> None:
    class Commands:
        @hookimpl
        def nexus_commands(self) -> list[Command]:
            return [Command("x", "help", target)]

    (finding,) = check_plugin(Commands())

    assert finding.startswith(f"nexus_commands: {target} cannot be imported")


def test_a_command_that_is_no_typer_application_is_a_finding() -> None:
    class Commands:
        @hookimpl
        def nexus_commands(self) -> list[Command]:
            return [Command("x", "help", "json:loads")]

    assert check_plugin(Commands()) == ["nexus_commands: json:loads is of type function, expected a typer.Typer"]


def test_a_value_with_a_wrong_field_is_a_finding() -> None:
    class Finder:
        @hookimpl
        def nexus_layers(self) -> list[Layer]:
            return [Layer("x", "/tmp", "local")]  # type: ignore[arg-type]  # noqa: S108 - the wrong type is the point

    (finding,) = check_plugin(Finder())

    assert "Layer.directory must be Path, not str" in finding


def test_a_counter_that_cannot_count_is_a_finding() -> None:
    class Counter(TextCounter):
        name = "words"
        exact = False

        def count(self, text: str) -> int:
            return len(text.split(missing))  # type: ignore[name-defined]  # noqa: F821 - the mistake is the point

    class Counters:
        @hookimpl
        def nexus_token_counter(self) -> ModelCounter:
            return Counter()

    assert check_plugin(Counters()) == [
        "nexus_token_counter: its counter 'words' raised NameError: name 'missing' is not defined"
    ]


class WithoutMessages:
    """A counter that lacks a method."""

    name = "acme"
    exact = True

    def count(self, text: str) -> int:
        return len(text)

    def count_many(self, texts: list[str]) -> list[int]:
        return [len(text) for text in texts]


OWN_NAMES = ("acme-large", "acme-small")
LACKING = "returned WithoutMessages, which is not a ModelCounter: it has no count_messages"


def counting(accepts: Callable[[str], bool]) -> object:
    """A plugin with an incomplete counter for some models."""

    class Counting:
        @hookimpl
        def nexus_token_counter(self, model: str) -> object:
            return WithoutMessages() if accepts(model) else None

    return Counting()


def test_a_counter_is_tried_with_a_name_in_the_code_of_its_hook() -> None:
    class Counting:
        @hookimpl
        def nexus_token_counter(self, model: str) -> object:
            return WithoutMessages() if model.startswith("acme-") else None

    (finding,) = check_plugin(Counting())

    assert LACKING in finding


def test_a_counter_is_tried_with_a_name_of_a_constant_that_its_hook_uses() -> None:
    class Counting:
        @hookimpl
        def nexus_token_counter(self, model: str) -> object:
            return WithoutMessages() if model in OWN_NAMES else None

    (finding,) = check_plugin(Counting())

    assert LACKING in finding


def test_a_counter_is_tried_with_the_models_of_its_plugin() -> None:
    class Counting:
        @hookimpl
        def nexus_models(self) -> list[Model]:
            return [Model(name="acme-large*", window=1000, encoding="acme")]

        @hookimpl
        def nexus_token_counter(self, encoding: str) -> object:
            return WithoutMessages() if len(encoding) == 4 else None

    (finding,) = check_plugin(Counting())

    assert LACKING in finding


def test_a_counter_is_tried_with_the_models_that_nexus_knows() -> None:
    (finding,) = check_plugin(counting(lambda model: "sonnet" in model))

    assert LACKING in finding


def test_a_counter_that_accepts_no_name_is_a_finding() -> None:
    (finding,) = check_plugin(counting(lambda model: len(model) == 77))

    assert "returned None for every model that was tried; name one that it counts for with --model" in finding


def test_a_counter_is_tried_with_the_model_that_the_caller_names() -> None:
    (finding,) = check_plugin(counting(lambda model: len(model) == 77), model="x" * 77)

    assert LACKING in finding


def test_a_class_in_place_of_a_counter_is_a_finding() -> None:
    class Counting:
        @hookimpl
        def nexus_token_counter(self) -> object:
            return WithoutMessages

    (finding,) = check_plugin(Counting())

    assert "returned the class WithoutMessages in place of an object; make one: WithoutMessages()" in finding


def test_a_truncation_that_cannot_choose_is_a_finding() -> None:
    class Truncations:
        @hookimpl
        def nexus_truncation_strategies(self) -> list[TruncationStrategy]:
            return [TruncationStrategy("mine", lambda groups, budget: groups.newest(budget))]  # type: ignore[arg-type,return-value]

    (finding,) = check_plugin(Truncations())

    assert finding.startswith(
        "nexus_truncation_strategies: its truncation 'mine' returned 2, expected a list of slices"
    )


def test_a_ledger_that_cannot_be_read_is_a_finding() -> None:
    class Broken(MemoryLedger):
        def session(self, label: str) -> SessionRecord | None:
            raise KeyError(label)

    class Ledgers:
        @hookimpl
        def nexus_ledger(self) -> Ledger:
            return Broken()

    assert check_plugin(Ledgers()) == ["nexus_ledger: its ledger raised KeyError: 'sample'"]


def dialect_findings(**wrong: Any) -> list[str]:
    """What is found in a dialect that does some things in another way than it should."""

    class Dialects:
        @hookimpl
        def nexus_dialects(self) -> list[Any]:
            return [type("Wrong", (Telegraph,), wrong)()]

    return check_plugin(Dialects())


def test_a_dialect_that_reads_back_what_it_writes_has_no_findings() -> None:
    assert dialect_findings() == []


@pytest.mark.parametrize(
    ("wrong", "finding"),
    [
        (
            {"read": lambda self, item: replace(Telegraph.read(self, item), parts=())},
            "does not read back what it writes: a user message, a tool call, and its result",
        ),
        (
            {"read": lambda self, item: replace(Telegraph.read(self, item), api="")},
            "must set api='telegraph' on each message that it reads",
        ),
        (
            {"write": lambda self, messages: [{**each, "at": id(each)} for each in Telegraph.write(self, messages)]},
            "does not write messages back as it has read them: both must be equal",
        ),
        (
            {"read_request": lambda self, body: replace(Telegraph.read_request(self, body), messages=())},
            "does not read back the messages of a request body that it writes, instructions first",
        ),
        (
            {"read_request": lambda self, body: replace(Telegraph.read_request(self, body), tools=())},
            "does not read back the tools of a request body that it writes",
        ),
        ({"write_tools": lambda _self, _tools: []}, "does not read back a tool that it writes"),
        ({"recognises": lambda _self, _item: True}, "recognizes a message as its own that is valid in many other APIs"),
        (
            {"read_reply": lambda _self, _reply: Reply(messages=())},
            "must raise a MessageError in read_reply for a value that is not in its format, such as a number",
        ),
    ],
)
def test_a_dialect_that_loses_something_is_a_finding(wrong: dict[str, Any], finding: str) -> None:
    assert f"nexus_dialects: the dialect 'telegraph' {finding}" in dialect_findings(**wrong)


def test_a_dialect_that_fails_is_a_finding() -> None:
    def fail(_self: object, _messages: object) -> object:
        raise KeyError("from")

    assert "nexus_dialects: write of its dialect 'telegraph' raised KeyError: 'from'" in dialect_findings(write=fail)


def test_a_dialect_that_refuses_its_own_words_is_a_finding() -> None:
    def refuse(_self: object, _item: object) -> object:
        raise MessageError("no such word", path="words")

    (finding, *_) = dialect_findings(read=refuse)

    assert "cannot read what it has written itself: no such word, at words" in finding


def test_every_hook_of_the_contract_is_asked(tmp_path: Path) -> None:
    home = write_files(tmp_path, {"NEXUS.md": "x"})
    host = Host(build_given_candidates([]), PluginPolicy())

    assert call_every_hook(host, Request(cwd=tmp_path, home=home)).keys() == get_hooks().keys()
