package model

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// startFlags returns the flags that are equivalent to a start request.
func startFlags(r *kagziv1.StartWorkflowRequest) []flag {
	flags := payloadFlag("input", r.GetInput())
	flags = append(flags, textFlag("queue", r.GetTaskQueue())...)
	flags = append(flags, textFlag("workflow-version", r.GetVersion())...)
	flags = append(flags, textFlag("external-id", r.GetExternalId())...)
	switch r.GetExternalIdReuse() {
	case kagziv1.ExternalIdReuse_EXTERNAL_ID_REUSE_NEVER:
		flags = append(flags, flag{name: "id-reuse", value: "never"})
	case kagziv1.ExternalIdReuse_EXTERNAL_ID_REUSE_REJECT:
		flags = append(flags, flag{name: "id-reuse", value: "reject"})
	}
	if r.Priority != nil {
		flags = append(flags, numberFlag("priority", int64(r.GetPriority())))
	}
	flags = append(flags, pairFlags("tag", r.GetTags())...)
	flags = append(flags, pairFlags("require", r.GetRequirements())...)
	if r.GetStartIn() != nil {
		flags = append(flags, flag{name: "delay", value: r.GetStartIn().AsDuration().String()})
	} else {
		flags = append(flags, timeFlag("start-at", r.GetStartAt())...)
	}
	flags = append(flags, timeFlag("deadline", r.GetDeadlineAt())...)
	flags = append(flags, policyFlags("retry-", r.GetRetryPolicy(), false)...)
	flags = append(flags, policyFlags("run-retry-", r.GetRunRetryPolicy(), false)...)
	flags = append(flags, timeoutFlags(r.GetTimeouts(), false)...)
	flags = append(flags, textFlag("on-failure", r.GetOnFailureWorkflow())...)
	flags = append(flags, textFlag("on-failure-queue", r.GetOnFailureTaskQueue())...)
	return append(flags, keyFlags(r)...)
}

// keyFlags returns the flags of the concurrency key of a start or a schedule.
func keyFlags(r interface {
	GetConcurrencyKey() string
	GetConcurrencyLimit() int32
	GetConcurrencyScope() kagziv1.ConcurrencyScope
}) []flag {
	flags := textFlag("concurrency-key", r.GetConcurrencyKey())
	if r.GetConcurrencyLimit() != 0 {
		flags = append(flags, numberFlag("concurrency-limit", int64(r.GetConcurrencyLimit())))
	}
	return append(flags, scopeFlag(r.GetConcurrencyScope())...)
}

// scopeFlag returns the flag of the scope of a concurrency key.
func scopeFlag(s kagziv1.ConcurrencyScope) []flag {
	switch s {
	case kagziv1.ConcurrencyScope_CONCURRENCY_SCOPE_SLOT:
		return []flag{{name: "concurrency-scope", value: "slot"}}
	case kagziv1.ConcurrencyScope_CONCURRENCY_SCOPE_OPEN:
		return []flag{{name: "concurrency-scope", value: "open"}}
	}
	return nil
}

func numberFlag(name string, n int64) flag { return flag{name: name, value: strconv.FormatInt(n, 10)} }

func pairFlags(name string, m map[string]string) []flag {
	var flags []flag
	for _, k := range slices.Sorted(maps.Keys(m)) {
		flags = append(flags, flag{name: name, value: k + "=" + m[k]})
	}
	return flags
}

func timeFlag(name string, t *timestamppb.Timestamp) []flag {
	if t == nil {
		return nil
	}
	return []flag{{name: name, value: t.AsTime().UTC().Format(time.RFC3339Nano)}}
}

func millisFlag(name string, ms int64) flag {
	return flag{name: name, value: (time.Duration(ms) * time.Millisecond).String()}
}

// policyFlags returns the flags of a retry policy, whose names begin with prefix. whole adds zero
// values, because they replace old ones.
func policyFlags(prefix string, p *kagziv1.RetryPolicy, whole bool) []flag {
	if p == nil {
		return nil
	}
	var flags []flag
	add := func(zero bool, f flag) {
		if whole || !zero {
			flags = append(flags, f)
		}
	}
	add(p.GetMaximumAttempts() == 0, numberFlag(prefix+"attempts", int64(p.GetMaximumAttempts())))
	add(p.GetInitialIntervalMs() == 0, millisFlag(prefix+"initial", p.GetInitialIntervalMs()))
	add(p.GetBackoffCoefficient() == 0, flag{
		name: prefix + "coefficient", value: strconv.FormatFloat(p.GetBackoffCoefficient(), 'g', -1, 64)})
	add(p.GetMaximumIntervalMs() == 0, millisFlag(prefix+"max-interval", p.GetMaximumIntervalMs()))
	add(p.GetJitter() == 0, flag{name: prefix + "jitter", value: strconv.FormatFloat(p.GetJitter(), 'g', -1, 64)})
	for _, e := range p.GetNonRetryableErrors() {
		flags = append(flags, flag{name: prefix + "not", value: e})
	}
	return flags
}

// timeoutFlags returns the flags of timeouts; whole as in policyFlags.
func timeoutFlags(t *kagziv1.TimeoutConfig, whole bool) []flag {
	if t == nil {
		return nil
	}
	var flags []flag
	for _, each := range []struct {
		name string
		ms   int64
	}{
		{"step-timeout", t.GetStartToCloseTimeoutMs()}, {"heartbeat-timeout", t.GetHeartbeatTimeoutMs()},
		{"execution-timeout", t.GetExecutionTimeoutMs()},
	} {
		if whole || each.ms != 0 {
			flags = append(flags, millisFlag(each.name, each.ms))
		}
	}
	return flags
}

// overlapFlag returns the flag of an overlap policy.
func overlapFlag(p kagziv1.OverlapPolicy) flag {
	words := map[kagziv1.OverlapPolicy]string{
		kagziv1.OverlapPolicy_OVERLAP_POLICY_SKIP:       "skip",
		kagziv1.OverlapPolicy_OVERLAP_POLICY_BUFFER_ONE: "buffer-one",
	}
	word, ok := words[p]
	if !ok {
		word = "allow"
	}
	return flag{name: "overlap", value: word}
}

// createFlags returns the flags that are equivalent to the creation of a schedule.
func createFlags(r *kagziv1.CreateWorkflowScheduleRequest) []flag {
	flags := []flag{{name: "cron", value: r.GetCronExpr()}}
	flags = append(flags, textFlag("zone", r.GetTimeZone())...)
	flags = append(flags, textFlag("queue", r.GetTaskQueue())...)
	flags = append(flags, textFlag("name", r.GetName())...)
	flags = append(flags, optionalFlag("workflow-version", r.Version)...)
	if r.MaxCatchup != nil {
		flags = append(flags, numberFlag("max-catchup", int64(r.GetMaxCatchup())))
	}
	if r.GetOverlapPolicy() != kagziv1.OverlapPolicy_OVERLAP_POLICY_UNSPECIFIED {
		flags = append(flags, overlapFlag(r.GetOverlapPolicy()))
	}
	if r.GetJitterMs() != 0 {
		flags = append(flags, millisFlag("jitter", r.GetJitterMs()))
	}
	flags = append(flags, pairFlags("tag", r.GetTags())...)
	flags = append(flags, payloadFlag("input", r.GetInput())...)
	flags = append(flags, policyFlags("retry-", r.GetRetryPolicy(), false)...)
	flags = append(flags, policyFlags("run-retry-", r.GetRunRetryPolicy(), false)...)
	flags = append(flags, timeoutFlags(r.GetTimeouts(), false)...)
	flags = append(flags, textFlag("on-failure", r.GetOnFailureWorkflow())...)
	flags = append(flags, textFlag("on-failure-queue", r.GetOnFailureTaskQueue())...)
	flags = append(flags, keyFlags(r)...)
	if r.Enabled != nil && !r.GetEnabled() {
		flags = append(flags, flag{name: "disabled", bare: true})
	}
	return flags
}

// updateFlags returns the flags that are equivalent to the update of the schedule old.
func updateFlags(old *kagziv1.WorkflowSchedule, r *kagziv1.UpdateWorkflowScheduleRequest) []flag {
	flags := optionalFlag("cron", r.CronExpr)
	flags = append(flags, optionalFlag("zone", r.TimeZone)...)
	flags = append(flags, optionalFlag("type", r.WorkflowType)...)
	flags = append(flags, optionalFlag("queue", r.TaskQueue)...)
	flags = append(flags, optionalFlag("name", r.Name)...)
	flags = append(flags, optionalFlag("workflow-version", r.Version)...)
	if r.MaxCatchup != nil {
		flags = append(flags, numberFlag("max-catchup", int64(r.GetMaxCatchup())))
	}
	if r.OverlapPolicy != nil {
		flags = append(flags, overlapFlag(r.GetOverlapPolicy()))
	}
	if r.JitterMs != nil {
		flags = append(flags, millisFlag("jitter", r.GetJitterMs()))
	}
	if r.Enabled != nil {
		flags = append(flags, flag{name: "enabled=" + strconv.FormatBool(r.GetEnabled()), bare: true})
	}
	flags = append(flags, timeFlag("next-fire-at", r.GetNextFireAt())...)
	flags = append(flags, payloadFlag("input", r.GetInput())...)
	if r.Tags != nil {
		flags = append(flags, tagChanges(old.GetTags(), r.GetTags().GetTags())...)
	}
	flags = append(flags, policyFlags("retry-", r.GetRetryPolicy(), true)...)
	flags = append(flags, policyFlags("run-retry-", r.GetRunRetryPolicy(), true)...)
	flags = append(flags, timeoutFlags(r.GetTimeouts(), true)...)
	flags = append(flags, optionalFlag("on-failure", r.OnFailureWorkflow)...)
	flags = append(flags, optionalFlag("on-failure-queue", r.OnFailureTaskQueue)...)
	flags = append(flags, optionalFlag("concurrency-key", r.ConcurrencyKey)...)
	if r.ConcurrencyLimit != nil {
		flags = append(flags, numberFlag("concurrency-limit", int64(r.GetConcurrencyLimit())))
	}
	flags = append(flags, scopeFlag(r.GetConcurrencyScope())...)
	return append(flags, reasonFlag(r.GetReason())...)
}

// tagChanges returns the flags that turn old into tags.
func tagChanges(old, tags map[string]string) []flag {
	flags := pairFlags("tag", tags)
	for _, k := range slices.Sorted(maps.Keys(old)) {
		if _, kept := tags[k]; !kept {
			flags = append(flags, flag{name: "untag", value: listed(k)})
		}
	}
	return flags
}

// listed quotes a text as one entry of a flag that takes a list, which is a line of CSV.
func listed(text string) string {
	if !strings.ContainsAny(text, "\",\r\n") {
		return text
	}
	return `"` + strings.ReplaceAll(text, `"`, `""`) + `"`
}

// optionalFlag returns a flag whose value may be empty; none for nil.
func optionalFlag(name string, value *string) []flag {
	if value == nil {
		return nil
	}
	return []flag{{name: name, value: *value}}
}

// retentionFlags returns the flags of how long ended runs are kept.
func retentionFlags(retention *durationpb.Duration, keep map[string]*durationpb.Duration) []flag {
	var flags []flag
	if retention != nil {
		flags = append(flags, flag{name: "retention", value: retention.AsDuration().String()})
	}
	for _, outcome := range slices.Sorted(maps.Keys(keep)) {
		flags = append(flags, flag{name: "keep", value: outcome + "=" + keep[outcome].AsDuration().String()})
	}
	return flags
}
