"""Providers for agents: one for each API of the settings, and one for each endpoint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from nexus_core import ConfigError, MessageError, get_dialect
from nexus_core.plugin import Provider, ProviderReply, ProviderToolCall, ProviderUsage, TextDelta
from nexus_core.plugin.settings import find_address_error
from nexus_core.plugin.text import is_variable_name
from nexus_plugins.providers._connection_pool import CONNECTIONS
from nexus_plugins.providers._endpoint import RESEND_HINT, EndpointClient, ModelEndpoint, read_provider_settings
from nexus_plugins.providers._formats import FORMATS
from nexus_plugins.providers._secrets import NOT_A_VARIABLE, is_variable_set

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nexus_core import AssembledContext
    from nexus_core.plugin import CancelSignal, LoadedLayers, ProviderEvent
    from nexus_core.plugin.dialects import Reply

KEY_VARIABLES = {
    "openai": ("OPENAI_API_KEY",),
    "responses": ("OPENAI_API_KEY",),
    "anthropic": ("ANTHROPIC_API_KEY",),
    "gemini": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
}
"""The environment variables in which the SDK of each API looks for the key."""

SILENCE_SECONDS = 300.0
"""Models that reason may be silent for minutes before the first piece of a reply."""


def build_providers(loaded: LoadedLayers) -> Iterator[Provider]:
    """Yield a provider for each endpoint, and for each API one that `provider.*` of the settings configures.

    Raises:
        ConfigError: `provider.base_url` or `provider.api_key_env` cannot be used.
    """
    endpoints, _ = read_provider_settings(loaded)
    for name, endpoint in endpoints.items():
        client = EndpointClient(name, endpoint)
        yield Provider(
            name=name, stream=EndpointProvider(client), close=CONNECTIONS.close_idle, check=client.require_keys
        )
    for api in FORMATS:
        if api not in endpoints:
            client = EndpointClient(api, _build_endpoint(loaded, api), where="provider")
            yield Provider(
                name=api, stream=EndpointProvider(client), close=CONNECTIONS.close_idle, check=client.require_keys
            )


def _build_endpoint(loaded: LoadedLayers, api: str) -> ModelEndpoint:
    """Return the endpoint of an API's maker, or the one of `provider.base_url`."""
    origins = loaded.settings.origins.get("/provider/provider", ())
    # A project's word is not heard: what the user has set up for a provider is for any that the program names.
    is_of_project = bool(origins) and origins[0].layer != "global"
    is_meant = is_of_project or loaded.settings.get("provider.provider") in (None, "", api)
    base_url = loaded.settings.get("provider.base_url") if is_meant else None
    key_env = loaded.settings.get("provider.api_key_env") if is_meant else None
    if isinstance(base_url, str) and (error := find_address_error(base_url)):
        raise ConfigError(f"provider.base_url {error}", where=_locate_setting(loaded, "base_url"))
    if isinstance(key_env, str) and not is_variable_name(key_env):
        raise ConfigError(f"provider.api_key_env {NOT_A_VARIABLE}", where=_locate_setting(loaded, "api_key_env"))
    if not isinstance(base_url, str) and not isinstance(key_env, str):
        # A key in its usual variable is for the maker of the API; no other address gets it by default.
        names = KEY_VARIABLES[api]
        key_env = next((name for name in names if is_variable_set(name)), names[0])
    return ModelEndpoint(
        api=api,
        base_url=base_url if isinstance(base_url, str) else None,
        key_env=key_env if isinstance(key_env, str) else None,
        timeout=SILENCE_SECONDS,
    )


def _locate_setting(loaded: LoadedLayers, key: str) -> str:
    """Return file, line and column of a setting of `provider`, or its name."""
    origins = loaded.settings.origins.get(f"/provider/{key}", ())
    return next((f"{each.path}:{each.line}:{each.column}" for each in origins[:1]), f"provider.{key}")


@dataclass(frozen=True, slots=True)
class EndpointProvider:
    """Streams the reply of an endpoint to an assembled call.

    Attributes:
        client: Sends the requests.
    """

    client: EndpointClient

    def __call__(self, context: AssembledContext, cancel: CancelSignal) -> Iterator[ProviderEvent]:
        """Yield the events of the reply.

        Raises:
            EndpointError: There is no reply.
            MissingExtraError: httpx2 is not installed.
        """
        client = self.client
        model = client.endpoint.model or context.model
        if not model:
            raise client.error("does not know which model to ask", hint="set provider.model, or pass model=…")
        raw: list[object] = []
        is_streamed = False
        for is_whole, event in client.stream(client.format.write_call(context, model), model, cancel):
            raw.append(event)
            for piece in () if is_whole else client.format.read_event(event):
                is_streamed = True
                yield piece
            if is_whole:
                yield from self._finish(event, is_streamed=False)
                return
        if cancel.is_set:
            return
        yield from self._finish(raw, is_streamed=is_streamed)

    def _finish(self, raw: object, *, is_streamed: bool) -> Iterator[ProviderEvent]:
        reply = self._read_reply(raw)
        if not is_streamed and (text := "\n".join(message.content for message in reply.messages)):
            yield TextDelta(text)
        for message in reply.messages:
            yield from map(ProviderToolCall, message.tool_calls)
        if reply.usage is not None:
            yield ProviderUsage(reply.usage)
        yield ProviderReply(reply, raw)

    def _read_reply(self, raw: object) -> Reply:
        try:
            reply = get_dialect(self.client.endpoint.api).read_reply(raw)
        except MessageError as error:
            raise self.client.error(f"sent something that is no reply: {error.what}", hint=RESEND_HINT) from None
        if reply.stop in ("broken", "error"):
            what = "cut the stream before its end" if reply.stop == "broken" else f"failed: {reply.stop_reason}"
            raise self.client.error(what, hint=RESEND_HINT)
        return reply
