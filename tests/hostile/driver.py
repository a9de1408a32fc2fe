"""Runs every looking command in the current directory, loads it as a program would, and prints, as JSON, what was done
and said.

    python driver.py WORKSPACE OUTSIDE plain|terminal

It imports next to nothing itself: what Nexus needs, Nexus must find, with the workspace in front of it on `sys.path`.
"""

import io
import os
import sys
import time

COMMANDS = (
    ("show",),
    ("show", "--json"),
    ("layers",),
    ("config", "show"),
    ("config", "validate"),
    ("explain", "NEXUS.md"),
    ("trust", "status"),
    ("doctor",),
    ("plugin", "list"),
)

COUNTING = (("assemble", "Hello.", "--json"), ("assemble", "--api", "anthropic"), ("context", "--tree"))
"""What counts tokens takes more memory than everything else: the tables of a tokeniser."""

STARTS = frozenset(
    {
        "os.exec",
        "os.fork",
        "os.forkpty",
        "os.posix_spawn",
        "os.spawn",
        "os.startfile",
        "os.system",
        "pty.spawn",
        "subprocess.Popen",
    }
)
CONNECTIONS = frozenset(
    {
        "socket.__new__",
        "socket.bind",
        "socket.connect",
        "socket.getaddrinfo",
        "socket.gethostbyaddr",
        "socket.gethostbyname",
        "socket.sendmsg",
        "socket.sendto",
        "urllib.Request",
    }
)
# What changes a directory without opening a file in it; the paths come first among the arguments.
CHANGES = frozenset(
    {
        "os.chmod",
        "os.chown",
        "os.link",
        "os.mkdir",
        "os.remove",
        "os.rename",
        "os.rmdir",
        "os.setxattr",
        "os.symlink",
        "os.truncate",
        "os.utime",
    }
)
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class Watch:
    """An audit hook that writes down what nobody who only looks at a directory has to do."""

    def __init__(self, workspace: str, outside: str) -> None:
        self._workspace = os.path.realpath(workspace)
        self._outside = os.path.realpath(outside)
        self._is_busy = False
        self.events: list[dict[str, str]] = []

    def __call__(self, event: str, arguments: tuple[object, ...]) -> None:
        if self._is_busy:  # what the hook itself does
            return
        self._is_busy = True
        try:
            self._look(event, arguments)
        finally:
            self._is_busy = False

    def _look(self, event: str, arguments: tuple[object, ...]) -> None:
        if event in STARTS:
            self._note("start", event, arguments)
        elif event in CONNECTIONS:
            self._note("connection", event, arguments)
        elif event == "ctypes.dlopen":
            self._note("library", event, arguments)
        elif event == "exec":  # what an import does with a module, whether from source or from its cache
            if self._is_below(self._workspace, getattr(arguments[0], "co_filename", None)):
                self._note("import", event, arguments)
        elif event == "import":  # the file is known for extension modules only
            if self._is_below(self._workspace, arguments[1]):
                self._note("import", event, arguments[:2])
        elif event == "open":
            self._look_at_file(arguments)
        elif event in CHANGES and any(self._is_below(self._workspace, path) for path in arguments[:2]):
            self._note("write", event, arguments)

    def watch_descriptors(self) -> None:
        """Look at what was opened below a directory descriptor, which the audit event does not tell."""
        plain_open = os.open

        def watched_open(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
            if dir_fd is None:
                return plain_open(path, flags, mode)
            self._is_busy = True
            try:
                descriptor = plain_open(path, flags, mode, dir_fd=dir_fd)
                opened = os.readlink(f"/proc/self/fd/{descriptor}")  # noqa: PTH115 - as in _is_below
                self._look_at_file((opened, None, flags))
            finally:
                self._is_busy = False
            return descriptor

        if os.path.isdir("/proc/self/fd"):  # noqa: PTH112 - as in _is_below
            os.open = watched_open  # type: ignore[assignment]
            os.supports_dir_fd.add(watched_open)

    def _look_at_file(self, arguments: tuple[object, ...]) -> None:
        path, _, flags = arguments
        if isinstance(flags, int) and flags & WRITING and self._is_below(self._workspace, path):
            self._note("write", "open", arguments)
        elif self._is_below(self._outside, path):
            self._note("outside", "open", arguments)

    @staticmethod
    def _is_below(directory: str, path: object) -> bool:
        if not isinstance(path, str | bytes | os.PathLike) or str(path).startswith("<"):  # no file, or "<string>"
            return False
        try:
            absolute = os.path.abspath(os.fsdecode(path))  # noqa: PTH100 - pathlib is not imported yet, on purpose
            names = (absolute, os.path.realpath(absolute))
        except (OSError, ValueError):
            return False
        return any(name == directory or name.startswith(directory + os.sep) for name in names)

    def _note(self, kind: str, event: str, arguments: tuple[object, ...]) -> None:
        self.events.append({"kind": kind, "event": event, "arguments": repr(arguments)[:300]})

    def note_modules(self) -> None:
        """Whatever way a module of the workspace came in, it is among the modules now."""
        for name, module in sorted(sys.modules.items()):
            file = getattr(module, "__file__", None)
            if self._is_below(self._workspace, file):
                self._note("import", "sys.modules", (name, file))


class Stream(io.StringIO):
    """Standard output or standard error, kept."""

    def __init__(self, *, is_terminal: bool) -> None:
        super().__init__(newline="")
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal


class Yardstick:
    """A clock that runs as fast as the machine: its unit is the processor time of adding up 200,000 numbers."""

    def __init__(self) -> None:
        self._unit = min(self._add_up() for _ in range(3))
        self._started = time.process_time()

    def measure(self) -> float:
        """Return the processor time since the start, in such units."""
        return (time.process_time() - self._started) / self._unit

    def _add_up(self) -> float:
        started = time.process_time()
        sum(number % 7 for number in range(200_000))
        return time.process_time() - started


def run_command(arguments: tuple[str, ...], *, is_terminal: bool) -> dict[str, object]:
    """Run one command as the console script would."""
    from nexus_core.cli import run_process

    out, err = Stream(is_terminal=is_terminal), Stream(is_terminal=is_terminal)
    streams = sys.stdout, sys.stderr
    sys.stdout, sys.stderr, sys.argv = out, err, ["nexus", *arguments]
    clock = Yardstick()
    code: object = "no exit"
    try:
        code = run_process()
    finally:
        sys.stdout, sys.stderr = streams
    return {
        "command": " ".join(arguments),
        "code": code,
        "out": out.getvalue(),
        "err": err.getvalue(),
        "effort": clock.measure(),
    }


def run_library() -> dict[str, object]:
    """Load the directory as a program would that uses Nexus."""
    from nexus_core.context import ContextLoader, PromptLoader
    from nexus_core.errors import NexusError

    clock = Yardstick()
    out, err, code = "", "", 0
    try:
        context = ContextLoader().load()
        child = context.for_subagent(os.pardir, include_ancestors=True)
        out = "\n".join([context.system_prompt, repr(context.layers), repr(context.mcp_servers), child.system_prompt])
        out += repr(context.config.provider) + PromptLoader().load().content
    except NexusError as error:
        err, code = str(error), 3
    return {"command": "a program", "code": code, "out": out, "err": err, "effort": clock.measure()}


def peak_memory() -> int:
    """The most memory that this process ever had, in bytes; 0 where the system does not say."""
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as status:  # noqa: PTH123 - as above
            return next((int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM:")), 0)
    except OSError:
        return 0


def main() -> None:
    """Watch, run, report."""
    workspace, outside, kind = sys.argv[1:]
    sys.path[0] = ""  # as `python -m` has it
    watch = Watch(workspace, outside)
    sys.addaudithook(watch)
    watch.watch_descriptors()
    wanted = COUNTING if kind == "counting" else COMMANDS
    commands = [run_command(arguments, is_terminal=kind == "terminal") for arguments in wanted]
    commands.append(run_library())
    memory = peak_memory()
    commands.append(run_command((), is_terminal=kind == "terminal"))  # which counts tokens, too
    watch.note_modules()
    events = list(watch.events)
    import json

    # ASCII, so that not even half a character in a name is in the way.
    sys.stdout.write(json.dumps({"events": events, "commands": commands, "memory": memory}))


if __name__ == "__main__":
    main()
