"""Conversion of durations, times and texts to and from their wire form."""

from __future__ import annotations

import functools
import math
import re
import unicodedata
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

from google.protobuf.duration_pb2 import Duration as WireDuration
from google.protobuf.timestamp_pb2 import Timestamp

Duration: TypeAlias = timedelta | float
"""A length of time: a timedelta, or a number of seconds."""

MAX_ERROR_TEXT, MAX_ERROR_TYPE, MAX_NAME = 16 << 10, 255, 255
MAX_DELAY = 10 * 365 * 24 * 3600.0  # seconds
_CUT = " … [cut]"
_is_name = functools.lru_cache(4096)(re.compile(r"[A-Za-z0-9._:/-]{1,255}\Z").match)


def seconds(d: Duration, what: str) -> float:
    """Returns a duration in seconds, or raises ConfigError, which says what it is."""
    if isinstance(d, timedelta):
        return d.total_seconds()
    if isinstance(d, bool) or not isinstance(d, int | float) or math.isnan(d):
        from .errors import ConfigError

        raise ConfigError(f"{what} is {d!r:.100}: want seconds or a timedelta")
    return float(d)


def whole_ms(d: Duration | None, what: str) -> int:
    """Returns a duration in milliseconds, rounded up: 0 means the default on the wire."""
    if d is None:
        return 0
    s = seconds(d, what)
    if s < 0:
        from .errors import ConfigError

        raise ConfigError(f"{what} is {s} s: want more than 0")
    return -int(-s * 1000 // 1)


def wire_duration(s: float) -> WireDuration:
    """Returns seconds for the wire."""
    nanos = round(s * 1_000_000) * 1000
    return WireDuration(seconds=nanos // 1_000_000_000, nanos=nanos % 1_000_000_000)


def set_time(to: Timestamp, t: float) -> Timestamp:
    """Sets a field to a time in seconds since 1970, in microseconds."""
    micros = round(t * 1_000_000)
    to.seconds, to.nanos = micros // 1_000_000, micros % 1_000_000 * 1000
    return to


def wire_time(t: float) -> Timestamp:
    """Returns a time in seconds since 1970 for the wire."""
    return set_time(Timestamp(), t)


def stamp(t: datetime | None) -> Timestamp | None:
    """Returns a datetime for the wire. One without a zone is local time."""
    return None if t is None else wire_time(t.timestamp())


def unix(t: Timestamp) -> float:
    """Returns a time of the wire in seconds since 1970."""
    return t.seconds + t.nanos / 1e9


def when(t: Timestamp) -> datetime:
    """Returns a time of the wire in UTC."""
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=t.seconds, microseconds=t.nanos // 1000)


def enum_name(enum: Any, number: int, prefix: str) -> str:
    """Returns the name of a value without its prefix; one of a newer server has a word of the prefix and its number."""
    if number not in enum.values():
        return f"{prefix.split('_')[-2]}_{number}"
    return str(enum.Name(number)).removeprefix(prefix)


def clean_text(text: str, limit: int) -> str:
    """Makes text storable: no lone surrogates, no NUL, at most limit bytes, with a mark where it was cut."""
    text = text.replace("\x00", "\ufffd")
    data = text.encode("utf-8", "replace")
    if len(data) <= limit:
        return data.decode("utf-8", "replace")
    return data[:limit - len(_CUT.encode())].decode("utf-8", "ignore") + _CUT


def printable(text: str) -> str:
    """Escapes text so that a terminal prints it as it is, on one line."""
    return "".join(c if c == " " or unicodedata.category(c)[0] not in "CZ" else
                   c.encode("unicode_escape", "backslashreplace").decode("ascii") for c in text)


def check_name(what: str, name: object) -> str:
    """Returns a name of a step or type; raises ConfigError unless it has 1 to 255 bytes of A-Z a-z 0-9 . _ : / -."""
    if isinstance(name, str) and _is_name(name):
        return name
    from .errors import ConfigError

    if not isinstance(name, str):
        raise ConfigError(f"{what} name is {name!r:.100}: want a str")
    if not 0 < len(name.encode("utf-8", "replace")) <= MAX_NAME:
        raise ConfigError(f"{what} name {name[:40]!r} is {len(name.encode('utf-8', 'replace'))} bytes long, "
                          f"want 1 to {MAX_NAME}")
    raise ConfigError(f"{what} name {name!r}: only letters, digits and . _ : / - are allowed")
