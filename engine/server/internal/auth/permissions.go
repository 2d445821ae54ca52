package auth

import (
	"strings"

	"github.com/kagzi/kagzi/engine"
)

// rule says who may call a method when keys are asked for, on what, and what becomes of the answer.
type rule struct {
	Open    bool  // needs no key at all
	Roles   roles // that may call it
	Scope   scope // what of the request must be the key's
	Redact  bool  // payloads are taken out of the answer to a viewer
	Changes bool  // a refusal goes to the audit log
	Waits   bool  // a unary call that may wait for long: it ends with its key
	Ends    bool  // a stream whose handler ends with its key also when it is stuck in sending or receiving
	Asks    bool  // a stream of questions, whose handler knows nothing of the server's stop
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
		if r.Has(role) {
			names = append(names, role.String())
		}
	}
	return strings.Join(names, ", ")
}

// Has says whether a role is in the set.
func (r roles) Has(role engine.KeyRole) bool { return r&(1<<role) != 0 }

var (
	anybody  = some(engine.RoleAdmin, engine.RoleOperator, engine.RoleClient, engine.RoleWorker, engine.RoleViewer)
	readers  = some(engine.RoleAdmin, engine.RoleOperator, engine.RoleClient, engine.RoleViewer)
	keepers  = some(engine.RoleAdmin, engine.RoleOperator, engine.RoleViewer) // they look after the system
	starters = some(engine.RoleAdmin, engine.RoleOperator, engine.RoleClient)
	steerers = some(engine.RoleAdmin, engine.RoleOperator)
	workers  = some(engine.RoleAdmin, engine.RoleWorker)
	admins   = some(engine.RoleAdmin)
)

// Permissions is the one table of who may call what. A method that is not in it is refused to every key.
//
// A client starts, signals, reads and cancels runs: cancelling is the end of what it asked for
// itself. What repairs or steers (terminate, pause, retry, override, pin, bulk, import) is an
// operator's. A capsule holds the audit log too, so that a client exports none. Starts and signals
// are data rather than steering, and so are the calls of workers: they leave no record in the audit
// log when they succeed.
var Permissions = map[string]rule{
	"/kagzi.v1.WorkflowService/StartWorkflow":           {Roles: starters, Scope: ofNamespace, Changes: true},
	"/kagzi.v1.WorkflowService/StartWorkflows":          {Roles: starters, Scope: ofEachStart, Changes: true},
	"/kagzi.v1.WorkflowService/GetWorkflow":             {Roles: readers, Scope: ofNamespace, Redact: true},
	"/kagzi.v1.WorkflowService/GetWorkflowByExternalId": {Roles: readers, Scope: ofNamespace, Redact: true},
	"/kagzi.v1.WorkflowService/ListWorkflows":           {Roles: readers, Scope: ofNamespace, Redact: true},
	"/kagzi.v1.WorkflowService/WaitWorkflow": {
		Roles: readers, Scope: ofNamespace, Redact: true, Waits: true},
	"/kagzi.v1.WorkflowService/AwaitWorkflows":    {Roles: readers, Scope: ofNamespace, Redact: true},
	"/kagzi.v1.WorkflowService/WatchWorkflow":     {Roles: readers, Scope: ofNamespace, Redact: true},
	"/kagzi.v1.WorkflowService/CancelWorkflow":    {Roles: starters, Scope: ofNamespace, Changes: true},
	"/kagzi.v1.WorkflowService/TerminateWorkflow": {Roles: steerers, Scope: ofNamespace, Changes: true},
	"/kagzi.v1.WorkflowService/PauseWorkflow":     {Roles: steerers, Scope: ofNamespace, Changes: true},
	"/kagzi.v1.WorkflowService/ResumeWorkflow":    {Roles: steerers, Scope: ofNamespace, Changes: true},
	"/kagzi.v1.WorkflowService/RetryWorkflow":     {Roles: steerers, Scope: ofNamespace, Changes: true},
	"/kagzi.v1.WorkflowService/OverrideStep":      {Roles: steerers, Scope: ofNamespace, Changes: true},
	"/kagzi.v1.WorkflowService/PinWorkflow":       {Roles: steerers, Scope: ofNamespace, Changes: true},
	"/kagzi.v1.WorkflowService/BulkWorkflows":     {Roles: steerers, Scope: ofFilter, Changes: true},
	"/kagzi.v1.WorkflowService/ImportWorkflow":    {Roles: steerers, Scope: ofNamespace, Changes: true},
	"/kagzi.v1.WorkflowService/ExportWorkflow":    {Roles: steerers, Scope: ofNamespace},
	"/kagzi.v1.WorkflowService/ExplainWorkflow":   {Roles: readers, Scope: ofNamespace},
	"/kagzi.v1.WorkflowService/SignalWorkflow":    {Roles: starters, Scope: ofNamespace, Changes: true},
	"/kagzi.v1.WorkflowService/ListSignals":       {Roles: readers, Scope: ofNamespace, Redact: true},

	// What is about a run carries the lease token of whoever was handed it, too.
	// register
	"/kagzi.v1.WorkerService/Register": {Roles: workers, Scope: whereRead, Changes: true},
	// register, of the hello; the rest is that worker's
	"/kagzi.v1.WorkerService/Session":    {Roles: workers, Scope: whereRead, Changes: true, Ends: true},
	"/kagzi.v1.WorkerService/Heartbeat":  {Roles: workers, Scope: ofLiveWorker},
	"/kagzi.v1.WorkerService/Deregister": {Roles: workers, Scope: ofLiveWorker},
	// and poller, of the worker
	"/kagzi.v1.WorkerService/PollTask":         {Roles: workers, Scope: ofNamespace, Waits: true},
	"/kagzi.v1.WorkerService/GetHistory":       {Roles: workers, Scope: ofServedRun},
	"/kagzi.v1.WorkerService/BeginStep":        {Roles: workers, Scope: ofNamespace},
	"/kagzi.v1.WorkerService/CompleteStep":     {Roles: workers, Scope: ofNamespace},
	"/kagzi.v1.WorkerService/FailStep":         {Roles: workers, Scope: ofNamespace},
	"/kagzi.v1.WorkerService/Sleep":            {Roles: workers, Scope: ofNamespace},
	"/kagzi.v1.WorkerService/AwaitSignal":      {Roles: workers, Scope: ofNamespace},
	"/kagzi.v1.WorkerService/StartChild":       {Roles: workers, Scope: ofChild},
	"/kagzi.v1.WorkerService/AwaitChildren":    {Roles: workers, Scope: ofNamespace},
	"/kagzi.v1.WorkerService/CompleteWorkflow": {Roles: workers, Scope: ofNamespace},
	"/kagzi.v1.WorkerService/FailWorkflow":     {Roles: workers, Scope: ofNamespace},
	"/kagzi.v1.WorkerService/ReleaseTask":      {Roles: workers, Scope: ofNamespace},
	// SetRunNote, which tries the key's namespaces
	"/kagzi.v1.WorkerService/SetRunNote": {Roles: workers, Scope: whereRead},

	"/kagzi.v1.AdminService/ListWorkers":        {Roles: keepers, Scope: ofNamespace},
	"/kagzi.v1.AdminService/GetWorker":          {Roles: keepers, Scope: ofWorker},
	"/kagzi.v1.AdminService/DrainWorker":        {Roles: steerers, Scope: ofLiveWorker, Changes: true},
	"/kagzi.v1.AdminService/ForceOfflineWorker": {Roles: steerers, Scope: ofLiveWorker, Changes: true},
	"/kagzi.v1.AdminService/GetStep":            {Roles: readers, Scope: ofNamespace, Redact: true},
	"/kagzi.v1.AdminService/ListSteps":          {Roles: readers, Scope: ofNamespace, Redact: true},
	"/kagzi.v1.AdminService/HealthCheck":        {Open: true},
	// clients and workers get less of it
	"/kagzi.v1.AdminService/GetServerInfo":     {Roles: anybody, Scope: ofNothing},
	"/kagzi.v1.AdminService/GetStats":          {Roles: readers, Scope: ofNamespaceOrAll},
	"/kagzi.v1.AdminService/WatchStats":        {Roles: readers, Scope: ofNamespaceOrAll},
	"/kagzi.v1.AdminService/GetQueueDepth":     {Roles: readers, Scope: ofNamespace},
	"/kagzi.v1.AdminService/ListWorkflowTypes": {Roles: readers, Scope: ofNamespace},
	"/kagzi.v1.AdminService/Backup":            {Roles: admins, Scope: ofAll},
	"/kagzi.v1.AdminService/CreateKey":         {Roles: admins, Scope: ofAll, Changes: true},
	"/kagzi.v1.AdminService/ListKeys":          {Roles: admins, Scope: ofAll},
	"/kagzi.v1.AdminService/RevokeKey":         {Roles: admins, Scope: ofAll, Changes: true},
	"/kagzi.v1.AdminService/ListAuditEvents":   {Roles: keepers, Scope: ofNamespaceOrKeys},
	"/kagzi.v1.AdminService/Watch":             {Roles: readers, Scope: ofNamespace, Redact: true},
	"/kagzi.v1.AdminService/GetActivity":       {Roles: admins, Scope: ofAll}, // it is of all namespaces together
	"/kagzi.v1.AdminService/WatchEvents":       {Roles: admins, Scope: ofAll}, // likewise
	"/kagzi.v1.AdminService/WhoAmI":            {Roles: anybody, Scope: ofNothing},

	"/kagzi.v1.NamespaceService/CreateNamespace":  {Roles: admins, Scope: ofNamespace, Changes: true},
	"/kagzi.v1.NamespaceService/GetNamespace":     {Roles: readers, Scope: ofNamespace},
	"/kagzi.v1.NamespaceService/ListNamespaces":   {Roles: readers, Scope: ofNothing}, // the key's own
	"/kagzi.v1.NamespaceService/UpdateNamespace":  {Roles: admins, Scope: ofNamespace, Changes: true},
	"/kagzi.v1.NamespaceService/EnableNamespace":  {Roles: admins, Scope: ofNamespace, Changes: true},
	"/kagzi.v1.NamespaceService/DisableNamespace": {Roles: admins, Scope: ofNamespace, Changes: true},

	"/kagzi.v1.WorkflowScheduleService/CreateWorkflowSchedule":  {Roles: steerers, Scope: ofNamespace, Changes: true},
	"/kagzi.v1.WorkflowScheduleService/GetWorkflowSchedule":     {Roles: readers, Scope: ofNamespace, Redact: true},
	"/kagzi.v1.WorkflowScheduleService/ListWorkflowSchedules":   {Roles: readers, Scope: ofNamespace, Redact: true},
	"/kagzi.v1.WorkflowScheduleService/UpdateWorkflowSchedule":  {Roles: steerers, Scope: ofNamespace, Changes: true},
	"/kagzi.v1.WorkflowScheduleService/DeleteWorkflowSchedule":  {Roles: steerers, Scope: ofNamespace, Changes: true},
	"/kagzi.v1.WorkflowScheduleService/TriggerWorkflowSchedule": {Roles: steerers, Scope: ofNamespace, Changes: true},
	"/kagzi.v1.WorkflowScheduleService/PauseWorkflowSchedule":   {Roles: steerers, Scope: ofNamespace, Changes: true},
	"/kagzi.v1.WorkflowScheduleService/ResumeWorkflowSchedule":  {Roles: steerers, Scope: ofNamespace, Changes: true},
	"/kagzi.v1.WorkflowScheduleService/ListScheduleRuns":        {Roles: readers, Scope: ofNamespace, Redact: true},
	"/kagzi.v1.WorkflowScheduleService/PreviewSchedule":         {Roles: readers, Scope: ofNothing},

	// They say only whether the server is alive.
	"/grpc.health.v1.Health/Check": {Open: true},
	"/grpc.health.v1.Health/List":  {Open: true},
	"/grpc.health.v1.Health/Watch": {Open: true},

	"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo":      {Roles: anybody, Scope: ofNothing, Asks: true},
	"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo": {Roles: anybody, Scope: ofNothing, Asks: true},
}
