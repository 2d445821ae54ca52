package proto

import "strings"

// One operation has one name: an RPC, its handler, the method of engine.Store, the SQL file and the
// contract test share it. The wire is inherited and frozen, and says Workflow and WorkflowSchedule
// where the engine says Run and Schedule: StoreMethod turns one into the other. The two tables hold
// every RPC whose name differs in another way. A test of engine/lab/e2e fails when one is missing,
// wrong, or not needed any more.

// StoreMethod returns the method of engine.Store that carries out an RPC; for those of OwnNames
// there is none of that name.
func StoreMethod(rpc string) string {
	if method, renamed := StoreMethods[rpc]; renamed {
		return method
	}
	return EngineName(rpc)
}

// EngineName is the name of an RPC in the engine's words.
func EngineName(rpc string) string {
	return strings.NewReplacer("WorkflowSchedule", "Schedule", "Workflow", "Run", "ExternalId",
		"ExternalID").Replace(rpc)
}

// StoreMethods gives RPCs the method of engine.Store that carries them out, where its name is another.
var StoreMethods = map[string]string{
	// WorkflowService
	"StartWorkflow":   "StartRuns",
	"WaitWorkflow":    "GetRun",
	"AwaitWorkflows":  "GetRuns",
	"ExplainWorkflow": "ExplainInputs", // engine.Explain makes the sentence of them
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
	"PollTask":    "Claim", // by way of engine/matching
	"ReleaseTask": "Release",

	// AdminService
	"HealthCheck":       "Health",
	"GetServerInfo":     "Describe",
	"WatchStats":        "GetStats",
	"ListWorkflowTypes": "ListTypes",
}

// OwnNames gives the reason for RPCs that no single method of engine.Store carries out.
var OwnNames = map[string]string{
	"WatchWorkflow":   "several: GetRun, ListSteps and HeldBy, again after each change",
	"ExportWorkflow":  "several: GetRun, ListRuns, ListSteps, ListSignals and ListAuditEvents",
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
