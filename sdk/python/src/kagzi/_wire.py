"""gRPC connections and the methods of the services."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

import grpc

from ._contract import METHODS
from ._profile import Endpoint
from .errors import Unavailable, call_error

MAX_REQUEST = 8 << 20
MAX_MESSAGE = MAX_REQUEST + (64 << 10)
_REPEATS, _REPEAT_FOR = 6, 4.0


def options(endpoint: Endpoint, *, soon: bool) -> list[tuple[str, Any]]:
    """Returns the options of a channel. soon means to reconnect within a second, for people who wait."""
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


def dial(endpoint: Endpoint) -> grpc.Channel:
    """Opens a channel for calls of clients; the first call connects."""
    credentials = endpoint.credentials()
    if credentials is None:
        return grpc.insecure_channel(endpoint.target(), options(endpoint, soon=True))
    return grpc.secure_channel(endpoint.target(), credentials, options(endpoint, soon=True))


class Rpc:
    """Calls the unary methods of a channel by name, blocking or for an event loop.

    A call that the server refuses as UNAVAILABLE, or that finds no server, is repeated for about four seconds. Each
    method that is called here only reads, or names an id, so a repeat has no second effect.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._channel = dial(endpoint)
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
        """Makes a call and blocks until it is answered; a list is a stream of requests.

        Raises:
            ServerError: The server refuses it or cannot be reached.
        """
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
        tries, since, loop = 0, time.monotonic(), asyncio.get_running_loop()
        while True:
            answered: asyncio.Future[None] = loop.create_future()
            try:
                call = self._method(name).future(_sent(request), timeout=timeout, metadata=[*self._metadata, *more])
                call.add_done_callback(lambda _, at=answered: _tell(loop, at))
                try:
                    await answered
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


def _tell(loop: asyncio.AbstractEventLoop, at: asyncio.Future[None]) -> None:
    def done() -> None:
        if not at.done():
            at.set_result(None)

    try:
        loop.call_soon_threadsafe(done)
    except RuntimeError:
        pass  # the loop is closed: nobody waits
