"""The program that a command starts, and the code of a workspace that it runs.

An approval that covered the words of a command only would let the script behind them be exchanged. Words name files;
what a program loads besides (its siblings, a Makefile, the scripts of a package) no reader of words can see. So a
command that runs code of the workspace is approved with the whole directory of that code. Here it is found out which
files and directories these are; `coverage` looks at their bytes. Nothing outside the workspace is opened.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import stat
from fnmatch import fnmatch
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.errors import FileError
from nexus_core.files.beneath import names_beneath, open_beneath
from nexus_core.files.reading import read_bytes
from nexus_core.files.repository import repository_root

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

# `--config=run.js`, `lib/a.jar:lib/b.jar`, `src=run.sh,ro`, `@options`, and for a shell `true;./run.sh|cat`
_SEPARATORS = re.compile("[=:,@;&|<>()]")
# `$PWD/run.sh`, `${workspaceFolder}/run.sh`: most often the workspace is meant
_VARIABLE = re.compile(r"\$\{?[\w:]++\}?/?")
# `${SCRIPT:-./run.sh}`: without the variable, the default is what starts
_DEFAULT = re.compile(r"\$\{[^{}]*?:-([^{}]*)\}")
_REFERENCE = re.compile(r"\$\{(?:env:)?([A-Za-z_]\w*)(?::-[^{}]*)?\}")
_GLOB = re.compile(r"[*?\[]")
# `-m my.server`, `-mmy.server`, `-um my.server`
_MODULE = re.compile(r"-[A-Za-ln-z]*m([\w.]*)")
# What starts where a directory is named: `python3 tool`, `node .`
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
    r"|pwsh|powershell|osascript|tclsh|elixir|escript|guile|racket|wasmtime|dotnet|mono|wine|cscript|source"
)
# Their options after which code follows, which names what it loads in ways of its own.
_INLINE = re.compile(r"-[A-Za-z]*[ce]|-p|-pe|--eval|--print|--exec|-Command|-EncodedCommand")
# They run what a file of the directory tells them to, whatever that file is called.
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
            "foreman",
        ),
        *("go", "gmake", "gradle", "hatch", "honcho", "invoke", "just", "lein", "make", "mask", "meson", "mix", "moon"),
        *("mvn", "ninja", "nox", "npm", "nx", "overmind", "pdm", "pipenv", "pixi", "pnpm", "podman-compose", "poetry"),
        *("rake", "rye", "sbt", "stack", "task", "tilt", "tox", "turbo", "uv", "yarn", "bun"),
    }
)
# They run a package that is installed in the directory before they fetch it, from where its settings say.
_FETCHERS = frozenset({"bunx", "npx", "pipx", "pnpx", "uvx"})
_FETCHER_WORDS = frozenset({"dlx", "exec", "tool", "x"})  # `pnpm dlx`, `npm exec`, `uv tool run`, `bun x`
_FETCHER_FILES = (".npmrc", ".yarnrc.yml", "bunfig.toml", "pip.conf", "uv.toml")
_CONTAINERS, _BUILDS = frozenset({"docker", "podman", "nerdctl"}), frozenset({"build", "compose"})
# What follows is the program, as far as these are concerned.
_WRAPPERS = frozenset(
    {*("command", "cross-env", "dotenv", "env", "exec", "nice", "nohup", "setsid", "stdbuf", "sudo", "time", "timeout")}
)
_ENDS_COMMAND = frozenset({"&&", "||", ";", "|", "&", "then", "do", "else", "(", "{", "!"})
_GOES_TO = frozenset({"cd", "pushd", "-C", "--cwd", "--dir", "--directory", "--prefix", "--project", "--workdir"})
# Their values name directories that code is loaded from, besides files.
_LOADERS = re.compile(
    r"PATH|HOME|ENV|BASH_ENV|ZDOTDIR|CLASSPATH|CONDA_PREFIX|PHPRC|PHP_INI_SCAN_DIR|RUSTC_WRAPPER|VIRTUAL_ENV"
    r"|(?:PYTHON|NODE_|LD_|DYLD_|RUBY|PERL|LUA_|R_|GO|CARGO_|GEM_|BUNDLE_|GIT_|JAVA_|_JAVA_|JDK_|DENO_|BUN_|UV_|PIP_|XDG_"
    r"|DOTNET_|npm_config_|NPM_CONFIG_)\w*"
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
_SCRIPT_BYTES = 32 * 1024  # of all scripts for a shell whose words are read
# With these, Python does not learn of the variable that keeps it from the bytecode beside a module.
_ISOLATED = re.compile(
    r"-[A-Za-z]*[EI][A-Za-z]*|--ignore-environment|unset|sudo|su|runuser|doas|.*PYTHONPYCACHEPREFIX.*"
)

_MOST_PLACES = 8  # directories of a command in which the other words are looked for
_MOST_WORDS = 2_000  # of a command, and of a variable
_MOST_ENTRIES = 2_000  # of a directory, for a pattern
_FIRST_BYTES = 256
_LONGEST_PATH = 4_096
_MOST_PATTERNS = 64
_MOST_NAMES = 32  # of a module, and of what is run instead of being fetched
_MOST_INTERPRETERS = 4  # one script interpreted by the next


class CommandWorkspace(NamedTuple):
    """Directories of a command: its project, its working directory, and the limit of what is read.

    Attributes:
        root: The directory of the project, without links.
        cwd: The directory in which the command is started.
        limit: What is looked at must not lie outside of it: the repository of the project, else the project.
    """

    root: Path
    cwd: Path
    limit: Path

    @classmethod
    def of(cls, root: Path, cwd: object) -> CommandWorkspace:
        """The place of a command whose setting `cwd` says this; without one it is started in the root."""
        real = Path(os.path.realpath(root))
        # With `${workspaceFolder}/tools`, the workspace is meant.
        named = _VARIABLE.sub("", _DEFAULT.sub(r"\1", cwd)) if isinstance(cwd, str) else ""
        return cls(real, real / named if _may_be_path(named) else real, repository_root(real) or real)


class ProjectCode(NamedTuple):
    """The code of a workspace that a command runs; names are relative to the limit of its place.

    Attributes:
        files: Files that the command names.
        trees: Directories whose files all belong to a program that is run; "" is the limit itself.
        with_bytecode: Whether the bytecode beside modules is run, too, because nothing can keep Python from it.
    """

    files: tuple[str, ...] = ()
    trees: tuple[str, ...] = ()
    with_bytecode: bool = False


def find_executable(program: str, place: CommandWorkspace, search_path: object = None) -> str | None:
    """The absolute path of what `program` would start, or None when there is nothing to start.

    Args:
        program: A name to look for, or a path; relative to the directory or the root of `place`.
        place: Where it would be started.
        search_path: The PATH that the command sets for itself; else that of this process.
    """
    if not _may_be_path(program):
        return None
    if Path(program).name != program:
        found = shutil.which(str(place.cwd / program)) or shutil.which(str(place.root / program))
    else:
        path = search_path if isinstance(search_path, str) else os.environ.get("PATH", os.defpath)
        # A relative entry counts from where the program is started, not from where we are; an empty one is that place.
        named = dict.fromkeys(path.split(os.pathsep))
        entries = (str(place.cwd / entry) for entry in named if not entry or _may_be_path(entry))
        found = shutil.which(program, path=os.pathsep.join(entries))
    return found and os.path.abspath(found)  # noqa: PTH100 - as it is called: links and all


def find_code(
    command: Sequence[str],
    place: CommandWorkspace,
    *,
    executable: str | None = None,
    variables: Mapping[str, str] | None = None,
    env_file: str = "",
) -> ProjectCode:
    """The files and directories inside the limit of `place` that a command runs or names.

    Args:
        command: The program and its arguments.
        place: Where it is started.
        executable: What the program is, as `find_executable` says.
        variables: The environment that the command sets for itself.
        env_file: The file with further variables, if any.
    """
    search = _Search(place, variables or {})
    search.read_command(command)
    if executable:
        search.add_program(executable)
    search.read_variables(variables or {})
    if env_file:
        search.read_variable_file(env_file)
    outermost: list[str] = []
    for tree in sorted(search.trees, key=lambda each: [*each.split("/")] if each else []):
        if not outermost or not _is_within(tree, outermost[-1]):
            outermost.append(tree)
    return ProjectCode(tuple(sorted(search.files)), tuple(outermost), search.with_bytecode)


class _Search:
    """Collects the files and directories of one command."""

    def __init__(self, place: CommandWorkspace, variables: Mapping[str, str]) -> None:
        self._place = place
        self._path = variables.get("PATH")
        self._limit = str(place.limit)
        self._usual = tuple(dict.fromkeys((str(place.cwd), str(place.root))))
        self._places = self._usual
        self._interpreted = 0
        self._in_shell = False
        self._left = _SCRIPT_BYTES
        self._patterns = 0
        self._tokens_read: dict[tuple[str, bool, tuple[str, ...]], bool] = {}
        self._programs: set[str] = set()
        self.files: set[str] = set()
        self.trees: set[str] = set()
        self.with_bytecode = False

    def read_command(self, command: Sequence[str]) -> None:
        """Add what the words of a command name, and what they are known to run besides."""
        tokens = self._limited(token for word in command for token in _tokens(word))
        gone_to = self._directories_gone_to(tokens)
        named = (path for token in dict.fromkeys(tokens) for path in self._directories(token))
        self._places = tuple(dict.fromkeys((*self._usual, *gone_to, *islice(named, _MOST_PLACES))))
        self._in_shell = any(_program_name(token) in _SHELLS for token in tokens[:1])
        self._read_words(tokens, gone_to or [str(self._place.cwd)])

    def _read_words(self, tokens: Sequence[str], starts: Sequence[str], *, is_script: bool = False) -> None:
        """Add what the words of a command run.

        Args:
            tokens: The words.
            starts: The directories in which its programs are started.
            is_script: Whether they are a line of a script, in which many variables have nothing to do with programs.
        """
        is_first = True  # whether a program is expected
        waits = False  # whether an interpreter has been named, and not yet what it interprets
        name = shell = ""
        for index, token in enumerate(tokens):
            program = _program_name(token)
            if is_first and not _is_setting(token):
                self._read_launcher(program, tokens[index + 1 : index + 1 + _MOST_NAMES], starts)
                is_first, name = program in _WRAPPERS, program
                shell = program if program in _SHELLS else shell
            found = self._read_token(token, is_operand=waits)
            waits = waits and not found
            if _INTERPRETERS.fullmatch(program) or program in _SHELLS:
                waits, name = True, program
            if " " in token:  # a script, whose words follow
                is_first = True
                continue
            is_first = is_first or token in _ENDS_COMMAND
            if shell and not is_script and not found and _is_expansion(token, is_operand=waits):
                self._add_trees((str(self._place.cwd), *starts))
            if _INLINE.fullmatch(token) and _INTERPRETERS.fullmatch(name):
                self._add_trees(starts)
            is_cleared = name == "env" and token in {"-", "-i"}
            self.with_bytecode = self.with_bytecode or is_cleared or bool(_ISOLATED.fullmatch(token))
            if match := _MODULE.fullmatch(token):
                self._read_module(match[1] or next(iter(tokens[index + 1 : index + 2]), ""))

    def _limited(self, words: Iterable[str]) -> list[str]:
        """As many words as are looked at; of a program with more of them, the whole directory counts."""
        found = list(islice(words, _MOST_WORDS + 1))
        if len(found) > _MOST_WORDS:
            self._add_trees(self._usual)
        return found[:_MOST_WORDS]

    def read_variables(self, variables: Mapping[str, str]) -> None:
        """Add the files that variables name, and the directories that code is loaded from because of them."""
        for name, value in variables.items():
            for token in self._limited(_tokens(value)):
                self._read_token(token)
            if not _LOADERS.fullmatch(name):
                continue
            for text in dict.fromkeys(_readings(value)):
                entries = re.split(f"[{re.escape(os.pathsep)},;]", text)
                # Between two colons, the directory is meant in which the program is started.
                here = "." if len(entries) > 1 and name.endswith("PATH") else ""
                for part in self._limited(dict.fromkeys(entry or here for entry in entries if entry or here)):
                    self._add_trees(path for path in self._at_places(part) if os.path.isdir(path))  # noqa: PTH112

    def read_variable_file(self, name: str) -> None:
        """Add a file with variables, and what it names; what it sets is read, never kept."""
        for part in _readings(name):
            for path in self._at_places(part):
                inside = self._inside(os.path.realpath(path))
                if inside is None or not os.path.isfile(path):  # noqa: PTH113 - never fails
                    continue
                self.files.add(inside)
                try:
                    data = read_bytes(Path(self._limit, inside)) or b""
                except FileError:
                    continue
                values = (
                    line.partition("=")[2].strip().strip("\"'") for line in data.decode("utf-8", "replace").splitlines()
                )
                for token in self._limited(token for value in values for token in _tokens(value)):
                    self._read_token(token)

    def add_program(self, path: str) -> None:
        """Add a program that is run: the file, the directory it belongs to, and what interprets it."""
        real = os.path.realpath(path)
        inside = self._add_file(path)
        if inside is None:  # outside; but a link to an interpreter may stand in an environment of its own
            environment = _environment_of(os.path.normpath(path))
            self._add_trees([environment] if environment else [])
            return
        if inside in self._programs:
            return
        self._programs.add(inside)
        self._add_trees([self._directory_of(real)])
        self._read_first_line(inside)
        if os.path.splitext(inside)[1].lower() in _FOR_NODE or b"node" in self._first_bytes(inside).partition(b"\n")[0]:  # noqa: PTH122
            # Its packages are looked for in every directory above it.
            self._add_trees(path for level in self._levels_of(real) if os.path.isdir(path := f"{level}/node_modules"))  # noqa: PTH112
        if self._is_shell_script(inside):
            self._read_shell_script(inside)

    def _is_shell_script(self, inside: str) -> bool:
        first = os.fsdecode(self._first_bytes(inside).partition(b"\n")[0])
        named = first.startswith("#!") and not _SHELLS.isdisjoint(map(_program_name, first[2:].split()))
        is_bare = self._in_shell and not first.startswith("#!")
        return named or is_bare or os.path.splitext(inside)[1].lower() in _FOR_SHELLS  # noqa: PTH122

    def _read_shell_script(self, inside: str) -> None:
        """Add what a script for a shell starts in turn; its variables stand for directories of the project."""
        try:
            data = read_bytes(Path(self._limit, inside), max_bytes=self._left) or b""
        except FileError:
            return
        self._left -= len(data)
        before = self._places
        folder = os.path.join(self._limit, os.path.dirname(inside))  # noqa: PTH118, PTH120 - names
        self._places = tuple(dict.fromkeys((*before, folder, os.path.dirname(folder))))  # noqa: PTH120 - as above
        for line in data.decode("utf-8", "replace").splitlines():
            words = _tokens(line.strip())
            if not words or words[0].startswith("#"):
                continue
            self._read_words(words[1:] or words, [str(self._place.cwd), folder], is_script=True)
        self._places = before

    def _read_first_line(self, inside: str) -> None:
        """Add what interprets a script: `#!./bin/run`, `#!/usr/bin/env run`."""
        data = self._first_bytes(inside)
        if not data.startswith(b"#!") or self._interpreted >= _MOST_INTERPRETERS:
            return
        self._interpreted += 1
        words = os.fsdecode(data[2:].partition(b"\n")[0]).split()
        self.with_bytecode = self.with_bytecode or any(map(_ISOLATED.fullmatch, words))
        if words and _program_name(words[0]) == "env":
            words = [word for word in words[1:] if not word.startswith("-") and not _is_setting(word)]
        if words and (found := find_executable(words[0], self._place, self._path)) and self._is_inside(found):
            self.add_program(found)

    def _read_launcher(self, name: str, rest: Sequence[str], starts: Sequence[str]) -> None:
        """Add what a program is known to run without being told so."""
        words = [word for word in rest if not word.startswith("-")]
        first = words[0] if words else ""
        if name in _FETCHERS or (name in _RUNNERS and first in _FETCHER_WORDS):
            for place in starts:
                self._read_local_packages(place, words)
        elif name in _RUNNERS or (name in _CONTAINERS and first in _BUILDS):
            self._add_trees(map(self._project_of, starts))

    def _read_local_packages(self, start: str, words: Iterable[str]) -> None:
        """Add what `npx` would run instead of fetching it, and the settings that say where to fetch it from."""
        place = os.path.normpath(start)
        while self._is_inside(place):
            for name in _FETCHER_FILES:
                self._add_if_file(os.path.join(place, name))  # noqa: PTH118 - names
            for word in words:
                package = f"@{word[1:].partition('@')[0]}" if word.startswith("@") else word.partition("@")[0]
                folder = os.path.join(place, "node_modules")  # noqa: PTH118 - as above
                if package and _may_be_path(package) and ".." not in package:
                    program = os.path.join(folder, ".bin", package.rpartition("/")[2])  # noqa: PTH118 - as above
                    if os.path.isfile(program):  # noqa: PTH113 - never fails
                        self.add_program(program)
                    if os.path.isdir(path := os.path.join(folder, package)):  # noqa: PTH112, PTH118 - as above
                        self._add_trees([path])
            if place == self._limit:
                return
            place = os.path.dirname(place)  # noqa: PTH120 - a name

    def _read_module(self, module: str) -> None:
        """Add the files that may be meant by what follows `-m`, as in `python -m my.server`."""
        names = module.split(".", _MOST_NAMES)
        if not all(names) or len(names) > _MOST_NAMES:
            return
        packages = ["/".join(names[: end + 1]) for end in range(len(names))]
        files = [f"{package}/__init__.py" for package in packages]
        files += [f"{packages[-1]}.py", f"{packages[-1]}/__main__.py"]
        for place in self._places:
            found = [self._add_if_file(f"{place}/{file}") for file in files]
            if any(each is not None for each in found):
                self._add_trees([place])  # every module in there may be imported

    def _read_token(self, token: str, *, is_operand: bool = False) -> bool:
        """Add what a word names; returns whether it names anything that could be run."""
        key = token, is_operand, self._places
        if key in self._tokens_read:
            return self._tokens_read[key]
        if len(token) > _LONGEST_PATH and " " in token:
            return False  # no path; its words follow
        found = False
        for part in self._limited(dict.fromkeys(_parts(token))):
            for path in self._at_places(part):
                found = self._read_path(path, is_operand=is_operand) or found
                if is_operand and part == token:
                    for ending in _ENDINGS:
                        found = self._read_path(path + ending, is_operand=True) or found
            if _GLOB.search(part):
                self._read_pattern(part)
        self._tokens_read[key] = found
        return found

    def _read_path(self, path: str, *, is_operand: bool) -> bool:
        status = _status(path)
        if status is None:
            return False
        if stat.S_ISREG(status.st_mode):
            inside = self._add_file(path)
            if inside is not None and (is_operand or self._is_code(inside)):
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
        """Add what a pattern such as `src/*.js` stands for; below a pattern, it may stand for anything."""
        self._patterns += 1
        if self._patterns > _MOST_PATTERNS:
            return
        head, tail = os.path.split(pattern)
        for place in self._places:
            folder = os.path.join(place, head)  # noqa: PTH118 - names
            if _GLOB.search(head):
                self._add_trees([place])
            elif self._is_inside(os.path.realpath(folder)):
                try:
                    with os.scandir(folder) as entries:
                        names = [entry.name for entry in islice(entries, _MOST_ENTRIES)]
                except (OSError, ValueError):
                    continue
                for name in sorted(names):
                    if fnmatch(name, tail):
                        self._read_path(os.path.join(folder, name), is_operand=False)  # noqa: PTH118 - as above

    def _directories(self, token: str) -> Iterator[str]:
        for part in dict.fromkeys(_parts(token)) if len(token) <= _LONGEST_PATH else ():
            for base in self._usual:
                path = os.path.join(base, part)  # noqa: PTH118 - a Path takes longer than all the rest
                status = _status(path)
                if status is not None and stat.S_ISDIR(status.st_mode) and self._is_inside(os.path.realpath(path)):
                    yield path

    def _directories_gone_to(self, tokens: Sequence[str]) -> list[str]:
        """The directories that a command changes to before it runs something."""
        found: list[str] = []
        for index, token in enumerate(tokens):
            option, _, value = token.partition("=")
            if option in _GOES_TO:
                found += self._directories(value or next(iter(tokens[index + 1 : index + 2]), ""))
        return list(dict.fromkeys(found))

    def _at_places(self, part: str) -> Iterator[str]:
        for base in self._places if _may_be_path(part) else ():
            yield os.path.join(base, part)  # noqa: PTH118 - a Path takes longer than all the rest

    def _add_if_file(self, path: str) -> str | None:
        status = _status(path)
        return self._add_file(path) if status is not None and stat.S_ISREG(status.st_mode) else None

    def _add_file(self, path: str) -> str | None:
        """Add a file; returns its name without links, None when it lies outside. A link to the outside is added."""
        inside = self._inside(os.path.realpath(path))
        if inside is not None:
            self.files.add(inside)
        elif (lexical := self._inside(_resolved_parent(path))) is not None:
            self.files.add(lexical)
        return inside

    def _add_trees(self, paths: Iterable[str]) -> None:
        for path in paths:
            inside = self._inside(os.path.realpath(path))
            if inside is not None:
                self.trees.add(inside)

    def _inside(self, real: str) -> str | None:
        """A path relative to the limit; None when it lies outside."""
        if real == self._limit:
            return ""
        names = names_beneath(self._limit, real)
        return None if names is None else "/".join(names)

    def _is_inside(self, path: str) -> bool:
        return self._inside(path) is not None

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

    def _project_of(self, start: str) -> str:
        """The directory whose files tell a runner what to do: where it is started, or the nearest above it."""
        level = os.path.realpath(start)
        while self._is_inside(level):
            if any(os.path.lexists(os.path.join(level, name)) for name in _TASKS):  # noqa: PTH118 - names
                return level
            level = os.path.dirname(level)  # noqa: PTH120 - as above
        return start

    def _levels_of(self, real: str) -> Iterator[str]:
        """The directories from that of a file up to the limit."""
        level = os.path.dirname(real)  # noqa: PTH120 - a name
        while self._is_inside(level):
            yield level
            level = os.path.dirname(level)  # noqa: PTH120 - as above

    def _directory_of(self, real: str) -> str:
        """The directory that a program belongs to: its environment, its package, or the one that it lies in."""
        if environment := _environment_of(real):
            return environment
        folder = os.path.dirname(real)  # noqa: PTH120 - a name
        level = folder
        while level != self._limit and self._is_inside(level):
            if any(os.path.lexists(os.path.join(level, name)) for name in _PACKAGE):  # noqa: PTH118 - names
                return level
            level = os.path.dirname(level)  # noqa: PTH120 - as above
        while folder != self._limit and os.path.lexists(f"{folder}/__init__.py"):
            folder = os.path.dirname(folder)  # noqa: PTH120 - as above
        return folder


def _environment_of(program: str) -> str | None:
    """The virtual environment that a program is installed in, if any."""
    folder, _ = os.path.split(program)
    environment, name = os.path.split(folder)
    is_one = name in {"bin", "Scripts"} and os.path.lexists(os.path.join(environment, "pyvenv.cfg"))  # noqa: PTH118
    return environment if is_one else None


def _resolved_parent(path: str) -> str:
    folder, name = os.path.split(os.path.normpath(path))
    return os.path.join(os.path.realpath(folder), name)  # noqa: PTH118 - names


def _status(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)  # noqa: PTH116 - a Path takes longer than all the rest
    except (OSError, ValueError):
        return None


def _is_within(tree: str, other: str) -> bool:
    return tree != other and (not other or tree.startswith(f"{other}/"))


def _program_name(token: str) -> str:
    return os.path.basename(token).removesuffix(".exe").removesuffix(".cmd")  # noqa: PTH119 - a name


def _is_setting(token: str) -> bool:
    """Return True if a word before a program sets a variable or is an option of a wrapper."""
    return token.startswith("-") or bool(re.match(r"[A-Za-z_]\w*=", token))


def _is_expansion(token: str, *, is_operand: bool) -> bool:
    """Return True if only the shell can expand the word, and may run the result."""
    if "`" in token or "$(" in token or token in {"eval", "."}:
        return True
    if "$" not in token or "://" in token:
        return False
    return is_operand or "/" in token or token.startswith("$") or os.path.splitext(token)[1].lower() in _CODE  # noqa: PTH122


def _tokens(argument: str) -> list[str]:
    """An argument; if it has several words, as a script for a shell has, these."""
    if len(argument.split(maxsplit=1)) < 2:  # noqa: PLR2004 - one word
        return [argument]
    try:
        words = shlex.split(argument)
    except ValueError:  # a quotation without its end
        words = argument.split()
    # `sub&&python` has its words side by side
    return [argument, *(part for word in words for part in re.split(r"(&&|\|\||;|&|\|)", word) if part)]


def _readings(text: str) -> Iterator[str]:
    """A text, and what it may mean when its references have been looked up."""
    yield text
    if "$" not in text:
        return
    with_defaults = _DEFAULT.sub(r"\1", text)
    yield with_defaults
    yield _REFERENCE.sub(lambda match: os.environ.get(match[1], ""), text)
    yield _VARIABLE.sub("", with_defaults)


def _parts(token: str) -> Iterator[str]:
    """Everything in a word that may be a path."""
    for text in _readings(token):
        yield text
        words = _tokens(text)[1:] if text != token else []
        for word in (text, *words):
            if word != text:
                yield word
            if _SEPARATORS.search(word):
                yield word.partition("=")[2]
                yield from _SEPARATORS.split(word)


def _may_be_path(text: str) -> bool:
    try:
        return bool(text) and b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:  # half of a surrogate pair, which no file system has
        return False
