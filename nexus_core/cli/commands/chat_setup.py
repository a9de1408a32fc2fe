"""Help for `nexus chat` without a configured model: settings, and local servers that answer."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection, HTTPException
from importlib.util import find_spec
from typing import NamedTuple

from nexus_core.cli.commands.chat import CHAT_EXTRA
from nexus_core.errors import UsageError
from nexus_core.text.safety import shorten, visible_line

LOOPBACK = "127.0.0.1"
LOCAL_PORTS = {11434: "Ollama", 1234: "LM Studio", 8080: "llama.cpp", 8000: "vLLM", 1337: "Jan"}
"""Ports of programs that serve models on the user's own machine, in the order in which they are listed."""
_TIMEOUT_SECONDS = 0.5
_MAX_BYTES = 256 * 1024
"""A list of models is far smaller."""
_MAX_NAMES = 4
_MAX_NAME_CHARACTERS = 60


class LocalServer(NamedTuple):
    """A server on this machine that lists models.

    Attributes:
        program: What usually listens at its port.
        url: Its address.
        models: The models that it names.
    """

    program: str
    url: str
    models: tuple[str, ...]


def missing_model_error() -> UsageError:
    """Return the error for a chat without a model, with the local servers that answer on the loopback interface."""
    found = find_local_servers()
    hint = "nexus chat -m claude-sonnet-5 names one; `nexus config set --global provider.model NAME` keeps it"
    if find_spec("httpx2") is None:  # which sends the calls of the bundled providers
        hint += f"\n  before that: pip install '{CHAT_EXTRA.requirement}'"
    if not found:
        return UsageError("no model is configured, and no local server answers", hint=hint)
    lines = [_describe_server(each) for each in found]
    first = found[0]
    commands = (
        "nexus config set --global provider.provider openai",
        f"nexus config set --global provider.base_url {first.url}",
        f"nexus config set --global provider.model {first.models[0] if first.models else 'NAME'}",
    )
    lines += ["to use it:" if len(found) == 1 else "to use the first:", *(f"  {each}" for each in commands)]
    what = "no model is configured; these servers answer on this machine:"
    return UsageError("\n".join([what, *(f"  {visible_line(each)}" for each in lines)]), hint=hint)


def find_local_servers() -> list[LocalServer]:
    """Return the servers at well-known ports of the loopback interface that list models. Takes at most a second."""
    with ThreadPoolExecutor(len(LOCAL_PORTS)) as threads:
        found = threads.map(_ask_server, LOCAL_PORTS)
        return [each for each in found if each is not None]


def _ask_server(port: int) -> LocalServer | None:
    connection = HTTPConnection(LOOPBACK, port, timeout=_TIMEOUT_SECONDS)  # follows no redirect and uses no proxy
    try:
        connection.request("GET", "/v1/models", headers={"Accept": "application/json"})
        response = connection.getresponse()
        if response.status != 200:  # noqa: PLR2004 - OK
            return None
        listed = json.loads(response.read(_MAX_BYTES))["data"]
        names = [each["id"] for each in listed if isinstance(each["id"], str)]
    except (OSError, HTTPException, ValueError, LookupError, TypeError, RecursionError):  # not a server of models
        return None
    finally:
        connection.close()
    models = tuple(shorten(visible_line(name), _MAX_NAME_CHARACTERS) for name in names)
    return LocalServer(LOCAL_PORTS[port], f"http://{LOOPBACK}:{port}/v1", models)


def _describe_server(server: LocalServer) -> str:
    named = ", ".join(server.models[:_MAX_NAMES]) or "no models yet"
    more = f" and {len(server.models) - _MAX_NAMES} more" if len(server.models) > _MAX_NAMES else ""
    return f"{server.url} ({server.program}): {named}{more}"
