"""How to reach a server: options, the environment, kagzi.toml, defaults, in this order."""

from __future__ import annotations

import difflib
import ipaddress
import os
import socket
import stat
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc

from ._convert import printable
from .errors import ConfigError

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
    def loopback(self) -> bool:
        """Whether traffic to every address stays on this machine."""
        return all(a.startswith("unix:") or _local(a.rpartition(":")[0]) for a in self.addresses)

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
            if self.api_key and not self.loopback:
                raise ConfigError(f"an API key is not sent to {self.address!r} without encryption: turn on TLS (tls = "
                                  "true in the profile, KAGZI_TLS=true, or tls in the options), or connect to a "
                                  "loopback address")
            return None
        if bool(self.tls.client_cert) != bool(self.tls.client_key):
            raise ConfigError("tls-client-cert and tls-client-key go together: set both or neither")
        return grpc.ssl_channel_credentials(_read("tls-ca", self.tls.ca), _read("tls-client-key", self.tls.client_key),
                                            _read("tls-client-cert", self.tls.client_cert))


def _local(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
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
    """Returns the effective settings. Empty arguments are open; profile ``off`` ignores environment and file.

    Raises:
        ConfigError: A setting is invalid; the text names it and where it is.
    """
    given: dict[str, str] = {k: v for k, v in (("address", address), ("namespace", namespace), ("api-key", api_key))
                             if v}
    if isinstance(tls, TLS):
        given |= {k: v for k, v in (("tls", "true"), ("tls-ca", tls.ca), ("tls-client-cert", tls.client_cert),
                                    ("tls-client-key", tls.client_key), ("tls-server-name", tls.server_name)) if v}
    elif tls is not None:
        given["tls"] = str(tls).lower()
    settings = given
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
