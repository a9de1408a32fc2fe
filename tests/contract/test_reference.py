"""Whatever is public stands in the reference, with the arguments that it has."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from dataclasses import is_dataclass
from importlib import import_module
from types import ModuleType
from typing import Any

import pytest

import nexus_core
import nexus_core.context
import nexus_core.plugin
import nexus_core.rpc
import nexus_core.testing
from nexus_core import AssembledContext, AsyncSession, Nexus, Session
from nexus_core.thread.state import RecordedCall, RecordedStep
from tests.conftest import ROOT

REFERENCE = ROOT / "docs/reference"
PAGES = sorted(REFERENCE.glob("*.md"))
FUNCTIONS = {name: getattr(nexus_core, name) for name in ("check_messages", "repair_messages", "get_dialect")}


def page(name: str) -> str:
    return (REFERENCE / f"{name}.md").read_text(encoding="utf-8")


def described(text: str) -> Iterator[str]:
    """What a page has a heading, a row of a table or an item of a list for; code stands in backticks."""
    for line in text.replace("\n  ", " ").splitlines():
        if line.startswith("#"):
            yield line.lstrip("# ")
        elif line.startswith("| `"):
            yield from re.findall(r"`([^`]+)`", line.split(" | ")[0])
        elif line.startswith("- `"):  # one or more sentences of the form "`this`, `that`: what they are"
            for words in re.findall(r"(?:^- |\. )((?:`[^`]+`(?:, )?)+):", line):
                yield from re.findall(r"`([^`]+)`", words)


def names(descriptions: Iterator[str]) -> set[str]:
    """Their names: `read_text(path)` and `nexus_core.plugin.Step` are about `read_text` and `Step`."""
    return {re.split(r"\W", each.partition("(")[0].rpartition(".")[2])[0] for each in descriptions}


def below(text: str, beginning: str) -> str:
    """The table that stands below a line."""
    _, _, rest = text.partition(beginning)
    assert rest, f"there is no {beginning!r}"
    return rest.lstrip("\n").partition("\n\n")[0]


PLUGIN_ROOMS = ("dialects", "files", "ledgers", "settings", "text")
PLUGIN_MODULES = [nexus_core.plugin, *(import_module(f"nexus_core.plugin.{room}") for room in PLUGIN_ROOMS)]

TABLES: dict[type, str] = {
    Nexus: below(page("nexus"), "| attribute or method | what it gives |"),
    Session: below(page("sessions"), "| method | what it does |"),
    RecordedStep: below(page("sessions"), "`record` returns a `RecordedStep`:\n"),
    RecordedCall: below(page("sessions"), "A call is a `RecordedCall`:\n"),
    AssembledContext: page("values").partition("## AssembledContext\n")[2].partition("\n## ")[0],
}


def is_deprecated(member: object) -> bool:
    return isinstance(member, property) and (member.__doc__ or "").startswith("Deprecated")


def members(owner: type) -> set[str]:
    """What users may ask of an object."""
    own = {name for name, member in vars(owner).items() if name[0] != "_" and not is_deprecated(member)}
    fields = set(inspect.signature(owner).parameters) if is_dataclass(owner) else set()
    return own | fields | ({"cwd", "home"} if owner is Nexus else set())


@pytest.mark.parametrize(
    "module",
    [nexus_core, nexus_core.context, *PLUGIN_MODULES, nexus_core.testing],
    ids=lambda module: module.__name__,
)
def test_every_public_name_is_described(module: ModuleType) -> None:
    found = {name for each in PAGES for name in names(described(each.read_text(encoding="utf-8")))}

    assert set(module.__all__) - found == set()


@pytest.mark.parametrize("owner", TABLES, ids=lambda owner: owner.__name__)
def test_every_member_is_described_and_nothing_else(owner: type) -> None:
    assert names(described(TABLES[owner])) == members(owner)


def test_awaiting_has_the_verbs_of_waiting() -> None:
    assert members(AsyncSession) == members(Session)


@pytest.mark.parametrize("owner", [Nexus, Session, RecordedCall], ids=lambda owner: owner.__name__)
def test_a_described_method_has_the_arguments_of_the_code(owner: type) -> None:
    for described_as in described(TABLES[owner]):
        if "(" in described_as:
            assert_same_arguments(described_as, getattr(owner, described_as.partition("(")[0]))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_described_function_has_the_arguments_of_the_code(name: str) -> None:
    (described_as,) = (each for each in described(page("nexus")) if each.startswith(f"{name}("))

    assert_same_arguments(described_as, FUNCTIONS[name])


def test_the_adapters_are_described_with_the_arguments_of_the_code() -> None:
    table = page("nexus").partition("## nexus_core.adapters\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)\.((\w+)\(.*?\))` \|", table, re.MULTILINE)

    assert len(rows) == 10
    for module, described_as, name in rows:
        assert_same_arguments(described_as, getattr(import_module(f"nexus_core.adapters.{module}"), name))


def test_nexus_is_made_with_the_arguments_of_the_page() -> None:
    (described_as,) = re.findall(r"^`(Nexus\(.*?\))`", page("nexus"), re.MULTILINE | re.DOTALL)
    explained = below(page("nexus"), "| argument | meaning |")

    assert_same_arguments(described_as, Nexus)
    assert names(described(explained)) == set(inspect.signature(Nexus).parameters)


def test_every_error_is_described_with_what_it_is() -> None:
    rows = dict(re.findall(r"^\| `(\w+)`(?: \(an? `(\w+)`\))? \|", page("errors"), re.MULTILINE))
    errors = {
        name: value
        for module in (nexus_core, nexus_core.rpc)
        for name in module.__all__
        if isinstance(value := getattr(module, name), type) and issubclass(value, Exception)
    }

    parents = {name: error.__base__.__name__ for name, error in errors.items() if error.__base__ is not None}
    assert {name: parent or "NexusError" for name, parent in rows.items()} == {**parents, "NexusError": "NexusError"}


def assert_same_arguments(described_as: str, called: Any) -> None:
    """Compare names, kinds and simple defaults; `…` stands for more of them."""
    words, is_open = re.subn(r",? …", "", " ".join(described_as.split()))
    (parsed,) = ast.parse(f"def {words}: pass").body
    assert isinstance(parsed, ast.FunctionDef)
    arguments = parsed.args
    shown = [each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    shown += [arguments.kwarg.arg] if arguments.kwarg else []
    parameters = [each for name, each in inspect.signature(called).parameters.items() if name != "self"]
    known = [each.name for each in parameters]
    assert shown == (known[: len(shown)] if is_open else known), described_as
    named = {each.arg for each in arguments.kwonlyargs}
    assert named == {each.name for each in parameters if each.name in shown and each.kind is each.KEYWORD_ONLY}
    for name, default in _defaults(arguments):
        actual = next(each.default for each in parameters if each.name == name)
        assert actual == default, f"{described_as}: {name}"


def _defaults(arguments: ast.arguments) -> Iterator[tuple[str, object]]:
    late = arguments.args[len(arguments.args) - len(arguments.defaults) :]
    for argument, default in (*zip(late, arguments.defaults, strict=True), *_named_defaults(arguments)):
        yield argument.arg, ast.literal_eval(default)


def _named_defaults(arguments: ast.arguments) -> Iterator[tuple[ast.arg, ast.expr]]:
    pairs = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    return ((argument, default) for argument, default in pairs if default is not None)
