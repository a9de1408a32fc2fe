"""Somebody follows the README to the letter: a fresh environment, an empty home, no network once it is installed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.contract.test_readme import PLACE, blocks
from tests.dialects.support import listening
from tests.session.wire import says

if TYPE_CHECKING:
    from tests.packaging.conftest import Environment, MakeEnvironment

pytestmark = pytest.mark.slow

# Whatever is run in the environment may talk to this machine and to no other.
_NO_NETWORK = """\
import os, sys

def refuse(event, arguments):
    if event not in ("socket.connect", "socket.getaddrinfo"):
        return
    address = arguments[1] if event == "socket.connect" else arguments
    if isinstance(address, tuple) and address[0] not in ("127.0.0.1", "::1", "localhost"):
        os.write(2, f"no network: {event} {address[0]}\\n".encode())
        os._exit(97)

sys.addaudithook(refuse)
"""
_VARYING = (
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "TIME"),
    (r"(?m)^Operating system: .*$", "Operating system: SYSTEM"),
    (r"Operating system: [^\\]*\\n", r"Operating system: SYSTEM\\n"),
    (r"Architecture: [^\n\\]+", "Architecture: ARCHITECTURE"),
    (r"Host: [^\n\\]+", "Host: HOST"),
    (r"Source: /[^\n]*/defaults/NEXUS\.md", "Source: DEFAULTS"),
    (r"\d[\d,.]*", "N"),  # a longer path has more characters
)


@pytest.fixture(scope="module")
def newcomer(make_environment: MakeEnvironment, core_wheel: Path, checkout: Path) -> Environment:
    """`pip install nexusctx openai`, and the examples of the checkout."""
    environment = make_environment(core_wheel, "openai")
    (environment.site_packages / "sitecustomize.py").write_text(_NO_NETWORK, encoding="utf-8")
    shutil.copytree(checkout / "examples", environment.work / "examples")
    return environment


def typed(environment: Environment, lines: str, **variables: str) -> str:
    """What a shell in the environment shows when these lines are typed."""
    inherited = {name: os.environ[name] for name in ("LANG", "LC_ALL", "TMPDIR") if name in os.environ}
    # As on a terminal, errors and output stand in the order in which they were written.
    told = {
        "PYTHONUNBUFFERED": "1",
        "HOME": str(environment.work),
        "PATH": f"{environment.scripts}:/usr/local/bin:/usr/bin:/bin",
    }
    told |= {"TERM_PROGRAM": "vscode", "TERM": "xterm-256color"}
    finished = subprocess.run(
        ["/bin/sh", "-c", f"exec 2>&1\n{lines}"],
        cwd=environment.work,
        env={**inherited, **told, **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert finished.returncode == 0, finished.stdout
    return finished.stdout


def alike(text: str) -> str:
    """A text without what is another on every machine."""
    for pattern, stands_for in _VARYING:
        text = re.sub(pattern, stands_for, text)
    return text


def said(block: str) -> list[tuple[str, str]]:
    """The commands of a block, each with what the README says it prints; `…` stands for anything."""
    parts = re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
    return [(line, output) for line, _, output in (part.partition("\n") for part in parts)]


@pytest.mark.parametrize("block", blocks("console"), ids=lambda block: block.splitlines()[0])
def test_every_command_prints_what_the_readme_prints(newcomer: Environment, block: str) -> None:
    commands = said(block)
    mark = "=== next ==="
    shown = typed(newcomer, f"\nprintf '{mark}\\n'\n".join(line for line, _ in commands))
    shown = shown.replace(str(newcomer.work / "examples"), f"{PLACE}/examples").replace(str(newcomer.work), "/home/you")

    outputs = shown.split(f"{mark}\n")
    assert len(outputs) == len(commands)
    for (line, expected), output in zip(commands, outputs, strict=True):
        pattern = ".*?".join(map(re.escape, alike(expected).split("…")))
        assert re.fullmatch(pattern, alike(output), re.DOTALL), f"$ {line}\n{output}"


def test_the_commands_of_a_first_look_are_in_the_readme() -> None:
    lines = [line for block in blocks("console") for line, _ in said(block)]
    for line in ("nexus init", "nexus show", 'nexus assemble "hi" --session demo --api anthropic'):
        assert line in lines


def test_the_loop_of_the_readme_asks_a_model_and_keeps_its_answer(newcomer: Environment) -> None:
    (program,) = [block for block in blocks("python") if "session.is_open" in block]
    (newcomer.work / "loop.py").write_text(program, encoding="utf-8")
    with listening() as loopback:
        loopback.answer = says("openai", 1, "The token expires.")
        shown = typed(newcomer, "python loop.py", OPENAI_BASE_URL=loopback.url, OPENAI_API_KEY="none")
    assert shown == "The token expires.\n"
    (body,) = loopback.bodies
    assert body["messages"][-1]["content"].endswith("Why does login fail?")
    assert "The token expires." in typed(newcomer, "nexus session show auth-bug-2")


def test_the_plugin_of_the_readme_is_in_the_prompt(newcomer: Environment) -> None:
    (program,) = [block for block in blocks("python") if "class Motto" in block]
    (newcomer.work / "motto.py").write_text(program, encoding="utf-8")
    assert "## Motto\nMeasure twice in auth-service." in typed(newcomer, "python motto.py")


def test_a_connection_to_another_machine_would_be_noticed(newcomer: Environment) -> None:
    shown = typed(newcomer, """python -c "import socket; socket.create_connection(('192.0.2.1', 80))" || echo $?""")
    assert shown.endswith("97\n")
