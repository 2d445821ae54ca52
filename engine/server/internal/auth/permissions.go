package auth

import (
	"strings"

	"github.com/kagzi/kagzi/engine"
)

// rule says who may call a method if calls need a key, and how the call is handled.
type rule struct {
	NoKey       bool  // needs no key
	Roles       roles // roles that may call it
	Scope       scope // checks that the key is for what the request is about
	Redact      bool  // viewers get the answer without payloads
	Changes     bool  // a refusal is recorded in the audit log
	LongPoll    bool  // a unary call that may wait for long: it ends with its key
	EndsItself  bool  // a stream whose handler ends with its key even while it sends or receives
	IgnoresStop bool  // a stream whose handler does not watch for the server's stop
}

// roles is a set of roles.
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
	anyRole   = some(engine.RoleAdmin, engine.RoleOperator, engine.RoleClient, engine.RoleWorker, engine.RoleViewer)
	readers   = some(engine.RoleAdmin, engine.RoleOperator, engine.RoleClient, engine.RoleViewer)
	monitors  = some(engine.RoleAdmin, engine.RoleOperator, engine.RoleViewer) // may see how the system is set up
	starters  = some(engine.RoleAdmin, engine.RoleOperator, engine.RoleClient)
	operators = some(engine.RoleAdmin, engine.RoleOperator)
	workers   = some(engine.RoleAdmin, engine.RoleWorker)
	admins    = some(engine.RoleAdmin)
)

// Permissions says which roles may call which method. A method that is not in it is refused to
// every key.
//
// Clients start, signal, read and cancel runs; they may cancel because they asked for the run.
// Operators may also terminate, pause, retry, override, pin, bulk-change, import and export runs.
// Clients may not export, because a capsule holds audit events. Starts, signals and the calls of
// workers leave no record in the audit log when they succeed.
var Permissions = map[string]rule{
	"/kagzi.v1.WorkflowService/StartWorkflow":           {Roles: starters, Scope: forNamespace, Changes: true},
	"/kagzi.v1.WorkflowService/StartWorkflows":          {Roles: starters, Scope: forEachStart, Changes: true},
	"/kagzi.v1.WorkflowService/GetWorkflow":             {Roles: readers, Scope: forNamespace, Redact: true},
	"/kagzi.v1.WorkflowService/GetWorkflowByExternalId": {Roles: readers, Scope: forNamespace, Redact: true},
	"/kagzi.v1.WorkflowService/ListWorkflows":           {Roles: readers, Scope: forNamespace, Redact: true},
	"/kagzi.v1.WorkflowService/WaitWorkflow": {
		Roles: readers, Scope: forNamespace, Redact: true, LongPoll: true},
	"/kagzi.v1.WorkflowService/AwaitWorkflows":    {Roles: readers, Scope: forNamespace, Redact: true},
	"/kagzi.v1.WorkflowService/WatchWorkflow":     {Roles: readers, Scope: forNamespace, Redact: true},
	"/kagzi.v1.WorkflowService/CancelWorkflow":    {Roles: starters, Scope: forNamespace, Changes: true},
	"/kagzi.v1.WorkflowService/TerminateWorkflow": {Roles: operators, Scope: forNamespace, Changes: true},
	"/kagzi.v1.WorkflowService/PauseWorkflow":     {Roles: operators, Scope: forNamespace, Changes: true},
	"/kagzi.v1.WorkflowService/ResumeWorkflow":    {Roles: operators, Scope: forNamespace, Changes: true},
	"/kagzi.v1.WorkflowService/RetryWorkflow":     {Roles: operators, Scope: forNamespace, Changes: true},
	"/kagzi.v1.WorkflowService/OverrideStep":      {Roles: operators, Scope: forNamespace, Changes: true},
	"/kagzi.v1.WorkflowService/PinWorkflow":       {Roles: operators, Scope: forNamespace, Changes: true},
	"/kagzi.v1.WorkflowService/BulkWorkflows":     {Roles: operators, Scope: forFilter, Changes: true},
	"/kagzi.v1.WorkflowService/ImportWorkflow":    {Roles: operators, Scope: forNamespace, Changes: true},
	"/kagzi.v1.WorkflowService/ExportWorkflow":    {Roles: operators, Scope: forNamespace},
	"/kagzi.v1.WorkflowService/ExplainWorkflow":   {Roles: readers, Scope: forNamespace},
	"/kagzi.v1.WorkflowService/SignalWorkflow":    {Roles: starters, Scope: forNamespace, Changes: true},
	"/kagzi.v1.WorkflowService/ListSignals":       {Roles: readers, Scope: forNamespace, Redact: true},

	// Calls about a run also need its lease token. The handlers of Register and Session check the
	// key against the worker's registration.
	"/kagzi.v1.WorkerService/Register":   {Roles: workers, Scope: leftToHandler, Changes: true},
	"/kagzi.v1.WorkerService/Session":    {Roles: workers, Scope: leftToHandler, Changes: true, EndsItself: true},
	"/kagzi.v1.WorkerService/Heartbeat":  {Roles: workers, Scope: forLiveWorker},
	"/kagzi.v1.WorkerService/Deregister": {Roles: workers, Scope: forLiveWorker},
	// the handler also checks the worker
	"/kagzi.v1.WorkerService/PollTask":         {Roles: workers, Scope: forNamespace, LongPoll: true},
	"/kagzi.v1.WorkerService/GetHistory":       {Roles: workers, Scope: forServedRun},
	"/kagzi.v1.WorkerService/BeginStep":        {Roles: workers, Scope: forNamespace},
	"/kagzi.v1.WorkerService/CompleteStep":     {Roles: workers, Scope: forNamespace},
	"/kagzi.v1.WorkerService/FailStep":         {Roles: workers, Scope: forNamespace},
	"/kagzi.v1.WorkerService/Sleep":            {Roles: workers, Scope: forNamespace},
	"/kagzi.v1.WorkerService/AwaitSignal":      {Roles: workers, Scope: forNamespace},
	"/kagzi.v1.WorkerService/StartChild":       {Roles: workers, Scope: forChild},
	"/kagzi.v1.WorkerService/AwaitChildren":    {Roles: workers, Scope: forNamespace},
	"/kagzi.v1.WorkerService/CompleteWorkflow": {Roles: workers, Scope: forNamespace},
	"/kagzi.v1.WorkerService/FailWorkflow":     {Roles: workers, Scope: forNamespace},
	"/kagzi.v1.WorkerService/ReleaseTask":      {Roles: workers, Scope: forNamespace},
	// the handler tries the key's namespaces
	"/kagzi.v1.WorkerService/SetRunNote": {Roles: workers, Scope: leftToHandler},

	"/kagzi.v1.AdminService/ListWorkers":        {Roles: monitors, Scope: forNamespace},
	"/kagzi.v1.AdminService/GetWorker":          {Roles: monitors, Scope: forWorker},
	"/kagzi.v1.AdminService/MatchWorkers":       {Roles: monitors, Scope: forNamespace},
	"/kagzi.v1.AdminService/DrainWorker":        {Roles: operators, Scope: forLiveWorker, Changes: true},
	"/kagzi.v1.AdminService/ForceOfflineWorker": {Roles: operators, Scope: forLiveWorker, Changes: true},
	"/kagzi.v1.AdminService/GetStep":            {Roles: readers, Scope: forNamespace, Redact: true},
	"/kagzi.v1.AdminService/ListSteps":          {Roles: readers, Scope: forNamespace, Redact: true},
	"/kagzi.v1.AdminService/HealthCheck":        {NoKey: true},
	// clients and workers get a shorter answer
	"/kagzi.v1.AdminService/GetServerInfo":     {Roles: anyRole, Scope: forNone},
	"/kagzi.v1.AdminService/GetStats":          {Roles: readers, Scope: forNamespaceOrAll},
	"/kagzi.v1.AdminService/WatchStats":        {Roles: readers, Scope: forNamespaceOrAll},
	"/kagzi.v1.AdminService/GetQueueDepth":     {Roles: readers, Scope: forNamespace},
	"/kagzi.v1.AdminService/ListWorkflowTypes": {Roles: readers, Scope: forNamespace},
	"/kagzi.v1.AdminService/Backup":            {Roles: admins, Scope: forAll},
	"/kagzi.v1.AdminService/CreateKey":         {Roles: admins, Scope: forAll, Changes: true},
	"/kagzi.v1.AdminService/ListKeys":          {Roles: admins, Scope: forAll},
	"/kagzi.v1.AdminService/RevokeKey":         {Roles: admins, Scope: forAll, Changes: true},
	"/kagzi.v1.AdminService/CreateHook":        {Roles: operators, Scope: forNamespace, Changes: true},
	"/kagzi.v1.AdminService/GetHook":           {Roles: monitors, Scope: forNamespace},
	"/kagzi.v1.AdminService/ListHooks":         {Roles: monitors, Scope: forNamespace},
	"/kagzi.v1.AdminService/RotateHook":        {Roles: operators, Scope: forNamespace, Changes: true},
	"/kagzi.v1.AdminService/DeleteHook":        {Roles: operators, Scope: forNamespace, Changes: true},
	"/kagzi.v1.AdminService/ListAuditEvents":   {Roles: monitors, Scope: forNamespaceOrKeys},
	"/kagzi.v1.AdminService/Watch":             {Roles: readers, Scope: forNamespace, Redact: true},
	"/kagzi.v1.AdminService/GetActivity":       {Roles: admins, Scope: forAll}, // of all namespaces together
	"/kagzi.v1.AdminService/WatchEvents":       {Roles: admins, Scope: forAll}, // of all namespaces together
	"/kagzi.v1.AdminService/WhoAmI":            {Roles: anyRole, Scope: forNone},
	"/kagzi.v1.AdminService/CreateSession":     {Roles: readers, Scope: forNone, Changes: true},
	"/kagzi.v1.AdminService/EndSession":        {Roles: readers, Scope: forNone, Changes: true},

	"/kagzi.v1.NamespaceService/CreateNamespace":  {Roles: admins, Scope: forNamespace, Changes: true},
	"/kagzi.v1.NamespaceService/GetNamespace":     {Roles: readers, Scope: forNamespace},
	"/kagzi.v1.NamespaceService/ListNamespaces":   {Roles: readers, Scope: forNone}, // only the key's namespaces
	"/kagzi.v1.NamespaceService/UpdateNamespace":  {Roles: admins, Scope: forNamespace, Changes: true},
	"/kagzi.v1.NamespaceService/EnableNamespace":  {Roles: admins, Scope: forNamespace, Changes: true},
	"/kagzi.v1.NamespaceService/DisableNamespace": {Roles: admins, Scope: forNamespace, Changes: true},
	"/kagzi.v1.NamespaceService/DeleteNamespace":  {Roles: admins, Scope: forNamespace, Changes: true},

	"/kagzi.v1.WorkflowScheduleService/CreateWorkflowSchedule":   {Roles: operators, Scope: forNamespace, Changes: true},
	"/kagzi.v1.WorkflowScheduleService/GetWorkflowSchedule":      {Roles: readers, Scope: forNamespace, Redact: true},
	"/kagzi.v1.WorkflowScheduleService/ListWorkflowSchedules":    {Roles: readers, Scope: forNamespace, Redact: true},
	"/kagzi.v1.WorkflowScheduleService/UpdateWorkflowSchedule":   {Roles: operators, Scope: forNamespace, Changes: true},
	"/kagzi.v1.WorkflowScheduleService/DeleteWorkflowSchedule":   {Roles: operators, Scope: forNamespace, Changes: true},
	"/kagzi.v1.WorkflowScheduleService/TriggerWorkflowSchedule":  {Roles: operators, Scope: forNamespace, Changes: true},
	"/kagzi.v1.WorkflowScheduleService/BackfillWorkflowSchedule": {Roles: operators, Scope: forNamespace, Changes: true},
	"/kagzi.v1.WorkflowScheduleService/PauseWorkflowSchedule":    {Roles: operators, Scope: forNamespace, Changes: true},
	"/kagzi.v1.WorkflowScheduleService/ResumeWorkflowSchedule":   {Roles: operators, Scope: forNamespace, Changes: true},
	"/kagzi.v1.WorkflowScheduleService/ListScheduleRuns":         {Roles: readers, Scope: forNamespace, Redact: true},
	"/kagzi.v1.WorkflowScheduleService/PreviewSchedule":          {Roles: readers, Scope: forNone},

	// These say only whether the server is alive.
	"/grpc.health.v1.Health/Check": {NoKey: true},
	"/grpc.health.v1.Health/List":  {NoKey: true},
	"/grpc.health.v1.Health/Watch": {NoKey: true},

	"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo": {
		Roles: anyRole, Scope: forNone, IgnoresStop: true},
	"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo": {
		Roles: anyRole, Scope: forNone, IgnoresStop: true},
}
