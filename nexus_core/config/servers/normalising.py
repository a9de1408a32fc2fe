"""The settings of a file with its MCP servers in one form, whatever shape the file has them in."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.config.documents import setting_error
from nexus_core.config.merging import REMOVE, REPLACE, is_edit
from nexus_core.config.pointers import pointer_to
from nexus_core.config.servers import ALIAS, SETTING, has_servers
from nexus_core.config.servers.fields import ShapeError
from nexus_core.config.servers.shapes import read_servers
from nexus_core.values.layer import Skipped

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from nexus_core.config.servers.entry import Note, Server
    from nexus_core.values.layer import LayerConfig

MAX_NOTES = 100
"""How much of what is not used in one file is listed; the rest is counted."""


def normalise_servers(
    configs: Iterable[LayerConfig], skipped: list[Skipped], *, lenient: bool = False
) -> list[LayerConfig]:
    """The same settings with all servers in one form, whatever shape a file has them in.

    Args:
        configs: What the plugins found.
        skipped: Gets what is not used of the servers.
        lenient: Whether a server that cannot be meant is left out rather than refused.

    Raises:
        ConfigError: Something cannot be meant. It names the place, the server and the field, but shows no line of the
            file: any of them may hold a password.
    """
    return [
        _normalise(config, skipped, lenient=lenient) if has_servers(config.settings) else config for config in configs
    ]


def _normalise(config: LayerConfig, skipped: list[Skipped], *, lenient: bool) -> LayerConfig:
    try:
        key = _key(config.settings)
        value, written, notes = _read(config.settings[key], f"/{key}", lenient=lenient)
    except ShapeError as error:
        raise setting_error(
            config.path,
            None,
            config.position(error.pointer),
            title=f"Invalid setting in {config.path}",
            message=error.what,
            closing=f"{error.advice} and try again.",
        ) from None
    skipped += _skips(config, notes)
    others = {name: other for name, other in config.settings.items() if name not in (SETTING, ALIAS)}
    return replace(
        config,
        settings={**others, SETTING: value},
        position=lambda pointer: config.position(written.place_of(pointer)),
        content=config.settings if config.content is None else config.content,
    )


class _Written(NamedTuple):
    """How servers are written: at which JSON pointer, behind which edit (such as `/$replace`), and each of them."""

    pointer: str
    edit: str
    servers: list[Server]

    def place_of(self, pointer: str) -> str:
        """Where that is written which stands at `pointer` in the one form."""
        setting, slash, rest = pointer[1:].partition("/")
        if setting != SETTING:
            return pointer
        index, _, part = rest.removeprefix(self.edit[1:]).removeprefix("/").partition("/")
        if index.isdecimal() and int(index) < len(self.servers):
            return self.servers[int(index)].place_of(part)
        return f"{self.pointer}{slash}{rest}"


def _key(settings: Mapping[str, object]) -> str:
    """Under which of its two names the setting is written; an empty one does not count."""
    present = [key for key in (SETTING, ALIAS) if key in settings]
    filled = [key for key in present if settings[key]]
    if len(filled) > 1:
        raise ShapeError(f"/{ALIAS}", f"{ALIAS!r} and {SETTING!r} mean the same", "Keep one of them")
    return (filled or present)[0]


def _read(value: object, pointer: str, *, lenient: bool) -> tuple[object, _Written, list[Note]]:
    """A value of the setting in the one form, how it is written, and what of it is not used."""
    if isinstance(value, dict) and is_edit(value):
        if REMOVE in value:
            return value, _Written(pointer, f"/{REMOVE}", []), []
        servers, written, notes = _read(value[REPLACE], pointer_to(pointer, REPLACE), lenient=lenient)
        return {REPLACE: servers}, _Written(pointer, f"/{REPLACE}", written.servers), notes
    found = read_servers(value, pointer, lenient=lenient)
    return [server.settings for server in found.servers], _Written(pointer, "", found.servers), found.notes


def _skips(config: LayerConfig, notes: Sequence[Note]) -> Iterator[Skipped]:
    layer, plugin = config.layer.name if config.layer else "", config.source.plugin if config.source else ""
    rest = f"{len(notes) - MAX_NOTES} more from here on"
    for number, note in enumerate(notes[: MAX_NOTES + 1]):
        reason = note.text if number < MAX_NOTES else rest
        line = config.position(note.pointer)[0] or None
        yield Skipped(config.path, reason, layer, plugin, line, is_mistake=note.is_mistake)
