"""How long Nexus takes to start, beside plain Python, a bare Typer app, `llm` and what others take to be imported.

    python benchmarks/startup.py [-n RUNS] [--quick] [--cache DIR] [--without-peers] [--json FILE]

Prints ratios of CPU time with their goals. Exit code: 0 all goals met, 1 a goal missed, 2 nothing could be measured.
Needs POSIX (`os.wait4`).
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

from benchmarks.measuring.processes import (  # noqa: E402 - after the path is set
    Command,
    clean_environment,
    measure_medians,
    run_program,
)
from benchmarks.measuring.reports import Report  # noqa: E402 - as above
from benchmarks.measuring.rows import Comparison, Goal, compare  # noqa: E402 - as above
from benchmarks.measuring.script import Script  # noqa: E402 - as above
from benchmarks.measuring.venvs import Peers, Venv, read_version  # noqa: E402 - as above

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping, Sequence

ACME = ROOT / "examples" / "acme"

PYTHON = "python -c pass"
NAMES = "from nexus_core import Nexus, Section, Session, check, fit, hookimpl, repair"
"""The names that programs and plugins use; `import nexus_core` alone loads none of them."""
IMPORT = "import the names of nexus_core"
BARE = "bare Typer app"
BARE_HELP = "bare Typer app --help"
VERSION = "nexus --version"
HELP = "nexus --help"
SHOW = "nexus show"
ASSEMBLE = "nexus assemble"
ASSEMBLE_MESSAGE = "nexus assemble MSG"
PLUGINS = "nexus plugin list"
LLM = "llm plugins"
LLM_VERSION = "llm --version"
IMPORTS = {
    "langchain-core": ("langchain_core.messages", "AIMessage, HumanMessage, trim_messages"),
    "mcp": ("mcp", "ClientSession, StdioServerParameters"),
    "openai-agents": ("agents", "Agent, Runner, SQLiteSession"),
    "litellm": ("litellm", "completion"),
}
"""By distribution, the module and the names that a program which uses it imports."""
SLOW = {f"import the names of {module}" for module, _ in IMPORTS.values()}
SELDOM = 3
"""What takes seconds is measured once where the rest is measured so many times."""

# The least that Typer can do: whatever Nexus costs above this is its own.
BARE_APP = '''\
import typer

app = typer.Typer()


@app.command()
def hello() -> None:
    """Say hello."""
    typer.echo("hello")
'''
# Python keeps no bytecode of the file it is told to run, so that file is as small as the one pip writes for `nexus`.
BARE_LAUNCHER = """\
import sys
from bare_app import app
if __name__ == '__main__':
    sys.exit(app())
"""

COMPARISONS = (
    Comparison(SHOW, BARE, (Goal("<=", 1.4),)),
    Comparison(PLUGINS, BARE, (Goal("<=", 1.4),)),
    Comparison(ASSEMBLE, BARE, (Goal("<=", 2),)),
    Comparison(ASSEMBLE_MESSAGE, BARE, (Goal("<=", 2),)),
    Comparison(SHOW, PYTHON, (Goal("<=", 6, "P5"),)),
    Comparison(LLM, SHOW, (Goal(">=", 4),)),
    Comparison(LLM, PLUGINS, (Goal(">=", 5, "P5"), Goal(">=", 4))),
    Comparison(LLM_VERSION, SHOW, (Goal(">=", 8, "P5"),)),
    Comparison(LLM_VERSION, VERSION),
    Comparison(VERSION, PYTHON),
    Comparison(HELP, BARE_HELP, (Goal("<=", 1, "P5"),)),
    Comparison(IMPORT, PYTHON, (Goal("<=", 5, "P6"),)),
    Comparison("import the names of langchain_core.messages", IMPORT, (Goal(">=", 4, "P6"),)),
    Comparison("import the names of mcp", IMPORT, (Goal(">=", 12, "P6"),)),
    Comparison("import the names of agents", IMPORT, (Goal(">=", 25, "P6"),)),
    Comparison("import the names of litellm", IMPORT),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, and return the exit code."""
    script = Script("Measure how long Nexus takes to start, beside its peers.")
    script.runs(15, quick=3)
    script.peers()
    return script.run(measure, argv)


def measure(given: Namespace) -> Report:
    """The ratios, with a peer only where it could be installed."""
    peers: Peers = given.peers
    nexus = peers.nexus()
    found = {name: venv for name in ("llm", *IMPORTS) if (venv := peers.get(name))}
    with tempfile.TemporaryDirectory() as scratch:
        bare = write_bare_app(Path(scratch) / "bare", nexus)
        commands = list_commands(nexus, found, bare, Path(scratch))
        slow = [command for command in commands if command.name in SLOW]
        medians = measure_medians([command for command in commands if command not in slow], given.runs)
        medians |= measure_medians(slow, max(given.runs // SELDOM, 1))
    versions = {"nexusctx": read_version(nexus, "nexusctx"), "typer": read_version(nexus, "typer")}
    return Report(compare(medians, COMPARISONS), versions | peers.versions, peers.missing)


def write_bare_app(directory: Path, venv: Venv) -> str:
    """Write the bare Typer app, compile it, and return its launcher."""
    directory.mkdir()
    (directory / "bare_app.py").write_text(BARE_APP, encoding="utf-8")
    launcher = directory / "bare"
    launcher.write_text(BARE_LAUNCHER, encoding="utf-8")
    run_program(venv.python, "-m", "compileall", "-q", str(directory))
    return str(launcher)


def list_commands(nexus: Venv, peers: Mapping[str, Venv], bare: str, empty: Path) -> list[Command]:
    """What is measured; nothing is in a command's directory and home, except where there must be something to show."""
    work, home = empty / "work", empty / "home"  # side by side: a home in the directory would be refused
    work.mkdir()
    environment = clean_environment() | {
        "NEXUS_HOME": str(home),
        "LLM_USER_PATH": str(home),
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # else it asks the network
    }
    python, script = nexus.python, nexus.script("nexus")

    def command(name: str, *argv: str) -> Command:
        return Command(name, argv, work, environment)

    def acme(name: str, *argv: str) -> Command:
        found = command(name, python, script, *argv, "--home", str(ACME / "home" / ".nexus3"))
        return found._replace(directory=ACME / "company" / "backend" / "auth-service")

    # What is compared stands side by side, to meet the same noise. A program that follows a big one finds the
    # processor's caches cold, so Nexus goes before what it is measured by: never to its own advantage.
    commands = [
        command(HELP, python, script, "--help"),
        command(BARE_HELP, python, bare, "--help"),
        command(VERSION, python, script, "--version"),
        command(IMPORT, python, "-c", NAMES),
        command(PYTHON, python, "-c", "pass"),
        acme(ASSEMBLE_MESSAGE, "assemble", "Why does login fail?"),
        acme(ASSEMBLE, "assemble"),
        acme(SHOW, "show"),
        command(PLUGINS, python, script, "plugin", "list"),
        command(BARE, python, bare),
    ]
    if llm := peers.get("llm"):
        commands += [command(f"llm {each}", llm.python, llm.script("llm"), each) for each in ("plugins", "--version")]
    for name, (module, names) in IMPORTS.items():
        if venv := peers.get(name):
            code = f"from {module} import {names}"
            commands.append(command(f"import the names of {module}", venv.python, "-c", code))
    return commands


if __name__ == "__main__":
    sys.exit(main())
