package mcp

import (
	"slices"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui"
)

// Sets of roles that may call the methods of tools, as the server's own table has them.
var (
	operators = []kagziv1.KeyRole{kagziv1.KeyRole_KEY_ROLE_ADMIN, kagziv1.KeyRole_KEY_ROLE_OPERATOR}
	starters  = with(operators, kagziv1.KeyRole_KEY_ROLE_CLIENT)
	monitors  = with(operators, kagziv1.KeyRole_KEY_ROLE_VIEWER)
	readers   = with(starters, kagziv1.KeyRole_KEY_ROLE_VIEWER)
	everyRole = with(readers, kagziv1.KeyRole_KEY_ROLE_WORKER)
)

func with(roles []kagziv1.KeyRole, one kagziv1.KeyRole) []kagziv1.KeyRole {
	return append(slices.Clone(roles), one)
}

// tools are all tools. The arguments are fields of the request; a ! marks what must be given.
var tools = []tool{
	{
		name: "list_runs", method: over(tui.API.ListWorkflows), roles: readers,
		about: "List runs, newest first, without payloads. search is a prefix of a run id or external id. query is a " +
			"filter such as: not type = \"a*\" and (status = FAILED or duration > 1h) and created > -24h.",
		arguments: "namespace query statuses workflow_types task_queues tags created_after created_before search " +
			"schedule_id parent_run_id worker_id",
	},
	{
		name: "get_run", method: over(tui.API.GetWorkflow), roles: readers, arguments: "namespace run_id!",
		about: "Get one run: status, input, output, error, note, relations to other runs.",
	},
	{
		name: "explain_run", method: over(tui.API.ExplainWorkflow), roles: readers, arguments: "namespace run_id!",
		about: "Explain what a run is doing or waits for, and since when. Use it first for a run that seems stuck.",
	},
	{
		name: "list_steps", method: over(tui.API.ListSteps), roles: readers,
		arguments: "namespace run_id! step_name statuses latest_only",
		about:     "List the steps of a run in order, each attempt with its error. Long values are cut; see get_step.",
	},
	{
		name: "get_step", method: over(tui.API.GetStep), roles: readers, arguments: "namespace step_id!",
		about: "Get one attempt of a step with its whole input, output and error.",
	},
	{
		name: "list_signals", method: over(tui.API.ListSignals), roles: readers, arguments: "namespace run_id!",
		about: "List the signals of a run, received or not.",
	},
	{
		name: "list_workers", method: over(tui.API.ListWorkers), roles: monitors,
		arguments: "namespace query task_queue status_filter",
		about: "List workers with their queues, types, load and last heartbeat. query is a filter such as: " +
			"status = ONLINE and active > 0.",
	},
	{
		name: "list_queues", method: over(tui.API.GetQueueDepth), roles: readers, arguments: "namespace query task_queue",
		about: "List queues with open runs: how many, since when the oldest is due, workers, runs that no worker serves. " +
			"query is a filter such as: pending > 100 or workers = 0.",
	},
	{
		name: "list_workflow_types", method: over(tui.API.ListWorkflowTypes), roles: readers, arguments: "namespace query",
		about: "List workflow types that have runs or workers.",
	},
	{
		name: "list_schedules", method: over(tui.API.ListWorkflowSchedules), roles: readers,
		arguments: "namespace query task_queue",
		about:     "List schedules with their next ticks. query is a filter such as: enabled = true and type = a.",
	},
	{
		name: "get_stats", method: over(tui.API.GetStats), roles: readers, arguments: "namespace",
		about: "Count runs by status and type, workers and schedules.",
	},
	{
		name: "list_audit_events", method: over(tui.API.ListAuditEvents), roles: monitors,
		arguments: "namespace query subject_id",
		about: "List who changed what, newest first. subject_id: only of this run or schedule. query is a " +
			"filter such as: method = \"Cancel*\" and at > -24h.",
	},
	{
		name: "get_server_info", method: over(tui.API.GetServerInfo), roles: everyRole,
		about: "Get version, database, settings and warnings of the server.",
	},

	{
		name: "start_run", method: over(tui.API.StartWorkflow), roles: starters, writes: true, idempotent: true,
		arguments: "namespace workflow_type! task_queue external_id input request_id! tags priority start_in",
		about: "Start a run. Make a new request_id for each run that is wanted; the same one starts nothing twice. " +
			"input is any JSON.",
	},
	{
		name: "signal_run", method: over(tui.API.SignalWorkflow), roles: starters, writes: true, idempotent: true,
		arguments: "namespace run_id! name! payload signal_id!",
		about:     "Send a signal to an open run. The same signal_id is delivered once. payload is any JSON.",
	},
	{
		name: "cancel_run", method: over(tui.API.CancelWorkflow), roles: starters, writes: true, destructive: true,
		idempotent: true, arguments: "namespace run_id! grace reason!",
		about: "Ask a run to stop: its code cleans up for the grace (default 30s), then it is CANCELLED. Cannot be undone.",
	},
	{
		name: "terminate_run", method: over(tui.API.TerminateWorkflow), roles: operators, writes: true,
		destructive: true, idempotent: true, arguments: "namespace run_id! reason!",
		about: "End a run at once, without cleaning up. Cannot be undone. Prefer cancel_run.",
	},
	{
		name: "pause_run", method: over(tui.API.PauseWorkflow), roles: operators, writes: true, idempotent: true,
		arguments: "namespace run_id! reason!", about: "Hold an open run after the steps that run now.",
	},
	{
		name: "resume_run", method: over(tui.API.ResumeWorkflow), roles: operators, writes: true, idempotent: true,
		arguments: "namespace run_id! reason!", about: "Let a paused run go on.",
	},
	{
		name: "retry_run", method: over(tui.API.RetryWorkflow), roles: operators, writes: true, destructive: true,
		idempotent: true, arguments: "namespace run_id! from_step restart keep_all input request_id! reason!",
		about: "Retry an ended run as a new run. Completed steps are kept and the rest run again, with their effects. " +
			"from_step repeats it and all after it; restart keeps none. If steps began after the failure, such as " +
			"compensations, it is refused until from_step, restart or keep_all (keep them, too) is given.",
	},
}
