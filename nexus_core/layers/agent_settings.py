"""Settings of other agents that decide which instruction files they read."""

from __future__ import annotations

import json
import os
import re
import tomllib
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from nexus_core.config.load import read_layer_json, read_layer_text
from nexus_core.errors import NexusError
from nexus_core.files.places import find_workspace, user_home
from nexus_core.files.read import REASON_MISSING, LayerReader
from nexus_core.types.base import dataclass
from nexus_core.types.layers import Layer, SkippedFile
from nexus_core.types.plugins import Finding

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MAX_CODEX_BYTES = 32 * 1024
PROJECT_MARKERS: tuple[str, ...] = (".git",)
GEMINI_FILE = "GEMINI.md"

InstructionFilesMode = Literal["claude-md-or-agents-md", "claude-md-and-agents-md", "claude-md", "managed-only"]
"""Claude Code's setting of that name: whether it reads CLAUDE.md, AGENTS.md, both, or neither."""

_DIRECTORY_VARIABLES = ("COPILOT_HOME", "GOOSE_PATH_ROOT", "OPENCODE_CONFIG", "OPENCODE_CONFIG_DIR", "XDG_CONFIG_HOME")
AGENT_VARIABLES = (
    *_DIRECTORY_VARIABLES,
    "CONTEXT_FILE_NAMES",
    "COPILOT_CUSTOM_INSTRUCTIONS_DIRS",
    "OPENCODE_DISABLE_CLAUDE_CODE",
    "OPENCODE_DISABLE_CLAUDE_CODE_PROMPT",
)
"""Environment variables by which Copilot, opencode and goose find instruction files."""
GOOSE_FILES = (".goosehints", "AGENTS.md")
OPENCODE_CONFIGS = ("opencode.json", "opencode.jsonc")

_MAX_NAMES = 100  # file names or patterns in one setting; each is searched in every directory
_AGENTS_PLUGIN = "agents-md@builtin"


@dataclass(frozen=True, slots=True)
class AgentHomes:
    """The directories of a user's other agents.

    Attributes:
        user: The user's home directory.
        claude: `CLAUDE_CONFIG_DIR`, else `~/.claude`.
        codex: `CODEX_HOME`, else `~/.codex`.
        gemini: `.gemini` in `GEMINI_CLI_HOME`, else `~/.gemini`.
        system: The directory below which an administrator's files are found; `/` except in tests.
        variables: The environment variables of `AGENT_VARIABLES` that are set.
    """

    user: Path
    claude: Path
    codex: Path
    gemini: Path
    system: Path = Path("/")
    variables: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def copilot(self) -> Path:
        """Copilot's directory: `COPILOT_HOME`, else `~/.copilot`."""
        return self._find("COPILOT_HOME", self.user / ".copilot")

    @property
    def opencode(self) -> Path:
        """Opencode's directory: `opencode` in `XDG_CONFIG_HOME`, else in `~/.config`."""
        return self._find("XDG_CONFIG_HOME", self.user / ".config") / "opencode"

    @property
    def goose(self) -> Path:
        """Goose's directory: `config` in `GOOSE_PATH_ROOT`, else `goose` in `XDG_CONFIG_HOME`, else in `~/.config`."""
        if root := self.variables.get("GOOSE_PATH_ROOT"):
            return self.user / root / "config"
        return self._find("XDG_CONFIG_HOME", self.user / ".config") / "goose"

    def _find(self, variable: str, default: Path) -> Path:
        return self.user / self.variables[variable] if self.variables.get(variable) else default


def build_default_homes(user: Path, *, system: Path = Path("/")) -> AgentHomes:
    """Return the homes that agents have without environment variables of their own."""
    return AgentHomes(user, user / ".claude", user / ".codex", user / ".gemini", system)


def find_agent_homes(cwd: Path) -> AgentHomes:
    """Return the homes by the process environment. Nexus's own home (`--home`, NEXUS_HOME) does not matter."""
    defaults = build_default_homes(cwd / user_home())
    claude, codex, gemini = map(os.environ.get, ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME"))
    variables = {name: value for name in AGENT_VARIABLES if (value := os.environ.get(name))}
    return AgentHomes(
        defaults.user,
        cwd / claude if claude else defaults.claude,
        cwd / codex if codex else defaults.codex,
        cwd / gemini / ".gemini" if gemini else defaults.gemini,
        variables={
            name: str(cwd / value) if name in _DIRECTORY_VARIABLES else value for name, value in variables.items()
        },
    )


def build_agent_home_layer(directory: Path, cwd: Path) -> Layer:
    """Return the layer for an agent's home: the user's own, unless a variable puts it into the project itself."""
    workspace = find_workspace(cwd)
    if workspace is not None and directory.is_relative_to(workspace):
        return Layer("local", cwd, "local", root=cwd)
    return Layer("global", directory, "global")


class InstructionPattern(NamedTuple):
    """Instruction files that a settings file names.

    Attributes:
        pattern: A path or glob, or a URL.
        path: The settings file.
        is_own: True if it is the user's own, which may name any file.
    """

    pattern: str
    path: Path
    is_own: bool


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """An agent's settings about instruction files.

    Attributes:
        names: File names it looks for in each directory.
        markers: Names that mark the root of a project; with none, only the working directory counts.
        cap: Bytes it reads of all project files together; None without a limit.
        cap_origin: The file that sets `cap`; None for the default.
        excludes: Patterns of absolute paths that it does not read.
        mode: Which of CLAUDE.md and AGENTS.md it reads (Claude Code).
        policy: Instructions inside an administrator's settings, with their file (Claude Code).
        instructions: Further instruction files that settings name (opencode).
        findings: Settings files that could not be used.
        skipped: Settings files that the agent does not use here.
    """

    names: tuple[str, ...]
    markers: tuple[str, ...] = PROJECT_MARKERS
    cap: int | None = None
    cap_origin: Path | None = None
    excludes: tuple[str, ...] = ()
    mode: InstructionFilesMode = "claude-md"
    policy: tuple[str, Path] | None = None
    instructions: tuple[InstructionPattern, ...] = ()
    findings: tuple[Finding, ...] = ()
    skipped: tuple[SkippedFile, ...] = ()

    @property
    def described_cap(self) -> str:
        """The limit in KiB or bytes, with the file that sets it."""
        cap = self.cap or 0
        size = f"{cap // 1024} KiB" if cap % 1024 == 0 else f"{cap:,} bytes"
        return f"{size} (project_doc_max_bytes in {self.cap_origin})" if self.cap_origin else size


def read_claude_settings(cwd: Path, homes: AgentHomes) -> AgentSettings:
    """Return Claude Code's settings: the user's, the project's, the local ones, then the administrator's."""
    files = _SettingsFiles("Claude Code")
    own, project = (
        LayerReader(build_agent_home_layer(homes.claude, cwd)),
        LayerReader(Layer("local", cwd, "local", root=cwd)),
    )
    place = find_claude_policy_directory(homes) / "managed-settings.json"
    admissions = {
        homes.claude / "settings.json": own,
        cwd / ".claude/settings.json": project,
        cwd / ".claude/settings.local.json": project,
        place: LayerReader(Layer("global", place.parent, "global")),
    }
    layers = [(files.read_json(path, admission), path) for path, admission in admissions.items()]
    (user, _), *_, (managed, _) = layers
    # A project's own files cannot choose between CLAUDE.md and AGENTS.md.
    modes = [_read_instruction_files_mode(each) for each in (managed, user)]
    mode: InstructionFilesMode = next(filter(None, modes), "claude-md-or-agents-md")
    excludes = [each for settings, path in layers for each in files.texts(settings, path, "claudeMdExcludes")]
    text = managed.get("claudeMd")
    return AgentSettings(
        ("CLAUDE.md", ".claude/CLAUDE.md", "CLAUDE.local.md"),
        excludes=tuple(dict.fromkeys(excludes)),
        mode=mode,
        policy=(text, place) if isinstance(text, str) and text.strip() else None,
        findings=tuple(files.findings),
    )


def find_claude_policy_directory(homes: AgentHomes) -> Path:
    """Return the directory of the administrator's files for Claude Code."""
    apple = homes.system / "Library/Application Support/ClaudeCode"
    return apple if os.path.isdir(apple) else homes.system / "etc/claude-code"  # noqa: PTH112 - never fails


def _read_instruction_files_mode(settings: Mapping[str, Any]) -> InstructionFilesMode | None:
    plugins = settings.get("enabledPlugins")
    if isinstance(plugins, dict) and plugins.get(_AGENTS_PLUGIN) is False:
        return "claude-md"
    value: Any = settings
    for key in ("pluginConfigs", _AGENTS_PLUGIN, "options", "instructionFiles"):
        value = value.get(key) if isinstance(value, dict) else None
    return next((each for each in get_args(InstructionFilesMode) if each == value), None)


def read_codex_settings(cwd: Path, homes: AgentHomes) -> AgentSettings:
    """Return Codex's settings: the system's, the user's, then those of a project that the user trusts."""
    files = _SettingsFiles("Codex")
    etc = homes.system / "etc/codex"
    own = LayerReader(build_agent_home_layer(homes.codex, cwd))
    system = files.read_toml(etc / "config.toml", LayerReader(Layer("global", etc, "global")))
    user = files.read_toml(homes.codex / "config.toml", own)
    markers = PROJECT_MARKERS
    layers = [(system, etc / "config.toml"), (user, homes.codex / "config.toml")]
    for settings, path in layers:  # a project must not decide where it begins
        markers = files.texts(settings, path, "project_root_markers", markers)
    root = find_marked_directory(cwd, markers) or cwd
    projects = files.table(user, homes.codex / "config.toml", "projects")
    for directory in reversed([each for each in (cwd, *cwd.parents) if each.is_relative_to(root)]):
        path = directory / ".codex/config.toml"
        if path.parent == homes.codex or not os.path.lexists(path):
            continue
        if _is_trusted(projects, (directory, root, find_marked_directory(cwd, PROJECT_MARKERS))):
            layers.append((files.read_toml(path, LayerReader(Layer("local", cwd, "local", root=cwd))), path))
        else:
            files.skipped.append(SkippedFile(path, "Codex does not trust this project", "local"))
    names: tuple[str, ...] = ()
    cap, origin = MAX_CODEX_BYTES, None
    for settings, path in layers:
        names = files.texts(settings, path, "project_doc_fallback_filenames", names)
        limit = files.size(settings, path, "project_doc_max_bytes")
        if limit is not None:
            cap, origin = limit, path
    return AgentSettings(
        tuple(dict.fromkeys(("AGENTS.override.md", "AGENTS.md", *names))),
        markers,
        cap,
        origin,
        findings=tuple(files.findings),
        skipped=tuple(files.skipped),
    )


def _is_trusted(projects: Mapping[str, Any], places: Sequence[Path | None]) -> bool:
    """Return True if the user trusts the first of some directories with a decision."""
    for place in places:
        decision = projects.get(str(place))
        if isinstance(decision, dict) and "trust_level" in decision:
            return bool(decision["trust_level"] == "trusted")
    return False


def read_gemini_settings(cwd: Path, homes: AgentHomes) -> AgentSettings:
    """Return Gemini CLI's settings: the system's defaults, the user's, the project's, then the system's own."""
    files = _SettingsFiles("Gemini CLI")
    etc = homes.system / "etc/gemini-cli"
    system = LayerReader(Layer("global", etc, "global"))
    names: tuple[str, ...] = ()
    markers = PROJECT_MARKERS
    for path, admission in (
        (etc / "system-defaults.json", system),
        (homes.gemini / "settings.json", LayerReader(build_agent_home_layer(homes.gemini, cwd))),
        (cwd / ".gemini/settings.json", LayerReader(Layer("local", cwd, "local", root=cwd))),
        (etc / "settings.json", system),
    ):
        settings = files.read_json(path, admission)
        context = files.table(settings, path, "context")
        # Before 0.3 the setting was called contextFileName.
        names = files.texts(settings, path, "contextFileName", names)
        names = files.texts(context, path, "fileName", names)
        markers = files.texts(context, path, "memoryBoundaryMarkers", markers)
    return AgentSettings(tuple(dict.fromkeys((*names, GEMINI_FILE))), markers, findings=tuple(files.findings))


def read_opencode_settings(cwd: Path, homes: AgentHomes) -> AgentSettings:
    """Return opencode's settings: the user's, that of OPENCODE_CONFIG, then the project's from its root down."""
    files = _SettingsFiles("opencode")
    project = Layer("local", cwd, "local", root=cwd)
    root = find_marked_directory(cwd, PROJECT_MARKERS) or cwd
    own = [homes.opencode / name for name in OPENCODE_CONFIGS]
    own += [Path(homes.variables["OPENCODE_CONFIG"])] if homes.variables.get("OPENCODE_CONFIG") else []
    if named := homes.variables.get("OPENCODE_CONFIG_DIR"):
        own += [Path(named) / name for name in OPENCODE_CONFIGS]
    paths = [(path, build_agent_home_layer(path.parent, cwd)) for path in own]
    for directory in reversed([each for each in (cwd, *cwd.parents) if each.is_relative_to(root)]):
        paths += [(directory / place / name, project) for place in ("", ".opencode") for name in OPENCODE_CONFIGS]
    instructions = [
        InstructionPattern(each, path, layer.is_own)
        for path, layer in paths
        for each in files.texts(files.read_json(path, LayerReader(layer)), path, "instructions")
    ]
    is_claude_off = any(homes.variables.get(f"OPENCODE_DISABLE_CLAUDE_CODE{end}") for end in ("", "_PROMPT"))
    names = ("AGENTS.md", *(() if is_claude_off else ("CLAUDE.md",)), "CONTEXT.md")
    return AgentSettings(names, instructions=tuple(dict.fromkeys(instructions)), findings=tuple(files.findings))


def read_goose_settings(cwd: Path, homes: AgentHomes) -> AgentSettings:
    """Return the file names of goose: the variable CONTEXT_FILE_NAMES, else the user's settings, else its defaults."""
    files = _SettingsFiles("goose")
    path = homes.goose / "config.yaml"
    settings = files.read_yaml_field(path, LayerReader(build_agent_home_layer(homes.goose, cwd)), "CONTEXT_FILE_NAMES")
    names = files.texts(settings, path, "CONTEXT_FILE_NAMES", GOOSE_FILES)
    if variable := homes.variables.get("CONTEXT_FILE_NAMES"):
        try:
            value = {"CONTEXT_FILE_NAMES": json.loads(variable)}
        except ValueError:  # a name by itself is accepted, too
            value = {"CONTEXT_FILE_NAMES": variable}
        names = files.texts(value, path, "CONTEXT_FILE_NAMES", names)
    return AgentSettings(names, findings=tuple(files.findings))


def find_marked_directory(cwd: Path, markers: Sequence[str]) -> Path | None:
    """Return the nearest directory at or above `cwd` that contains one of the markers."""
    for directory in (cwd, *cwd.parents):
        if any(os.path.lexists(directory / marker) for marker in markers if is_contained_name(marker)):
            return directory
    return None


def is_contained_name(name: str) -> bool:
    """Return True if a name from a settings file cannot lead out of its directory."""
    return bool(name) and "\0" not in name and not os.path.isabs(name) and ".." not in Path(name).parts  # noqa: PTH117


class _SettingsFiles:
    """Reads the settings files of one agent. A file that cannot be used becomes a finding."""

    def __init__(self, agent: str) -> None:
        self._agent = agent
        self.findings: list[Finding] = []
        self.skipped: list[SkippedFile] = []

    def read_json(self, path: Path, admission: LayerReader) -> Mapping[str, Any]:
        """Return the object in a JSON file, in which comments are allowed, or {} if there is none."""
        try:
            document = read_layer_json(path, admission, comments=True, empty={}, quote=False)
        except NexusError as error:
            return self._refuse(path, error)
        return self._object(path, document if isinstance(document, SkippedFile) else document.value)

    def read_toml(self, path: Path, admission: LayerReader) -> Mapping[str, Any]:
        """Return the table in a TOML file, or {} if there is none."""
        try:
            text = read_layer_text(path, admission, quote=False)
            return self._object(path, text if isinstance(text, SkippedFile) else tomllib.loads(text))
        except (NexusError, tomllib.TOMLDecodeError, RecursionError) as error:
            return self._refuse(path, error)

    def read_yaml_field(self, path: Path, admission: LayerReader, key: str) -> Mapping[str, Any]:
        """Return one field of a YAML file, or {} if it is not there. The rest of the file is not parsed."""
        from nexus_core.text.yaml_head import (
            YamlHeadError,
            parse_yaml_head,
        )  # PyYAML is heavy, and few have such a file

        try:
            text = read_layer_text(path, admission, quote=False)
        except NexusError as error:
            return self._refuse(path, error)
        if isinstance(text, SkippedFile):
            return self._object(path, text)
        found = re.search(rf"(?m)^{key}:.*(?:\n(?:[ \t-].*|[ \t]*$))*", text)
        if found is None:
            return {}
        try:
            return parse_yaml_head(found[0].split("\n"))
        except YamlHeadError as error:
            self._note(path, str(error), text.count("\n", 0, found.start()) + error.line + 1)
            return {}

    def texts(
        self, settings: Mapping[str, Any], path: Path, key: str, otherwise: tuple[str, ...] = ()
    ) -> tuple[str, ...]:
        """Return a setting that is a string or a list of strings."""
        if key not in settings:
            return otherwise
        value = settings[key]
        items = [value] if isinstance(value, str) else value
        if not isinstance(items, list) or not all(isinstance(each, str) for each in items):
            self._note(path, f"{key} is neither a text nor a list of texts")
            return otherwise
        if len(items) > _MAX_NAMES:
            self._note(path, f"{key} has {len(items):,} texts, and only the first {_MAX_NAMES} are used")
        return tuple(each.strip() for each in items[:_MAX_NAMES] if each.strip())

    def size(self, settings: Mapping[str, Any], path: Path, key: str) -> int | None:
        """Return a setting that is a number of bytes, or None if there is none."""
        value = settings.get(key)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
        if key in settings:
            self._note(path, f"{key} is not a number of bytes")
        return None

    def table(self, settings: Mapping[str, Any], path: Path, key: str) -> Mapping[str, Any]:
        """Return a setting that is an object, or {} if there is none."""
        value = settings.get(key, {})
        if isinstance(value, dict):
            return value
        self._note(path, f"{key} is not an object")
        return {}

    def _object(self, path: Path, value: object) -> Mapping[str, Any]:
        if isinstance(value, SkippedFile):
            if value.reason != REASON_MISSING:
                self._note(path, value.reason)
            return {}
        if isinstance(value, dict):
            return value
        self._note(path, "not an object")
        return {}

    def _refuse(self, path: Path, error: BaseException) -> Mapping[str, Any]:
        what = error.what if isinstance(error, NexusError) else str(error)
        # JSON errors have the line in `where`, TOML errors in their message.
        place = (error.where or "").removeprefix(str(path)) if isinstance(error, NexusError) else str(error)
        line = re.search(r"^:(\d+)|line (\d+)", place)
        self._note(path, what.strip().partition("\n")[0] or "cannot be read", int(line[1] or line[2]) if line else 0)
        return {}

    def _note(self, path: Path, problem: str, line: int = 0) -> None:
        message = f"settings of {self._agent} that are not used here: {problem}"
        self.findings.append(Finding("profile-settings", message, path, line))
