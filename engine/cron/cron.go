// Package cron parses cron expressions of schedules and computes their ticks.
//
// An expression has five fields as in Unix cron, or six or seven fields:
//
//   - Five: minute, hour, day of month, month, day of week (0 or 7 is SUN). If neither of the two
//     day fields holds a "*", a day matches when one of them does.
//   - Six: the second comes first. Seven: the year comes last too. For both, the day of week counts
//     from 1 (SUN) to 7 (SAT), and a day must match both day fields.
//
// It may also be a name such as @daily, or an interval: "@every 90s", of whole seconds, from 1s to 10
// years. Intervals count from 1970 in UTC, in every time zone.
//
// Names (JAN, MON) mean the same in both forms and are the safer choice. A field is a list of
// values, ranges (a-b) and steps (*/n, a/n, a-b/n). The day of month also accepts L (the last day)
// and 15W (the weekday nearest to the 15th, within the month). The day of week also accepts FRIL
// (the last Friday) and FRI#2 (the second Friday). In both, ? means *.
//
// Ticks are wall-clock times of the schedule's zone. When a clock is put forward, the skipped ticks
// fire once, together, at the time of the jump. When it is put back, an expression that has a
// "*" neither in minute nor in hour fires only in the first pass; any other fires in both.
package cron

import (
	"strings"
	"time"
)

// MaxExpr is the longest expression accepted, in bytes.
const MaxExpr = 256

// Error says what is wrong with an argument of Parse.
type Error struct {
	Field  string // the argument: "cron_expr" or "time_zone"
	Reason string // what is wrong and what is allowed; quotes at most a short part of the user's text
}

func (e *Error) Error() string { return e.Field + ": " + e.Reason }

// Schedule is a validated cron expression in a time zone. It is immutable and safe for concurrent
// use.
type Schedule struct {
	zone                    *time.Location
	expr                    string // the expression for gronx: seven fields of plain numbers in its dialect
	seconds, minutes, hours []int  // ascending
	days                    days
	once                    bool // hour and minute are fixed: a time that occurs twice fires only the first time
	lastWall                int64
	every                   int64 // interval of @every in seconds; 0: the fields above apply
}

// macros maps names to five fields.
var macros = map[string]string{
	"@yearly":   "0 0 1 1 *",
	"@annually": "0 0 1 1 *",
	"@monthly":  "0 0 1 * *",
	"@weekly":   "0 0 * * 0",
	"@daily":    "0 0 * * *",
	"@midnight": "0 0 * * *",
	"@hourly":   "0 * * * *",
}

// Parse validates an expression and an IANA zone name; "" is UTC. The error is an *Error. It
// refuses an expression whose days do not exist, such as 30 February. It accepts one whose years
// have passed, because it does not know the time; then Next returns false.
func Parse(expr, zone string) (*Schedule, error) {
	location, err := loadZone(zone)
	if err != nil {
		return nil, err
	}
	texts, err := split(expr)
	if err != nil {
		return nil, err
	}
	s := &Schedule{zone: location}
	if isEvery(texts[0]) {
		s.every, err = parseEvery(texts)
		if err != nil {
			return nil, err
		}
		return s, nil
	}
	if err := s.parseFields(texts); err != nil {
		return nil, err
	}
	s.expr = s.gronxExpr()
	last, ok := s.days.last()
	if !ok {
		return nil, refuse("never fires: no year has such a day")
	}
	s.lastWall = last*secondsPerDay + secondsPerDay - 1
	return s, nil
}

func isEvery(field string) bool { return strings.EqualFold(field, "@every") }

// split cuts an expression into its fields: five, six or seven, or those of @every.
func split(expr string) ([]string, error) {
	if len(expr) > MaxExpr {
		return nil, refuse("is %d bytes long, at most %d are allowed", len(expr), MaxExpr)
	}
	fields := strings.FieldsFunc(expr, func(r rune) bool { return r == ' ' || r == '\t' })
	if len(fields) == 0 {
		return nil, refuse("must not be empty")
	}
	first := strings.ToUpper(fields[0])
	switch {
	case isEvery(first):
		return fields, nil
	case first[0] == '@' && len(fields) == 1:
		five, ok := macros[strings.ToLower(first)]
		if !ok {
			return nil,
				refuse("%s is no macro; @yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly and "+
					"@every 90s are", quote(fields[0]))
		}
		return strings.Fields(five), nil
	case strings.HasPrefix(first, "TZ=") || strings.HasPrefix(first, "CRON_TZ="):
		return nil, refuse("must not name a time zone; time_zone does")
	case len(fields) < 5 || len(fields) > 7:
		return nil, refuse("must have 5 fields (minute first), 6 (second first) or 7 (second first, year last), got %d",
			len(fields))
	case len(fields) == 6 && yearLike(fields[5]):
		return nil, refuse("ends with a year but has 6 fields; with a year all 7 are needed, second first")
	}
	return fields, nil
}

// yearLike says whether a sixth field looks like a year, which it is in other dialects.
func yearLike(text string) bool {
	return len(text) >= 4 && strings.Trim(text[:4], "0123456789") == ""
}

// parseFields sets the schedule from the texts of its fields.
func (s *Schedule) parseFields(texts []string) error {
	week, unix := &weekWithSeconds, len(texts) == 5
	if unix {
		week = &unixWeek
		texts = append([]string{"0"}, texts...)
	}
	if len(texts) == 6 {
		texts = append(texts, "*")
	}
	rules := [...]*rule{&seconds, &minutes, &hours, &daysOfMonth, &months, week, &years}
	var parsed [len(rules)]field
	for i, r := range rules {
		f, err := r.parse(texts[i])
		if err != nil {
			return err
		}
		parsed[i] = f
	}
	s.seconds, s.minutes, s.hours = parsed[0].values.members(), parsed[1].values.members(), parsed[2].values.members()
	s.once = !parsed[1].star && !parsed[2].star
	dom, dow := parsed[3], parsed[5]
	s.days = days{
		dom: dom, dow: dow,
		months: parsed[4].values, years: parsed[6].values,
		anyYear: parsed[6].star && parsed[6].whole,
		either:  unix && !dom.star && !dow.star,
	}
	return nil
}
