"""Other agents, and the rules by which they read instruction files, each with its documentation or source."""

from __future__ import annotations

from typing import NamedTuple

from nexus_core.types.base import dataclass

_CLAUDE_DOCS = "https://code.claude.com/docs/en/memory"
_CODEX_DOCS = "https://developers.openai.com/codex/guides/agents-md"
_CODEX_CONFIG = "https://developers.openai.com/codex/config-basic"
_CODEX_SOURCE = "https://github.com/openai/codex/blob/main/codex-rs/core/src/agents_md.rs"
_GEMINI_DOCS = "https://github.com/google-gemini/gemini-cli/blob/main/docs/cli/gemini-md.md"
_GEMINI_CONFIG = "https://github.com/google-gemini/gemini-cli/blob/main/docs/reference/configuration.md"
_GEMINI_SOURCE = "https://github.com/google-gemini/gemini-cli/blob/main/packages/core/src"


class CitedRule(NamedTuple):
    """A rule by which an agent reads instructions, and the documentation or source that states it."""

    rule: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentProfile:
    """Another agent and the rules by which it reads instruction files.

    Attributes:
        agent: Its short name, in the titles of sections.
        name: The product name.
        import_depth: How many levels of imports (`@path`) it follows; 0 if it has none.
        imports_from_home: True if `@~/path` is an import.
        unknown: Facts that affect its instructions but that no file states, in one line.
        rules: The files it reads, with sources.
    """

    agent: str
    name: str
    import_depth: int
    imports_from_home: bool
    unknown: str
    rules: tuple[CitedRule, ...]


CLAUDE_PROFILE = AgentProfile(
    agent="Claude",
    name="Claude Code",
    import_depth=4,
    imports_from_home=True,
    unknown="its version (AGENTS.md needs 2.1.277), its options (--add-dir, --setting-sources), its auto memory and"
    " plugins, and whether you approved imports from outside the working directory; not reproduced: the descriptions of"
    " skills, subagents and commands, which it has from the start",
    rules=(
        CitedRule(
            "the administrator's CLAUDE.md, then ~/.claude/CLAUDE.md and ~/.claude/rules",
            f"{_CLAUDE_DOCS}#choose-where-to-put-claude-md-files",
        ),
        CitedRule(
            "CLAUDE.md, .claude/CLAUDE.md and CLAUDE.local.md of every directory from / down; those below on demand",
            f"{_CLAUDE_DOCS}#how-claude-md-files-load",
        ),
        CitedRule(
            "AGENTS.md only where no CLAUDE.md or CLAUDE.local.md is there or above (setting instructionFiles)",
            f"{_CLAUDE_DOCS}#agents-md",
        ),
        CitedRule(
            ".claude/rules/**/*.md; with `paths` in the front matter only for files that match",
            f"{_CLAUDE_DOCS}#organize-rules-with-claude/rules/",
        ),
        CitedRule(
            "skills, subagents and commands below .claude only when they are used",
            "https://code.claude.com/docs/en/skills",
        ),
        CitedRule(
            "nothing that claudeMdExcludes matches, except the administrator's file",
            f"{_CLAUDE_DOCS}#exclude-specific-claude-md-files",
        ),
        CitedRule(
            "@path imports outside code, four deep; HTML comments are left out",
            f"{_CLAUDE_DOCS}#import-additional-files",
        ),
    ),
)
_CODEX_PROFILE = AgentProfile(
    agent="Codex",
    name="Codex",
    import_depth=0,
    imports_from_home=False,
    unknown="its options (--config, --profile), settings from an organization, and whether its version reads a project"
    " that you do not trust; not reproduced: the descriptions of skills, which it has from the start",
    rules=(
        CitedRule("the first of ~/.codex/AGENTS.override.md and AGENTS.md that is not blank", _CODEX_DOCS),
        CitedRule(
            "one file in each directory from the project root down: AGENTS.override.md, AGENTS.md, then"
            " project_doc_fallback_filenames",
            _CODEX_SOURCE,
        ),
        CitedRule(
            "project_doc_max_bytes (32 KiB) of them together, the root's first; what comes later is cut", _CODEX_SOURCE
        ),
        CitedRule(
            ".codex/config.toml of a project only if you trust the project; project_root_markers only from your own",
            _CODEX_CONFIG,
        ),
        CitedRule(
            "skills in .agents/skills and .codex/skills, yours and the project's, only when they are used",
            "https://developers.openai.com/codex/skills",
        ),
    ),
)
_GEMINI_PROFILE = AgentProfile(
    agent="Gemini",
    name="Gemini CLI",
    import_depth=5,
    imports_from_home=False,
    unknown="whether it trusts this folder, its extensions, its memory of the project, its options, and its version"
    " (older ones read only the names in context.fileName); not reproduced: the descriptions of skills, which it has"
    " from the start",
    rules=(
        CitedRule("~/.gemini/GEMINI.md, then those from the project root down to the working directory", _GEMINI_DOCS),
        CitedRule(
            "the names in context.fileName besides GEMINI.md, all of them in each directory",
            f"{_GEMINI_SOURCE}/tools/memoryTool.ts",
        ),
        CitedRule(
            "the project root has one of context.memoryBoundaryMarkers (.git); files in the order of their paths; those"
            " below on demand",
            f"{_GEMINI_SOURCE}/utils/memoryDiscovery.ts",
        ),
        CitedRule(
            "@path imports outside code, five deep, inside the project",
            f"{_GEMINI_SOURCE}/utils/memoryImportProcessor.ts",
        ),
        CitedRule("the settings of the system's defaults, the user, the project and the system", _GEMINI_CONFIG),
        CitedRule(
            "skills in .gemini/skills and .agents/skills, yours and those of the working directory, only when they are"
            " used",
            "https://geminicli.com/docs/cli/using-agent-skills/",
        ),
    ),
)
PROFILES = {"claude": CLAUDE_PROFILE, "codex": _CODEX_PROFILE, "gemini": _GEMINI_PROFILE}
