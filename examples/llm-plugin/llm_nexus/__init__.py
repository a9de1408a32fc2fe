"""The layered system prompt of a directory for `llm`: `llm -t nexus:` and `llm --sf nexus:`.

A template is what `llm` users keep a system prompt in; a fragment can be combined with others. Both read the files of
the directory anew for each prompt.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import llm

from nexus_core import Nexus

if TYPE_CHECKING:
    from collections.abc import Callable


@llm.hookimpl
def register_template_loaders(register: Callable[..., None]) -> None:
    """Register the prefix `nexus:` for templates."""
    register("nexus", load_template)


@llm.hookimpl
def register_fragment_loaders(register: Callable[..., None]) -> None:
    """Register the prefix `nexus:` for fragments."""
    register("nexus", load_fragment)


def load_template(path: str) -> llm.Template:
    """Use the system prompt that Nexus assembles for a directory; `nexus:` is the current one."""
    # In a template, `$name` is a variable.
    return llm.Template(  # type: ignore[no-untyped-call]
        name=f"nexus:{path}", system=read_system_prompt(path).replace("$", "$$")
    )


def load_fragment(path: str) -> llm.Fragment:
    """Return the system prompt that Nexus assembles for a directory; `nexus:` is the current one."""
    return llm.Fragment(read_system_prompt(path), source=f"nexus:{path}")  # type: ignore[no-untyped-call]


def read_system_prompt(path: str) -> str:
    """Return the system prompt of a directory.

    Raises:
        ValueError: There is no such directory, or its files cannot be read; `llm` prints it.
    """
    directory = Path(path or ".").expanduser()
    if not directory.is_dir():
        raise ValueError(f"there is no directory {str(directory)!r}")
    with Nexus(directory) as nexus:
        return nexus.system_prompt()
