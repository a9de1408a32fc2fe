"""Whether the package of a tokenizer can be imported, found out once for all processes of the user."""

from __future__ import annotations

import os
import sys
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from nexus_core.host.implementation import describe
from nexus_core.tokens.cache import CountCache, shared_cache

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec

NOT_INSTALLED = "is not installed"


def find_import_error(package: str, name: str) -> str:
    """Return why a name cannot be imported from a package; "" if it can.

    A success is remembered in the user's cache until a file of the package changes, so that the usual answer imports
    nothing: a tokenizer takes longer to import than most prompts to count. A failure is remembered by this process.

    Args:
        package: A top-level package: `tiktoken`.
        name: What is used of it: `Encoding`.

    Returns:
        Half a sentence that the package's name can precede: "is not installed", "cannot be imported: …".
    """
    try:
        spec = find_spec(package)
    except (ImportError, ValueError) as error:  # another module put something odd into sys.modules
        return f"cannot be imported: importing it {describe(error)}"
    if spec is None:
        return NOT_INSTALLED
    files = _fingerprint(spec)
    key = CountCache.key(f"import {package}.{name}", files)
    if shared_cache().find(key):
        return ""
    error_text = _try_import(package, name, files)
    if not error_text:
        shared_cache().keep(key, 1)
    return error_text


@cache
def _try_import(package: str, name: str, files: str) -> str:  # noqa: ARG001 - other files may have another outcome
    try:
        getattr(import_module(package), name)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - an extension may raise anything, and a panic is not an Exception
        return f"cannot be imported: importing it {describe(error)}"
    return ""


def _fingerprint(spec: ModuleSpec) -> str:
    """Identify the files of a package, and the interpreter they are for."""
    found = [f"{sys.implementation.cache_tag} {sys.platform} {os.path.realpath(sys.prefix)} {spec.origin}"]
    for directory in spec.submodule_search_locations or ():
        try:
            with os.scandir(directory) as entries:
                files = [(entry.name, entry.stat()) for entry in entries if entry.is_file()]
        except OSError:  # an import from an archive, or a directory that is gone: told apart by its name alone
            files = []
        found += [f"{file} {facts.st_size} {facts.st_mtime_ns}" for file, facts in sorted(files)]
    return "\n".join(found)
