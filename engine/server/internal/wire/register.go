package wire

import (
	"github.com/kagzi/kagzi/engine"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// WorkerOf reads and validates a registration.
func WorkerOf(r *kagziv1.RegisterRequest) (engine.Worker, error) {
	w := engine.Worker{
		ID: r.WorkerId, InstanceID: r.InstanceId, Types: Dedupe(r.WorkflowTypes), Labels: r.Labels,
		Capabilities: r.Capabilities,
		BuildID:      r.BuildId,
		Hostname:     r.Hostname, PID: int(r.Pid), Version: r.Version, Platform: r.Platform,
		PausesRuns:    r.PausesRuns,
		MaxConcurrent: int(r.MaxConcurrent), QueueLimit: int(r.GetQueueConcurrencyLimit()),
		Queues: Dedupe(append([]string{OrDefault(r.TaskQueue)}, r.TaskQueues...)),
	}
	var err error
	if w.Namespace, err = NamespaceOf(r.Namespace); err != nil {
		return w, err
	}
	if w.MaxConcurrent == 0 {
		w.MaxConcurrent = engine.DefaultConcurrent
	}
	if w.TypeLimits, err = typeLimitsOf(r.WorkflowTypeConcurrency); err != nil {
		return w, err
	}
	return w, checkWorker(&w, r)
}

func typeLimitsOf(list []*kagziv1.WorkflowTypeConcurrency) (map[string]int, error) {
	if len(list) > engine.MaxTypes {
		return nil, engine.Invalid("workflow_type_concurrency", "has %d entries, at most %d are allowed", len(list),
			engine.MaxTypes)
	}
	var limits map[string]int
	for _, c := range list {
		if err := engine.CheckName("workflow_type_concurrency.workflow_type", c.WorkflowType); err != nil {
			return nil, err
		}
		if c.MaxConcurrent < 1 || c.MaxConcurrent > engine.MaxConcurrencyLimit {
			return nil, engine.Invalid("workflow_type_concurrency.max_concurrent", "must be between 1 and %d, got %d",
				engine.MaxConcurrencyLimit, c.MaxConcurrent)
		}
		if limits == nil {
			limits = map[string]int{}
		}
		if _, twice := limits[c.WorkflowType]; twice {
			return nil, engine.Invalid("workflow_type_concurrency.workflow_type",
				"%q is named twice; name each type once", c.WorkflowType)
		}
		limits[c.WorkflowType] = int(c.MaxConcurrent)
	}
	return limits, nil
}

func checkWorker(w *engine.Worker, r *kagziv1.RegisterRequest) error {
	switch {
	case len(w.Types) == 0:
		return engine.Invalid("workflow_types", "workflow_types cannot be empty")
	case len(w.Types) > engine.MaxTypes:
		return engine.Invalid("workflow_types", "has %d entries, at most %d are allowed", len(w.Types), engine.MaxTypes)
	case len(w.Queues) > engine.MaxQueues:
		return engine.Invalid("task_queues", "has %d entries, at most %d are allowed", len(w.Queues), engine.MaxQueues)
	case w.MaxConcurrent < 1 || w.MaxConcurrent > engine.MaxConcurrent:
		return engine.Invalid("max_concurrent", "must be between 1 and %d, got %d", engine.MaxConcurrent,
			w.MaxConcurrent)
	case r.KeepsRuns < 0 || r.KeepsRuns > engine.MaxConcurrent:
		return engine.Invalid("keeps_runs", "must be between 0 and %d, got %d", engine.MaxConcurrent, r.KeepsRuns)
	case w.PID < 0:
		return engine.Invalid("pid", "must not be negative, got %d", w.PID)
	case r.QueueConcurrencyLimit != nil && (w.QueueLimit < 1 || w.QueueLimit > engine.MaxConcurrencyLimit):
		return engine.Invalid("queue_concurrency_limit", "must be between 1 and %d, got %d", engine.MaxConcurrencyLimit,
			w.QueueLimit)
	}
	if w.ID != "" {
		if err := engine.CheckWorkerID("worker_id", w.ID); err != nil {
			return err
		}
	}
	checks := []error{
		engine.CheckOptionalName("task_queue", r.TaskQueue),
		engine.CheckOptionalName("instance_id", w.InstanceID),
		engine.CheckBuildID("build_id", w.BuildID),
		engine.CheckText("hostname", w.Hostname, engine.MaxName),
		engine.CheckText("version", w.Version, engine.MaxName),
		engine.CheckText("platform", w.Platform, engine.MaxName),
		engine.CheckLabels("labels", w.Labels),
		engine.CheckCapabilities("capabilities", w.Capabilities),
	}
	for _, name := range w.Types {
		checks = append(checks, engine.CheckName("workflow_types", name))
	}
	for _, name := range w.Queues {
		checks = append(checks, engine.CheckName("task_queues", name))
	}
	for _, err := range checks {
		if err != nil {
			return err
		}
	}
	return nil
}
