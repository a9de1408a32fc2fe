"""The files of a new plugin package: a module with one hook, and tests that fit it."""

from __future__ import annotations

import re
from textwrap import dedent
from typing import TYPE_CHECKING

import tomli_w

from nexus_core._version import __version__
from nexus_core.cli.hook_samples import SAMPLES
from nexus_core.errors import UnknownNameError, UsageError
from nexus_core.host.bundled import BUNDLED
from nexus_core.host.contract import hooks
from nexus_core.values.fast_dataclass import dataclass

if TYPE_CHECKING:
    from nexus_core.cli.hook_samples import HookTemplate

DEFAULT_HOOK = "nexus_static_sections"

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")

# Their distributions or packages would be called like ours, or their plugins could not load beside ours.
_TAKEN = {"core", "plugins", *(candidate.name for candidate in BUNDLED)}

_README = """# {distribution}

A plugin for Nexus (`nexusctx`) that {does}.

    pip install -e '.[test]'
    nexus plugins list      # {name} is active
    nexus plugins check {name}
    pytest

The hook is in `{module}/__init__.py`. `nexus plugins hooks {hook}` prints its reference, and
`nexus plugins hooks` lists all the others.
"""

_TESTS = """{imports}

pytest_plugins = ["nexus_core.testing.fixtures"]


def test_the_plugin_keeps_the_contract():
    assert check_plugin({module}) == []


def test_{test}
"""


@dataclass(frozen=True, slots=True)
class PluginPackage:
    """A package to be written: the names of its distribution and its plugin, and its files by relative path."""

    distribution: str
    plugin: str
    files: dict[str, str]


def scaffold(name: str, hook: str = DEFAULT_HOOK) -> PluginPackage:
    """Return the package of a plugin: one hook, its tests and a README, ready to be installed.

    Args:
        name: The plugin's name: lower case letters, digits and single hyphens.
        hook: The hook that it implements.

    Raises:
        UsageError: It cannot be the name of a plugin.
        UnknownNameError: There is no such hook.
    """
    if hook not in hooks():
        raise UnknownNameError("hook", hook, hooks())
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} cannot be the name of a plugin",
            hint="use lower case letters, digits and single hyphens, starting with a letter: git-status",
        )
    if name.replace("-", "_") in _TAKEN:
        raise UsageError(f"{name!r} is taken: it would replace a part of Nexus", hint="choose another name")
    distribution, module = f"nexus-{name}", f"nexus_{name.replace('-', '_')}"
    sample = SAMPLES[hook]
    words = {
        "distribution": distribution,
        "module": module,
        "name": name.replace("-", "_"),
        "title": name.replace("-", " ").title(),
        "command": name,
        "hook": hook,
    }

    def fill(text: str) -> str:
        for word, value in words.items():
            text = text.replace(f"{{{word}}}", value)
        return text

    does, code = fill(sample.does), fill(dedent(sample.code).strip())
    files = {
        "pyproject.toml": tomli_w.dumps(_describe_project(distribution, module, words["name"], does)),
        "README.md": fill(_README.replace("{does}", does)),
        f"{module}/__init__.py": f'"""{words["title"]}: a plugin for Nexus that {does}."""\n\n{code}\n',
        f"{module}/py.typed": "",
        f"tests/test_{module}.py": fill(_write_tests(sample)),
    }
    for file, text in sample.files:
        files[f"{module}/{file}"] = fill(dedent(text).strip()) + "\n"
    return PluginPackage(distribution, words["name"], files)


def _write_tests(sample: HookTemplate) -> str:
    """Return the test module of a sample: that it keeps the contract, and what it does."""
    imports = "\n".join(
        filter(None, [sample.imports, "from nexus_core.testing import check_plugin\n\nimport {module}"])
    )
    return _TESTS.replace("{imports}", imports).replace("{test}", dedent(sample.test).strip())


def _describe_project(distribution: str, module: str, name: str, does: str) -> dict[str, object]:
    return {
        "build-system": {"requires": ["hatchling"], "build-backend": "hatchling.build"},
        "project": {
            "name": distribution,
            "version": "0.1.0",
            "description": f"A plugin for Nexus that {does}.".replace("`", ""),
            "readme": "README.md",
            "requires-python": ">=3.11",
            "dependencies": [f"nexusctx>={__version__}"],
            "optional-dependencies": {"test": ["pytest"]},
            "entry-points": {"nexus.plugins": {name: module}},
        },
        "tool": {
            "hatch": {"build": {"targets": {"wheel": {"packages": [module]}}}},
            "pytest": {"ini_options": {"testpaths": ["tests"]}},
        },
    }
