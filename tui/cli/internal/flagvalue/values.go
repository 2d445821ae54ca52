// Package flagvalue implements flag types of the command line: durations, pairs, retention, retries
// and timeouts.
package flagvalue

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/kagzi/kagzi/proto/query"
)

// durationValue is a flag for a duration, which may have days and weeks.
type durationValue struct{ d *time.Duration }

// Duration returns a flag for d.
func Duration(d *time.Duration) durationValue { return durationValue{d} }

func (v durationValue) Type() string { return "duration" }

func (v durationValue) String() string {
	if v.d == nil || *v.d == 0 {
		return "" // pflag then shows no default
	}
	return v.d.String()
}

func (v durationValue) Set(s string) error {
	d, err := query.ParseDuration(s)
	if err != nil {
		return err
	}
	if d < 0 {
		return fmt.Errorf("%q is negative", s)
	}
	*v.d = d
	return nil
}

// millisecondsValue is a duration that is sent in milliseconds. It rejects less than one, which
// would be sent as 0: no limit, or the default.
type millisecondsValue struct{ durationValue }

func milliseconds(d *time.Duration) millisecondsValue { return millisecondsValue{Duration(d)} }

func (v millisecondsValue) Set(s string) error {
	err := v.durationValue.Set(s)
	if err == nil && *v.d > 0 && *v.d < time.Millisecond {
		return fmt.Errorf("%q is less than a millisecond", s)
	}
	return err
}

// GivenDuration returns a flag for d that also stores the value as typed in text.
func GivenDuration(d *time.Duration, text *string) pflag.Value {
	return givenValue{Duration(d), text}
}

type givenValue struct {
	durationValue
	text *string
}

func (v givenValue) Set(s string) error {
	err := v.durationValue.Set(s)
	if err == nil {
		*v.text = s
	}
	return err
}

// pairsValue is a repeatable flag k=v.
type pairsValue struct{ m *map[string]string }

// Pairs returns a flag KEY=VALUE for m.
func Pairs(m *map[string]string) pflag.Value { return pairsValue{m} }

func (v pairsValue) Type() string   { return "key=value" }
func (v pairsValue) String() string { return "" }

func (v pairsValue) Set(s string) error {
	key, value, ok := strings.Cut(s, "=")
	if !ok || key == "" {
		return fmt.Errorf("%q is not key=value", s)
	}
	if old, taken := (*v.m)[key]; taken && old != value {
		return fmt.Errorf("%s is given twice", key)
	}
	if *v.m == nil {
		*v.m = map[string]string{}
	}
	(*v.m)[key] = value
	return nil
}

// Counted is "1 run" or "3 runs".
func Counted(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
