"""Codecs transform payloads between their JSON and what the server stores, for encryption or compression."""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from . import _data
from ._convert import check_name
from .errors import ConfigError, DecodeError, KagziError
from .v1 import common_pb2 as common

MAX_PAYLOAD = 2 << 20
"""Most bytes of an input, an output or a step result, with the codec's overhead and metadata."""

_JSON = {"content-type": "application/json"}
_JSON_SIZE = sum(len(k) + len(v) for k, v in _JSON.items())
SIGNALS_START = "signals-start"


@dataclass(frozen=True)
class Payload:
    """Encoded user data."""

    data: bytes
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class PayloadInfo:
    """Describes a payload and its owner, with the same values when it is encoded and decoded.

    Attributes:
        kind: ``input``, ``output``, ``step`` or ``signal``.
        workflow_type: Of inputs.
        external_id: Of inputs; empty for runs of schedules.
        run_id: Of outputs.
        start: Of step results and signals: a digest of the run's type, external id and stored input.
        step: Name of the step or signal.
        signals: For the SDK: the start of the signals that a run with this input receives.
    """

    kind: str
    workflow_type: str = ""
    external_id: str = ""
    run_id: str = ""
    start: str = ""
    step: str = ""
    signals: str = ""


class Codec(Protocol):
    """Transforms payloads. Both methods may be called by several threads at once.

    An exception in decode fails the run like an error of its code; a NonRetryable fails it for good.
    """

    def encode(self, p: Payload, info: PayloadInfo) -> Payload:
        """Returns what the server stores."""
        ...

    def decode(self, p: Payload, info: PayloadInfo) -> Payload:
        """Returns what encode got. It gets payloads that were stored without a codec, too."""
        ...


def input_info(workflow_type: str, external_id: str, signals: str = "") -> PayloadInfo:
    """Describes the input of a run."""
    return PayloadInfo("input", workflow_type, "" if external_id.startswith("schedule:") else external_id,
                       signals=signals)


def start_digest(workflow_type: str, external_id: str, data: bytes) -> str:
    """Computes PayloadInfo.start."""
    h = hashlib.sha256()
    for part in (workflow_type.encode(), external_id.encode()):
        h.update(struct.pack(">I", len(part)) + part)
    h.update(data)
    return h.hexdigest()


def start_of_signals(own: str, payload: common.Payload) -> str:
    """Returns the start of the signals to a run, which may be that of the first run of a chain."""
    return payload.metadata[SIGNALS_START] if SIGNALS_START in payload.metadata else own


def pack(codec: Codec | None, data: bytes, info: PayloadInfo) -> common.Payload:
    """Makes a payload from JSON, or raises DecodeError if it is larger than MAX_PAYLOAD."""
    metadata: Mapping[str, str] = _JSON
    if codec is not None:
        if info.signals:
            metadata = {**_JSON, SIGNALS_START: info.signals}
            info = replace(info, signals="")
        coded = codec.encode(Payload(data, dict(metadata)), info)
        data, metadata = coded.data, coded.metadata
    size = len(data) + (_JSON_SIZE if metadata is _JSON else
                        sum(len(k.encode()) + len(v.encode()) for k, v in metadata.items()))
    if size > MAX_PAYLOAD:
        raise DecodeError(f"{size} bytes are more than the limit of {MAX_PAYLOAD} (2 MiB)")
    p = common.Payload(data=data)
    for name, text in metadata.items():  # faster than metadata=, which goes through code in Python
        p.metadata[name] = text
    return p


def encode(codec: Codec | None, value: object, info: PayloadInfo) -> common.Payload:
    """Makes a payload from a value."""
    return pack(codec, _data.encode(value), info)


def unpack(codec: Codec | None, p: common.Payload, info: PayloadInfo) -> bytes:
    """Returns the JSON of a payload."""
    if codec is None:
        return p.data
    return codec.decode(Payload(p.data, dict(p.metadata)), info).data


def decode(codec: Codec | None, p: common.Payload, info: PayloadInfo, annotation: Any = Any) -> Any:
    """Returns the value of a payload as the type of an annotation, or raises DecodeError if it does not fit."""
    data = unpack(codec, p, info)
    try:
        return _data.decode(data, annotation)
    except DecodeError:
        encoding = p.metadata["encoding"] if "encoding" in p.metadata else ""
        if codec is None and encoding:
            raise DecodeError(f"cannot be read as {_data.type_name(annotation)}: it is encoded as {encoding!r}, "
                              "and no codec is set here") from None
        raise


_ENCRYPTED, _CIPHER = "binary/encrypted", "XAES-256-GCM"


class AESCodec:
    """Encrypts payloads with XAES-256-GCM; needs the package ``cryptography`` (``pip install 'kagzi[crypto]'``).

    Each payload is bound to its PayloadInfo: it cannot be decrypted as the result of another step or run. Names,
    ids, tags, notes, reasons, times, sizes and the texts of errors are not encrypted.

    Args:
        keys: Keys of 32 random bytes by key id, which is not secret.
        current: Id of the key that encrypts; all keys decrypt.
        context: Authenticated with each payload, such as the name of the environment.
        allow_plain: Accept payloads that are not encrypted.

    Raises:
        ConfigError: A key or id is invalid, or the package is missing.
    """

    def __init__(self, keys: Mapping[str, bytes], current: str, *, context: str = "",
                 allow_plain: bool = False) -> None:
        try:
            from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
        except ImportError as e:
            raise ConfigError("AESCodec needs the package cryptography: pip install 'kagzi[crypto]'") from e
        for name, key in keys.items():
            check_name("key", name)
            if len(key) != 32:
                raise ConfigError(f"AESCodec: key {name} has {len(key)} bytes, want 32")
        if current not in keys:
            raise ConfigError(f"AESCodec: current is {current!r}, want the id of one of the keys")
        self._keys, self._current, self._context, self._plain = dict(keys), current, context, allow_plain
        self._cipher: Any = lambda key: Cipher(algorithms.AES(key), modes.ECB())

    def _block(self, key: bytes, data: bytes) -> bytes:
        return bytes(self._cipher(key).encryptor().update(data))

    def _gcm(self, key: bytes, half: bytes) -> Any:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        gcm: Any = AESGCM
        k1 = int.from_bytes(self._block(key, bytes(16)), "big") << 1
        if k1 >> 128:
            k1 = (k1 & (1 << 128) - 1) ^ 0x87
        made = b"".join(
            self._block(key, (int.from_bytes(bytes((0, n, 0x58, 0)) + half, "big") ^ k1).to_bytes(16, "big"))
            for n in (1, 2))
        return gcm(made)

    def encode(self, p: Payload, info: PayloadInfo) -> Payload:
        """Encrypts the data; metadata stays readable and is authenticated."""
        metadata = dict(p.metadata)
        if metadata.get("encoding"):
            metadata["encrypted-encoding"] = metadata["encoding"]
        metadata |= {"encoding": _ENCRYPTED, "encryption": _CIPHER, "encryption-key": self._current}
        nonce = os.urandom(24)
        sealed = self._gcm(self._keys[self._current], nonce[:12]).encrypt(nonce[12:], p.data,
                                                                          self._binding(metadata, info))
        return Payload(nonce + sealed, metadata)

    def decode(self, p: Payload, info: PayloadInfo) -> Payload:
        """Returns only what was encrypted under the same info.

        Raises:
            DecodeError: It was not, for good.
            KagziError: The key is not known here; another worker may have it.
        """
        from cryptography.exceptions import InvalidTag

        if p.metadata.get("encoding") != _ENCRYPTED:
            if self._plain:
                return p
            raise DecodeError("the payload is not encrypted: it was stored without the codec "
                              "(allow_plain accepts such payloads)")
        key = self._keys.get(p.metadata.get("encryption-key", ""))
        if key is None:
            raise KagziError(f"the payload is encrypted by key {p.metadata.get('encryption-key')!r}, "
                             "which the codec does not have")
        try:
            if len(p.data) < 40:
                raise InvalidTag
            data = self._gcm(key, p.data[:12]).decrypt(p.data[12:24], p.data[24:], self._binding(p.metadata, info))
        except InvalidTag:
            raise DecodeError("the payload cannot be decrypted: it was encrypted for another run, step or context, "
                              "with a different key of this id, or was changed") from None
        metadata = {k: v for k, v in p.metadata.items()
                    if k not in ("encoding", "encryption", "encryption-key", "encrypted-encoding")}
        if "encrypted-encoding" in p.metadata:
            metadata["encoding"] = p.metadata["encrypted-encoding"]
        return Payload(data, metadata)

    def _binding(self, metadata: Mapping[str, str], info: PayloadInfo) -> bytes:
        parts = ["kagzi codec 1", self._context, info.kind, info.workflow_type, info.external_id, info.run_id,
                 info.start, info.step]
        for name in sorted(metadata, key=str.encode):
            parts += [name, metadata[name]]
        return b"".join(struct.pack(">I", len(b)) + b for b in (part.encode() for part in parts))
