"""A class with annotations -> a frozen value with equality, without the 30 ms that `dataclasses` costs a hook."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    from typing_extensions import dataclass_transform

    T = TypeVar("T")

    @dataclass_transform(frozen_default=True)
    def value(cls: type[T], /) -> type[T]: ...

else:

    def value(cls, /):
        """Give *cls* the constructor, equality, hash and repr of its annotated fields, and forbid assignment."""
        names = tuple(cls.__annotations__)
        defaults = {name: cls.__dict__[name] for name in names if name in cls.__dict__}
        known = frozenset(names)

        def __init__(self, *args, **given):
            fields = self.__dict__
            if len(args) == len(names) and not given:  # as rows are read
                fields.update(zip(names, args))  # noqa: B905
                return
            fields.update(defaults)
            fields.update(zip(names, args))  # noqa: B905 - the length is checked below, with a better message
            fields.update(given)
            twice = given.keys() & names[: len(args)] if given and args else ()
            if twice or len(args) > len(names) or len(fields) != len(names) or not known.issuperset(given):
                wrong = sorted(twice or known.symmetric_difference(fields))
                raise TypeError(f"{cls.__name__} does not fit its fields: {wrong or 'too many values'}")

        def __setattr__(_self, name, _=None):
            raise AttributeError(f"{cls.__name__}.{name} cannot be changed; use replace()")

        def __eq__(self, other):
            return self.__dict__ == other.__dict__ if type(other) is cls else NotImplemented

        def __hash__(self):
            # Texts and numbers alone: equal dicts may differ in their order, and 1 equals 1.0.
            held = (self.__dict__[name] for name in names)
            return hash(tuple(each for each in held if isinstance(each, (str, int, float))))

        def __repr__(self):
            return f"{cls.__name__}({', '.join(f'{name}={self.__dict__[name]!r}' for name in names)})"

        for method in (__init__, __setattr__, __eq__, __hash__, __repr__):
            setattr(cls, method.__name__, method)
        cls.__delattr__ = __setattr__
        cls.__match_args__ = names
        return cls


def replace(old: T, /, **changes: Any) -> T:
    """The same value with *changes*."""
    return type(old)(**{**old.__dict__, **changes})


def fields(item: Any, /) -> dict[str, Any]:
    """The fields of a value, by name and in their order, as a new dict."""
    return {name: item.__dict__[name] for name in type(item).__match_args__}
