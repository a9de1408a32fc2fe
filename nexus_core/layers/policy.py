"""The policy for project settings: user-only, tighten-only, and after approval.

Some settings only the user may set, whatever a project says: where credentials, prompts and conversations go. A project
may only tighten permissions. A setting that starts a program or opens a connection waits for the user's approval.
"""

from __future__ import annotations

from dataclasses import replace
from shlex import quote
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.config.load import MAX_ANCESTOR_DEPTH
from nexus_core.config.merge import REMOVE_KEY, REPLACE_KEY, is_list_edit
from nexus_core.config.pointers import (
    SERVERS,
    copy_settings,
    dotted_to_pointer,
    filter_present_names,
    get_setting,
    has_setting,
    pointer_to,
    pop_setting,
)
from nexus_core.errors import ConfigError
from nexus_core.text.safety import one_line
from nexus_core.types.plugins import Finding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from nexus_core.host.manager import Host
    from nexus_core.types.layers import LayerConfig
    from nexus_core.types.mcp import ActiveSetting, TrustDecision
    from nexus_core.types.settings import Settings

PERMISSION_LEVELS = ("yolo", "trusted", "sandboxed")
"""Permission levels from the loosest to the tightest."""

USER_ONLY_SETTINGS = (
    "compaction.redact_secrets",
    "compaction.summary_marker",
    "compaction.summary_role",
    "home",
    "ledger",
    "memory",
    "merging",
    "plugins.disabled",
    "provider.api_key_env",
    "provider.base_url",
    "provider.options",
    "telemetry",
    "trust",
)
"""Settings that a project never decides, trusted or not, in addition to those that plugins declare."""

ALLOWED_TOOLS_SETTING, DENIED_TOOLS_SETTING = "permissions.tools.allow", "permissions.tools.deny"
"""Settings that a project may only shrink, and may only extend."""

ANCESTOR_DEPTH_SETTING = "context.ancestor_depth"
"""A setting that a project decides for itself, but not for directories below it."""

APPROVAL_SETTINGS = ("compaction.command", "compaction.summarizers")
"""Settings that need approval in a project, in addition to MCP servers and those that plugins declare."""


_MODELS, _ALIAS = "models", "id"
"""A project may set the window of a model, but not that its name is an alias of another model."""

SETTINGS_WITHOUT_PLUGIN_MERGE = (*USER_ONLY_SETTINGS, *APPROVAL_SETTINGS, "permissions", SERVERS, _MODELS)
"""Settings for which no third-party plugin may have a merge policy, so that none can loosen the policy."""

WAITING_REASONS: Mapping[str, str] = {
    "pending": "you have not approved it",
    "changed": "it has changed since you approved it",
}
"""Why an active setting has no effect, by the user's decision about it."""

MAX_QUOTED_CHARACTERS = 60  # characters of a tool's name that a message repeats

_SERVERS_POINTER = dotted_to_pointer(SERVERS)


def inherit_permissions(own: Settings, inherited: Iterable[Settings]) -> Settings:
    """Return the settings of a subagent with permissions that exceed those of none of its parents' directories.

    The tightest level applies, every denied tool is denied, and only tools that are allowed everywhere are allowed.
    The same object is returned if nothing is tighter.
    """
    level = str(own.get("permissions.level", PERMISSION_LEVELS[1]))
    allowed, denied = own.get(ALLOWED_TOOLS_SETTING), own.get(DENIED_TOOLS_SETTING)
    before = level, allowed, denied
    for each in inherited:
        level = tightest_level(level, str(each.get("permissions.level", PERMISSION_LEVELS[1])))
        if isinstance(more := each.get(DENIED_TOOLS_SETTING), list):
            denied = [*denied, *(name for name in more if name not in denied)] if isinstance(denied, list) else more
        if isinstance(only := each.get(ALLOWED_TOOLS_SETTING), list):
            allowed = [name for name in allowed if name in only] if isinstance(allowed, list) else only
    if (level, allowed, denied) == before:
        return own
    given = own.get("permissions")
    permissions: dict[str, Any] = {**given} if isinstance(given, dict) else {}
    lists = {"allow": allowed, "deny": denied}
    tools = {name: value for name, value in lists.items() if value is not None}
    permissions |= {"level": level} | ({"tools": tools} if tools else {})
    return replace(own, value={**own.value, "permissions": permissions})


def tightest_level(*levels: str) -> str:
    """Return the tightest of permission levels."""
    return max(levels, key=PERMISSION_LEVELS.index)


def is_user_only(name: str, further: Iterable[str] = ()) -> bool:
    """Return True if no project may set a setting, by its dotted name. `further` are the settings of plugins."""
    is_alias = name.startswith(f"{_MODELS}.") and name.endswith(f".{_ALIAS}")
    return is_alias or any(f"{name}.".startswith(f"{each}.") for each in (*USER_ONLY_SETTINGS, *further))


class PolicyResult(NamedTuple):
    """Settings that may be merged, findings about removed ones, and active settings with the user's decisions."""

    configs: list[LayerConfig]
    findings: list[Finding]
    active: list[ActiveSetting]


def list_plugin_guarded_settings(host: Host) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Return the settings of plugins under the policy: active, protected, and off-only."""
    return host.active_settings(), host.protected_settings(), host.off_only_settings()


def enforce_policy(
    configs: Iterable[LayerConfig],
    decide: Callable[[ActiveSetting], TrustDecision],
    active: Sequence[str] = (),
    protected: Sequence[str] = (),
    off_only: Sequence[str] = (),
) -> PolicyResult:
    """Remove from every project's settings what it may not decide, or may not decide yet.

    Args:
        configs: In order of precedence, the most local last.
        decide: Returns the user's decision about an active setting.
        active: Further settings, as dotted names, that take effect only after approval.
        protected: Further settings, as dotted names, that only the user may set.
        off_only: Switches, as dotted names, that a project may only turn off.
    """
    guard = _PolicyEnforcer(decide, (*APPROVAL_SETTINGS, *active), (*USER_ONLY_SETTINGS, *protected), off_only)
    guarded = [guard.check(config) for config in configs]
    return PolicyResult(guarded, guard.findings, guard.parts)


class _PolicyEnforcer:
    def __init__(
        self,
        decide: Callable[[ActiveSetting], TrustDecision],
        active: Sequence[str],
        protected: Sequence[str],
        off_only: Sequence[str],
    ) -> None:
        self._decide = decide
        self._active = active
        self._protected = protected
        self._off_only = off_only
        self._level = PERMISSION_LEVELS[1]
        self._allowed: list[str] | None = None
        self._servers: frozenset[str] = frozenset()  # defined by earlier configs
        self.findings: list[Finding] = []
        self.parts: list[ActiveSetting] = []

    def check(self, config: LayerConfig) -> LayerConfig:
        if config.layer is not None and config.layer.is_own:
            self._remember(config)
            return config
        settings = copy_settings(config.settings)
        for dotted in filter_present_names(settings, self._protected):
            if pop_setting(settings, dotted):
                self._find(
                    config,
                    dotted,
                    "protected-setting",
                    f"{dotted} can only be set in your own config, not by a project",
                )
        self._keep_off(config, settings)
        self._take_aliases(config, settings)
        if (
            config.layer is not None
            and config.layer.scope == "ancestor"
            and _is_depth(get_setting(settings, ANCESTOR_DEPTH_SETTING))
        ):
            pop_setting(settings, ANCESTOR_DEPTH_SETTING)
        self._tighten(config, settings)
        self._judge_settings(config, settings)
        kept = self._judge_servers(config, settings)
        if settings == config.settings:
            return config
        return replace(
            config,
            settings=settings,
            position=_renumber_positions(config, kept),
            content=config.settings if config.content is None else config.content,
        )

    def _take_aliases(self, config: LayerConfig, settings: dict[str, Any]) -> None:
        """Remove aliases, by which a project would decide which model a name of the user's refers to."""
        models = settings.get(_MODELS)
        for name, model in models.items() if isinstance(models, dict) else ():
            if isinstance(model, dict) and model.pop(_ALIAS, None) is not None:
                message = f"{_MODELS}.{name}.{_ALIAS} can only be set in your own config, not by a project"
                place = pointer_to(pointer_to(dotted_to_pointer(_MODELS), name), _ALIAS)
                self._find(config, place, "protected-setting", message)

    def _remember(self, config: LayerConfig) -> None:
        self._servers |= _list_server_names(config.settings.get(SERVERS))
        self._level = _get_known_level(get_setting(config.settings, "permissions.level"), self._level)
        allowed = get_setting(config.settings, ALLOWED_TOOLS_SETTING)
        if isinstance(allowed, list):
            self._allowed = [*(self._allowed or ()), *allowed]  # as merging joins lists
        elif is_list_edit(allowed):
            self._allowed = _apply_list_edit(self._allowed, allowed)

    def _keep_off(self, config: LayerConfig, settings: dict[str, Any]) -> None:
        """Remove a project's values of off-only switches that are not False."""
        for dotted in filter_present_names(settings, self._off_only):
            if get_setting(settings, dotted) is not False and pop_setting(settings, dotted):
                message = f"{dotted} can only be set to false by a project, not to anything else"
                self._find(config, dotted, "looser-permission", message)

    def _tighten(self, config: LayerConfig, settings: dict[str, Any]) -> None:
        if "permissions" not in settings:
            return
        level = _get_known_level(get_setting(settings, "permissions.level"), self._level)
        if PERMISSION_LEVELS.index(level) < PERMISSION_LEVELS.index(self._level):
            pop_setting(settings, "permissions.level")
            message = f"permissions.level {level!r} is looser than {self._level!r}; a project may only tighten it"
            self._find(config, "permissions.level", "looser-permission", message)
        else:
            self._level = level
        if isinstance(get_setting(settings, DENIED_TOOLS_SETTING), dict):  # $replace or $remove
            pop_setting(settings, DENIED_TOOLS_SETTING)
            self._find(
                config, DENIED_TOOLS_SETTING, "looser-permission", f"{DENIED_TOOLS_SETTING} may only grow in a project"
            )
        if has_setting(settings, ALLOWED_TOOLS_SETTING):
            self._narrow(config, settings)

    def _narrow(self, config: LayerConfig, settings: dict[str, Any]) -> None:
        """Keep only those of the tools that a project allows that were allowed before."""
        allowed = get_setting(settings, ALLOWED_TOOLS_SETTING)
        if allowed is None:  # it means all of them
            pop_setting(settings, ALLOWED_TOOLS_SETTING)
            if self._allowed is not None:
                self._find(
                    config,
                    ALLOWED_TOOLS_SETTING,
                    "looser-permission",
                    f"{ALLOWED_TOOLS_SETTING} may only shrink in a project",
                )
            return
        if not isinstance(allowed, list) and not is_list_edit(allowed):
            return  # validation reports it
        wanted = allowed if isinstance(allowed, list) else _apply_list_edit(self._allowed, allowed)
        if self._allowed is not None:
            inherited = _collect_names(self._allowed)
            added = [tool for tool in wanted if not _collect_names([tool]) & inherited]
            wanted = [tool for tool in wanted if _collect_names([tool]) & inherited]
            if added:
                first = repr(added[0])[:MAX_QUOTED_CHARACTERS]
                message = f"{ALLOWED_TOOLS_SETTING} may only shrink in a project, and {first} is new"
                self._find(config, ALLOWED_TOOLS_SETTING, "looser-permission", message)
        self._allowed = wanted
        settings["permissions"]["tools"]["allow"] = {REPLACE_KEY: wanted}

    def _judge_settings(self, config: LayerConfig, settings: dict[str, Any]) -> None:
        """Record the active settings of a project, and remove those that are not allowed."""
        for dotted in filter_present_names(settings, self._active):
            value = get_setting(settings, dotted)
            if value is None:
                continue
            from nexus_core.trust.fingerprint import build_setting_content, describe_setting

            pointer = dotted_to_pointer(dotted)
            content = build_setting_content(pointer, value, root=_get_project_root(config))
            part = self._judge(config, pointer, pointer, content, describe_setting(dotted, value))
            if part.decision != "allowed":
                pop_setting(settings, dotted)

    def _judge_servers(self, config: LayerConfig, settings: dict[str, Any]) -> list[int]:
        """Record the servers of a project, and return the indexes of those that stay.

        A server that the user has denied yields to one of that name in another file, or else is shown as denied.
        """
        servers = settings.get(SERVERS, [])
        if not isinstance(servers, list):  # $replace, $remove: a project must not change the servers of others
            del settings[SERVERS]
            self._find(config, SERVERS, "protected-setting", f"a project may only add {SERVERS}")
            return []
        if not servers:
            return []
        from nexus_core.trust.fingerprint import build_server_content, describe_server

        names: set[str] = set()
        kept = []
        for index, server in enumerate(servers):
            if not isinstance(server, dict) or not isinstance(server.get("name"), str):
                kept.append(index)
                continue
            name, place = pointer_to(_SERVERS_POINTER, server["name"]), pointer_to(_SERVERS_POINTER, index)
            if server["name"] in names:  # one approval could otherwise apply to both
                line, _ = config.position(place)
                raise ConfigError(f"two servers are called {server['name']!r}", where=f"{config.path}:{line}")
            names.add(server["name"])
            part = self._judge(
                config, name, place, build_server_content(server, _get_project_root(config)), describe_server(server)
            )
            if part.decision != "denied" or server["name"] not in self._servers:
                kept.append(index)
        settings[SERVERS] = [servers[index] for index in kept]
        self._servers |= names
        return kept

    def _judge(self, config: LayerConfig, pointer: str, place: str, content: str, summary: str) -> ActiveSetting:
        """Record an active setting with the user's decision. `place` is its JSON pointer in the file."""
        from nexus_core.types.mcp import ActiveSetting

        part = ActiveSetting(
            path=config.path.resolve(),
            layer=config.layer.name if config.layer else "",
            pointer=pointer,
            line=config.position(place)[0],
            summary=summary,
            content=content,
        )
        part = replace(part, decision=self._decide(part))
        self.parts.append(part)
        if part.decision in WAITING_REASONS:
            self.findings += _find_unapproved(part)
        return part

    def _find(self, config: LayerConfig, dotted: str, code: str, message: str) -> None:
        line, column = config.position(dotted if dotted.startswith("/") else dotted_to_pointer(dotted))
        self.findings.append(Finding(code, f"{message}; it is ignored", config.path, line, column))


def _find_unapproved(part: ActiveSetting) -> list[Finding]:
    """Return a finding for a setting that would take effect if approved, or none for a disabled server."""
    from nexus_core.trust.fingerprint import name_effect
    from nexus_core.trust.report import is_waiting, summarize_setting

    if not is_waiting(part):
        return []
    would = f"would {name_effect(part.content)} {summarize_setting(part)}"
    command = f"nexus trust allow {quote(one_line(part.pointer))}"
    message = f"{would}; {WAITING_REASONS[part.decision]}, so it does not take effect; `{command}` approves it"
    return [Finding("unapproved", message, part.path, part.line)]


def _list_server_names(servers: Any) -> frozenset[str]:  # noqa: ANN401 - any JSON value
    servers = servers.get(REPLACE_KEY) if is_list_edit(servers) else servers
    named = (each.get("name") for each in (servers if isinstance(servers, list) else ()) if isinstance(each, dict))
    return frozenset(name for name in named if isinstance(name, str))


def _renumber_positions(config: LayerConfig, kept: Sequence[int]) -> Callable[[str], tuple[int, int]]:
    """Return the position function of a file after some of its servers were removed."""

    def position(pointer: str) -> tuple[int, int]:
        index, slash, rest = pointer.removeprefix(f"{_SERVERS_POINTER}/").partition("/")
        if index != pointer and index.isdecimal() and int(index) < len(kept):
            pointer = f"{pointer_to(_SERVERS_POINTER, kept[int(index)])}{slash}{rest}"
        return config.position(pointer)

    return position


def _apply_list_edit(inherited: list[Any] | None, edit: dict[str, list[Any]]) -> list[Any]:
    """Apply `$replace` or `$remove` to a list."""
    if REPLACE_KEY in edit:
        return edit[REPLACE_KEY]
    unwanted = _collect_names(edit[REMOVE_KEY])
    return [item for item in inherited or () if not _collect_names([item]) & unwanted]


def _collect_names(items: list[Any]) -> frozenset[str]:
    """Return the strings in a list: nothing else can be the name of a tool."""
    return frozenset(item for item in items if isinstance(item, str))


def _get_project_root(config: LayerConfig) -> Path:
    return config.layer.project if config.layer else config.path.parent


def _is_depth(value: object) -> bool:
    """Return True if a value is a valid depth. An invalid one stays, so that validation reports it."""
    return type(value) is int and 0 <= value <= MAX_ANCESTOR_DEPTH


def _get_known_level(level: object, otherwise: str) -> str:
    return level if isinstance(level, str) and level in PERMISSION_LEVELS else otherwise
