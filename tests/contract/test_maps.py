"""The first lines of each package are its map: every module of it is named there, and none that is gone."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import nexus_core

ROOT = Path(nexus_core.__file__).parent
PACKAGES = sorted(init.parent for init in ROOT.rglob("__init__.py") if len(list(init.parent.iterdir())) > 1)


def modules_of(package: Path) -> set[str]:
    return {
        path.stem
        for path in package.iterdir()
        if (path.suffix == ".py" and not path.stem.startswith("_")) or (path / "__init__.py").exists()
    }


def map_of(package: Path) -> str:
    return ast.get_docstring(ast.parse((package / "__init__.py").read_text(encoding="utf-8"))) or ""


def named(package: Path) -> str:
    return str(package.relative_to(ROOT.parent))


@pytest.mark.parametrize("package", PACKAGES, ids=named)
def test_every_module_is_on_the_map_of_its_package(package: Path) -> None:
    missing = {name for name in modules_of(package) if not re.search(rf"\b{name}\b", map_of(package))}

    assert missing == set()


@pytest.mark.parametrize("package", PACKAGES, ids=named)
def test_no_map_names_a_module_that_is_gone(package: Path) -> None:
    gone = {name for name in re.findall(r"(\w+)\.py\b", map_of(package)) if name not in modules_of(package)}

    assert gone == set()
