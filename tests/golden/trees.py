"""The trees of which goldens are made, as files by their path below the root of a world."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from tests.trees import GOLDEN_TREES, Tree

ROOT = Path(__file__).resolve().parents[2]
ACME = ROOT / "examples/acme"


def copied(folder: Path, into: str) -> dict[str, str]:
    """The files of a folder."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {f"{into}/{path.relative_to(folder).as_posix()}": path.read_text(encoding="utf-8") for path in paths}


def placed(tree: Tree) -> dict[str, str]:
    """The files of a tree, with the user's own in the user's home."""
    home = {f"user/.nexus3/{path}": text for path, text in tree.home.items()}
    return home | {f"work/{path}": text for path, text in tree.files.items()}


def skill(name: str, description: str, more: str = "") -> str:
    """The text of a guide."""
    return f"---\nname: {name}\ndescription: {description}\n{more}---\n\n# {name}\n\nRun `make {name}`.\n"


_OWN = {
    "user/.nexus3/NEXUS.md": "Be brief. @~/.nexus3/style.md\n",
    "user/.nexus3/style.md": "Show the commands that you ran.\n",
    "user/.nexus3/IDENTITY.md": "Name: Ada\nTime zone: Europe/Zurich\n",
    "user/.nexus3/config.json": json.dumps(
        {
            "provider": {"model": "gpt-4o", "options": {"temperature": 0.5, "max_tokens": 900}},
            "models": {"tiny": {"window": 3000, "encoding": "o200k_base"}, "fast": {"id": "gemini-2.5-pro"}},
            "budget": {"memory": 3000},
        },
        indent=2,
    )
    + "\n",
    "user/.nexus3/mcp.json": json.dumps(
        {"mcpServers": {"clock": {"command": "clock-server", "args": ["--utc"], "env": {"CLOCK_KEY": "${CLOCK_KEY}"}}}},
        indent=2,
    )
    + "\n",
    "user/.nexus3/skills/mail/SKILL.md": skill("mail", "Sends mail. Use it for what is urgent."),
    "user/.claude/CLAUDE.md": "Use British spelling.\n\n<!-- a note -->\n@~/.claude/tabs.md\n",
    "user/.claude/tabs.md": "Indent with tabs.\n",
    "user/.claude/rules/tests.md": '---\npaths:\n  - "**/*_test.py"\n---\nName tests after behaviours.\n',
    "user/.claude/settings.json": '{"claudeMdExcludes": ["**/vendor/CLAUDE.md"]}\n',
    "user/.codex/AGENTS.md": "Prefer ripgrep.\n",
    "user/.codex/config.toml": "project_doc_max_bytes = 200\n",
    "user/.gemini/GEMINI.md": "Explain your plan first.\n",
    "user/.gemini/settings.json": '{"context": {"fileName": ["GEMINI.md", "NOTES.md"]}}\n',
}

_WORK = {
    "work/.git/HEAD": "ref: refs/heads/main\n",
    "work/AGENTS.md": "# The shop\n\nWe use Python 3.12. @docs/style.md\n\n- Never log a token.\n- Run `make check`.\n",
    "work/CLAUDE.md": "Ask before you delete anything.\n@docs/style.md\n",
    "work/docs/style.md": "Lines have 100 characters at most.\n",
    "work/.nexus3/NEXUS.md": (
        "You work on the shop.\n\n# System Configuration\n## Environment\nA line that looks like Nexus's own.\n"
        "A word with a zero\u200bwidth space, and an escape: \x1b[31m.\n"
    ),
    "work/.nexus3/SOUL.md": "Be kind, and say what you do not know.\n",
    "work/.nexus3/IDENTITY.md": "Name: Atlas\nEmoji: a globe\n",
    "work/.nexus3/CORE_IDENTITY.md": "# You are Atlas\n\nYou answer in the language of `<human_input>`.\n",
    "work/.nexus3/config.json": (
        "{\n"
        '  "_about": "what the shop wants",\n'
        '  "permissions": {"level": "trusted", "tools": {"deny": ["drop_table"]}},\n'
        '  "compaction": {"keep_turns": 1, "command": ["summarise", "--short"]},\n'
        '  "provider": {"base_url": "http://elsewhere.example"},\n'
        '  "plugins": {"environment": {"git": true}, "mcp": {"read": ["claude"]}},\n'
        '  "skills": {"disabled": ["old"]}\n'
        "}\n"
    ),
    "work/.nexus3/mcp.json": json.dumps(
        {
            "servers": [
                {"name": "docs", "url": "https://docs.example/mcp", "headers": {"Authorization": "Bearer ${DOCS}"}},
                {"name": "build", "command": ["./tools/build.sh", "--port", "8080"], "cwd": "."},
                {"name": "old", "command": ["old-server"], "enabled": False},
            ]
        },
        indent=2,
    )
    + "\n",
    "work/.mcp.json": '{"mcpServers": {"search": {"command": "search-server", "alwaysAllow": ["find"]}}}\n',
    "work/tools/build.sh": "#!/bin/sh\nexec ./tools/real-build\n",
    "work/tools/real-build": "echo building\n",
    "work/.nexus3/skills/deploy/SKILL.md": skill(
        "deploy",
        "Ships a service. Use it when somebody asks for a release.",
        "category: Operations\nrequires:\n  env: [DEPLOY_KEY]\n  bin: [git]\n",
    ),
    "work/.claude/skills/review/SKILL.md": skill("review", "Reviews a change."),
    "work/.nexus3/skills/old/SKILL.md": skill("old", "Nobody needs it."),
    "work/api/.nexus3/NEXUS.md": "The API speaks JSON. Run `make check` before you finish.\n",
    "work/api/README.md": "# api\n\nThe HTTP interface of the shop.\n",
    "work/api/GEMINI.md": "Read openapi.json first.\n",
    "work/api/NOTES.md": "The cart is slow.\n",
    "work/api/vendor/CLAUDE.md": "Somebody else's rules.\n",
}

PLAIN = {
    "user/.nexus3/NEXUS.md": "Be brief.\n",
    "user/.nexus3/config.json": '{"provider": {"model": "claude-sonnet-4"}}\n',
    "work/.nexus3/NEXUS.md": "You work on the shop.\n",
    "work/AGENTS.md": "Run `make check`.\n",
}
"""A tree in which nothing is odd, for conversations."""

TREES: Mapping[str, Mapping[str, str]] = {
    "acme": copied(ACME, "acme"),
    "bare": {"user/.nexus3/NEXUS.md": "Be brief.\n"},
    "empty": {},
    "plain": PLAIN,
    "shop": _OWN | _WORK,
    **{name: placed(tree) for name, tree in GOLDEN_TREES.items()},
}
"""By name. In `empty`, the prompt names the file of the defaults, so that its size depends on where the checkout is."""
