"""What can be told about endpoints and the command without asking either."""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec
from typing import TYPE_CHECKING

from nexus_core import Finding
from nexus_core.plugin import pointer_to
from nexus_plugins.providers._asking import EXTRA
from nexus_plugins.providers._choosing import COMMAND, POINTER, find_command, read_settings
from nexus_plugins.providers._secrets import is_set

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nexus_core.plugin import Loaded

_ENDPOINTS = "/plugins/providers/endpoints"


def diagnose(loaded: Loaded) -> Iterator[Finding]:
    """What keeps an endpoint or the command from being of use."""
    endpoints = read_settings(loaded).endpoints
    if endpoints and find_spec("httpx2") is None:
        yield _finding(loaded, "missing-extra", f"endpoints need `pip install '{EXTRA.requirement}'`", _ENDPOINTS)
    for name, endpoint in endpoints.items():
        place = pointer_to(_ENDPOINTS, name)
        named = {pointer_to(place, "key_env"): endpoint.key_env} | {
            pointer_to(pointer_to(place, "headers"), header): variable for header, variable in endpoint.headers.items()
        }
        for pointer, variable in named.items():
            if variable is not None and not is_set(variable):
                message = f"the endpoint {name!r} needs the environment variable {variable}, which is not set"
                yield _finding(loaded, "key-not-set", message, pointer)
    command = find_command(loaded)
    if command is not None and not shutil.which(command.command[0], path=os.environ.get("PATH", os.defpath)):
        message = f"{COMMAND} names {command.command[0]!r}, which is not a program on this machine"
        yield _finding(loaded, "no-such-program", message, POINTER)


def _finding(loaded: Loaded, code: str, message: str, pointer: str) -> Finding:
    origins = loaded.settings.origins.get(pointer)
    if not origins:
        return Finding(code, message)
    return Finding(code, message, origins[0].path, origins[0].line, origins[0].column)
