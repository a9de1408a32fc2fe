"""Ways to change the code that an approved server runs, each of them tried: what is changed does run.

In files and settings `@ROOT@` is the project, `@MARK@` a file that only changed code makes, `@PYTHON@` an interpreter.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PYTHON = str(Path(sys.base_prefix, "bin", f"python{sys.version_info[0]}.{sys.version_info[1]}"))
LIBRARIES = f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"

GOOD = "pass\n"
EVIL = "open('@MARK@', 'w').close()\n"
GOOD_SH = "true\n"
EVIL_SH = "touch '@MARK@'\n"
GOOD_JS = "0;\n"
EVIL_JS = "require('fs').writeFileSync('@MARK@', '');\n"
GOOD_PL = "1;\n"
EVIL_PL = "open(my $file, '>', '@MARK@'); 1;\n"
C = "#include <stdio.h>\n__attribute__((constructor)) static void start(void) {%s}\n"

Change = Callable[[Path], None]


@dataclass(frozen=True)
class Way:
    """One way to change what an approved server runs.

    Attributes:
        server: Its definition.
        files: The files of the project, by path; programs are those under `bin`.
        evil: What is written over them afterwards.
        links: Links of the project.
        prepare: Whatever else has to be made before the approval.
        change: Whatever else has to be done afterwards.
        needs: Programs without which it cannot be tried.
        directory: The directory of the project in which commands are run.
        variables: What a file with variables sets.
    """

    server: Mapping[str, Any]
    files: Mapping[str, str]
    evil: Mapping[str, str] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)
    prepare: Change | None = None
    change: Change | None = None
    needs: tuple[str, ...] = ()
    directory: str = "."
    variables: Mapping[str, str] = field(default_factory=dict)


def python(*words: str, **more: object) -> dict[str, Any]:
    """A server that is a program in Python."""
    return {"command": ["@PYTHON@", *words], **more}


def shell(script: str, **more: object) -> dict[str, Any]:
    """A server that is a line for a shell."""
    return {"command": ["sh", "-c", script], **more}


def keep_times(name: str, text: str) -> Change:
    """Exchange a file for another of its size, and set its times back."""

    def change(root: Path) -> None:
        path = root / name
        facts = path.stat()
        path.write_bytes(text.replace("@MARK@", str(mark_of(root))).encode().ljust(facts.st_size, b"#"))
        os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))

    return change


def relink(name: str, target: str) -> Change:
    """Let a link lead elsewhere."""

    def change(root: Path) -> None:
        (root / name).unlink()
        (root / name).symlink_to(target.replace("@ROOT@", str(root)))

    return change


def compile_library(name: str, body: str) -> Change:
    """Make a library that does something as soon as it is loaded."""

    def make(root: Path) -> None:
        source = root.parent / "library.c"
        source.write_text(C % body.replace("@MARK@", str(mark_of(root))))
        (root / name).parent.mkdir(exist_ok=True)
        subprocess.run(["/usr/bin/cc", "-shared", "-fPIC", "-o", root / name, source], check=True)

    return make


OPEN_IN_C = 'fclose(fopen("@MARK@", "w"));'


def make_environment(root: Path) -> None:
    """A virtual environment, as far as an interpreter looks at it."""
    (root / ".venv/bin").mkdir(parents=True)
    (root / ".venv/bin/python").symlink_to(PYTHON)
    (root / ".venv/pyvenv.cfg").write_text(f"home = {Path(PYTHON).parent}\ninclude-system-site-packages = false\n")
    (root / ".venv" / LIBRARIES).mkdir(parents=True)


def move_away(root: Path) -> None:
    """Put a link in the place of the directory `sub`."""
    (root / "sub").rename(root / "old")
    (root / "sub").symlink_to("evil")


def mark_of(root: Path) -> Path:
    """The file that changed code makes."""
    return root.parent / "evil-ran"


_LARGE = 9 * 1024 * 1024

WAYS: dict[str, Way] = {
    "a script": Way(python("server.py"), {"server.py": GOOD}, {"server.py": EVIL}),
    "a script in a directory": Way(python("tools/server.py"), {"tools/server.py": GOOD}, {"tools/server.py": EVIL}),
    "a script, by its whole path": Way(python("@ROOT@/server.py"), {"server.py": GOOD}, {"server.py": EVIL}),
    "a script in the setting cwd": Way(python("s.py", cwd="sub"), {"sub/s.py": GOOD}, {"sub/s.py": EVIL}),
    "a script without an ending": Way(python("srv"), {"srv": GOOD}, {"srv": EVIL}),
    "a script without an ending, for a shell": Way(
        {"command": "env", "args": ["sh", "srv"]}, {"srv": GOOD_SH}, {"srv": EVIL_SH}
    ),
    "a script for node without its ending": Way(
        {"command": ["node", "server"]}, {"server.js": GOOD_JS}, {"server.js": EVIL_JS}, needs=("node",)
    ),
    "a program": Way(
        {"command": "./bin/serve"}, {"bin/serve": f"#!/bin/sh\n{GOOD_SH}"}, {"bin/serve": f"#!/bin/sh\n{EVIL_SH}"}
    ),
    "a module": Way(python("-m", "srv"), {"srv.py": GOOD}, {"srv.py": EVIL}),
    "a module in the same word": Way(python("-msrv"), {"srv.py": GOOD}, {"srv.py": EVIL}),
    "a module after two options": Way(python("-um", "srv"), {"srv.py": GOOD}, {"srv.py": EVIL}),
    "a module after two options in the same word": Way(python("-umsrv"), {"srv.py": GOOD}, {"srv.py": EVIL}),
    "a package above a module": Way(
        python("-m", "pk.srv"), {"pk/__init__.py": GOOD, "pk/srv.py": GOOD}, {"pk/__init__.py": EVIL}
    ),
    "a module of a package": Way(
        python("-m", "pk.srv"), {"pk/__init__.py": GOOD, "pk/srv.py": GOOD}, {"pk/srv.py": EVIL}
    ),
    "a package that is run": Way(
        python("-m", "pk"), {"pk/__init__.py": GOOD, "pk/__main__.py": GOOD}, {"pk/__main__.py": EVIL}
    ),
    "a directory that is run": Way(
        python("tool"), {"tool/__main__.py": "import x\n", "tool/x.py": GOOD}, {"tool/x.py": EVIL}
    ),
    "code in an argument": Way(python("-c", "exec(open('code.txt').read())"), {"code.txt": GOOD}, {"code.txt": EVIL}),
    "a script in a variable": Way(
        shell('"$PY" "$SCRIPT"', env={"PY": "@PYTHON@", "SCRIPT": "tools/s.py"}),
        {"tools/s.py": GOOD},
        {"tools/s.py": EVIL},
    ),
    "a script in a file with variables": Way(
        shell('sh "$SCRIPT"', cwd="empty", env_file="settings.env"),
        {"settings.env": "SCRIPT='@ROOT@/tools/s'\n", "tools/s": f"#!/bin/sh\n{GOOD_SH}", "empty/x": ""},
        {"tools/s": f"#!/bin/sh\n{EVIL_SH}"},
        variables={"SCRIPT": "@ROOT@/tools/s"},
    ),
    "PYTHONPATH": Way(
        python("-c", "import helper", cwd="empty", env={"PYTHONPATH": "@ROOT@/lib"}),
        {"lib/helper.py": GOOD, "empty/x": ""},
        {"lib/helper.py": EVIL},
    ),
    "PYTHONPATH, a new module": Way(
        python("-c", "import json", cwd="empty", env={"PYTHONPATH": "@ROOT@/lib"}),
        {"lib/helper.py": GOOD, "empty/x": ""},
        {"lib/json.py": EVIL},
    ),
    "PYTHONUSERBASE": Way(
        python("-c", "0", cwd="empty", env={"PYTHONUSERBASE": "@ROOT@/base"}),
        {f"base/{LIBRARIES}/x.pth": "# nothing\n", "empty/x": ""},
        {f"base/{LIBRARIES}/x.pth": "import os; open('@MARK@', 'w').close()\n"},
    ),
    "NODE_PATH": Way(
        {"command": ["node", "-e", "require('helper')"], "cwd": "empty", "env": {"NODE_PATH": "@ROOT@/lib"}},
        {"lib/helper.js": GOOD_JS, "empty/x": ""},
        {"lib/helper.js": EVIL_JS},
        needs=("node",),
    ),
    "NODE_OPTIONS": Way(
        {"command": ["node", "-e", "0"], "cwd": "empty", "env": {"NODE_OPTIONS": "--require @ROOT@/lib/x.js"}},
        {"lib/x.js": GOOD_JS, "empty/x": ""},
        {"lib/x.js": EVIL_JS},
        needs=("node",),
    ),
    "PERL5LIB": Way(
        {"command": ["perl", "-MHelper", "-e", "1"], "cwd": "empty", "env": {"PERL5LIB": "@ROOT@/lib"}},
        {"lib/Helper.pm": GOOD_PL, "empty/x": ""},
        {"lib/Helper.pm": EVIL_PL},
        needs=("perl",),
    ),
    "BASH_ENV": Way(
        {"command": ["bash", "-c", "true"], "env": {"BASH_ENV": "@ROOT@/lib/rc"}},
        {"lib/rc": GOOD_SH},
        {"lib/rc": EVIL_SH},
        needs=("bash",),
    ),
    "HOME": Way(
        {"command": ["bash", "-lc", "true"], "env": {"HOME": "@ROOT@/me"}},
        {"me/.bash_profile": GOOD_SH},
        {"me/.bash_profile": EVIL_SH},
        needs=("bash",),
    ),
    "LD_PRELOAD": Way(
        {"command": ["/bin/true"], "env": {"LD_PRELOAD": "@ROOT@/lib/x.so"}},
        {},
        prepare=compile_library("lib/x.so", ""),
        change=compile_library("lib/x.so", OPEN_IN_C),
        needs=("/usr/bin/cc",),
    ),
    "LD_LIBRARY_PATH": Way(
        {"command": ["/bin/true"], "env": {"LD_PRELOAD": "x.so", "LD_LIBRARY_PATH": "@ROOT@/lib"}},
        {},
        prepare=compile_library("lib/x.so", ""),
        change=compile_library("lib/x.so", OPEN_IN_C),
        needs=("/usr/bin/cc",),
    ),
    "a program on the PATH": Way(
        {"command": "serve", "env": {"PATH": "@ROOT@/bin:/usr/bin:/bin"}},
        {"bin/serve": f"#!/bin/sh\n{GOOD_SH}"},
        {"bin/serve": f"#!/bin/sh\n{EVIL_SH}"},
    ),
    "a program that another finds on the PATH": Way(
        shell("helper", env={"PATH": "@ROOT@/bin:/usr/bin:/bin"}),
        {"bin/helper": f"#!/bin/sh\n{GOOD_SH}"},
        {"bin/helper": f"#!/bin/sh\n{EVIL_SH}"},
    ),
    "a new program first on the PATH": Way(
        shell("true; uname", env={"PATH": "@ROOT@/bin:/usr/bin:/bin"}),
        {"bin/x": ""},
        {"bin/uname": f"#!/bin/sh\n{EVIL_SH}"},
    ),
    "a script after cd": Way(shell("cd sub && sh s"), {"sub/s": GOOD_SH}, {"sub/s": EVIL_SH}),
    "a script after cd, without blanks": Way(shell("cd sub&&sh s;true"), {"sub/s": GOOD_SH}, {"sub/s": EVIL_SH}),
    "a pattern": Way(shell("sh sub/*.txt"), {"sub/a.txt": GOOD_SH}, {"sub/a.txt": EVIL_SH}),
    "a pattern of directories": Way(shell("sh */a.txt"), {"sub/a.txt": GOOD_SH}, {"sub/a.txt": EVIL_SH}),
    "a variable of the shell": Way(shell('x=s; sh "$x.sh"'), {"s.sh": GOOD_SH}, {"s.sh": EVIL_SH}),
    "a variable of the shell without an ending": Way(shell("x=s; sh $x"), {"s": GOOD_SH}, {"s": EVIL_SH}),
    "the output of a program": Way(shell("sh $(cat name)"), {"name": "s\n", "s": GOOD_SH}, {"s": EVIL_SH}),
    "a large file with its times set back": Way(
        python("large.py"), {"large.py": "pass\n" + "#" * _LARGE}, change=keep_times("large.py", EVIL + "#")
    ),
    "a file of the same size with its times set back": Way(
        python("srv.py"), {"srv.py": "pass\n" + "#" * 400}, change=keep_times("srv.py", EVIL + "#")
    ),
    "the target of a link": Way(
        {"command": ["sh", "run"]}, {"deep/run": GOOD_SH}, {"deep/run": EVIL_SH}, links={"run": "deep/run"}
    ),
    "a link to another file": Way(
        {"command": ["sh", "run"]},
        {"deep/run": GOOD_SH, "other/run": EVIL_SH},
        links={"run": "deep/run"},
        change=relink("run", "other/run"),
    ),
    "a link to another file outside": Way(
        {"command": ["sh", "run"]},
        {"x": "", "../outside-a": GOOD_SH, "../outside-b": EVIL_SH},
        links={"run": "../outside-a"},
        change=relink("run", "../outside-b"),
    ),
    "a directory that becomes a link": Way(
        {"command": ["sh", "sub/run"]}, {"sub/run": GOOD_SH, "evil/run": EVIL_SH}, change=move_away
    ),
    "the interpreter of a script": Way(
        {"command": "./bin/serve"},
        {"bin/serve": "#!@ROOT@/run/interpreter\n", "run/interpreter": f"#!/bin/sh\n{GOOD_SH}"},
        {"run/interpreter": f"#!/bin/sh\n{EVIL_SH}"},
        needs=("sh",),
    ),
    "the interpreter of a script, from the PATH": Way(
        {"command": "./serve/x", "env": {"PATH": "@ROOT@/bin:/usr/bin:/bin"}},
        {"serve/x": "#!/usr/bin/env interpreter\n", "bin/interpreter": f"#!/bin/sh\n{GOOD_SH}"},
        {"bin/interpreter": f"#!/bin/sh\n{EVIL_SH}"},
    ),
    "a sibling of a script": Way(
        python("tools/s.py"), {"tools/s.py": "import helper\n", "tools/helper.py": GOOD}, {"tools/helper.py": EVIL}
    ),
    "a package beside a script": Way(
        python("tools/s.py"),
        {"tools/s.py": "import deep.er.x\n", "tools/deep/er/x.py": GOOD},
        {"tools/deep/er/x.py": EVIL},
    ),
    "a new sibling that shadows a module": Way(
        python("tools/s.py"), {"tools/s.py": "import json\n"}, {"tools/json.py": EVIL}
    ),
    "a new package that shadows a module": Way(
        python("tools/s.py"), {"tools/s.py": "import json\n"}, {"tools/json/__init__.py": EVIL}
    ),
    "a sibling that is removed": Way(
        python("tools/s.py"),
        {"tools/s.py": "import os\nif not os.path.exists(__file__ + '.lock'): " + EVIL, "tools/s.py.lock": ""},
        change=lambda root: (root / "tools/s.py.lock").unlink(),
    ),
    "a sibling for node": Way(
        {"command": ["node", "tools/s.js"]},
        {"tools/s.js": "require('./x');\n", "tools/x.js": GOOD_JS},
        {"tools/x.js": EVIL_JS},
        needs=("node",),
    ),
    "the main file of a package": Way(
        {"command": ["node", "."]},
        {"package.json": '{"main": "lib/a.js"}', "lib/a.js": GOOD_JS, "index.js": GOOD_JS},
        {"lib/a.js": EVIL_JS},
        needs=("node",),
    ),
    "another directory of a package": Way(
        {"command": ["node", "pk/dist/a.js"]},
        {"pk/package.json": "{}", "pk/dist/a.js": "require('../lib/b');\n", "pk/lib/b.js": GOOD_JS},
        {"pk/lib/b.js": EVIL_JS},
        needs=("node",),
    ),
    "a dependency of a package": Way(
        {"command": ["node", "pk/a.js"]},
        {"pk/package.json": "{}", "pk/a.js": "require('b');\n", "pk/node_modules/b/index.js": GOOD_JS},
        {"pk/node_modules/b/index.js": EVIL_JS},
        needs=("node",),
    ),
    "a dependency in a directory above": Way(
        {"command": ["node", "src/a.js"]},
        {"package.json": "{}", "src/a.js": "require('b');\n", "node_modules/b/index.js": GOOD_JS},
        {"node_modules/b/index.js": EVIL_JS},
        needs=("node",),
    ),
    "what a script for a shell starts": Way(
        {"command": ["scripts/run"]},
        {"scripts/run": '#!/bin/sh\ncd "$(dirname "$0")/.."\nexec sh lib/main\n', "lib/main": GOOD_SH},
        {"lib/main": EVIL_SH},
    ),
    "what a script for a shell starts by a variable": Way(
        {"command": ["bash", "scripts/run.sh"]},
        {"scripts/run.sh": 'HERE="$PWD"\nexec sh "$HERE/lib/main.sh"\n', "lib/main.sh": GOOD_SH},
        {"lib/main.sh": EVIL_SH},
        needs=("bash",),
    ),
    "a Makefile": Way(
        {"command": ["make", "serve"]},
        {"Makefile": "serve:\n\t@true\n"},
        {"Makefile": f"serve:\n\t@{EVIL_SH}"},
        needs=("make",),
    ),
    "a script of a Makefile": Way(
        {"command": ["make", "-C", "sub", "serve"]},
        {"sub/Makefile": "serve:\n\t@sh run\n", "sub/run": GOOD_SH},
        {"sub/run": EVIL_SH},
        needs=("make",),
    ),
    "a program that is run instead of being fetched": Way(
        {"command": ["npx", "--no", "tool"]},
        {
            "node_modules/tool/package.json": '{"name": "tool", "version": "1.0.0", "bin": "cli.js"}',
            "node_modules/tool/cli.js": "#!/usr/bin/env node\n" + GOOD_JS,
            "package.json": "{}",
        },
        {"node_modules/tool/cli.js": "#!/usr/bin/env node\n" + EVIL_JS},
        links={"node_modules/.bin/tool": "../tool/cli.js"},
        prepare=lambda root: (root / "node_modules/tool/cli.js").chmod(0o755),
        needs=("npx",),
    ),
    "a module in an environment": Way(
        {"command": ["@ROOT@/.venv/bin/python", "-c", "0"], "cwd": "empty"},
        {"empty/x": ""},
        {f".venv/{LIBRARIES}/x.pth": "import os; open('@MARK@', 'w').close()\n"},
        prepare=make_environment,
    ),
    "a file above the directory": Way(
        python("../shared/s.py"),
        {".git/HEAD": "", "service/x": "", "shared/s.py": GOOD},
        {"shared/s.py": EVIL},
        directory="service",
    ),
    "bytecode that an interpreter without variables reads": Way(
        {"command": ["env", "-i", "@PYTHON@", "tools/s.py"]},
        {"tools/s.py": "import x\n", "tools/x.py": GOOD},
        change=lambda root: plant_bytecode(root, "tools/x.py"),
    ),
    "bytecode that an isolated interpreter reads": Way(
        python("-I", "-c", "import sys; sys.path.insert(0, 'lib'); import x", cwd="."),
        {"lib/x.py": GOOD},
        change=lambda root: plant_bytecode(root, "lib/x.py"),
    ),
}


def plant_bytecode(root: Path, name: str, mode: str = "UNCHECKED_HASH") -> None:
    """Put bytecode beside a module that does something else, and that Python takes for that of the module.

    Args:
        root: The project.
        name: The module.
        mode: How Python compares the two: not at all, or (`TIMESTAMP`) by size and time.
    """
    source = root / name
    evil = root.parent / source.name
    facts = source.stat()
    evil.write_bytes(EVIL.replace("@MARK@", str(mark_of(root))).encode().ljust(facts.st_size, b"#"))
    os.utime(evil, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    program = (
        "import importlib.util, py_compile, sys\n"
        "mode = py_compile.PycInvalidationMode[sys.argv[3]]\n"
        "py_compile.compile(sys.argv[1], importlib.util.cache_from_source(sys.argv[2]), invalidation_mode=mode)\n"
    )
    subprocess.run([PYTHON, "-c", program, evil, source, mode], check=True)


MAKEFILE, EVIL_MAKEFILE = "serve:\n\t@true\n", f"serve:\n\t@{EVIL_SH}"


def compile_class(body: str) -> Change:
    """Make a program in Java."""

    def make(root: Path) -> None:
        source = root.parent / "source" / "Main.java"
        source.parent.mkdir(exist_ok=True)
        text = "public class Main { public static void main(String[] a) throws Exception { %s } }"
        source.write_text(text % body.replace("@MARK@", str(mark_of(root))))
        subprocess.run(["javac", "-d", root / "classes", source], check=True)  # noqa: S607 - wherever it is

    return make


def link_program(root: Path) -> None:
    """Make a program that finds its library beside its own directory."""
    compile_library("lib/libx.so", "")(root)
    source = root.parent / "main.c"
    source.write_text("int main(void) { return 0; }")
    (root / "bin").mkdir()
    words = ["-Wl,--no-as-needed", "-L", str(root / "lib"), "-lx", "-Wl,-rpath,$ORIGIN/../lib"]
    subprocess.run(["/usr/bin/cc", "-o", root / "bin/serve", source, *words], check=True)


def plant_prefixed_bytecode(root: Path) -> None:
    """Put other bytecode for a module where an option says that bytecode is."""
    evil = root.parent / "x.py"
    evil.write_text(EVIL.replace("@MARK@", str(mark_of(root))))
    program = (
        "import importlib.util, py_compile, sys\n"
        "sys.pycache_prefix = sys.argv[3]\n"
        "mode = py_compile.PycInvalidationMode.UNCHECKED_HASH\n"
        "py_compile.compile(sys.argv[1], importlib.util.cache_from_source(sys.argv[2]), invalidation_mode=mode)\n"
    )
    subprocess.run([PYTHON, "-c", program, evil, root / "tools/x.py", root / "cache"], check=True)


def scripted(line: str) -> tuple[dict[str, Any], dict[str, str]]:
    """A server that is a script for a shell, with these lines."""
    return {"command": ["sh", "scripts/run"]}, {"scripts/run": f"{line}\n"}


def _script_way(line: str, name: str = "lib/main", good: str = GOOD_SH, evil: str = EVIL_SH) -> Way:
    server, files = scripted(line)
    return Way(server, {**files, name: good}, {name: evil})


def _module_way(*words: str, name: str = "server.py") -> Way:
    return Way({"command": [*words]}, {name: GOOD}, {name: EVIL}, needs=(words[0],))


_EVIL_MJS = "import fs from 'fs'; fs.writeFileSync('@MARK@', '');\n"

WAYS |= {
    # programs in front of the program
    **{
        f"a Makefile after {' '.join(words)}": Way(
            {"command": [*words, "make", "serve"]},
            {"Makefile": "include lib/a.mk\n", "lib/a.mk": MAKEFILE},
            {"lib/a.mk": EVIL_MAKEFILE},
            needs=(words[0], "make"),
        )
        for words in (["timeout", "60"], ["nice", "-n", "5"], ["flock", "/"], ["ionice", "-c3"])
    },
    "a script of a package after timeout": Way(
        {"command": ["timeout", "60", "npm", "run", "-s", "serve"]},
        {"package.json": '{"scripts": {"serve": "sh lib/x"}}', "lib/x": GOOD_SH},
        {"lib/x": EVIL_SH},
        needs=("npm",),
    ),
    # programs that find files themselves
    "a file that find finds": Way(
        {"command": ["find", "sub", "-name", "run.x", "-exec", "sh", "{}", ";"]},
        {"sub/a/run.x": GOOD_SH},
        {"sub/a/run.x": EVIL_SH},
    ),
    "a file that is listed": Way(shell("cd sub; ls | xargs -n 1 sh"), {"sub/a": GOOD_SH}, {"sub/a": EVIL_SH}),
    "the parts of a directory": Way(
        {"command": ["run-parts", "sub"]},
        {"sub/a": f"#!/bin/sh\n{GOOD_SH}"},
        {"sub/a": f"#!/bin/sh\n{EVIL_SH}"},
        needs=("run-parts",),
    ),
    "tests that are discovered": Way(python("-m", "unittest"), {"test_x.py": GOOD}, {"test_x.py": EVIL}),
    "tests that are discovered elsewhere": Way(
        python("-m", "unittest", "discover", "-s", "sub"), {"sub/test_x.py": GOOD}, {"sub/test_x.py": EVIL}
    ),
    # shells
    "braces": Way(
        {"command": ["bash", "-c", "sh sub/ru{n,m}"]}, {"sub/run": GOOD_SH}, {"sub/run": EVIL_SH}, needs=("bash",)
    ),
    "a tilde": Way(
        {"command": ["bash", "-c", "sh ~+/sub/run"]}, {"sub/run": GOOD_SH}, {"sub/run": EVIL_SH}, needs=("bash",)
    ),
    "a script after cd twice": Way(
        shell("cd sub && cd inner && sh run"), {"sub/inner/run": GOOD_SH}, {"sub/inner/run": EVIL_SH}
    ),
    "a script after cd to a pattern": Way(shell("cd s*b && sh run"), {"sub/run": GOOD_SH}, {"sub/run": EVIL_SH}),
    "a script after cd by a path for it": Way(
        {"command": ["bash", "-c", "CDPATH=sub; cd inner; sh run"]},
        {"sub/inner/run": GOOD_SH},
        {"sub/inner/run": EVIL_SH},
        needs=("bash",),
    ),
    "a shell in a shell": Way(shell("sh -c 'sh -c \"sh sub/run\"'"), {"sub/run": GOOD_SH}, {"sub/run": EVIL_SH}),
    # what scripts for a shell start
    "a directory in a variable of a script": _script_way('D=lib\nexec sh "$D/main"'),
    "a name in a variable of a script": _script_way("N=main\nexec sh lib/$N"),
    "names in a loop of a script": _script_way("for f in main; do . lib/$f; done"),
    "a script after cd in a script": _script_way("cd deep/down\nexec sh main", "deep/down/main"),
    "a file that find finds in a script": _script_way("find lib -type f -exec sh {} \\;"),
    "a script behind many lines": _script_way("#" * 40_000 + "\nexec sh lib/main"),
    "a module of a variable in a script": _script_way(
        "PYTHONPATH=src exec @PYTHON@ -m app.main", "src/app/main.py", GOOD, EVIL
    ),
    # options, arguments and variables of interpreters
    "an option and its directory in one word": Way(
        {"command": ["perl", "-I../lib", "-MHelper", "-e", "1"], "cwd": "empty"},
        {"lib/Helper.pm": GOOD_PL, "empty/x": ""},
        {"lib/Helper.pm": EVIL_PL},
        needs=("perl",),
    ),
    "an option and its directory": Way(
        {"command": ["perl", "-I", "lib", "tools/s"]},
        {"lib/Helper.pm": GOOD_PL, "tools/s": "use Helper;"},
        {"lib/Helper.pm": EVIL_PL},
        needs=("perl",),
    ),
    "a directory of classes": Way(
        {"command": ["java", "-cp", "classes", "Main"]},
        {"classes/x": ""},
        prepare=compile_class(""),
        change=compile_class('new java.io.File("@MARK@").createNewFile();'),
        needs=("java", "javac"),
    ),
    "an option with a file without its ending": Way(
        {"command": ["node", "--require=../lib/x", "-e", "0"], "cwd": "empty"},
        {"lib/x.js": GOOD_JS, "empty/x": ""},
        {"lib/x.js": EVIL_JS},
        needs=("node",),
    ),
    "an option with a package": Way(
        {"command": ["node", "-r", "../lib", "-e", "0"], "cwd": "empty"},
        {"lib/package.json": '{"main": "m.js"}', "lib/m.js": GOOD_JS, "empty/x": ""},
        {"lib/m.js": EVIL_JS},
        needs=("node",),
    ),
    "an escaped address of a file": Way(
        {"command": ["node", "--import", "file://@ROOT@/li%62/x.mjs", "-e", "0"], "cwd": "empty"},
        {"lib/x.mjs": "0;\n", "empty/x": ""},
        {"lib/x.mjs": _EVIL_MJS},
        needs=("node",),
    ),
    "an import in an address": Way(
        {
            "command": ["node", "--import", "data:text/javascript,import('file://@ROOT@/lib/x.mjs')", "-e", "0"],
            "cwd": "empty",
        },
        {"lib/x.mjs": "0;\n", "empty/x": ""},
        {"lib/x.mjs": _EVIL_MJS},
        needs=("node",),
    ),
    "what a package calls a file": Way(
        {"command": ["node", "dist/a.js"]},
        {
            "package.json": '{"imports": {"#x": "./dist/g.js"}}',
            "dist/a.js": "require('#x');\n",
            "dist/g.js": GOOD_JS,
            "lib/b.js": EVIL_JS,
        },
        {"package.json": '{"imports": {"#x": "./lib/b.js"}}'},
        needs=("node",),
    ),
    "bytecode where an option says": Way(
        python("-X", "pycache_prefix=cache", "tools/s.py"),
        {"tools/s.py": "import x\n", "tools/x.py": GOOD, "cache/x": ""},
        change=plant_prefixed_bytecode,
    ),
    "the directory of the process": Way(
        python("/proc/self/cwd/s.py", cwd="sub"), {"sub/s.py": GOOD}, {"sub/s.py": EVIL}, needs=("sh",)
    ),
    "code of awk": Way(
        {"command": ["awk", 'BEGIN { system("sh lib/b") }']}, {"lib/b": GOOD_SH}, {"lib/b": EVIL_SH}, needs=("awk",)
    ),
    "what a program of awk starts": Way(
        {"command": ["awk", "-f", "lib/a.awk", "/dev/null"]},
        {"lib/a.awk": 'BEGIN { system("sh lib/b") }', "lib/b": GOOD_SH},
        {"lib/b": EVIL_SH},
        needs=("awk",),
    ),
    "programs of git": Way(
        {"command": ["git", "--exec-path=sub", "foo"]},
        {"sub/git-foo": f"#!/bin/sh\n{GOOD_SH}"},
        {"sub/git-foo": f"#!/bin/sh\n{EVIL_SH}"},
        needs=("git",),
    ),
    "TCLLIBPATH": Way(
        shell("echo 'package require Helper' | tclsh", cwd="empty", env={"TCLLIBPATH": "@ROOT@/lib"}),
        {"lib/pkgIndex.tcl": "package ifneeded Helper 1.0 {}\n", "empty/x": ""},
        {"lib/pkgIndex.tcl": "exec touch {@MARK@}\n"},
        needs=("tclsh",),
    ),
    "MAKEFILES": Way(
        {"command": ["make", "-f", "/dev/null", "-s", "serve"], "cwd": "empty", "env": {"MAKEFILES": "../lib/a.mk"}},
        {"lib/a.mk": "include ../lib/b.mk\n", "lib/b.mk": MAKEFILE, "empty/x": ""},
        {"lib/b.mk": EVIL_MAKEFILE},
        needs=("make",),
    ),
    "PYTHONPATH in a file with variables": Way(
        python("-c", "import helper", cwd="empty", env_file="settings.env"),
        {"settings.env": "PYTHONPATH=@ROOT@/lib\n", "lib/helper.py": GOOD, "empty/x": ""},
        {"lib/helper.py": EVIL},
        variables={"PYTHONPATH": "@ROOT@/lib"},
    ),
    # around a program
    "an argument in the first line of a script": Way(
        {"command": ["bin/serve"]}, {"bin/serve": "#!/bin/sh lib/pre\n", "lib/pre": GOOD_SH}, {"lib/pre": EVIL_SH}
    ),
    "a variable in the first line of a script": Way(
        {"command": ["serve/x"]},
        {"serve/x": "#!/usr/bin/env -S PERL5LIB=lib perl -MHelper\n1;\n", "lib/Helper.pm": GOOD_PL},
        {"lib/Helper.pm": EVIL_PL},
        needs=("perl",),
    ),
    "a library beside the directory of a program": Way(
        {"command": ["bin/serve"]},
        {},
        prepare=link_program,
        change=compile_library("lib/libx.so", OPEN_IN_C),
        needs=("/usr/bin/cc",),
    ),
    "a module beside the directory of a script": Way(
        {"command": ["perl", "bin/serve"]},
        {"bin/serve": 'use FindBin; use lib "$FindBin::Bin/../lib"; use Helper;\n', "lib/Helper.pm": GOOD_PL},
        {"lib/Helper.pm": EVIL_PL},
        needs=("perl",),
    ),
    "an environment that a link is put into": Way(
        {"command": ["tools/py", "tools/s.py"]},
        {"tools/s.py": GOOD},
        {
            "pyvenv.cfg": f"home = {Path(PYTHON).parent}\n",
            f"{LIBRARIES}/x.pth": "import os; open('@MARK@', 'w').close()\n",
        },
        prepare=lambda root: (root / "tools/py").symlink_to(PYTHON),
    ),
}

REPOSITORY = {
    ".git/HEAD": "ref: refs/heads/main\n",
    ".git/objects/x": "",
    ".git/refs/x": "",
    ".git/config": "[core]\n\trepositoryformatversion = 0\n",
}
_WHO = {f"GIT_{role}_{what}": "me@x.test" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}

WAYS |= {
    "an alias of git": Way(
        {"command": ["git", "serve"]},
        {**REPOSITORY, ".git/config": REPOSITORY[".git/config"] + "[alias]\nserve = !true\n"},
        {".git/config": REPOSITORY[".git/config"] + "[alias]\nserve = !touch @MARK@\n"},
        needs=("git",),
    ),
    "a hook of git": Way(
        {"command": ["git", "commit", "--allow-empty", "-qm", "x"], "env": _WHO},
        REPOSITORY,
        {".git/hooks/pre-commit": f"#!/bin/sh\n{EVIL_SH}"},
        needs=("git",),
    ),
    "a shell that reads a pipe": Way(
        shell("echo c2ggcnVuLng= | base64 -d | sh"), {"run.x": GOOD_SH}, {"run.x": EVIL_SH}, needs=("base64",)
    ),
    "an extended pattern": Way(
        {"command": ["bash", "-O", "extglob", "-c", "sh run.@(x|y)"]},
        {"run.x": GOOD_SH},
        {"run.x": EVIL_SH},
        needs=("bash",),
    ),
    "an interpreter of an environment after cd": Way(
        shell("cd empty && ../.venv/bin/python -c 0"),
        {"empty/x": ""},
        {f".venv/{LIBRARIES}/x.pth": "import os; open('@MARK@', 'w').close()\n"},
        prepare=make_environment,
    ),
    "tests that node discovers": Way(
        {"command": ["node", "--test"]}, {"deep/a.test.js": GOOD_JS}, {"deep/a.test.js": EVIL_JS}, needs=("node",)
    ),
    "an import of node": Way(
        {"command": ["node", "--import=./x.mjs", "-e", "0"]}, {"x.mjs": "0;\n"}, {"x.mjs": _EVIL_MJS}, needs=("node",)
    ),
    "NODE_OPTIONS with a path without an ending": Way(
        {"command": ["node", "-e", "0"], "env": {"NODE_OPTIONS": "-r ./lib/x"}},
        {"lib/x.js": GOOD_JS},
        {"lib/x.js": EVIL_JS},
        needs=("node",),
    ),
    "a file with variables for node": Way(
        {"command": ["node", "--env-file=.env", "-e", "require(process.env.X)"]},
        {".env": "X=fs\n", "evil.js": EVIL_JS},
        {".env": "X=./evil.js\n"},
        needs=("node",),
    ),
    "words in one argument of env": Way({"command": ["env", "-S", "sh run.x"]}, {"run.x": GOOD_SH}, {"run.x": EVIL_SH}),
    "sitecustomize": Way(
        python("-c", "0", env={"PYTHONPATH": "lib"}), {"lib/sitecustomize.py": GOOD}, {"lib/sitecustomize.py": EVIL}
    ),
    "a file of paths in a directory that code names": Way(
        python("-c", "import site; site.addsitedir('lib')"),
        {"lib/a.pth": "import os\n"},
        {"lib/a.pth": "import os; open('@MARK@', 'w').close()\n"},
    ),
    "a module that a variable names": Way(
        python("-c", "breakpoint()", env={"PYTHONBREAKPOINT": "helper.go"}), {"helper.py": GOOD}, {"helper.py": EVIL}
    ),
    "a sibling behind a link": Way(
        python("link/s.py"),
        {"real/s.py": "import helper\n", "real/helper.py": GOOD},
        {"real/helper.py": EVIL},
        links={"link": "real"},
    ),
    "an included Makefile": Way(
        {"command": ["make", "-Csub", "serve"]},
        {"sub/Makefile": "include ../inc/b.mk\n", "inc/b.mk": MAKEFILE},
        {"inc/b.mk": EVIL_MAKEFILE},
        needs=("make",),
    ),
}

UNTRIED: dict[str, Way] = {
    **{
        " ".join(command): Way({"command": command}, {name: GOOD}, {name: EVIL})
        for command, name in (
            (["bundle", "exec", "srv"], "lib/a.rb"),
            (["tox", "-e", "x"], "tox.ini"),
            (["nox", "-s", "x"], "noxfile.py"),
            (["opam", "exec", "--", "dune", "exec", "srv"], "bin/main.ml"),
            (["mise", "exec", "--", "srv"], ".mise.toml"),
            (["direnv", "exec", ".", "srv"], ".envrc"),
            (["nix", "run", "."], "flake.nix"),
            (["nix-shell", "--run", "srv"], "shell.nix"),
            (["conda", "run", "-p", "./env", "srv"], "env/bin/srv"),
            (["jest"], "jest.config.js"),
            (["npx", "vitest", "run"], "vitest.config.ts"),
            (["npx", "nodemon", "s.js"], "nodemon.json"),
            (["electron", "."], "main.js"),
            (["dart", "run", "bin/s.dart"], "lib/a.dart"),
            (["zig", "build", "run"], "build.zig"),
            (["swift", "run"], "Sources/a/main.swift"),
            (["fastapi", "run"], "main.py"),
            (["terraform", "-chdir=tf", "console"], "tf/main.tf"),
            (["docker", "run", "-v./a:/w", "image", "/w/run"], "a/run"),
        )
    },
    "a module for a server": _module_way("uvicorn", "server:app"),
    "a module for a server in a package": _module_way("hypercorn", "app.main:app", name="app/main.py"),
    "a module for a server, by -m": _module_way("python3", "-m", "uvicorn", "app.main:app", name="app/main.py"),
    "a module in an option": _module_way("celery", "-A", "proj", "worker", name="proj/__init__.py"),
    "a module in an option after a sign": _module_way("gunicorn-like", "--app=server"),
    "a program that finds its module": _module_way("flask", "run", name="app.py"),
    "a package of the directory": Way(
        {"command": ["uvx", "--from", ".", "srv"]}, {"pyproject.toml": "", "src/s.py": GOOD}, {"src/s.py": EVIL}
    ),
    "a package of another directory": Way(
        {"command": ["pipx", "run", "--spec=pkg", "srv"]}, {"pkg/setup.py": "", "pkg/s.py": GOOD}, {"pkg/s.py": EVIL}
    ),
    "a package that is given by its path": Way(
        {"command": ["npx", "./pkg"]}, {"pkg/package.json": "{}", "pkg/a.js": GOOD_JS}, {"pkg/a.js": EVIL_JS}
    ),
    "a script in the volume of a container": Way(
        {"command": ["docker", "run", "-v", "./srv:/app", "image", "python", "/app/s.py"]},
        {"srv/s.py": GOOD},
        {"srv/s.py": EVIL},
    ),
    "a script in a mount of a container": Way(
        {"command": ["docker", "run", "--mount", "type=bind,src=./srv,dst=/app/", "image", "node", "/app/s.js"]},
        {"srv/s.js": GOOD_JS},
        {"srv/s.js": EVIL_JS},
    ),
}
"""Ways whose programs are not at hand, so that only the decision is looked at."""


def fill(text: str, root: Path) -> str:
    """A text with its places in place."""
    texts = {"@ROOT@": str(root), "@MARK@": str(mark_of(root)), "@PYTHON@": PYTHON}
    for name, value in texts.items():
        text = text.replace(name, value)
    return text


def write(root: Path, files: Mapping[str, str]) -> None:
    """Write files of the project; those in `bin` and those that say who interprets them are programs."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(fill(content, root))
        if "bin" in path.parent.parts or content.startswith("#!"):
            path.chmod(0o755)


def make(root: Path, way: Way) -> Path:
    """Make the project; returns the directory in which commands are run."""
    write(root, way.files)
    for name, target in way.links.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).symlink_to(target)
    if way.prepare:
        way.prepare(root)
    server = json.loads(fill(json.dumps({"name": "x", **way.server}), root))
    write(root / way.directory, {".nexus3/mcp.json": json.dumps({"servers": [server]})})
    return root / way.directory


def apply(root: Path, way: Way) -> None:
    """Change the code."""
    write(root, way.evil)
    if way.change:
        way.change(root)


def run_without_nexus(root: Path, way: Way) -> None:
    """Start the command of a server as if it had been approved."""
    server = json.loads(fill(json.dumps(way.server), root))
    words = server["command"] if isinstance(server["command"], list) else [server["command"]]
    usual = {"PATH": os.environ["PATH"], "HOME": str(root.parent)}
    more = {name: fill(value, root) for name, value in way.variables.items()}
    environment = usual | more | server.get("env", {})
    subprocess.run(
        [*words, *server.get("args", [])],
        cwd=root / way.directory / server.get("cwd", "."),
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
    )
