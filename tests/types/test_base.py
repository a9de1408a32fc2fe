"""A record made quickly behaves like one that the standard library has made."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError, field
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_core import Message
from nexus_core.plugin import ToolCall
from nexus_core.testing.samples import build_sample_record
from nexus_core.types.base import copy_value, dataclass

if TYPE_CHECKING:
    from collections.abc import Callable


class Body:
    """A value."""

    a: int
    b: str = "b"
    c: list[int] = field(default_factory=list)
    quiet: int = field(default=0, repr=False)
    ignored: int = field(default=0, compare=False)
    late: int = field(default=0, kw_only=True)


def made_by(make: Any, **options: bool) -> Any:
    body = {name: value for name, value in vars(Body).items() if name not in {"__dict__", "__weakref__"}}
    return make(frozen=True, slots=True, **options)(type("Value", (), body))


Fast, Standard = made_by(dataclass), made_by(dataclasses.dataclass)
FastKeywords, StandardKeywords = made_by(dataclass, kw_only=True), made_by(dataclasses.dataclass, kw_only=True)
PAIRS = pytest.mark.parametrize(("fast", "standard"), [(Fast, Standard), (FastKeywords, StandardKeywords)])


@dataclass(frozen=True, slots=True)
class Point:
    x: int
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Checked:
    x: float

    def __post_init__(self) -> None:
        if self.x < 0:
            raise ValueError("negative")

    def __repr__(self) -> str:
        return "mine"


@PAIRS
def test_it_is_called_with_the_same_arguments(fast: Any, standard: Any) -> None:
    assert str(inspect.signature(fast)) == str(inspect.signature(standard))


@PAIRS
@pytest.mark.parametrize("arguments", [{"a": 1}, {"a": 1, "b": "x", "c": [1], "quiet": 2, "ignored": 3, "late": 4}])
def test_it_shows_itself_alike(fast: Any, standard: Any, arguments: dict[str, Any]) -> None:
    assert repr(fast(**arguments)) == repr(standard(**arguments))


@PAIRS
def test_it_has_the_same_fields(fast: Any, standard: Any) -> None:
    facts = [
        [(f.name, f.type, f.compare, f.repr, f.kw_only, f.init) for f in dataclasses.fields(made)]
        for made in (fast, standard)
    ]
    assert facts[0] == facts[1]
    assert fast.__match_args__ == standard.__match_args__
    assert getattr(fast, "__slots__", None) == getattr(standard, "__slots__", None)
    assert repr(fast.__dataclass_params__) == repr(standard.__dataclass_params__)


@pytest.mark.parametrize("wrong", [(), (1, 2, [], 0, 0, 0), ("unknown",)])
def test_wrong_arguments_are_a_type_error_like_the_standard_one(wrong: tuple[Any, ...]) -> None:
    def refusal(make: Callable[..., object]) -> str:
        with pytest.raises(TypeError) as caught:
            make(*wrong, **({"nothing": 1} if wrong == ("unknown",) else {}))
        return str(caught.value)

    assert refusal(Fast) == refusal(Standard)


def test_equality_and_hash_leave_out_what_is_not_compared() -> None:
    assert Fast(1, c=[1], ignored=1) == Fast(1, c=[1], ignored=2)
    assert Fast(1) != Fast(2)
    assert Fast(1) != Standard(1)
    assert hash(Point(1, ("a",))) == hash(Point(1, ("a",)))
    assert len({Point(1), Point(1), Point(2)}) == 2


def test_a_value_that_is_not_itself_is_equal_where_it_stands_in_the_same_place() -> None:
    nan = float("nan")
    assert Checked(nan) == Checked(nan)


def test_nothing_can_be_set_or_deleted() -> None:
    point: Any = Point(1)
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'x'"):
        point.x = 2
    with pytest.raises(FrozenInstanceError, match="cannot delete field 'x'"):
        del point.x
    with pytest.raises(AttributeError):
        point.other = 1


def test_threads_may_make_the_first_values_at_once() -> None:
    for _ in range(20):
        made = made_by(dataclass)
        start = threading.Barrier(4)

        def make(number: int, made: Any = made, start: threading.Barrier = start) -> Any:
            start.wait()
            return made(number, c=[number])

        with ThreadPoolExecutor(4) as threads:
            assert [(value.a, value.c) for value in threads.map(make, range(4))] == [(n, [n]) for n in range(4)]


def test_each_value_gets_a_list_of_its_own() -> None:
    assert Fast(1).c is not Fast(1).c


def test_it_can_be_copied_replaced_pickled_and_taken_apart() -> None:
    point = Point(1, ("a",))
    assert pickle.loads(pickle.dumps(point)) == point  # noqa: S301 - its own
    assert copy.copy(point) == copy.deepcopy(point) == point
    assert dataclasses.replace(point, x=2) == Point(2, ("a",))
    assert dataclasses.asdict(point) == {"x": 1, "names": ("a",)}
    match point:
        case Point(x, names):
            assert (x, names) == (1, ("a",))


def test_what_the_class_defines_itself_stays() -> None:
    assert repr(Checked(1)) == "mine"
    with pytest.raises(ValueError, match="negative"):
        Checked(-1)


def test_a_value_that_contains_itself_can_be_shown() -> None:
    inner: list[Any] = []
    value = Fast(1, c=inner)
    inner.append(value)
    assert repr(value) == "Value(a=1, b='b', c=[...], ignored=0, late=0)"


def test_a_standard_dataclass_can_be_derived_from_it() -> None:
    @dataclasses.dataclass(frozen=True)
    class Named(Point):
        name: str = ""

    assert dataclasses.replace(Named(1), name="n") == Named(1, name="n")


def test_what_it_does_not_make_is_left_to_the_standard_library() -> None:
    with pytest.raises(TypeError, match=r"use dataclasses\.dataclass"):
        made_by(lambda **_options: dataclass(frozen=False, slots=True))
    with pytest.raises(TypeError, match=r"use dataclasses\.dataclass"):
        dataclass(frozen=True, slots=False)
    with pytest.raises(TypeError, match="not an argument"):
        dataclass(frozen=True, slots=True)(
            type("Value", (), {"__annotations__": {"a": int}, "a": field(default=0, init=False)})
        )
    with pytest.raises(TypeError, match="derived from a dataclass"):
        dataclass(frozen=True, slots=True)(type("Derived", (Point,), {}))


@pytest.mark.parametrize(
    ("types", "values", "problem"),
    [
        ({"a": int}, {"a": field(default=0, init=False)}, r"Value\.a is not an argument"),
        ({"a": int, "b": dataclasses.InitVar[int]}, {}, r"Value\.b is an InitVar"),
        ({"a": int, "b": "dataclasses.InitVar[int]"}, {"b": 1}, r"Value\.b is an InitVar"),
        ({"a": int, "b": int}, {"a": 1}, r"Value\.b has no default and follows a"),
        ({"a": int, "b": int}, {"a": field(default_factory=int)}, r"Value\.b has no default and follows a"),
        ({"self": int}, {}, r"Value\.self has the name of an argument"),
        ({"a": int}, {"__setattr__": object.__setattr__}, r"Value\.__setattr__ cannot be defined"),
        ({"a": int}, {"__delattr__": object.__delattr__}, r"Value\.__delattr__ cannot be defined"),
    ],
)
def test_class_that_is_not_supported_is_refused_when_it_is_defined(
    types: dict[str, object], values: dict[str, object], problem: str
) -> None:
    body = {"__annotations__": types, "__module__": __name__, **values}

    with pytest.raises(TypeError, match=problem):
        dataclass(frozen=True, slots=True)(type("Value", (), body))


def test_default_before_a_field_that_is_passed_by_name_is_allowed() -> None:
    body = {"__annotations__": {"a": int, "b": int}, "a": 1, "b": field(kw_only=True)}
    made: Any = dataclass(frozen=True, slots=True)(type("Value", (), body))
    named: Any = dataclass(frozen=True, slots=True, kw_only=True)(type("Value", (), {**body, "b": field()}))

    assert (made(b=2).a, named(b=2).a) == (1, 1)


def test_fewer_methods_are_compiled_than_by_the_standard_library() -> None:
    program = (
        "import builtins, dataclasses\n"
        "from nexus_core.types.base import dataclass\n"
        "standard, sources = builtins.exec, []\n"
        "builtins.exec = lambda source, *scopes: (sources.append(source), standard(source, *scopes))\n"
        "for make in dataclass, dataclasses.dataclass:\n"
        "    make(frozen=True, slots=True)(type('Value', (), {'__annotations__': {'a': int}}))\n"
        "    print(''.join(sources).count('def '))\n"
        "    sources.clear()\n"
    )
    fast, standard = map(int, subprocess.check_output([sys.executable, "-c", program], text=True).split())

    assert fast <= standard / 2


def test_an_init_is_compiled_when_it_is_first_used() -> None:
    program = (
        "import builtins\n"
        "from nexus_core.types.base import dataclass\n"
        "standard, sources = builtins.exec, []\n"
        "builtins.exec = lambda source, *scopes: (sources.append(source), standard(source, *scopes))\n"
        "made = dataclass(frozen=True, slots=True)(type('Value', (), {'__annotations__': {'a': int}}))\n"
        "counts = [len(sources)]\n"
        "for a in range(3):\n"
        "    assert made(a).a == a\n"
        "    counts.append(len(sources))\n"
        "print([count - counts[0] for count in counts])\n"  # dataclasses may compile the other methods
    )

    assert subprocess.check_output([sys.executable, "-c", program], text=True).strip() == "[0, 1, 1, 1]"


def test_the_first_value_may_be_of_a_derived_class() -> None:
    base = made_by(dataclass)
    derived = type("Derived", (base,), {"__slots__": ()})

    value = derived(1, b="x")

    assert (value.a, value.b, type(value)) == (1, "x", derived)
    assert base(2).a == 2


json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


def changeable(value: Any) -> list[int]:
    """The identities of everything in a value that could be changed."""
    if isinstance(value, dict):
        return [id(value), *(each for inner in value.values() for each in changeable(inner))]
    if isinstance(value, list | tuple):
        inside = [each for inner in value for each in changeable(inner)]
        return [id(value), *inside] if isinstance(value, list) else inside
    if hasattr(value, "__dataclass_fields__"):
        return [each for name in value.__dataclass_fields__ for each in changeable(getattr(value, name))]
    return []


@given(st.dictionaries(st.text(), json), st.dictionaries(st.text(), json))
def test_a_copy_of_a_message_is_equal_and_shares_nothing_that_can_be_changed(
    arguments: dict[str, Any], extra: dict[str, Any]
) -> None:
    message = Message("assistant", (ToolCall("1", "look", arguments, extra=extra),), extra=extra)

    made = copy_value(message)

    assert made == message == copy.deepcopy(message)
    assert not set(changeable(made)) & set(changeable(message))


def test_a_copy_of_a_step_is_a_step() -> None:
    step, *_ = build_sample_record()

    made = copy_value(step)

    assert (type(made), made, made is step, made.data is step.data) == (type(step), step, False, False)


def test_what_strangers_made_is_copied_as_they_want_it() -> None:
    class Odd(Message):
        __slots__ = ("more",)

        def __deepcopy__(self, memo: dict[int, Any]) -> str:
            return "copied"

    made: object = copy_value((Odd("user", "x"),))

    assert made == ("copied",)
