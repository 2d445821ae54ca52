package sqlite

import (
	_ "embed"
	"time"

	"github.com/kagzi/kagzi/backends/internal/storekit"
	"github.com/kagzi/kagzi/backends/internal/storelogic"
	"github.com/kagzi/kagzi/engine"
)

// Only this file knows the columns of runs one by one. A new column is read in readRun and inserted
// by restRunArgs, or by plainRunArgs and insert_run.sql if client starts set it. If it changes
// later, mutableRun and saveRunArgs save it, with save_run.sql.

//go:embed sql/include/run_columns.sql
var runColumnsText string

// runColumns are the columns that statements about whole runs select or insert.
var runColumns = storekit.NewColumns("run_columns", runColumnsText)

// readRun reads runColumns and the columns after them: lease_losses, steps and bytes.
func readRun(r *row) (engine.Run, error) {
	run := engine.Run{
		ID: r.id(), Namespace: r.text(), ExternalID: r.text(), RequestID: r.text(), Queue: r.text(), Type: r.text(),
		Version: r.text(),
		Status:  engine.RunStatus(r.num()), Priority: int(r.num()), Attempts: int(r.num()), Failures: int(r.num()),
	}
	failure := r.text()
	run.CreatedAt, run.AvailableAt, run.StartedAt, run.FinishedAt, run.DeadlineAt = r.time(), r.time(), r.time(),
		r.time(), r.time()
	run.ScheduledAt, run.WorkerID, run.WaitingFor, run.Note = r.time(), r.text(), r.text(), r.text()
	run.Paused, run.Gated, run.HeldAt, run.Pinned = r.flag(), r.flag(), r.time(), r.flag()
	run.CancelRequestedAt, run.CancelReason, run.GraceUntil = r.time(), r.text(), r.time()
	policy := r.text()
	run.Timeouts = engine.Timeouts{StartToClose: r.length(), Heartbeat: r.length(), Execution: r.length()}
	tags, requirements := r.text(), r.text()
	run.OnFailureWorkflow, run.OnFailureQueue, run.ConcurrencyKey, run.ConcurrencyLimit = r.text(), r.text(), r.text(),
		int(r.num())
	run.ParentRunID, run.ParentStepID, run.ParentClose, run.Traceparent = r.id(), r.id(),
		engine.ParentClose(r.num()), r.text()
	run.Origin, run.ScheduleID, run.FailedRunID = engine.Origin(r.num()), r.text(), r.id()
	run.RetriedFrom, run.ContinuedFrom, run.ContinuedAs, run.NamedDeadlineAt = r.id(), r.id(), r.id(), r.time()
	run.BelowHandler, run.FirstRunID = r.flag(), r.id()
	suspect, suspectAt := r.text(), r.time()
	run.Pausing, run.PausedAt = r.flag(), r.time()
	if run.AvailableAt.IsZero() {
		run.AvailableAt = suspectAt
	}
	divergences, _, unreached := r.text(), r.text(), r.text()
	run.OwedFrom, run.UnreadSignals = r.num(), int(r.num())
	run.ConcurrencyScope, run.HasPlace = engine.ConcurrencyScope(r.num()), r.flag()
	ownPolicy := r.text()
	run.LeaseLosses, run.Steps, run.Bytes = int(r.num()), r.num(), r.num()

	var err error
	decode(failure, &run.Error, &err)
	decode(policy, &run.RetryPolicy, &err)
	decode(ownPolicy, &run.RunRetryPolicy, &err)
	decode(tags, &run.Tags, &err)
	decode(requirements, &run.Requirements, &err)
	decode(suspect, &run.Suspect, &err)
	decode(divergences, &run.Divergences, &err)
	decode(unreached, &run.Unreached, &err)
	return run, err
}

// readWholeRun is readRun followed by the run's payloads.
func readWholeRun(r *row) (engine.Run, error) {
	run, err := readRun(r)
	if err == nil {
		run.Input, err = readPayload(r)
	}
	if err == nil {
		run.Output, err = readPayload(r)
	}
	return run, err
}

// plainRunArgs returns the arguments of insert_run.sql: what a client's start sets, or a hand-off
// to a worker.
func plainRunArgs(r *engine.Run, lane int64, requirements string) []arg {
	return []arg{
		idArg("run_id", r.ID), text("namespace", r.Namespace), text("external_id", r.ExternalID),
		text("request_id", r.RequestID),
		num("lane_id", lane), text("task_queue", r.Queue), text("workflow_type", r.Type), text("version", r.Version),
		num("status", r.Status), num("priority", r.Priority), num("bytes", r.Bytes), instant("created_at", r.CreatedAt),
		instant("available_at", r.AvailableAt), instant("deadline_at", r.DeadlineAt),
		instant("expires_at", r.ExpiresAt()),
		text("retry_policy", encodePolicy(r.RetryPolicy)), text("run_retry_policy", encodePolicy(r.RunRetryPolicy)),
		length("start_to_close_us", r.Timeouts.StartToClose),
		length("heartbeat_us", r.Timeouts.Heartbeat), length("execution_us", r.Timeouts.Execution),
		text("tags", encodeMap(r.Tags)),
		text("requirements", requirements), text("on_failure_workflow", r.OnFailureWorkflow),
		text("on_failure_queue", r.OnFailureQueue),
		text("concurrency_key", r.ConcurrencyKey), num("concurrency_limit", r.ConcurrencyLimit),
		idArg("parent_run_id", r.ParentRunID), idArg("parent_step_id", r.ParentStepID),
		text("traceparent", r.Traceparent),
		flag("tied", r.Tied()), text("worker_id", r.WorkerID), instant("started_at", r.StartedAt),
	}
}

// needsAllColumns says whether the run has a value that only restRunArgs inserts. Most starts have
// none: such a run comes from another run or from a schedule, has two deadlines, or keeps its place of
// a concurrency key.
func needsAllColumns(r *engine.Run) bool {
	return r.Origin != engine.OriginUser || r.ParentClose != engine.CloseUnset || r.ScheduleID != "" ||
		!r.ScheduledAt.IsZero() ||
		!r.FailedRunID.IsZero() || !r.RetriedFrom.IsZero() || !r.ContinuedFrom.IsZero() ||
		!r.NamedDeadlineAt.IsZero() ||
		r.BelowHandler || !r.FirstRunID.IsZero() || r.ConcurrencyScope != engine.ScopeSlot
}

// wholeRunArgs returns the arguments of insert_whole_run.sql: all columns.
func wholeRunArgs(r *engine.Run, lane int64, requirements string) []arg {
	return append(plainRunArgs(r, lane, requirements), restRunArgs(r)...)
}

// restRunArgs returns the arguments that wholeRunArgs has and plainRunArgs does not.
func restRunArgs(r *engine.Run) []arg {
	return []arg{
		num("attempts", r.Attempts), num("failures", r.Failures), num("lease_losses", r.LeaseLosses),
		num("steps", r.Steps),
		text("error", encodeFailure(r.Error)), instant("finished_at", r.FinishedAt),
		instant("scheduled_at", r.ScheduledAt),
		text("waiting_for", r.WaitingFor), text("note", r.Note), flag("paused", r.Paused), flag("gated", r.Gated),
		instant("held_at", r.HeldAt),
		flag("pinned", r.Pinned), instant("cancel_requested_at", r.CancelRequestedAt),
		text("cancel_reason", r.CancelReason),
		instant("grace_until", r.GraceUntil), num("parent_close", r.ParentClose), num("origin", r.Origin),
		text("schedule_id", r.ScheduleID),
		idArg("failed_run_id", r.FailedRunID), idArg("retried_from", r.RetriedFrom),
		idArg("continued_from", r.ContinuedFrom),
		idArg("continued_as", r.ContinuedAs), instant("named_deadline_at", r.NamedDeadlineAt),
		flag("below_handler", r.BelowHandler), idArg("first_run_id", r.FirstRunID),
		text("suspect", encodeSuspect(r.Suspect)), instant("suspect_at", time.Time{}),
		flag("pausing", r.Pausing), instant("paused_at", r.PausedAt),
		text("divergences", encodeList(r.Divergences)), text("diverged", r.Builds()),
		text("unreached", encodeList(r.Unreached)),
		num("owed_from", r.OwedFrom), num("unread_signals", r.UnreadSignals),
		num("concurrency_scope", r.ConcurrencyScope), flag("has_place", r.HasPlace),
	}
}

// mutableRun holds the columns of a run that can change. If only the counts of its lease differ
// from what was read, as when a step begins, saving the run is one narrow update.
type mutableRun struct {
	status                                     engine.RunStatus
	attempts, failures, losses                 int
	failure                                    *engine.Failure
	availableAt, startedAt, finishedAt, heldAt time.Time
	cancelRequestedAt, graceUntil, expiresAt   time.Time
	workerID, waitingFor, note, cancelReason   string
	deadlineAt, namedDeadlineAt, pausedAt      time.Time
	pausing, paused, gated, pinned, tied, held bool
	continuedAs                                engine.ID
	finalToken                                 engine.Token
	suspect                                    engine.Suspect
	divergences, unreached                     string
	owedFrom                                   int64
	unreadSignals                              int
}

func mutableOf(r *storelogic.Run) mutableRun {
	return mutableRun{
		status: r.Status, attempts: r.Attempts, failures: r.Failures, losses: r.LeaseLosses, failure: r.Error,
		availableAt: r.AvailableAt, startedAt: r.StartedAt, finishedAt: r.FinishedAt, heldAt: r.HeldAt,
		cancelRequestedAt: r.CancelRequestedAt, graceUntil: r.GraceUntil, expiresAt: r.ExpiresAt(),
		workerID: r.WorkerID, waitingFor: r.WaitingFor, note: r.Note, cancelReason: r.CancelReason,
		deadlineAt: r.DeadlineAt, namedDeadlineAt: r.NamedDeadlineAt, pausedAt: r.PausedAt,
		pausing: r.Pausing, paused: r.Paused, gated: r.Gated, pinned: r.Pinned, tied: r.TiedTo, held: !r.Token.IsZero(),
		continuedAs: r.ContinuedAs, finalToken: r.FinalToken, suspect: r.Suspect,
		divergences: encodeList(r.Divergences), unreached: encodeList(r.Unreached),
		owedFrom: r.OwedFrom, unreadSignals: r.UnreadSignals,
	}
}

// saveRunArgs returns the arguments of save_run.sql. While there is a lease, it holds steps and
// bytes.
func saveRunArgs(r *storelogic.Run) []arg {
	availableAt, suspectAt := r.AvailableAt, time.Time{}
	if r.Apart() {
		availableAt, suspectAt = suspectAt, availableAt
	}
	return []arg{
		idArg("run_id", r.ID), flag("held", !r.Token.IsZero()), num("steps", r.Steps), num("bytes", r.Bytes),
		num("status", r.Status), num("attempts", r.Attempts), num("failures", r.Failures),
		num("lease_losses", r.LeaseLosses),
		text("error", encodeFailure(r.Error)), instant("available_at", availableAt),
		instant("started_at", r.StartedAt),
		instant("finished_at", r.FinishedAt), text("worker_id", r.WorkerID), text("waiting_for", r.WaitingFor),
		text("note", r.Note),
		flag("paused", r.Paused), flag("gated", r.Gated), instant("held_at", r.HeldAt), flag("pinned", r.Pinned),
		instant("cancel_requested_at", r.CancelRequestedAt), text("cancel_reason", r.CancelReason),
		instant("grace_until", r.GraceUntil),
		instant("expires_at", r.ExpiresAt()), idArg("continued_as", r.ContinuedAs), flag("tied", r.TiedTo),
		tokenArg("final_token", r.FinalToken), text("suspect", encodeSuspect(r.Suspect)),
		instant("suspect_at", suspectAt),
		instant("deadline_at", r.DeadlineAt), instant("named_deadline_at", r.NamedDeadlineAt),
		flag("pausing", r.Pausing), instant("paused_at", r.PausedAt),
		text("divergences", encodeList(r.Divergences)), text("diverged", r.Builds()),
		text("unreached", encodeList(r.Unreached)),
		num("settled", r.Settled), num("owed_from", r.OwedFrom),
		num("unread_signals", r.UnreadSignals), flag("ending", r.Ending && r.ContinuedAs.IsZero()),
	}
}

func encodeSuspect(s engine.Suspect) string {
	if !s.Is() {
		return ""
	}
	return encode(s)
}
