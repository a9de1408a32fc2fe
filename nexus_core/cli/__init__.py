"""The `nexus` command: entry point, and what all commands share.

run.py             arguments to exit code, the only place where an error becomes a message
root.py            the root command and its table of commands
lazy_group.py      command groups that import a command when it runs
aliases.py         other names of commands and options
context.py         CliContext: console, directory and Nexus of a command, and the exit codes
options.py         options that several commands have
input.py           input files: text, JSON and JSON Lines, from a path or standard input
menu.py            answers to numbered menus at a terminal
output.py          tables, token bars, shares, times and one-line excerpts of messages
session_lookup.py  the ledger and the session that a command names
memory_lookup.py   the memory that a command names, and those that sessions were given
forget_plan.py     what `nexus memory forget` removes, and the proof that it is gone
model_window.py    token counter and context window of a model
request_report.py  an assembled request as text, as an API's request body or as JSON
step_view.py       turns, steps and messages as text and as JSON
commands/          one or two modules per command
"""

import os  # and not `__future__`, which is a module like any other: nothing may be imported before the path is clean
import sys


def main() -> None:
    """Run `nexus` with the arguments of this process and exit."""
    _exit(run_process())


def run_process() -> object:
    """Run `nexus` with the arguments of this process, and return its exit code: an int, or what a SystemExit had."""
    _open_closed_streams()
    _leave_workspace()
    try:
        if sys.argv[1:] == ["--version"]:
            return _print_version()
        import gc

        # Imports make objects that live as long as the process; looking for garbage among them finds none.
        gc.set_threshold(100_000)
        from nexus_core.cli.run import run
    except KeyboardInterrupt:  # most of a short command is spent here
        sys.stderr.write("Error: interrupted\n")
        return 130
    try:
        return run(sys.argv[1:])
    except SystemExit as error:
        return error.code


def _exit(code: object) -> None:
    """Exit the process, at once if daemon threads still run.

    Before Python 3.14, the interpreter ends a daemon thread wherever it is, also inside of an extension module, which
    may abort the process: "FATAL: exception not rethrown".
    """
    threading = sys.modules.get("threading")
    others = (
        [] if threading is None else [each for each in threading.enumerate() if each is not threading.main_thread()]
    )
    if not others or not all(each.daemon for each in others) or not (code is None or isinstance(code, int)):
        sys.exit(code)  # type: ignore[arg-type] # whatever a SystemExit had
    import atexit
    from contextlib import suppress

    atexit._run_exitfuncs()  # noqa: SLF001 - as Python does at this point
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # `run` has reported it
            stream.flush()
    os._exit(code or 0)


def _print_version() -> int:
    from nexus_core._version import __version__

    try:
        sys.stdout.write(f"nexus {__version__}\n")
        sys.stdout.flush()
    except OSError as error:  # Python would try again while exiting, and complain
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0 if isinstance(error, BrokenPipeError) else 3
    return 0


def _open_closed_streams() -> None:
    # `nexus … >&-`: Python then has None where other code expects a file, and the next file that is opened would get
    # its descriptor. In this order each gets its own again, because the lowest free one is always taken.
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123 - open until the end


def _leave_workspace() -> None:
    # `python -m`, or an empty part of PYTHONPATH, puts the current directory before the standard library. It is a
    # project's directory, and a file called json.py in it must not become our json. Behind the standard library it
    # is there because of an installation (`pip install -e .`), and may stay.
    try:
        here = os.path.realpath(os.curdir)
    except OSError:  # it has been deleted; nothing can be imported from it either
        return
    library = os.path.dirname(os.__file__)  # noqa: PTH120 - pathlib is not imported yet, on purpose
    before = sys.path.index(library) if library in sys.path else len(sys.path)
    sys.path[:before] = [entry for entry in sys.path[:before] if entry and os.path.realpath(entry) != here]
