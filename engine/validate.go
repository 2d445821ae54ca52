package engine

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// CheckName returns an error unless name is 1 to MaxName bytes of [A-Za-z0-9._:/-].
func CheckName(field, name string) error {
	if name == "" {
		return Invalid(field, "must not be empty")
	}
	return CheckOptionalName(field, name)
}

// CheckOptionalName is CheckName, but accepts an empty name.
func CheckOptionalName(field, name string) error {
	if len(name) > MaxName {
		return Invalid(field, "is %d bytes long, at most %d are allowed", len(name), MaxName)
	}
	for i := range len(name) {
		if !nameByte(name[i]) {
			return Invalid(field, "may hold only letters, digits and . _ : / - (found %q)", firstRune(name[i:]))
		}
	}
	return nil
}

func nameByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("._:/-", c) >= 0
}

func firstRune(s string) rune {
	r, _ := utf8.DecodeRuneInString(s)
	return r
}

// CheckBranch returns an error unless branch is empty or ordinals of forks, such as 2.1, in at most
// MaxName bytes.
func CheckBranch(field, branch string) error {
	if len(branch) > MaxName {
		return Invalid(field, "is %d bytes long, at most %d are allowed", len(branch), MaxName)
	}
	start := true // of an ordinal
	for i := range len(branch) {
		c := branch[i]
		if c == '.' && start || c == '0' && start || c != '.' && (c < '0' || c > '9') {
			return Invalid(field, "must be ordinals of forks, such as 2.1 (found %q)", firstRune(branch[i:]))
		}
		start = c == '.'
	}
	if branch != "" && start {
		return Invalid(field, "must be ordinals of forks, such as 2.1 (ends with '.')")
	}
	return nil
}

// CheckStepNames returns an error unless these are at most MaxSteps names.
func CheckStepNames(field string, names []string) error {
	if len(names) > MaxSteps {
		return Invalid(field, "names %d steps, at most %d are allowed", len(names), MaxSteps)
	}
	for _, name := range names {
		if err := CheckName(field, name); err != nil {
			return err
		}
	}
	return nil
}

// CheckNamespace returns an error unless name is 1 to MaxNamespace lower-case letters, digits and
// hyphens.
func CheckNamespace(field, name string) error {
	if name == "" || len(name) > MaxNamespace {
		return Invalid(field, "must have 1 to %d characters, got %d", MaxNamespace, len(name))
	}
	for i := range len(name) {
		if c := name[i]; !('a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-') {
			return Invalid(field, "may hold only lower-case letters, digits and hyphens (found %q)",
				firstRune(name[i:]))
		}
	}
	return nil
}

// CheckWorkerID returns an error unless id is 1 to MaxWorkerID letters, digits, '-' and '_'.
func CheckWorkerID(field, id string) error {
	if id == "" || len(id) > MaxWorkerID {
		return Invalid(field, "Invalid worker_id: must have 1 to %d characters, got %d", MaxWorkerID, len(id))
	}
	for i := range len(id) {
		if !workerIDByte(id[i]) {
			return Invalid(field, "Invalid worker_id: may hold only letters, digits, '-' and '_' (found %q)",
				firstRune(id[i:]))
		}
	}
	return nil
}

// CheckBuildID returns an error unless id is empty or 1 to MaxBuildID printable ASCII characters.
func CheckBuildID(field, id string) error {
	if len(id) > MaxBuildID {
		return Invalid(field, "is %d bytes long, at most %d are allowed", len(id), MaxBuildID)
	}
	for i := range len(id) {
		if id[i] < ' ' || id[i] > '~' {
			return Invalid(field, "may hold only printable ASCII characters (found %q)", firstRune(id[i:]))
		}
	}
	return nil
}

func workerIDByte(c byte) bool { return nameByte(c) && strings.IndexByte(".:/", c) < 0 }

// CheckText returns an error if text is longer than limit bytes, is not UTF-8, or holds a NUL,
// which Postgres cannot store.
func CheckText(field, text string, limit int) error {
	if len(text) > limit {
		return Invalid(field, "is %d bytes long, at most %d are allowed", len(text), limit)
	}
	if !utf8.ValidString(text) {
		return Invalid(field, "is not valid UTF-8")
	}
	if strings.IndexByte(text, 0) >= 0 {
		return Invalid(field, "must not hold a NUL character")
	}
	return nil
}

// CheckLabels returns an error unless labels (or tags, …) has at most MaxLabels entries, with names
// of at most MaxLabelKey bytes as keys and text of at most MaxLabelValue bytes as values.
func CheckLabels(field string, labels map[string]string) error {
	return checkPairs(field, labels, MaxLabels, CheckName)
}

// CheckRequirements is CheckLabels for requirements, whose keys may be those of capabilities.
func CheckRequirements(field string, requirements map[string]string) error {
	return checkPairs(field, requirements, MaxLabels, checkCapabilityKey)
}

// CheckCapabilities returns an error unless capabilities has at most MaxCapabilities entries, with
// printable ASCII but '=' and ',' as keys, and otherwise the limits of CheckLabels.
func CheckCapabilities(field string, capabilities map[string]string) error {
	return checkPairs(field, capabilities, MaxCapabilities, checkCapabilityKey)
}

func checkCapabilityKey(field, key string) error {
	if key == "" {
		return Invalid(field, "must not be empty")
	}
	for i := range len(key) {
		if c := key[i]; c < ' ' || c > '~' || c == '=' || c == ',' {
			return Invalid(field, "may hold only printable ASCII other than = and , (found %q)", firstRune(key[i:]))
		}
	}
	return nil
}

func checkPairs(field string, labels map[string]string, most int, checkKey func(field, key string) error) error {
	if len(labels) > most {
		return Invalid(field, "has %d entries, at most %d are allowed", len(labels), most)
	}
	for key, value := range labels {
		if len(key) > MaxLabelKey {
			return Invalid(field, "has a key of %d bytes, at most %d are allowed", len(key), MaxLabelKey)
		}
		if err := checkKey(field+" key", key); err != nil {
			return asField(err, field)
		}
		if err := CheckText(field+"["+key+"]", value, MaxLabelValue); err != nil {
			return asField(err, field)
		}
	}
	return nil
}

// asField returns err with its text, but with the request's field.
func asField(err error, field string) error {
	e := *err.(*Error)
	e.Field = field
	return &e
}

// CheckPayload returns an error if a payload exceeds its limits or its metadata is not text.
func CheckPayload(field string, p Payload) error {
	if n := p.Size(); n > MaxPayload {
		return TooLarge(field, "has %d bytes, at most %d are allowed", n, MaxPayload)
	}
	if len(p.Metadata) > MaxLabels {
		return Invalid(field+".metadata", "has %d entries, at most %d are allowed", len(p.Metadata), MaxLabels)
	}
	size := 0
	for k, v := range p.Metadata {
		size += len(k) + len(v)
		if err := CheckText(field+".metadata", k, MaxMetadata); err != nil {
			return err
		}
		if err := CheckText(field+".metadata", v, MaxMetadata); err != nil {
			return err
		}
	}
	if size > MaxMetadata {
		return Invalid(field+".metadata", "has %d bytes, at most %d are allowed", size, MaxMetadata)
	}
	return nil
}

// CheckDelay returns an error unless d is between MinDelay and MaxDelay.
func CheckDelay(field string, d time.Duration) error {
	if d < MinDelay || d > MaxDelay {
		return Invalid(field, "must be between 1 ms and 10 years, got %s", d)
	}
	return nil
}

// CheckRetryPolicy returns an error if a field of the policy is out of range.
func CheckRetryPolicy(field string, p *RetryPolicy) error {
	switch {
	case p == nil:
		return nil
	case p.MaximumAttempts < -1 || p.MaximumAttempts > MaxRetryAttempts:
		return Invalid(field+".maximum_attempts", "must be -1 (without end), 0 (the default) or 1 to %d, got %d",
			MaxRetryAttempts, p.MaximumAttempts)
	case p.InitialIntervalMS < 0 || p.InitialIntervalMS > MaxDelay.Milliseconds():
		return Invalid(field+".initial_interval_ms", "must be between 0 and 10 years, got %d", p.InitialIntervalMS)
	case p.MaximumIntervalMS < 0 || p.MaximumIntervalMS > MaxDelay.Milliseconds():
		return Invalid(field+".maximum_interval_ms", "must be between 0 and 10 years, got %d", p.MaximumIntervalMS)
	case !(p.Coefficient == 0 || p.Coefficient >= 1 && p.Coefficient <= 1e9): // also refuses NaN
		return Invalid(field+".backoff_coefficient", "must be 0 (the default) or 1 to 1e9, got %v", p.Coefficient)
	case !(p.Jitter >= -math.MaxFloat64 && p.Jitter <= 1): // also refuses NaN
		return Invalid(field+".jitter", "must be at most 1, 0 for the default, negative for none, got %v", p.Jitter)
	case len(p.NonRetryable) > MaxNonRetryable:
		return Invalid(field+".non_retryable_errors", "has %d entries, at most %d are allowed", len(p.NonRetryable),
			MaxNonRetryable)
	}
	for _, entry := range p.NonRetryable {
		if err := CheckText(field+".non_retryable_errors", entry, MaxName); err != nil {
			return err
		}
	}
	return nil
}

// checkTimeouts returns an error if a timeout is out of range; zero means the default.
func checkTimeouts(t Timeouts) error {
	for _, l := range []struct {
		field  string
		length time.Duration
	}{
		{"timeouts.start_to_close_timeout_ms", t.StartToClose},
		{"timeouts.heartbeat_timeout_ms", t.Heartbeat},
		{"timeouts.execution_timeout_ms", t.Execution},
	} {
		if l.length != 0 {
			if err := CheckDelay(l.field, l.length); err != nil {
				return err
			}
		}
	}
	return nil
}

// Validate returns an error that names the request's field if a start exceeds a limit. CreatedAt
// and AvailableAt must be set.
func (s *StartRun) Validate() error { return s.validate(CheckName) }

// ValidateContinuation is Validate for a run that another continues as. Queue and type may be
// empty: they are then those of the other run.
func (s *StartRun) ValidateContinuation() error { return s.validate(CheckOptionalName) }

func (s *StartRun) validate(checkName func(field, name string) error) error {
	checks := []error{
		CheckNamespace("namespace", s.Namespace),
		CheckOptionalName("external_id", s.ExternalID),
		checkName("task_queue", s.Queue),
		checkName("workflow_type", s.Type),
		CheckPayload("input", s.Input),
		CheckOptionalName("version", s.Version),
		CheckRetryPolicy("retry_policy", s.RetryPolicy),
		CheckRetryPolicy("run_retry_policy", s.RunRetryPolicy),
		checkTimeouts(s.Timeouts),
		CheckOptionalName("on_failure_workflow", s.OnFailureWorkflow),
		CheckOptionalName("on_failure_task_queue", s.OnFailureQueue),
		CheckLabels("tags", s.Tags),
		CheckRequirements("requirements", s.Requirements),
		CheckOptionalName("concurrency_key", s.ConcurrencyKey),
		CheckRequestID(s.RequestID),
		CheckText("traceparent", s.Traceparent, MaxName),
		checkParentClose(s.ParentClose),
	}
	return cmp.Or(firstError(checks), s.checkNumbers())
}

// firstError returns the first error that is not nil.
func firstError(checks []error) error {
	for _, err := range checks {
		if err != nil {
			return err
		}
	}
	return nil
}

func checkParentClose(c ParentClose) error {
	if c > CloseTerminate {
		return Invalid("parent_close_policy", "has the unknown value %d", c)
	}
	return nil
}

// CheckReason returns an error if the reason for a change is too long or not text. It may be empty.
func CheckReason(reason string) error { return CheckText("reason", reason, MaxReason) }

// CheckRequestID returns an error unless id is empty (none) or a name of at most MaxRequestID
// bytes.
func CheckRequestID(id string) error {
	if len(id) > MaxRequestID {
		return Invalid("request_id", "is %d bytes long, at most %d are allowed", len(id), MaxRequestID)
	}
	return CheckOptionalName("request_id", id)
}

func (s *StartRun) checkNumbers() error {
	switch {
	case s.Priority < -MaxPriority || s.Priority > MaxPriority:
		return Invalid("priority", "must be between -%d and %d, got %d", MaxPriority, MaxPriority, s.Priority)
	case s.ConcurrencyLimit < 0 || s.ConcurrencyLimit > MaxConcurrencyLimit:
		return Invalid("concurrency_limit", "must be between 0 and %d, got %d", MaxConcurrencyLimit, s.ConcurrencyLimit)
	case s.ConcurrencyLimit > 0 && s.ConcurrencyKey == "":
		return Invalid("concurrency_limit", "needs a concurrency_key")
	case s.ConcurrencyScope > ScopeOpen:
		return Invalid("concurrency_scope", "has the unknown value %d", s.ConcurrencyScope)
	case s.ConcurrencyScope != ScopeSlot && s.ConcurrencyKey == "":
		return Invalid("concurrency_scope", "needs a concurrency_key")
	case s.OnFailureQueue != "" && s.OnFailureWorkflow == "":
		return Invalid("on_failure_task_queue", "needs an on_failure_workflow")
	case s.Reuse > ReuseReject:
		return Invalid("external_id_reuse", "is not a known value")
	case s.AvailableAt.Sub(s.CreatedAt) > MaxDelay:
		return Invalid("start_at", "lies more than 10 years ahead")
	case !s.DeadlineAt.IsZero() && s.DeadlineAt.Before(s.CreatedAt):
		return Invalid("deadline_at", "has already passed")
	case s.DeadlineAt.Sub(s.CreatedAt) > MaxDelay:
		return Invalid("deadline_at", "lies more than 10 years ahead")
	}
	return nil
}

// Validate returns an error that names the request's field if a schedule exceeds a limit. Package
// cron checks its expression and time zone. CreatedAt must be set.
func (s *Schedule) Validate() error {
	checks := []error{
		CheckNamespace("namespace", s.Namespace),
		checkScheduleName(s.Name),
		CheckRequestID(s.RequestID),
	}
	if err := firstError(checks); err != nil {
		return err
	}
	switch {
	case s.MaxCatchup < 0 || s.MaxCatchup > MaxCatchup:
		return Invalid("max_catchup", "must be between 0 (none) and %d, got %d", MaxCatchup, s.MaxCatchup)
	case s.Overlap > OverlapBufferOne:
		return Invalid("overlap_policy", "has the unknown value %d", s.Overlap)
	case s.Jitter < 0 || s.Jitter > MaxJitter:
		return Invalid("jitter_ms", "must be between 0 (none) and %d (24 h), got %d", MaxJitter.Milliseconds(),
			s.Jitter.Milliseconds())
	}
	// All runs that it starts have the same fields as one started now.
	start := s.Start(s.ID, s.CreatedAt, s.CreatedAt)
	return start.Validate()
}

// checkScheduleName also refuses a name that parses as an id, because requests use either.
func checkScheduleName(name string) error {
	if _, err := ParseID(name); err == nil {
		return Invalid("name", "must not look like an id")
	}
	return CheckOptionalName("name", name)
}

const (
	maxDescription = 1024 // bytes of a namespace's description
	minRetention   = time.Minute
)

// Validate returns an error that names the request's field if a namespace exceeds a limit.
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
			checks = append(checks, Invalid("keep", "holds the status %s, with which no run ends", status))
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
