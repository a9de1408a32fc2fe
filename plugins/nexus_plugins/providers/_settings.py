"""What may stand under `plugins.providers` in config.json."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, field_validator, model_validator

from nexus_core.plugin import Strict
from nexus_plugins.providers._addresses import fault_of

TAKEN = ("command", "extractive", "given")
"""Names of summarisers that are no endpoints."""

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_HEADER = re.compile(r"[A-Za-z0-9-]{1,64}")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_OURS = frozenset({"accept-encoding", "connection", "content-length", "content-type", "host", "transfer-encoding"})


def _is_variable(name: str) -> str:
    if not _VARIABLE.fullmatch(name):
        raise ValueError("must be the name of an environment variable, not a value")
    return name


Variable = Annotated[str, AfterValidator(_is_variable)]


class Endpoint(Strict):
    """Somebody who serves a model."""

    api: Literal["openai", "anthropic"] = Field(
        description="How it is spoken to: `openai` (chat completions; most know them) or `anthropic` (messages)."
    )
    model: str | None = Field(
        default=None, min_length=1, description="The model's name there; `compaction.model` or the session's otherwise."
    )
    base_url: str | None = Field(
        default=None, description="Its address, as the SDK of that API wants it; that of OpenAI or Anthropic otherwise."
    )
    key_env: Variable | None = Field(
        default=None, description="The environment variable that holds the key; none for servers that want none."
    )
    headers: dict[str, Variable] = Field(
        default_factory=dict, description="Further headers: by name, the environment variable that holds the value."
    )
    window: Annotated[int, Field(ge=0)] = Field(default=0, description="How many tokens it reads at once; 0 for any.")
    max_retries: Annotated[int, Field(ge=0, le=10)] = Field(default=2, description="How often it is asked again.")
    timeout: Annotated[float, Field(gt=0, le=86_400)] = Field(
        default=120.0, description="Seconds that one attempt may take; a day at most."
    )
    options: dict[str, Any] = Field(
        default_factory=dict, description="Sent along as they are; null leaves out what would be sent otherwise."
    )
    allow_http: bool = Field(default=False, description="Whether key and conversation may go there unencrypted.")

    @field_validator("headers")
    @classmethod
    def _are_headers(cls, headers: dict[str, str]) -> dict[str, str]:
        for name in headers:
            if not _HEADER.fullmatch(name) or name.lower() in _OURS:
                raise ValueError("has a name that cannot be set here")
        return headers

    @model_validator(mode="after")
    def _has_an_address(self) -> Self:
        if self.base_url is not None and (fault := fault_of(self.base_url, allow_http=self.allow_http)):
            raise ValueError(f"base_url {fault}")
        return self


class ProvidersSettings(Strict):
    """Whom to ask for summaries. Only in your own config."""

    endpoints: dict[str, Endpoint] = Field(
        default_factory=dict, description="Endpoints by the names that `compaction.summarisers` calls them."
    )
    command_variables: list[Variable] = Field(
        default_factory=list, description="Environment variables that `compaction.command` is given besides the usual."
    )

    @field_validator("endpoints")
    @classmethod
    def _have_names(cls, endpoints: dict[str, Endpoint]) -> dict[str, Endpoint]:
        for name in endpoints:
            if name in TAKEN:
                raise ValueError(f"{name!r} is the name of another summariser")
            if not _NAME.fullmatch(name):
                raise ValueError("names consist of letters, digits, dots, hyphens and underscores")
        return endpoints
