package server

import (
	"strings"

	"github.com/kagzi/kagzi/engine"
)

// rule says who may call a method when keys are asked for, on what, and what becomes of the answer.
type rule struct {
	open    bool  // needs no key at all
	roles   roles // that may call it
	scope   scope // what of the request must be the key's
	redact  bool  // payloads are taken out of the answer to a viewer
	changes bool  // a refusal goes to the audit log
	waits   bool  // a unary call that may wait for long: it ends with its key
	ends    bool  // a stream whose handler ends with its key also when it is stuck in sending or receiving
	asks    bool  // a stream of questions, whose handler knows nothing of the server's stop
}

// roles is a set of them.
type roles uint8

func some(list ...engine.KeyRole) (r roles) {
	for _, role := range list {
		r |= 1 << role
	}
	return r
}

// String lists the roles as people write them.
func (r roles) String() string {
	var names []string
	for role := engine.RoleAdmin; role <= engine.RoleViewer; role++ {
		if r.has(role) {
			names = append(names, role.String())
		}
	}
	return strings.Join(names, ", ")
}

func (r roles) has(role engine.KeyRole) bool { return r&(1<<role) != 0 }

var (
	anybody  = some(engine.RoleAdmin, engine.RoleOperator, engine.RoleClient, engine.RoleWorker, engine.RoleViewer)
	readers  = some(engine.RoleAdmin, engine.RoleOperator, engine.RoleClient, engine.RoleViewer)
	keepers  = some(engine.RoleAdmin, engine.RoleOperator, engine.RoleViewer) // they look after the system
	starters = some(engine.RoleAdmin, engine.RoleOperator, engine.RoleClient)
	steerers = some(engine.RoleAdmin, engine.RoleOperator)
	workers  = some(engine.RoleAdmin, engine.RoleWorker)
	admins   = some(engine.RoleAdmin)
)

// permissions is the one table of who may call what. A method that is not in it is refused to every key.
//
// A client starts, signals, reads and cancels runs: cancelling is the end of what it asked for itself. What repairs or steers (terminate,
// pause, retry, override, pin, bulk, import) is an operator's. A capsule holds the audit log too, so that a client exports none. Starts and
// signals are data rather than steering, and so are the calls of workers: they leave no record in the audit log when they succeed.
var permissions = map[string]rule{
	"/kagzi.v1.WorkflowService/StartWorkflow":           {roles: starters, scope: ofNamespace, changes: true},
	"/kagzi.v1.WorkflowService/StartWorkflows":          {roles: starters, scope: ofEachStart, changes: true},
	"/kagzi.v1.WorkflowService/GetWorkflow":             {roles: readers, scope: ofNamespace, redact: true},
	"/kagzi.v1.WorkflowService/GetWorkflowByExternalId": {roles: readers, scope: ofNamespace, redact: true},
	"/kagzi.v1.WorkflowService/ListWorkflows":           {roles: readers, scope: ofNamespace, redact: true},
	"/kagzi.v1.WorkflowService/WaitWorkflow":            {roles: readers, scope: ofNamespace, redact: true, waits: true},
	"/kagzi.v1.WorkflowService/AwaitWorkflows":          {roles: readers, scope: ofNamespace, redact: true},
	"/kagzi.v1.WorkflowService/WatchWorkflow":           {roles: readers, scope: ofNamespace, redact: true},
	"/kagzi.v1.WorkflowService/CancelWorkflow":          {roles: starters, scope: ofNamespace, changes: true},
	"/kagzi.v1.WorkflowService/TerminateWorkflow":       {roles: steerers, scope: ofNamespace, changes: true},
	"/kagzi.v1.WorkflowService/PauseWorkflow":           {roles: steerers, scope: ofNamespace, changes: true},
	"/kagzi.v1.WorkflowService/ResumeWorkflow":          {roles: steerers, scope: ofNamespace, changes: true},
	"/kagzi.v1.WorkflowService/RetryWorkflow":           {roles: steerers, scope: ofNamespace, changes: true},
	"/kagzi.v1.WorkflowService/OverrideStep":            {roles: steerers, scope: ofNamespace, changes: true},
	"/kagzi.v1.WorkflowService/PinWorkflow":             {roles: steerers, scope: ofNamespace, changes: true},
	"/kagzi.v1.WorkflowService/BulkWorkflows":           {roles: steerers, scope: ofFilter, changes: true},
	"/kagzi.v1.WorkflowService/ImportWorkflow":          {roles: steerers, scope: ofNamespace, changes: true},
	"/kagzi.v1.WorkflowService/ExportWorkflow":          {roles: steerers, scope: ofNamespace},
	"/kagzi.v1.WorkflowService/ExplainWorkflow":         {roles: readers, scope: ofNamespace},
	"/kagzi.v1.WorkflowService/SignalWorkflow":          {roles: starters, scope: ofNamespace, changes: true},
	"/kagzi.v1.WorkflowService/ListSignals":             {roles: readers, scope: ofNamespace, redact: true},

	// What is about a run carries the lease token of whoever was handed it, too.
	"/kagzi.v1.WorkerService/Register":         {roles: workers, scope: whereRead, changes: true},             // register
	"/kagzi.v1.WorkerService/Session":          {roles: workers, scope: whereRead, changes: true, ends: true}, // register, of the hello; the rest is that worker's
	"/kagzi.v1.WorkerService/Heartbeat":        {roles: workers, scope: ofLiveWorker},
	"/kagzi.v1.WorkerService/Deregister":       {roles: workers, scope: ofLiveWorker},
	"/kagzi.v1.WorkerService/PollTask":         {roles: workers, scope: ofNamespace, waits: true}, // and poller, of the worker
	"/kagzi.v1.WorkerService/GetHistory":       {roles: workers, scope: ofServedRun},
	"/kagzi.v1.WorkerService/BeginStep":        {roles: workers, scope: ofNamespace},
	"/kagzi.v1.WorkerService/CompleteStep":     {roles: workers, scope: ofNamespace},
	"/kagzi.v1.WorkerService/FailStep":         {roles: workers, scope: ofNamespace},
	"/kagzi.v1.WorkerService/Sleep":            {roles: workers, scope: ofNamespace},
	"/kagzi.v1.WorkerService/AwaitSignal":      {roles: workers, scope: ofNamespace},
	"/kagzi.v1.WorkerService/StartChild":       {roles: workers, scope: ofChild},
	"/kagzi.v1.WorkerService/AwaitChildren":    {roles: workers, scope: ofNamespace},
	"/kagzi.v1.WorkerService/CompleteWorkflow": {roles: workers, scope: ofNamespace},
	"/kagzi.v1.WorkerService/FailWorkflow":     {roles: workers, scope: ofNamespace},
	"/kagzi.v1.WorkerService/ReleaseTask":      {roles: workers, scope: ofNamespace},
	"/kagzi.v1.WorkerService/SetRunNote":       {roles: workers, scope: whereRead}, // SetRunNote, which tries the key's namespaces

	"/kagzi.v1.AdminService/ListWorkers":        {roles: keepers, scope: ofNamespace},
	"/kagzi.v1.AdminService/GetWorker":          {roles: keepers, scope: ofWorker},
	"/kagzi.v1.AdminService/DrainWorker":        {roles: steerers, scope: ofLiveWorker, changes: true},
	"/kagzi.v1.AdminService/ForceOfflineWorker": {roles: steerers, scope: ofLiveWorker, changes: true},
	"/kagzi.v1.AdminService/GetStep":            {roles: readers, scope: ofNamespace, redact: true},
	"/kagzi.v1.AdminService/ListSteps":          {roles: readers, scope: ofNamespace, redact: true},
	"/kagzi.v1.AdminService/HealthCheck":        {open: true},
	"/kagzi.v1.AdminService/GetServerInfo":      {roles: anybody, scope: ofNothing}, // clients and workers get less of it
	"/kagzi.v1.AdminService/GetStats":           {roles: readers, scope: ofNamespaceOrAll},
	"/kagzi.v1.AdminService/WatchStats":         {roles: readers, scope: ofNamespaceOrAll},
	"/kagzi.v1.AdminService/GetQueueDepth":      {roles: readers, scope: ofNamespace},
	"/kagzi.v1.AdminService/ListWorkflowTypes":  {roles: readers, scope: ofNamespace},
	"/kagzi.v1.AdminService/Backup":             {roles: admins, scope: ofAll},
	"/kagzi.v1.AdminService/CreateKey":          {roles: admins, scope: ofAll, changes: true},
	"/kagzi.v1.AdminService/ListKeys":           {roles: admins, scope: ofAll},
	"/kagzi.v1.AdminService/RevokeKey":          {roles: admins, scope: ofAll, changes: true},
	"/kagzi.v1.AdminService/ListAuditEvents":    {roles: keepers, scope: ofNamespaceOrKeys},
	"/kagzi.v1.AdminService/Watch":              {roles: readers, scope: ofNamespace, redact: true},
	"/kagzi.v1.AdminService/GetActivity":        {roles: admins, scope: ofAll}, // it is of all namespaces together
	"/kagzi.v1.AdminService/WatchEvents":        {roles: admins, scope: ofAll}, // likewise
	"/kagzi.v1.AdminService/WhoAmI":             {roles: anybody, scope: ofNothing},

	"/kagzi.v1.NamespaceService/CreateNamespace":  {roles: admins, scope: ofNamespace, changes: true},
	"/kagzi.v1.NamespaceService/GetNamespace":     {roles: readers, scope: ofNamespace},
	"/kagzi.v1.NamespaceService/ListNamespaces":   {roles: readers, scope: ofNothing}, // the key's own
	"/kagzi.v1.NamespaceService/UpdateNamespace":  {roles: admins, scope: ofNamespace, changes: true},
	"/kagzi.v1.NamespaceService/EnableNamespace":  {roles: admins, scope: ofNamespace, changes: true},
	"/kagzi.v1.NamespaceService/DisableNamespace": {roles: admins, scope: ofNamespace, changes: true},

	"/kagzi.v1.WorkflowScheduleService/CreateWorkflowSchedule":  {roles: steerers, scope: ofNamespace, changes: true},
	"/kagzi.v1.WorkflowScheduleService/GetWorkflowSchedule":     {roles: readers, scope: ofNamespace, redact: true},
	"/kagzi.v1.WorkflowScheduleService/ListWorkflowSchedules":   {roles: readers, scope: ofNamespace, redact: true},
	"/kagzi.v1.WorkflowScheduleService/UpdateWorkflowSchedule":  {roles: steerers, scope: ofNamespace, changes: true},
	"/kagzi.v1.WorkflowScheduleService/DeleteWorkflowSchedule":  {roles: steerers, scope: ofNamespace, changes: true},
	"/kagzi.v1.WorkflowScheduleService/TriggerWorkflowSchedule": {roles: steerers, scope: ofNamespace, changes: true},
	"/kagzi.v1.WorkflowScheduleService/PauseWorkflowSchedule":   {roles: steerers, scope: ofNamespace, changes: true},
	"/kagzi.v1.WorkflowScheduleService/ResumeWorkflowSchedule":  {roles: steerers, scope: ofNamespace, changes: true},
	"/kagzi.v1.WorkflowScheduleService/ListScheduleRuns":        {roles: readers, scope: ofNamespace, redact: true},
	"/kagzi.v1.WorkflowScheduleService/PreviewSchedule":         {roles: readers, scope: ofNothing},

	// They say only whether the server is alive.
	"/grpc.health.v1.Health/Check": {open: true},
	"/grpc.health.v1.Health/List":  {open: true},
	"/grpc.health.v1.Health/Watch": {open: true},

	"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo":      {roles: anybody, scope: ofNothing, asks: true},
	"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo": {roles: anybody, scope: ofNothing, asks: true},
}
