"""SessionLogger: a Markdown transcript of an agent and its raw model calls, in files beside the ledger."""

from __future__ import annotations

import json
import logging
import os
import re
from contextlib import suppress
from datetime import UTC, datetime
from threading import Lock
from typing import TYPE_CHECKING, Any

from nexus_core.dialects.fields import read_path
from nexus_core.errors import NexusError, UsageError
from nexus_core.text.safety import repair_surrogates
from nexus_core.types.base import blake2b
from nexus_core.types.providers import ProviderReply

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from nexus_core.types.assembled import AssembledContext
    from nexus_core.types.messages import Message

TRANSCRIPT_FILE, CALLS_FILE = "transcript.md", "calls.jsonl"
MAX_FILE_NAME_BYTES = 100
"""Bytes of the directory's name that come from the agent's id; file systems allow 255."""
_UNSAFE = re.compile(r"[^\w.-]+")
_FENCE = re.compile(r"^`{3,}", re.MULTILINE)
_LOG = logging.getLogger("nexus_core")


class SessionLogger:
    """A log of one agent: `transcript.md` for people, `calls.jsonl` with each request and response as JSON.

    A `ContextManager` takes it as `logger=`, and a pool with `base_log_dir` makes one for each agent. Files are made
    when something is logged, readable by their owner only, and are appended to. They contain what was said, with any
    secrets in it, but no API keys. A log that cannot be written is reported once and never stops an agent.

    Args:
        directory: The directory of all logs.
        name: The agent's id, which names a directory in it; "" for `directory` itself.
    """

    def __init__(self, directory: str | os.PathLike[str], name: str = "") -> None:
        from pathlib import Path

        base = Path(read_path(directory, "directory"))
        if base.exists() and not base.is_dir():
            raise UsageError(f"{base} is not a directory", hint="logs go into a directory of their own")
        self.directory: Path = base / _build_directory_name(name) if name else base
        self._system = ""
        self._lock = Lock()
        self._is_reported = False

    def log_system(self, prompt: str) -> None:
        """Log the system prompt, unless it is the one that was logged last."""
        with self._lock:
            is_known, self._system = prompt == self._system, prompt
        if not is_known:
            self._write(TRANSCRIPT_FILE, f"## System prompt ({_write_time()})\n\n{_quote(prompt)}\n\n")

    def log_message(self, message: Message) -> None:
        """Log a message."""
        heading = {"user": "User", "assistant": "Assistant", "tool": "Tool result"}.get(message.role, message.role)
        body = "\n\n".join(_outline_parts(message))
        self._write(TRANSCRIPT_FILE, f"## {heading} ({_write_time()})\n\n{body}\n\n")

    def log_call(self, context: AssembledContext, outcome: ProviderReply | BaseException) -> None:
        """Log a model call: the request in the neutral format, and the response as the API sent it, or the error."""
        request: object = None
        with suppress(NexusError):
            request = context.to("neutral", cache=False)
        entry: dict[str, Any] = {
            "time": _write_time(),
            "session": context.session_label,
            "turn": context.turn_id,
            "model": context.model,
            "provider": context.provider,
            "request": request,
        }
        if isinstance(outcome, ProviderReply):
            entry["response"] = outcome.raw
        else:
            entry["error"] = f"{type(outcome).__name__}: {outcome}"
        self._write(CALLS_FILE, json.dumps(entry, ensure_ascii=False, default=repr) + "\n")

    def _write(self, name: str, text: str) -> None:
        data = repair_surrogates(text).encode("utf-8", "replace")
        with self._lock:
            try:
                self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
                flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
                file = os.open(self.directory / name, flags, 0o600)
                try:
                    os.write(file, data)
                finally:
                    os.close(file)
            except OSError as error:
                if not self._is_reported:
                    _LOG.warning("the log %s cannot be written: %s", self.directory / name, error)
                self._is_reported = True


def _build_directory_name(name: str) -> str:
    """Return a name for a directory: the id where a file system allows it, else a readable part and a digest."""
    safe = _UNSAFE.sub("_", name).strip(".") or "agent"
    short = safe.encode()[:MAX_FILE_NAME_BYTES].decode(errors="ignore")
    return name if short == name else f"{short}-{blake2b(name.encode(), digest_size=4).hexdigest()}"


def _write_time() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _outline_parts(message: Message) -> Iterator[str]:
    if message.content:
        yield message.content if message.role != "tool" else _quote(message.content)
    for call in message.tool_calls:
        arguments = json.dumps(call.arguments, ensure_ascii=False, indent=2, default=repr)
        yield f"**{call.name}** `{call.id}`\n\n{_quote(arguments, 'json')}"
    for result in message.tool_results:
        yield f"**{result.name}** `{result.call_id}`{' failed' if result.is_error else ''}\n\n{_quote(result.text)}"


def _quote(text: str, language: str = "") -> str:
    """Return a fenced block that the text cannot close."""
    longest = max((len(each) for each in _FENCE.findall(text)), default=2)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"
