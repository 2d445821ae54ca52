"""JSON of user data, and its conversion to the types of annotations."""

from __future__ import annotations

import base64
import dataclasses
import datetime as dt
import decimal
import enum
import json
import sys
import types
import typing
import uuid
from collections import abc
from collections.abc import Callable
from typing import Any, Literal, Union, cast

from .errors import DecodeError

Reader = Callable[[Any, str], Any]
"""Converts a JSON value to a type. The text is the path of the value, for errors."""

_PLAIN = (str, bool, int, type(None))


def encode(value: object) -> bytes:
    """Returns the JSON of a value, or raises DecodeError if something in it has no JSON form."""
    try:
        return _ENCODER.encode(value).encode()
    except (TypeError, ValueError, RecursionError) as e:
        raise DecodeError(f"a {type(value).__name__} has no JSON form: {e}") from e


def _default(v: Any) -> Any:
    if dataclasses.is_dataclass(v) and not isinstance(v, type):
        return {f.name: getattr(v, f.name) for f in dataclasses.fields(v)}
    if isinstance(v, enum.Enum):
        return v.value
    if isinstance(v, dt.datetime | dt.date | dt.time):
        return v.isoformat()
    if isinstance(v, dt.timedelta):
        return v.total_seconds()
    if isinstance(v, uuid.UUID | decimal.Decimal):
        return str(v)
    if isinstance(v, bytes | bytearray):
        return base64.b64encode(v).decode()
    if isinstance(v, abc.Mapping):
        return dict(v)
    if isinstance(v, abc.Set | abc.Sequence):
        return list(v)
    dump = getattr(v, "model_dump", None)
    if dump is not None:
        return dump(mode="json", by_alias=True)
    if hasattr(v, "__struct_fields__"):
        import msgspec

        return msgspec.to_builtins(v)
    raise TypeError(f"{type(v).__name__} is not JSON serializable")


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


_DECODER = json.JSONDecoder(parse_constant=_no_constant)
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=_default)


def decode(data: bytes, annotation: Any = Any) -> Any:
    """Returns the value of a JSON text as the type of an annotation, or raises DecodeError. No data is null."""
    if not data.strip():
        return reader(annotation)(None, "")
    try:
        value = _DECODER.decode(data.decode("utf-8"))
    except (ValueError, RecursionError) as e:
        raise DecodeError(f"cannot be read as {type_name(annotation)}: it is no JSON: {e}") from e
    return value if annotation is Any else reader(annotation)(value, "")


def read_back(value: Any, data: bytes, annotation: Any) -> Any:
    """Returns a value as a replay will read it from its JSON."""
    if type(value) in _PLAIN and (annotation is Any or annotation is type(value)):
        return value
    return decode(data, annotation)


_readers: dict[Any, Reader] = {}


def reader(annotation: Any) -> Reader:
    """Returns the function that converts JSON values to a type; it is made once for each type."""
    try:
        made = _readers.get(annotation)
        if made is None:
            made = _readers[annotation] = _make(annotation)
        return made
    except TypeError:  # not hashable
        return _make(annotation)


def type_name(annotation: Any) -> str:
    """Returns the name of a type for messages."""
    return annotation.__name__ if isinstance(annotation, type) else str(annotation).replace("typing.", "")


def _misfit(path: str, want: str, value: Any) -> DecodeError:
    kind = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "null"}.get(
        type(value), "a number")
    where = f"{path}: " if path else ""
    return DecodeError(f"{where}want {want}, got {kind}", path)


def _within(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _make(t: Any) -> Reader:
    if t is Any or t is object or isinstance(t, typing.TypeVar):
        return lambda v, _: v
    if isinstance(t, str):
        raise DecodeError(f"the annotation {t!r} cannot be resolved: define the type at module level")
    simple = _SIMPLE.get(t)
    if simple is not None:
        return simple
    origin = typing.get_origin(t)
    if origin is not None:
        return _generic(t, origin, typing.get_args(t))
    if isinstance(t, typing.NewType):
        return reader(t.__supertype__)
    if not isinstance(t, type):
        return lambda v, _: v
    if hasattr(t, "model_validate"):
        return _pydantic(t)
    if hasattr(t, "__struct_fields__"):
        return _msgspec(t)
    if dataclasses.is_dataclass(t):
        return _dataclass(t)
    if typing.is_typeddict(t):
        return _typed_dict(t)
    if issubclass(t, enum.Enum):
        return lambda v, path: _parsed(t, v, path, f"one of {', '.join(repr(m.value) for m in t)}")
    if issubclass(t, tuple) and hasattr(t, "_fields"):
        hints, named = _hints(t), cast(Any, t)
        return _tuple([hints.get(name, Any) for name in named._fields], f" ({t.__name__})", named._make)
    if t in (list, abc.Sequence):
        return reader(list[Any])
    if t in (tuple, set, frozenset):
        return lambda v, path: t(reader(list[Any])(v, path))
    if t in (dict, abc.Mapping):
        return reader(dict[str, Any])
    raise DecodeError(f"a {type_name(t)} cannot be made from JSON: use a dataclass, a TypedDict or a model")


def _generic(t: Any, origin: Any, args: tuple[Any, ...]) -> Reader:
    if origin in (Union, types.UnionType):
        return _union(t, args)
    if origin is Literal:
        return lambda v, path: v if v in args and type(v) in map(type, args) else _raise(
            _misfit(path, f"one of {', '.join(map(repr, args))}", v))
    if origin in (typing.Annotated, typing.Required, typing.NotRequired, getattr(typing, "ReadOnly", None)):
        return reader(args[0])
    if origin is tuple and not (len(args) == 2 and args[1] is Ellipsis):
        return _tuple([a for a in args if a != ()], "", tuple)
    if isinstance(origin, type) and issubclass(origin, abc.Mapping):
        return _dict(*args)
    if isinstance(origin, type) and issubclass(origin, abc.Iterable):
        item = reader(args[0])

        def read(v: Any, path: str) -> Any:
            if not isinstance(v, list):
                raise _misfit(path, "a list", v)
            made = [item(x, f"{path}[{i}]") for i, x in enumerate(v)]
            return made if origin in (list, abc.Sequence, abc.Iterable, abc.Collection, abc.MutableSequence) else (
                origin if origin in (tuple, set, frozenset) else frozenset)(made)

        return read
    return reader(origin)


def _union(t: Any, args: tuple[Any, ...]) -> Reader:
    options = [reader(a) for a in args if a is not type(None)]

    def read(v: Any, path: str) -> Any:
        if v is None and type(None) in args:
            return None
        errors = []
        for option in options:
            try:
                return option(v, path)
            except DecodeError as e:
                errors.append(e)
        if len(errors) == 1:
            raise errors[0]
        deepest = max(errors, key=lambda e: len(e.path))
        raise deepest if deepest.path != path else _misfit(path, type_name(t), v)

    return read


def _tuple(types: list[Any], what: str, build: Callable[..., Any]) -> Reader:
    """Returns the reader of a list that has an item of each type."""
    items = [reader(t) for t in types]

    def read(v: Any, path: str) -> Any:
        if not isinstance(v, list) or len(v) != len(items):
            raise _misfit(path, f"a list of {len(items)}{what}", v)
        return build(item(x, f"{path}[{i}]") for i, (item, x) in enumerate(zip(items, v, strict=True)))

    return read


def _dict(key: Any = Any, value: Any = Any) -> Reader:
    keys, values = reader(key), reader(value)

    def read(v: Any, path: str) -> Any:
        if not isinstance(v, dict):
            raise _misfit(path, "an object", v)
        if key is int:
            return {_parsed(int, k, path, "whole numbers as keys"): values(x, _within(path, k)) for k, x in v.items()}
        return {keys(k, path): values(x, _within(path, k)) for k, x in v.items()}

    return read


def _hints(t: Any) -> dict[str, Any]:
    try:
        return typing.get_type_hints(t, include_extras=True)
    except (NameError, TypeError) as e:
        raise DecodeError(f"the annotations of {type_name(t)} cannot be resolved: {e}") from e


def _fields(t: type, fields: dict[str, tuple[Any, bool]], build: Callable[[dict[str, Any]], Any]) -> Reader:
    """Returns the reader of an object with named fields, each with its type and whether it is required."""
    late: dict[str, tuple[Reader, bool]] = {}  # made at first use, because types may be recursive

    def read(v: Any, path: str) -> Any:
        if not isinstance(v, dict):
            raise _misfit(path, f"an object ({t.__name__})", v)
        if not late and fields:
            late.update({name: (reader(hint), required) for name, (hint, required) in fields.items()})
        made = {}
        for name, (item, required) in late.items():
            if name in v:
                made[name] = item(v[name], _within(path, name))
            elif required:
                at = _within(path, name)
                raise DecodeError(f"{at}: it is missing", at)
        return build(made)

    return read


def _dataclass(t: Any) -> Reader:
    hints = _hints(t)
    fields = {f.name: (hints[f.name], f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING)
              for f in dataclasses.fields(t) if f.init}
    return _fields(t, fields, lambda made: t(**made))


def _typed_dict(t: Any) -> Reader:
    hints = _hints(t)
    # __required_keys__ says nothing of annotations that are texts, as with `from __future__ import annotations`.
    said = {typing.Required: True, typing.NotRequired: False}
    fields = {name: (hint, said.get(typing.get_origin(hint), name in t.__required_keys__))
              for name, hint in hints.items()}
    return _fields(t, fields, lambda made: made)


def _pydantic(t: Any) -> Reader:
    import pydantic

    def read(v: Any, path: str) -> Any:
        try:
            return t.model_validate(v)
        except pydantic.ValidationError as e:
            first = e.errors(include_url=False, include_input=False)[0]
            at = path
            for part in first["loc"]:
                at = f"{at}[{part}]" if isinstance(part, int) else _within(at, part)
            raise DecodeError(f"{at}: {first['msg']}" if at else first["msg"], at) from None

    return read


def _msgspec(t: Any) -> Reader:
    import msgspec

    def read(v: Any, path: str) -> Any:
        try:
            return msgspec.convert(v, t)
        except msgspec.ValidationError as e:
            text, _, at = str(e).partition(" - at `$")
            at = at.removesuffix("`")
            at = f"{path}{at}" if path else at.removeprefix(".")
            raise DecodeError(f"{at}: {text}" if at else text, at) from None

    return read


def _raise(e: Exception) -> Any:
    raise e


def _parsed(make: Callable[[Any], Any], v: Any, path: str, want: str) -> Any:
    try:
        return make(v)
    except (ValueError, TypeError, ArithmeticError):
        raise _misfit(path, want, v) from None


def _number(v: Any, path: str) -> Any:
    if isinstance(v, bool) or not isinstance(v, int | float):
        raise _misfit(path, "a number", v)
    return float(v)


def _whole(v: Any, path: str) -> Any:
    if type(v) is int:
        return v
    if isinstance(v, float) and v.is_integer():
        return int(v)
    raise _misfit(path, "a whole number", v)


def _exactly(t: type, want: str) -> Reader:
    return lambda v, path: v if type(v) is t else _raise(_misfit(path, want, v))


def _text(make: Callable[[str], Any], want: str) -> Reader:
    return lambda v, path: _parsed(make, v, path, want) if isinstance(v, str) else _raise(_misfit(path, want, v))


_SIMPLE: dict[Any, Reader] = {
    None: _exactly(type(None), "null"), type(None): _exactly(type(None), "null"), int: _whole, float: _number,
    str: _exactly(str, "a text"), bool: _exactly(bool, "true or false"),
    bytes: _text(lambda s: base64.b64decode(s, validate=True), "base64"),
    dt.datetime: _text(dt.datetime.fromisoformat, "a time such as 2026-11-20T12:00:00+00:00"),
    dt.date: _text(dt.date.fromisoformat, "a date"), dt.time: _text(dt.time.fromisoformat, "a time of day"),
    dt.timedelta: lambda v, path: dt.timedelta(seconds=_number(v, path)),
    uuid.UUID: _text(uuid.UUID, "a UUID"),
    decimal.Decimal: lambda v, path: _parsed(decimal.Decimal, str(v), path, "a decimal number"),
}


def signature(fn: Callable[..., Any]) -> dict[str, Any]:
    """Returns the resolved annotations of a function; those that cannot be resolved are left out."""
    try:
        return typing.get_type_hints(fn, include_extras=True)
    except Exception:
        module = sys.modules.get(getattr(fn, "__module__", ""), None)
        found = {}
        for name, hint in getattr(fn, "__annotations__", {}).items():
            try:
                found[name] = eval(hint, vars(module)) if isinstance(hint, str) and module else hint
            except Exception:
                found[name] = hint
        return found
