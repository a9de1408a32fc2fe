"""No name, whoever chose it, brings a character that nobody sees into a prompt or onto a terminal."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from nexus_core import Nexus
from nexus_core.text.safety import find_hidden
from tests.conftest import Cli, InstallPlugin
from tests.effort import sampled

pytestmark = pytest.mark.slow

HIDDEN = {
    "Tags": "\U000e0041\U000e0042",
    "bidi": "\u202e",
    "isolate": "\u2066",
    "zero-width space": "\u200b",
    "joiner": "\u200d",
    "word joiner": "\u2060",
    "soft hyphen": "\xad",
    "grapheme joiner": "\u034f",
    "variation selector": "\ufe0f",
    "variation supplement": "\U000e0121",
    "Hangul filler": "\u3164",
    "shorthand format": "\U0001bca0",
    "musical format": "\U0001d173",
    "hieroglyph format": "\U00013437",
    "byte order mark": "\ufeff",
    "line separator": "\u2028",
    "escape": "\x1b[2J",
    "bell": "\x07",
    "delete": "\x7f",
    "C1": "\x9b31m",
    "surrogate": "\udcff",
}
"""One of each class of characters that a reader does not see, or that steer a terminal."""

SERVERS, SETTINGS, SKILL = ".nexus3/mcp.json", ".nexus3/config.json", ".nexus3/skills/s/SKILL.md"
LOOKS = (("show",), ("layers",), ("doctor",), ("status",))
SESSION_LOOKS = (("session", "list"), ("session", "tree"), ("session", "stats"), ("session", "search", "hello"))
BODY = ("assemble", "hi", "--api", "anthropic", "--model", "m")


@dataclass(frozen=True)
class Named:
    """A directory with a name in it.

    Attributes:
        cwd: The directory that the commands run in, below the one of the test.
        files: What is in it; in the user's own directory where a path begins with `home/`.
        commands: Commands that tell the name.
        options: Further options of the requests.
        session: The name of a session to record.
        plugin: The source of a plugin to install.
    """

    cwd: str = "."
    files: Mapping[str, str] = field(default_factory=dict)
    commands: tuple[tuple[str, ...], ...] = ()
    options: tuple[str, ...] = ()
    session: str = ""
    plugin: str = ""


PLUGIN = """
from nexus_core import Section, Source, Tool, hookimpl
NAME = {name!a}
@hookimpl
def nexus_static_sections(request, loaded):
    return [Section({id}, title={title}, text={text})]
@hookimpl
def nexus_current_sections(request, loaded):
    return [Section({id}, title={title}, text={text}, kind="event")]
"""


def plugin_section(name: str, wanted: str) -> Named:
    given = {each: "NAME" if each == wanted else repr("plain") for each in ("id", "title", "text")}
    return Named(plugin=PLUGIN.format(name=name, **given), commands=(("explain", "plain"), ("context", "--tree")))


def skill(name: str) -> Named:
    return Named(
        files={SKILL: f"---\nname: s\ndescription: {name}\ncategory: {name}\n---\nGuide.\n"},
        commands=(("skill", "list"), ("skill", "show", "s")),
    )


def server(name: str) -> dict[str, object]:
    return {"servers": [{"name": name, "command": ["true", name], "env": {"A": name}}]}


NAMES: dict[str, Callable[[str], Named]] = {
    "directory": lambda name: Named(cwd=name, files={f"{name}/NEXUS.md": "Be brief.\n", f"{name}/.git/HEAD": "x"}),
    "directory above": lambda name: Named(
        cwd=f"{name}/down",
        files={f"{name}/.git/HEAD": "x", f"{name}/.nexus3/NEXUS.md": "Be brief.\n", f"{name}/down/AGENTS.md": "Yes.\n"},
        commands=(("explain", "Be brief."), ("config", "show", "--origin")),
    ),
    "imported file": lambda name: Named(
        files={"NEXUS.md": f"See @{name}.md now.\n", f"{name}.md": "Imported.\n"}, commands=(("explain", "Imported."),)
    ),
    "instruction file": lambda name: Named(
        files={
            SETTINGS: json.dumps({"context": {"instruction_files": [f"{name}.md", "AGENTS.md"]}}),
            f"{name}.md": "Be brief.\n",
            "AGENTS.md": "Be thorough.\n",
        },
        commands=(("config", "validate"), ("config", "show")),
    ),
    "skill directory": lambda name: Named(
        files={f".nexus3/skills/{name}/SKILL.md": "---\ndescription: x\n---\nGuide.\n"}, commands=(("skill", "list"),)
    ),
    "skill name": lambda name: Named(
        files={SKILL: f"---\nname: {name}\ndescription: x\n---\n"}, commands=(("skill", "list"),)
    ),
    "skill description": skill,
    "skill asked for": lambda name: Named(
        files={SKILL: "---\nname: s\ndescription: x\n---\n"},
        options=("--role", "worker", "--task", "x", "--skill", name),
    ),
    "server": lambda name: Named(
        files={SERVERS: json.dumps(server(name))}, commands=(("mcp", "list"), ("trust", "status"), ("config", "show"))
    ),
    "server as a list": lambda name: Named(
        files={
            SERVERS: json.dumps(server(name)),
            "home/config.json": json.dumps({"plugins": {"mcp": {"form": "bullets"}}}),
        },
    ),
    "shadowing server": lambda name: Named(
        files={SERVERS: json.dumps(server(name)), "home/mcp.json": json.dumps(server(name))},
        commands=(("mcp", "list"),),
    ),
    "model": lambda name: Named(
        files={SETTINGS: json.dumps({"provider": {"model": name}, "models": {name: {"context_window": 9000}}})},
        commands=(("tokens", "--model", name, SETTINGS), ("config", "show")),
    ),
    "renderer": lambda name: Named(files={SETTINGS: json.dumps({"renderer": name})}),
    "role": lambda name: Named(options=("--role", name)),
    "task": lambda name: Named(options=("--role", "worker", "--task", name)),
    "platform": lambda name: Named(options=("--platform", name, "--action", name)),
    "fact": lambda name: Named(options=("--data", f"{name}={name}")),
    "permission": lambda name: Named(options=("--permissions", name)),
    "denied tool": lambda name: Named(files={SETTINGS: json.dumps({"permissions": {"tools": {"deny": [name]}}})}),
    "setting": lambda name: Named(
        files={SETTINGS: json.dumps({"plugins": {name: {name: name}}})}, commands=(("config", "show"),)
    ),
    "wrong setting": lambda name: Named(files={SETTINGS: json.dumps({name: 1})}, commands=(("config", "validate"),)),
    "branch of git": lambda name: Named(
        files={
            ".git/HEAD": f"ref: refs/heads/{name}\n",
            "home/config.json": json.dumps({"plugins": {"environment": {"git": True}}}),
        }
    ),
    "persona": lambda name: Named(files={".nexus3/SOUL.md": f"- **Name:** {name}\nBe kind.\n"}),
    "session": lambda name: Named(
        session=name,
        commands=(*SESSION_LOOKS, ("session", "show", name), ("session", "export", name), ("ledger", "verify")),
    ),
    "ledger": lambda name: Named(commands=(("session", "list", "--ledger", f"{name}.db"),)),
    "section": lambda name: plugin_section(name, "title"),
    "section id": lambda name: plugin_section(name, "id"),
    "text of a section": lambda name: plugin_section(name, "text"),
    "file that is counted": lambda name: Named(files={f"{name}.md": "x"}, commands=(("tokens", f"{name}.md"),)),
    "argument": lambda name: Named(commands=((name,), ("show", f"--{name}"), ("session", "show", name))),
}
CASES = [pytest.param(kind, character, id=f"{kind}: {character}") for kind, character in product(NAMES, HIDDEN)]


@pytest.mark.acceptance("T14", "T15")
@pytest.mark.parametrize(("kind", "character"), sampled(CASES, one_in=11))
def test_hidden_character_in_a_name_is_never_shown(
    *,
    cli: Cli,
    install_plugin: InstallPlugin,
    monkeypatch: pytest.MonkeyPatch,
    work: Path,
    nexus_home: Path,
    kind: str,
    character: str,
) -> None:
    named = NAMES[kind](f"na{HIDDEN[character]}me")
    prepare(named, work, nexus_home, install_plugin)
    monkeypatch.chdir(work / named.cwd)
    shown = {}

    for command in (*LOOKS, *named.commands):
        outcome = cli(*command)
        shown[command] = outcome.out + outcome.err
        assert outcome.code in {0, 1, 2, 3}
    for renderer in ("labelled", "tagged"):
        chosen = () if kind == "renderer" else ("--renderer", renderer)
        outcome = cli(*BODY, *named.options, *chosen)
        shown[(renderer,)] = outcome.out + outcome.err
        assert [text for text in texts_in(outcome.out) if not is_plain(text)] == []

    assert {command: text for command, text in shown.items() if not is_plain(text) or "\x1b" in text} == {}
    assert not any("Traceback" in text or "unexpected " in text for text in shown.values())


def prepare(named: Named, work: Path, home: Path, install_plugin: InstallPlugin) -> None:
    for path, content in named.files.items():
        own = path.startswith("home/")
        place = os.fsencode((home if own else work) / path.removeprefix("home/"))
        os.makedirs(os.path.dirname(place), exist_ok=True)  # noqa: PTH103, PTH120 - a name need not be text
        with open(place, "wb") as file:  # noqa: PTH123 - as above
            file.write(content.encode("utf-8", "surrogateescape"))
    (work / named.cwd).mkdir(parents=True, exist_ok=True)
    if named.plugin:
        install_plugin("odd", named.plugin)
    if named.session:
        with Nexus(work, home=home) as nexus:
            session = nexus.session(named.session)
            session.ask("hello")
            session.record({"role": "assistant", "content": "hello"})


def texts_in(document: str) -> list[str]:
    """Every text of a request that a model reads; none where there is no request."""
    return list(_texts(json.loads(document))) if document.startswith("{") else []


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    children = [*value, *value.values()] if isinstance(value, dict) else value if isinstance(value, list) else []
    return [text for child in children for text in _texts(child)]


def is_plain(text: str) -> bool:
    return not find_hidden(text) and not any("\ud800" <= each <= "\udfff" for each in text)
