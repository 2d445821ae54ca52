package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/kagzi/kagzi/tui/filter"
)

// durationValue is a flag that takes a duration, days and weeks included.
type durationValue struct{ d *time.Duration }

func duration(d *time.Duration) durationValue { return durationValue{d} }

func (v durationValue) Type() string { return "duration" }

func (v durationValue) String() string {
	if v.d == nil || *v.d == 0 {
		return "" // pflag then shows no default
	}
	return v.d.String()
}

func (v durationValue) Set(s string) error {
	d, err := filter.ParseDuration(s)
	if err != nil {
		return err
	}
	if d < 0 {
		return fmt.Errorf("%q is negative", s)
	}
	*v.d = d
	return nil
}

// millisecondsValue is a duration that requests say in whole milliseconds, where less than one would be none: no limit, or the default.
type millisecondsValue struct{ durationValue }

func milliseconds(d *time.Duration) millisecondsValue { return millisecondsValue{duration(d)} }

func (v millisecondsValue) Set(s string) error {
	err := v.durationValue.Set(s)
	if err == nil && *v.d > 0 && *v.d < time.Millisecond {
		return fmt.Errorf("%q is less than a millisecond", s)
	}
	return err
}

// givenValue is a flag that notes the text that it was given.
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

// pairsValue is a flag k=v that may be given several times.
type pairsValue struct{ m *map[string]string }

func keyValue(m *map[string]string) pairsValue { return pairsValue{m} }

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

// counted is "1 run" or "3 runs".
func counted(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
