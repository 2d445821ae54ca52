"""python -m kagzi worker module:workflow — runs a worker; --reload starts it again when a file changes."""

from __future__ import annotations

import argparse
import importlib
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable
from pathlib import Path
from types import FrameType
from typing import Any

from ._define import Workflow
from .errors import ConfigError, KagziError
from .worker import LOG_FORMAT, Worker

_LOOK_EVERY = 0.5  # seconds between two looks at the files


def find(targets: Iterable[str]) -> Worker:
    """Returns the worker that targets name: ``module`` for all workflows in it, or ``module:name`` for one thing."""
    workflows: dict[str, Workflow[Any, Any]] = {}
    for target in targets:
        name, _, attribute = target.partition(":")
        try:
            module = importlib.import_module(name)
        except ModuleNotFoundError as e:
            if e.name != name and not name.startswith(f"{e.name}."):
                raise
            raise ConfigError(f"there is no module {name!r} in this folder or on the path") from None
        if attribute and not hasattr(module, attribute):
            raise ConfigError(f"module {name} has no {attribute!r}")
        them = [getattr(module, attribute)] if attribute else list(vars(module).values())
        for one in them:
            if isinstance(one, Worker):
                return one
            if isinstance(one, Workflow):
                workflows[one.name] = one
            elif attribute:
                raise ConfigError(f"{target} is neither a workflow nor a worker")
    if not workflows:
        raise ConfigError(f"there is no workflow in {', '.join(targets)}: decorate a function with @kagzi.workflow")
    return Worker(*workflows.values())


def _stamp(folder: Path) -> dict[str, float]:
    found = {}
    for at, folders, files in os.walk(folder):
        folders[:] = [f for f in folders if not f.startswith(".") and f not in ("node_modules", "__pycache__")]
        for file in files:
            if file.endswith(".py"):
                path = os.path.join(at, file)
                try:
                    found[path] = os.stat(path).st_mtime
                except OSError:
                    pass  # it has just been deleted
    return found


def reload(arguments: list[str], folder: Path) -> int:
    """Runs the worker in a process of its own, and a new one when a Python file in the folder changes."""
    ending = threading.Event()

    def end(number: int, _: FrameType | None) -> None:
        ending.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    while True:
        seen = _stamp(folder)
        worker = subprocess.Popen([sys.executable, "-m", "kagzi", *arguments], cwd=folder)
        changed: list[str] = []
        while not ending.wait(_LOOK_EVERY) and not changed:
            now = _stamp(folder)
            changed = sorted(p for p in now.keys() | seen.keys() if now.get(p) != seen.get(p))
        if changed:
            name = os.path.relpath(changed[0], folder)
            print(f"kagzi: {name} has changed; starting the worker again", file=sys.stderr)
        for _ in range(2):  # the second signal releases the runs that it still holds
            if worker.poll() is None:
                worker.terminate()
                try:
                    worker.wait(1.0)
                except subprocess.TimeoutExpired:
                    pass
        code = worker.wait()
        if ending.is_set():
            return code


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser("python -m kagzi", description="Runs workers of the Kagzi Python SDK.")
    commands = parser.add_subparsers(dest="command", required=True)
    worker = commands.add_parser("worker", help="run a worker; the environment and kagzi.toml say for which server")
    worker.add_argument("target", nargs="+", help="module with workflows, or module:name of a workflow or a Worker")
    worker.add_argument("--reload", action="store_true", help="start it again when a Python file here changes")
    worker.add_argument("--log-level", default="info", choices=["debug", "info", "warning", "error"])
    options = parser.parse_args(arguments)
    if options.reload:
        return reload([a for a in arguments if a != "--reload"], Path.cwd())
    logging.basicConfig(level=options.log_level.upper(), format=LOG_FORMAT)
    sys.path.insert(0, os.getcwd())
    try:
        find(options.target).run()
    except KagziError as e:
        print(f"kagzi: {e}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
