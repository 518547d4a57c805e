"""Data classes with methods made at their first use behave as those of the standard library."""

import copy
import dataclasses
import inspect
import pickle
from typing import ClassVar

import pytest

from fsm_dyn.core import records

FORMS = [
    {},
    {"frozen": True},
    {"frozen": True, "slots": True},
    {"frozen": True, "slots": True, "kw_only": True},
    {"frozen": True, "eq": False},
    {"frozen": True, "repr": False},
    {"slots": True},
    {"kw_only": True},
]


class Base:
    """Fields with and without defaults, one computed, one that is no argument, a variable of the class."""

    first: "int"
    second: float = dataclasses.field(default=2.0, compare=False)
    third: list = dataclasses.field(default_factory=list, repr=False, hash=False)
    fourth: int = dataclasses.field(init=False, default=7, metadata={"unit": "m"})
    shared: ClassVar[int] = 3

    def __post_init__(self):
        object.__setattr__(self, "third", [*self.third, self.first])

    def __reduce__(self):
        raise NotImplementedError


def classes(form):
    """Return a class with its subclass, made by either module."""
    made = []
    for maker in (dataclasses.dataclass, records.dataclass):
        body = {key: value for key, value in vars(Base).items() if key not in ("__dict__", "__weakref__", "__reduce__")}
        one = maker(**form)(type("One", (), dict(body)))
        two = maker(**form)(type("Two", (one,), {"__annotations__": {"fifth": "str"}, "fifth": "e", "__doc__": "more"}))
        made.append((one, two))
    return made


def values(form, **more):
    return {"first": 1, "second": 0.5, "third": [8], **more}


def outcome(call):
    try:
        return call()
    except Exception as error:
        return type(error), str(error)


CALLS = {
    "repr": lambda kind: repr(kind(first=1)).split(" object at")[0],
    "keywords": lambda kind: dataclasses.asdict(kind(first=1, second=0.5, third=[8])),
    "positions": lambda kind: dataclasses.astuple(kind(1, 0.5)),
    "missing": lambda kind: kind(),
    "unknown": lambda kind: kind(first=1, sixth=2),
    "not an argument": lambda kind: kind(first=1, fourth=2),
    "equal": lambda kind: kind(first=1, second=2.0) == kind(first=1, second=3.0),
    "unequal": lambda kind: kind(first=1) == kind(first=2),
    "other": lambda kind: kind(first=1) == (1, 2.0, [1], 7),
    "hash": lambda kind: len({hash(one) for one in [kind(first=1), kind(first=1, third=[4])]}),  # both alive
    "replace": lambda kind: dataclasses.asdict(dataclasses.replace(kind(first=1), first=4)),
    "assign": lambda kind: setattr(kind(first=1), "first", 2),
    # a frozen subclass with slots of the standard library refuses with a TypeError on super() in 3.11
    "assign another": lambda kind: outcome(lambda: setattr(kind(first=1), "sixth", 2)) is None,
    "delete": lambda kind: delattr(kind(first=1), "first"),
    "copy": lambda kind: dataclasses.asdict(copy.deepcopy(kind(first=1))),
    "signature": lambda kind: str(inspect.signature(kind)),
    "fields": lambda kind: [(f.name, f.type, f.default, f.kw_only, dict(f.metadata)) for f in dataclasses.fields(kind)],
    "match": lambda kind: kind.__match_args__,
    "shared": lambda kind: kind.shared,
    "is one": lambda kind: dataclasses.is_dataclass(kind) and isinstance(kind(first=1), kind),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("form", FORMS, ids=lambda form: " ".join(form) or "plain")
@pytest.mark.parametrize("which", [0, 1], ids=["class", "subclass"])
def test_behaves_as_in_the_standard_library(form, call, which):
    usual, made = (pair[which] for pair in classes(form))
    for _ in range(2):  # at the first use and later
        assert outcome(lambda: CALLS[call](made)) == outcome(lambda: CALLS[call](usual))


@records.dataclass(frozen=True, slots=True)
class Kept:
    """Pickled by its name."""

    value: int
    others: tuple = ()


def test_frozen_instances_without_dictionary_are_pickled():
    assert pickle.loads(pickle.dumps(Kept(3, (1,)))) == Kept(3, (1,))  # noqa: S301


def test_methods_of_the_class_itself_stay():
    @records.dataclass(frozen=True)
    class Own:
        value: int

        def __repr__(self):
            return "own"

        def __eq__(self, other):
            return True

        def __hash__(self):
            return 1

    assert (repr(Own(1)), Own(1) == Own(2), hash(Own(5))) == ("own", True, 1)
    with pytest.raises(TypeError, match="defines how its attributes are set"):
        records.dataclass(frozen=True)(type("Bad", (), {"__setattr__": None}))


def test_nothing_is_made_before_its_use():
    @records.dataclass(frozen=True)
    class Unused:
        value: int

    assert {type(vars(Unused)[name]) for name in ("__init__", "__repr__", "__eq__", "__hash__")} == {records._Pending}
    assert Unused(1).value == 1
    assert inspect.isfunction(vars(Unused)["__init__"])
    assert isinstance(vars(Unused)["__eq__"], records._Pending)
