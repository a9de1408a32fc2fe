"""Facts of messages: decisions, paths, commands, errors, identifiers, links.

Takes time linear in the text: the repetitions of each pattern are possessive or bounded, and each word is checked once.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict, deque
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from nexus_core.memory.statements import find_decisions, find_refusal_reason, is_refusal, strip_inserted_text
from nexus_core.types.compaction import FACT_CLASSES, Fact
from nexus_core.types.messages import Text, ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from nexus_core.types.compaction import FactClass, ThreadMessage
    from nexus_core.types.messages import JSON, Message

MAX_FACTS_PER_TEXT = 50
"""Facts of one class from one text, such as the beginning of a long listing."""
MAX_DETAILS_PER_RESULT = 12
"""Errors, paths, identifiers, links and numbers of each class from one tool result: more are a listing or a log."""
FIRST_ERRORS = 5
"""Errors of one text that are as important as other facts; the others usually follow from them."""
MAX_FACT_CHARACTERS = 300
"""Characters of a fact."""
MAX_COMMAND_CHARACTERS = 400
"""Characters of a command; of a longer one the beginning is kept, with the number of characters left out."""
MAX_CARRIED_FACTS = 2000
"""Facts that one compaction passes to the next."""
MINOR_CLASSES: tuple[FactClass, ...] = ("identifier", "url", "number")
"""Classes of details, of which long outputs contain very many."""
_MINOR_SHARE = 8
"""The fraction of the carried facts that each of these classes may have, so that they displace no decision."""
FOLLOWING = "following"
"""The note of an error after the first ones of its text."""
VAGUE = "vague"
"""The note of a decision that is only named with its step: alone it says little."""
MINOR_NOTES = (FOLLOWING, "reason", VAGUE)
"""Notes of facts that are less important than others of their class."""
_PLAIN_NOTES = ("", "read", "exit 0", *MINOR_NOTES)
_EFFECTS = ("changed", "read", "")

FactKey = tuple["FactClass", str]
"""Class and text: two facts with the same key are one."""


class MessageFact(NamedTuple):
    """A fact in one message."""

    kind: FactClass
    text: str
    note: str = ""

    @property
    def key(self) -> FactKey:
        """Class and text."""
        return self.kind, self.text


class TextFactCache:
    """Cache of the facts of texts."""

    def __init__(self) -> None:
        self._texts: dict[tuple[str, bool], tuple[MessageFact, ...]] = {}
        self._others: dict[tuple[str, bool], tuple[tuple[FactClass, str], ...]] = {}

    def find_text_facts(self, text: str, *, is_user: bool) -> tuple[MessageFact, ...]:
        """Return the facts of a text of a user or an assistant."""
        found = self._texts.get((text, is_user))
        if found is None:
            found = self._texts[text, is_user] = tuple(_find_text_facts(text, is_user=is_user))
        return found

    def find_facts(self, text: str, *, with_errors: bool) -> tuple[tuple[FactClass, str], ...]:
        """Return the facts of any other text by class."""
        found = self._others.get((text, with_errors))
        if found is None:
            found = self._others[text, with_errors] = tuple(find_facts(text, with_errors=with_errors))
        return found


def extract_facts(messages: Iterable[ThreadMessage], cache: TextFactCache | None = None) -> tuple[Fact, ...]:
    """Return the facts in messages of a thread, by first occurrence.

    Args:
        messages: The messages, oldest first. A summary among them is read like any other text, so leave out summaries
            whose facts are known.
        cache: The facts of texts that were read before; None for none.
    """
    collector = _FactCollector(TextFactCache() if cache is None else cache)
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
    ranked = rank_facts(merged.values())
    if len(ranked) <= limit:
        return ranked
    left = dict.fromkeys(MINOR_CLASSES, max(limit // _MINOR_SHARE, 1))
    return tuple(islice((fact for fact in ranked if _takes_place(fact, left)), limit))


def _takes_place(fact: Fact, left: dict[FactClass, int]) -> bool:
    """True if a fact of its class may still be carried. Counts the fact."""
    if fact.kind in left:
        left[fact.kind] -= 1
        return left[fact.kind] >= 0
    return True


def rank_facts(facts: Iterable[Fact]) -> tuple[Fact, ...]:
    """Return facts by importance: the newest and the most used first.

    A changed file and a failed command are ranked as half as old once more.
    """
    facts = tuple(facts)
    newest = max((fact.position for fact in facts), default=0)

    def get_rank(fact: Fact) -> tuple[int, int, int, str]:
        halvings = max(fact.uses, 1).bit_length() - 1 + (fact.note not in _PLAIN_NOTES)
        age = newest - fact.position >> halvings
        is_minor = fact.note in MINOR_NOTES
        return age << 2 if is_minor else age, -fact.uses, FACT_CLASSES.index(fact.kind), fact.text

    return tuple(sorted(facts, key=get_rank))


def facts_to_json(facts: Iterable[Fact]) -> list[list[Any]]:
    """Return the stored form of facts."""
    return [[fact.kind, fact.text, fact.note, fact.step, fact.uses, fact.position] for fact in facts]


def read_facts(value: object) -> tuple[Fact, ...]:
    """Return stored facts, without malformed rows."""
    rows = value if isinstance(value, list | tuple) else ()
    return tuple(Fact(*row) for row in rows if _is_row(row))


class _FactCollector:
    """Facts by key, with the commands that have no result yet."""

    def __init__(self, cache: TextFactCache) -> None:
        self.cache = cache
        self.facts: dict[FactKey, Fact] = {}
        self.running: dict[str, deque[str]] = defaultdict(deque)
        self.calls: dict[str, ToolCall] = {}

    def add_outcome(self, result: ToolResult) -> None:
        """Add the exit code of a command to its fact."""
        running = self.running.get(result.call_id)
        if running:
            known = self.facts["command", running.popleft()]
            self.facts["command", known.text] = replace(known, note=find_command_outcome(result))

    def add(self, found: MessageFact, step: str, position: int) -> None:
        known = self.facts.get(found.key)
        fact = Fact(found.kind, found.text, found.note, step, 1, position)
        if known is None:
            self.facts[found.key] = fact
        elif known.step == step:
            self.facts[found.key] = replace(known, note=_choose_note(known, fact))
        else:
            self.facts[found.key] = _join_facts(known, fact)


def _find_message_facts(message: Message, collector: _FactCollector) -> Iterator[MessageFact]:
    if message.role == "system":
        return
    for part in message.parts:
        if isinstance(part, Text):
            is_user = message.role == "user"
            text = strip_inserted_text(part.text) if is_user else part.text
            yield from collector.cache.find_text_facts(text, is_user=is_user)
        elif isinstance(part, ToolCall):
            yield from _find_call_facts(part, collector)
        elif isinstance(part, ToolResult):
            collector.add_outcome(part)
            yield from _find_result_facts(part, collector)


def _find_text_facts(text: str, *, is_user: bool) -> Iterator[MessageFact]:
    """Yield the facts of a text, with decisions, code names and dates.

    Tool results contain too many of the last two. Errors that a model writes about are in the tool results before.
    """
    yield from (MessageFact("decision", each.text, each.note) for each in find_decisions(text))
    yield from (MessageFact(kind, each) for kind, each in find_facts(text, with_errors=is_user))
    yield from (
        MessageFact("identifier", name) for name in islice(drop_duplicates(find_code(text)), MAX_FACTS_PER_TEXT)
    )
    yield from (MessageFact("number", day) for day in islice(drop_duplicates(find_dates(text)), MAX_FACTS_PER_TEXT))


def _find_result_facts(result: ToolResult, collector: _FactCollector) -> Iterator[MessageFact]:
    """Yield the facts of a tool result, without errors in file content."""
    text, call = result.text, collector.calls.get(result.call_id)
    if is_refusal(text):
        reason = " ".join(find_refusal_reason(text).split())[:MAX_FACT_CHARACTERS]
        refused = f"The user refused {_describe_call(call, result.name)}"
        yield MessageFact("decision", f"{refused}: {reason}" if reason else f"{refused}.", "rejected")
        return
    has_errors = result.is_error or call is None or not prints_content(call)
    counts: Counter[FactClass] = Counter()
    for kind, each in collector.cache.find_facts(text, with_errors=has_errors):
        counts[kind] += 1
        if counts[kind] <= MAX_DETAILS_PER_RESULT:
            yield MessageFact(kind, each, FOLLOWING if kind == "error" and counts[kind] > FIRST_ERRORS else "")
    failure = describe_failed_result(text) if result.is_error and not counts["error"] else ""
    if failure:
        yield MessageFact("error", failure)


def _describe_call(call: ToolCall | None, name: str) -> str:
    """Return the tool of a call, with its command or file."""
    if call is None:
        return name or "a tool call"
    target = find_command(call) or next((path for path, _ in list_touched_paths(call)), "")
    return " ".join(f"{call.name} {target}".split())


def _find_call_facts(call: ToolCall, collector: _FactCollector) -> Iterator[MessageFact]:
    paths = set()
    for path, effect in list_touched_paths(call):
        paths.add(path)
        yield MessageFact("path", path, effect)
    collector.calls[call.id] = call
    command = find_command(call)
    if command:
        yield MessageFact("command", command)
        collector.running[call.id].append(command)
    for kind, text in collector.cache.find_facts(join_argument_texts(call), with_errors=True):
        if text not in paths and kind != "error":
            yield MessageFact(kind, text)


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
_HERE_DOCUMENT = re.compile(r"<<-?[ \t]{0,4}[\"'\\]?([A-Za-z_]\w{0,40})")
_HERE_DOCUMENT_CHARACTERS = 100
"""Characters of the first line of a here-document that are kept, such as the subject of a commit message."""
_COMMAND_END = re.compile(r"&&|\|\|?|;|\n")
_PROGRAM = re.compile(
    r"(?:[A-Z_]{1,40}=\S{0,200}\s+|sudo\s+|time\s+){0,4}(git (?:diff|show|log|blame)|sed -n|[\w./-]{1,80})"
)
_PRINTING_PROGRAM = re.compile(
    r"cat|head|tail|less|more|bat|nl|grep|egrep|fgrep|rg|ag|ack|sed -n|awk|jq|cut|sort|uniq|tr|wc|ls|find|fd|tree|echo"
    r"|cd|pwd|git (?:diff|show|log|blame)|diff|strings|column|xargs"
)
"""Programs that print files, or filter what others printed."""
_EXIT_CODE_CHARACTERS = 2000
"""Characters at the beginning and at the end of a result that are searched for an exit code."""


def list_touched_paths(call: ToolCall) -> Iterator[tuple[str, Effect]]:
    """Yield the files that a tool call names, and its effect on them."""
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
    """Return the command that a tool call runs, or "" if there is none.

    A here-document is cut to its first line, and a very long command to its beginning, each with the number of
    characters left out.
    """
    if not _SHELL_TOOLS.search(call.name):
        return ""
    for name in call.arguments:
        if name.lower() in _COMMAND_ARGUMENTS:
            return shorten_command(_join_command(call.arguments[name]))
    return ""


def shorten_command(command: str) -> str:
    """Return a command without blank lines and the bodies of here-documents."""
    lines = (line.rstrip() for line in _cut_here_documents(command).split("\n"))
    text = "\n".join(line for line in lines if line.strip()).strip()
    if len(text) <= MAX_COMMAND_CHARACTERS:
        return text
    return f"{text[:MAX_COMMAND_CHARACTERS].rstrip()} {_describe_gap(len(text) - MAX_COMMAND_CHARACTERS)}"


def _cut_here_documents(command: str) -> str:
    kept: list[str] = []
    position = 0
    while opening := _HERE_DOCUMENT.search(command, position):
        start = command.find("\n", opening.end()) + 1
        if not start:
            break
        closing = re.compile(rf"^[ \t]*{opening[1]}\b", re.MULTILINE).search(command, start)
        end = len(command) if closing is None else closing.start()
        first = command[start:end].strip().partition("\n")[0][:_HERE_DOCUMENT_CHARACTERS].rstrip()
        left_out = len(command[start:end].strip()) - len(first)
        kept.append(command[position:start] + first + (f" {_describe_gap(left_out)}" if left_out > 0 else "") + "\n")
        position = end if closing is None else closing.end()
        kept.append("" if closing is None else command[end:position])
    return "".join(kept) + command[position:]


def _describe_gap(characters: int) -> str:
    return f"[\u2026 {characters:,} characters left out \u2026]"


def prints_content(call: ToolCall) -> bool:
    """True if a tool call prints the content of files.

    Lines about errors in it are not errors.
    """
    if not _SHELL_TOOLS.search(call.name):
        return _find_effect(call) == "read"
    command = next((call.arguments[name] for name in call.arguments if name.lower() in _COMMAND_ARGUMENTS), "")
    commands = _COMMAND_END.split(_join_command(command)[: 4 * MAX_COMMAND_CHARACTERS])
    programs = [match[1] for each in commands if (match := _PROGRAM.match(each.strip()))]
    return bool(programs) and all(_PRINTING_PROGRAM.fullmatch(each) for each in programs)


def describe_failed_result(text: str) -> str:
    """Return the line of a failed tool result that gives the cause, or ""."""
    for line in text[: 4 * MAX_FACT_CHARACTERS].split("\n"):
        stripped = re.sub(r"</?[\w-]{1,40}>", "", line).strip()[:MAX_FACT_CHARACTERS]
        if len(stripped) > 7 and not _EXIT_CODE.search(stripped) and not _is_source_line(stripped):  # noqa: PLR2004 - a word or two
            return stripped
    return ""


def join_argument_texts(call: ToolCall) -> str:
    """Return the texts in a tool call's arguments, without file content."""
    return "\n".join(
        _list_strings({name: value for name, value in call.arguments.items() if not _CONTENT_ARGUMENTS.fullmatch(name)})
    )


def find_command_outcome(result: ToolResult) -> str:
    """Return the outcome of a command: `exit 1`, `failed`, or "" if unknown."""
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
_TORN_URL = re.compile(r"\w{2,12}://(?!localhost)[\w-]{0,63}")
"""A link without a path whose host has no dot: the rest of it was cut off."""
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
    rf"|[-+]?\d(?:[\d,_]{{0,14}}\d)?(?:\.\d{{1,9}})?[ \u00a0]?(?:{_UNITS})(?!{_LETTER}|[/%])"
    rf"|[Pp]ort[ ]\d{{2,5}}(?!{_LETTER}))"
)

_COLOR = re.compile(r"\x1b\[[0-9;]{0,16}m")
"""A color in the output of a program."""
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

# Lines of source code, listings and documents about errors.
_SOURCE_START = re.compile(
    r"(?:\d{1,7}[-:|\u2192\t]\s*|\d{1,7}\s{2,}|[-+]\s+)"  # a number of a line, or a side of a diff
    r"|(?:[-+]?\s*)(?:except|catch|raise|throw|class|def|import|from|return|if|else|elif|try|export|const|let|var|function"
    r"|func|fn|async|await|public|private|protected|static|case|default|assert|expect|type|interface|describe|it|test|echo"
    r"|printf?|log|with|for|while|new|pub|use|impl|enum|struct|package)\b[ (:.{]"
    r"|//|/\*|\*|#(?!\d)|\"|'|`|\||<[a-zA-Z/!]|[-*]\s+[*`]|[\w$.]{1,80}(?:\.|->)?(?:[Ee]rror|[Ww]arn|[Ff]ail|[Ll]og)\w{0,20}\("
)
_SOURCE_PART = re.compile(
    r"\bnew \w{0,40}(?:Error|Exception)\(|\b(?:raise|throw) \w|console\.\w|logg(?:er|ing)\.\w|\$\{|=> ?[{(\w]|\) ?\{"
    r"|&&|\|\||===|!=="
    r"|\bfunction\b ?\w{0,40}\(|\w\(\)[;.]|: (?:string|number|boolean|void|any)\b"
)
_SOURCE_END = re.compile(r"[;{(\[,\\]$|=>$|\)\s?:$")
_COMPILER_ERROR = re.compile(
    r"[\w)\]][:(]\d{1,6}[,:]\d{1,5}\)?[:\s-]{1,4}(?:fatal )?error\b|\berror (?:TS|CS|E|C|LNK)\d{2,5}:"
)
"""A position in a file and an error, whatever code the message quotes."""
_PLAIN_ERROR = re.compile(
    r"(?:[\w.$/-]{1,120}:\s)?[\w.$]{0,80}(?:Error|Exception|error|fatal|FATAL|ERROR|FAILED|ERR!)(?:\[\w+\]|\b)[: ]"
)


def _is_source_line(line: str) -> bool:
    """True if a line is code or prose about errors, not an error."""
    if _COMPILER_ERROR.search(line):
        return False
    if _SOURCE_START.match(line) or _SOURCE_PART.search(line):
        return not re.match(r"\d{1,2}:\d{2}:\d{2}", line)
    return _SOURCE_END.search(line) is not None and not _PLAIN_ERROR.match(line)


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
_BACKSLASH_PATH = re.compile(r"(?:[A-Za-z]:\\|\\\\\w{2}|~\\|\.{1,2}\\|\w[\w.-]+\\\w[\w.-]+)")
_EXTENSION = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,9}$")
_FILE_EXTENSIONS = re.compile(
    r"py|pyi|ipynb|jsx?|mjs|cjs|tsx?|vue|svelte|go|rs|rb|java|kt|swift|c|cc|cpp|h|hpp|cs|php|pl|lua|r|jl|exs?|erl|hs|ml|clj"
    r"|scala|dart|sh|bash|zsh|fish|ps1|bat|sql|mdx?|rst|txt|html?|css|scss|sass|less|xml|svg|json[l5]?|ya?ml|toml|ini|cfg"
    r"|conf|env|lock|log|csv|tsv|parquet|proto|graphql|tf|hcl|gradle|patch|diff|png|jpe?g|gif|webp|pdf|docx|xlsx|zip|gz|tar"
    r"|whl|so|dll|exe|bin|db|sqlite|pem|crt|key",
    re.IGNORECASE,
)
_NOT_FILES = re.compile(
    r"(?:node|next|vue|react|express|nuxt|d3|three|transformers|alpine|ember|chart)\.js"  # libraries
    r"|(?:console|logger|math|self|this)\.log|(?:event|evt|self|this|props|process|os)\.(?:key|env|db|bin)",  # members
    re.IGNORECASE,
)
_FILES_WITHOUT_EXTENSION = re.compile(r"(?:Dockerfile|Makefile|Jenkinsfile|Procfile|LICENSE)(?:\.[\w-]{1,40})?")


def find_facts(text: str, *, with_errors: bool = True) -> Iterator[tuple[FactClass, str]]:
    """Yield the facts of a text, each once, in the order of the text within a class.

    Args:
        text: The text.
        with_errors: False if it is the content of a file, whose lines about errors are not errors.
    """
    kinds: dict[FactClass, Iterable[str]] = {
        "url": find_urls(text),
        "number": (match[0] for match in _NUMBER.finditer(text)),
        "error": find_errors(text) if with_errors else (),
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
        if len(url) <= MAX_FACT_CHARACTERS and not _TORN_URL.fullmatch(url):
            yield url


def find_errors(text: str) -> Iterator[str]:
    """Yield lines that report an error."""
    position = 0
    while found := _ERROR_HINT.search(text, position):
        start, end = text.rfind("\n", position, found.start()) + 1 or position, text.find("\n", found.end())
        position = len(text) if end < 0 else end + 1
        line = text[max(start, found.start() - MAX_FACT_CHARACTERS) : position].strip()
        line = _COLOR.sub("", line)[:MAX_FACT_CHARACTERS].strip()
        if _ERROR.search(line) and not _is_source_line(line):
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
    """Return a word as a path without a line number, or None."""
    path = _LINE_NUMBER.sub("", word.partition("::")[0].rstrip(_ENDS))
    if not _PATH.fullmatch(path) or "//" in path or ":" in path[2:]:
        return None
    if "\\" in path and not _BACKSLASH_PATH.match(path):  # escapes of a pattern or a string
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
    """Return a word as an identifier, or None."""
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
        bare = _strip_emphasis(word.strip("*").rstrip(_ENDS))
        kind: FactClass = "identifier"
        found = parse_identifier(bare)
        if found is None:
            kind, found = "path", parse_path(bare)
        if found is not None and found not in seen and counts[kind] < MAX_FACTS_PER_TEXT:
            seen.add(found)
            counts[kind] += 1
            yield kind, found


def _strip_emphasis(word: str) -> str:
    """Return a word without the underscores around it."""
    word = word.rstrip("*")
    return word.strip("_") if word.startswith("_") and word.endswith("_") else word


def _is_code(name: str) -> bool:
    inner = name[1:]
    return "_" in inner or "." in inner or ":" in inner or (inner != inner.lower() and name != name.upper())
