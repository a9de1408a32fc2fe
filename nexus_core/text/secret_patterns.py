"""Detection of API keys, tokens, passwords and private keys in text.

Three kinds of evidence count: a prefix that a service gives its keys, the armor of a private key, and a name or an
option in front of a value (`password=`, `--token`, `Authorization:`). A long random word alone is not evidence, because
hashes, ids and images look the same.

Everything is found by searching for short literals first. What is matched around a hit is bounded in length, so that
the time grows linearly with the text.
"""

from __future__ import annotations

import base64
import binascii
import re
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

PLACEHOLDER_PREFIX = "[redacted:"
"""Prefix of the placeholder for a redacted secret."""
MAX_VALUE_CHARACTERS = 4096
"""Characters of a named value, which is about the largest cookie or session token that a server accepts."""
MAX_ARMOR_CHARACTERS = 65_536
"""Characters between the first and the last line of a private key; an RSA key of 16,384 bits has 13,000."""
_MIN_TEXT_CHARACTERS = 8
_MIN_WORD_CHARACTERS = 16
_MAX_TRIES = 16
"""Positions in one word where a prefix matches but no token; names have fewer, and each costs time."""
_WEAK_TRY = 1 / 16
"""Share of a try that a place costs where only the first two characters of a prefix match."""
_MAX_REREAD = 512
"""Characters of a refused value that are read again for the next name or prefix in them."""
_MAX_SAMPLE = 512
"""Characters that show whether a longer value is random."""
_MIN_PASSWORD, _MIN_OPAQUE, _MIN_QUERY = 6, 8, 16
_MIN_VARIETY = 4
_MIN_MIXED = 20


class SecretSpan(NamedTuple):
    """A secret in a text: from which character, up to which, and its kind."""

    start: int
    end: int
    kind: str


def find_secrets(text: str) -> list[SecretSpan]:
    """Return the secrets of a text in their order. None overlaps another."""
    if len(text) < _MIN_TEXT_CHARACTERS:
        return []
    lowered = _lower_in_place(text)
    found = [*_find_tokens(text), *_find_base64_tokens(text), *_find_named(text, lowered)]
    found += [*_find_phrases(text, lowered), *_find_options(text, lowered)]
    if "://" in text or "\\/" in text:
        found += _find_url_passwords(text)
    if "kind: secret" in lowered:
        found += _find_manifest_values(text, lowered)
    if "PRIVATE" in text or "Static key" in text or "Private-" in text:
        found += _find_private_keys(text)
    return _merge_spans(found)


def find_field_secrets(name: str, value: str) -> list[SecretSpan]:
    """Return the secrets in the value of a JSON field, whose name is evidence too."""
    lowered = _lower_in_place(name)
    for hit in _find_names(name, lowered):
        if hit.end == len(name) and hit.rank == "password" and _is_password(value, is_field=True):
            return [SecretSpan(0, len(value), hit.kind)]
    lead = f"{name}: "
    found = find_secrets(lead + value)
    return [
        SecretSpan(max(each.start - len(lead), 0), each.end - len(lead), each.kind)
        for each in found
        if each.end > len(lead)
    ]


def opens_private_key(text: str) -> bool:
    """Return True if a text has the first line of a private key after the last line of any other."""
    begins = list(_ARMOR_BEGIN.finditer(text)) if "PRIVATE KEY" in text else []
    return bool(begins) and not _ARMOR_END.search(text, begins[-1].end())


def closes_private_key(text: str) -> bool:
    """Return True if a text has the last line of a private key."""
    return "PRIVATE KEY" in text and _ARMOR_END.search(text) is not None


def _lower_in_place(text: str) -> str:
    """Return a text in lower case with all offsets unchanged, although one character has two in lower case."""
    return text.replace("\u0130", "i").lower()


def _merge_spans(spans: list[SecretSpan]) -> list[SecretSpan]:
    """Join spans that overlap. The longest, or else the one found first, determines the kind."""
    merged: list[SecretSpan] = []
    longest = 0
    for span in sorted(spans, key=lambda each: (each.start, -each.end)):
        if merged and span.start < merged[-1].end:
            last = merged[-1]
            is_longer = span.end - span.start > longest
            longest = max(longest, span.end - span.start)
            merged[-1] = SecretSpan(last.start, max(last.end, span.end), span.kind if is_longer else last.kind)
        else:
            merged.append(span)
            longest = span.end - span.start
    return merged


# Tokens that services mark with a prefix.

_ALNUM, _WORD, _DOTTED, _HEX = "[A-Za-z0-9]", "[A-Za-z0-9_-]", "[A-Za-z0-9_.-]", "[0-9a-fA-F]"
_BASE64, _UPPER = r"(?:[A-Za-z0-9_.+/=~-]|%(?:2[BbFf]|3[Dd]))", "[A-Z0-9]"  # signs are escaped in a query
_PREFIXES = (
    # kind, characters after the prefix, how many of them at least, prefixes
    ("anthropic-key", _WORD, 20, "sk-ant-"),
    ("openai-key", _WORD, 20, "sk- sess-"),
    ("google-key", _WORD, 35, "AIza"),
    ("google-token", _DOTTED, 20, "ya29. GOCSPX-"),
    ("google-token", _BASE64, 40, "1//0"),
    ("github-token", "[A-Za-z0-9_]", 30, "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_"),
    (
        "gitlab-token",
        _DOTTED,
        20,
        "glpat- gldt- glft- glrt- glrtr- glptt- glcbt- glimt- glagent- gloas- glsoat- glffct- glwt- GR1348941",
    ),
    ("slack-token", _WORD, 10, "xoxa- xoxb- xoxc- xoxd- xoxe- xoxe. xoxo- xoxp- xoxr- xoxs- xapp-"),
    ("stripe-key", _ALNUM, 16, "sk_live_ sk_test_ rk_live_ rk_test_ sk_prod_ rk_prod_"),
    ("stripe-key", r"[A-Za-z0-9+/=]", 24, "whsec_"),
    ("hosting-token", _ALNUM, 30, "hf_ api_org_"),
    ("hosting-token", _ALNUM, 36, "npm_ pnu_ pnb_ nfp_"),
    ("hosting-token", _WORD, 50, "pypi- CCIPAT_ CFPAT- PMAK- dnkey- pcsk_"),
    ("hosting-token", _HEX, 40, "dop_v1_ doo_v1_ dor_v1_ rubygems_ pul- shippo_live_ shippo_test_ bkua_"),
    ("hosting-token", _HEX, 40, "sqp_ squ_ sqa_ e2b_"),
    ("hosting-token", _HEX, 48, "sk_"),
    ("hosting-token", "[a-z0-9]", 60, "CLOJARS_"),
    ("hosting-token", _WORD, 130, "sl."),
    ("hosting-token", _ALNUM, 40, "cfk_ cfut_ cfat_ rpa_"),
    ("hosting-token", _WORD, 30, "secret-live- secret-test-"),
    ("hosting-token", _WORD, 30, "vercel_blob_rw_ sk-lf- SWMTKN-1-"),
    ("hosting-token", _ALNUM, 32, "AKID AKLT"),
    ("hosting-token", _ALNUM, 22, "as-"),
    ("jwt", _BASE64, 60, "ZXlKaGJHY2lPaU ZXlKMGVYQWlPaU ZXlKcmFXUWlPaU"),
    ("hosting-token", _WORD, 20, "dckr_pat_ dckr_oat_ tskey- HRKU- AVNS_ sq0atp- sq0csp- tvly- sb_secret_ fio-u-"),
    ("hosting-token", _HEX, 32, "shpat_ shpca_ shppa_ shpss_ shpua_ ico- fc- dapi key- pubkey-"),
    ("hosting-token", _ALNUM, 32, "lin_api_ lin_oauth_ sbp_ npg_ ntn_ r8_ figd_ gsk_ csk- pplx- xai- phx_ rdme_"),
    ("hosting-token", _WORD, 24, "rnd_ re_ figd_ nvapi- jina_ pat-na1- pat-eu1- pat-ap1- duffel_live_ duffel_test_"),
    ("hosting-token", _WORD, 32, "FLWSECK- FLWSECK_TEST- tk-us- sk.eyJ secret_ xkeysib- xsmtpsib- sha256~ sl.B sl.u."),
    ("hosting-token", _DOTTED, 20, "hvs. hvb. hvr. s.hv dt0c01. dt0s16. lsv2_pt_ lsv2_sk_ tfp_ pscale_tkn_ pscale_pw_"),
    ("hosting-token", _DOTTED, 40, "SG. pscale_oauth_ dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit."),
    (
        "hosting-token",
        _BASE64,
        40,
        "ATATT ATCTT sntrys_ sntryu_ sntrya_ glc_ glsa_ eyJrIjoi fo1_ fm1r_ fm1a_ fm2_ ops_eyJ",
    ),
    ("hosting-token", _ALNUM, 24, "ATBB fw_ vcp_ vci_ vca_ vcr_ vck_"),
    ("hosting-token", _ALNUM, 28, "aio_"),
    ("hosting-token", _ALNUM, 32, "ico-"),
    ("hosting-token", _ALNUM, 12, "npg_"),
    ("hosting-token", _ALNUM, 16, "LTAI sm_pat_ sm_aat_ sm_sat_"),
    ("hosting-token", _ALNUM, 38, "4b1d"),
    ("hosting-token", _ALNUM, 56, "cmVmdGtu"),
    ("hosting-token", "[a-z0-9]", 43, "oy2"),
    ("hosting-token", "[0-9a-f-]", 36, "access-sandbox- access-development- access-production-"),
    ("hosting-token", "[0-9a-f-]", 100, "v1.0-"),
    ("hosting-token", _HEX, 12, "FLWSECK_TEST-"),
    ("hosting-token", _HEX, 19, "NRJS-"),
    ("hosting-token", _HEX, 32, "p8e-"),
    ("hosting-token", _HEX, 35, "live_ test_ live_pub_ test_pub_"),
    ("hosting-token", _HEX, 64, "s-s4t2ud- u-s4t2ud-"),
    ("hosting-token", _WORD, 32, "NRII- AQVN tgp_v1_ sgp_ b_ pa- CCIPRJ_"),
    ("hosting-token", _WORD, 60, "EAAA APA91b"),
    ("hosting-token", _DOTTED, 88, "t1."),
    ("hosting-token", _UPPER, 26, "API-"),
    ("private-key", _ALNUM, 90, "xprv yprv zprv tprv"),
    ("hosting-token", "[A-Z0-9]", 19, "NRAK- NRAA- NRIQ-"),
    ("hosting-token", _ALNUM, 54, "EZAK EZTK AKCp"),
    ("hosting-token", _ALNUM, 100, "EAA"),
    ("aws-key", _UPPER, 16, "AKIA ASIA ABIA ACCA"),
    ("aws-key", _BASE64, 80, "ABSK"),
    ("aws-key", _BASE64, 40, "bedrock-api-key-"),
    ("aws-key", r"[0-9a-f-]", 36, "amzn.mws."),
    ("private-key", _UPPER, 40, "AGE-SECRET-KEY-"),
)
_EXACT_LENGTHS = {
    "AKIA": 16,
    "ASIA": 16,
    "ABIA": 16,
    "ACCA": 16,
    "AIza": 35,
    "dapi": 32,
    "key-": 32,
    "fc-": 32,
    "npm_": 36,
    "aio_": 28,
    "fw_": 24,
    "4b1d": 38,
    "oy2": 43,
    "live_": 35,
    "test_": 35,
    "b_": 44,
    "pa-": 43,
    "EAAA": 60,
    "API-": 26,
    "AKID": 32,
    "as-": 22,
    "rpa_": 40,
    "sk_": 48,
}
"""A longer word with one of these prefixes is something else."""


class _TokenPrefix(NamedTuple):
    """The shape of a token: its prefix, its kind, and a pattern of the characters after the prefix."""

    prefix: str
    kind: str
    body: re.Pattern[str]


def _index_prefixes() -> dict[str, list[_TokenPrefix]]:
    """Return the prefixes by their first two characters, longer ones first."""
    index: dict[str, list[_TokenPrefix]] = {}
    for kind, characters, least, prefixes in _PREFIXES:
        body = re.compile(f"(?>{characters}{{{least},{MAX_VALUE_CHARACTERS}}})")
        for prefix in prefixes.split():
            index.setdefault(prefix[:2], []).append(_TokenPrefix(prefix, kind, body))
    return {start: sorted(shapes, key=lambda each: -len(each.prefix)) for start, shapes in index.items()}


def _join_starts(starts: Iterable[str]) -> str:
    """Return a pattern for pairs of characters."""
    seconds: dict[str, str] = {}
    for start in starts:
        seconds[start[0]] = seconds.get(start[0], "") + start[1]
    return "|".join(f"{re.escape(first)}[{re.escape(each)}]" for first, each in seconds.items())


_TOKEN_PREFIXES = _index_prefixes()
_INFIX_STARTS = ("ey", "SK", "pa", "sa", "sd", "ap", "mo", "A3", "AA", "K1", "sc", "ex", "au")
"""The first two characters of the tokens in `_INFIXES` that start with letters of their own."""
_BASE64_PREFIXES = [shape for shapes in _TOKEN_PREFIXES.values() for shape in shapes if "/" in shape.body.pattern]
"""Not all of these are one word."""
# One match for each long word: shorter ones and what is between them are passed over. It matches at the end too. An
# atomic group, because Python before 3.11.5 matches a possessive repeat of more than one character wrongly.
_LONG_WORD = re.compile(
    rf"(?>(?:[A-Za-z0-9_.~-]{{0,{_MIN_WORD_CHARACTERS - 1}}}+[^A-Za-z0-9_.~-]++)*)([A-Za-z0-9_.~-]*+)"
)
# Inside a word a token starts after a sign, with the first two characters of a prefix. Tokens without a prefix start
# with any letter, but are rare: only a word that matches `_UNPREFIXED` is searched for them.
_INNER_START = re.compile(r"[-_.](?=[A-Za-z])")
_INNER_PREFIX = re.compile(rf"[-_.](?={_join_starts([*_TOKEN_PREFIXES, *_INFIX_STARTS])})")
_UNPREFIXED = re.compile(r"_mmk|\.atlasv1\.|[0-9]Q~|[0-9a-f]-us[0-9]|\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27}")
_COLOR = re.compile(r"[0-9]{0,3}m")
_ESCAPE = r"(?:\x1b|\\{1,31}(?:u001b|x1b|033|e))\[[0-9;]{0,12}m"
_COLOR_END = re.compile(rf"{_ESCAPE}\Z")
_INFIXES = tuple(
    (literal, place, re.compile(pattern), kind)
    for literal, place, pattern, kind in (
        # literal, how far from the start of the token it is at least, pattern, kind
        (
            "eyJ",
            0,
            # the last part may be cut off
            r"eyJ[A-Za-z0-9_-]{10,8192}\.(?:[A-Za-z0-9_-]{8,8192}(?:\.[A-Za-z0-9_-]{8,8192}){1,3}|eyJ[A-Za-z0-9_-]{8,8192}\Z)",
            "jwt",
        ),
        (".", 23, r"[MNO][A-Za-z0-9_-]{22,28}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,45}(?![A-Za-z0-9_.-])", "bot-token"),
        ("SK", 0, r"SK[0-9a-f]{32}(?![A-Za-z0-9])", "hosting-token"),
        ("pat", 0, r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}", "hosting-token"),
        ("pat.", 0, r"pat\.[A-Za-z0-9_-]{22}\.[0-9a-f]{24}\.[A-Za-z0-9]{20}", "hosting-token"),
        ("sat.", 0, r"sat\.[A-Za-z0-9_-]{22}\.[0-9a-f]{24}\.[A-Za-z0-9]{20}", "hosting-token"),
        *(
            (start, 0, rf"{start}[0-9a-f]{{8}}(?:-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}}(?![A-Za-z0-9-])", "hosting-token")
            for start in ("sdk-", "api-", "mob-")
        ),
        (
            "A3-",
            0,
            r"A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}(?![A-Za-z0-9-])",
            "private-key",
        ),
        ("A" * 20, 0, r"A{20}[A-Za-z0-9]{1,80}(?:%[0-9A-F]{2}[A-Za-z0-9]{1,80}){1,4}(?![A-Za-z0-9])", "bearer"),
        (
            "s.",
            0,
            r"s\.(?=[A-Za-z]{0,23}[0-9])(?=[a-z0-9]{0,23}[A-Z])(?=[A-Z0-9]{0,23}[a-z])[A-Za-z0-9]{24}(?![A-Za-z0-9_-]|\.[a-z0-9])",
            "hosting-token",
        ),
        *(
            (
                start,
                0,
                rf"{start}[a-z0-9]{{5,30}}\.[a-z0-9]{{4,6}}\.acc[_-][a-z0-9-]{{10,32}}\.[A-Za-z0-9+/_=-]{{30,120}}",
                "hosting-token",
            )
            for start in ("sc_", "ext_", "scauth_", "authress_")
        ),
        ("S", 0, r"S[ABCDNOUX][A-Z2-7]{54}(?:[A-Z2-7]{2})?(?![A-Za-z0-9])", "private-key"),
        ("K10", 0, r"K10[0-9a-f]{64}::[\w-]{1,40}:[0-9a-f]{32}(?![A-Za-z0-9])", "hosting-token"),
        (
            "0.",
            0,
            r"0\.[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.[A-Za-z0-9]{30}:[A-Za-z0-9+/]{22}==",
            "hosting-token",
        ),
        (":", 24, r"[0-9a-f]{24}:[0-9a-f]{64}(?![A-Za-z0-9])", "hosting-token"),
        ("-", 32, r"[0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8}(?![A-Za-z0-9-])", "hosting-token"),
        ("_mmk", 36, r"[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk(?![A-Za-z0-9])", "hosting-token"),
        (".atlasv1.", 14, r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{60,512}", "hosting-token"),
        ("-us", 32, r"[0-9a-f]{32}-us[0-9]{1,2}(?![A-Za-z0-9])", "hosting-token"),
        ("Q~", 4, r"[A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}(?![A-Za-z0-9_~.-])", "azure-secret"),
    )
)
_HAS_DIGIT = re.compile(r"[0-9]")
_HAS_SPACE = re.compile(r"\s")


def _find_tokens(text: str) -> Iterator[SecretSpan]:
    done = 0
    refused: dict[str, int] = {}
    for match in _LONG_WORD.finditer(text):
        start, end = match.span(1)
        if end - start < _MIN_WORD_CHARACTERS:
            continue
        tries = 0.0
        for at in _token_starts(text, start, end):
            if at < done:
                continue
            if tries >= _MAX_TRIES:
                break
            is_tried, found = _match_token(text, at, refused)
            tries += 1 if is_tried else _WEAK_TRY
            if found:
                done = found.end
                yield found
    for match in _ASANA.finditer(text):
        yield SecretSpan(*match.span(), "hosting-token")
    if ":AA" in text or "%3AAA" in text:
        for match in _TELEGRAM.finditer(text):
            yield SecretSpan(*match.span(), "bot-token")


def _find_base64_tokens(text: str) -> Iterator[SecretSpan]:
    # A text has few of all literals: finding these first, here and below, saves 30 % in a short text.
    for shape in [each for each in _BASE64_PREFIXES if each.prefix in text]:
        at = text.find(shape.prefix)
        while at >= 0:
            body = shape.body.match(text, at + len(shape.prefix))
            is_inside = text[at - 1 : at].isalnum() and not _COLOR_END.search(text, max(at - 16, 0), at)
            if body and not is_inside and _is_token_body(shape, body[0]):
                yield SecretSpan(at, body.end(), shape.kind)
            at = text.find(shape.prefix, body.end() if body else at + 1)


_ASANA = re.compile(r"(?<![0-9/])[12]/[0-9]{13,19}(?:/[0-9]{13,19})?:[0-9a-f]{32}(?![0-9a-f])")
_TELEGRAM = re.compile(r"(?<![0-9])[0-9]{8,10}(?::|%3A)AA[A-Za-z0-9_-]{32,34}(?![A-Za-z0-9_-])")


def _token_starts(text: str, start: int, end: int) -> Iterator[int]:
    """Yield the places in a word where a token may begin: after a sign, an escaped character or a terminal's color."""
    before = text[start - 1 : start]
    if before == "\\":
        yield start + (5 if text[start] == "u" else 3 if text[start] == "x" else 1)
    elif before == "%":
        yield start + 2
    elif before in ("[", ";") and (color := _COLOR.match(text, start, end)):
        yield color.end()
    yield start
    inner = _INNER_START if _UNPREFIXED.search(text, start, end) else _INNER_PREFIX
    for match in inner.finditer(text, start, end):
        yield match.end()


def _match_token(text: str, at: int, refused: dict[str, int]) -> tuple[bool, SecretSpan | None]:
    """Return the token that starts at a place, and whether there is anything there that looks like its beginning.

    Args:
        text: The text.
        at: The place.
        refused: By prefix, up to where the text was read without finding a token; it is updated.
    """
    is_tried = False
    for shape in _TOKEN_PREFIXES.get(text[at : at + 2], ()):
        if text.startswith(shape.prefix, at) and at >= refused.get(shape.prefix, 0):
            is_tried = True
            body = shape.body.match(text, at + len(shape.prefix))
            if body and _is_token_body(shape, body[0]) and not _is_in_base64(text, shape, at, body.end()):
                return True, SecretSpan(at, body.end(), shape.kind)
            if body and body.end() - at > _MAX_REREAD:
                refused[shape.prefix] = body.end()
    word = text[at : at + 64]
    for literal, place, pattern, kind in _INFIXES:
        if (word.startswith(literal) if place == 0 else word.find(literal) >= place) and (
            match := pattern.match(text, at)
        ):
            return True, SecretSpan(*match.span(), kind)
    return is_tried or word.startswith("eyJ"), None


def _is_in_base64(text: str, shape: _TokenPrefix, start: int, end: int) -> bool:
    """Return True if a token whose prefix has only letters may be a part of longer data, such as an image."""
    return shape.prefix.isalnum() and (text[start - 1 : start] in ("+", "/") or text[end : end + 1] in ("+", "/"))


def _is_token_body(shape: _TokenPrefix, body: str) -> bool:
    exact = _EXACT_LENGTHS.get(shape.prefix)
    if exact is not None and len(body) != exact:
        return False
    # Names begin like some keys: sk-loading-dot-2-wrapper, pypi-mirror-of-the-company.
    if shape.prefix in _AMBIGUOUS:
        return bool(_HAS_DIGIT.search(body) and _RANDOM.search(body))
    return bool(_HAS_DIGIT.search(body)) or shape.kind != "hosting-token" or body.isalnum()


_AMBIGUOUS = frozenset(
    {
        *("sk-", "sess-", "re_", "secret_", "key-", "fc-", "ico-", "EAA", "rnd_", "ATBB", "AKCp", "fw_", "b_"),
        *("pa-", "EAAA", "LTAI", "v1.0-", "t1.", "oy2", "AQVN", "NRII-", "AKID", "AKLT", "as-", "sl."),
        *("secret-live-", "secret-test-"),
    }
)
_RANDOM = re.compile(r"[A-Za-z0-9]{16}")


# Values behind a name.

_QUALIFIED_KEY = re.compile(
    r"(?:api|app|application|access|account|admin|auth|bot|client|consumer|crypto|customer|decryption|deploy|encrypt(?:ion)?"
    r"|hmac|host|jwt|license|licence|management|master|preshared|private|priv|secret|service|session|shared|sharedaccess"
    r"|sign(?:ing)?|ssh|storage|subscription|tls|validation|vault|webhook|write)[_. -]?$"
)
_PAGING = re.compile(
    r"(?:next|page|prev|previous|continuation|cursor|sync|start|end|eos|bos|pad|unk|mask|stop|change|request|idempotency"
    r"|input|output|action|purchase)[_. -]?$"
)
_JOINED_TOKEN = re.compile(
    r"(?:access|admin|api|app|auth|bearer|bot|csrf|device|id|identity|refresh|session|user|web|xsrf)$"
)
_SUFFIX = re.compile(
    r"(?:[_-]?(?:[0-9]{1,3}|data|base|base64|b64|value|prod|production|dev|development|staging|stage|test|testing|live"
    r"|main|old|new|v[0-9]|primary|secondary|default|raw|plain|plaintext|key|token|hex)){0,2}(?![a-z0-9])"
)
_FOREIGN_KEYWORDS = (
    *("contrase\u00f1a", "contrasena", "kennwort", "l\u00f6senord", "mot de passe", "parola", "senha", "wachtwoord"),
    *("\u043f\u0430\u0440\u043e\u043b\u044c", "\u5bc6\u7801", "\u5bc6\u78bc", "\u30d1\u30b9\u30ef\u30fc\u30c9"),
)
"""`password` in other languages."""
_KEYWORDS = (
    *(
        "passw",
        "passphrase",
        "passcode",
        "pass",
        "pwd",
        "pw",
        "secret",
        "key",
        "token",
        "credential",
        "psk",
        "auth",
        "_pat",
    ),
    *_FOREIGN_KEYWORDS,
)
_KEYWORD_PATTERNS = {
    "passw": re.compile(r"passw(?:or)?d|passwort"),
    "secret": re.compile(r"secret(?:[_-]?access)?(?:[_-]?key)?"),
    "auth": re.compile(r"auth(?:orization)?"),
    "credential": re.compile(r"credentials?"),
}
_ESCAPED_NAMES = re.compile(
    "|".join(
        "".join(sign if sign.isascii() else rf"(?<!\\)\\{{1,31}}u{ord(sign):04x}" for sign in word)
        for word in _FOREIGN_KEYWORDS
        if not word.isascii()
    )
)
"""These names in JSON inside a text."""
_DISGUISED_NAMES = re.compile(
    "|".join(
        "".join(rf"(?:{sign}|(?<!\\)\\{{1,31}}u00(?:{ord(sign):02x}|{ord(sign.upper()):02x}))" for sign in word)
        for word in ("password", "passwd", "passphrase", "secret", "token")
    )
)
"""Names of which a JSON text has escaped letters that need no escape: `\\u0070assword`."""


class _SecretName(NamedTuple):
    """A name that something secret may follow.

    Attributes:
        start: Where its keyword starts; more of the name may be before it.
        end: Where the name ends.
        kind: What is redacted.
        rank: "password": a value need not look random; "opaque": it has to; "header": credentials follow a scheme;
            "base64": a user and a password in base64; "query": only in the query of an address; "token": it has to look
            random, and have the letters of a token.
    """

    start: int
    end: int
    kind: str
    rank: str


def _find_names(text: str, lowered: str) -> Iterator[_SecretName]:
    for keyword in [each for each in _KEYWORDS if each in lowered]:
        at = lowered.find(keyword)
        while at >= 0:
            if named := _match_name(text, lowered, keyword, at):
                yield named
            at = lowered.find(keyword, at + len(keyword))
    if "\\u" in lowered:
        for match in _ESCAPED_NAMES.finditer(lowered):
            yield _SecretName(match.start(), match.end(), "password", "password")
        if "u00" in lowered:
            for match in _DISGUISED_NAMES.finditer(lowered):
                if "\\" in match[0]:
                    yield _SecretName(match.start(), match.end(), "password", "password")


def _match_name(text: str, lowered: str, keyword: str, at: int) -> _SecretName | None:
    whole = _KEYWORD_PATTERNS.get(keyword)
    match = whole.match(lowered, at) if whole else None
    if whole and not match:
        return None
    end = match.end() if match else at + len(keyword)
    rank, kind = _rank_name(text, lowered, keyword, at, end)
    if not rank:
        return None
    suffix = _SUFFIX.match(lowered, end)
    if suffix is None or (keyword == "pass" and suffix.end() > end + 4):
        return None
    return _SecretName(at, suffix.end(), kind, rank)


def _rank_name(text: str, lowered: str, keyword: str, at: int, end: int) -> tuple[str, str]:  # noqa: PLR0911 - one for each keyword
    before = lowered[max(at - 16, 0) : at]
    if keyword in ("passw", "passphrase", "passcode") or keyword in _FOREIGN_KEYWORDS:
        return "password", "password"
    if keyword == "pw" or (keyword == "psk" and not before[-1:].isalnum()):
        return ("", "") if before[-1:].isalnum() else ("opaque", "password")
    if keyword == "pass" and before[-1:] in ('"', "'") and text[end : end + 1] in ('"', "'", "\\"):  # `{"pass": "…"}`
        return "opaque", "password"
    if keyword == "_pat":  # an access token, or a pattern
        return "token", "password"
    if keyword in ("pass", "pwd", "psk"):
        # `bypass`, the statement `pass`, and the variable PWD, which is a directory
        is_part = before[-1:] in ("_", "-", ".") or (at and text[at].isupper() and text[at - 1].islower())
        is_word = not before or before[-1] in ";&? \t\n\"'" or before.endswith("\\n")
        is_option = keyword == "pwd" and is_word and not text[at:end].isupper()
        return ("password", "password") if (is_part or is_option) and before[-4:] != "old_" else ("", "")
    if keyword == "key":
        if before[-1:] in ("?", "&"):
            return "query", "password"
        return ("opaque", "password") if _QUALIFIED_KEY.search(before) else ("", "")
    if keyword == "token":
        is_word = not before[-1:].isalpha() or (text[at].isupper() and text[at - 1].islower())
        is_named = is_word or _JOINED_TOKEN.search(before)
        return ("opaque", "password") if is_named and not _PAGING.search(before) else ("", "")
    if keyword == "auth":
        name = lowered[at:end]
        return ("header", "authorization") if name == "authorization" else ("base64", "authorization")
    return "opaque", "password"


_QUOTE = r"(?:\\{0,31}[\"'`]|&quot;|&#3[49];|%22|\\u0022|\u201c|\\{1,31}u201c)"
_AFTER_NAME = re.compile(
    rf"(?:{_QUOTE}|[*_]{{1,3}})?\]?\)?(?:{_ESCAPE}){{0,3}}[ \t]{{0,20}}"
    r"(?:(?P<sep>=>|:=|={1,3}|%3[dD]|%3[aA](?:%20|\+)?|[\uff1a\uff1d]|\\{1,31}u[fF][fF]1[aAdD]"
    r"|:[ \t]{0,3}[Ss]tr(?:ing)?[ \t]{0,3}=|:(?!:)(?:[ \t]{0,3}[|>][-+]?[ \t]{0,3}(?:\n|\\{1,31}n)[ \t]{1,20}"
    r"|(?:\r?\n|\\{1,31}n)[ \t]{0,20}(?=[^\s\\\"'<>(){}\[\]=:,;]{7,256}[^\s\\\"'<>(){}\[\]:,;.?]={0,2}"
    r"[ \t]{0,4}(?:\r?\n|\\{1,31}[nr]|\\{0,31}\"|\Z)))?)"
    rf"|(?P<pair>[,;]?(?:\s|\\{{1,31}}[nrt]){{0,40}}{_QUOTE}?value{_QUOTE}?[ \t]{{0,3}}[:=])"
    r"|(?P<comma>(?<=[\"']),(?=[ \t]{0,3}\\{0,31}[\"']))"
    r"|(?P<tag>>)|(?P<cell>\|)|(?P<is>is\b|was\b)|(?P<gap>))"
    rf"(?P<bold>[*_]{{0,3}})(?:{_ESCAPE}){{0,3}}[ \t]{{0,40}}(?:{_ESCAPE}){{0,3}}"
    rf"(?:[bru](?=\\{{0,31}}[\"']))?(?P<quote>{_QUOTE})?"
)
# Few equals signs, so that `a=a=a=…` is not read again from each of them.
_PLAIN_VALUE = re.compile(
    r"[^\s\x1b\"'`,;<>(){}\[\]\\|&=]{1,4096}(?:=[^\s\x1b\"'`,;<>(){}\[\]\\|&=]{1,256}){0,3}={0,3}"
)
_ENV_VALUE = re.compile(r"[^\s\x1b\"'`;<>()\\|&=]{1,4096}(?:=[^\s\x1b\"'`;<>()\\|&=]{1,256}){0,3}={0,3}")
_TOKEN_VALUE = re.compile(r"[A-Za-z0-9_-]{16,}")
_LAST_SIGNS = re.compile(r"[.,:!?]{0,64}[!?]")
_SCHEME = re.compile(
    r"(?:bearer|basic|token|apikey|api-key|key|bot|oauth|negotiate|ntlm|ssws|geniekey|splunk)[ \t]{1,4}", re.IGNORECASE
)
_CREDENTIALS = re.compile(r"[^\s\"'`\\<>{}\[\]$,;()]{8,4096}(?![(\[{])")


def _find_named(text: str, lowered: str) -> Iterator[SecretSpan]:
    values = _ValueReader(text)
    for named in _find_names(text, lowered):
        after = _AFTER_NAME.match(text, named.end)
        if after is None:
            continue
        span = _match_value(values, named, after)
        if span:
            yield span


class _ValueReader:
    """Finds where values without quotation marks end, and reads none more often than a few times.

    In `token=token=token=…` each value ends where the others do. Reading thousands of them to the end would take time
    with the square of their length.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._ends: dict[re.Pattern[str], int] = {}
        self._tries: dict[re.Pattern[str], int] = {}

    def read(self, pattern: re.Pattern[str], start: int) -> re.Match[str] | None:
        """Return the value at a place, or None if there is none, or if the text was read too often there."""
        is_again = start < self._ends.get(pattern, 0)
        if is_again:
            self._tries[pattern] += 1
            if self._tries[pattern] > _MAX_TRIES:
                return None
        match = pattern.match(self.text, start)
        if match and not is_again:
            self._ends[pattern], self._tries[pattern] = match.end(), 0
        return match


def _match_value(values: _ValueReader, named: _SecretName, after: re.Match[str]) -> SecretSpan | None:  # noqa: C901, PLR0911 - one for each rank
    text = values.text
    separator, start, quote = after["sep"], after.end(), after["quote"]
    if text.startswith(PLACEHOLDER_PREFIX, start):
        return None
    has_gap = separator is None and after["gap"] is not None and not after["bold"]
    is_written_behind = start > named.end and text[named.end] in " \t\"'\\" and _is_option(text, named.start)
    if (has_gap and not is_written_behind) or (after["tag"] and not _is_tag(text, named.start)):
        return None
    is_apart = after["cell"] or after["is"] or (after["comma"] and not is_written_behind)
    if is_apart and named.rank not in ("password", "opaque"):
        return None
    rank = "opaque" if is_apart else named.rank
    is_weak = is_apart and (named.rank != "password" or after["comma"])
    if named.rank == "header":
        return _match_header_value(values, named, start) if separator or after["pair"] else None
    end, is_quoted = _find_value_end(values, named, start, quote, separator)
    value = text[start:end]
    if is_weak and len(value) < _MIN_WORD_CHARACTERS:
        return None
    if rank == "base64":
        return SecretSpan(start, end, named.kind) if separator and _is_user_and_password(value) else None
    if rank == "query":
        is_secret = separator == "=" and len(value) >= _MIN_QUERY and _is_opaque(value)
    elif rank == "token":
        is_secret = _TOKEN_VALUE.fullmatch(value) is not None and _is_opaque(value)
    elif is_quoted:
        is_secret = _is_password(value) if rank == "password" else _is_opaque(value)
    else:
        is_code = text[end : end + 1] in ("(", "[", "{") or (text[end : end + 1] == "<" and not after["tag"])
        is_secret = not is_code and _is_unquoted(text, named, value, start, rank)
    if not is_secret:
        return None
    return SecretSpan(start, end if is_quoted else _find_last_sign(text, end), named.kind)


def _is_option(text: str, at: int) -> bool:
    """Return True if a name belongs to an option of a command (`--db-password`), or to a setting that is set."""
    words = text[max(at - 60, 0) : at].split()
    has_lead = not text[at - 1 : at].isspace()
    lead = words[-1].lstrip("\"'`=,[(\\") if words and has_lead else ""
    before = words[-2:-1] if has_lead else words[-1:]
    lead_word = _LEAD_END.split(before[0])[-1] if before else ""
    return lead.startswith("-") or lead_word in ("set", "setx") or bool(_FISH_SET.search(" ".join(words[-4:])))


_LEAD_END = re.compile(r"\\{1,31}[nrt]|[^\w.-]")
"""What is before the last word of a command in JSON: a line end as an escape, a quotation mark or a bracket."""
_FISH_SET = re.compile(r"\bset(?: -[A-Za-z]{1,4}){1,3}(?: \w{0,64})?\Z")


def _is_tag(text: str, at: int) -> bool:
    """Return True if a name is that of an XML element that starts."""
    opening = text.rfind("<", max(at - 40, 0), at)
    return opening >= 0 and text[opening + 1 : at].replace("-", "").replace("_", "").replace(":", "").isalnum() | (
        opening + 1 == at
    )


def _find_value_end(
    values: _ValueReader, named: _SecretName, start: int, quote: str | None, separator: str | None
) -> tuple[int, bool]:
    """Return where a value ends, and whether that is at a closing quotation mark."""
    text = values.text
    if quote:
        end = _find_closing_quote(text, start, quote)
        if end is not None:
            return end, True
    is_variable = separator == "=" and text[named.start : named.end].isupper() and text[named.end] == "="
    match = values.read(_ENV_VALUE if is_variable else _PLAIN_VALUE, start)
    if match is None:
        return start, False
    return start + len(match[0].rstrip(".,:!?" if not is_variable else ",.")), False


def _find_last_sign(text: str, end: int) -> int:
    """Return where `!` and `?` behind a value end: of a sentence they may be left out, of a password they must not."""
    match = _LAST_SIGNS.match(text, end)
    return match.end() if match else end


def _find_closing_quote(text: str, start: int, quote: str) -> int | None:
    """Return where the same quotation mark, escaped as often, closes a value in the same line, or None."""
    if quote[-1] not in "\"'`":
        quote = quote.replace("\u201c", "\u201d").replace("u201c", "u201d")
        end = text.find(quote, start, start + MAX_VALUE_CHARACTERS)
        return end if end >= 0 else None
    slashes, mark = len(quote) - 1, quote[-1]
    at = text.find(mark, start, start + MAX_VALUE_CHARACTERS)
    while at >= 0:
        run = at
        while run > start and text[run - 1] == "\\":
            run -= 1
        extra = at - run - slashes
        if extra >= 0 and extra % (2 * (slashes + 1)) == 0:
            end = at - slashes
            return None if "\n" in text[start:end] else end
        if extra < 0:  # a mark of the text around it: the value is cut
            return None
        at = text.find(mark, at + 1, start + MAX_VALUE_CHARACTERS)
    return None


_STAND_IN = re.compile(
    r"(?:\$|%[^0-9]|<|\{|\[|!|\*{3}|x{4}|\.{3}|…|-{3}|#|your|my[_-]|example|sample|change|replace|insert|dummy|fake|mock"
    r"|placeholder|none\b|null\b|nil\b|undefined|true\b|false\b|string|required|optional|redacted|masked|hidden|removed"
    r"|env[.:(]|os\.|process\.|config\.|settings\.|secrets?[.:]|self\.|this\.|args\.|todo|op://|vault:|arn:|file:|keyring:"
    r"|ref\+|enc\[|enc\(|sealed:|passw(?:or)?d$|pass$|secret$|token$|user(?:name)?$|~/|\.{0,2}/|[a-z]:\\|https?://)",
    re.IGNORECASE,
)
_REFERENCE = re.compile(r"[A-Za-z_$][\w$]{0,60}(?:\??\.[A-Za-z_$][\w$]{0,60}){1,8}")
_CONSTANT = re.compile(r"[A-Z][A-Z0-9]{0,40}(?:_[A-Z0-9]{1,40}){1,8}")
_SELF_NAMED = re.compile(r"passw|token|secret|credential|api[_-]?key|_key|key_|[a-z]Key", re.IGNORECASE)
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,80}")
# In the name of a variable, a number ends a word (`sha256_password`), and has one digit at the end (`password1`). A
# number after few letters (`s3secret`) or after some (`oauth2token`, `token123`) belongs to a word.
_UNUSUAL_NUMBER = re.compile(r"[A-Za-z]{4}(?<!auth|base|http|oken|pkcs)(?:[0-9]{1,80}[a-z]|[0-9]{2,80}\Z)")
_SLUG_PART = re.compile(r"[A-Za-z]+[0-9]{0,3}|[0-9]{1,4}[A-Za-z]{0,3}")
_NOT_OPAQUE = re.compile(r"[\s\[]|\$\{|\{\{")
_SEPARATED = re.compile(r"[-_./:]")
_HAS_LETTER = re.compile(r"[A-Za-z]")
_BASE64_VALUE = re.compile(r"[A-Za-z0-9+/]+={0,3}")


def _is_password(value: str, *, is_field: bool = False) -> bool:
    """Return True if a quoted value behind such a name is a password, not a placeholder or a sentence."""
    if not _MIN_PASSWORD <= len(value) <= MAX_VALUE_CHARACTERS or PLACEHOLDER_PREFIX in value or _STAND_IN.match(value):
        return False
    if _HAS_SPACE.search(value) and not (is_field and len(value) <= 128 and not value.endswith(".")):  # noqa: PLR2004
        return False
    if _is_secret_name(value) and not _HAS_DIGIT.search(value):
        return False
    return len(set(value[:_MAX_SAMPLE])) >= _MIN_VARIETY and "${" not in value and "{{" not in value


def _is_secret_name(value: str) -> bool:
    """Return True if a value is rather the name of a variable with a secret: `password1`, but not `hunter2secret`."""
    return bool(_IDENTIFIER.fullmatch(value) and _SELF_NAMED.search(value) and not _UNUSUAL_NUMBER.search(value))


def _is_opaque(value: str) -> bool:
    """Return True if a value looks random: letters and digits, or letters of both cases, and is not made of words."""
    if not _MIN_OPAQUE <= len(value) <= MAX_VALUE_CHARACTERS or PLACEHOLDER_PREFIX in value or _STAND_IN.match(value):
        return False
    if not value.isascii() or _NOT_OPAQUE.search(value) or len(set(value[:_MAX_SAMPLE])) <= _MIN_VARIETY:
        return False
    if _CONSTANT.fullmatch(value) or _REFERENCE.fullmatch(value):
        return False
    if _is_secret_name(value) and len(value) < _MIN_MIXED * 2:
        return False
    if not _HAS_DIGIT.search(value):
        return _is_mixed_case(value)
    return _HAS_LETTER.search(value) is not None and not _is_slug(value)


def _is_slug(value: str) -> bool:
    """Return True if a value is made of words and numbers: `gpt-4o-mini`, `us-east-1`, `v1.2.3`, `2024-01-31`."""
    parts = _SEPARATED.split(value, _MAX_SAMPLE)
    return len(parts) > 1 and all(not part or _SLUG_PART.fullmatch(part) for part in parts)


def _is_mixed_case(value: str) -> bool:
    """Return True if a value without digits changes between cases more often than words do."""
    if len(value) < _MIN_MIXED or not value.isalpha():
        return False
    sample = value[:_MAX_SAMPLE]
    changes = sum(one.islower() != two.islower() for one, two in pairwise(sample))
    return changes * 5 >= len(sample) * 2


def _is_unquoted(text: str, named: _SecretName, value: str, start: int, rank: str) -> bool:
    """Return True if a value without quotation marks is one, not code or a word of a sentence."""
    if _REFERENCE.fullmatch(value) or _CONSTANT.fullmatch(value):
        return False
    if rank != "password":
        return _is_opaque(value)
    if text[named.start : named.end].isupper() and text[named.end] == "=" and start == named.end + 1:
        return _is_password(value)
    least = _MIN_PASSWORD if start - named.end <= 2 else _MIN_OPAQUE  # noqa: PLR2004 - `password=`, `password x`
    if len(value) < least or not _is_password(value) or _is_secret_name(value):
        return False
    has_both = any(sign.isdigit() for sign in value) and any(sign.isalpha() for sign in value)
    return has_both and (not _is_slug(value) or any(sign in value for sign in "!@#$%^*+?="))


def _is_user_and_password(value: str) -> bool:
    """Return True if a value is a user and a password in base64, as in HTTP and in settings of registries."""
    if len(value) < _MIN_OPAQUE or len(value) > MAX_VALUE_CHARACTERS or not _BASE64_VALUE.fullmatch(value):
        return False
    try:
        decoded = base64.b64decode(value + "=" * (-len(value) % 4), validate=True).decode()
    except (binascii.Error, ValueError):
        return False
    return ":" in decoded and decoded.isprintable()


def _match_header_value(values: _ValueReader, named: _SecretName, start: int) -> SecretSpan | None:
    """Return the credentials of a header: without its scheme, and up to the end of its line or string."""
    text = values.text
    scheme = _SCHEME.match(text, start)
    at = scheme.end() if scheme else start
    word = scheme[0].strip().lower() if scheme else ""
    match = values.read(_CREDENTIALS, at)
    if match is None or PLACEHOLDER_PREFIX in match[0] or text.startswith("[", at):
        return None
    value = match[0].rstrip(".")
    is_basic = word == "basic" and _is_user_and_password(value)
    is_bearer = word == "bearer" and len(value) >= _MIN_MIXED and value.isalnum() and not _STAND_IN.match(value)
    if is_basic or is_bearer or _is_opaque(value.rstrip("=")):
        return SecretSpan(at, at + len(value), "bearer" if word == "bearer" else named.kind)
    return None


# Phrases: what a format or a program puts in front of a secret.

_BARE = r"[^\s\"'\\]"
_GAP = r"(?:\s|\\{1,31}[nrt]){1,8}"
_PHRASES = (
    # literals in lower case, kind, pattern that starts with one of them, what the secret has to look like
    (("bearer",), "bearer", r"bearer[ \t]{1,4}(?P<secret>[A-Za-z0-9._~+/-]{16,}+=*+)", "opaque"),
    (("basic ",), "authorization", r"basic[ \t]{1,4}(?P<secret>[A-Za-z0-9+/]{8,}+={0,2})", "base64"),
    (
        ("cookie",),
        "cookie",
        (
            r"cookie2?(?:\\{0,31}[\"'])?[ \t]{0,4}(?::|(?<=[\"']),)[ \t]{0,4}(?:\[\s{0,20})?\\{0,31}[\"']?"
            r"(?P<secret>[\w.$-]{1,128}=[^\s;\"'\\]{1,4096}"
            r"(?:;[ \t]{0,3}[\w.$-]{1,128}(?:=[^\s;\"'\\]{0,4096})?){0,64})"
        ),
        "cookie",
    ),
    (("response=",), "authorization", r"response=\\{0,31}\"?(?P<secret>[0-9a-f]{32,128})(?![A-Za-z0-9])", "digit"),
    (("signature=",), "signature", r"signature=\\{0,31}\"?(?P<secret>[A-Za-z0-9%+/=_~-]{20,}+)", "opaque"),
    (
        (":5432:", ":5433:", ":6432:"),
        "password",
        r"(?<=[\w*]):[0-9]{4}:[\w*-]{1,64}:[\w*-]{1,64}:(?P<secret>[^\s:\"'\\]{4,256})(?=$|[\s\"'\\])",
        "value",
    ),
    (("accountkey=", "sharedaccesskey="), "storage-key", r"[a-z]+=(?P<secret>[A-Za-z0-9+/]{20,}+={0,2})", ""),
    (
        ("?sig=", "&sig=", ";sig=", "-signature=", "&signature=", "?signature="),
        "signature",
        r"[^=]+=(?P<secret>[A-Za-z0-9%+/=_~.-]{20,}+)",
        "digit",
    ),
    (
        ("hooks.slack.com",),
        "webhook",
        r"hooks\.slack\.com\\?/[a-z]{1,20}\\?/(?P<secret>[A-Za-z0-9]{6,40}(?:\\?/[A-Za-z0-9]{6,64}){1,4})",
        "digit",
    ),
    (("/webhooks/",), "webhook", r"/webhooks/(?P<secret>[0-9]{10,24}/[\w-]{30,}+)", ""),
    (("/webhookb2/",), "webhook", r"/webhookb2/(?P<secret>[\w@/-]{40,}+)", "digit"),
    (("hooks.zapier.com",), "webhook", r"hooks\.zapier\.com/hooks/catch/(?P<secret>[0-9]{4,12}/[a-z0-9]{5,16})", ""),
    (
        ("machine",),
        "password",
        (
            rf"machine{_GAP}[^\s\\]{{1,200}}{_GAP}(?:(?:login|account){_GAP}[^\s\\]{{1,200}}{_GAP}){{0,2}}password{_GAP}"
            rf"(?P<secret>{_BARE}{{4,512}})"
        ),
        "value",
    ),
    (
        ("<key>",),
        "password",
        (
            r"<key>[^<>]{0,64}(?:passw(?:or)?d|passphrase|secret|token|api[ _-]?key)[^<>]{0,16}</key>"
            r"(?:\s|\\{1,31}[nrt]){0,40}<string>(?P<secret>[^<>\s\\]{6,4096})(?=</string>)"
        ),
        "digit",
    ),
    (
        ("wifi:",),
        "password",
        r"wifi:(?:[a-oq-z]:(?:[^;\\\n]|\\.){0,64};){0,6}p:\\{0,31}\"?(?P<secret>(?:[^;\\\s\"]|\\[;,:\\\"]){6,128})(?=\\{0,31}\"?;)",
        "value",
    ),
    (("identified by",), "password", r"identified by\s{1,4}(?:password\s{1,4})?'(?P<secret>[^'\n\\]{4,256})", "digit"),
    (("password '",), "password", r"password '(?P<secret>[^'\s\\]{6,256})(?=')", "value"),
    (
        ("convertto-securestring",),
        "password",
        r"convertto-securestring\s{1,4}(?:-[a-z]{1,20}\s{1,4}){0,3}\\{0,31}[\"'](?P<secret>[^\"'\s\\]{6,256})",
        "value",
    ),
    (
        ("setpassword(", "set_password(", "withpassword("),
        "password",
        r"[a-z_]+\(\s{0,4}[\"'](?P<secret>[^\"'\s\\]{6,256})(?=[\"'])",
        "value",
    ),
    (
        ("jdbc:oracle:",),
        "password",
        r"jdbc:oracle:[a-z0-9]{1,8}:[\w$#]{1,64}/(?P<secret>[^\s@\"'\\]{3,128})(?=@)",
        "value",
    ),
    (
        ("akia", "asia"),
        "aws-key",
        r"a[ks]ia[A-Z0-9]{16}(?:[\s,;:|\"']|\\{1,31}[nrt\"]){1,8}(?P<secret>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
        "opaque",
    ),
    (("_gitlab_session=",), "cookie", r"[a-z_]+=(?P<secret>[0-9a-f]{32,64})", ""),
    (("?code=", "&code="), "signature", r".code=(?P<secret>[A-Za-z0-9%/_=.~-]{20,4096})", "opaque"),
    (("samlresponse=",), "authorization", r"[a-z]+=(?P<secret>[A-Za-z0-9%/_=+-]{100,}+)", "digit"),
    (
        ("define(",),
        "password",
        r"define\(\s{0,4}'[a-z_]{0,40}(?:_key|_salt|_password)',\s{0,40}'(?P<secret>[^'\n]{6,256})(?=')",
        "value",
    ),
    (("sshpass=",), "password", rf"sshpass=\\{{0,31}}[\"']?(?P<secret>{_BARE}{{4,256}})", "value"),
    (
        ("-storepass", "-keypass", "-srcstorepass", "-deststorepass"),
        "password",
        rf"-[a-z]{{1,16}}[ =]{{1,4}}\\{{0,31}}[\"']?(?P<secret>{_BARE}{{6,256}})",
        "digit",
    ),
    (
        ("password for ", "passphrase for ", "token for ", "api key for ", "secret for "),
        "password",
        (
            r"[a-z ]{5,10} for (?:the )?[\w.@/-]{1,64}(?: [\w.@/-]{1,32}){0,2}(?: is|:) {1,4}[\"'`]?"
            r"(?P<secret>[^\s\"'`\\,;]{8,256})"
        ),
        "opaque",
    ),
    (
        ('variable "', "variable \\"),
        "password",
        (
            r"variable \\{0,31}\"[a-z0-9_-]{0,40}(?:passw(?:or)?d|secret|token|api_?key|private_key)[a-z0-9_-]{0,24}"
            r"\\{0,31}\"[^{}]{0,8}\{[^{}]{0,400}?default\s{0,20}=\s{0,8}\\{0,31}\"(?P<secret>[^\"\s\\]{6,256})"
        ),
        "value",
    ),
    (
        (":password ", ":passphrase ", ":secret ", ": psk ", " psk "),
        "password",
        r":? ?[a-z]{3,10} {1,4}\\{0,31}\"(?P<secret>[^\"\s\\]{6,256})(?=\\{0,31}\")",
        "digit",
    ),
    (
        ("rootpw ", "wpa-psk ", ".password "),
        "password",
        rf"[a-z.-]{{6,9}} {{1,8}}(?P<secret>{_BARE}{{8,256}})(?=$|[\s\"'\\])",
        "opaque",
    ),
    (
        ("password 0 ", "password 7 ", "secret 0 ", "secret 5 ", "secret 8 ", "secret 9 ", "key 7 "),
        "password",
        r"[a-z]{3,9} (?:[05789] )?(?P<secret>[^\s\"'\\]{8,128})(?=$|[\s\"'\\])",
        "opaque",
    ),
    (
        ("snmp-server community ",),
        "password",
        r"[a-z-]{11} [a-z]{9} (?P<secret>[^\s\"'\\]{8,128})(?=$|[\s\"'\\])",
        "opaque",
    ),
    (("conda",), "url-password", r"conda[\w.:-]{0,80}/t/(?P<secret>[A-Za-z0-9-]{20,80})(?=/)", "opaque"),
    (("bindpw ",), "password", rf"bindpw {{1,8}}(?P<secret>{_BARE}{{4,256}})", "digit"),
    (("pass:",), "password", rf"(?<=[ \"'])pass:(?P<secret>{_BARE}{{4,256}})", "value"),
    (
        ("$2a$", "$2b$", "$2x$", "$2y$"),
        "password-hash",
        r"(?P<secret>\$2[abxy]\$[0-9]{2}\$[A-Za-z0-9./]{53})",
        "",
    ),
    (
        ("$1$", "$5$", "$6$", "$y$", "$apr1$"),
        "password-hash",
        r"(?P<secret>\$(?:[156y]|apr1)\$(?:[A-Za-z0-9./=,]{1,64}\$){1,3}[A-Za-z0-9./]{22,}+)",
        "",
    ),
    (
        ("$argon2",),
        "password-hash",
        r"(?P<secret>\$argon2(?:id|i|d)\$v=[0-9]{1,3}\$[a-z0-9=,]{5,60}\$[A-Za-z0-9+/]{8,}+\$[A-Za-z0-9+/]{16,}+)",
        "",
    ),
    (
        ("mnemonic", "seed phrase", "seed_phrase", "recovery phrase", "recovery_phrase"),
        "password",
        (
            r"[a-z]+(?:[ _]phrase)?\\{0,31}[\"']?\s{0,4}[:=]\s{0,4}\\{0,31}[\"']?"
            r"(?P<secret>[a-z]{3,8}(?: [a-z]{3,8}){11,23})(?![a-z ])"
        ),
        "",
    ),
)
_MARK = r"(?:\\{0,31}[\"'])?"
_USER = rf"{_MARK}[^\s:\"'$\\]{{1,128}}:"
_COMMANDS = (
    # programs, kind, pattern of an option with a secret (the letter's case counts), what that has to look like
    (
        ("curl",),
        "password",
        rf"\s(?:-u|-U|--user|--proxy-user)[ =]?\s{{0,4}}{_USER}(?P<secret>{_BARE}{{3,256}})",
        "value",
    ),
    (
        ("curl",),
        "cookie",
        rf"\s(?:-b|--cookie)[ =]?\s{{0,4}}{_MARK}(?P<secret>[\w.-]{{1,128}}={_BARE}{{8,4096}})",
        "digit",
    ),
    (("http ", "https "), "bearer", r"\s(?:-a|--auth)[ =](?P<secret>[A-Za-z0-9_.-]{20,4096})", "digit"),
    (("vault login", "cargo login"), "hosting-token", r"login (?P<secret>[A-Za-z0-9_.-]{20,4096})", "digit"),
    (("poetry config",), "hosting-token", rf"\spypi-token\.\S{{1,64}} {_MARK}(?P<secret>{_BARE}{{16,4096}})", "digit"),
    (
        ("poetry config",),
        "password",
        rf"\shttp-basic\.\S{{1,64}} \S{{1,128}} {_MARK}(?P<secret>{_BARE}{{4,256}})",
        "value",
    ),
    (
        ("echo ",),
        "hosting-token",
        rf"echo {_MARK}(?P<secret>{_BARE}{{8,4096}}){_MARK} \| .{{1,200}}?--(?:with-token|password-stdin|token-stdin)",
        "digit",
    ),
    (("http ", "https "), "password", rf"\s(?:-a|--auth)[ =]{_USER}(?P<secret>{_BARE}{{3,256}})", "value"),
    (("mysql",), "password", rf"\s-p(?P<secret>[^\s\"'\\=-]{_BARE}{{3,128}})", "value"),
    (("openssl",), "password", rf"\s-(?:k|K|pass) {_MARK}(?:pass:)?(?P<secret>{_BARE}{{6,256}})", "digit"),
    (
        ("htpasswd",),
        "password",
        rf"\s-\w{{0,6}}b\w{{0,6}}(?: [^\s-]\S{{0,200}}){{2}} {_MARK}(?P<secret>{_BARE}{{4,256}})",
        "value",
    ),
    (("sqlcmd", "bcp "), "password", rf"\s-P ?{_MARK}(?P<secret>{_BARE}{{4,256}})", "value"),
    (("sqlplus",), "password", r"\s[\w$#]{1,64}/(?P<secret>[^\s@\"'\\/]{3,128})@", "digit"),
    (("net use",), "password", rf"\s/user:\S{{1,128}} (?P<secret>{_BARE}{{4,256}})", "digit"),
    (("cmdkey",), "password", rf"\s/pass:(?P<secret>{_BARE}{{4,256}})", "value"),
    (("nmcli",), "password", rf"\spassword {_MARK}(?P<secret>{_BARE}{{8,64}})", "digit"),
    (("wpa_passphrase ",), "password", rf"wpa_passphrase \S{{1,64}} {_MARK}(?P<secret>{_BARE}{{8,64}})", "digit"),
    (
        ("echo ",),
        "password",
        rf"echo {_MARK}[^\s:\"'$\\]{{1,64}}:(?P<secret>{_BARE}{{4,128}}){_MARK} \| (?:sudo )?chpasswd",
        "value",
    ),
    (("echo ",), "password", rf"echo {_MARK}(?P<secret>{_BARE}{{4,128}}){_MARK} \| (?:sudo -S|kinit)\b", "value"),
    (("sshpass",), "password", rf"\s-p ?{_MARK}(?P<secret>{_BARE}{{4,256}})", "value"),
    (
        (
            "docker login",
            "podman login",
            "oc login",
            "az login",
            "helm registry login",
            "mongosh ",
            "mongo ",
            "mongodump ",
        ),
        "password",
        rf"\s-p[ =]{_MARK}(?P<secret>{_BARE}{{4,4096}})",
        "value",
    ),
    (("redis-cli",), "password", rf"\s-a {_MARK}(?P<secret>{_BARE}{{4,256}})", "value"),
    (
        ("ldapsearch", "ldapmodify", "ldapadd", "ldapwhoami"),
        "password",
        rf"\s-w {_MARK}(?P<secret>{_BARE}{{4,256}})",
        "value",
    ),
    (("zip ",), "password", rf"\s-P {_MARK}(?P<secret>{_BARE}{{4,256}})", "value"),
    (("7z ", "rar "), "password", rf"\s-p(?P<secret>{_BARE}{{4,256}})", "value"),
    (
        ("mosquitto_", "twine upload", "ncftp", "crackmapexec", "netexec", "evil-winrm"),
        "password",
        rf"\s-[pP] {_MARK}(?P<secret>{_BARE}{{4,4096}})",
        "digit",
    ),
    (("p4 ",), "password", r"\s-P (?P<secret>[A-F0-9]{32})", ""),
    (("lftp",), "password", rf"\s-u [^\s,]{{1,128}},(?P<secret>{_BARE}{{4,256}})", "value"),
    (("ssh-keygen",), "password", rf"\s-[NP] {_MARK}(?P<secret>{_BARE}{{5,256}})", "digit"),
    (("rclone",), "password", rf"\spass {_MARK}(?P<secret>{_BARE}{{8,256}})", "digit"),
    (
        ("secretsdump", "psexec", "wmiexec", "smbexec", "getuserspns"),
        "password",
        r"\s[^\s:/]{1,64}/[^\s:/]{1,64}:(?P<secret>[^\s\"'\\]{4,128})@",
        "value",
    ),
    (("smbclient",), "password", rf"\s-U ?{_MARK}[^\s%\"']{{1,64}}%(?P<secret>{_BARE}{{4,256}})", "value"),
    (("xfreerdp", "rdesktop"), "password", rf"\s(?:/p:|-p )(?P<secret>{_BARE}{{4,256}})", "value"),
)
_KEY_PARTS = re.compile(
    r"[\"'](?:d|p|q|dp|dq|qi|k)\\{0,31}[\"']\s{0,4}:\s{0,4}\\{0,31}[\"'](?P<secret>[A-Za-z0-9_-]{40,}+)(?=\\{0,31}[\"'])"
)
_LINE_END = re.compile(r"\n|(?<!\\)\\n")
_compiled: dict[str, re.Pattern[str]] = {}


def _compile_cached(pattern: str, flags: int) -> re.Pattern[str]:
    """Return a pattern that is compiled when it is first needed."""
    if pattern not in _compiled:
        _compiled[pattern] = re.compile(pattern, flags)
    return _compiled[pattern]


_PHRASES_BY_LITERAL = [(literal, *shape) for literals, *shape in _PHRASES for literal in literals]
_COMMANDS_BY_PROGRAM = [(program, *shape) for programs, *shape in _COMMANDS for program in programs]


def _find_phrases(text: str, lowered: str) -> Iterator[SecretSpan]:
    for literal, kind, pattern, check in [each for each in _PHRASES_BY_LITERAL if each[0] in lowered]:
        at = lowered.find(literal)
        while at >= 0:
            match = _compile_cached(pattern, re.IGNORECASE).match(text, at)
            if match and _is_phrase(match["secret"], check):
                yield SecretSpan(*match.span("secret"), kind)
            at = lowered.find(literal, match.end() if match else at + len(literal))
    if "kty" in text:
        for match in _KEY_PARTS.finditer(text):
            if _HAS_DIGIT.search(match["secret"]):
                yield SecretSpan(*match.span("secret"), "private-key")


# A program is a word of its own. What an option names (`find -name mysql`, `docker run --name mongo`) is none.
_BEFORE_PROGRAM = re.compile(r"(?:^|[\s\\\"'`/(;&|=:>\x1b]|\\[nrt])\Z")
_NAMING_OPTION = re.compile(
    r"\s--?(?:i?name|i?path|wholename|link|net|network|image|service|package|host|hostname|h|include|exclude)"
    r"[\s\"',]{1,4}[^\s\"']{0,100}\Z"
)
_AFTER_PROGRAM = re.compile(r"[\w.]*+(?=[\s\"',]|\\|\Z)")
_COMMAND_END = re.compile(r"[\"']|;(?=\s|\Z)|(?<=\s)(?:&&?|\|\|?)(?=\s)|&&|\|\|")
_PORTS = re.compile(r"\d{1,5}(?::\d{1,5}){1,2}")


def _find_options(text: str, lowered: str) -> Iterator[SecretSpan]:
    """Yield the secrets behind short options of programs. Each line of a shell is read once."""
    for program, kind, pattern, check in [each for each in _COMMANDS_BY_PROGRAM if each[0] in lowered]:
        at = lowered.find(program)
        while at >= 0:
            end = at + len(program)
            if _is_program(text, at, end):
                end = _find_command_end(text, at, end, is_piped=program == "echo ")
                for match in _compile_cached(pattern, 0).finditer(text, at, end):
                    if _is_phrase(match["secret"], check):
                        yield SecretSpan(*match.span("secret"), kind)
            at = lowered.find(program, end)


def _is_program(text: str, at: int, end: int) -> bool:
    """Return True if a name in a text may be a program that is run."""
    before = text[max(at - 128, 0) : at]
    return (
        _BEFORE_PROGRAM.search(before[-2:]) is not None
        and (text[end - 1] == " " or _AFTER_PROGRAM.match(text, end) is not None)
        and _NAMING_OPTION.search(before) is None
    )


def _find_command_end(text: str, at: int, end: int, *, is_piped: bool) -> int:
    """Return where a command ends: at the end of its line, or at a `;`, `&` or `|` that is not in quotes."""
    line_end = _find_line_end(text, at)
    if is_piped:
        return line_end
    quotes = {'"': False, "'": False}
    for match in _COMMAND_END.finditer(text, end, line_end):
        if (sign := match[0]) in quotes:
            quotes[sign] = not quotes[sign]
        elif not any(quotes.values()):
            return match.start()
    return line_end


def _find_line_end(text: str, at: int) -> int:
    """Return where a line of a shell ends: at a line break, or at one that is escaped in JSON."""
    match = _LINE_END.search(text, at)
    return match.start() if match else len(text)


def _is_phrase(secret: str, check: str) -> bool:  # noqa: PLR0911 - one for each check
    if PLACEHOLDER_PREFIX in secret:
        return False
    if check == "opaque":
        return _is_opaque(secret.rstrip("="))
    if check == "base64":
        return _is_user_and_password(secret)
    if check == "digit":
        return bool(_HAS_DIGIT.search(secret)) and not _STAND_IN.match(secret) and "${" not in secret
    if check == "cookie":
        return any(_is_opaque(pair.partition("=")[2]) for pair in secret.split(";"))
    if check == "value":
        return not _PORTS.fullmatch(secret) and not _STAND_IN.match(secret) and len(set(secret)) >= _MIN_VARIETY - 1
    return True


# Values of Kubernetes secrets, whatever their names are.

_MANIFEST_CHARACTERS = 8_192
"""Characters before and after `kind: Secret` that belong to the same manifest."""
_MANIFEST_DATA = re.compile(r"(?:^|(?<=[\sn]))(string)?data:[ \t]{0,4}(?=\r?\n|\\{1,31}[nr])", re.IGNORECASE)
_MANIFEST_VALUE = re.compile(
    r"(?:\r?\n|\\{1,31}n)[ \t]{1,16}[\w.-]{1,128}:[ \t]{1,4}\\{0,31}[\"']?(?P<secret>[^\s\"'\\]{1,4096})\\{0,31}[\"']?"
)
_MIN_MANIFEST_VALUE = 8


def _find_manifest_values(text: str, lowered: str) -> Iterator[SecretSpan]:
    done = 0
    at = lowered.find("kind: secret")
    while at >= 0:
        start = max(text.rfind("---", done, at), at - _MANIFEST_CHARACTERS, done)
        end = text.find("---", at, at + _MANIFEST_CHARACTERS)
        done = end if end >= 0 else min(at + _MANIFEST_CHARACTERS, len(text))
        for data in _MANIFEST_DATA.finditer(text, start, done):
            place = data.end()
            while value := _MANIFEST_VALUE.match(text, place, done):
                place = value.end()
                secret = value["secret"]
                is_secret = _is_opaque(secret) if data[1] else _BASE64_VALUE.fullmatch(secret)
                if is_secret and len(secret) >= _MIN_MANIFEST_VALUE and _is_phrase(secret, "value"):
                    yield SecretSpan(*value.span("secret"), "password")
        at = lowered.find("kind: secret", done)


# Passwords in addresses.

MAX_URL_CHARACTERS = 1024
"""Characters of an address that are searched for its password."""
_SLASHES = re.compile(r"(?<=[A-Za-z0-9]):\\{0,31}/\\{0,31}/")
_USER_PART = re.compile(r"[^\s/:@\"'<>\\?#]{0,200}:")
_AUTHORITY = re.compile(r"[^\s\"'<>`]+")
_HOST = re.compile(r"(?:[A-Za-z0-9_.-]{1,253}|\[[0-9a-fA-F:.%]{2,60}\]|\$\{?[A-Za-z_]{1,40}\}?)(?![@\w])")
_PORT = re.compile(r"(?:[0-9]{1,5}|port|\{port\}|\$[A-Za-z_{]{1,40}\}?)(?=[/?#]|\\/|$)", re.IGNORECASE)


def _find_url_passwords(text: str) -> Iterator[SecretSpan]:
    done = 0
    for match in _SLASHES.finditer(text):
        if match.start() >= done and (span := _match_url_password(text, match.end())):
            done = span.end
            yield span


def _match_url_password(text: str, start: int) -> SecretSpan | None:
    """Return the password between a user and the last `@` that a host follows. It may contain `@` and `/`."""
    user = _USER_PART.match(text, start)
    if user is None:
        return _match_url_user(text, start)
    first = user.end()
    stop = text.find("://", first, first + MAX_URL_CHARACTERS)
    rest = _AUTHORITY.match(text, first, first + MAX_URL_CHARACTERS if stop < 0 else stop)
    if rest is None or _PORT.match(text, first):
        return None
    found = None
    at = first
    for _ in range(_MAX_TRIES):
        at = text.find("@", at + 1, rest.end())
        if at < 0:
            break
        password, host = text[first:at], _HOST.match(text, at + 1)
        if found is not None and ("?" in password or "#" in password):
            break
        if host and _is_url_password(password, text, host):
            found = at
    return None if found is None else SecretSpan(first, found, "url-password")


def _is_url_password(password: str, text: str, host: re.Match[str]) -> bool:
    if len(password) < 3 or PLACEHOLDER_PREFIX in password or "://" in password or _STAND_IN.match(password):  # noqa: PLR2004
        return False
    if "/" not in password:
        return "," not in password or bool(_HAS_DIGIT.search(password))
    # A path with an `@` in it looks the same, unless there is further evidence of a password.
    is_server = text[host.end() : host.end() + 1] in (":", "/", "?") or "." in host[0]
    return is_server and bool(_HAS_DIGIT.search(password)) and not password.startswith("/")


def _match_url_user(text: str, start: int) -> SecretSpan | None:
    """Return a token in the place of a user."""
    match = _URL_TOKEN.match(text, start)
    if match is None or not _is_opaque(match[1]):
        return None
    return SecretSpan(*match.span(1), "url-password")


_URL_TOKEN = re.compile(r"([A-Za-z0-9_-]{20,512})@[A-Za-z0-9.-]{3,253}")


# Private keys.

_ARMOR_BEGIN = re.compile(r"-{4,5} ?BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}")
_ARMOR_END = re.compile(r"-{4,5} ?END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}")
_STATIC_BEGIN = re.compile(r"-----BEGIN OpenVPN Static key V1-----")
_STATIC_END = re.compile(r"-----END OpenVPN Static key V1-----")
_BREAK = r"(?:\s|\\{1,31}[nr]){1,8}"
_PUTTY = re.compile(
    rf"Private-Lines: [0-9]{{1,4}}{_BREAK}((?:[A-Za-z0-9+/=]{{1,80}}{_BREAK}){{0,400}}[A-Za-z0-9+/=]{{4,80}})"
)
_KEY_LINE = re.compile(r"[A-Za-z0-9+/]{16,}={0,3}")
_SHORT_LINE = re.compile(r"[A-Za-z0-9+/]{1,76}={0,3}")
_ARMOR_HEADER = re.compile(
    r"(?:Proc-Type|DEK-Info|Version|Comment|Hash|Charset|MessageID|Subject|Key-Type)\s?:[^\n\\\"]{0,200}"
)
_LINE_LEAD = re.compile(
    r"(?:[\s>+|#*\"',-]|\\{1,31}t){0,60}"
    r"(?:[0-9]{1,6}(?:\u2192|\\{1,31}u2192|\\{1,31}t|[:|\t]|\s\|)[\s>+|#*\"']{0,20})?"
)
_LINE_BREAK = re.compile(r"\r?\n|(?:\\{1,31}r)?\\{1,31}n|\r")
_KEY_CHARACTERS = re.compile(r"[A-Za-z0-9+/]{8}")
_PIECE = re.compile(r"\[redacted:[a-z-]{1,40}\]|[A-Za-z0-9+/]{12,}={0,3}|[A-Za-z0-9+/]{4,}={1,3}")
_PIECE_SIGN = re.compile(r"[0-9+/=]")


def _find_private_keys(text: str) -> Iterator[SecretSpan]:
    for begin, end in ((_ARMOR_BEGIN, _ARMOR_END), (_STATIC_BEGIN, _STATIC_END)):
        begins = [match.span() for match in begin.finditer(text)]
        ends = [match.span() for match in end.finditer(text)]
        yield from _find_armor(text, begins, ends)
    if "Private-Lines: " in text:
        for match in _PUTTY.finditer(text):
            yield SecretSpan(*match.span(1), "private-key")


def _find_armor(text: str, begins: list[tuple[int, int]], ends: list[tuple[int, int]]) -> Iterator[SecretSpan]:
    """Yield keys between their first and last lines, and what is left of those of which one was cut off."""
    marks = sorted([(*span, True) for span in begins] + [(*span, False) for span in ends])
    open_at: tuple[int, int] | None = None
    last = 0
    for start, end, is_begin in [*marks, (len(text), len(text), True)]:
        if open_at is None:
            if not is_begin:
                first = _find_cut_key_start(text, max(last, start - MAX_ARMOR_CHARACTERS), start)
                if first < start:
                    yield SecretSpan(first, end, "private-key")
        elif is_begin:
            stop = _find_cut_key_end(text, open_at[1], min(start, open_at[1] + MAX_ARMOR_CHARACTERS))
            if stop > open_at[1]:
                yield SecretSpan(open_at[0], stop, "private-key")
        elif start - open_at[1] <= MAX_ARMOR_CHARACTERS:
            yield from _find_whole_key(text, open_at, (start, end))
        open_at = (start, end) if is_begin else None
        last = end


def _find_whole_key(text: str, begin: tuple[int, int], end: tuple[int, int]) -> Iterator[SecretSpan]:
    """Yield a key as one secret, or as pieces if it is written as several strings, so that the strings stay."""
    body = text[begin[1] : end[0]]
    if not _KEY_CHARACTERS.search(body):  # `...` in a document
        return
    if '"' in body or "'" in body:
        for match in _PIECE.finditer(body):
            if match[0].startswith("[") or not _PIECE_SIGN.search(match[0]):  # redacted before, or a word
                continue
            yield SecretSpan(begin[1] + match.start(), begin[1] + match.end(), "private-key")
    else:
        yield SecretSpan(begin[0], end[1], "private-key")


def _find_cut_key_end(text: str, start: int, limit: int) -> int:
    """Return where the lines of a key without its last line end, or `start` if there are none."""
    end, at = start, start
    has_key = False
    while at < limit:
        lead = _LINE_BREAK.match(text, at, limit) or _LINE_LEAD.match(text, at, limit)
        if lead and lead.end() > at:
            if '"' in lead[0] or "'" in lead[0]:
                break
            at = lead.end()
            continue
        header = None if has_key else _ARMOR_HEADER.match(text, at, limit)
        line = header or _KEY_LINE.match(text, at, limit)
        if line is None:
            short = _SHORT_LINE.match(text, at, limit)
            if short and (short.end() == limit or text[short.end()] in "\u2026.[\"'\\" or _HAS_DIGIT.search(short[0])):
                end = short.end()
            break
        has_key = has_key or header is None
        at = end = line.end()
    return end if has_key else start


def _find_cut_key_start(text: str, limit: int, end: int) -> int:
    """Return where the lines of a key without its first line start, or `end` if there are none."""
    start = end
    breaks = [match.span() for match in _LINE_BREAK.finditer(text, limit, end)]
    firsts = [limit, *(after for _, after in breaks)]
    lasts = [*(before for before, _ in breaks), end]
    for first, last in zip(reversed(firsts), reversed(lasts), strict=True):
        line = text[first:last].rstrip("=")
        lead = line.rstrip(_BASE64_SIGNS)
        length = len(line) - len(lead)
        if first == last and start == end:  # right before the last line
            continue
        if length < (_MIN_SHORT_LINE if start == end else _MIN_WORD_CHARACTERS):
            break
        start = first + len(lead)
        if not _LINE_LEAD.fullmatch(lead):  # the rest of a line that was cut
            break
    return start


_BASE64_SIGNS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_MIN_SHORT_LINE = 4
