package world

import (
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // zones are known on systems without a database of them, too

	"github.com/adhocore/gronx"
)

// ticker says when a cron expression fires in a time zone. It counts on the clock on the wall: of a time that the clock shows twice it
// fires the first, and one that the clock jumps over fires at the jump.
type ticker struct {
	zone *time.Location
	expr string // seven fields; weekdays 0 to 6
	both string // what the day has to match besides, where both of its fields are given in six or seven fields; empty: nothing
}

var macros = map[string]string{
	"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
	"@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}

// fields are those of a full expression, with their lowest and highest number.
var fields = [...]struct {
	name      string
	low, high int
}{{"second", 0, 59}, {"minute", 0, 59}, {"hour", 0, 23}, {"day of month", 1, 31}, {"month", 1, 12}, {"day of week", 0, 7}, {"year", 1970, 9999}}

const maxExpr = 256

// parseCron reads an expression of five, six or seven fields, or a macro, and the name of a zone.
func parseCron(expr, zone string) (*ticker, error) {
	location, err := time.LoadLocation(zone)
	if err != nil || zone == "Local" {
		return nil, invalid("time_zone", "%q is no IANA time zone; names such as Europe/Berlin are, and empty means UTC", cut(zone))
	}
	if len(expr) > maxExpr {
		return nil, invalid("cron_expr", "is %d bytes long, at most %d are allowed", len(expr), maxExpr)
	}
	texts := strings.Fields(strings.ToUpper(expr))
	if len(texts) == 0 {
		return nil, invalid("cron_expr", "must not be empty")
	}
	if strings.HasPrefix(texts[0], "@") {
		five, ok := macros[strings.ToLower(expr)]
		if !ok {
			return nil, invalid("cron_expr", "%q is no macro; @yearly, @annually, @monthly, @weekly, @daily, @midnight and @hourly are", cut(expr))
		}
		texts = strings.Fields(five)
	}
	unix := len(texts) == 5
	switch len(texts) {
	case 5:
		texts = append(append([]string{"0"}, texts...), "*")
	case 6:
		texts = append(texts, "*")
	case 7:
	default:
		return nil, invalid("cron_expr", "must have 5 fields (minute first), 6 (second first) or 7 (second first, year last), got %d", len(texts))
	}
	for i, text := range texts {
		if err := checkField(i, text); err != nil {
			return nil, err
		}
	}
	texts[5] = weekdays(texts[5], unix)
	t := &ticker{zone: location, expr: strings.Join(texts, " ")}
	if !unix && restricted(texts[3]) && restricted(texts[5]) {
		t.both = "* * * * * " + texts[5] + " *"
		texts[5] = "*"
		t.expr = strings.Join(texts, " ")
	}
	if !gronx.New().IsValid(t.expr) || t.both != "" && !gronx.New().IsValid(t.both) {
		return nil, invalid("cron_expr", "%q is no cron expression", cut(expr))
	}
	return t, nil
}

func restricted(field string) bool { return field != "*" && field != "?" }

// checkField refuses numbers that a field does not have; names and the letters L, W and # are left to gronx.
func checkField(i int, text string) error {
	f := fields[i]
	for entry := range strings.SplitSeq(text, ",") {
		span, every, stepped := strings.Cut(entry, "/")
		if n, err := strconv.Atoi(every); stepped && (err != nil || n < 1 || n > f.high) {
			return invalid("cron_expr", "%s: the step %q is not between 1 and %d", f.name, cut(every), f.high)
		}
		last := -1
		for end := range strings.SplitSeq(span, "-") {
			n, err := strconv.Atoi(end)
			if err != nil {
				continue
			}
			if n < f.low || n > f.high {
				return invalid("cron_expr", "%s: %d is not between %d and %d", f.name, n, f.low, f.high)
			}
			if n < last {
				return invalid("cron_expr", "%s: the range %q ends before it begins", f.name, cut(span))
			}
			last = n
		}
	}
	return nil
}

// weekdays turns the numbers of a weekday field into 0 for Sunday to 6: Unix also writes 7 for Sunday, the dialect with seconds 1 to 7.
func weekdays(text string, unix bool) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		alone := (i == 0 || strings.IndexByte(",-", text[i-1]) >= 0) && text[i] >= '0' && text[i] <= '9'
		switch {
		case !alone:
			b.WriteByte(text[i])
		case unix:
			b.WriteByte('0' + (text[i]-'0')%7)
		default:
			b.WriteByte('0' + (text[i]-'0'+6)%7)
		}
	}
	return b.String()
}

// next is the first tick after a moment; false when none comes any more.
func (t *ticker) next(after time.Time) (time.Time, bool) {
	local := after.In(t.zone)
	wall := time.Date(local.Year(), local.Month(), local.Day(), local.Hour(), local.Minute(), local.Second(), 0, time.UTC)
	const tries = 5000 // days of a week and of a month that must meet are at most some years apart
	for range tries {
		n, err := gronx.NextTickAfter(t.expr, wall, false)
		if err != nil || !n.After(wall) {
			return time.Time{}, false
		}
		wall = n
		if t.both != "" {
			if due, err := gronx.New().IsDue(t.both, n); err != nil || !due {
				continue
			}
		}
		tick := t.instant(n)
		if tick.After(after) {
			return tick.UTC(), true
		}
	}
	return time.Time{}, false
}

// instant is when the clock shows a time; of one that it jumps over, the jump.
func (t *ticker) instant(wall time.Time) time.Time {
	tick := time.Date(wall.Year(), wall.Month(), wall.Day(), wall.Hour(), wall.Minute(), wall.Second(), 0, t.zone)
	shown := time.Date(tick.Year(), tick.Month(), tick.Day(), tick.Hour(), tick.Minute(), tick.Second(), 0, time.UTC)
	from, to := tick.ZoneBounds()
	switch {
	case shown.After(wall):
		return from
	case shown.Before(wall):
		return to
	}
	return tick
}
