"""Settings under `plugins.providers` in config.json."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, field_validator, model_validator

from nexus_core.plugin.settings import StrictModel, find_address_error
from nexus_core.plugin.text import is_variable_name
from nexus_plugins.providers._endpoint import ModelEndpoint
from nexus_plugins.providers._formats import RESERVED_HEADERS
from nexus_plugins.providers._secrets import NOT_A_VARIABLE

RESERVED_NAMES = ("command", "extractive", "given")
"""Names of other summarizers, which endpoints cannot have."""

_HEADER_NAME = re.compile(r"[A-Za-z0-9-]{1,64}")
_ENDPOINT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def _validate_variable(name: str) -> str:
    if not is_variable_name(name):
        raise ValueError(NOT_A_VARIABLE)
    return name


VariableName = Annotated[str, AfterValidator(_validate_variable)]


# `Endpoint` has the fields and defaults of `ModelEndpoint`, which is a class of its own so that an endpoint can be made
# without pydantic.
_DEFAULTS = ModelEndpoint(api="openai")


class Endpoint(StrictModel):
    """An HTTP endpoint that serves a model."""

    api: Literal["openai", "responses", "anthropic", "gemini"] = Field(
        description="Its API: `openai` (chat completions, which most servers accept), `responses`, `anthropic` "
        "(messages) or `gemini`."
    )
    model: str | None = Field(
        default=_DEFAULTS.model,
        min_length=1,
        description="Its name of the model; default: `compaction.model` or the session's.",
    )
    base_url: str | None = Field(
        default=_DEFAULTS.base_url, description="Its address, in the form of the API's SDK; default: that of its maker."
    )
    key_env: VariableName | None = Field(
        default=_DEFAULTS.key_env,
        description="The environment variable that holds the key; none for servers without keys.",
    )
    headers: dict[str, VariableName] = Field(
        default_factory=dict, description="Further headers: by name, the environment variable that holds the value."
    )
    window: Annotated[int, Field(ge=0)] = Field(
        default=_DEFAULTS.window, description="Its context window in tokens; 0 for no limit."
    )
    max_retries: Annotated[int, Field(ge=0, le=10)] = Field(
        default=_DEFAULTS.max_retries, description="Number of retries."
    )
    timeout: Annotated[float, Field(gt=0, le=86_400)] = Field(
        default=_DEFAULTS.timeout,
        description="Timeout of one attempt in seconds; a day at most. In a streamed reply, the longest silence.",
    )
    options: dict[str, Any] = Field(
        default_factory=dict, description="Further fields of the request body; null removes a field."
    )
    allow_http: bool = Field(default=False, description="Allow sending key and conversation unencrypted.")

    def to_endpoint(self) -> ModelEndpoint:
        """Return the endpoint that the client uses."""
        return ModelEndpoint(**self.model_dump(exclude={"allow_http"}))

    @field_validator("headers")
    @classmethod
    def _validate_headers(cls, headers: dict[str, str]) -> dict[str, str]:
        for name in headers:
            if not _HEADER_NAME.fullmatch(name) or name.lower() in RESERVED_HEADERS:
                raise ValueError("has a name that cannot be set here")
        return headers

    @model_validator(mode="after")
    def _validate_address(self) -> Self:
        if self.base_url is not None and (error := find_address_error(self.base_url, allow_http=self.allow_http)):
            raise ValueError(f"base_url {error}")
        return self


class ProvidersSettings(StrictModel):
    """Model endpoints and the summary command, from the user's config only."""

    endpoints: dict[str, Endpoint] = Field(
        default_factory=dict,
        description="Endpoints by the names that `compaction.summarizers` and `provider.provider` use.",
    )
    command_variables: list[VariableName] = Field(
        default_factory=list, description="Further environment variables that `compaction.command` gets."
    )

    @field_validator("endpoints")
    @classmethod
    def _validate_names(cls, endpoints: dict[str, Endpoint]) -> dict[str, Endpoint]:
        for name in endpoints:
            if name in RESERVED_NAMES:
                raise ValueError(f"{name!r} is the name of another summarizer")
            if not _ENDPOINT_NAME.fullmatch(name):
                raise ValueError("names consist of letters, digits, dots, hyphens and underscores")
        return endpoints
