"""Provider `bedrock`: streams replies of Converse through boto3, which finds credentials and region by itself."""

from __future__ import annotations

import os
import re
from threading import Lock
from typing import TYPE_CHECKING, Any

from nexus_core import MessageError, MissingExtraError, ProviderError, get_dialect
from nexus_core.plugin import (
    Extra,
    Provider,
    ProviderReply,
    ProviderToolCall,
    ProviderUsage,
    ReasoningDelta,
    TextDelta,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nexus_core import AssembledContext
    from nexus_core.plugin import CancelSignal, LoadedLayers, ProviderEvent

NEEDS_BOTO = Extra("bedrock", modules=("boto3",))
SILENCE_SECONDS = 300.0
"""Models that reason may be silent for minutes before the first piece of a reply."""
CONNECT_SECONDS = 10.0
MAX_ATTEMPTS = 3
"""Requests of one call: boto3 repeats those that were throttled or failed on the server's side, with growing waits."""
RESEND_HINT = "resume() sends the call again"
_HINTS = {
    "AccessDeniedException": "the credentials do not allow this model; enable it in the Bedrock console",
    "UnrecognizedClientException": "the credentials are wrong; `aws sts get-caller-identity` shows which are used",
    "ExpiredTokenException": "the credentials have expired; log in again",
    "ResourceNotFoundException": "set provider.model to a model or inference profile of this region",
    "ValidationException": "the model may not exist in this region, or not accept this request",
}
_SECRET_MEMBERS = re.compile(r"(?i)(Credential=|Signature=)[^,\s]+")


def build_provider(loaded: LoadedLayers) -> Provider:
    """Return the provider `bedrock`. Loads nothing and connects to nothing yet."""
    base_url = loaded.settings.get("provider.base_url")
    is_meant = loaded.settings.get("provider.provider") == "bedrock"
    return Provider(
        name="bedrock", stream=BedrockProvider(base_url if is_meant and isinstance(base_url, str) else None)
    )


class BedrockProvider:
    """Streams the reply of Converse to an assembled call. One client serves all calls and threads.

    Args:
        base_url: Another address of the API; None for that of the region.
    """

    def __init__(self, base_url: str | None = None) -> None:
        self._base_url = base_url
        self._client: Any = None
        self._lock = Lock()

    def __call__(self, context: AssembledContext, cancel: CancelSignal) -> Iterator[ProviderEvent]:
        """Yield the events of the reply.

        Raises:
            ProviderError: There is no reply.
            MissingExtraError: boto3 is not installed.
        """
        if not context.model:
            raise ProviderError("bedrock does not know which model to ask", hint="set provider.model, or pass model=…")
        client = self._open_client()
        from botocore.exceptions import BotoCoreError, ClientError  # type: ignore[import-untyped]

        raw: list[dict[str, Any]] = []
        try:
            stream = client.converse_stream(**context.to("bedrock"))["stream"]
            cancel.on_cancel(stream.close)
            try:
                for event in stream:
                    raw.append(event)
                    yield from _read_pieces(event)
            finally:
                cancel.forget(stream.close)
                stream.close()
        except ClientError as error:
            raise _build_client_error(error) from None
        except BotoCoreError as error:
            raise ProviderError(f"bedrock could not be asked: {_describe(error)}", hint=_hint_for(error)) from None
        except Exception as error:  # noqa: BLE001 - urllib3 and the parser of events raise many kinds
            if cancel.is_set:  # the stream was closed while it was read
                return
            raise ProviderError(f"bedrock cut the stream: {_describe(error)}", hint=RESEND_HINT) from None
        if not cancel.is_set:
            yield from _finish(raw)

    def _open_client(self) -> Any:  # noqa: ANN401 - a class that boto3 makes
        with self._lock:
            if self._client is None:
                try:
                    import boto3  # type: ignore[import-untyped]
                    from botocore.config import Config  # type: ignore[import-untyped]
                    from botocore.exceptions import BotoCoreError
                except ImportError:
                    raise MissingExtraError("bedrock", NEEDS_BOTO) from None
                config = Config(
                    connect_timeout=CONNECT_SECONDS,
                    read_timeout=SILENCE_SECONDS,
                    retries={"total_max_attempts": MAX_ATTEMPTS, "mode": "standard"},
                )
                try:
                    # boto3 itself reads AWS_DEFAULT_REGION and its own files; other SDKs of AWS read AWS_REGION.
                    region = os.environ.get("AWS_REGION") or None
                    session = boto3.Session(region_name=region)  # the default one keeps its first credentials
                    self._client = session.client("bedrock-runtime", endpoint_url=self._base_url, config=config)
                except (BotoCoreError, ValueError) as error:
                    raise ProviderError(
                        f"bedrock could not be asked: {_describe(error)}", hint=_hint_for(error)
                    ) from None
            return self._client


def _read_pieces(event: dict[str, Any]) -> Iterator[ProviderEvent]:
    delta = event.get("contentBlockDelta", {}).get("delta", {})
    if text := delta.get("text"):
        yield TextDelta(text)
    if thought := delta.get("reasoningContent", {}).get("text"):
        yield ReasoningDelta(thought)


def _finish(raw: list[dict[str, Any]]) -> Iterator[ProviderEvent]:
    try:
        reply = get_dialect("bedrock").read_reply(raw)
    except MessageError as error:
        raise ProviderError(f"bedrock sent something that is no reply: {error.what}", hint=RESEND_HINT) from None
    if reply.stop in ("broken", "error"):
        what = "cut the stream before its end" if reply.stop == "broken" else f"failed: {reply.stop_reason}"
        raise ProviderError(f"bedrock {what}", hint=RESEND_HINT)
    for message in reply.messages:
        yield from map(ProviderToolCall, message.tool_calls)
    if reply.usage is not None:
        yield ProviderUsage(reply.usage)
    yield ProviderReply(reply, raw)


def _build_client_error(error: Any) -> ProviderError:  # noqa: ANN401 - a botocore.exceptions.ClientError
    """Return the error for an answer that reports one: before the stream, or in the middle of it."""
    found, metadata = error.response.get("Error", {}), error.response.get("ResponseMetadata", {})
    code, said = str(found.get("Code", "")), _mask(str(found.get("Message", "")))
    return ProviderError(
        f"bedrock answered {code}{f': {said}' if said else ''}",
        hint=_HINTS.get(code, RESEND_HINT),
        status=metadata.get("HTTPStatusCode"),
        attempts=metadata.get("RetryAttempts", 0) + 1,
        said=said,
    )


def _hint_for(error: Exception) -> str:
    name = type(error).__name__
    if "Credentials" in name:
        return "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE; `aws configure` stores them"
    if "Region" in name:
        return "set AWS_REGION"
    return RESEND_HINT


def _describe(error: Exception) -> str:
    return _mask(f"{type(error).__name__}: {error}")


def _mask(text: str) -> str:
    """Return a text without parts of a signed request, which some proxies send back."""
    return _SECRET_MEMBERS.sub(r"\1…", text)
