"""The contract, its documentation and its generated data agree."""

import ast
import inspect
import re
import subprocess
import sys
import tomllib
from types import SimpleNamespace

import pytest

import nexus_core.plugin
from nexus_core import hookspecs
from nexus_core.host.bundled import BUNDLED
from nexus_core.host.calls import HookSpec, get_hooks
from nexus_core.host.loader import find_implementations
from nexus_core.testing import check_plugin
from tests.conftest import ROOT
from tests.dialects.telegraph import Telegraph

REFERENCE = (ROOT / "docs/reference/hooks.md").read_text()
ALL_HOOKS = pytest.mark.parametrize("hook", get_hooks().values(), ids=get_hooks())


def entry_points() -> dict[str, str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    points: dict[str, str] = project["entry-points"]["nexus.plugins"]
    return points


def test_the_map_of_the_contract_names_the_hooks_in_the_order_of_a_run() -> None:
    rows = (inspect.getdoc(hookspecs) or "").split("\n\n")[1]

    assert re.findall(r"nexus_\w+", rows) == list(get_hooks())


def example_of(hook: HookSpec) -> ast.Module:
    return ast.parse(inspect.cleandoc(hook.reference.partition("Example:\n")[2]))


@pytest.mark.acceptance("A-01")
@ALL_HOOKS
def test_a_bundled_plugin_answers_every_hook(hook: HookSpec) -> None:
    if hook.name == "nexus_embedders":  # Nexus ships no vectors; an example does
        example = (ROOT / "examples/embedder-plugin/nexus_wordllama/__init__.py").read_text()
        assert f"def {hook.name}(" in example
    else:
        assert any(hook.name in (candidate.hooks or ()) for candidate in BUNDLED)


def test_the_reference_has_one_heading_for_each_hook_with_its_exact_arguments() -> None:
    headings = re.findall(r"^## (.+)$", REFERENCE, re.MULTILINE)

    assert headings == [hook.signature for hook in get_hooks().values()]


def test_every_documented_argument_is_one_of_the_hook() -> None:
    for hook in get_hooks().values():
        page = REFERENCE.partition(f"## {hook.signature}\n")[2].partition("\n## ")[0]

        assert tuple(re.findall(r"^- `(\w+)`:", page, re.MULTILINE)) == hook.parameters


@ALL_HOOKS
def test_a_hook_says_what_it_is_for_and_how_answers_are_used(hook: HookSpec) -> None:
    purpose, use, *_ = hook.reference.split("\n\n")

    assert re.fullmatch(r"[A-Z].*\.", purpose)
    assert use.startswith(f"{hook.kind.capitalize()}. ")
    assert "Returns:\n" in hook.reference


@ALL_HOOKS
def test_a_hook_is_typed_completely(hook: HookSpec) -> None:
    annotations = inspect.get_annotations(hook.specification)

    assert set(annotations) == {*hook.parameters, "return"}


@ALL_HOOKS
def test_the_example_of_a_hook_keeps_the_contract(hook: HookSpec) -> None:
    own = {"status": str, "join_texts": print, "ask_local_model": print, "AcmeDialect": Telegraph}  # the author's
    names: dict[str, object] = dict(own)

    exec(compile(example_of(hook), hook.name, "exec"), names)  # noqa: S102 - our own documentation

    findings = check_plugin(SimpleNamespace(**{hook.name: names[hook.name]}))
    assert [finding for finding in findings if "No module named 'nexus_git'" not in finding] == []


@ALL_HOOKS
def test_the_example_of_a_hook_imports_whatever_it_uses_of_nexus(hook: HookSpec) -> None:
    nodes = list(ast.walk(example_of(hook)))

    imported = {alias.name for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names}
    used = {node.id for node in nodes if isinstance(node, ast.Name)}
    assert used & {*nexus_core.__all__, *nexus_core.plugin.__all__} <= imported


def test_the_generated_files_are_fresh() -> None:
    command = [sys.executable, str(ROOT / "scripts/generate.py"), "--check"]

    outcome = subprocess.run(command, text=True, capture_output=True, check=False)

    assert (outcome.returncode, outcome.stdout) == (0, "")


@pytest.mark.acceptance("A-02")
def test_entry_points_plugin_folders_and_manifest_are_the_same_list() -> None:
    folders = {path.parent.name for path in (ROOT / "plugins/nexus_plugins").glob("*/__init__.py")}
    points = entry_points()

    assert points == {name: f"nexus_plugins.{name}" for name in folders}
    assert [candidate.name for candidate in BUNDLED] == sorted(folders)


@pytest.mark.parametrize("candidate", BUNDLED, ids=lambda candidate: candidate.name)
def test_a_bundled_plugin_is_what_the_manifest_says(candidate: object) -> None:
    plugin = candidate.load()  # type: ignore[attr-defined]

    functions = find_implementations(plugin)
    assert tuple(name for name in get_hooks() if name in functions) == candidate.hooks  # type: ignore[attr-defined]
    for name, constant in candidate.constants.items():  # type: ignore[attr-defined]
        assert tuple(functions[name]()) == tuple(constant())  # type: ignore[arg-type]
    for function in functions.values():
        options = function.nexus_impl  # type: ignore[attr-defined]
        assert not options["tryfirst"] and not options["trylast"], "the manifest knows no order"  # noqa: PT018 - one rule


@pytest.mark.parametrize("name", entry_points())
def test_a_bundled_plugin_is_a_small_folder_with_a_readme(name: str) -> None:
    folder = ROOT / "plugins/nexus_plugins" / name

    assert (folder / "README.md").read_text().startswith(f"# {name}\n")
    assert (folder / "py.typed").is_file()


def test_the_namespace_of_plugins_has_no_init_file() -> None:
    assert not (ROOT / "plugins/nexus_plugins/__init__.py").exists()


def test_the_import_contracts_name_every_plugin() -> None:
    linter = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    plugins = set(entry_points().values())
    contracts = {contract["name"]: contract for contract in linter["contracts"]}

    assert set(linter["root_packages"]) == {"nexus_core", *plugins}
    assert set(contracts["The core imports no plugin"]["forbidden_modules"]) == plugins
    assert set(contracts["Plugins do not import each other"]["modules"]) == plugins


def test_the_import_contracts_forbid_plugins_everything_that_is_not_public() -> None:
    linter = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (order,) = (contract for contract in linter["contracts"] if contract["name"] == "Who may import whom in nexus_core")
    (plugins,) = (contract for contract in linter["contracts"] if contract["name"].startswith("Plugins import nothing"))
    modules = {module for layer in order["layers"] for module in layer.split(" | ")}

    assert set(plugins["forbidden_modules"]) == {f"nexus_core.{each}" for each in modules - {"plugin", "testing"}}
