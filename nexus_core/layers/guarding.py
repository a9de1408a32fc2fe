"""Keeps a project's settings within what a project may decide.

Some settings are the user's own whatever a project says: where credentials, prompts and conversations go. Permissions
a project may only tighten. And what starts a program or opens a connection waits until the user has approved it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.config.dotted import copy_settings, get_setting, has_setting, names_within, take_setting
from nexus_core.config.early import MAX_ANCESTOR_DEPTH
from nexus_core.config.merging import REMOVE, REPLACE, is_edit
from nexus_core.config.pointers import pointer_of, pointer_to
from nexus_core.config.servers import SETTING as SERVERS
from nexus_core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from nexus_core.host.host import Host
    from nexus_core.values.finding import Finding
    from nexus_core.values.layer import LayerConfig
    from nexus_core.values.trust import ActivePart, Decision

LEVELS = ("yolo", "trusted", "sandboxed")
"""Permission levels from the loosest to the tightest."""

PROTECTED = (
    "compaction.redact_secrets",
    "compaction.summary_marker",
    "compaction.summary_role",
    "home",
    "ledger",
    "merging",
    "plugins.disabled",
    "provider.api_key_env",
    "provider.base_url",
    "provider.options",
    "telemetry",
    "trust",
)
"""What a project never decides, trusted or not; the settings of plugins come on top."""

ALLOWED, DENIED = "permissions.tools.allow", "permissions.tools.deny"
"""What a project may only shrink, and what it may only add to."""

DEPTH = "context.ancestor_depth"
"""What a project decides for itself, but not for what lies below it."""

ACTIVE = ("compaction.command", "compaction.summarisers")
"""What takes effect in a project only after approval; servers and the settings of plugins come on top."""


_MODELS, _ALIAS = "models", "id"
"""Of a model a project may say how large its window is, but not that its name stands for another one."""

ONLY_BUNDLED_POLICIES = (*PROTECTED, *ACTIVE, "permissions", SERVERS, _MODELS)
"""Settings for which no third-party plugin has a merge policy, so that none can loosen what guards the user."""

WAITING: Mapping[str, str] = {
    "pending": "you have not approved it",
    "changed": "it has changed since you approved it",
}
"""Why an active part has no effect, by the user's decision about it."""

LONGEST_NAME = 60  # characters of a tool's name that a message repeats

_AT_SERVERS = pointer_of(SERVERS)


def is_for_users_only(name: str, further: Iterable[str] = ()) -> bool:
    """True if no project decides a setting, by its dotted name; `further` are the settings of plugins."""
    is_alias = name.startswith(f"{_MODELS}.") and name.endswith(f".{_ALIAS}")
    return is_alias or any(f"{name}.".startswith(f"{each}.") for each in (*PROTECTED, *further))


class Guarded(NamedTuple):
    """Settings that may be merged, what was held back, and the active parts with the user's decisions."""

    configs: list[LayerConfig]
    findings: list[Finding]
    active: list[ActivePart]


def list_plugin_guarded_settings(host: Host) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Return the settings of plugins that the guard watches: active, protected, and those to switch off only."""
    return host.active_settings(), host.protected_settings(), host.off_only_settings()


def guard_configs(
    configs: Iterable[LayerConfig],
    decide: Callable[[ActivePart], Decision],
    active: Sequence[str] = (),
    protected: Sequence[str] = (),
    off_only: Sequence[str] = (),
) -> Guarded:
    """Take out of every project's settings what it may not decide, or may not decide yet.

    Args:
        configs: In order of precedence, the most local last.
        decide: Says what the user has decided about an active part.
        active: Further settings, as dotted names, that take effect only after approval.
        protected: Further settings, as dotted names, that no project decides.
        off_only: Switches, as dotted names, that a project may only turn off.
    """
    guard = _Guard(decide, (*ACTIVE, *active), (*PROTECTED, *protected), off_only)
    guarded = [guard.check(config) for config in configs]
    return Guarded(guarded, guard.findings, guard.parts)


class _Guard:
    def __init__(
        self,
        decide: Callable[[ActivePart], Decision],
        active: Sequence[str],
        protected: Sequence[str],
        off_only: Sequence[str],
    ) -> None:
        self._decide = decide
        self._active = active
        self._protected = protected
        self._off_only = off_only
        self._level = LEVELS[1]
        self._allowed: list[str] | None = None
        self._servers: frozenset[str] = frozenset()  # that are defined already
        self.findings: list[Finding] = []
        self.parts: list[ActivePart] = []

    def check(self, config: LayerConfig) -> LayerConfig:
        if config.layer is not None and config.layer.is_own:
            self._remember(config)
            return config
        settings = copy_settings(config.settings)
        for dotted in names_within(settings, self._protected):
            if take_setting(settings, dotted):
                self._find(
                    config,
                    dotted,
                    "protected-setting",
                    f"{dotted} can only be set in your own config, not by a project",
                )
        self._keep_off(config, settings)
        self._take_aliases(config, settings)
        if config.layer is not None and config.layer.scope == "ancestor" and _is_depth(get_setting(settings, DEPTH)):
            take_setting(settings, DEPTH)
        self._tighten(config, settings)
        self._judge_settings(config, settings)
        kept = self._judge_servers(config, settings)
        if settings == config.settings:
            return config
        return replace(
            config,
            settings=settings,
            position=_renumbered(config, kept),
            content=config.settings if config.content is None else config.content,
        )

    def _take_aliases(self, config: LayerConfig, settings: dict[str, Any]) -> None:
        """Take out what would make a project decide which model the user asks by a name."""
        models = settings.get(_MODELS)
        for name, model in models.items() if isinstance(models, dict) else ():
            if isinstance(model, dict) and model.pop(_ALIAS, None) is not None:
                message = f"{_MODELS}.{name}.{_ALIAS} can only be set in your own config, not by a project"
                place = pointer_to(pointer_to(pointer_of(_MODELS), name), _ALIAS)
                self._find(config, place, "protected-setting", message)

    def _remember(self, config: LayerConfig) -> None:
        self._servers |= _server_names(config.settings.get(SERVERS))
        self._level = _known_level(get_setting(config.settings, "permissions.level"), self._level)
        allowed = get_setting(config.settings, ALLOWED)
        if isinstance(allowed, list):
            self._allowed = [*(self._allowed or ()), *allowed]  # as lists are merged
        elif is_edit(allowed):
            self._allowed = _edited(self._allowed, allowed)

    def _keep_off(self, config: LayerConfig, settings: dict[str, Any]) -> None:
        """Take out of a project's switches all that do not turn something off."""
        for dotted in names_within(settings, self._off_only):
            if get_setting(settings, dotted) is not False and take_setting(settings, dotted):
                message = f"{dotted} can only be set to false by a project, not to anything else"
                self._find(config, dotted, "looser-permission", message)

    def _tighten(self, config: LayerConfig, settings: dict[str, Any]) -> None:
        if "permissions" not in settings:
            return
        level = _known_level(get_setting(settings, "permissions.level"), self._level)
        if LEVELS.index(level) < LEVELS.index(self._level):
            take_setting(settings, "permissions.level")
            message = f"permissions.level {level!r} is looser than {self._level!r}; a project may only tighten it"
            self._find(config, "permissions.level", "looser-permission", message)
        else:
            self._level = level
        if isinstance(get_setting(settings, DENIED), dict):  # $replace or $remove
            take_setting(settings, DENIED)
            self._find(config, DENIED, "looser-permission", f"{DENIED} may only grow in a project")
        if has_setting(settings, ALLOWED):
            self._narrow(config, settings)

    def _narrow(self, config: LayerConfig, settings: dict[str, Any]) -> None:
        """Keep of the tools that a project allows those that were allowed before."""
        allowed = get_setting(settings, ALLOWED)
        if allowed is None:  # it means all of them
            take_setting(settings, ALLOWED)
            if self._allowed is not None:
                self._find(config, ALLOWED, "looser-permission", f"{ALLOWED} may only shrink in a project")
            return
        if not isinstance(allowed, list) and not is_edit(allowed):
            return  # to be found when settings are checked
        wanted = allowed if isinstance(allowed, list) else _edited(self._allowed, allowed)
        if self._allowed is not None:
            inherited = _names(self._allowed)
            added = [tool for tool in wanted if not _names([tool]) & inherited]
            wanted = [tool for tool in wanted if _names([tool]) & inherited]
            if added:
                first = repr(added[0])[:LONGEST_NAME]
                message = f"{ALLOWED} may only shrink in a project, and {first} is new"
                self._find(config, ALLOWED, "looser-permission", message)
        self._allowed = wanted
        settings["permissions"]["tools"]["allow"] = {REPLACE: wanted}

    def _judge_settings(self, config: LayerConfig, settings: dict[str, Any]) -> None:
        """Record the active settings of a project, and take out those that are not allowed."""
        for dotted in names_within(settings, self._active):
            value = get_setting(settings, dotted)
            if value is None:
                continue
            from nexus_core.trust.fingerprint import describe_setting, setting_content  # noqa: PLC0415 - seldom there

            pointer = pointer_of(dotted)
            content = setting_content(pointer, value, root=_root(config))
            part = self._judge(config, pointer, pointer, content, describe_setting(dotted, value))
            if part.decision != "allowed":
                take_setting(settings, dotted)

    def _judge_servers(self, config: LayerConfig, settings: dict[str, Any]) -> list[int]:
        """Record the servers of a project, and say which of them stay.

        One that the user has denied gives way to that of another file; if there is none, it is shown as denied.
        """
        servers = settings.get(SERVERS, [])
        if not isinstance(servers, list):  # $replace, $remove: the servers of others are not a project's to change
            del settings[SERVERS]
            self._find(config, SERVERS, "protected-setting", f"a project may only add {SERVERS}")
            return []
        if not servers:
            return []
        from nexus_core.trust.fingerprint import describe_server, server_content  # noqa: PLC0415 - as above

        names: set[str] = set()
        kept = []
        for index, server in enumerate(servers):
            if not isinstance(server, dict) or not isinstance(server.get("name"), str):
                kept.append(index)
                continue
            name, place = pointer_to(_AT_SERVERS, server["name"]), pointer_to(_AT_SERVERS, index)
            if server["name"] in names:  # one approval could otherwise be taken for two
                line, _ = config.position(place)
                raise ConfigError(f"two servers are called {server['name']!r}", where=f"{config.path}:{line}")
            names.add(server["name"])
            part = self._judge(config, name, place, server_content(server, _root(config)), describe_server(server))
            if part.decision != "denied" or server["name"] not in self._servers:
                kept.append(index)
        settings[SERVERS] = [servers[index] for index in kept]
        self._servers |= names
        return kept

    def _judge(self, config: LayerConfig, pointer: str, place: str, content: str, summary: str) -> ActivePart:
        """Record an active part with the user's decision; `place` is where it stands in the file."""
        from nexus_core.values.trust import ActivePart  # noqa: PLC0415 - as above

        part = ActivePart(
            path=config.path.resolve(),
            layer=config.layer.name if config.layer else "",
            pointer=pointer,
            line=config.position(place)[0],
            summary=summary,
            content=content,
        )
        part = replace(part, decision=self._decide(part))
        self.parts.append(part)
        if part.decision in WAITING:
            self.findings += _find_waiting(part)
        return part

    def _find(self, config: LayerConfig, dotted: str, code: str, message: str) -> None:
        from nexus_core.values.finding import Finding  # noqa: PLC0415 - as above

        line, column = config.position(dotted if dotted.startswith("/") else pointer_of(dotted))
        self.findings.append(Finding(code, f"{message}; it is ignored", config.path, line, column))


def _find_waiting(part: ActivePart) -> list[Finding]:
    """Return a finding for a part that would take effect if the user approved it; none for a server that is off."""
    from shlex import quote  # noqa: PLC0415 - as above

    from nexus_core.trust.fingerprint import effect, one_line  # noqa: PLC0415 - as above
    from nexus_core.trust.mentioning import is_waiting, mention  # noqa: PLC0415 - as above
    from nexus_core.values.finding import Finding  # noqa: PLC0415 - as above

    if not is_waiting(part):
        return []
    would = f"would {effect(part.content)} {mention(part)}"
    command = f"nexus trust allow {quote(one_line(part.pointer))}"
    message = f"{would}; {WAITING[part.decision]}, so it does not take effect; `{command}` approves it"
    return [Finding("unapproved", message, part.path, part.line)]


def _server_names(servers: Any) -> frozenset[str]:  # noqa: ANN401 - any JSON value
    servers = servers.get(REPLACE) if is_edit(servers) else servers
    named = (each.get("name") for each in (servers if isinstance(servers, list) else ()) if isinstance(each, dict))
    return frozenset(name for name in named if isinstance(name, str))


def _renumbered(config: LayerConfig, kept: Sequence[int]) -> Callable[[str], tuple[int, int]]:
    """Where things stand in a file of whose servers only some are left."""

    def position(pointer: str) -> tuple[int, int]:
        index, slash, rest = pointer.removeprefix(f"{_AT_SERVERS}/").partition("/")
        if index != pointer and index.isdecimal() and int(index) < len(kept):
            pointer = f"{pointer_to(_AT_SERVERS, kept[int(index)])}{slash}{rest}"
        return config.position(pointer)

    return position


def _edited(inherited: list[Any] | None, edit: dict[str, list[Any]]) -> list[Any]:
    """What `$replace` or `$remove` makes of a list."""
    if REPLACE in edit:
        return edit[REPLACE]
    unwanted = _names(edit[REMOVE])
    return [item for item in inherited or () if not _names([item]) & unwanted]


def _names(items: list[Any]) -> frozenset[str]:
    """The words in a list, for comparing: nothing else can be the name of a tool."""
    return frozenset(item for item in items if isinstance(item, str))


def _root(config: LayerConfig) -> Path:
    return config.layer.project if config.layer else config.path.parent


def _is_depth(value: object) -> bool:
    """Whether a value is a depth; one that is not stays, to be found when settings are checked."""
    return type(value) is int and 0 <= value <= MAX_ANCESTOR_DEPTH


def _known_level(level: object, otherwise: str) -> str:
    return level if isinstance(level, str) and level in LEVELS else otherwise
