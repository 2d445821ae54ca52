"""How to reach a server: settings, connections and calls.

Settings come from options, the environment, kagzi.toml and defaults, in this order.
"""

from __future__ import annotations

import asyncio
import difflib
import ipaddress
import os
import random
import socket
import stat
import sys
import time
import tomllib
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from concurrent import futures
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc

from ._contract import METHODS
from ._convert import printable
from .errors import ConfigError, Unavailable, call_error

MAX_REQUEST = 8 << 20
MAX_MESSAGE = MAX_REQUEST + (64 << 10)
_REPEATS, _REPEAT_FOR = 6, 4.0
DEFAULT_ADDRESS, DEFAULT_NAMESPACE, OFF = "127.0.0.1:50051", "default", "off"

_KEYS = ("address", "namespace", "api-key", "api-key-file", "tls", "tls-ca", "tls-client-cert", "tls-client-key",
         "tls-server-name")
_FILES = {"api-key-file", "tls-ca", "tls-client-cert", "tls-client-key"}
_PAIRS = {"api-key": "api-key-file", "api-key-file": "api-key", "tls-client-cert": "tls-client-key",
          "tls-client-key": "tls-client-cert"}
_TRUE, _FALSE = ("1", "t", "true"), ("0", "f", "false")


@dataclass(frozen=True)
class TLS:
    """TLS settings of a client or worker.

    Args:
        ca: PEM file of the certificates to trust (those of gRPC).
        client_cert: PEM file of the client's certificate; needs client_key.
        client_key: PEM file of its key.
        server_name: Name that the server's certificate must have (the address's host).
    """

    ca: str = ""
    client_cert: str = ""
    client_key: str = ""
    server_name: str = ""


@dataclass
class Endpoint:
    """A server, the credentials for it, and what an operator should know about them."""

    address: str
    namespace: str
    api_key: str = field(repr=False)
    tls: TLS | None
    warnings: list[str]

    @property
    def addresses(self) -> list[str]:
        """The addresses of the comma-separated list."""
        return [a.strip() for a in self.address.split(",")]

    def target(self) -> str:
        """Returns what gRPC dials. Of several addresses it uses the first that answers."""
        if len(self.addresses) == 1:
            return self.address
        if self.tls is not None and not self.tls.server_name:
            raise ConfigError("several addresses with TLS need tls-server-name, the name in all their certificates")
        found = []
        for a in self.addresses:
            host, _, port = a.rpartition(":")
            try:
                found.append(f"{socket.getaddrinfo(host, None, socket.AF_INET)[0][4][0]}:{port}")
            except OSError as e:
                raise ConfigError(f"address {a!r}: {e}") from e
        return "ipv4:" + ",".join(found)

    def credentials(self) -> grpc.ChannelCredentials | None:
        """Returns the credentials of the connection; None without TLS."""
        if self.tls is None:
            if self.api_key and not all(map(_stays_here, self.addresses)):
                raise ConfigError(f"an API key is not sent to {self.address!r} without encryption: turn on TLS (tls = "
                                  "true in the profile, KAGZI_TLS=true, or tls in the options), or connect to a "
                                  "loopback address")
            return None
        if bool(self.tls.client_cert) != bool(self.tls.client_key):
            raise ConfigError("tls-client-cert and tls-client-key go together: set both or neither")
        return grpc.ssl_channel_credentials(_read("tls-ca", self.tls.ca), _read("tls-client-key", self.tls.client_key),
                                            _read("tls-client-cert", self.tls.client_cert))


def _stays_here(address: str) -> bool:
    host = address.rpartition(":")[0]
    try:
        return address.startswith("unix:") or host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _read(what: str, path: str) -> bytes | None:
    if not path:
        return None
    try:
        return Path(path).read_bytes()
    except OSError as e:
        raise ConfigError(f"{what}: {e}") from e


def resolve(profile: str = "", address: str = "", namespace: str = "", api_key: str = "",
            tls: TLS | bool | None = None) -> Endpoint:
    """Returns the effective settings. Empty arguments are open; profile ``off`` ignores environment and file."""
    given = {"address": address, "namespace": namespace, "api-key": api_key}
    if isinstance(tls, TLS):
        given |= {"tls": "true", "tls-ca": tls.ca, "tls-client-cert": tls.client_cert,
                  "tls-client-key": tls.client_key, "tls-server-name": tls.server_name}
    elif tls is not None:
        given["tls"] = str(tls).lower()
    settings = given = {name: value for name, value in given.items() if value}
    if profile != OFF:
        settings = _over(given, _over(_environment(), _file(profile)))
    key, warnings = _key(settings)
    on = settings.get("tls", "true" if any(k.startswith("tls-") for k in settings) else "false")
    e = Endpoint(
        settings.get("address", DEFAULT_ADDRESS), settings.get("namespace", DEFAULT_NAMESPACE), key,
        TLS(settings.get("tls-ca", ""), settings.get("tls-client-cert", ""), settings.get("tls-client-key", ""),
            settings.get("tls-server-name", "")) if on.lower() in _TRUE else None, warnings)
    for a in e.addresses:
        host, _, port = a.rpartition(":")
        if not a.startswith("unix:") and not (host and port.isdigit()):
            raise ConfigError(f"address {a!r}: want host:port, such as {DEFAULT_ADDRESS}")
    return e


def _environment() -> dict[str, str]:
    found = {}
    for key in _KEYS:
        name = "KAGZI_" + key.upper().replace("-", "_")
        value = os.environ.get(name, "")
        if key == "tls" and value and value.lower() not in _TRUE + _FALSE:
            raise ConfigError(f"{name}={value!r}: want true or false")
        if value:
            found[key] = value
    return found


def _over(upper: Mapping[str, str], lower: Mapping[str, str]) -> dict[str, str]:
    """Merges settings; a source that sets one of a pair, or something only TLS needs, settles both."""
    merged = dict(upper)
    for key, value in lower.items():
        settled = _PAIRS.get(key) in upper or (key == "tls" and any(k.startswith("tls-") for k in upper))
        if key not in upper and not settled:
            merged[key] = value
    return merged


def _default_file() -> Path | None:
    if sys.platform == "win32":
        base = os.environ.get("AppData", "")
    elif sys.platform == "darwin":
        base = str(Path.home() / "Library" / "Application Support")
    else:
        base = os.environ.get("XDG_CONFIG_HOME", "") or str(Path.home() / ".config")
    return Path(base) / "kagzi" / "kagzi.toml" if base else None


def _file(profile: str) -> dict[str, str]:
    name, config = profile or os.environ.get("KAGZI_PROFILE", ""), os.environ.get("KAGZI_CONFIG", "")
    path = Path(config) if config else _default_file()
    if name == OFF:
        return {}
    if config == OFF or path is None or (not config and not path.exists()):
        if name:
            where = f" at {path}" if path and config != OFF else ""
            raise ConfigError(f"no profile {name!r}: no settings file{where}")
        return {}
    try:
        content = tomllib.loads(path.read_text("utf-8-sig"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as e:
        raise ConfigError(f"{printable(str(path))}: {printable(str(e))}") from e
    for table in content:
        if table not in ("server", "client", "profile"):
            raise ConfigError(f"{path}: unknown table {table!r}{_instead(table, ('server', 'client', 'profile'))}")
    client, profiles = content.get("client", {}), content.get("profile", {})
    if not isinstance(client, dict) or not isinstance(profiles, dict):
        raise ConfigError(f"{path}: settings of clients belong in tables [client] and [profile.NAME]")
    name = name or client.get("profile", "")
    base = _settings(path, "client", {k: v for k, v in client.items() if k != "profile"})
    if not name:
        return base
    if name not in profiles or not isinstance(profiles[name], dict):
        known = ", ".join(repr(p) for p in sorted(profiles)) or "no table [profile.NAME]"
        raise ConfigError(f"no profile {name!r} in {printable(str(path))}, which has {known}")
    return _over(_settings(path, f"profile.{name}", profiles[name]), base)


def _settings(path: Path, table: str, values: dict[str, Any]) -> dict[str, str]:
    found = {}
    for key, value in values.items():
        if key not in _KEYS:
            raise ConfigError(f"{path}: unknown setting {key!r} in [{table}]{_instead(key, _KEYS)}")
        if not isinstance(value, bool if key == "tls" else str):
            raise ConfigError(f"{path}: {key} in [{table}]: want "
                              f"{'true or false' if key == 'tls' else 'a text in quotes'}")
        text = str(value).lower() if key == "tls" else str(value)
        found[key] = str(path.absolute().parent / text) if key in _FILES and text else text
    return found


def _instead(name: str, known: tuple[str, ...]) -> str:
    near = difflib.get_close_matches(name, known, 1)
    return f"; did you mean {near[0]!r}?" if near else ""


def _key(settings: Mapping[str, str]) -> tuple[str, list[str]]:
    key, path = settings.get("api-key", ""), settings.get("api-key-file", "")
    if key and path:
        raise ConfigError("api-key and api-key-file are both set: set one of them")
    if path:
        try:
            with open(path, encoding="utf-8-sig", errors="replace") as f:
                key = f.read(4096).strip()
        except OSError as e:
            raise ConfigError(f"api-key-file: {e}") from e
    if (key or path) and not (0 < len(key) <= 1024 and all(" " < c <= "~" for c in key)):
        raise ConfigError("API key: want one word that begins with kz_, as `kagzi key create` prints it")
    secrets = [p for p in (path, settings.get("tls-client-key", "")) if p and os.name != "nt"]
    return key, [f"{printable(p)} is a secret, and every user of this machine can read it: run chmod 600"
                 for p in secrets if os.path.isfile(p) and os.stat(p).st_mode & stat.S_IROTH]


def _options(endpoint: Endpoint, soon: bool) -> list[tuple[str, Any]]:
    made: list[tuple[str, Any]] = [
        ("grpc.max_receive_message_length", MAX_MESSAGE), ("grpc.max_send_message_length", MAX_REQUEST),
        ("grpc.keepalive_time_ms", 30_000), ("grpc.keepalive_timeout_ms", 10_000),
        ("grpc.keepalive_permit_without_calls", 1), ("grpc.http2.max_pings_without_data", 0),
        ("grpc.initial_reconnect_backoff_ms", 100 if soon else 500),
        ("grpc.min_reconnect_backoff_ms", 100 if soon else 500),
        ("grpc.max_reconnect_backoff_ms", 750 if soon else 5_000),
        ("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0),
    ]
    if endpoint.tls is not None and endpoint.tls.server_name:
        made.append(("grpc.ssl_target_name_override", endpoint.tls.server_name))
    return made


def metadata(endpoint: Endpoint) -> list[tuple[str, str]]:
    """Returns what is sent with each call: the API key."""
    return [("authorization", f"Bearer {endpoint.api_key}")] if endpoint.api_key else []


def dial(grpc_: Any, endpoint: Endpoint, *, soon: bool) -> Any:
    """Opens a channel of grpc or grpc.aio, which the first call connects.

    soon means to reconnect within a second, for people who wait.
    """
    credentials = endpoint.credentials()
    if credentials is None:
        return grpc_.insecure_channel(endpoint.target(), _options(endpoint, soon))
    return grpc_.secure_channel(endpoint.target(), credentials, _options(endpoint, soon))


class Rpc:
    """Calls the unary methods of a channel by name, blocking or for an event loop.

    A call that the server refuses as UNAVAILABLE, or that finds no server, is repeated for about four seconds. Each
    method that is called here only reads, or names an id, so a repeat has no second effect.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._channel = dial(grpc, endpoint, soon=True)
        self._metadata = metadata(endpoint)
        self._calls: dict[str, Any] = {}

    def close(self) -> None:
        self._channel.close()

    def _method(self, name: str) -> Any:
        call = self._calls.get(name)
        if call is None:
            kind, path, serialize, parse = METHODS[name]
            make = getattr(self._channel, kind)
            call = self._calls[name] = make(path, request_serializer=serialize, response_deserializer=parse)
        return call

    def call(self, name: str, request: Any, timeout: float | None = None, more: Sequence[tuple[str, str]] = ()) -> Any:
        """Makes a call and blocks until it is answered; a list is a stream of requests."""
        tries, since = 0, time.monotonic()
        while True:
            try:
                return self._method(name)(_sent(request), timeout=timeout, metadata=[*self._metadata, *more])
            except (grpc.RpcError, ValueError) as e:
                pause = self._pause(e, tries, since)
            tries += 1
            time.sleep(pause)

    async def call_async(self, name: str, request: Any, timeout: float | None = None,
                         more: Sequence[tuple[str, str]] = ()) -> Any:
        """Makes a call and awaits its answer, on any event loop."""
        tries, since = 0, time.monotonic()
        while True:
            answered: futures.Future[None] = futures.Future()
            answered.set_running_or_notify_cancel()
            try:
                call = self._method(name).future(_sent(request), timeout=timeout, metadata=[*self._metadata, *more])
                call.add_done_callback(lambda _, at=answered: at.set_result(None))
                try:
                    await asyncio.wrap_future(answered)
                except asyncio.CancelledError:
                    call.cancel()
                    raise
                return call.result()
            except (grpc.RpcError, ValueError) as e:
                pause = self._pause(e, tries, since)
            tries += 1
            await asyncio.sleep(pause)

    def stream(self, name: str, request: Any, more: Sequence[tuple[str, str]]) -> Iterator[Any]:
        """Yields the parts of an answer."""
        try:
            yield from self._method(name)(request, metadata=[*self._metadata, *more])
        except grpc.RpcError as e:
            raise call_error(e) from None

    async def stream_async(self, name: str, request: Any, more: Sequence[tuple[str, str]]) -> AsyncIterator[Any]:
        """Yields the parts of an answer, on any event loop."""
        parts, end = self.stream(name, request, more), object()
        while (part := await asyncio.to_thread(next, parts, end)) is not end:
            yield part

    @staticmethod
    def _pause(e: Exception, tries: int, since: float) -> float:
        """Returns the pause before the call is repeated; raises what the caller gets if it is not."""
        if not isinstance(e, grpc.RpcError):
            raise Unavailable(f"the client is closed: {e}", "UNAVAILABLE") from None
        error = call_error(e)
        if not isinstance(error, Unavailable) or tries >= 40 or time.monotonic() - since > _REPEAT_FOR:
            raise error from None
        return random.uniform(0.001, min(0.05 * 2 ** min(tries, _REPEATS), 0.5))


def _sent(request: Any) -> Any:
    return iter(request) if isinstance(request, list) else request


pause = time.sleep
pause_async = asyncio.sleep
