package proto

// One operation has one name: an RPC, its handler, the method of engine.Store, the SQL file and the contract test share it. The wire is
// inherited and frozen, and says Workflow, TaskQueue and WorkflowSchedule where the engine says Run, Queue and Schedule. These two tables
// hold every RPC whose name differs from its store method. A test of engine/lab/e2e fails when one is missing, wrong, or not needed any more.

// StoreMethods gives RPCs the method of engine.Store that carries them out, where the names differ.
var StoreMethods = map[string]string{
	// WorkflowService
	"StartWorkflow":           "StartRuns",
	"StartWorkflows":          "StartRuns",
	"GetWorkflow":             "GetRun",
	"GetWorkflowByExternalId": "GetRunByExternalID",
	"ListWorkflows":           "ListRuns",
	"WaitWorkflow":            "GetRun",
	"AwaitWorkflows":          "GetRuns",
	"CancelWorkflow":          "CancelRun",
	"TerminateWorkflow":       "TerminateRun",
	"PauseWorkflow":           "PauseRun",
	"ResumeWorkflow":          "ResumeRun",
	"RetryWorkflow":           "RetryRun",
	"ExplainWorkflow":         "Circumstances",
	"ImportWorkflow":          "ImportRuns",
	"SignalWorkflow":          "SignalRun",
	"PinWorkflow":             "PinRun",

	// WorkflowScheduleService
	"CreateWorkflowSchedule":  "CreateSchedule",
	"GetWorkflowSchedule":     "GetSchedule",
	"ListWorkflowSchedules":   "ListSchedules",
	"UpdateWorkflowSchedule":  "UpdateSchedule",
	"PauseWorkflowSchedule":   "UpdateSchedule",
	"ResumeWorkflowSchedule":  "UpdateSchedule",
	"DeleteWorkflowSchedule":  "DeleteSchedule",
	"TriggerWorkflowSchedule": "TriggerSchedule",
	"ListScheduleRuns":        "ListRuns",

	// NamespaceService
	"EnableNamespace":  "UpdateNamespace",
	"DisableNamespace": "UpdateNamespace",

	// WorkerService
	"Register":         "RegisterWorker",
	"PollTask":         "Claim", // by way of engine/matching
	"GetHistory":       "History",
	"CompleteWorkflow": "CompleteRun",
	"FailWorkflow":     "FailRun",
	"ReleaseTask":      "Release",
	"SetRunNote":       "SetNote",

	// AdminService
	"ForceOfflineWorker": "OfflineWorker",
	"HealthCheck":        "Health",
	"GetServerInfo":      "Describe",
	"GetStats":           "Stats",
	"WatchStats":         "Stats",
	"GetQueueDepth":      "QueueDepths",
	"ListWorkflowTypes":  "ListTypes",
	"ListAuditEvents":    "ListAudit",
}

// OwnNames gives the reason for RPCs that no single method of engine.Store carries out.
var OwnNames = map[string]string{
	"WatchWorkflow":   "several: GetRun, ListSteps and HeldBy, again after each change",
	"ExportWorkflow":  "several: GetRun, ListRuns, ListSteps, ListSignals and ListAudit",
	"BulkWorkflows":   "several: ListRuns, then CancelRun, TerminateRun or RetryRun for each",
	"Deregister":      "several: DrainWorker or OfflineWorker, as the request says",
	"Session":         "several: RegisterWorker, then the operations of a worker",
	"Watch":           "none: changes come from memory",
	"GetActivity":     "none: answered from memory",
	"WatchEvents":     "none: answered from memory",
	"WhoAmI":          "none: answered from the keys in memory",
	"PreviewSchedule": "none: arithmetic on the cron expression",
	"Backup":          "none: engine.Backups, an optional interface of stores",
}
