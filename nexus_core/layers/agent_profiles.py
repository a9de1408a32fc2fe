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

_CURSOR_DOCS = "https://cursor.com/docs/rules"
_CURSOR_LINT = "https://github.com/stbenjam/skillsaw/blob/main/docs/rules/cursor-rules-valid.md"
_COPILOT_DOCS = "https://docs.github.com/en/copilot"
_OPENCODE_DOCS = "https://opencode.ai/v1/docs/rules"
_OPENCODE_SOURCE = "https://github.com/anomalyco/opencode/blob/dev/packages/opencode/src"
_GOOSE_DOCS = "https://block.github.io/goose/docs/guides/context-engineering/using-goosehints"
_GOOSE_SOURCE = "https://github.com/block/goose/blob/main/crates/goose/src/hints"
_CLINE_DOCS = "https://docs.cline.bot/customization/cline-rules"
_CLINE_SOURCE = "https://github.com/cline/cline/blob/main/src/core/context/instructions/user-instructions"


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
        imports_in_code: True if `@path` is an import in code, too.
        unknown: Facts that affect its instructions but that no file states, in one line.
        rules: The files it reads, with sources.
    """

    agent: str
    name: str
    import_depth: int
    imports_from_home: bool
    unknown: str
    rules: tuple[CitedRule, ...]
    imports_in_code: bool = False


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
_CURSOR_PROFILE = AgentProfile(
    agent="Cursor",
    name="Cursor",
    import_depth=0,
    imports_from_home=False,
    unknown="its user and team rules, which no file here has, the folder that is open (here: the repository), and the"
    " order of rules; its command line also reads CLAUDE.md; not reproduced: files that a rule names with @, the"
    " descriptions of skills, commands and memories",
    rules=(
        CitedRule(
            ".cursor/rules/**/*.mdc of the repository and of directories down to the working one; other suffixes are"
            " ignored",
            _CURSOR_DOCS,
        ),
        CitedRule(
            "with alwaysApply: true always, with globs for files that match, with a description when it fits, else when"
            " you name it",
            f"{_CURSOR_DOCS}#rule-anatomy",
        ),
        CitedRule(
            "AGENTS.md of the same directories; those below, and their rules, on demand", f"{_CURSOR_DOCS}#agentsmd"
        ),
        CitedRule(".cursorrules of the repository, a legacy form", f"{_CURSOR_DOCS}#cursorrules"),
        CitedRule("no rule whose front matter cannot be parsed", _CURSOR_LINT),
        CitedRule(
            "skills in .cursor, .agents, .claude and .codex, yours and the project's, only when they are used",
            "https://cursor.com/docs/context/skills",
        ),
    ),
)
_COPILOT_PROFILE = AgentProfile(
    agent="Copilot",
    name="GitHub Copilot",
    import_depth=0,
    imports_from_home=False,
    unknown="the client: this is its command line, and editors read no files in ~/.copilot and no file without applyTo;"
    " the instructions of your organization, and its version (older ones read AGENTS.md only in the repository's root"
    " and the working directory); not reproduced: the descriptions of skills, agents and prompt files",
    rules=(
        CitedRule(
            "~/.copilot/copilot-instructions.md and ~/.copilot/instructions/**/*.instructions.md",
            f"{_COPILOT_DOCS}/reference/copilot-cli-reference/cli-config-dir-reference",
        ),
        CitedRule(
            ".github/copilot-instructions.md and AGENTS.md from the repository's root down to the working directory;"
            " those below on demand",
            f"{_COPILOT_DOCS}/how-tos/copilot-cli/customize-copilot/add-custom-instructions",
        ),
        CitedRule(
            ".github/instructions/**/*.instructions.md; with applyTo only for files that match, ** is for all",
            f"{_COPILOT_DOCS}/how-tos/copilot-cli/customize-copilot/add-custom-instructions",
        ),
        CitedRule(
            "CLAUDE.md and GEMINI.md of the repository's root, and the directories in COPILOT_CUSTOM_INSTRUCTIONS_DIRS",
            f"{_COPILOT_DOCS}/how-tos/copilot-cli/customize-copilot/add-custom-instructions",
        ),
        CitedRule(
            "skills in .github, .agents and .claude, and yours in ~/.copilot, ~/.agents and ~/.claude, only when they"
            " are used",
            f"{_COPILOT_DOCS}/how-tos/copilot-cli/customize-copilot/create-skills",
        ),
    ),
)
_OPENCODE_PROFILE = AgentProfile(
    agent="opencode",
    name="opencode",
    import_depth=0,
    imports_from_home=False,
    unknown="its version (these are the rules of 1.x; 2.x reads AGENTS.md only), settings from an organization, and"
    " files that its instructions name by URL, which are not fetched; not reproduced: the descriptions of skills,"
    " agents and commands",
    rules=(
        CitedRule(
            "AGENTS.md from the working directory up to the repository, the nearest first; CLAUDE.md only where there"
            " is no AGENTS.md at all",
            f"{_OPENCODE_SOURCE}/session/instruction.ts",
        ),
        CitedRule(
            "~/.config/opencode/AGENTS.md, else ~/.claude/CLAUDE.md (OPENCODE_DISABLE_CLAUDE_CODE switches it off)",
            _OPENCODE_DOCS,
        ),
        CitedRule(
            "the files, globs and URLs in instructions of opencode.json, yours and the project's", _OPENCODE_DOCS
        ),
        CitedRule(
            "the first such file of each directory below when it reads a file there",
            f"{_OPENCODE_SOURCE}/session/instruction.ts",
        ),
        CitedRule(
            "skills in .opencode, .agents and .claude, yours and the project's, only when they are used",
            "https://opencode.ai/v1/docs/skills",
        ),
    ),
)
_GOOSE_PROFILE = AgentProfile(
    agent="goose",
    name="goose",
    import_depth=3,
    imports_from_home=False,
    imports_in_code=True,
    unknown="whether the Developer extension is on, .gooseignore, and its version (older ones load nothing from"
    " subdirectories); not reproduced: the lines around an import, the descriptions of skills, and memories",
    rules=(
        CitedRule(
            ".goosehints and AGENTS.md, or the names in CONTEXT_FILE_NAMES, all of them in each directory", _GOOSE_DOCS
        ),
        CitedRule(
            "those of ~/.config/goose, then from the repository down to the working directory",
            f"{_GOOSE_SOURCE}/load_hints.rs",
        ),
        CitedRule("@path imports, in code too, three deep, inside the repository", f"{_GOOSE_SOURCE}/import_files.rs"),
        CitedRule("those of directories below when it works there", f"{_GOOSE_SOURCE}/load_hints.rs"),
        CitedRule(
            "skills in .goose, .agents and .claude, and yours in ~/.config and ~/.claude, only when they are used",
            "https://block.github.io/goose/docs/guides/context-engineering/using-skills",
        ),
    ),
)
_CLINE_PROFILE = AgentProfile(
    agent="Cline",
    name="Cline",
    import_depth=0,
    imports_from_home=False,
    unknown="the rules that you switched off in its panel, the folder that is open (here: the working directory), and"
    " rules from an organization; not reproduced: the descriptions of skills, workflows and hooks",
    rules=(
        CitedRule("~/Documents/Cline/Rules, else ~/Cline/Rules, then ~/.agents/AGENTS.md", _CLINE_DOCS),
        CitedRule(".clinerules of the working directory: a file, or .md and .txt files in a directory", _CLINE_DOCS),
        CitedRule(
            "with paths in the front matter only for files that match; with front matter that cannot be parsed always",
            f"{_CLINE_DOCS}#conditional-rules",
        ),
        CitedRule(
            ".cursorrules, .windsurfrules and .cursor/rules/*.mdc, whatever their front matter says",
            f"{_CLINE_SOURCE}/external-rules.ts",
        ),
        CitedRule(
            "AGENTS.md, and if there is one, all those below as well, at the start",
            f"{_CLINE_SOURCE}/external-rules.ts",
        ),
        CitedRule(
            "skills in .cline, .clinerules and .claude, and yours in ~/.cline, only when they are used",
            "https://docs.cline.bot/customization/skills",
        ),
    ),
)
PROFILES = {
    "claude": CLAUDE_PROFILE,
    "codex": _CODEX_PROFILE,
    "gemini": _GEMINI_PROFILE,
    "cursor": _CURSOR_PROFILE,
    "copilot": _COPILOT_PROFILE,
    "opencode": _OPENCODE_PROFILE,
    "goose": _GOOSE_PROFILE,
    "cline": _CLINE_PROFILE,
}
"""The agents by the name that `--as` has for them."""
