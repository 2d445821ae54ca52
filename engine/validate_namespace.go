package engine

import (
	"maps"
	"slices"
	"time"
)

const (
	maxDescription = 1024 // bytes of a namespace's description
	minRetention   = time.Minute
)

// Validate refuses a namespace that breaks a limit, naming the request's field.
func (n *Namespace) Validate() error {
	checks := []error{
		CheckNamespace("namespace", n.Name),
		CheckText("display_name", n.DisplayName, MaxName),
		CheckText("description", n.Description, maxDescription),
		CheckOptionalName("failure_task_queue", n.FailureQueue),
	}
	if n.Retention != 0 {
		checks = append(checks, checkRetention("retention", n.Retention))
	}
	for _, status := range slices.Sorted(maps.Keys(n.Keep)) {
		if !status.Ended() {
			checks = append(checks, Invalid("keep", "holds the status %s, which is no outcome", status))
			continue
		}
		checks = append(checks, checkRetention("keep", n.Keep[status]))
	}
	return firstError(checks)
}

func checkRetention(field string, d time.Duration) error {
	if d < minRetention || d > MaxDelay {
		return Invalid(field, "must be between 1 minute and 10 years, got %s", d)
	}
	return nil
}
