"""Finds what looks like a fact in a text, in time that grows with the text and not faster.

No pattern here can take the same characters in two ways, or its repetitions are bounded; a word is judged once.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from nexus_core.types.compaction import FactClass

MOST = 50
"""So many facts of one class are taken from one text: of a long listing its beginning."""
LONGEST = 300
"""Characters of a fact."""

UNSPACED = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
"""Letters of Chinese, Japanese and Korean, which may stand beside a path or a number without a blank between them."""
_MARKS = (
    "\u2018-\u201f\u3000-\u303f\uff00-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65"  # their punctuation, and quotes
)
_LETTER = rf"[^\W{UNSPACED}]"
_BORDER = re.compile(rf"(?<=[{UNSPACED}])(?=[A-Za-z0-9])|(?<=[A-Za-z0-9])(?=[{UNSPACED}])")

_URL = re.compile(
    rf"(?<!{_LETTER})(?:https?|wss?|ftp|ssh|git|s3|gs|file|postgresql|postgres|mysql|redis|mongodb)://"
    rf"(?>(?:[^\s\"'`<>\\^{{}}|{_MARKS}{UNSPACED}]|(?<![A-Za-z0-9])[{UNSPACED}])+)"
)
_WORD = re.compile(rf"[^\s\"'`<>|(){{}}\[\],;={_MARKS}]{{3,}}+")
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

# Where an error may be, and whether a line is one.
_HINT = re.compile(
    r"[Ee]rror|ERR|Exception|FAILED|[Ff]atal|FATAL|[Pp]anic|CRITICAL|denied|not found|No such|fault|undefined"
)
_ERROR = re.compile(
    r"^[\s>|E]{0,12}(?:[\w.$/]{1,120}:\s)?(?:Uncaught )?[\w.$]{0,120}(?:Error|Exception|Failure)\b(?:[:(\[]|\s*$)"
    r"|\b(?:error|fatal|panic|Error|Fatal|ERROR|FATAL|CRITICAL)\b(?:\[\w{1,12}\]| [A-Z]{1,5}\d{1,6})?:"
    r"|^(?:FAILED|ERROR) \S|\bnpm ERR!|\b(?:command not found|No such file or directory|[Pp]ermission denied)"
    r"|\b(?:Segmentation fault|undefined reference)"
)

# Code that deals with errors is none.
_NO_ERROR = re.compile(
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
_NO_TICKETS = frozenset(
    re.findall(r"\w+", "UTF SHA ISO MD AES RSA HTTP RFC IEEE COVID GPT USB UTC GMT BASE X86 ARM64 PY")
)
_HEXADECIMAL = re.compile(r"(?:sha\d{1,3}:)?[0-9a-f]{7,64}")
_DIGESTS = frozenset({*range(7, 13), 32, 40, 64})
_NAMED = re.compile(r"[A-Za-z0-9]{1,40}(?:[_-][A-Za-z0-9]{1,40}){1,6}")
_OPAQUE = re.compile(r"[A-Za-z0-9]{16,64}")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_CODE = re.compile(r"`([A-Za-z_$][\w$]{0,60}(?:(?:\.|::)[A-Za-z_$][\w$]{0,60}){0,5}(?:\(\))?)`")

_ROOTED = re.compile(r"(?:~|\.{1,2}|[A-Za-z]:|\$\w{1,40})?[/\\]")
_PATH = re.compile(r"[\w.~@+$%:/\\-]{3,260}")
_EXTENSION = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,9}$")
_FILES = re.compile(
    r"py|pyi|ipynb|jsx?|mjs|cjs|tsx?|vue|svelte|go|rs|rb|java|kt|swift|c|cc|cpp|h|hpp|cs|php|pl|lua|r|jl|exs?|erl|hs|ml|clj"
    r"|scala|dart|sh|bash|zsh|fish|ps1|bat|sql|mdx?|rst|txt|html?|css|scss|sass|less|xml|svg|json[l5]?|ya?ml|toml|ini|cfg"
    r"|conf|env|lock|log|csv|tsv|parquet|proto|graphql|tf|hcl|gradle|patch|diff|png|jpe?g|gif|webp|pdf|docx|xlsx|zip|gz|tar"
    r"|whl|so|dll|exe|bin|db|sqlite|pem|crt|key",
    re.IGNORECASE,
)
_NO_FILES = re.compile(r"(?:node|next|vue|react|express|nuxt|d3|three)\.js", re.IGNORECASE)
_PLAIN_FILES = re.compile(r"(?:Dockerfile|Makefile|Jenkinsfile|Procfile|LICENSE)(?:\.[\w-]{1,40})?")


def find_facts(text: str) -> Iterator[tuple[FactClass, str]]:
    """What looks like a fact in a text, each once, the first of each class first."""
    kinds: dict[FactClass, Iterable[str]] = {
        "url": find_urls(text),
        "number": (match[0] for match in _NUMBER.finditer(text)),
        "error": find_errors(text),
    }
    for kind, found in kinds.items():
        yield from ((kind, each) for each in islice(distinct(found), MOST))
    yield from _find_words(text)


def distinct(found: Iterable[str]) -> Iterator[str]:
    """Each text once, where it comes first; nothing is looked for before it is needed."""
    seen: set[str] = set()
    for each in found:
        if each not in seen:
            seen.add(each)
            yield each


def find_urls(text: str) -> Iterator[str]:
    """Links, without what punctuates the sentence around them."""
    for match in _URL.finditer(text):
        url = match[0].rstrip(".,:;!?*_")
        if url.endswith(")") and "(" not in url:
            url = url.rstrip(").,:;")
        url = url.rstrip("]")
        if len(url) <= LONGEST and not url.endswith("//"):
            yield url


def find_errors(text: str) -> Iterator[str]:
    """Lines that say what went wrong."""
    place = 0
    while found := _HINT.search(text, place):
        start, end = text.rfind("\n", place, found.start()) + 1 or place, text.find("\n", found.end())
        place = len(text) if end < 0 else end + 1
        line = text[max(start, found.start() - LONGEST) : place].strip()[:LONGEST]
        if _ERROR.search(line) and not _NO_ERROR.match(line):
            yield line.rstrip()


def find_code(text: str) -> Iterator[str]:
    """Names of functions, classes and variables that stand between backticks."""
    for match in _CODE.finditer(text):
        name = match[1]
        # Shorter ones name nothing.
        if len(name) > 2 and (name.endswith("()") or _is_code(name)) and as_path(name) is None:  # noqa: PLR2004 - as said
            yield name


def find_dates(text: str) -> Iterator[str]:
    """Days."""
    return (match[0] for match in _DATE.finditer(text))


def as_path(word: str) -> str | None:
    """A word as a path, without the number of a line; None where it is none."""
    path = _LINE_NUMBER.sub("", word.partition("::")[0].rstrip(_ENDS))
    if not _PATH.fullmatch(path) or "//" in path or ":" in path[2:]:
        return None
    names = path.replace("\\", "/").split("/")
    if names[0] in ("a", "b") and len(names) > 2:  # noqa: PLR2004 - as git writes both sides of a difference
        path, names = path[2:], names[1:]
    last = names[-1] or names[-2] if len(names) > 1 else path
    if len(names) == 1:
        extension = path[1:].rpartition(".")[2] if "." in path[1:] else ""
        is_file = _FILES.fullmatch(extension) and not _NO_FILES.fullmatch(path)
        return path if is_file or _PLAIN_FILES.fullmatch(path) else None
    if not any(character.isalpha() for character in path) or all(name.isdigit() for name in names if name):
        return None
    has_extension = _EXTENSION.search(last) is not None
    if _ROOTED.match(path):
        return path if has_extension or sum(map(bool, names)) > 1 else None
    return path if has_extension or (len(names) > 2 and "\\" not in path) else None  # noqa: PLR2004 - `and/or` is none


def as_identifier(word: str) -> str | None:
    """A word as an identifier; None where it is none."""
    if "@" in word and _ADDRESS.fullmatch(word):
        return word
    digits = sum(character.isdigit() for character in word)
    if not digits:
        return None
    ticket = _TICKET.fullmatch(word)
    if ticket is not None:
        return None if ticket[1] in _NO_TICKETS else word
    return word if _IDENTIFIER.fullmatch(word) or _is_opaque(word, digits) else None


def _is_opaque(word: str, digits: int) -> bool:
    """Whether a word is a digest, or a name that a program made up."""
    letters = sum(character.isalpha() for character in word)
    if _HEXADECIMAL.fullmatch(word):
        return letters > 0 and len(word.rpartition(":")[2]) in _DIGESTS
    if _DATE.match(word) or word.startswith("x86"):
        return False
    if _NAMED.fullmatch(word):
        return len(word) > 7 and digits > 2 and letters > 0  # noqa: PLR2004 - more than `utf-8`
    return bool(_OPAQUE.fullmatch(word)) and min(digits, letters) > 3  # noqa: PLR2004 - no word with a number behind it


def _find_words(text: str) -> Iterator[tuple[FactClass, str]]:
    counts: dict[FactClass, int] = {"path": 0, "identifier": 0}
    seen: set[str] = set()
    words = dict.fromkeys(_WORD.findall(text))
    if not text.isascii():
        words = dict.fromkeys(part for word in words for part in _BORDER.split(word))
    for word in words:
        if word.isalpha() or len(word) > LONGEST or "://" in word:
            continue
        bare = word.strip("*_").rstrip(_ENDS)
        kind: FactClass = "identifier"
        found = as_identifier(bare)
        if found is None:
            kind, found = "path", as_path(bare)
        if found is not None and found not in seen and counts[kind] < MOST:
            seen.add(found)
            counts[kind] += 1
            yield kind, found


def _is_code(name: str) -> bool:
    inner = name[1:]
    return "_" in inner or "." in inner or ":" in inner or (inner != inner.lower() and name != name.upper())
