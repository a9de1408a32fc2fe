"""Counting with tiktoken and the bundled tables, without a network."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import nexus_plugins.tiktoken_counter as plugin
from nexus_core import NexusError, UnknownNameError
from nexus_core.context import TiktokenCounter
from nexus_core.host.manager import load_plugin
from nexus_core.testing import check_plugin, write_files
from nexus_core.testing.fixtures import MakeNexus
from nexus_core.tokens.counters import get_token_counter, open_counter
from nexus_core.tokens.estimator import estimate
from nexus_core.types.budget import ModelCounter
from nexus_plugins.tiktoken_counter import _counter, _short_texts, _tables
from nexus_plugins.tiktoken_counter._counter import load_engine
from nexus_plugins.tiktoken_counter._diagnosis import diagnose_tokenizers
from nexus_plugins.tiktoken_counter._short_texts import build_index, load_short_text_encoder
from nexus_plugins.tiktoken_counter._tables import RANK_SEPARATOR, load_encoder, load_tables, read_index, read_ranks
from tests.conftest import ROOT

KNOWN: dict[str, dict[str, list[int]]] = json.loads((Path(__file__).parent / "tiktoken_ids.json").read_text())
ENCODINGS = pytest.mark.parametrize("encoding", KNOWN)


@pytest.fixture
def damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of the tables that may be spoilt, and nobody who has tables of his own; encoders are made anew."""
    folder = tmp_path / "ranks"
    shutil.copytree(_tables.RANKS_DIRECTORY, folder)
    monkeypatch.setattr(_tables, "RANKS_DIRECTORY", folder)
    monkeypatch.setattr("nexus_plugins.tiktoken_counter._diagnosis.RANKS_DIRECTORY", folder)
    monkeypatch.setattr(_counter, "has_splintr", lambda: False)
    for cached in (load_tables, load_encoder, load_engine, load_short_text_encoder):
        cached.cache_clear()
    yield folder
    for cached in (load_tables, load_encoder, load_engine, load_short_text_encoder):
        cached.cache_clear()


# ---- the same ids as tiktoken's own ---------------------------------------------------------------------------------


@pytest.mark.acceptance("K-02")
@ENCODINGS
def test_the_ids_are_those_of_tiktoken(encoding: str) -> None:
    encoder = load_encoder(encoding)

    assert {text: encoder.encode_ordinary(text) for text in KNOWN[encoding]} == KNOWN[encoding]
    assert [TiktokenCounter(encoding).count(text) for text in KNOWN[encoding]] == [
        len(ids) for ids in KNOWN[encoding].values()
    ]


@ENCODINGS
@given(text=st.text(st.characters(exclude_categories=["Cs"])))
def test_what_is_encoded_decodes_to_the_text(text: str, encoding: str) -> None:
    encoder = load_encoder(encoding)

    assert encoder.decode(encoder.encode_ordinary(text)) == text


@ENCODINGS
def test_a_table_is_the_file_that_tiktoken_expects_in_another_form(encoding: str) -> None:
    table = load_tables()[encoding]
    tokens = [token or RANK_SEPARATOR for token in read_ranks(table).split(RANK_SEPARATOR)]
    lines = [base64.b64encode(token) + b" %d\n" % rank for rank, token in enumerate(tokens)]

    assert hashlib.sha256(b"".join(lines)).hexdigest() == table.origin_sha256


def test_patterns_special_tokens_and_digests_are_those_of_the_installed_tiktoken() -> None:
    # Through the script, which asks tiktoken; importing it as a module needs its folder on the path.
    code = (
        "import sys, json; sys.path.insert(0, 'scripts'); import build_ranks as b;"
        "print(json.dumps({n: b.describe(n)._asdict() for n in b.ENCODINGS}))"
    )
    told = json.loads(subprocess.check_output([sys.executable, "-c", code], cwd=ROOT, text=True))

    for name, facts in told.items():
        table = load_tables()[name]
        assert (facts["pattern"], facts["special_tokens"], facts["sha256"]) == (
            table.pattern,
            table.special_tokens,
            table.origin_sha256,
        )


@pytest.mark.slow
def test_the_script_builds_these_tables_from_a_package_that_carries_the_ranks(tmp_path: Path) -> None:
    get = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(tmp_path), "llama-index-core"]
    if subprocess.run(get, capture_output=True, check=False).returncode:
        pytest.skip("no package index has llama-index-core")
    (archive,) = tmp_path.glob("*.whl")
    check = [sys.executable, str(ROOT / "scripts/build_ranks.py"), str(archive), "--check"]

    assert subprocess.run(check, capture_output=True, check=False).returncode == 0

    with zipfile.ZipFile(archive) as wheel:  # its folder is a cache as tiktoken itself would fill it
        for name in wheel.namelist():
            if "/tiktoken_cache/" in name and not name.endswith(".gitignore"):
                (tmp_path / Path(name).name).write_bytes(wheel.read(name))
    code = (
        "import tiktoken, json, sys; text = sys.stdin.read();"
        "print(json.dumps([tiktoken.get_encoding(n).encode_ordinary(text) for n in ('cl100k_base', 'o200k_base')]))"
    )
    text = "".join(path.read_text() for path in sorted((ROOT / "tests/tokens/samples").glob("*.txt")))
    own = subprocess.check_output(
        [sys.executable, "-c", code], input=text, text=True, env={**os.environ, "TIKTOKEN_CACHE_DIR": str(tmp_path)}
    )
    assert json.loads(own) == [load_encoder(name).encode_ordinary(text) for name in ("cl100k_base", "o200k_base")]


# ---- what must not happen -------------------------------------------------------------------------------------------


@pytest.mark.acceptance("B-08", "T17", "R21")
def test_it_counts_without_a_network_and_without_tiktokens_own_cache(tmp_path: Path) -> None:
    code = (
        "import socket\n"
        "def refuse(*_): raise AssertionError('a connection was tried')\n"
        "socket.socket.connect = socket.getaddrinfo = socket.create_connection = refuse\n"
        "from nexus_core.context import get_token_counter\n"
        "print(get_token_counter('gpt-4o').count('Hello, world!'), get_token_counter().count('Hello, world!'))\n"
    )
    work = tmp_path / "work"
    work.mkdir()
    environment = {**os.environ, "TIKTOKEN_CACHE_DIR": str(work), "NEXUS_HOME": str(tmp_path / "home")}

    output = subprocess.check_output([sys.executable, "-c", code], text=True, env=environment, cwd=work)

    assert output == "4 4\n"
    assert list(work.iterdir()) == []


@pytest.mark.acceptance("B-08")
@ENCODINGS
def test_special_tokens_count_as_text(encoding: str) -> None:
    assert TiktokenCounter(encoding).count("<|endoftext|>") > 1


@pytest.mark.acceptance("T17")
@ENCODINGS
@pytest.mark.parametrize("text", [" " * 1_000_000 + "x", "\t " * 500_000, "\ud800" * 1000, "\0" * 100_000])
def test_no_text_makes_it_fail(encoding: str, text: str) -> None:
    count = TiktokenCounter(encoding).measure(text)

    assert count.basis == "exact"
    assert 0 < count.tokens <= len(text)


@pytest.mark.acceptance("T17")
def test_a_panic_in_the_extension_costs_the_text_its_exactness(monkeypatch: pytest.MonkeyPatch) -> None:
    class PanicException(BaseException):
        pass

    def panic(text: str) -> list[int]:
        if "poison" in text:
            raise PanicException
        return [1, 2]

    counter = TiktokenCounter()
    monkeypatch.setattr(counter, "_encode", panic)

    assert counter.measure("some poison") == (estimate("some poison"), "estimated")
    assert counter.measure("a cure") == (2, "exact")
    assert counter.exact


def test_an_interrupt_is_not_swallowed(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_text: str) -> list[int]:
        raise KeyboardInterrupt

    counter = TiktokenCounter()
    monkeypatch.setattr(counter, "_encode", interrupt)

    with pytest.raises(KeyboardInterrupt):
        counter.count("text")


def test_a_damaged_table_means_estimates_and_one_warning(damaged: Path, caplog: pytest.LogCaptureFixture) -> None:
    content = bytearray((damaged / "cl100k_base.ranks").read_bytes())
    content[-1] ^= 1
    (damaged / "cl100k_base.ranks").write_bytes(content)

    counter = TiktokenCounter()

    assert counter.measure("word " * 80) == (100, "estimated")
    assert counter.count("word " * 8) == 10
    assert not counter.exact
    assert [record.getMessage().splitlines()[0] for record in caplog.records] == [
        "tokens are estimated: the rank table is damaged"
    ]


def test_doctor_names_a_damaged_table(damaged: Path) -> None:
    assert diagnose_tokenizers() == []

    (damaged / "o200k_base.ranks").unlink()

    (finding,) = diagnose_tokenizers()
    assert (finding.code, finding.path) == ("tokenizer-damaged", damaged / "o200k_base.ranks")


def test_doctor_says_that_the_list_of_tables_is_damaged(damaged: Path) -> None:
    (damaged / "tables.json").write_text("{")

    (finding,) = diagnose_tokenizers()

    assert finding.code == "tokenizer-unavailable"
    assert "rank tables are damaged" in finding.message


@pytest.mark.acceptance("K-04")
def test_without_tiktoken_tokens_are_estimated_with_one_warning(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "class Hide:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name.partition('.')[0] == 'tiktoken': raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Hide())\n"
        "import importlib.util as u; real = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name == 'tiktoken' else real(name, *a)\n"
        "from nexus_core.context import get_token_counter, TiktokenCounter\n"
        "from nexus_core.tokens.counters import open_counter\n"
        "print(type(get_token_counter('gpt-4o')).__name__, type(get_token_counter()).__name__)\n"
        "print(open_counter('gpt-4o').measure('word ' * 80))\n"
        "try: TiktokenCounter()\n"
        "except Exception as error: print(error.what)\n"
    )
    environment = {**os.environ, "NEXUS_HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}

    done = subprocess.run([sys.executable, "-c", code], text=True, env=environment, capture_output=True, check=True)

    assert done.stdout.splitlines() == [
        "SimpleTokenCounter SimpleTokenCounter",
        "TokenCount(tokens=100, basis='estimated')",
        "tiktoken is not installed",
    ]
    assert done.stderr.count("estimated") == 1


BROKEN = {
    "ImportError": "raise ImportError('undefined symbol: PyFoo')",
    "OSError": "raise OSError('libfoo.so: cannot open shared object')",
    "panic": "class Panic(BaseException): pass\nraise Panic('in the extension')",
    "an empty package": "",
}


def run_with(package: str, source: str, code: str, place: Path) -> list[str]:
    """Run a program with a package before all others, in a home and a cache of its own; returns its output."""
    write_files(place / "site", {f"{package}/__init__.py": source})
    environment = {
        **os.environ,
        "PYTHONPATH": str(place / "site"),
        "NEXUS_HOME": str(place / "home"),
        "XDG_CACHE_HOME": str(place / "cache"),
    }
    (place / "work").mkdir(exist_ok=True)
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, text=True, env=environment, cwd=place / "work", capture_output=True, check=True)
    return done.stdout.splitlines()


@pytest.mark.acceptance("K-04")
@pytest.mark.parametrize("source", BROKEN.values(), ids=BROKEN)
def test_tiktoken_that_cannot_be_imported_counts_as_absent(source: str, tmp_path: Path) -> None:
    code = (
        "import json\n"
        "from nexus_core import Nexus\n"
        "from nexus_core.context import get_token_counter, TiktokenCounter\n"
        "from nexus_core.tokens.count_cache import CountCache, get_shared_cache\n"
        "counter = get_token_counter('gpt-4o')\n"
        "print(counter.name, counter.exact, counter.measure('word ' * 80).basis)\n"
        "print(get_shared_cache().find(CountCache.key('tiktoken:o200k_base', 'word ' * 80)))\n"
        "nexus = Nexus('.', ledger='sqlite:///l.db')\n"
        "session = nexus.session('s', model='gpt-4o')\n"
        "print(session.ask('word ' * 80).token_budget.estimated)\n"
        "session.record({'role': 'assistant', 'content': 'Yes.'})\n"
        "record = nexus.ledger.session('s')\n"
        "print(*sorted({step.counter for step in nexus.ledger.thread(record.tip) if step.counter}))\n"
        "try: TiktokenCounter()\n"
        "except Exception as error: print(error.what.partition(':')[0])\n"
    )

    assert run_with("tiktoken", source, code, tmp_path) == [
        "estimate False estimated",
        "None",
        "True",
        "estimate",
        "tiktoken cannot be imported",
    ]


@pytest.mark.parametrize("source", BROKEN.values(), ids=BROKEN)
def test_doctor_names_a_tiktoken_that_cannot_be_imported(source: str, tmp_path: Path) -> None:
    code = "from nexus_core.cli.run import run\nrun(['doctor', '--json'])\n"

    (finding,) = json.loads("\n".join(run_with("tiktoken", source, code, tmp_path)))["findings"]

    assert finding["code"] == "tokenizer-unavailable"
    assert finding["message"].startswith("tiktoken cannot be imported: ")
    assert finding["message"].endswith("; tokens are estimated; pip install --force-reinstall tiktoken")


@pytest.mark.parametrize("source", BROKEN.values(), ids=BROKEN)
def test_splintr_that_cannot_be_imported_leaves_counting_to_tiktoken(source: str, tmp_path: Path) -> None:
    code = (
        "from nexus_core.context import get_token_counter\n"
        "from nexus_core.cli.run import run\n"
        "counter = get_token_counter('gpt-4o')\n"
        "print(counter.name, *counter.measure('Hello, world!'))\n"
        "run(['doctor'])\n"
    )

    count, finding = run_with("splintr", source, code, tmp_path)

    assert count == "tiktoken:o200k_base 4 exact"
    assert finding.startswith("splintr cannot be imported: ")
    assert finding.endswith("; upgrade or uninstall splintr-rs [tokenizer-unavailable]")


def test_a_tiktoken_that_is_repaired_is_used_at_once(tmp_path: Path) -> None:
    code = "from nexus_core.context import get_token_counter\nprint(get_token_counter('gpt-4o').name)\n"
    works = "class Encoding: pass\n"

    names = [run_with("tiktoken", source, code, tmp_path) for source in (works, "raise ImportError", works)]

    assert names == [["tiktoken:o200k_base"], ["estimate"], ["tiktoken:o200k_base"]]


def test_sizes_estimated_with_a_damaged_table_are_not_stored_as_counts(
    damaged: Path, make_nexus: MakeNexus, tmp_path: Path
) -> None:
    (damaged / "o200k_base.ranks").write_bytes(b"nonsense")
    nexus = make_nexus()
    session = nexus.session("s", model="gpt-4o")

    context = session.ask("A text that no other test has counted: " + str(tmp_path))
    session.record({"role": "assistant", "content": f"Yes, {tmp_path}"})

    assert context.token_budget.estimated
    record = nexus.ledger.session("s")
    assert record is not None
    assert record.tip is not None
    assert {step.counter for step in nexus.ledger.thread(record.tip) if step.tokens} == {"estimate"}


def test_nothing_is_imported_until_a_text_is_counted(tmp_path: Path) -> None:
    code = (
        "import sys; from nexus_core.context import get_token_counter\n"
        "counters = [get_token_counter(model) for model in ('gpt-4o', 'claude-sonnet-4', '')]\n"
        "print(*sys.modules.keys() & {'tiktoken', 'splintr'}, '-')\n"
        "counters[0].count('x')\n"
        "print(*sys.modules.keys() & {'splintr'}, '-')\n"
        "counters[0].count('\u00e9')\n"
        "print(*sorted(sys.modules.keys() & {'tiktoken', 'splintr'}))\n"
    )
    environment = {**os.environ, "NEXUS_HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}

    # The first process finds out that tiktoken can be imported, for all others.
    outputs = [subprocess.check_output([sys.executable, "-c", code], text=True, env=environment) for _ in range(2)]

    first, later = (output.split() for output in outputs)
    assert first == ["tiktoken", "-", "-", "splintr", "tiktoken"]
    assert later == ["-", "-", "splintr"]


# ---- which encoding -------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("nexus_home")
@pytest.mark.parametrize(
    ("model", "name", "exact"),
    [
        ("", "tiktoken:cl100k_base", False),
        ("gpt-4", "tiktoken:cl100k_base", True),
        ("gpt-4o-2024-08-06", "tiktoken:o200k_base", True),
        ("openai/gpt-4.1", "tiktoken:o200k_base", True),
        ("gpt-oss-120b", "tiktoken:o200k_base", True),
        ("text-embedding-3-small", "tiktoken:cl100k_base", True),  # tiktoken knows it, the table of models does not
        ("text-davinci-003", "tiktoken:o200k_base", False),  # its encoding is not bundled
        ("claude-sonnet-4-20250514", "tiktoken:o200k_base*1.17+60", False),  # corrected by the table of models
        ("models/gemini-2.5-pro", "tiktoken:o200k_base", False),
        ("nobody-knows-me", "tiktoken:o200k_base", False),
    ],
)
def test_the_encoding_of_a_model(model: str, name: str, exact: bool) -> None:
    counter = get_token_counter(model)

    assert (counter.name, counter.exact) == (name, exact)
    assert open_counter(model).measure("Hello!").basis in ({"exact", "cached"} if exact else {"estimated"})


@pytest.mark.acceptance("K-02")
def test_the_default_encoding_is_cl100k_base() -> None:
    counter = TiktokenCounter()

    assert (counter.encoding_name, counter.exact) == ("cl100k_base", True)
    assert isinstance(counter, ModelCounter)
    assert TiktokenCounter(encoding_name="o200k_harmony").name == "tiktoken:o200k_base"


def test_an_encoding_that_is_not_bundled_is_a_clear_error() -> None:
    with pytest.raises(UnknownNameError, match="unknown encoding 'o200k_bas'") as caught:
        TiktokenCounter("o200k_bas")

    assert caught.value.hint == "did you mean 'o200k_base'?"


def test_the_plugin_keeps_the_contract() -> None:
    assert check_plugin(plugin) == []
    assert load_plugin("tiktoken_counter") is plugin


def test_a_plugin_that_is_nowhere_is_a_clear_error() -> None:
    with pytest.raises(NexusError, match="unknown plugin 'tiktoken_countr'"):
        load_plugin("tiktoken_countr")


# ---- short texts, without a tokenizer -------------------------------------------------------------------------------

ASCII_TEXT = st.text(st.characters(max_codepoint=127))
ASCII_WORDS = st.lists(
    st.sampled_from(
        [*" \n\t\r'.,(){}=-/09aZ", "  ", "\n\n", "Hello", "HTTPServer", "it's", "I'LL", "2026-11-18", "----"]
    )
).map("".join)


@pytest.mark.acceptance("K-02")
@ENCODINGS
@given(text=ASCII_TEXT | ASCII_WORDS)
def test_short_text_has_the_tokens_of_tiktoken(text: str, encoding: str) -> None:
    assert load_short_text_encoder(encoding).count(text) == len(load_encoder(encoding).encode_ordinary(text))


@ENCODINGS
def test_pieces_of_real_files_have_the_tokens_of_tiktoken(encoding: str) -> None:
    short, own = load_short_text_encoder(encoding), load_encoder(encoding)
    text = (ROOT / "README.md").read_text(encoding="utf-8") + (ROOT / "Makefile").read_text(encoding="utf-8")
    pieces = [piece for piece in text.split("\n\n") if piece.isascii()]

    assert len(pieces) > 20
    assert [short.count(piece) for piece in pieces] == [len(own.encode_ordinary(piece)) for piece in pieces]


@ENCODINGS
def test_index_is_built_from_the_ranks(encoding: str) -> None:
    table = load_tables()[encoding]

    assert read_index(table) == build_index(read_ranks(table))


def test_short_texts_start_no_tokenizer_until_they_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[str] = []

    def start(name: str) -> Callable[[str], list[int]]:
        started.append(name)
        return load_engine(name)

    monkeypatch.setattr(_counter, "load_engine", start)
    load_short_text_encoder.cache_clear()
    counter = TiktokenCounter("o200k_base")

    counts = [counter.count("It is Wednesday, 10:15.") for _ in range(3)]
    assert (counts, started) == ([9] * 3, [])

    counter.count("x " * _short_texts.MAX_CHARACTERS)
    assert started == ["o200k_base"]

    TiktokenCounter("o200k_base").count("It is Wednesday, 10:15.")
    assert started == ["o200k_base"] * 2, "another counter of the process uses the tokenizer that runs"


@pytest.mark.parametrize("text", ["naïve", "=" * 500, "a" * 500])
def test_other_texts_are_counted_by_the_tokenizer(text: str) -> None:
    assert TiktokenCounter("cl100k_base").count(text) == len(load_encoder("cl100k_base").encode_ordinary(text))


@pytest.mark.parametrize("spoil", [Path.unlink, lambda path: path.write_bytes(b"\0" * 64)], ids=["missing", "damaged"])
def test_damaged_index_leaves_counts_exact(damaged: Path, spoil: Callable[[Path], object]) -> None:
    spoil(damaged / "o200k_base.index")

    counter = TiktokenCounter("o200k_base")

    assert (counter.count("Hello, world!"), counter.name) == (4, "tiktoken:o200k_base")
