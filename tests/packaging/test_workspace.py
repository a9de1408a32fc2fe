"""No code is ever taken from the directory that Nexus looks at."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nexus_core.testing import write_files

if TYPE_CHECKING:
    from pathlib import Path

    from tests.packaging.conftest import Environment

pytestmark = pytest.mark.slow

# Modules that Python, Nexus or its dependencies import, and one that only an entry point names.
_PLANTED = ("__future__", "evil", "importlib_metadata", "json", "pathlib", "pluggy", "sitecustomize", "typer", "typing")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A project whose modules leave a file behind when they are imported."""
    metadata = "evil-1.0.dist-info"
    return write_files(
        tmp_path / "workspace",
        {
            f"{metadata}/METADATA": "Metadata-Version: 2.1\nName: evil\nVersion: 1.0\n",
            f"{metadata}/entry_points.txt": "[nexus.plugins]\nevil = evil\n",
            # Without an import of its own, lest one planted module import another.
            **{f"{name}.py": "open(__file__ + '.canary', 'w').close()\n" for name in _PLANTED},
        },
    )


@pytest.mark.acceptance("T22")
@pytest.mark.parametrize(
    "command",
    [
        ("nexus", "show"),
        ("nexus", "plugin", "list"),
        ("python", "-m", "nexus_core", "show"),
        ("python", "-m", "nexus_core", "plugin", "list"),
    ],
    ids=" ".join,
)
def test_nothing_is_imported_from_the_working_directory(
    hello: Environment, workspace: Path, command: tuple[str, ...]
) -> None:
    program, *arguments = command

    finished = hello.run(program, *arguments, cwd=workspace)

    assert (finished.returncode, finished.stderr) == (0, "")
    assert [path.name for path in workspace.rglob("*.canary")] == []


@pytest.mark.acceptance("T22")
@pytest.mark.parametrize(
    "command",
    [("nexus", "show"), ("nexusctx", "show"), ("python", "-P", "-m", "nexus_core", "show")],
    ids=" ".join,
)
def test_the_commands_do_not_even_import_what_python_itself_would(
    hello: Environment, workspace: Path, command: tuple[str, ...]
) -> None:
    # `python -m` imports this one before any line of Nexus runs, from the working directory.
    write_files(workspace, {"contextlib.py": "open(__file__ + '.canary', 'w').close()\n"})
    program, *arguments = command

    finished = hello.run(program, *arguments, cwd=workspace)

    assert (finished.returncode, finished.stderr) == (0, "")
    assert [path.name for path in workspace.rglob("*.canary")] == []


def test_the_canaries_sing_when_they_are_imported(hello: Environment, workspace: Path) -> None:
    hello.run("python", "-c", "import evil, pluggy", cwd=workspace)

    assert {path.name for path in workspace.rglob("*.canary")} >= {"evil.py.canary", "pluggy.py.canary"}
