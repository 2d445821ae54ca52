"""Threads for step bodies. Unlike those of an executor they do not keep the process from ending."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any


class Pool:
    """Runs functions in at most so many daemon threads, which are made when they are needed."""

    def __init__(self, limit: int) -> None:
        self._limit, self._threads, self._idle = limit, 0, 0
        self._lock = threading.Lock()
        self._work: SimpleQueue[tuple[Callable[..., Any], tuple[Any, ...]] | None] = SimpleQueue()

    def submit(self, fn: Callable[..., Any], *args: Any) -> None:
        """Runs a function, which must not raise, as soon as a thread is free."""
        with self._lock:
            self._idle -= 1
            grow = self._idle < 0 and self._threads < self._limit
            if grow:
                self._threads += 1
                self._idle += 1
            number = self._threads
        self._work.put((fn, args))
        if grow:
            threading.Thread(target=self._serve, name=f"kagzi-step-{number}", daemon=True).start()

    def close(self) -> None:
        """Lets the threads end when they are free."""
        for _ in range(self._threads):
            self._work.put(None)

    def _serve(self) -> None:
        while True:
            work = self._work.get()
            if work is None:
                return
            work[0](*work[1])
            with self._lock:
                self._idle += 1
