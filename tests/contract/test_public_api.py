"""The public surface is a list, and this is what holds it."""

import ast
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import nexus_core
import nexus_core.plugin
import nexus_core.testing
from nexus_core.host.calls import get_hooks

PLUGIN_ROOMS = ("dialects", "files", "ledgers", "settings", "text")
PLUGIN_MODULES = [nexus_core.plugin, *(import_module(f"nexus_core.plugin.{room}") for room in PLUGIN_ROOMS)]
HEAVY = ["asyncio", "importlib_metadata", "json", "pluggy", "pydantic", "rich", "sqlite3", "tiktoken", "typer"]


def test_the_public_names_are_sorted_and_few() -> None:
    assert nexus_core.__all__ == sorted(nexus_core.__all__)
    assert len(nexus_core.__all__) <= 46  # three of them are short names of others


@pytest.mark.parametrize("name", nexus_core.__all__)
def test_every_public_name_can_be_imported(name: str) -> None:
    assert getattr(nexus_core, name) is not None


def test_every_public_name_is_described_to_type_checkers() -> None:
    tree = ast.parse(Path(nexus_core.__file__).read_text())
    names = {
        alias.asname or alias.name
        for statement in tree.body
        if isinstance(statement, ast.If)
        for each in statement.body
        if isinstance(each, ast.ImportFrom)
        for alias in each.names
    }

    assert names == set(nexus_core.__all__)


def test_an_unknown_attribute_is_the_usual_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Nexsus'"):
        _ = nexus_core.Nexsus  # type: ignore[attr-defined]


@pytest.mark.parametrize("module", [*PLUGIN_MODULES, nexus_core.testing])
def test_what_plugin_authors_import_is_listed_and_sorted(module: object) -> None:
    names: list[str] = module.__all__  # type: ignore[attr-defined]

    assert names == sorted(names)
    assert all(hasattr(module, name) for name in names)


def test_whatever_the_contract_names_can_be_imported_by_whoever_implements_it() -> None:
    named = {name for hook in get_hooks().values() for name in re.findall(r"\b[A-Z]\w+", hook.declaration)}

    missing = {
        name
        for name in named - {"Iterable", "None"}
        if not any(hasattr(module, name) for module in (nexus_core, *PLUGIN_MODULES))
    }
    assert missing == set()


def test_every_public_name_has_a_docstring() -> None:
    for module in (nexus_core, *PLUGIN_MODULES, nexus_core.testing):
        for name in module.__all__:
            if name not in {"__version__", "hookimpl"}:
                assert getattr(module, name).__doc__, f"{module.__name__}.{name}"


def loaded_by(code: str) -> set[str]:
    command = [sys.executable, "-c", f"import sys\n{code}\nprint(*sys.modules)"]
    return set(subprocess.run(command, text=True, capture_output=True, check=True).stdout.split())


@pytest.mark.parametrize("module", HEAVY)
def test_importing_nexus_core_loads_nothing_heavy(module: str) -> None:
    assert module not in loaded_by("import nexus_core")


def test_importing_nexus_core_loads_one_module() -> None:
    before, after = loaded_by("pass"), loaded_by("import nexus_core")

    assert after - before == {"nexus_core"}


@pytest.mark.parametrize(
    "module", ["typer", "pydantic", "sqlite3", "asyncio", "tiktoken", "nexus_core.tokens", "importlib_metadata", "rich"]
)
def test_a_prompt_is_made_without_anything_heavy(module: str, tmp_path: Path) -> None:
    code = f"import os; os.environ['NEXUS_PLUGINS'] = 'none'; here = {str(tmp_path)!r}\n"

    assert module not in loaded_by(code + "from nexus_core import Nexus; Nexus(here, home=here).system_prompt()")
