"""The summarizers that the settings name, and findings about them."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from nexus_core import Finding
from nexus_core.plugin import Summarizer
from nexus_core.plugin.settings import pointer_to
from nexus_plugins.providers._command import CommandSummarizer
from nexus_plugins.providers._endpoint import (
    DEFAULT_TIMING,
    EXTRA,
    EndpointClient,
    EndpointError,
    read_provider_settings,
)
from nexus_plugins.providers._secrets import is_variable_set

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nexus_core.plugin import LayerConfig, LoadedLayers, SummaryRequest
    from nexus_plugins.providers._endpoint import ModelEndpoint, RetryTiming

COMMAND_SETTING = "compaction.command"
COMMAND_POINTER = "/compaction/command"


@dataclass(frozen=True, slots=True)
class EndpointSummarizer:
    """A summarizer that asks an HTTP endpoint.

    Attributes:
        name: The name of the endpoint.
        endpoint: Its settings.
        model: The model if the endpoint names none; "" for the conversation's own.
        timing: Functions behind the waits between retries.
    """

    name: str
    endpoint: ModelEndpoint
    model: str = ""
    timing: RetryTiming = DEFAULT_TIMING

    def __call__(self, request: SummaryRequest) -> str:
        """Return the summary.

        Raises:
            EndpointError: The endpoint cannot be reached, fails, or gives no summary.
            MissingExtraError: httpx2 is not installed.
        """
        client = EndpointClient(self.name, self.endpoint, self.timing)
        model = self.endpoint.model or self.model or request.model
        if not model:
            raise EndpointError("the endpoint does not know which model to ask", endpoint=self.name, hint="set `model`")
        body = client.format.write(request, model, client.address)
        return client.post(body, model, request.timeout, client.format.read)


def build_summarizers(loaded: LoadedLayers) -> Iterator[Summarizer]:
    """Yield a summarizer for each endpoint, and `command` if the settings name one."""
    endpoints, variables = read_provider_settings(loaded)
    model = loaded.settings.get("compaction.model")
    for name, endpoint in endpoints.items():
        model_id = loaded.settings.model_id(model) if isinstance(model, str) else ""
        yield Summarizer(name=name, summarise=EndpointSummarizer(name, endpoint, model_id), window=endpoint.window)
    command = find_command(loaded)
    if command is not None:
        summarize = replace(command, variables=variables)
        yield Summarizer(name="command", summarise=summarize)


def find_command(loaded: LoadedLayers) -> CommandSummarizer | None:
    """Return the program in the settings: the user's own, or a project's that the user has approved.

    A project's program is started in the project, because that is what was approved.
    """
    command = loaded.settings.get(COMMAND_SETTING)
    config = _find_command_config(loaded)
    if not isinstance(command, list) or not command or config is None or config.layer is None:
        return None
    layer = config.layer
    approved = "" if layer.is_own else _find_approved_content(loaded, config)
    if approved is None:
        return None
    program, *arguments = map(str, command)
    if Path(program).name != program:  # a path, not a name to search in PATH
        base = layer.directory if layer.is_own else layer.project
        program = str(base / os.path.expanduser(program))  # noqa: PTH111 - does not fail without a home
    return CommandSummarizer((program, *arguments), None if layer.is_own else layer.project, approved=approved)


def _find_command_config(loaded: LoadedLayers) -> LayerConfig | None:
    """Return the file that sets the command, or None if there is none."""
    origins = loaded.settings.origins.get(COMMAND_POINTER, ())
    paths = {origin.path for origin in origins[:1]}
    return next((config for config in loaded.configs if config.path in paths), None)


def _find_approved_content(loaded: LoadedLayers, config: LayerConfig) -> str | None:
    """Return the approved content of the program, with the digests of its code, or None if it is not approved."""
    path = config.path.resolve()
    parts = (part for part in loaded.active if part.path == path and part.pointer == COMMAND_POINTER)
    return next((part.content for part in parts if part.decision == "allowed"), None)


_ENDPOINTS_POINTER = "/plugins/providers/endpoints"


def diagnose_providers(loaded: LoadedLayers) -> Iterator[Finding]:
    """Yield findings about unusable endpoints and an unusable command."""
    endpoints, _ = read_provider_settings(loaded)
    if endpoints and find_spec("httpx2") is None:
        yield _finding(
            loaded, "missing-extra", f"endpoints need `pip install '{EXTRA.requirement}'`", _ENDPOINTS_POINTER
        )
    for name, endpoint in endpoints.items():
        base = pointer_to(_ENDPOINTS_POINTER, name)
        variables = {pointer_to(base, "key_env"): endpoint.key_env} | {
            pointer_to(pointer_to(base, "headers"), header): variable for header, variable in endpoint.headers.items()
        }
        for pointer, variable in variables.items():
            if variable is not None and not is_variable_set(variable):
                message = f"the endpoint {name!r} needs the environment variable {variable}, which is not set"
                yield _finding(loaded, "key-not-set", message, pointer)
    command = find_command(loaded)
    if command is not None and not shutil.which(command.command[0], path=os.environ.get("PATH", os.defpath)):
        message = f"{COMMAND_SETTING} names {command.command[0]!r}, which is not a program on this machine"
        yield _finding(loaded, "no-such-program", message, COMMAND_POINTER)


def _finding(loaded: LoadedLayers, code: str, message: str, pointer: str) -> Finding:
    origins = loaded.settings.origins.get(pointer)
    if not origins:
        return Finding(code, message)
    return Finding(code, message, origins[0].path, origins[0].line, origins[0].column)
