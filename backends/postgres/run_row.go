package postgres

import (
	_ "embed"
	"maps"
	"time"

	"github.com/kagzi/kagzi/backends/internal/storekit"
	"github.com/kagzi/kagzi/backends/internal/storelogic"
	"github.com/kagzi/kagzi/engine"
)

// Only this file knows the columns of runs one by one. A new column is read by runPlaces and
// inserted by startColumns with insert_run.sql. If it changes later, runArgs saves it with
// save_run.sql.

//go:embed sql/include/run_columns.sql
var runColumnsText string

// runColumns are the columns that statements about whole runs select.
var runColumns = storekit.NewColumns("run_columns", runColumnsText)

// runPlaces returns the scan targets of runColumns and the columns after them: lease_losses, steps
// and bytes.
func runPlaces(r *engine.Run) []any {
	return []any{
		idOf(&r.ID), &r.Namespace, &r.ExternalID, &r.RequestID, &r.Queue, &r.Type, &r.Version,
		numberOf(&r.Status), &r.Priority, &r.Attempts, &r.Failures, jsonOf(&r.Error),
		timeOf(&r.CreatedAt), timeOf(&r.AvailableAt), timeOf(&r.StartedAt), timeOf(&r.FinishedAt),
		timeOf(&r.DeadlineAt), timeOf(&r.ScheduledAt),
		&r.WorkerID, &r.WaitingFor, &r.Note, &r.Paused, &r.Gated, timeOf(&r.HeldAt), &r.Pinned,
		timeOf(&r.CancelRequestedAt), &r.CancelReason, timeOf(&r.GraceUntil), jsonOf(&r.RetryPolicy),
		spanOf(&r.Timeouts.StartToClose), spanOf(&r.Timeouts.Heartbeat), spanOf(&r.Timeouts.Execution),
		jsonOf(&r.Tags), jsonOf(&r.Requirements), &r.OnFailureWorkflow, &r.OnFailureQueue,
		&r.ConcurrencyKey, &r.ConcurrencyLimit, idOf(&r.ParentRunID), idOf(&r.ParentStepID), numberOf(&r.ParentClose),
		&r.Traceparent,
		numberOf(&r.Origin), &r.ScheduleID, idOf(&r.FailedRunID), idOf(&r.RetriedFrom), idOf(&r.ContinuedFrom),
		idOf(&r.ContinuedAs),
		timeOf(&r.NamedDeadlineAt), &r.BelowHandler, idOf(&r.FirstRunID), jsonOf(&r.Suspect),
		(*laterColumn)(&r.AvailableAt), &r.Pausing, timeOf(&r.PausedAt),
		jsonOf(&r.Divergences), nil, jsonOf(&r.Unreached), &r.OwedFrom, &r.UnreadSignals,
		numberOf(&r.ConcurrencyScope), &r.HasPlace, jsonOf(&r.RunRetryPolicy),
		&r.LeaseLosses, &r.Steps, &r.Bytes,
	}
}

// startColumns holds the arrays of insert_run.sql, one element per run. lookedAt says that nothing
// prevents the starts; handoffs holds the matches for some of the runs.
type startColumns struct {
	handoffs                                                      *handoffs
	lookedAt                                                      bool
	calls, priorities, concurrencyLimits, parentCloses, origins   []int32
	concurrencyScopes                                             []int32
	runIDs, parentRunIDs, parentStepIDs, tagRunIDs                [][16]byte
	failedRunIDs, retriedFrom, continuedFrom, firstRunIDs         [][16]byte
	namespaces, externalIDs, requestIDs, queues, types, versions  []string
	policies, tags, requirements, failureWorkflows, failureQueues []string
	runPolicies                                                   []string
	concurrencyKeys, traceparents, inputMetas, tagKeys, tagValues []string
	scheduleIDs                                                   []string
	never, tied, belowHandler, hasPlace                           []bool
	lanes, bytes, createdAt, availableAt, deadlineAt, scheduledAt []int64
	startToClose, heartbeat, execution, namedDeadlineAt           []int64
	inputs                                                        [][]byte
	workers                                                       []string
	tokens                                                        [][16]byte
	scopes                                                        []int32
}

func (c *startColumns) add(number int, call *startCall) {
	for i := range call.starts {
		r := &call.starts[i]
		c.calls = append(c.calls, int32(number))
		c.runIDs = append(c.runIDs, r.ID)
		c.namespaces = append(c.namespaces, r.Namespace)
		c.externalIDs = append(c.externalIDs, r.ExternalID)
		c.requestIDs = append(c.requestIDs, r.RequestID)
		c.never = append(c.never, r.Reuse == engine.ReuseNever)
		c.lanes = append(c.lanes, call.lanes[i])
		c.queues = append(c.queues, r.Queue)
		c.types = append(c.types, r.Type)
		c.versions = append(c.versions, r.Version)
		c.priorities = append(c.priorities, int32(r.Priority))
		c.bytes = append(c.bytes, r.Bytes)
		c.createdAt = append(c.createdAt, micros(r.CreatedAt))
		c.availableAt = append(c.availableAt, micros(r.AvailableAt))
		c.deadlineAt = append(c.deadlineAt, microsOrZero(r.DeadlineAt))
		c.policies = append(c.policies, pointerText(r.RetryPolicy))
		c.runPolicies = append(c.runPolicies, pointerText(r.RunRetryPolicy))
		c.startToClose = append(c.startToClose, r.Timeouts.StartToClose.Microseconds())
		c.heartbeat = append(c.heartbeat, r.Timeouts.Heartbeat.Microseconds())
		c.execution = append(c.execution, r.Timeouts.Execution.Microseconds())
		c.tags = append(c.tags, mapText(r.Tags))
		c.requirements = append(c.requirements, mapText(r.Requirements))
		c.failureWorkflows = append(c.failureWorkflows, r.OnFailureWorkflow)
		c.failureQueues = append(c.failureQueues, r.OnFailureQueue)
		c.concurrencyKeys = append(c.concurrencyKeys, r.ConcurrencyKey)
		c.concurrencyLimits = append(c.concurrencyLimits, int32(r.ConcurrencyLimit))
		c.parentRunIDs = append(c.parentRunIDs, r.ParentRunID)
		c.parentStepIDs = append(c.parentStepIDs, r.ParentStepID)
		c.parentCloses = append(c.parentCloses, int32(r.ParentClose))
		c.traceparents = append(c.traceparents, r.Traceparent)
		c.scheduledAt = append(c.scheduledAt, microsOrZero(r.ScheduledAt))
		c.origins = append(c.origins, int32(r.Origin))
		c.scheduleIDs = append(c.scheduleIDs, r.ScheduleID)
		c.failedRunIDs = append(c.failedRunIDs, r.FailedRunID)
		c.retriedFrom = append(c.retriedFrom, r.RetriedFrom)
		c.continuedFrom = append(c.continuedFrom, r.ContinuedFrom)
		c.namedDeadlineAt = append(c.namedDeadlineAt, microsOrZero(r.NamedDeadlineAt))
		c.belowHandler = append(c.belowHandler, r.BelowHandler)
		c.firstRunIDs = append(c.firstRunIDs, r.FirstRunID)
		c.concurrencyScopes = append(c.concurrencyScopes, int32(r.ConcurrencyScope))
		c.hasPlace = append(c.hasPlace, r.HasPlace)
		c.tied = append(c.tied, r.Tied())
		c.inputs = append(c.inputs, dataOrNull(r.Input.Data))
		c.inputMetas = append(c.inputMetas, mapText(r.Input.Metadata))
		worker, token, scope := c.handoffs.columns(r.ID)
		c.workers = append(c.workers, worker)
		c.tokens = append(c.tokens, token)
		c.scopes = append(c.scopes, scope)
		for key, value := range r.Tags {
			c.tagRunIDs = append(c.tagRunIDs, r.ID)
			c.tagKeys = append(c.tagKeys, key)
			c.tagValues = append(c.tagValues, value)
		}
	}
}

func (c *startColumns) args() args {
	return merge(c.handoffs.scopeArgs(), args{
		"looked_at": c.lookedAt, "calls": c.calls, "run_ids": c.runIDs, "namespaces": c.namespaces,
		"external_ids": c.externalIDs,
		"request_ids":  c.requestIDs, "never": c.never, "lane_ids": c.lanes, "task_queues": c.queues,
		"workflow_types": c.types,
		"versions":       c.versions, "priorities": c.priorities, "bytes": c.bytes, "created_at": c.createdAt,
		"available_at": c.availableAt, "deadline_at": c.deadlineAt, "retry_policies": c.policies,
		"run_retry_policies": c.runPolicies,
		"start_to_close_us":  c.startToClose, "heartbeat_us": c.heartbeat, "execution_us": c.execution, "tags": c.tags,
		"requirements": c.requirements, "on_failure_workflows": c.failureWorkflows,
		"on_failure_queues": c.failureQueues,
		"concurrency_keys":  c.concurrencyKeys, "concurrency_limits": c.concurrencyLimits,
		"parent_run_ids":  c.parentRunIDs,
		"parent_step_ids": c.parentStepIDs, "parent_closes": c.parentCloses, "scheduled_at": c.scheduledAt,
		"origins":      c.origins,
		"schedule_ids": c.scheduleIDs, "failed_run_ids": c.failedRunIDs, "retried_from": c.retriedFrom,
		"continued_from": c.continuedFrom, "named_deadline_at": c.namedDeadlineAt, "tied": c.tied,
		"below_handler": c.belowHandler, "first_run_ids": c.firstRunIDs,
		"concurrency_scopes": c.concurrencyScopes, "has_place": c.hasPlace,
		"traceparents": c.traceparents, "inputs": c.inputs, "input_metas": c.inputMetas,
		"tag_run_ids": c.tagRunIDs, "tag_keys": c.tagKeys, "tag_values": c.tagValues,
		"worker_ids": c.workers, "tokens": c.tokens, "scopes": c.scopes,
	})
}

// runArgs returns the columns of a run that can change, for save_run.sql.
func runArgs(r *storelogic.Run) args {
	availableAt, suspectAt, suspect := r.AvailableAt, time.Time{}, ""
	if r.Suspect.Is() {
		suspect = jsonText(r.Suspect)
	}
	if r.Apart() {
		availableAt, suspectAt = suspectAt, availableAt
	}
	return args{
		"run_id": [16]byte(r.ID), "status": int16(r.Status), "attempts": r.Attempts, "failures": r.Failures,
		"lease_losses": r.LeaseLosses,
		"steps":        r.Steps, "bytes": r.Bytes, "error": pointerText(r.Error),
		"available_at": microsOrNull(availableAt), "suspect": suspect, "suspect_at": microsOrNull(suspectAt),
		"started_at": microsOrNull(r.StartedAt), "finished_at": microsOrNull(r.FinishedAt),
		"expires_at": microsOrNull(r.ExpiresAt()),
		"worker_id":  r.WorkerID, "waiting_for": r.WaitingFor, "note": r.Note, "paused": r.Paused, "gated": r.Gated,
		"held_at": microsOrNull(r.HeldAt), "pinned": r.Pinned, "cancel_requested_at": microsOrNull(r.CancelRequestedAt),
		"cancel_reason": r.CancelReason, "grace_until": microsOrNull(r.GraceUntil),
		"continued_as": idOrNull(r.ContinuedAs),
		"final_token":  idOrNull(engine.ID(r.FinalToken)), "tied": r.TiedTo,
		"divergences": listText(r.Divergences), "diverged": r.Builds(), "unreached": listText(r.Unreached),
		"deadline_at": microsOrNull(r.DeadlineAt), "named_deadline_at": microsOrNull(r.NamedDeadlineAt),
		"pausing": r.Pausing, "paused_at": microsOrNull(r.PausedAt),
		"settled": r.Settled, "owed_from": r.OwedFrom, "unread_signals": r.UnreadSignals,
		"ending": r.Ending && r.ContinuedAs.IsZero(),
	}
}

// stored holds a run's rows as they are, so that only changes are written: most steps change only
// the lease.
type stored struct {
	run   args
	lease args // nil: it has none
}

// note records a run's own row and, once the lease's values were added, the lease.
func (t *tx) note(r *storelogic.Run) {
	if t.stored == nil {
		t.stored = map[engine.ID]stored{}
	}
	s, known := t.stored[r.ID]
	if !known || !r.WasHeld {
		s = stored{run: runArgs(r)}
	}
	if r.WasHeld {
		s.lease = leaseArgs(r)
	}
	t.stored[r.ID] = s
}

//go:embed sql/save_run.sql
var saveRunText string

var saveRunSQL = hot(saveRunText)

//go:embed sql/save_lease.sql
var saveLeaseText string

var saveLeaseSQL = hot(saveLeaseText)

//go:embed sql/delete_lease.sql
var deleteLeaseText string

var deleteLeaseSQL = hot(deleteLeaseText)

// SaveRun leaves the counts in the lease while there is one.
func (t *tx) SaveRun(r *storelogic.Run) error {
	c := t.changesOf(r)
	if c.lease != nil {
		if err := t.queueRows(saveLeaseSQL, c.lease); err != nil {
			return err
		}
	}
	if c.freed != nil {
		if err := t.queueRows(deleteLeaseSQL, c.freed); err != nil {
			return err
		}
	}
	if c.run == nil {
		return nil
	}
	return t.queueRows(saveRunSQL, c.run)
}

// runChanges are the rows to write for a run; nil: this one is as it was.
type runChanges struct{ run, lease, freed args }

// changesOf returns what differs from the rows that were read or written last.
func (t *tx) changesOf(r *storelogic.Run) (c runChanges) {
	was, now := t.stored[r.ID], stored{run: runArgs(r)}
	switch {
	case !r.Token.IsZero():
		now.lease = leaseArgs(r)
		if was.run != nil {
			now.run["steps"], now.run["bytes"] = was.run["steps"], was.run["bytes"]
			now.run["settled"] = was.run["settled"]
		}
		if !maps.Equal(was.lease, now.lease) {
			c.lease = now.lease
		}
	case r.WasHeld && (was.run == nil || was.lease != nil):
		c.freed = args{"run_id": [16]byte(r.ID)}
	}
	if t.stored == nil {
		t.stored = map[engine.ID]stored{}
	}
	t.stored[r.ID] = now
	if maps.Equal(was.run, now.run) {
		return c
	}
	if !r.AvailableAt.IsZero() {
		t.due = append(t.due, dueRun{queueKey{r.Namespace, r.Queue}, micros(r.AvailableAt)})
	}
	c.run = now.run
	return c
}

// leaseArgs returns the columns of a lease that can change, for save_lease.sql.
func leaseArgs(r *storelogic.Run) args {
	return args{"run_id": [16]byte(r.ID), "steps": r.Steps, "bytes": r.Bytes, "progressed": r.Progressed,
		"tied": r.TiedTo, "suspect": r.Apart(), "pausing": r.Pausing, "settled": r.Settled, "owed_from": r.OwedFrom}
}

//go:embed sql/set_output.sql
var setOutputText string

var setOutputSQL = hot(setOutputText)

// SaveOutput writes the output next to the input.
func (t *tx) SaveOutput(run engine.ID, output engine.Payload) error {
	t.bytes += output.Size()
	return t.queueRows(setOutputSQL, outputArgs(run, output))
}

func outputArgs(run engine.ID, output engine.Payload) args {
	return args{"run_id": [16]byte(run), "output": dataOrNull(output.Data), "output_meta": mapText(output.Metadata)}
}

// InsertRun fails if another transaction took one of the ids meanwhile; the operation is then
// retried.
func (t *tx) InsertRun(start *engine.StartRun) error {
	lane, err := t.ensureLane(laneKeyOf(start))
	if err != nil {
		return err
	}
	if err := t.ensureNamespace(start.Namespace, start.CreatedAt); err != nil {
		return err
	}
	t.due = append(t.due, dueRun{queueKey{start.Namespace, start.Queue}, micros(start.AvailableAt)})
	t.bytes += start.Input.Size()
	columns := startColumns{lookedAt: true}
	columns.add(0, &startCall{starts: []engine.StartRun{*start}, lanes: []int64{lane}})
	return t.queueHot(insertRunSQL, columns.args())
}

// ImportRun inserts the run as a start would, and then updates its other columns.
func (t *tx) ImportRun(r *storelogic.Run) error {
	if err := t.InsertRun(&engine.StartRun{Run: r.Run}); err != nil {
		return err
	}
	if err := t.SaveRun(r); err != nil {
		return err
	}
	if r.Output.Size() == 0 {
		return nil
	}
	return t.SaveOutput(r.ID, r.Output)
}
