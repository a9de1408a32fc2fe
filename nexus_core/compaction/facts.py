"""Facts of messages: paths, commands, identifiers, links, numbers and errors.

Takes time linear in the text: the repetitions of each pattern are possessive or bounded, and each word is checked once.
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from nexus_core.types.compaction import FACT_CLASSES, Fact
from nexus_core.types.messages import Text, ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from nexus_core.types.compaction import FactClass, ThreadMessage
    from nexus_core.types.messages import JSON, Message

MAX_FACTS_PER_TEXT = 50
"""Facts of one class from one text, such as the beginning of a long listing."""
MAX_FACT_CHARACTERS = 300
"""Characters of a fact."""
MAX_CARRIED_FACTS = 2000
"""Facts that one compaction passes to the next."""
_EFFECTS = ("changed", "read", "")

FactKey = tuple["FactClass", str]
"""Class and text: two facts with the same key are one."""


class FoundFact(NamedTuple):
    """A fact in one message."""

    kind: FactClass
    text: str
    note: str = ""

    @property
    def key(self) -> FactKey:
        """Class and text."""
        return self.kind, self.text


def extract_facts(messages: Iterable[ThreadMessage]) -> tuple[Fact, ...]:
    """Return the facts in messages of a thread, in the order of their first occurrence.

    Args:
        messages: The messages, oldest first. A summary among them is read like any other text, so leave out summaries
            whose facts are known.
    """
    collector = _FactCollector()
    for each in messages:
        for found in _find_message_facts(each.message, collector):
            collector.add(found, each.step, each.position)
    return tuple(collector.facts.values())


def merge_facts(previous: Iterable[Fact], new: Iterable[Fact], *, limit: int = MAX_CARRIED_FACTS) -> tuple[Fact, ...]:
    """Return old and new facts, each once, most important first.

    Args:
        previous: Facts of the previous compaction.
        new: Facts of the steps since then.
        limit: Maximum number of facts.
    """
    merged = {(fact.kind, fact.text): fact for fact in previous}
    for fact in new:
        key = fact.kind, fact.text
        merged[key] = _join_facts(merged[key], fact) if key in merged else fact
    return rank_facts(merged.values())[:limit]


def rank_facts(facts: Iterable[Fact]) -> tuple[Fact, ...]:
    """Return facts by importance: the newest first, where twice as many uses halve the age.

    A changed file and a failed command are ranked as half as old once more.
    """
    facts = tuple(facts)
    newest = max((fact.position for fact in facts), default=0)

    def get_rank(fact: Fact) -> tuple[int, int, int, str]:
        halvings = max(fact.uses, 1).bit_length() - 1 + (fact.note not in ("", "read", "exit 0"))
        return newest - fact.position >> halvings, -fact.uses, FACT_CLASSES.index(fact.kind), fact.text

    return tuple(sorted(facts, key=get_rank))


def facts_to_json(facts: Iterable[Fact]) -> list[list[Any]]:
    """Return the stored form of facts."""
    return [[fact.kind, fact.text, fact.note, fact.step, fact.uses, fact.position] for fact in facts]


def read_facts(value: object) -> tuple[Fact, ...]:
    """Return stored facts; rows of another form are skipped."""
    rows = value if isinstance(value, list | tuple) else ()
    return tuple(Fact(*row) for row in rows if _is_row(row))


class _FactCollector:
    """Facts by key, and commands without a result yet by the id of their call."""

    def __init__(self) -> None:
        self.facts: dict[FactKey, Fact] = {}
        self.running: dict[str, deque[str]] = defaultdict(deque)

    def add_outcome(self, result: ToolResult) -> None:
        """Add the exit code of a command to its fact."""
        running = self.running.get(result.call_id)
        if running:
            known = self.facts["command", running.popleft()]
            self.facts["command", known.text] = replace(known, note=find_exit_code(result))

    def add(self, found: FoundFact, step: str, position: int) -> None:
        known = self.facts.get(found.key)
        fact = Fact(found.kind, found.text, found.note, step, 1, position)
        if known is None:
            self.facts[found.key] = fact
        elif known.step == step:
            self.facts[found.key] = replace(known, note=_choose_note(known, fact))
        else:
            self.facts[found.key] = _join_facts(known, fact)


def _find_message_facts(message: Message, collector: _FactCollector) -> Iterator[FoundFact]:
    if message.role == "system":
        return
    for part in message.parts:
        if isinstance(part, Text):
            yield from _find_text_facts(part.text)
        elif isinstance(part, ToolCall):
            yield from _find_call_facts(part, collector)
        elif isinstance(part, ToolResult):
            collector.add_outcome(part)
            yield from (FoundFact(kind, text) for kind, text in find_facts(part.text))


def _find_text_facts(text: str) -> Iterator[FoundFact]:
    """Yield the facts of a text, with code names and dates.

    Tool results contain too many of the last two.
    """
    yield from (FoundFact(kind, each) for kind, each in find_facts(text))
    yield from (FoundFact("identifier", name) for name in islice(drop_duplicates(find_code(text)), MAX_FACTS_PER_TEXT))
    yield from (FoundFact("number", day) for day in islice(drop_duplicates(find_dates(text)), MAX_FACTS_PER_TEXT))


def _find_call_facts(call: ToolCall, collector: _FactCollector) -> Iterator[FoundFact]:
    paths = set()
    for path, effect in list_touched_paths(call):
        paths.add(path)
        yield FoundFact("path", path, effect)
    command = find_command(call)
    if command:
        yield FoundFact("command", command)
        collector.running[call.id].append(command)
    for kind, text in find_facts(list_other_arguments(call)):
        if text not in paths and kind != "error":
            yield FoundFact(kind, text)


def _join_facts(earlier: Fact, later: Fact) -> Fact:
    if later.position < earlier.position:
        earlier, later = later, earlier
    return Fact(
        later.kind, later.text, _choose_note(earlier, later), later.step, earlier.uses + later.uses, later.position
    )


def _choose_note(earlier: Fact, later: Fact) -> str:
    """Return the strongest effect on a file, or the latest outcome of a command."""
    return min(earlier.note, later.note, key=_rank_effect) if later.kind == "path" else later.note


def _rank_effect(note: str) -> int:
    return _EFFECTS.index(note) if note in _EFFECTS else 0


def _is_row(row: object) -> bool:
    return (
        isinstance(row, list | tuple)
        and len(row) == 6  # noqa: PLR2004 - the fields of a fact
        and row[0] in FACT_CLASSES
        and all(isinstance(each, str) for each in row[1:4])
        and all(type(each) is int for each in row[4:])
    )


# ---- tool calls -----------------------------------------------------------------------------------------------------

Effect = Literal["changed", "read", ""]

_PATH_ARGUMENTS = re.compile(
    r"(?:\w{0,20}_)?(?:paths?|files?|file_?names?|filepaths?|director(?:y|ies)|dir)", re.IGNORECASE
)
_COMMAND_ARGUMENTS = frozenset({"command", "cmd", "script", "commands"})
_CONTENT_ARGUMENTS = re.compile(
    r"contents?|text|body|data|file_text|(?:new|old)_str(?:ing)?|insert_text|new_source|code|patch|diff|input|edits",
    re.IGNORECASE,
)
_SHELL_TOOLS = re.compile(r"bash|shell|exec|terminal|command|\bsh\b|\brun\b|run_?cmd|powershell", re.IGNORECASE)
_CHANGING_TOOLS = re.compile(
    r"edit|writ|creat|replac|patch|insert|append|delet|remov|renam|mov|updat|save|modif|overwrit", re.IGNORECASE
)
_READING_TOOLS = re.compile(
    r"read|view|open|cat|grep|glob|search|list|\bls\b|find|head|tail|show|load|fetch|get", re.IGNORECASE
)
_PATCHED_FILE = re.compile(
    r"^(?:\*\*\* (?:Update|Add|Delete) File: |\*\*\* Move to: |\+\+\+ b/)(\S[^\n\t]{0,259})", re.MULTILINE
)
_EXIT_CODE = re.compile(
    r"\b(?:exit(?:ed)?[ _-]?(?:with )?(?:status code|code|status)|exited(?: with)?|return ?code)"
    r"\"?[ ]{0,2}[:=]?[ ]{0,2}(?:of )?(-?\d{1,5})\b",
    re.IGNORECASE,
)
_EXIT_CODE_CHARACTERS = 2000
"""Characters at the beginning and at the end of a result that are searched for an exit code."""


def list_touched_paths(call: ToolCall) -> Iterator[tuple[str, Effect]]:
    """Yield the files in path arguments and patches of a tool call, and its effect on them."""
    effect = _find_effect(call)
    for name, value in call.arguments.items():
        if _PATH_ARGUMENTS.fullmatch(name):
            values = value if isinstance(value, list | tuple) else [value]
            yield from ((each, effect) for each in values if isinstance(each, str) and _is_path(each))
        elif isinstance(value, str) and ("*** " in value or "+++ b/" in value):
            yield from ((match[1].rstrip(), "changed") for match in _PATCHED_FILE.finditer(value))
    if call.raw is not None and not call.arguments:
        yield from ((match[1].rstrip(), "changed") for match in _PATCHED_FILE.finditer(call.raw))


def find_command(call: ToolCall) -> str:
    """Return the first line of the command that a tool call runs; "" if it runs none."""
    if not _SHELL_TOOLS.search(call.name):
        return ""
    for name in call.arguments:
        if name.lower() in _COMMAND_ARGUMENTS:
            return _find_first_line(_join_command(call.arguments[name]))
    return ""


def list_other_arguments(call: ToolCall) -> str:
    """Return the other texts in the arguments of a tool call, without the content of files."""
    return "\n".join(
        _list_strings({name: value for name, value in call.arguments.items() if not _CONTENT_ARGUMENTS.fullmatch(name)})
    )


def find_exit_code(result: ToolResult) -> str:
    """Return the outcome of a command: `exit 1`, `failed` without an exit code, or "" if unknown."""
    text = result.text
    searched = (
        text
        if len(text) <= 2 * _EXIT_CODE_CHARACTERS
        else f"{text[:_EXIT_CODE_CHARACTERS]}\n{text[-_EXIT_CODE_CHARACTERS:]}"
    )
    codes = _EXIT_CODE.findall(searched)
    if codes:
        return f"exit {int(codes[-1])}"
    return "failed" if result.is_error else ""


def _find_effect(call: ToolCall) -> Effect:
    verb = call.arguments.get("command")
    # Some tools both edit and show, depending on an argument.
    name = verb if isinstance(verb, str) and verb.isidentifier() and not _SHELL_TOOLS.search(call.name) else call.name
    if _CHANGING_TOOLS.search(name):
        return "changed"
    return "read" if _READING_TOOLS.search(name) else ""


def _is_path(text: str) -> bool:
    return (
        0 < len(text) <= MAX_FACT_CHARACTERS and "\n" not in text and "://" not in text and text not in (".", "/", "*")
    )


def _join_command(value: object) -> str:
    if isinstance(value, str):
        return value
    if not isinstance(value, list | tuple) or not all(isinstance(each, str) for each in value):
        return ""
    arguments: list[str] = list(value)
    if len(arguments) == 3 and arguments[1].startswith("-") and arguments[1].endswith("c"):  # noqa: PLR2004 - `bash -lc "…"`
        return arguments[2]
    return " ".join(arguments)


def _find_first_line(text: str) -> str:
    line = next((line.strip() for line in text[: 4 * MAX_FACT_CHARACTERS].split("\n") if line.strip()), "")
    return line[:MAX_FACT_CHARACTERS].rstrip()


def _list_strings(value: JSON | object, depth: int = 4) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict) and depth:
        for each in value.values():
            yield from _list_strings(each, depth - 1)
    elif isinstance(value, list | tuple) and depth:
        for each in value:
            yield from _list_strings(each, depth - 1)


# ---- texts ----------------------------------------------------------------------------------------------------------

UNSPACED = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
"""Letters of Chinese, Japanese and Korean, which may be next to a path or a number without a space."""
_PUNCTUATION = (
    "\u2018-\u201f\u3000-\u303f\uff00-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65"  # CJK punctuation, and quotes
)
_LETTER = rf"[^\W{UNSPACED}]"
_BORDER = re.compile(rf"(?<=[{UNSPACED}])(?=[A-Za-z0-9])|(?<=[A-Za-z0-9])(?=[{UNSPACED}])")

_URL = re.compile(
    rf"(?<!{_LETTER})(?:https?|wss?|ftp|ssh|git|s3|gs|file|postgresql|postgres|mysql|redis|mongodb)://"
    rf"(?>(?:[^\s\"'`<>\\^{{}}|{_PUNCTUATION}{UNSPACED}]|(?<![A-Za-z0-9])[{UNSPACED}])+)"
)
_WORD = re.compile(rf"[^\s\"'`<>|(){{}}\[\],;={_PUNCTUATION}]{{3,}}+")
_LINE_NUMBER = re.compile(r"(?::\d{1,7}){1,2}$")
_ENDS = ".,:;!?*"

_UNITS = (
    "ns|µs|us|ms|s|sec|secs|seconds?|min|mins|minutes?|h|hours?|days?|weeks?|months?|years?|[kKMGTP]i?[bB]|bytes?|bits?"
    "|%|percent|px|pt|em|rem|dpi|[kMG]?Hz|[kMm]?[WVA]|°C|°F|mm|cm|km|kg|tokens?|rows?|lines?|files?|req/s|rps|qps"
    "|requests?(?: per [a-z]{3,6})?|users?|items?|records?|workers?|threads?|connections?|retries|attempts?|tests?"
    "|failed|passed|errors?|USD|EUR|GBP|x"
)
_NUMBER = re.compile(
    rf"(?<!{_LETTER})(?<![.,/:#-])(?:[$€£][ ]?\d(?:[\d,]{{0,14}}\d)?(?:\.\d{{1,6}})?(?:[kKMB]\b)?"
    rf"|[-+]?\d[\d,_]{{0,15}}(?:\.\d{{1,9}})?[ \u00a0]?(?:{_UNITS})(?!{_LETTER}|[/%])"
    rf"|[Pp]ort[ ]\d{{2,5}}(?!{_LETTER}))"
)

# A fast search for lines that may be errors, and the check of such a line.
_ERROR_HINT = re.compile(
    r"[Ee]rror|ERR|Exception|FAILED|[Ff]atal|FATAL|[Pp]anic|CRITICAL|denied|not found|No such|fault|undefined"
)
_ERROR = re.compile(
    r"^[\s>|E]{0,12}(?:[\w.$/]{1,120}:\s)?(?:Uncaught )?[\w.$]{0,120}(?:Error|Exception|Failure)\b(?:[:(\[]|\s*$)"
    r"|\b(?:error|fatal|panic|Error|Fatal|ERROR|FATAL|CRITICAL)\b(?:\[\w{1,12}\]| [A-Z]{1,5}\d{1,6})?:"
    r"|^(?:FAILED|ERROR) \S|\bnpm ERR!|\b(?:command not found|No such file or directory|[Pp]ermission denied)"
    r"|\b(?:Segmentation fault|undefined reference)"
)

# Source code about errors.
_ERROR_CODE = re.compile(
    r"(?:\d{1,7}[:|]?\s*)?(?:[-+]\s*)?(?:except|catch|raise|throw|class|def|import|from|return|if|//|#)\b"
)

_IDENTIFIER = re.compile(
    r"[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}"  # a UUID
    r"|(?:CVE|GHSA)-[0-9A-Za-z]{4}-[0-9A-Za-z]{4,7}(?:-[0-9a-z]{4})?"
    r"|[\w.-]{1,60}/[\w.-]{1,80}#\d{1,7}"  # an issue of a repository
    r"|v?\d{1,5}\.\d{1,5}\.\d{1,6}(?:[-+.][0-9A-Za-z.+-]{1,40})?(?::\d{2,5})?"  # a version, or an address
)
_ADDRESS = re.compile(r"[\w.+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,4}")
_TICKET = re.compile(r"([A-Z][A-Z0-9]{1,9})-\d{1,7}")
_NOT_TICKETS = frozenset(
    re.findall(r"\w+", "UTF SHA ISO MD AES RSA HTTP RFC IEEE COVID GPT USB UTC GMT BASE X86 ARM64 PY")
)
_HEXADECIMAL = re.compile(r"(?:sha\d{1,3}:)?[0-9a-f]{7,64}")
_DIGEST_LENGTHS = frozenset({*range(7, 13), 32, 40, 64})
_JOINED_NAME = re.compile(r"[A-Za-z0-9]{1,40}(?:[_-][A-Za-z0-9]{1,40}){1,6}")
_OPAQUE = re.compile(r"[A-Za-z0-9]{16,64}")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_CODE = re.compile(r"`([A-Za-z_$][\w$]{0,60}(?:(?:\.|::)[A-Za-z_$][\w$]{0,60}){0,5}(?:\(\))?)`")

_ROOTED = re.compile(r"(?:~|\.{1,2}|[A-Za-z]:|\$\w{1,40})?[/\\]")
_PATH = re.compile(r"[\w.~@+$%:/\\-]{3,260}")
_EXTENSION = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,9}$")
_FILE_EXTENSIONS = re.compile(
    r"py|pyi|ipynb|jsx?|mjs|cjs|tsx?|vue|svelte|go|rs|rb|java|kt|swift|c|cc|cpp|h|hpp|cs|php|pl|lua|r|jl|exs?|erl|hs|ml|clj"
    r"|scala|dart|sh|bash|zsh|fish|ps1|bat|sql|mdx?|rst|txt|html?|css|scss|sass|less|xml|svg|json[l5]?|ya?ml|toml|ini|cfg"
    r"|conf|env|lock|log|csv|tsv|parquet|proto|graphql|tf|hcl|gradle|patch|diff|png|jpe?g|gif|webp|pdf|docx|xlsx|zip|gz|tar"
    r"|whl|so|dll|exe|bin|db|sqlite|pem|crt|key",
    re.IGNORECASE,
)
_NOT_FILES = re.compile(r"(?:node|next|vue|react|express|nuxt|d3|three)\.js", re.IGNORECASE)
_FILES_WITHOUT_EXTENSION = re.compile(r"(?:Dockerfile|Makefile|Jenkinsfile|Procfile|LICENSE)(?:\.[\w-]{1,40})?")


def find_facts(text: str) -> Iterator[tuple[FactClass, str]]:
    """Yield the facts of a text, each once, in the order of the text within a class."""
    kinds: dict[FactClass, Iterable[str]] = {
        "url": find_urls(text),
        "number": (match[0] for match in _NUMBER.finditer(text)),
        "error": find_errors(text),
    }
    for kind, found in kinds.items():
        yield from ((kind, each) for each in islice(drop_duplicates(found), MAX_FACTS_PER_TEXT))
    yield from _find_words(text)


def drop_duplicates(found: Iterable[str]) -> Iterator[str]:
    """Yield each text once, lazily."""
    seen: set[str] = set()
    for each in found:
        if each not in seen:
            seen.add(each)
            yield each


def find_urls(text: str) -> Iterator[str]:
    """Yield links, without the punctuation of the sentence around them."""
    for match in _URL.finditer(text):
        url = match[0].rstrip(".,:;!?*_")
        if url.endswith(")") and "(" not in url:
            url = url.rstrip(").,:;")
        url = url.rstrip("]")
        if len(url) <= MAX_FACT_CHARACTERS and not url.endswith("//"):
            yield url


def find_errors(text: str) -> Iterator[str]:
    """Yield lines that report an error."""
    position = 0
    while found := _ERROR_HINT.search(text, position):
        start, end = text.rfind("\n", position, found.start()) + 1 or position, text.find("\n", found.end())
        position = len(text) if end < 0 else end + 1
        line = text[max(start, found.start() - MAX_FACT_CHARACTERS) : position].strip()[:MAX_FACT_CHARACTERS]
        if _ERROR.search(line) and not _ERROR_CODE.match(line):
            yield line.rstrip()


def find_code(text: str) -> Iterator[str]:
    """Yield names of functions, classes and variables between backticks."""
    for match in _CODE.finditer(text):
        name = match[1]
        # Names of one or two letters identify nothing.
        if len(name) > 2 and (name.endswith("()") or _is_code(name)) and parse_path(name) is None:  # noqa: PLR2004 - see above
            yield name


def find_dates(text: str) -> Iterator[str]:
    """Yield dates in ISO format."""
    return (match[0] for match in _DATE.finditer(text))


def parse_path(word: str) -> str | None:
    """Return a word as a path without a line number; None if it is not a path."""
    path = _LINE_NUMBER.sub("", word.partition("::")[0].rstrip(_ENDS))
    if not _PATH.fullmatch(path) or "//" in path or ":" in path[2:]:
        return None
    names = path.replace("\\", "/").split("/")
    if names[0] in ("a", "b") and len(names) > 2:  # noqa: PLR2004 - both sides of a git diff
        path, names = path[2:], names[1:]
    last = names[-1] or names[-2] if len(names) > 1 else path
    if len(names) == 1:
        extension = path[1:].rpartition(".")[2] if "." in path[1:] else ""
        is_file = _FILE_EXTENSIONS.fullmatch(extension) and not _NOT_FILES.fullmatch(path)
        return path if is_file or _FILES_WITHOUT_EXTENSION.fullmatch(path) else None
    if not any(character.isalpha() for character in path) or all(name.isdigit() for name in names if name):
        return None
    has_extension = _EXTENSION.search(last) is not None
    if _ROOTED.match(path):
        return path if has_extension or sum(map(bool, names)) > 1 else None
    return path if has_extension or (len(names) > 2 and "\\" not in path) else None  # noqa: PLR2004 - `and/or` is not a path


def parse_identifier(word: str) -> str | None:
    """Return a word as an identifier; None if it is not one."""
    if "@" in word and _ADDRESS.fullmatch(word):
        return word
    digits = sum(character.isdigit() for character in word)
    if not digits:
        return None
    ticket = _TICKET.fullmatch(word)
    if ticket is not None:
        return None if ticket[1] in _NOT_TICKETS else word
    return word if _IDENTIFIER.fullmatch(word) or _is_opaque(word, digits) else None


def _is_opaque(word: str, digits: int) -> bool:
    """True if a word is a digest or a generated name."""
    letters = sum(character.isalpha() for character in word)
    if _HEXADECIMAL.fullmatch(word):
        return letters > 0 and len(word.rpartition(":")[2]) in _DIGEST_LENGTHS
    if _DATE.match(word) or word.startswith("x86"):
        return False
    if _JOINED_NAME.fullmatch(word):
        return len(word) > 7 and digits > 2 and letters > 0  # noqa: PLR2004 - longer than `utf-8`
    return bool(_OPAQUE.fullmatch(word)) and min(digits, letters) > 3  # noqa: PLR2004 - not a word with a number after it


def _find_words(text: str) -> Iterator[tuple[FactClass, str]]:
    counts: dict[FactClass, int] = {"path": 0, "identifier": 0}
    seen: set[str] = set()
    words = dict.fromkeys(_WORD.findall(text))
    if not text.isascii():
        words = dict.fromkeys(part for word in words for part in _BORDER.split(word))
    for word in words:
        if word.isalpha() or len(word) > MAX_FACT_CHARACTERS or "://" in word:
            continue
        bare = word.strip("*_").rstrip(_ENDS)
        kind: FactClass = "identifier"
        found = parse_identifier(bare)
        if found is None:
            kind, found = "path", parse_path(bare)
        if found is not None and found not in seen and counts[kind] < MAX_FACTS_PER_TEXT:
            seen.add(found)
            counts[kind] += 1
            yield kind, found


def _is_code(name: str) -> bool:
    inner = name[1:]
    return "_" in inner or "." in inner or ":" in inner or (inner != inner.lower() and name != name.upper())
