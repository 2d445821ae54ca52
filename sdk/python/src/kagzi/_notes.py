"""The progress text of a run, and log lines that workflow code writes once although it is replayed."""

from __future__ import annotations

import functools
import logging
import time
from typing import TYPE_CHECKING

from ._op import Op
from .v1 import worker_pb2 as w

if TYPE_CHECKING:
    from ._branch import Branch
    from ._run import Run

_NOTE_INTERVAL = 0.25


def note(run: Run, text: str) -> None:
    """Sets the progress text of the run."""
    if run.owing > 0 or run.ended or run.away or run.replaying:
        return
    run._note = text
    wait = run._note_next - time.monotonic()
    if wait <= 0:
        flush(run)
    elif run._note_timer is None:
        run._note_timer = run.worker.loop.call_later(wait, functools.partial(flush, run))


def flush(run: Run) -> None:
    if run._note_timer is not None:
        run._note_timer.cancel()
        run._note_timer = None
    if run._note is None or run.ended:
        return
    text, run._note, run._note_next = run._note, None, time.monotonic() + _NOTE_INTERVAL
    run.worker.session.post(Op(w.SessionRequest(set_note=w.SetNote(
        run_id=run.task.run_id, lease_token=run.task.lease_token, note=text)), None, 0, None, None))


def rest(run: Run) -> None:
    """Drops a note that was not sent, as the run is parked."""
    run._note = None
    if run._note_timer is not None:
        run._note_timer.cancel()
        run._note_timer = None


def note_lost(run: Run, text: str) -> None:
    """Sends a note again whose stream broke, unless there is a newer one."""
    if run._note is None:
        run.note(text)


def write_lines(run: Run, branch: Branch) -> None:
    """Writes the log lines that a branch held back, because it is past its recorded calls."""
    branch.replayed = False
    if branch.lines:
        lines, branch.lines = branch.lines, []
        if not run.quitted and not run.replaying:
            for logger, record in lines:
                logger.handle(record)


def come_to_wait(run: Run, branch: Branch) -> None:
    """Takes note that a branch comes to a wait without a record of its own."""
    if branch.own_result:
        branch.lines.clear()


def log_line(run: Run, branch: Branch, logger: logging.Logger, record: logging.LogRecord) -> None:
    """Writes a log line of workflow code, or holds it back while the branch may be replaying."""
    if run.quitted or run.replaying:
        return
    if branch.replayed:
        branch.lines.append((logger, record))
    else:
        logger.handle(record)
