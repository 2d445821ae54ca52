// Package settings reads and writes the settings of schedules and namespaces as the texts of a form, and
// says what a form has changed.
package settings

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/proto/query"
	"github.com/kagzi/kagzi/tui/render"
)

const (
	// UsualCatchup is the server's.
	UsualCatchup = 100
	mostCatchup  = 100_000
)

// Field is an input of a form.
type Field struct {
	Name, Label, Note string
	Kind              string // "text", "json", "lines", "number", "choice", "check", "secret"
	Choices           []string
	Required          bool
	More              bool // of the further ones, which a form may fold away
}

// setting is a field of a schedule; each is a flag of `kagzi schedule`, too.
type setting struct {
	Field
	get func(s *kagziv1.WorkflowSchedule) string
	// set reads a value that differs from the one of get.
	set func(s *kagziv1.WorkflowSchedule, text string) error
}

// overlaps are the policies by their words.
var overlaps = map[string]kagziv1.OverlapPolicy{}

// overlapWords has the default first.
var overlapWords = func() []string {
	var words []string
	for _, o := range []kagziv1.OverlapPolicy{kagziv1.OverlapPolicy_OVERLAP_POLICY_ALLOW,
		kagziv1.OverlapPolicy_OVERLAP_POLICY_SKIP, kagziv1.OverlapPolicy_OVERLAP_POLICY_BUFFER_ONE} {
		overlaps[render.Overlap(o)] = o
		words = append(words, render.Overlap(o))
	}
	return words
}()

// settings are all fields of a schedule, the usual ones first.
var settings = slices.Concat([]setting{
	plain(Field{Name: "type", Label: "Type", Kind: "text", Required: true},
		func(s *kagziv1.WorkflowSchedule) *string { return &s.WorkflowType }),
	plain(Field{Name: "queue", Label: "Queue", Kind: "text", Note: `empty means "default"`},
		func(s *kagziv1.WorkflowSchedule) *string { return &s.TaskQueue }),
	plain(Field{Name: "cron", Label: "When", Kind: "text", Required: true,
		Note: "0 9 * * 1-5, or seconds first with six fields, or @hourly"},
		func(s *kagziv1.WorkflowSchedule) *string { return &s.CronExpr }),
	plain(Field{Name: "zone", Label: "Time zone", Kind: "text", Note: "such as Europe/Berlin; empty means UTC"},
		func(s *kagziv1.WorkflowSchedule) *string { return &s.TimeZone }),
	{Field{Name: "input", Label: "Input", Kind: "json", Note: "JSON; empty: none"}, inputText, setInput},
	{Field{Name: "overlap", Label: "Overlap", Kind: "choice", Choices: overlapWords,
		Note: "while a run is active: allow starts another, skip skips the tick, buffer-one keeps one"},
		func(s *kagziv1.WorkflowSchedule) string { return render.Overlap(s.GetOverlapPolicy()) },
		func(s *kagziv1.WorkflowSchedule, text string) error {
			policy, known := overlaps[text]
			if !known {
				return fmt.Errorf("want %s", strings.Join(overlapWords, ", "))
			}
			s.OverlapPolicy = policy
			return nil
		}},
	{Field{Name: "catchup", Label: "Catch up", Kind: "number",
		Note: "most missed ticks to run after downtime; 0 runs none, empty means 100"},
		func(s *kagziv1.WorkflowSchedule) string { return strconv.Itoa(int(s.GetMaxCatchup())) },
		func(s *kagziv1.WorkflowSchedule, text string) error {
			if text == "" {
				s.MaxCatchup = UsualCatchup
				return nil
			}
			return setNumber(&s.MaxCatchup, text, 0, mostCatchup)
		}},
	plain(Field{Name: "name", Label: "Name", Kind: "text", Note: "empty: the schedule has only an id"},
		func(s *kagziv1.WorkflowSchedule) *string { return &s.Name }),
}, furtherSettings())

// furtherSettings are folded away.
func furtherSettings() []setting {
	list := slices.Concat([]setting{
		plain(Field{Name: "version", Label: "Version", Kind: "text", Note: "of the workflow code, for its runs"},
			func(s *kagziv1.WorkflowSchedule) *string { return &s.Version }),
		span(Field{Name: "jitter", Label: "Jitter", Kind: "text",
			Note: "starts each tick's run up to this much later: 30s, at most 24h; empty: none"},
			func(s *kagziv1.WorkflowSchedule) *int64 { return &s.JitterMs }),
		{Field{Name: "tags", Label: "Tags", Kind: "lines", Note: "of its runs: key=value, one on each line"},
			func(s *kagziv1.WorkflowSchedule) string { return tagLines(s.GetTags()) }, setTags},
		plain(Field{Name: "concurrency-key", Label: "Concurrency key", Kind: "text",
			Note: "runs of the type with this key run one at a time, or up to the limit"},
			func(s *kagziv1.WorkflowSchedule) *string { return &s.ConcurrencyKey }),
		number32(Field{Name: "concurrency-limit", Label: limitLabel, Kind: "number", Note: "empty means 1"}, 0,
			func(s *kagziv1.WorkflowSchedule) *int32 { return &s.ConcurrencyLimit }),
		{Field{Name: "concurrency-scope", Label: "Concurrency scope", Kind: "choice", Choices: []string{"slot", "open"},
			Note: "when a run counts: while a worker holds it, or from its first claim to its end"}, scopeText, setScope},
		plain(Field{Name: "on-failure", Label: "On failure", Kind: "text",
			Note: "workflow type to start when the run fails or times out"},
			func(s *kagziv1.WorkflowSchedule) *string { return &s.OnFailureWorkflow }),
		plain(Field{Name: "on-failure-queue", Label: "Queue on failure", Kind: "text", Note: "empty means the run's own"},
			func(s *kagziv1.WorkflowSchedule) *string { return &s.OnFailureTaskQueue }),
	}, timeoutSettings(), policySettings("retry", "Retry", "attempts of steps with the first; -1: no limit, empty means 3",
		func(s *kagziv1.WorkflowSchedule) **kagziv1.RetryPolicy { return &s.RetryPolicy }),
		policySettings("run-retry", "Run retry", "attempts of the run itself; empty means those of Retry, or 1",
			func(s *kagziv1.WorkflowSchedule) **kagziv1.RetryPolicy { return &s.RunRetryPolicy }))
	for i := range list {
		list[i].More = true
	}
	return list
}

func timeoutSettings() []setting {
	at := func(field func(*kagziv1.TimeoutConfig) *int64) func(*kagziv1.WorkflowSchedule) *int64 {
		return func(s *kagziv1.WorkflowSchedule) *int64 {
			s.Timeouts = cmp.Or(s.Timeouts, &kagziv1.TimeoutConfig{})
			return field(s.Timeouts)
		}
	}
	return []setting{
		span(Field{Name: "step-timeout", Label: "Step timeout", Kind: "text", Note: "of one attempt; empty means 10m"},
			at(func(t *kagziv1.TimeoutConfig) *int64 { return &t.StartToCloseTimeoutMs })),
		span(Field{Name: "heartbeat-timeout", Label: "Heartbeat timeout", Kind: "text",
			Note: "empty means the server's setting"},
			at(func(t *kagziv1.TimeoutConfig) *int64 { return &t.HeartbeatTimeoutMs })),
		span(Field{Name: "execution-timeout", Label: "Execution timeout", Kind: "text",
			Note: "of the whole run, from its start time; empty: none"},
			at(func(t *kagziv1.TimeoutConfig) *int64 { return &t.ExecutionTimeoutMs })),
	}
}

// policySettings are the fields of a retry policy.
func policySettings(name, label, attempts string,
	of func(*kagziv1.WorkflowSchedule) **kagziv1.RetryPolicy) []setting {
	policy := func(s *kagziv1.WorkflowSchedule) *kagziv1.RetryPolicy {
		at := of(s)
		*at = cmp.Or(*at, &kagziv1.RetryPolicy{})
		return *at
	}
	return []setting{
		number32(Field{Name: name + "-attempts", Label: label + ": attempts", Kind: "number", Note: attempts}, -1,
			func(s *kagziv1.WorkflowSchedule) *int32 { return &policy(s).MaximumAttempts }),
		span(Field{Name: name + "-initial", Label: label + ": first delay", Kind: "text", Note: "empty means 1s"},
			func(s *kagziv1.WorkflowSchedule) *int64 { return &policy(s).InitialIntervalMs }),
		fraction(Field{Name: name + "-coefficient", Label: label + ": factor", Kind: "text",
			Note: "by which the delay grows; empty means 2"},
			func(s *kagziv1.WorkflowSchedule) *float64 { return &policy(s).BackoffCoefficient }),
		span(Field{Name: name + "-max-interval", Label: label + ": longest delay", Kind: "text", Note: "empty means 1m"},
			func(s *kagziv1.WorkflowSchedule) *int64 { return &policy(s).MaximumIntervalMs }),
		fraction(Field{Name: name + "-jitter", Label: label + ": jitter", Kind: "text",
			Note: "random fraction added to a delay, up to 1; negative for none, empty means 0.1"},
			func(s *kagziv1.WorkflowSchedule) *float64 { return &policy(s).Jitter }),
		{Field{Name: name + "-not", Label: label + ": not for", Kind: "lines",
			Note: "error types, or starts of error messages, one on each line"},
			func(s *kagziv1.WorkflowSchedule) string {
				return strings.Join((*of(s)).GetNonRetryableErrors(), "\n")
			},
			func(s *kagziv1.WorkflowSchedule, text string) error {
				policy(s).NonRetryableErrors = linesOf(text)
				return nil
			}},
	}
}

// plain is a text as it is.
func plain(f Field, at func(*kagziv1.WorkflowSchedule) *string) setting {
	return setting{f, func(s *kagziv1.WorkflowSchedule) string { return *at(s) },
		func(s *kagziv1.WorkflowSchedule, text string) error { *at(s) = text; return nil }}
}

// span is a time in milliseconds; empty is 0.
func span(f Field, at func(*kagziv1.WorkflowSchedule) *int64) setting {
	return setting{f,
		func(s *kagziv1.WorkflowSchedule) string {
			if *at(s) == 0 {
				return ""
			}
			return render.Days(time.Duration(*at(s)) * time.Millisecond)
		},
		func(s *kagziv1.WorkflowSchedule, text string) error {
			*at(s) = 0
			if text == "" {
				return nil
			}
			d, err := query.ParseDuration(text)
			if err != nil || d < 0 || d%time.Millisecond != 0 {
				return errors.New("want a time such as 500ms, 30s or 2h")
			}
			*at(s) = d.Milliseconds()
			return nil
		}}
}

// number32 is a whole number; empty is 0.
func number32(f Field, least int32, at func(*kagziv1.WorkflowSchedule) *int32) setting {
	return setting{f,
		func(s *kagziv1.WorkflowSchedule) string {
			if *at(s) == 0 {
				return ""
			}
			return strconv.Itoa(int(*at(s)))
		},
		func(s *kagziv1.WorkflowSchedule, text string) error {
			*at(s) = 0
			if text == "" {
				return nil
			}
			return setNumber(at(s), text, least, 1<<31-1)
		}}
}

func setNumber(to *int32, text string, least, most int32) error {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || int32(n) < least || int32(n) > most {
		return fmt.Errorf("want a number from %d to %d", least, most)
	}
	*to = int32(n)
	return nil
}

// fraction is a number with decimals; empty is 0.
func fraction(f Field, at func(*kagziv1.WorkflowSchedule) *float64) setting {
	return setting{f,
		func(s *kagziv1.WorkflowSchedule) string {
			if *at(s) == 0 {
				return ""
			}
			return strconv.FormatFloat(*at(s), 'g', -1, 64)
		},
		func(s *kagziv1.WorkflowSchedule, text string) error {
			*at(s) = 0
			if text == "" {
				return nil
			}
			n, err := strconv.ParseFloat(text, 64)
			if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
				return errors.New("want a number such as 0.5 or 2")
			}
			*at(s) = n
			return nil
		}}
}

func inputText(s *kagziv1.WorkflowSchedule) string {
	if plainInput(s.GetInput()) {
		return string(s.GetInput().GetData())
	}
	return ""
}

func setInput(s *kagziv1.WorkflowSchedule, text string) error {
	data, err := JSON(text)
	s.Input = nil
	if data != nil {
		s.Input = &kagziv1.Payload{Data: data, Metadata: map[string]string{"content-type": "application/json"}}
	}
	return err
}

func tagLines(tags map[string]string) string {
	var list []string
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		list = append(list, key+"="+tags[key])
	}
	return strings.Join(list, "\n")
}

func setTags(s *kagziv1.WorkflowSchedule, text string) error {
	s.Tags = map[string]string{}
	for _, line := range linesOf(text) {
		key, value, found := strings.Cut(line, "=")
		if !found || key == "" {
			return fmt.Errorf("want key=value on each line, not %s", strconv.Quote(line))
		}
		s.Tags[key] = value
	}
	return nil
}

// linesOf returns the lines that are not empty.
func linesOf(text string) []string {
	return slices.DeleteFunc(strings.Split(text, "\n"), func(line string) bool { return strings.TrimSpace(line) == "" })
}

func scopeText(s *kagziv1.WorkflowSchedule) string {
	if s.GetConcurrencyScope() == kagziv1.ConcurrencyScope_CONCURRENCY_SCOPE_OPEN {
		return "open"
	}
	return "slot"
}

func setScope(s *kagziv1.WorkflowSchedule, text string) error {
	switch text {
	case "slot":
		s.ConcurrencyScope = kagziv1.ConcurrencyScope_CONCURRENCY_SCOPE_SLOT
	case "open":
		s.ConcurrencyScope = kagziv1.ConcurrencyScope_CONCURRENCY_SCOPE_OPEN
	default:
		return errors.New("want slot or open")
	}
	return nil
}

// trimmed returns a text without space around it. Browsers send lines with CRLF.
func trimmed(s string) string { return strings.TrimSpace(strings.ReplaceAll(s, "\r\n", "\n")) }

// plainInput reports whether an input can be edited as text.
func plainInput(p *kagziv1.Payload) bool {
	return p.GetMetadata()["encoding"] == "" && p.GetMetadata()[withheld] == "" && json.Valid(p.GetData()) &&
		utf8.Valid(p.GetData())
}

// withheld is the metadata of a payload that the caller's role does not see.
const withheld = "kagzi-redacted-bytes"

// JSON checks a text; nil for none.
func JSON(text string) ([]byte, error) {
	if text == "" {
		return nil, nil
	}
	if !json.Valid([]byte(text)) {
		return nil, errors.New("want JSON, such as {\"order\": 7} or \"text\"")
	}
	return []byte(text), nil
}

// ScheduleFields returns the fields of a schedule, the usual ones first.
func ScheduleFields() []Field {
	var list []Field
	for _, one := range settings {
		list = append(list, one.Field)
	}
	return list
}

// OfSchedule returns the values of a schedule's fields.
func OfSchedule(s *kagziv1.WorkflowSchedule) map[string]string {
	values := map[string]string{}
	for _, one := range settings {
		values[one.Name] = one.get(s)
	}
	return values
}

// SetSchedule sets the fields that have a value and differ from the schedule. A value that nobody changed
// is not read, so it need not be one that a form could make. Errors name the label of the field.
func SetSchedule(s *kagziv1.WorkflowSchedule, values map[string]string) error {
	for _, one := range settings {
		value, has := values[one.Name]
		value = trimmed(value)
		if !has || value == trimmed(one.get(s)) {
			continue
		}
		if err := one.set(s, value); err != nil {
			return fmt.Errorf("%s: %w", one.Label, err)
		}
	}
	if s.GetConcurrencyKey() == "" {
		if s.GetConcurrencyLimit() != 0 && trimmed(values["concurrency-limit"]) != "" {
			return fmt.Errorf("%s: it needs a concurrency key", limitLabel)
		}
		s.ConcurrencyLimit, s.ConcurrencyScope = 0, kagziv1.ConcurrencyScope_CONCURRENCY_SCOPE_UNSPECIFIED
	}
	if samePolicy(s.RetryPolicy, nil) { // the fields made it
		s.RetryPolicy = nil
	}
	if samePolicy(s.RunRetryPolicy, nil) {
		s.RunRetryPolicy = nil
	}
	if sameTimeouts(s.Timeouts, nil) {
		s.Timeouts = nil
	}
	return nil
}
