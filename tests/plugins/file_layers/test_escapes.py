"""Nothing outside a project is read on its behalf, however it asks; links inside it work."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from nexus_core import FileError, NexusError, Request
from nexus_core.plugin import Layer, LayerConfig, LayerText
from nexus_core.testing import write_files
from nexus_core.types.settings import Settings
from nexus_plugins.file_layers import nexus_layer_config, nexus_layer_texts, nexus_layers

if TYPE_CHECKING:
    from collections.abc import Callable

CANARY = "CANARY"

# Links that a hostile repository may hold, relative to it; "{outside}" is a directory beside it with secrets in it.
LINKS = {
    "file.md": "{outside}/secret.md",
    "relative.md": "../outside/secret.md",
    "folder": "{outside}",
    "up": "..",
    "chain-1.md": "chain-2.md",
    "chain-2.md": "docs/chain-3.md",
    "docs/chain-3.md": "../../outside/secret.md",
    "loop-1.md": "loop-2.md",
    "loop-2.md": "loop-1.md",
    "self.md": "self.md",
    "loop": "loop",
    "dangling.md": "../outside/nothing.md",
    "environment.md": "/proc/self/environ",
    "memory.md": "/proc/self/mem",
    "stdin.md": "/dev/stdin",
    "descriptor.md": "/proc/self/fd/0",
    "zero.md": "/dev/zero",
    "null.md": "/dev/null",
    "passwords.md": "/etc/passwd",
    "root": "/",
    "pipe-link.md": "pipe.md",
}

IMPORTS = [
    "../outside/secret.md",
    "./../outside/secret.md",
    "docs/../../outside/secret.md",
    "..//outside//./secret.md",
    "../repo/../outside/secret.md",
    "{outside}/secret.md",
    "/{outside}/secret.md",
    "{repo}/../outside/secret.md",
    "~/secret.md",
    "~/../outside/secret.md",
    "~root/secret.md",
    "~/.ssh/id_rsa",
    "/etc/passwd",
    "/proc/self/environ",
    "/proc/self/../self/environ",
    "/dev/zero",
    "/dev/stdin",
    "../outside/with\\ space.md",
    "file.md",
    "relative.md",
    "folder/secret.md",
    "folder/../outside/secret.md",
    "docs/../folder/secret.md",
    "up/outside/secret.md",
    "up/repo/up/outside/secret.md",
    "root/etc/passwd",
    "chain-1.md",
    "loop-1.md",
    "self.md",
    "loop/secret.md",
    "dangling.md",
    "environment.md",
    "memory.md",
    "stdin.md",
    "descriptor.md",
    "zero.md",
    "null.md",
    "passwords.md",
    "pipe.md",
    "pipe-link.md",
    "docs",
    "folder",
    "nested.md",
    "docs/deeply.md",
]

TEXTS = ["AGENTS.md", "CLAUDE.md", "NEXUS.md", ".nexus3/NEXUS.md"]


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository full of ways out of it, beside a directory with secrets, which is also the user's home."""
    outside = write_files(
        tmp_path / "outside",
        {
            "secret.md": CANARY,
            "with space.md": CANARY,
            ".ssh/id_rsa": CANARY,
            "NEXUS.md": CANARY,
            "config.json": f'{{"secret": "{CANARY}"}}',
        },
    )
    monkeypatch.setenv("HOME", str(outside))
    repo = write_files(
        tmp_path / "repo",
        {".git/HEAD": "", "docs/deeply.md": "@../nested.md", "nested.md": "@../outside/secret.md @folder/secret.md"},
    )
    for name, target in LINKS.items():
        (repo / name).symlink_to(target.format(outside=outside))
    os.mkfifo(repo / "pipe.md")
    return repo


@pytest.mark.acceptance("T11")
@pytest.mark.parametrize("written", IMPORTS)
def test_no_import_brings_in_a_byte_from_outside(repo: Path, written: str) -> None:
    written = written.format(outside=repo.parent / "outside", repo=repo)
    write_files(repo, {"AGENTS.md": f"Before.\n@{written}\nAfter, @{written} inline.\n"})

    texts = read_everything(repo)

    assert len(texts) == 1
    assert texts[0].startswith("Before.\n")


@pytest.mark.acceptance("T11")
@pytest.mark.parametrize("target", [*LINKS.values(), "pipe.md", "docs"])
@pytest.mark.parametrize("name", TEXTS)
def test_no_text_that_is_a_link_brings_in_a_byte_from_outside(repo: Path, name: str, target: str) -> None:
    (repo / ".nexus3").mkdir()
    (repo / name).symlink_to(target.format(outside=repo.parent / "outside") if "/" in target else repo / target)

    assert read_everything(repo) == []


@pytest.mark.acceptance("T11")
@pytest.mark.parametrize("target", ["{outside}", "../outside", "folder", "up", "root", "loop", "docs/../folder"])
def test_no_directory_of_a_layer_leads_outside(repo: Path, target: str) -> None:
    (repo / ".nexus3").symlink_to(target.format(outside=repo.parent / "outside"))

    assert read_everything(repo) == []


@pytest.mark.acceptance("T11")
@pytest.mark.parametrize("target", [*LINKS.values(), "pipe.md", "docs"])
def test_no_settings_are_read_from_outside(repo: Path, target: str) -> None:
    (repo / ".nexus3").mkdir()
    (repo / ".nexus3/config.json").symlink_to(
        target.format(outside=repo.parent / "outside") if "/" in target else repo / target
    )

    assert read_everything(repo) == []


@pytest.mark.acceptance("T11")
@pytest.mark.parametrize("name", TEXTS)
def test_a_pipe_in_the_place_of_a_text_is_an_error_that_names_it(repo: Path, name: str) -> None:
    (repo / ".nexus3").mkdir()
    os.mkfifo(repo / name)

    with pytest.raises(FileError, match="not a regular file") as caught:
        nexus_layer_texts(Layer("local", repo / ".nexus3", "local", root=repo), Settings())

    assert caught.value.where == str(repo / name)


def test_an_import_that_leads_outside_is_reported(repo: Path) -> None:
    write_files(repo, {"AGENTS.md": "@../outside/secret.md\n@file.md\n"})

    found = nexus_layer_texts(Layer("local", repo / ".nexus3", "local", root=repo), Settings())

    assert {(item.path, item.reason) for item in found if not isinstance(item, LayerText)} >= {
        (repo.parent / "outside/secret.md", f"import leads outside {repo} (AGENTS.md:1)"),
        (repo / "file.md", f"import leads outside {repo} (AGENTS.md:2)"),
    }


def test_an_import_from_the_home_or_the_system_is_reported(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/far/home")
    write_files(repo, {"AGENTS.md": "@/etc/passwd\n@~/.x\n@../.env\n@/lib/utils and @/etc stay\n"})

    found = nexus_layer_texts(Layer("local", repo / ".nexus3", "local", root=repo), Settings())

    reason = f"import leads outside {repo} (AGENTS.md:{{}})".format
    assert [
        (item.path, item.reason) for item in found if not isinstance(item, LayerText) and "outside" in item.reason
    ] == [
        (Path("/etc/passwd"), reason(1)),
        (Path("/far/home/.x"), reason(2)),
        (repo.parent / ".env", reason(3)),
    ]


def test_a_text_that_leads_outside_is_reported(repo: Path) -> None:
    (repo / "NEXUS.md").symlink_to("file.md")

    found = nexus_layer_texts(Layer("local", repo / ".nexus3", "local", root=repo), Settings())

    assert [item.reason for item in found if item.path == repo / "NEXUS.md" and not isinstance(item, LayerText)] == [
        f"leads outside {repo}"
    ]


def test_without_a_repository_the_directory_itself_is_the_limit(tmp_path: Path) -> None:
    write_files(tmp_path, {"secret.md": CANARY, "work/AGENTS.md": "@../secret.md", "work/sub/x": ""})

    assert read_everything(tmp_path / "work") == ["@../secret.md"]


@pytest.mark.acceptance("T11")
@pytest.mark.parametrize(
    ("link", "target"),
    [
        ("AGENTS.md", "docs/rules.md"),
        ("AGENTS.md", "{repo}/docs/rules.md"),
        ("CLAUDE.md", "shared/rules.md"),
        ("GEMINI.md", "one.md"),
        ("NEXUS.md", "docs/rules.md"),
        (".nexus3", "shared"),
        (".nexus3/NEXUS.md", "../docs/rules.md"),
        ("sub/AGENTS.md", "../docs/rules.md"),
        ("sub/.nexus3", "../shared"),
        ("sub/NEXUS.md", "../two.md"),
    ],
)
def test_a_link_inside_the_repository_is_followed(tmp_path: Path, link: str, target: str) -> None:
    repo = write_files(tmp_path / "repo", {".git/HEAD": "", "docs/rules.md": "rules", "docs/NEXUS.md": "rules"})
    (repo / "shared").symlink_to("docs")
    (repo / "one.md").symlink_to("two.md")
    (repo / "two.md").symlink_to("docs/rules.md")
    (repo / link).parent.mkdir(exist_ok=True)
    (repo / link).symlink_to(target.format(repo=repo))

    assert read_everything(repo / "sub" if link.startswith("sub/") else repo) == ["rules"]


@pytest.mark.acceptance("T11")
@pytest.mark.parametrize(
    "written",
    ["shared/rules.md", "one.md", "../docs/rules.md", "{repo}/docs/rules.md", "../sub/shared/../../docs/rules.md"],
)
def test_an_import_through_links_inside_the_repository_works(tmp_path: Path, written: str) -> None:
    repo = write_files(tmp_path / "repo", {".git/HEAD": "", "docs/rules.md": "rules"})
    write_files(repo, {"sub/AGENTS.md": f"@{written.format(repo=repo)}"})
    (repo / "sub/shared").symlink_to("../docs")
    (repo / "sub/one.md").symlink_to("shared/rules.md")

    assert read_everything(repo / "sub") == ["rules"]


@pytest.mark.acceptance("T11")
def test_an_import_is_not_read_from_outside_when_its_directory_becomes_a_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = write_files(tmp_path / "repo", {".git/HEAD": "", "docs/rules.md": "rules", "AGENTS.md": "@docs/rules.md"})
    write_files(tmp_path / "outside", {"rules.md": CANARY})
    opened = 0

    def swap_before(number: int) -> Callable[..., int]:
        def swapping(*arguments: Any, **options: Any) -> int:
            nonlocal opened
            opened += 1
            if opened == number:
                (repo / "docs").rename(repo / "moved")
                (repo / "docs").symlink_to(tmp_path / "outside")
            return really_open(*arguments, **options)

        return swapping

    really_open = os.open
    found: list[list[str]] = []
    for number in range(1, 100):
        opened = 0
        monkeypatch.setattr(os, "open", swap_before(number))
        found.append(read_everything(repo))
        monkeypatch.undo()
        if opened < number:
            break
        (repo / "docs").unlink()
        (repo / "moved").rename(repo / "docs")

    assert len(found) > 4  # at least the repository, the text, the directory and the file are opened
    assert found[-1] == ["rules"]
    assert {text for texts in found for text in texts} == {"rules", "@docs/rules.md"}


def read_everything(cwd: Path) -> list[str]:
    """Every text and setting that is read for a directory; errors may only say where."""
    read: list[str] = []
    for layer in nexus_layers(Request(cwd=cwd, home=cwd / "no-such-home")):
        if isinstance(layer, Layer):
            read += _read(layer)
    for text in read:
        assert not [secret for secret in (CANARY, "root:", "PATH=", "\0") if secret in text]
    return read


def _read(layer: Layer) -> list[str]:
    read: list[str] = []
    for hook in (lambda each: nexus_layer_texts(each, Settings()), nexus_layer_config):
        try:
            items = hook(layer)
        except NexusError as error:
            shown = str(error)
            read += [shown] if CANARY in shown else []
            continue
        read += [item.text for item in items if isinstance(item, LayerText)]
        read += [str(item.settings) for item in items if isinstance(item, LayerConfig)]
    return read
