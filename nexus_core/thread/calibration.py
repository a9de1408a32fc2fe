"""Calibration: how many tokens a provider counts for a call, from what it counted for earlier ones.

The steps of a session carry its samples. For models whose counts are estimates, the typical ratio is kept in the user's
cache of counts as well, from which other sessions start; without it, they start from the model table. Calls without
the name of a model teach nothing: the next one may go to another model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.thread.state import Turn
from nexus_core.tokens.count_cache import CountCache, get_shared_cache
from nexus_core.types.budget import TokenCalibration
from nexus_core.types.payloads import CalibrationSamples, ReplyPayload

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nexus_core.thread.cache import ThreadCache
    from nexus_core.tokens.counters import CachingCounter
    from nexus_core.types.ledger import Step
    from nexus_core.types.messages import Message, Usage

MAX_CALIBRATION_SAMPLES = 8
"""Newest calls of a model that the calibration uses."""
MIN_CALIBRATION_SAMPLES = 3
"""Fewer calls do not show how much the ratio varies, so the error of the model table is added to it."""
MIN_CALIBRATION_TOKENS = 1000
"""In a shorter call, the tokens that a provider adds to every call distort the ratio; so they do in a smaller
difference of two calls."""
PLAUSIBLE_RATIOS = (0.5, 2.0)
"""A ratio outside this range means that the caller did not send the call as it was assembled."""
MAX_UNSEEN_DIVISOR = 4
"""A caller may add instructions and tools to every call, up to this fraction of the context window. More means that
the reported usage is not of this call alone."""


_RATIO_SCALE = 10_000
"""Ratios are cached as whole numbers of this fraction."""
MAX_LEARNED_MESSAGES = 64
"""Newest messages of a transcript that are counted to learn from it: enough for several samples, in a fraction of a
second."""


class CountedCall(NamedTuple):
    """A call that both sides have counted.

    Attributes:
        sent: Its tokens, by our count.
        counted: Its tokens, by the provider's count.
    """

    sent: int
    counted: int


def get_calibration_key(model: str, counter: CachingCounter) -> str:
    """Return the name under which samples of a model are stored; "" without a model, which has none.

    Samples of a corrected counter have its name, because they say nothing about the uncorrected one.
    """
    return f"{model} {counter.name}" if model and counter.is_corrected else model


def find_counted_call(cache: ThreadCache, tip: Step, model: str, counter: str, limit: int) -> CountedCall | None:
    """Return the newest call to a model that both sides have counted; None if the newest steps have none.

    Args:
        cache: The thread.
        tip: Its newest step to consider.
        model: The name of the model.
        counter: The name of our counter; calls that another one counted cannot be compared.
        limit: The context window in tokens.
    """
    for step in reversed(cache.read_newest(tip.id, lambda _: True)):
        reply = step.payload
        if not isinstance(reply, ReplyPayload) or reply.sent is None or reply.usage is None:
            continue
        call = CountedCall(reply.sent, reply.usage.input_tokens)
        # Most APIs repeat the name of the model, and reading a turn takes longer than comparing names.
        if step.counter != counter or (reply.model != model and Turn(cache.read_turn(step.id)).rendered.model != model):
            return None
        return call if _is_plausible(call, limit) else None
    return None


def _is_plausible(call: CountedCall, limit: int) -> bool:
    """Return True if the provider can have counted this call, and instructions that the caller added.

    A low count of a short call is more likely one without cached tokens, as some gateways report it.
    """
    low, high = PLAUSIBLE_RATIOS
    least = call.sent if call.sent < MIN_CALIBRATION_TOKENS else call.sent * low
    most = max(call.sent * high, call.sent + limit // MAX_UNSEEN_DIVISOR)
    return 0 < least <= call.counted <= min(most, limit)


def add_calibration_sample(
    known: CalibrationSamples, model: str, call: CountedCall, last: CountedCall | None = None
) -> CalibrationSamples:
    """Return the samples after another call: the provider's tokens for each of ours.

    A call that is too short, or whose ratio is implausible, adds none, and neither does one without a model.

    Args:
        known: The samples so far.
        model: The key of the model; "" for none.
        call: The call.
        last: The call before it, so that only what is new is compared: the caller may add instructions and tools to
            every call. None for the first.
    """
    sent, counted = call if last is None else (call.sent - last.sent, call.counted - last.counted)
    ratio = counted / sent if sent else 0.0
    if not model or abs(sent) < MIN_CALIBRATION_TOKENS or not PLAUSIBLE_RATIOS[0] <= ratio <= PLAUSIBLE_RATIOS[1]:
        return known
    return {**known, model: [*known.get(model, [])[-MAX_CALIBRATION_SAMPLES + 1 :], round(ratio, 4)]}


def find_calibration(
    known: CalibrationSamples, model: str, counter: CachingCounter, last: CountedCall | None
) -> TokenCalibration | None:
    """Return how a model's provider counts, by the samples of a session or else of others; None if nothing is known.

    Args:
        known: The samples of the session.
        model: The name of the model.
        counter: Its counter.
        last: The last call that both sides have counted; None if there is none.
    """
    key = get_calibration_key(model, counter)
    return get_calibration(find_shared_samples(known, key, counter), key, error=counter.error, last=last)


def learn_sample(
    known: CalibrationSamples, model: str, counter: CachingCounter, call: CountedCall, last: CountedCall | None
) -> CalibrationSamples:
    """Return the samples of a session after another call, and cache what it teaches for other sessions.

    Args:
        known: The samples of the session.
        model: The name of the model.
        counter: Its counter.
        call: The call.
        last: The call before it, as for `add_calibration_sample`.
    """
    key = get_calibration_key(model, counter)
    shared = find_shared_samples(known, key, counter)
    samples = add_calibration_sample(shared, key, call, last)
    if samples is not shared:
        cache_samples(samples, key, counter)
    return samples


def get_calibration(
    known: Mapping[str, Any], model: str, *, error: float = 0.0, last: CountedCall | None = None
) -> TokenCalibration | None:
    """Return how a model's provider counts; None if nothing is known.

    Args:
        known: The samples so far.
        model: The key of the model; "" for none, of which ledgers and caches may still have samples.
        error: Share by which our count may differ from the provider's, by the model table; 0 if exact or unknown.
        last: The last call that both sides have counted; None if there is none.
    """
    ratios = (known.get(model) or []) if model else []
    if not ratios and not error and last is None:
        return None
    low, estimate, high = (min(ratios), _compute_median(sorted(ratios)), max(ratios)) if ratios else (1.0, 1.0, 1.0)
    if len(ratios) < MIN_CALIBRATION_SAMPLES:
        low, high = low * (1 - error), high * (1 + error)
    return TokenCalibration(max(len(ratios), int(last is not None)), low, estimate, high, *(last or ()))


# ---- other sessions -------------------------------------------------------------------------------------------------


def find_shared_samples(known: CalibrationSamples, key: str, counter: CachingCounter) -> CalibrationSamples:
    """Return the samples of a session, or if it has none under a key yet, the typical one of other sessions."""
    if not key or known.get(key) or counter.exact:
        return known
    ratio = (get_shared_cache().find(_build_cache_key(key, counter)) or 0) / _RATIO_SCALE
    return {**known, key: [ratio]} if PLAUSIBLE_RATIOS[0] <= ratio <= PLAUSIBLE_RATIOS[1] else known


def cache_samples(samples: CalibrationSamples, key: str, counter: CachingCounter) -> None:
    """Cache the typical sample under a key for other sessions. Exact counts need none."""
    if (ratios := samples.get(key)) and not counter.exact:
        median = _compute_median(sorted(ratios))
        get_shared_cache().keep(_build_cache_key(key, counter), round(median * _RATIO_SCALE))


def learn_from_messages(
    messages: Sequence[tuple[Message, Usage | None]], model: str, counter: CachingCounter
) -> CalibrationSamples:
    """Cache how a provider counted the calls of a conversation that was recorded elsewhere, and return the samples.

    Only what was added between two calls is compared, because the instructions and tools of the program are not known.
    Nothing is learned about a model of which a sample is cached, or without the name of a model.

    Args:
        messages: The messages, each with the usage of the call that it is the reply to; None for others.
        model: The name of the model.
        counter: Its counter.
    """
    key = get_calibration_key(model, counter)
    if not key or counter.exact or find_shared_samples({}, key, counter):
        return {}
    samples, last, sent = CalibrationSamples(), None, 0
    for message, usage in messages[-MAX_LEARNED_MESSAGES:]:
        if usage is not None and usage.input_tokens:
            call = CountedCall(sent, usage.input_tokens)
            if last is None or call.counted < last.counted:  # the program has left something out
                last = call
            elif call.sent - last.sent >= MIN_CALIBRATION_TOKENS:
                samples, last = add_calibration_sample(samples, key, call, last), call
        sent += counter.count_messages([message])
    if len(samples.get(key, ())) >= MIN_CALIBRATION_SAMPLES:
        cache_samples(samples, key, counter)
    return samples


def _build_cache_key(key: str, counter: CachingCounter) -> bytes:
    return CountCache.key(f"calibration {counter.name}", key)


def _compute_median(numbers: Sequence[float]) -> float:
    """Return the median. `statistics` would import too much at startup."""
    half = len(numbers) // 2
    return (numbers[half] + numbers[-half - 1]) / 2
