package proto

import "strings"

// An operation has one name: its RPC, handler, method of engine.Store, SQL file and contract test
// share it. The wire is frozen and says Workflow and WorkflowSchedule where the engine says Run and
// Schedule; EngineName translates. The tables below hold the RPCs whose names differ in another
// way. A test in engine/lab/e2e fails when an entry is missing, wrong or no longer needed.

// StoreMethod returns the method of engine.Store that implements an RPC. RPCs in OwnNames have none
// of the returned name.
func StoreMethod(rpc string) string {
	if method, renamed := StoreMethods[rpc]; renamed {
		return method
	}
	return EngineName(rpc)
}

// EngineName returns an RPC's name in the terms of the engine.
func EngineName(rpc string) string {
	return strings.NewReplacer("WorkflowSchedule", "Schedule", "Workflow", "Run", "ExternalId",
		"ExternalID").Replace(rpc)
}

// StoreMethods maps RPCs to the method of engine.Store that implements them, where the name
// differs.
var StoreMethods = map[string]string{
	// WorkflowService
	"StartWorkflow":   "StartRuns",
	"WaitWorkflow":    "GetRun",
	"AwaitWorkflows":  "GetRuns",
	"ExplainWorkflow": "ExplainInputs", // engine.Explain builds the text from them
	"ImportWorkflow":  "ImportRuns",

	// WorkflowScheduleService
	"PauseWorkflowSchedule":  "UpdateSchedule",
	"ResumeWorkflowSchedule": "UpdateSchedule",
	"ListScheduleRuns":       "ListRuns",

	// NamespaceService
	"EnableNamespace":  "UpdateNamespace",
	"DisableNamespace": "UpdateNamespace",

	// WorkerService
	"Register":    "RegisterWorker",
	"PollTask":    "Claim", // through engine/matching
	"ReleaseTask": "Release",

	// AdminService
	"HealthCheck":       "Health",
	"GetServerInfo":     "Describe",
	"WatchStats":        "GetStats",
	"ListWorkflowTypes": "ListTypes",
}

// OwnNames gives the reason for RPCs that no single method of engine.Store implements.
var OwnNames = map[string]string{
	"WatchWorkflow":   "several: GetRun, ListSteps and HeldBy, again after each change",
	"ExportWorkflow":  "several: GetRun, ListRuns, ListSteps, ListSignals and ListAuditEvents",
	"MatchWorkers":    "several: ListWorkers, and ExplainInputs or the counts of its queue",
	"BulkWorkflows":   "several: ListRuns, then CancelRun, TerminateRun or RetryRun for each",
	"Deregister":      "several: DrainWorker or ForceOfflineWorker, as the request says",
	"Session":         "several: RegisterWorker, then the operations of a worker",
	"Watch":           "none: changes come from memory",
	"GetActivity":     "none: answered from memory",
	"WatchEvents":     "none: answered from memory",
	"WhoAmI":          "none: answered from the keys in memory",
	"PreviewSchedule": "none: arithmetic on the cron expression",
	"Backup":          "none: engine.Backups, an optional interface of stores",
}
