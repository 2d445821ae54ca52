package cron

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// refuse returns an error about the expression.
func refuse(format string, args ...any) error {
	return &Error{Field: "cron_expr", Reason: fmt.Sprintf(format, args...)}
}

// quote returns a part of the user's text for a message: escaped, and cut if it is long.
func quote(text string) string {
	const most = 40
	if len(text) > most {
		return strconv.QuoteToASCII(text[:most]) + "…"
	}
	return strconv.QuoteToASCII(text)
}

// firstYear and lastYear limit the year field; an expression without a year field has no last year.
const (
	firstYear = 1970
	lastYear  = 2100
)

// rule says what a field may hold.
type rule struct {
	name    string
	low     int
	high    int
	top     int           // the end of a value with a step
	kept    func(int) int // converts a written value to the stored one; nil: no conversion
	names   []string      // names of the values from low on
	special func(r *rule, f *field, item string) (bool, error)
	meaning string // the meaning of the bounds, for messages
	allowed string // what the field accepts, for messages
}

const usual = "*, lists, ranges and steps are allowed"

var (
	weekdayNames = []string{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"}
	monthNames   = []string{"JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"}

	seconds     = rule{name: "second", low: 0, high: 59, top: 59, allowed: "0-59; " + usual}
	minutes     = rule{name: "minute", low: 0, high: 59, top: 59, allowed: "0-59; " + usual}
	hours       = rule{name: "hour", low: 0, high: 23, top: 23, allowed: "0-23; " + usual}
	daysOfMonth = rule{name: "day of month", low: 1, high: 31, top: 31, special: dayOfMonthSpecial,
		allowed: "1-31; " + usual + ", and L, 15W, ?"}
	months = rule{name: "month", low: 1, high: 12, top: 12, names: monthNames,
		allowed: "1-12 or JAN-DEC; " + usual}
	years = rule{
		name: "year", low: firstYear, high: lastYear, top: lastYear, kept: func(year int) int {
			return year - firstYear
		},
		allowed: "1970-2100; " + usual,
	}

	// The two dialects number weekdays differently; both store SUN as 0.
	unixWeek = rule{
		name: "day of week", low: 0, high: 7, top: 6, kept: func(day int) int {
			return day % 7
		}, names: weekdayNames, special: dayOfWeekSpecial,
		meaning: " (0 and 7 are SUN)", allowed: "0-7 or SUN-SAT; " + usual + ", and FRIL, FRI#2, ?",
	}
	weekWithSeconds = rule{
		name: "day of week", low: 1, high: 7, top: 7, kept: func(day int) int {
			return day - 1
		}, names: weekdayNames, special: dayOfWeekSpecial,
		meaning: " (with seconds 1 is SUN and 7 is SAT)", allowed: "1-7 or SUN-SAT; " + usual + ", and FRIL, FRI#2, ?",
	}
)

// field holds one parsed field of an expression, with values converted by rule.kept.
type field struct {
	values set
	star   bool // it holds a "*" or is "?"
	whole  bool // it is "*" or "?", or has all values: every value matches
	last   bool // L of a day of month
	near   set  // nW: days of month
	lasts  set  // nL: weekdays
	nth    set  // n#k: weekday + 7*(k-1)
}

// parse parses one field. Its errors name the field and what is allowed in it.
func (r *rule) parse(text string) (field, error) {
	var f field
	if text == "*" || r.wild(text) {
		f.star = true
		r.add(&f, r.low, r.high, 1)
	} else {
		for item := range strings.SplitSeq(text, ",") {
			if err := r.parseItem(&f, item); err != nil {
				return field{}, err
			}
		}
	}
	f.whole = f.values.count() == r.kinds()
	return f, nil
}

// wild says whether text is the "?" of a day field.
func (r *rule) wild(text string) bool { return text == "?" && r.special != nil }

// kinds returns how many different values the field has.
func (r *rule) kinds() int { return r.top - r.low + 1 }

// keep returns the stored value of a written value.
func (r *rule) keep(value int) int {
	if r.kept == nil {
		return value
	}
	return r.kept(value)
}

// add adds low, low+step, … up to high to the field's values.
func (r *rule) add(f *field, low, high, step int) {
	for v := low; v <= high; v += step {
		f.values.add(r.keep(v))
	}
}

// parseItem parses one element of a list into f.
func (r *rule) parseItem(f *field, item string) error {
	if r.special != nil {
		if done, err := r.special(r, f, item); done || err != nil {
			return err
		}
	}
	if item == "*" || r.wild(item) {
		return r.refuse("%s must stand alone, not in a list", item)
	}
	span, stepText, stepped := strings.Cut(item, "/")
	step := 1
	if stepped {
		var ok bool
		if step, ok = number(stepText); !ok || step < 1 || step > r.kinds() {
			return r.refuse("step %s is out of 1-%d", bare(stepText), r.kinds())
		}
	}
	low, high, err := r.span(span, stepped)
	if err != nil {
		return err
	}
	f.star = f.star || span == "*"
	r.add(f, low, high, step)
	return nil
}

// span parses the part before a step: "*", a value, or a range. A value with a step extends to the
// end of the field.
func (r *rule) span(text string, stepped bool) (low, high int, err error) {
	if text == "*" {
		return r.low, r.high, nil
	}
	from, to, ranged := strings.Cut(text, "-")
	if low, err = r.value(from); err != nil {
		return 0, 0, err
	}
	switch {
	case ranged:
		if high, err = r.value(to); err != nil {
			return 0, 0, err
		}
		if high < low {
			return 0, 0, r.refuse("the range %s-%s runs backwards%s; split it in two", from, to, r.meaning)
		}
		return low, high, nil
	case stepped && low > r.top: // day 7 of a Unix week is SUN
		return r.low, r.top, nil
	case stepped:
		return low, r.top, nil
	}
	return low, low, nil
}

// value parses a number or a name.
func (r *rule) value(text string) (int, error) {
	if i := slices.Index(r.names, strings.ToUpper(text)); i >= 0 {
		return r.low + i, nil
	}
	v, ok := number(text)
	switch {
	case !ok:
		return 0, r.refuse("%s is none of %s", quote(text), r.allowed)
	case v < r.low || v > r.high:
		return 0, r.refuse("%s is out of %d-%d%s", text, r.low, r.high, r.meaning)
	}
	return v, nil
}

func (r *rule) refuse(format string, args ...any) error {
	return refuse(r.name+": "+format, args...)
}

// number parses one to four digits.
func number(text string) (int, bool) {
	if text == "" || len(text) > 4 || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(text)
	return n, err == nil
}

// bare returns a number unchanged, and other text quoted.
func bare(text string) string {
	if _, ok := number(text); ok {
		return text
	}
	return quote(text)
}
