"""Draw the pictures of the README: what commands print at a terminal, from files of the repository.

    python scripts/pictures.py [--check]

Writes docs/images/*.svg, one for light and one for dark pages. With --check nothing is written; exit code 1 if a
picture differs from what the commands print now.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
TRANSCRIPT = ROOT / "examples" / "transcripts" / "login-bug.jsonl"
ACME = ROOT / "examples" / "acme"
COLUMNS = 92
CONTEXT_LINES = 28
"""Lines of `nexus context` that are shown; the list of the largest messages goes on."""
THEMES = {"light": "DEFAULT_TERMINAL_THEME", "dark": "SVG_EXPORT_THEME"}
SCRATCH = Path("/tmp/nexus-pictures")  # noqa: S108 - made anew, for its owner alone
"""Always the same, because its name is in the prompt and is counted."""
_STEP = re.compile(r"\b01[0-9A-Z]{24}\b")
_WHITE_FRAME, _GRAY_FRAME = 'stroke="rgba(255,255,255,0.35)"', 'stroke="rgba(128,128,128,0.5)"'
"""The frame that rich draws, which is invisible on a white page, and one for light and dark pages."""


def main() -> int:
    """Draw all pictures, or compare them."""
    parser = argparse.ArgumentParser(description="Draw the pictures of the README.")
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    check = parser.parse_args().check
    drawn = draw_all()
    different = [path for path, svg in drawn.items() if not path.is_file() or path.read_text(encoding="utf-8") != svg]
    if check:
        for path in different:
            print(f"{path.relative_to(ROOT)} is not what the commands print now: python scripts/pictures.py")
        return int(bool(different))
    IMAGES.mkdir(parents=True, exist_ok=True)
    for path in different:
        path.write_text(drawn[path], encoding="utf-8")
        print(path.relative_to(ROOT))
    return 0


def draw_all() -> dict[Path, str]:
    """Return the content of each picture."""
    shutil.rmtree(SCRATCH, ignore_errors=True)
    SCRATCH.mkdir(mode=0o700)
    try:
        shown = {
            "context": ("nexus context ~/.claude/projects/acme/login-bug.jsonl", show_context(SCRATCH)),
            "diff": ("nexus diff auth-bug", show_diff(SCRATCH)),
        }
    finally:
        shutil.rmtree(SCRATCH)
    return {
        IMAGES / f"{name}-{theme}.svg": draw(command, printed, THEMES[theme], f"nexus-{name}-{theme}")
        for name, (command, printed) in shown.items()
        for theme in THEMES
    }


def show_context(scratch: Path) -> str:
    """Return what `nexus context` prints about the example transcript."""
    shutil.copy(TRANSCRIPT, scratch / TRANSCRIPT.name)
    lines = run_nexus(scratch, "context", TRANSCRIPT.name).splitlines()
    return "\n".join(lines[:CONTEXT_LINES]).replace(f"{TRANSCRIPT.name}:", "login-bug.jsonl:")


def show_diff(scratch: Path) -> str:
    """Return what `nexus diff` prints after a file changed in the middle of a session."""
    work, home = scratch / "acme", scratch / "home"
    shutil.copytree(ACME / "company", work)
    shutil.copytree(ACME / "home" / ".nexus3", home)
    service = work / "backend" / "auth-service"
    subprocess.run([sys.executable, "-c", _CONVERSATION, str(service), str(home)], check=True, env=environment(scratch))
    printed = run_nexus(scratch, "--home", str(home), "-C", str(service), "diff", "auth-bug").replace(str(scratch), "~")
    steps = list(dict.fromkeys(_STEP.findall(printed)))  # a step has a new id in every run
    return _STEP.sub(lambda match: f"01KDX7Q2M4V8R6T9B3C5F1H{steps.index(match[0]):03}", printed)


_CONVERSATION = """
import sys
from pathlib import Path
from nexus_core import Nexus

def reply(number, text):
    usage = {"input_tokens": 900, "output_tokens": 12}
    content = [{"type": "text", "text": text}]
    return {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5",
            "content": content, "stop_reason": "end_turn", "usage": usage}

service, home = sys.argv[1:]
with Nexus(service, home=home) as nexus:
    session = nexus.session("auth-bug", model="claude-sonnet-4-5")
    session.ask("Why does login fail?")
    session.record(reply(1, "The clocks of two hosts differ by 1.9 s, and tokens have no leeway."))
    rules = Path(service) / ".nexus3" / "NEXUS.md"
    rules.write_text(rules.read_text() + "\\nTokens may be 5 seconds late.\\n")
    session.reload()
    session.ask("Then allow five seconds.")
    session.record(reply(2, "Done: decode() reads leeway_seconds from the settings."))
"""


def run_nexus(cwd: Path, *arguments: str) -> str:
    """Return what the command prints at a terminal with colours."""
    import pty

    reader, writer = pty.openpty()
    set_size(writer)
    command = [sys.executable, "-m", "nexus_core", *arguments]
    with subprocess.Popen(
        command, cwd=cwd, env=environment(cwd), stdout=writer, stderr=writer, stdin=writer
    ) as process:
        os.close(writer)
        printed = read_all(reader)
    os.close(reader)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{printed}")
    return printed.replace("\r\n", "\n")


def set_size(descriptor: int) -> None:
    """Give a terminal the width of the pictures."""
    import fcntl
    import struct
    import termios

    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", 60, COLUMNS, 0, 0))


def read_all(descriptor: int) -> str:
    """Return everything that is written to a terminal until its last writer leaves."""
    chunks = []
    while True:
        try:
            chunk = os.read(descriptor, 65536)
        except OSError:  # Linux: the other side is closed
            break
        if not chunk:
            break
        chunks.append(chunk)
    return b"".join(chunks).decode()


def environment(home: Path) -> dict[str, str]:
    """Return the variables of a user without settings, at a terminal with colours."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    terminal = {"TERM": "xterm-256color", "COLORTERM": "truecolor", "NEXUS_PAGER": "cat", "PYTHONSAFEPATH": "1"}
    terminal["NEXUS_PLUGINS"] = "none,-environment"  # its facts about the machine would be counted
    return {**kept, **terminal, "HOME": str(home), "XDG_CACHE_HOME": str(home / "cache"), "LC_ALL": "C.UTF-8"}


def draw(command: str, printed: str, theme: str, name: str) -> str:
    """Return a picture of a terminal in which a command was run."""
    from rich import terminal_theme
    from rich.console import Console
    from rich.text import Text

    console = Console(record=True, width=COLUMNS, file=open(os.devnull, "w", encoding="utf-8"), force_terminal=True)  # noqa: PTH123, SIM115 - nothing is written
    console.print(Text.assemble(("$ ", "bold green"), (command, "bold")))
    console.print(Text.from_ansi(printed.rstrip("\n")))
    svg = console.export_svg(title="", theme=getattr(terminal_theme, theme), unique_id=name)
    svg = svg.replace(_WHITE_FRAME, _GRAY_FRAME)
    # Fonts would be loaded from elsewhere.
    return re.sub(r"\s*@font-face \{.*?\}\n|\s*<!-- .*? -->", "\n", svg, flags=re.DOTALL)


if __name__ == "__main__":
    sys.exit(main())
