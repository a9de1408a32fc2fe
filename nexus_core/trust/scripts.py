"""Discovery of the program and the project code that a command runs.

If an approval covered only the arguments of a command, the script behind them could be replaced. Arguments name files;
they do not show what a program loads besides (its siblings, a Makefile, the scripts of a package). So a command that
runs code of the workspace is approved with the whole directory of that code. This module finds the files and
directories, `coverage` reads their bytes. Nothing outside the workspace is opened.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import stat
from fnmatch import fnmatch
from itertools import islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

from nexus_core.errors import FileError
from nexus_core.files.places import find_repository_root
from nexus_core.files.read import open_beneath, parts_beneath, read_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

# `--config=run.js`, `lib/a.jar:lib/b.jar`, `src=run.sh,ro`, `@options`, for a shell `true;./run.sh|cat`, and code in an
# argument: `BEGIN{system("sh run")}`
_SEPARATORS = re.compile(r"[=:,@;&|<>(){}\"'`\s]")
# `-I../lib`, `-javaagent:x.jar`: an option and its value in one word
_GLUED_OPTION = re.compile(r"-[A-Za-z](?=[^-=])")
# `server:app`, `my.server`: a module for a program such as uvicorn or celery
_MODULE_REFERENCE = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)(?::[\w.]+(?:\(\))?)?")
# `$PWD/run.sh`, `${workspaceFolder}/run.sh`: the variable is most often the workspace
_VARIABLE = re.compile(r"\$\{?[\w:]++\}?/?")
# `${SCRIPT:-./run.sh}`: without the variable, the default is started
_DEFAULT = re.compile(r"\$\{(?>(?:[^{}:]++|:(?!-))*):-([^{}]*+)\}")
_REFERENCE = re.compile(r"\$\{(?:env:)?([A-Za-z_]\w*)(?::-[^{}]*)?\}")
_GLOB = re.compile(r"[*?\[]")
_EXTENDED_GLOB = re.compile(r"[@!+?*]\([^()]*\)")
# Another process, or this one under another name: its directory is not known before it runs.
_PROCESS_PATH = re.compile(r"/proc/[^/]+/(?:cwd|fd|root|task)\b|/dev/fd/")
# `-m my.server`, `-mmy.server`, `-um my.server`
_MODULE = re.compile(r"-[A-Za-ln-z]*m([\w.]*)")
# Started if a directory is named: `python3 tool`, `node .`
_ENTRIES = ("__main__.py", "index.js")
_ENDINGS = (".js", ".mjs", ".cjs", ".ts", ".py", ".rb", ".pl", ".php", ".lua", ".sh")  # `node server` is server.js
_CODE = frozenset(
    {
        *_ENDINGS,
        *(
            ".bash",
            ".bat",
            ".class",
            ".cmd",
            ".coffee",
            ".dll",
            ".dylib",
            ".exe",
            ".fish",
            ".go",
            ".jar",
            ".jl",
            ".jsx",
        ),
        *(".ksh", ".kts", ".mts", ".cts", ".node", ".phar", ".pm", ".ps1", ".psm1", ".pyc", ".pyd", ".pyw", ".pyz"),
        *(".r", ".rs", ".so", ".tcl", ".tsx", ".wasm", ".war", ".zsh"),
    }
)
_FOR_NODE = frozenset({".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".jsx", ".tsx"})
_FOR_SHELLS = frozenset({".sh", ".bash", ".zsh", ".ksh", ".fish"})
_MAGIC = (b"#!", b"\x7fELF", b"MZ", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe", b"PK\x03\x04")

_SHELLS = frozenset({"ash", "bash", "dash", "fish", "ksh", "sh", "zsh"})
_INTERPRETERS = re.compile(
    r"(?:python|pypy|ruby|perl|php|lua|node|java)[\d.]*w?|nodejs|luajit|deno|bun|tsx|ts-node|jruby|groovy|Rscript|julia"
    r"|pwsh|powershell|osascript|tclsh|wish|expect|elixir|escript|iex|erl|guile|racket|wasmtime|dotnet|mono|wine|cscript"
    r"|source|[gmn]?awk|sed|n?vim?|emacs|ed|gdb|lldb|git|jq|m4|sqlite3|psql|octave|gnuplot|sbcl|clojure|clj|scala|swift"
    r"|kotlin|ocaml|runghc|runhaskell|crystal|nim|zig|dart|raku|xonsh|nu|elvish|busybox|toybox|coffee"
)
# They run, or hand on, files that no word of a command names.
_LISTERS = frozenset({"fd", "find", "ls", "parallel", "run-parts", "xargs"})
# Options of interpreters that are followed by code, which may name what it loads in its own ways.
_INLINE = re.compile(r"-[A-Za-z]*[ce]|-p|-pe|--eval|--print|--exec|-Command|-EncodedCommand")
_SHELL_CODE = re.compile(r"-[A-Za-z]*c")
# They run what a file of the directory defines, whatever that file is called.
_RUNNERS = frozenset(
    {
        *(
            "ant",
            "bazel",
            "bundle",
            "cargo",
            "cmake",
            "composer",
            "deno",
            "docker-compose",
            "doit",
            "dotnet",
            "flask",
            "foreman",
        ),
        *("go", "gmake", "gradle", "hatch", "honcho", "invoke", "just", "lein", "make", "mask", "meson", "mix", "moon"),
        *("mvn", "ninja", "nox", "npm", "nx", "overmind", "pdm", "pipenv", "pixi", "pnpm", "podman-compose", "poetry"),
        *(
            *("behave", "buck2", "cabal", "dart", "devcontainer", "django-admin", "earthly", "fastapi", "flutter"),
            *("gulp", "jest", "lefthook", "mocha", "nodemon", "phpunit", "pre-commit", "rails", "rspec", "scala-cli"),
            *("scons", "ts-mocha", "vite", "vite-node", "vitest", "wrangler", "zig"),
            "nose2",
            "py.test",
            "pytest",
            "rake",
            "rye",
            "sbt",
            "stack",
            "task",
            "tilt",
            "tox",
            "turbo",
            "uv",
            "yarn",
            "bun",
        ),
    }
)
# The same, but their names are also ordinary words: only as the program itself.
_NAMED_RUNNERS = frozenset(
    {
        *("act", "asdf", "bb", "conda", "dagger", "direnv", "dune", "electron", "mamba", "micromamba", "mise"),
        *("nest", "next", "nix", "nix-shell", "opam", "robot", "swift", "terraform", "tofu", "waf"),
    }
)
# They prefer a package installed in the directory over fetching it, from where its settings say.
_FETCHERS = frozenset({"bunx", "npx", "pipx", "pnpx", "uvx"})
_FETCHING_RUNNERS = frozenset({"bun", "npm", "pnpm", "uv", "yarn"})
_FETCHER_WORDS = frozenset({"dlx", "exec", "tool", "x"})  # `pnpm dlx`, `npm exec`, `uv tool run`, `bun x`
# A directory after one of these is the package itself: `uvx --from . server`, `npx -p ./package tool`.
_PACKAGE_OPTIONS = frozenset({"--from", "--spec", "--with", "--with-editable", "--editable", "-e", "-p", "--package"})
_FETCHER_FILES = (".npmrc", ".yarnrc.yml", "bunfig.toml", "pip.conf", "uv.toml")
_CONTAINERS, _BUILDS = frozenset({"docker", "podman", "nerdctl"}), frozenset({"build", "compose"})
# Modules of `python -m` that look for code in the directory.
_TEST_MODULES = frozenset({"build", "coverage", "doctest", "flask", "nose2", "nox", "pip", "pytest", "tox", "unittest"})
# `-v ./src:/app:ro`, `--mount type=bind,src=./src,dst=/app`
_VOLUME = re.compile(r"([^:,]+):(/[^:]*)(?::[\w,]*)?")
_VOLUME_OPTION = re.compile(r"\A(?:--?[a-z][a-z-]*=|-v)")
_MOUNT_SOURCE = re.compile(r"(?:^|,)(?:src|source)=([^,]+)")
_MOUNT_TARGET = re.compile(r"(?:^|,)(?:dst|destination|target)=([^,]+)")
_COMMAND_SEPARATORS = frozenset({"&&", "||", ";", "|", "&", "then", "do", "else", "(", "{", "!"})
_DIRECTORY_COMMANDS = frozenset({"cd", "chdir", "pushd"})
_DIRECTORY_OPTIONS = frozenset(
    {*_DIRECTORY_COMMANDS, "-C", "--chdir", "--cwd", "--dir", "--directory", "--prefix", "--project", "--workdir"}
)
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
# `$(dirname "$0")`, `${0%/*}`, `$(cd "$(dirname "$0")" && pwd)`: the directory of a script
_OWN_DIRECTORY = re.compile(
    r"\$\(\s*dirname\s+(?:--\s+)?[\"']?\$\{?(?:0|BASH_SOURCE)(?:\[0\])?(?::-\$0)?\}?[\"']?\s*\)|\$\{(?:0|BASH_SOURCE(?:\[0\])?)%/\*\}"
)
_PRINTED_DIRECTORY = re.compile(
    r"\$\(\s*+cd\s++(?:-P\s++)?[\"']?([^\"'$`()&;]++)[\"']?\s*+(?:&&|;)\s*+pwd(?:\s++-P)?\s*+\)"
)
_KNOWN_VARIABLE = re.compile(r"\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))")
# What a script is given: the words of the command, which are read themselves.
_POSITIONAL = re.compile(r"\$(?:[@*#?0-9]|\{[@*0-9][^{}]*\})")
_BRACES = re.compile(r"\{[^{}]*(?:,|\.\.)[^{}]*\}")
# Variables whose values name directories that code is loaded from, besides files.
_LOADERS = re.compile(
    r"PATH|HOME|ENV|BASH_ENV|ZDOTDIR|CLASSPATH|CONDA_PREFIX|PHPRC|PHP_INI_SCAN_DIR|RUSTC_WRAPPER|VIRTUAL_ENV|AWKPATH"
    r"|CDPATH|FPATH|GCONV_PATH|OCAMLPATH|PSModulePath|SHELL|EDITOR|VISUAL|PAGER"
    r"|(?:PYTHON|NODE_|LD_|DYLD_|RUBY|PERL|LUA_|R_|GO|CARGO_|GEM_|BUNDLE_|GIT_|JAVA_|_JAVA_|JDK_|DENO_|BUN_|UV_|PIP_|XDG_"
    r"|DOTNET_|npm_config_|NPM_CONFIG_|TCL|MAKE|OPENSSL_|QT_|GTK_|GIO_|GST_|VIM|EMACS|JULIA_|GUILE_|ERL_|FLASK_|DJANGO_"
    r"|UVICORN_|CELERY_)\w*"
    r"|(?>\w*?(?:LIB|LOAD|MODULE|PLUGIN|CLASS|INCLUDE|SCRIPT|EXTENSION))\w*+(?:(?<=PATH)|(?<=DIR)|(?<=PATHS)|(?<=DIRS))"
)
_PACKAGE = (
    "package.json",
    "pyproject.toml",
    "setup.py",
    "Cargo.toml",
    "go.mod",
    "composer.json",
    "Gemfile",
    "deno.json",
)
_TASKS = (
    *_PACKAGE,
    "Makefile",
    "makefile",
    "GNUmakefile",
    "justfile",
    "Justfile",
    "Taskfile.yml",
    "Rakefile",
    "pom.xml",
)
_PROGRAM_DIRECTORIES, _LIBRARY_DIRECTORIES = frozenset({"bin", "sbin"}), ("lib", "lib32", "lib64", "libexec")
_MAX_SCRIPT_BYTES = 32 * 1024  # of all shell scripts that are parsed
# With these, Python does not see the variable that keeps it from the bytecode beside a module.
_ISOLATED = re.compile(
    r"-[A-Za-z]*[EI][A-Za-z]*|--ignore-environment|unset|sudo|su|runuser|doas|.*PYTHONPYCACHEPREFIX.*"
)

_MAX_DIRECTORIES = 8  # directories of a command in which its other arguments are searched
_MAX_WORDS = 2_000  # of a command, and of a variable
_MAX_DIRECTORY_ENTRIES = 2_000  # of a directory, for a glob
_FIRST_BYTES = 256
_MAX_PATH_CHARACTERS = 4_096
_MAX_PATTERNS = 64
_MAX_NAMES = 32  # of a module, and of packages that are run instead of being fetched
_MAX_INTERPRETERS = 4  # one script interpreted by the next


class CommandWorkspace(NamedTuple):
    """Directories of a command: its project, its working directory, and the limit of what is read.

    Attributes:
        root: The directory of the project, without links.
        cwd: The directory in which the command is started.
        limit: Nothing outside it is read: the repository of the project, or else the project.
    """

    root: Path
    cwd: Path
    limit: Path

    @classmethod
    def of(cls, root: Path, cwd: object) -> CommandWorkspace:
        """Return the directories for a command with this `cwd` setting. Without one it is started in the root."""
        real = Path(os.path.realpath(root))
        # `${workspaceFolder}/tools` means the workspace.
        named = _VARIABLE.sub("", _DEFAULT.sub(r"\1", cwd)) if isinstance(cwd, str) else ""
        return cls(real, real / named if _may_be_path(named) else real, find_repository_root(real) or real)


class ProjectCode(NamedTuple):
    """The code of a workspace that a command runs. Names are relative to the limit of its workspace.

    Attributes:
        files: Files that the command names.
        trees: Directories whose files all belong to a program that is run; "" is the limit itself.
        with_bytecode: True if the bytecode beside modules is run too, because nothing can keep Python from it.
    """

    files: tuple[str, ...] = ()
    trees: tuple[str, ...] = ()
    with_bytecode: bool = False


def find_executable(program: str, place: CommandWorkspace, search_path: object = None) -> str | None:
    """Return the absolute path of what `program` would start, or None if it is not found.

    Args:
        program: A name to search for, or a path relative to the working directory or the root of `place`.
        place: The directories of the command.
        search_path: The PATH that the command sets for itself; anything but a string means that of this process.
    """
    if not _may_be_path(program):
        return None
    if Path(program).name != program:
        found = shutil.which(str(place.cwd / program)) or shutil.which(str(place.root / program))
    else:
        path = search_path if isinstance(search_path, str) else os.environ.get("PATH", os.defpath)
        # A relative entry is relative to where the program is started; an empty one is that directory.
        named = dict.fromkeys(path.split(os.pathsep))
        entries = (str(place.cwd / entry) for entry in named if not entry or _may_be_path(entry))
        found = shutil.which(program, path=os.pathsep.join(entries))
    return found and os.path.abspath(found)  # noqa: PTH100 - the path as it is called, links not resolved


def find_code(
    command: Sequence[str],
    place: CommandWorkspace,
    *,
    executable: str | None = None,
    variables: Mapping[str, str] | None = None,
    env_file: str = "",
) -> ProjectCode:
    """Return the files and directories inside the limit of `place` that a command runs or names.

    Args:
        command: The program and its arguments.
        place: The directories of the command.
        executable: The path of the program, from `find_executable`.
        variables: The environment that the command sets for itself.
        env_file: The file with further variables, "" if none.
    """
    search = _CodeSearch(place, variables or {})
    search.read_command(command)
    if executable:
        search.add_program(executable)
    search.read_variables(variables or {})
    if env_file:
        search.read_variable_file(env_file)
    outermost: list[str] = []
    for tree in sorted(search.trees - search.hidden_trees, key=lambda each: [*each.split("/")] if each else []):
        if not outermost or not _is_within(tree, outermost[-1]):
            outermost.append(tree)
    trees = (*outermost, *sorted(search.hidden_trees))
    return ProjectCode(tuple(sorted(search.files)), trees, search.with_bytecode)


class _CodeSearch:
    """Collects the files and directories of one command."""

    def __init__(self, place: CommandWorkspace, variables: Mapping[str, str]) -> None:
        self._place = place
        self._path = variables.get("PATH")
        self._limit = str(place.limit)
        self._start_directories = tuple(dict.fromkeys((str(place.cwd), str(place.root))))
        self._search_directories = self._start_directories
        self._interpreted = 0
        self._in_shell = False
        self._script_bytes_left = _MAX_SCRIPT_BYTES
        self._patterns = 0
        self._tokens_read: dict[tuple[str, bool, tuple[str, ...]], bool] = {}
        self._programs: set[str] = set()
        self.files: set[str] = set()
        self.trees: set[str] = set()
        self.hidden_trees: set[str] = set()  # they are left out of the trees around them
        self.with_bytecode = False

    def read_command(self, command: Sequence[str]) -> None:
        """Add the files that a command names, and those that it is known to run besides."""
        tokens = self._limit_words(token for word in command for token in _split_argument(word))
        if command and _get_program_name(command[0]) in _CONTAINERS:
            tokens = self._map_mounts(tokens)
        entered = self._list_entered_directories(tokens)
        named = (path for token in dict.fromkeys(tokens) for path in self._directories(token))
        self._search_directories = tuple(
            dict.fromkeys((*self._start_directories, *entered, *islice(named, _MAX_DIRECTORIES)))
        )
        self._in_shell = any(_get_program_name(token) in _SHELLS for token in tokens[:1])
        self._read_words(tokens, entered or [str(self._place.cwd)])

    def _read_words(self, tokens: Sequence[str], starts: Sequence[str], *, is_script: bool = False) -> None:
        """Add the files that the words of a command run.

        Args:
            tokens: The words.
            starts: The directories in which its programs are started.
            is_script: True for a line of a script, in which many variables do not concern programs.
        """
        is_first = True  # a program is expected
        expects_operand = False  # an interpreter has been named, but not yet what it interprets
        name = first = shell = ""
        for index, token in enumerate(tokens):
            program, following = _get_program_name(token), tokens[index + 1 : index + 1 + _MAX_NAMES]
            is_program = is_first and not _is_setting(token)
            is_run = expects_operand or is_program
            if is_program:
                first, is_first, name = program, False, program
                shell = program if program in _SHELLS else shell
            if is_program or first not in _CONTAINERS:
                # Also after `timeout 60`, `flock lock` and the like: no list of them is complete.
                self._read_launcher(program, following, starts, is_program=is_program)
            found = self._read_token(token, is_operand=expects_operand)
            if expects_operand and not found and name not in _SHELLS:
                self._read_option_directories(token)
            expects_operand = expects_operand and not found
            if _INTERPRETERS.fullmatch(program) or program in _SHELLS or (is_program and token == "."):  # noqa: S105
                expects_operand, name = True, program
            if is_program and program in _SHELLS and tokens[max(index - 1, 0)] == "|":  # its code may be anything
                self._add_trees((*self._start_directories, *starts))
            is_code = name in _SHELLS and _SHELL_CODE.fullmatch(token) is not None
            expects_operand = expects_operand and not is_code
            if is_code or " " in token:  # a script, or its words follow
                is_first = True
                continue
            is_first = is_first or token in _COMMAND_SEPARATORS
            if is_script:
                is_unknown = not found and is_run and _is_unknown_word(token)
            else:
                is_unknown = bool(shell) and not found and _is_expansion(token, is_operand=expects_operand)
            if is_unknown or program in _LISTERS or _PROCESS_PATH.search(token) or (is_program and program == "eval"):
                self._add_trees((*self._start_directories, *starts))
            self._read_option(token, name, following, starts)

    def _read_option(self, token: str, name: str, following: Sequence[str], starts: Sequence[str]) -> None:
        """Add what a word that is not a path means: a variable, code in an argument, a module."""
        if match := _ASSIGNMENT.fullmatch(token):
            self.read_variables({match[1]: match[2]})
        if _INLINE.fullmatch(token) and _INTERPRETERS.fullmatch(name):
            self._add_trees(starts)
        if token.startswith("--test") and name in {"node", "nodejs"}:  # runs every test that it finds
            self._add_trees(starts)
        is_cleared = name == "env" and token in {"-", "-i"}
        self.with_bytecode = self.with_bytecode or is_cleared or bool(_ISOLATED.fullmatch(token))
        if match := _MODULE.fullmatch(token):
            module = match[1] or next(iter(following), "")
            self._read_module(module)
            self._add_trees(starts if module.partition(".")[0] in _TEST_MODULES else ())
        elif match := _MODULE_REFERENCE.fullmatch(token.rpartition("=")[2]):
            self._read_module(match[1])

    def _limit_words(self, words: Iterable[str]) -> list[str]:
        """Return at most `_MAX_WORDS` words. A command with more of them counts with its whole directory."""
        found = list(islice(words, _MAX_WORDS + 1))
        if len(found) > _MAX_WORDS:
            self._add_trees(self._start_directories)
        return found[:_MAX_WORDS]

    def read_variables(self, variables: Mapping[str, str]) -> None:
        """Add the files that variables name, and the directories from which they make programs load code."""
        for name, value in variables.items():
            for token in self._limit_words(_split_argument(value)):
                self._read_token(token)
            if not _LOADERS.fullmatch(name):
                continue
            for text in dict.fromkeys(_iter_readings(value)):
                entries = re.split(f"[{re.escape(os.pathsep)},;]", text)
                # An empty entry between two colons means the directory in which the program is started.
                here = "." if len(entries) > 1 and name.endswith("PATH") else ""
                for part in self._limit_words(dict.fromkeys(entry or here for entry in entries if entry or here)):
                    self._add_trees(path for path in self._iter_candidates(part) if os.path.isdir(path))  # noqa: PTH112
                    for path in self._iter_candidates(part):
                        if os.path.isfile(path):  # noqa: PTH113 - never fails
                            self.add_program(path)
                    if match := _MODULE_REFERENCE.fullmatch(part):
                        self._read_module(match[1])

    def read_variable_file(self, name: str) -> None:
        """Add a file with variables, and the files it names. Its values are read, never stored."""
        for part in _iter_readings(name):
            for path in self._iter_candidates(part):
                inside = self._relative_to_limit(os.path.realpath(path))
                if inside is None or not os.path.isfile(path):  # noqa: PTH113 - never fails
                    continue
                self.files.add(inside)
                try:
                    data = read_bytes(Path(self._limit, inside)) or b""
                except FileError:
                    continue
                lines = data.decode("utf-8", "replace").splitlines()
                pairs = (line.strip().removeprefix("export ").partition("=") for line in lines)
                self.read_variables({key.strip(): value.strip().strip("\"'") for key, _, value in pairs})

    def add_program(self, path: str) -> None:
        """Add a program that is run: the file, the directory it belongs to, and its interpreter."""
        real = os.path.realpath(path)
        inside = self._add_file(path)
        if inside is None:  # outside; but a link to an interpreter may be in a virtual environment
            environment = _find_environment(os.path.normpath(path))
            self._add_trees([environment] if environment else [])
            return
        if inside in self._programs:
            return
        self._programs.add(inside)
        self._add_trees([self._find_program_directory(real)])
        self._add_manifests(real)
        folder, name = os.path.split(os.path.dirname(real))  # noqa: PTH120 - names
        if name in _PROGRAM_DIRECTORIES:  # `$ORIGIN/../lib`, `$FindBin::Bin/../lib`
            libraries = (os.path.join(folder, each) for each in _LIBRARY_DIRECTORIES)  # noqa: PTH118 - names
            self._add_trees(path for path in libraries if os.path.isdir(path))  # noqa: PTH112
        self._read_first_line(inside)
        if os.path.splitext(inside)[1].lower() in _FOR_NODE or b"node" in self._first_bytes(inside).partition(b"\n")[0]:  # noqa: PTH122
            # Node searches packages in every directory above it.
            self._add_trees(path for level in self._iter_levels(real) if os.path.isdir(path := f"{level}/node_modules"))  # noqa: PTH112
        if self._is_shell_script(inside):
            self._read_shell_script(inside)

    def _is_shell_script(self, inside: str) -> bool:
        first = os.fsdecode(self._first_bytes(inside).partition(b"\n")[0])
        named = first.startswith("#!") and not _SHELLS.isdisjoint(map(_get_program_name, first[2:].split()))
        is_bare = self._in_shell and not first.startswith("#!")
        return named or is_bare or os.path.splitext(inside)[1].lower() in _FOR_SHELLS  # noqa: PTH122

    def _read_shell_script(self, inside: str) -> None:
        """Add what a shell script starts in turn. What cannot be read is covered by the whole project."""
        folder = os.path.join(self._limit, os.path.dirname(inside))  # noqa: PTH118, PTH120 - names
        starts = [str(self._place.cwd), folder]
        try:
            data = read_bytes(Path(self._limit, inside), max_bytes=self._script_bytes_left) or b""
        except FileError:  # longer than what is parsed
            self._add_trees((*self._start_directories, folder))
            return
        self._script_bytes_left -= len(data)
        before = self._search_directories
        self._search_directories = tuple(dict.fromkeys((*before, folder, os.path.dirname(folder))))  # noqa: PTH120 - names
        known = {"PWD": str(self._place.cwd)}
        for line in data.decode("utf-8", "replace").replace("\\\n", " ").splitlines():
            words = _split_argument(_expand_known(line.strip(), known, folder))
            if not words or words[0].startswith("#"):
                continue
            words = words[1:] or words
            known |= {
                match[1]: match[2]
                for word in words
                if (match := _ASSIGNMENT.fullmatch(word)) and not _is_unknown_word(match[2])
            }
            self._enter_directories(words, starts)
            self._read_words(words, starts, is_script=True)
        self._search_directories = before

    def _enter_directories(self, words: Sequence[str], starts: Sequence[str]) -> None:
        """Search in the directories that a line of a script changes to, too."""
        for index, word in enumerate(words):
            if word not in _DIRECTORY_COMMANDS:
                continue
            entered = self._resolve_directories(next((each for each in words[index + 1 :] if each[:1] != "-"), ""))
            if not entered:
                self._add_trees((*self._start_directories, *starts))
            self._search_directories = tuple(dict.fromkeys((*self._search_directories, *entered)))

    def _resolve_directories(self, word: str) -> list[str]:
        """Return the directories of the project that a word for `cd` means, [] if that is not known."""
        if _is_unknown_word(word) or _GLOB.search(word) or not _may_be_path(word):
            return []
        paths = (os.path.join(base, word) for base in self._search_directories)  # noqa: PTH118 - names
        return [path for path in paths if os.path.isdir(path) and self._is_inside(os.path.realpath(path))]  # noqa: PTH112

    def _read_first_line(self, inside: str) -> None:
        """Add the interpreter of a script: `#!./bin/run`, `#!/usr/bin/env run`."""
        data = self._first_bytes(inside)
        if not data.startswith(b"#!") or self._interpreted >= _MAX_INTERPRETERS:
            return
        self._interpreted += 1
        words = os.fsdecode(data[2:].partition(b"\n")[0]).split()
        if words and _get_program_name(words[0]) == "env":
            words = [word for word in words[1:] if word != "-S"]
        program = next((word for word in words if not _is_setting(word)), "")
        if (found := find_executable(program, self._place, self._path)) and self._is_inside(found):
            self.add_program(found)
        self._read_words(words, [str(self._place.cwd)])

    def _read_option_directories(self, token: str) -> None:
        """Add the directories that an option of an interpreter names, as in `-I../lib` and `-cp classes`."""
        glued = _GLUED_OPTION.match(token)
        for text in (token, token[glued.end() :] if glued else ""):
            if text != token:
                self._read_token(text, is_operand=True)
            self._add_trees(path for path in self._directories(text) if text)

    def _map_mounts(self, tokens: Sequence[str]) -> list[str]:
        """Return the words of a command for a container, with paths in its volumes replaced by those of the project."""
        mounts: dict[str, str] = {}
        for token in tokens:
            source, target = _MOUNT_SOURCE.search(token), _MOUNT_TARGET.search(token)
            if source and target:
                mounts[target[1].rstrip("/")] = source[1]
            elif match := _VOLUME.fullmatch(_VOLUME_OPTION.sub("", token)):
                mounts[match[2].rstrip("/")] = match[1]
        mapped = list(tokens)
        for inner, outer in mounts.items():
            mapped = [outer + token[len(inner) :] if token.startswith(f"{inner}/") else token for token in mapped]
        return mapped

    def _read_launcher(self, name: str, rest: Sequence[str], starts: Sequence[str], *, is_program: bool) -> None:
        """Add what a program is known to run without an argument that names it."""
        words = [word for word in rest if not word.startswith("-")]
        first = words[0] if words else ""
        if name == "git" and is_program:  # its aliases and hooks are programs, too
            for start in starts:
                self._add_if_file(f"{start}/.git/config")
                hooks = self._relative_to_limit(os.path.realpath(f"{start}/.git/hooks"))
                self.hidden_trees |= {hooks} if hooks else set()
        if name in _FETCHERS or (name in _FETCHING_RUNNERS and first in _FETCHER_WORDS):
            for place in starts:
                self._read_local_packages(place, words)
            options = [after for option, after in pairwise(rest) if option in _PACKAGE_OPTIONS]
            options += [word.partition("=")[2] for word in rest if word.partition("=")[0] in _PACKAGE_OPTIONS]
            for word in (first, *words[1:2], *options):
                # A name alone is a package to fetch, but `.` and `./package` are directories.
                if "/" in word or word in {".", ".."} or word in options:
                    self._add_trees(filter(_is_package, self._directories(word)))
            if first in _NAMED_RUNNERS:
                self._add_trees(map(self._find_task_directory, starts))
        elif (
            name in _RUNNERS
            or (is_program and name in _NAMED_RUNNERS)
            or (is_program and name in _CONTAINERS and first in _BUILDS)
        ):
            self._add_trees(map(self._find_task_directory, starts))

    def _read_local_packages(self, start: str, words: Iterable[str]) -> None:
        """Add what `npx` would run instead of fetching it, and the settings that decide where to fetch it from."""
        place = os.path.normpath(start)
        while self._is_inside(place):
            for name in _FETCHER_FILES:
                self._add_if_file(os.path.join(place, name))  # noqa: PTH118 - names
            for word in words:
                package = f"@{word[1:].partition('@')[0]}" if word.startswith("@") else word.partition("@")[0]
                folder = os.path.join(place, "node_modules")  # noqa: PTH118 - names
                if package and _may_be_path(package) and ".." not in package:
                    program = os.path.join(folder, ".bin", package.rpartition("/")[2])  # noqa: PTH118 - names
                    if os.path.isfile(program):  # noqa: PTH113 - never fails
                        self.add_program(program)
                    if os.path.isdir(path := os.path.join(folder, package)):  # noqa: PTH112, PTH118 - names
                        self._add_trees([path])
            if place == self._limit:
                return
            place = os.path.dirname(place)  # noqa: PTH120 - a name

    def _read_module(self, module: str) -> None:
        """Add the files that the argument of `-m` may mean, as in `python -m my.server`."""
        names = module.split(".", _MAX_NAMES)
        if not all(names) or len(names) > _MAX_NAMES:
            return
        packages = ["/".join(names[: end + 1]) for end in range(len(names))]
        files = [f"{package}/__init__.py" for package in packages]
        files += [f"{packages[-1]}.py", f"{packages[-1]}/__main__.py"]
        for place in self._search_directories:
            found = [self._add_if_file(f"{place}/{file}") for file in files]
            if any(each is not None for each in found):
                self._add_trees([place])  # every module in there may be imported

    def _read_token(self, token: str, *, is_operand: bool = False) -> bool:
        """Add what a word names. Return True if it names anything that could be run."""
        key = token, is_operand, self._search_directories
        if key in self._tokens_read:
            return self._tokens_read[key]
        if len(token) > _MAX_PATH_CHARACTERS and " " in token:
            return False  # not a path; its words follow
        found = False
        for part in self._limit_words(dict.fromkeys(_iter_parts(token))):
            for path in self._iter_candidates(part):
                found = self._read_path(path, is_operand=is_operand) or found
                if is_operand and part in (token, token.partition("=")[2]):
                    for ending in _ENDINGS:
                        found = self._read_path(path + ending, is_operand=True) or found
            if _GLOB.search(part):
                self._read_pattern(part)
        self._tokens_read[key] = found
        return found

    def _read_path(self, path: str, *, is_operand: bool) -> bool:
        status = _stat_path(path)
        if status is None:
            return False
        if stat.S_ISREG(status.st_mode):
            inside = self._add_file(path)
            if inside is None or is_operand or self._is_code(inside):
                self.add_program(path)
            return True
        if not stat.S_ISDIR(status.st_mode):
            return False
        entries = [self._add_if_file(os.path.join(path, name)) for name in _ENTRIES]  # noqa: PTH118 - names
        if is_operand and any(each is not None for each in entries):
            self._add_trees([path])
            return True
        return False

    def _read_pattern(self, pattern: str) -> None:
        """Add the files that match a glob such as `src/*.js`. With a glob in its directory, add the whole tree."""
        self._patterns += 1
        if self._patterns > _MAX_PATTERNS:
            return
        head, tail = os.path.split(pattern)
        for place in self._search_directories:
            folder = os.path.join(place, head)  # noqa: PTH118 - names
            if _GLOB.search(head):
                self._add_trees([place])
            elif self._is_inside(os.path.realpath(folder)):
                try:
                    with os.scandir(folder) as entries:
                        names = [entry.name for entry in islice(entries, _MAX_DIRECTORY_ENTRIES)]
                except (OSError, ValueError):
                    continue
                for name in sorted(names):
                    if fnmatch(name, tail):
                        self._read_path(os.path.join(folder, name), is_operand=False)  # noqa: PTH118 - names

    def _directories(self, token: str) -> Iterator[str]:
        for part in dict.fromkeys(_iter_parts(token)) if len(token) <= _MAX_PATH_CHARACTERS else ():
            for base in self._start_directories:
                path = os.path.join(base, part)  # noqa: PTH118 - much faster than a Path
                status = _stat_path(path)
                if status is not None and stat.S_ISDIR(status.st_mode) and self._is_inside(os.path.realpath(path)):
                    yield path

    def _list_entered_directories(self, tokens: Sequence[str]) -> list[str]:
        """Return the directories that a command changes to before it runs something."""
        found: list[str] = []
        for index, token in enumerate(tokens):
            option, _, value = token.partition("=")
            if option not in _DIRECTORY_OPTIONS:
                continue
            following = (each for each in tokens[index + 1 :] if option not in _DIRECTORY_COMMANDS or each[:1] != "-")
            word = value or next(following, "")
            named = list(self._directories(word))
            if option in _DIRECTORY_COMMANDS:
                # The second of `cd a && cd b` is below the first.
                named += [path for each in found if os.path.isdir(path := os.path.join(each, word))]  # noqa: PTH112, PTH118
                if not named:
                    self._add_trees(self._start_directories)
            found += named
        return list(dict.fromkeys(found))

    def _iter_candidates(self, part: str) -> Iterator[str]:
        for base in self._search_directories if _may_be_path(part) else ():
            yield os.path.join(base, part)  # noqa: PTH118 - much faster than a Path

    def _add_if_file(self, path: str) -> str | None:
        status = _stat_path(path)
        return self._add_file(path) if status is not None and stat.S_ISREG(status.st_mode) else None

    def _add_file(self, path: str) -> str | None:
        """Add a file. Return its name without links, or None if it lies outside. A link to the outside is added."""
        inside = self._relative_to_limit(os.path.realpath(path))
        if inside is not None:
            self.files.add(inside)
        elif (lexical := self._relative_to_limit(_resolve_parent(path))) is not None:
            self.files.add(lexical)
        return inside

    def _add_trees(self, paths: Iterable[str]) -> None:
        for path in paths:
            inside = self._relative_to_limit(os.path.realpath(path))
            if inside is not None:
                self.trees.add(inside)

    def _relative_to_limit(self, real: str) -> str | None:
        """Return a path relative to the limit, or None if it lies outside."""
        if real == self._limit:
            return ""
        names = parts_beneath(self._limit, real)
        return None if names is None else "/".join(names)

    def _is_inside(self, path: str) -> bool:
        return self._relative_to_limit(path) is not None

    def _is_code(self, inside: str) -> bool:
        return os.path.splitext(inside)[1].lower() in _CODE or self._first_bytes(inside).startswith(_MAGIC)  # noqa: PTH122

    def _first_bytes(self, inside: str) -> bytes:
        try:
            descriptor, _ = open_beneath(self._limit, inside.split("/"))
        except (OSError, ValueError):
            return b""
        try:
            return os.read(descriptor, _FIRST_BYTES) if stat.S_ISREG(os.fstat(descriptor).st_mode) else b""
        except OSError:
            return b""
        finally:
            os.close(descriptor)

    def _find_task_directory(self, start: str) -> str:
        """Return the directory of a runner's task file: where it is started, or the nearest above it."""
        level = os.path.realpath(start)
        while self._is_inside(level):
            if any(os.path.lexists(os.path.join(level, name)) for name in _TASKS):  # noqa: PTH118 - names
                return level
            level = os.path.dirname(level)  # noqa: PTH120 - a name
        return start

    def _iter_levels(self, real: str) -> Iterator[str]:
        """Yield the directories from that of a file up to the limit."""
        level = os.path.dirname(real)  # noqa: PTH120 - a name
        while self._is_inside(level):
            yield level
            level = os.path.dirname(level)  # noqa: PTH120 - a name

    def _add_manifests(self, real: str) -> None:
        """Add the files that say what the names in a program mean, in every directory above it."""
        for level in self._iter_levels(real):
            for name in _PACKAGE:
                self._add_if_file(f"{level}/{name}")

    def _find_program_directory(self, real: str) -> str:
        """Return the directory that a program belongs to: its environment, its package, or its own directory."""
        if environment := _find_environment(real):
            return environment
        folder = os.path.dirname(real)  # noqa: PTH120 - a name
        level = folder
        while level != self._limit and self._is_inside(level):
            if any(os.path.lexists(os.path.join(level, name)) for name in _PACKAGE):  # noqa: PTH118 - names
                return level
            level = os.path.dirname(level)  # noqa: PTH120 - a name
        while folder != self._limit and os.path.lexists(f"{folder}/__init__.py"):
            folder = os.path.dirname(folder)  # noqa: PTH120 - a name
        return folder


def _find_environment(program: str) -> str | None:
    """Return the virtual environment that a program is installed in, or None."""
    folder, _ = os.path.split(program)
    environment, name = os.path.split(folder)
    if os.path.lexists(os.path.join(folder, "pyvenv.cfg")):  # noqa: PTH118 - names; Python looks there first
        return folder
    return environment if name and os.path.lexists(os.path.join(environment, "pyvenv.cfg")) else None  # noqa: PTH118


def _is_package(path: str) -> bool:
    return any(os.path.lexists(os.path.join(path, name)) for name in _PACKAGE)  # noqa: PTH118 - names


def _expand_known(line: str, known: Mapping[str, str], folder: str) -> str:
    """Return a line of a script with its own directory and the variables that it has set replaced."""
    line = _OWN_DIRECTORY.sub(lambda _: folder, line)
    line = _PRINTED_DIRECTORY.sub(lambda match: match[1], line)
    line = re.sub(r"\$\(\s*pwd\s*\)|`pwd`", "$PWD", line)
    return _KNOWN_VARIABLE.sub(lambda match: known.get(match[1] or match[2], match[0]), line)


def _is_unknown_word(word: str) -> bool:
    """Return True if only the shell that runs a script can expand the word."""
    rest = _POSITIONAL.sub("", word)
    return "$" in rest or "`" in rest or word.startswith("~") or bool(_BRACES.search(rest))


def _resolve_parent(path: str) -> str:
    folder, name = os.path.split(os.path.normpath(path))
    return os.path.join(os.path.realpath(folder), name)  # noqa: PTH118 - names


def _stat_path(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)  # noqa: PTH116 - much faster than a Path
    except (OSError, ValueError):
        return None


def _is_within(tree: str, other: str) -> bool:
    return tree != other and (not other or tree.startswith(f"{other}/"))


def _get_program_name(token: str) -> str:
    return os.path.basename(token).removesuffix(".exe").removesuffix(".cmd")  # noqa: PTH119 - a name


def _is_setting(token: str) -> bool:
    """Return True if a word before a program sets a variable or is an option of a wrapper."""
    return token.startswith("-") or bool(re.match(r"[A-Za-z_]\w*=", token))


def _is_expansion(token: str, *, is_operand: bool) -> bool:
    """Return True if only the shell can expand the word, and may run the result."""
    if "`" in token or "$(" in token or _EXTENDED_GLOB.search(token):
        return True
    if token.startswith("~") or _BRACES.search(token):
        return True
    if "$" not in token or "://" in token:
        return False
    return is_operand or "/" in token or token.startswith("$") or os.path.splitext(token)[1].lower() in _CODE  # noqa: PTH122


def _split_argument(argument: str) -> list[str]:
    """Return an argument, followed by its words if it has several, as a shell script does."""
    if len(argument.split(maxsplit=1)) < 2:  # noqa: PLR2004 - one word
        return [argument]
    try:
        words = shlex.split(argument)
    except ValueError:  # an unclosed quotation
        words = argument.split()
    # `sub&&python` has no blanks between its words; a word with blanks is a script in a script
    inner = (part for word in words for part in re.split(r"(&&|\|\||;|&|\|)", word) if part)
    return [argument, *(each for part in inner for each in (_split_argument(part) if part != argument else [part]))]


def _iter_readings(text: str) -> Iterator[str]:
    """Yield a text, and its possible meanings after references are replaced."""
    yield text
    if "$" not in text:
        return
    with_defaults = _DEFAULT.sub(r"\1", text)
    yield with_defaults
    yield _REFERENCE.sub(lambda match: os.environ.get(match[1], ""), text)
    yield _VARIABLE.sub("", with_defaults)


def _iter_parts(token: str) -> Iterator[str]:
    """Yield everything in a word that may be a path."""
    if "%" in token:
        yield from _SEPARATORS.split(unquote(token))
    for text in _iter_readings(token):
        yield text
        words = _split_argument(text)[1:] if text != token else []
        for word in (text, *words):
            if word != text:
                yield word
            if _SEPARATORS.search(word):
                yield word.partition("=")[2]
                yield from _SEPARATORS.split(word)


def _may_be_path(text: str) -> bool:
    try:
        return bool(text) and b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:  # a lone surrogate, which no file name has
        return False
