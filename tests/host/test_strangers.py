"""Plugins that are odd, careless or hostile: none of them stops the others, and each is named."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from nexus_core import NexusError, Request, Section, Source, hookimpl
from nexus_core.host.answers import MAX_ITEMS
from nexus_core.host.candidates import Candidate
from nexus_core.host.host import Host
from nexus_core.host.implementation import describe
from nexus_core.host.inspection import faults
from nexus_core.host.policy import PluginPolicy
from nexus_core.plugin import Command, Extra, Loaded, Problem

REQUEST = Request(cwd=Path("/project"), home=Path("/home"))


class Nameless(type):
    @property
    def __name__(cls) -> str:  # type: ignore[override]
        raise RuntimeError


def exploding(error: BaseException) -> type[Exception]:
    def text(_: object) -> str:
        raise error

    return type("Mute", (Exception,), {"__str__": text})


def ask(answer: Any) -> tuple[tuple[Section, ...], list[Problem]]:
    @hookimpl
    def nexus_static_sections() -> Any:
        return answer()

    problems: list[Problem] = []
    plugin = SimpleNamespace(nexus_static_sections=nexus_static_sections)
    candidate = Candidate(name="odd", origin="installed", load=lambda: plugin)
    return Host([candidate], PluginPolicy(), report=problems.append).static_sections(REQUEST, Loaded()), problems


@pytest.mark.parametrize("error", [SystemExit(9), RuntimeError(), GeneratorExit()])
def test_an_exception_that_cannot_be_printed_is_still_described(error: BaseException) -> None:
    assert describe(exploding(error)()) == "raised Mute"


def test_an_exception_that_cannot_be_named_is_still_described() -> None:
    kind = Nameless("X", (Exception,), {})

    assert describe(kind()) == "raised an exception that cannot even be named"


def test_an_endless_answer_ends() -> None:
    def endless() -> Any:
        while True:
            yield Section("x", title="X", text="x")

    sections, problems = ask(endless)

    assert sections == ()
    assert f"more than {MAX_ITEMS} items" in str(problems[0])


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
    sections, problems = ask(lambda: [make()])

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

    assert list(faults(module)) == []


def test_two_functions_for_one_hook_are_a_fault() -> None:
    @hookimpl
    def nexus_layers() -> None: ...

    @hookimpl(specname="nexus_layers")
    def other() -> None: ...

    (fault,) = faults(SimpleNamespace(nexus_layers=nexus_layers, other=other))

    assert fault == "nexus_layers and other both answer nexus_layers; make them one"


def test_an_error_class_that_forgot_its_constructor_can_still_be_printed() -> None:
    class CarelessError(NexusError):
        def __init__(self) -> None:
            pass

    assert str(CarelessError()) == "something went wrong"
