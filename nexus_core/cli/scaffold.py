"""The files of a new plugin package."""

from __future__ import annotations

import re

import tomli_w

from nexus_core._version import __version__
from nexus_core.errors import UsageError
from nexus_core.host.bundled import BUNDLED
from nexus_core.values.fast_dataclass import dataclass

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")

# Their distributions or packages would be called like ours, or their plugins could not load beside ours.
_TAKEN = {"core", "plugins", *(candidate.name for candidate in BUNDLED)}

_MODULE = '''"""{title}: adds a section to the prompt."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core import Section, hookimpl
from nexus_core.plugin import visible_line

if TYPE_CHECKING:
    from nexus_core import Request


@hookimpl
def nexus_static_sections(request: Request) -> list[Section]:
    """The section `## {title}`."""
    return [Section("{name}", title="{title}", text=f"This directory is called {{visible_line(request.cwd.name)}}.")]
'''

_TEST = """from nexus_core.testing import check_plugin

import {module}

pytest_plugins = ["nexus_core.testing.fixtures"]


def test_the_plugin_keeps_the_contract():
    assert check_plugin({module}) == []


def test_its_section_is_in_the_prompt(make_nexus):
    nexus = make_nexus(cwd="demo", plugins=[{module}])

    prompt = nexus.system_prompt()

    assert "## {title}\\nThis directory is called demo." in prompt
"""

_README = """# {distribution}

A plugin for Nexus (`nexusctx`) that adds the section `{title}` to the prompt.

    pip install -e '.[test]'
    nexus plugins list      # {name} is active
    nexus show              # has the section {title}
    pytest

The hook is in `{module}/__init__.py`; `nexus plugins hooks` prints all the others.
"""


@dataclass(frozen=True, slots=True)
class PluginPackage:
    """A package to be written: the name of its distribution, and its files by relative path."""

    distribution: str
    files: dict[str, str]


def scaffold(name: str) -> PluginPackage:
    """The package of a plugin called `name`: one hook, a test, a README, ready to be installed."""
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} cannot be the name of a plugin",
            hint="use lower case letters, digits and single hyphens, starting with a letter: git-status",
        )
    if name.replace("-", "_") in _TAKEN:
        raise UsageError(f"{name!r} is taken: it would replace a part of Nexus", hint="choose another name")
    distribution, module = f"nexus-{name}", f"nexus_{name.replace('-', '_')}"
    words = {
        "distribution": distribution,
        "module": module,
        "name": name.replace("-", "_"),
        "title": name.replace("-", " ").title(),
    }
    return PluginPackage(
        distribution,
        {
            "pyproject.toml": tomli_w.dumps(_project(distribution, module, words["name"])),
            "README.md": _README.format(**words),
            f"{module}/__init__.py": _MODULE.format(**words),
            f"{module}/py.typed": "",
            f"tests/test_{module}.py": _TEST.format(**words),
        },
    )


def _project(distribution: str, module: str, name: str) -> dict[str, object]:
    return {
        "build-system": {"requires": ["hatchling"], "build-backend": "hatchling.build"},
        "project": {
            "name": distribution,
            "version": "0.1.0",
            "description": f"Adds a section about {name.replace('_', ' ')} to what a model reads.",
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
