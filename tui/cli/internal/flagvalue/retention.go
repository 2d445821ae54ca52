package flagvalue

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/kagzi/kagzi/proto/query"
	"github.com/kagzi/kagzi/tui/render"
)

// byDefault restores the inherited setting.
const byDefault = "default"

// Retention is a flag for how long ended runs are kept.
type Retention struct{ D time.Duration }

func (v *Retention) Type() string { return "duration" }

func (v *Retention) String() string {
	if v.D == 0 {
		return "" // pflag then shows no default
	}
	return render.Days(v.D)
}

func (v *Retention) Set(s string) error {
	d, err := parseRetention(s)
	v.D = d
	return err
}

// Duration returns nil for the server's setting.
func (v *Retention) Duration() *durationpb.Duration {
	if v.D == 0 {
		return nil
	}
	return durationpb.New(v.D)
}

// parseRetention parses a retention; 0 means "default".
func parseRetention(s string) (time.Duration, error) {
	if s == byDefault {
		return 0, nil
	}
	d, err := query.ParseDuration(s)
	switch {
	case err != nil:
		return 0, err
	case d < 0:
		return 0, fmt.Errorf("%q is negative", s)
	}
	return d, nil
}

// outcomes are the final statuses that may have their own retention.
var outcomes = []string{"completed", "failed", "cancelled", "timed_out", "terminated"}

// Keep is a flag for retentions by outcome: completed=3d,failed=90d. It may be repeated.
type Keep map[string]time.Duration

func (v *Keep) Type() string { return "outcome=duration,..." }

func (v *Keep) String() string {
	var parts []string
	for _, outcome := range slices.Sorted(maps.Keys(*v)) {
		parts = append(parts, outcome+"="+render.Days((*v)[outcome]))
	}
	return strings.Join(parts, ",")
}

func (v *Keep) Set(s string) error {
	for part := range strings.SplitSeq(s, ",") {
		name, length, ok := strings.Cut(strings.TrimSpace(part), "=")
		name = strings.ReplaceAll(strings.ToLower(name), "-", "_")
		if !ok || !slices.Contains(outcomes, name) {
			return fmt.Errorf("%q is not outcome=duration; the outcomes are %s", part, strings.Join(outcomes, ", "))
		}
		d, err := parseRetention(length)
		if err != nil {
			return err
		}
		if old, taken := (*v)[name]; taken && old != d {
			return fmt.Errorf("%s is given twice", name)
		}
		if *v == nil {
			*v = Keep{}
		}
		(*v)[name] = d
	}
	return nil
}

// Over applies the flag to older retentions; "default" removes an outcome.
func (v *Keep) Over(old map[string]*durationpb.Duration) map[string]*durationpb.Duration {
	keep := maps.Clone(old)
	for outcome, d := range *v {
		if d == 0 {
			delete(keep, outcome)
			continue
		}
		if keep == nil {
			keep = map[string]*durationpb.Duration{}
		}
		keep[outcome] = durationpb.New(d)
	}
	return keep
}
