package cron_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/kagzi/kagzi/engine/cron"
)

func TestParseRefusesAndSaysWhy(t *testing.T) {
	for _, c := range []struct{ expr, want string }{
		{"", "must not be empty"},
		{" \t ", "must not be empty"},
		{strings.Repeat("0", cron.MaxExpr+1), "is 257 bytes long, at most 256 are allowed"},
		{"* * * *", "must have 5 fields (minute first), 6 (second first) or 7 (second first, year last), got 4"},
		{"* * * * * * * *",
			"must have 5 fields (minute first), 6 (second first) or 7 (second first, year last), got 8"},
		{"0 0 1 1 * 2027", "ends with a year but has 6 fields; with a year all 7 are needed, second first"},
		{"0 0 1 1 * 2027-2029", "ends with a year but has 6 fields; with a year all 7 are needed, second first"},
		{"@every", "@every needs one duration without spaces, such as @every 90s or @every 1h30m"},
		{"@every 1h 30m", "@every needs one duration without spaces, such as @every 90s or @every 1h30m"},
		{"@Every 5", `"5" is no duration for @every; durations such as 90s and 1h30m are`},
		{"@every \x1b[31m", `"\x1b[31m" is no duration for @every; durations such as 90s and 1h30m are`},
		{"@every 999ms", `@every must be whole seconds between 1s and 87600h (10 years), got "999ms"`},
		{"@every 0s", `@every must be whole seconds between 1s and 87600h (10 years), got "0s"`},
		{"@every -90s", `@every must be whole seconds between 1s and 87600h (10 years), got "-90s"`},
		{"@every 1.5s", `@every must be whole seconds between 1s and 87600h (10 years), got "1.5s"`},
		{"@every 87600h1s", `@every must be whole seconds between 1s and 87600h (10 years), got "87600h1s"`},
		{"@reboot", `"@reboot" is no macro; @yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly and @every 90s are`},
		{"@always", `"@always" is no macro; @yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly and @every 90s are`},
		{"@daily 1", "must have 5 fields (minute first), 6 (second first) or 7 (second first, year last), got 2"},
		{"CRON_TZ=UTC 0 0 * * *", "must not name a time zone; time_zone does"},
		{"TZ=UTC 0 0 * * *", "must not name a time zone; time_zone does"},

		{"60 * * * *", "minute: 60 is out of 0-59"},
		{"61 * * * *", "minute: 61 is out of 0-59"},
		{"0,99 * * * *", "minute: 99 is out of 0-59"},
		{"* 24 * * *", "hour: 24 is out of 0-23"},
		{"* * 0 * *", "day of month: 0 is out of 1-31"},
		{"* * 32 * *", "day of month: 32 is out of 1-31"},
		{"* * * 0 *", "month: 0 is out of 1-12"},
		{"* * * 13 *", "month: 13 is out of 1-12"},
		{"* * * * 8", "day of week: 8 is out of 0-7 (0 and 7 are SUN)"},
		{"* * * * 1,99", "day of week: 99 is out of 0-7 (0 and 7 are SUN)"},
		{"60 * * * * *", "second: 60 is out of 0-59"},
		{"* * * * * 0", "day of week: 0 is out of 1-7 (with seconds 1 is SUN and 7 is SAT)"},
		{"* * * * * 8", "day of week: 8 is out of 1-7 (with seconds 1 is SUN and 7 is SAT)"},
		{"* * * * * * 1969", "year: 1969 is out of 1970-2100"},
		{"* * * * * * 2101", "year: 2101 is out of 1970-2100"},

		{"x * * * *", `minute: "x" is none of 0-59; *, lists, ranges and steps are allowed`},
		{"+5 * * * *", `minute: "+5" is none of 0-59; *, lists, ranges and steps are allowed`},
		{"-5 * * * *", `minute: "" is none of 0-59; *, lists, ranges and steps are allowed`},
		{"0x5 * * * *", `minute: "0x5" is none of 0-59; *, lists, ranges and steps are allowed`},
		{"1.5 * * * *", `minute: "1.5" is none of 0-59; *, lists, ranges and steps are allowed`},
		{"00001 * * * *", `minute: "00001" is none of 0-59; *, lists, ranges and steps are allowed`},
		{"\uff15 * * * *", `minute: "\uff15" is none of 0-59; *, lists, ranges and steps are allowed`},
		{"0\n * * * *", `minute: "0\n" is none of 0-59; *, lists, ranges and steps are allowed`},
		{"\x1b[31m * * * *", `minute: "\x1b[31m" is none of 0-59; *, lists, ranges and steps are allowed`},
		{"\xff\x00 * * * *", `minute: "\xff\x00" is none of 0-59; *, lists, ranges and steps are allowed`},
		{strings.Repeat("y", 50) + " * * * *", `minute: "` + strings.Repeat("y", 40) +
			`"… is none of 0-59; *, lists, ranges and steps are allowed`},
		{"*5 * * * *", `minute: "*5" is none of 0-59; *, lists, ranges and steps are allowed`},
		{"**/5 * * * *", `minute: "**" is none of 0-59; *, lists, ranges and steps are allowed`},
		{"*-5 * * * *", `minute: "*" is none of 0-59; *, lists, ranges and steps are allowed`},
		{"1-2-3 * * * *", `minute: "2-3" is none of 0-59; *, lists, ranges and steps are allowed`},
		{"1,2, * * * *", `minute: "" is none of 0-59; *, lists, ranges and steps are allowed`},
		{"1,,2 * * * *", `minute: "" is none of 0-59; *, lists, ranges and steps are allowed`},
		{"5-3 * * * *", "minute: the range 5-3 runs backwards; split it in two"},
		{"* 22-2 * * *", "hour: the range 22-2 runs backwards; split it in two"},
		{"* * * * FRI-MON", "day of week: the range FRI-MON runs backwards (0 and 7 are SUN); split it in two"},
		{"* * * * * sat-sun",
			"day of week: the range sat-sun runs backwards (with seconds 1 is SUN and 7 is SAT); split it in two"},
		{"*,5 * * * *", "minute: * must stand alone, not in a list"},
		{"* * ?,5 * *", "day of month: ? must stand alone, not in a list"},
		{"? * * * *", `minute: "?" is none of 0-59; *, lists, ranges and steps are allowed`},
		{"* * * ? *", `month: "?" is none of 1-12 or JAN-DEC; *, lists, ranges and steps are allowed`},

		{"*/0 * * * *", "minute: step 0 is out of 1-60"},
		{"*/61 * * * *", "minute: step 61 is out of 1-60"},
		{"*/99 * * * *", "minute: step 99 is out of 1-60"},
		{"* */25 * * *", "hour: step 25 is out of 1-24"},
		{"* * * */13 *", "month: step 13 is out of 1-12"},
		{"* * * * */8", "day of week: step 8 is out of 1-7"},
		{"1/ * * * *", `minute: step "" is out of 1-60`},
		{"1/2/3 * * * *", `minute: step "2/3" is out of 1-60`},
		{"*/-1 * * * *", `minute: step "-1" is out of 1-60`},
		{"70/5 * * * *", "minute: 70 is out of 0-59"},

		{"* * * MARCH *", `month: "MARCH" is none of 1-12 or JAN-DEC; *, lists, ranges and steps are allowed`},
		{"* * * * MONDAY",
			`day of week: "MONDAY" is none of 0-7 or SUN-SAT; *, lists, ranges and steps are allowed, and FRIL, FRI#2, ?`},
		{"* * * MON *", `month: "MON" is none of 1-12 or JAN-DEC; *, lists, ranges and steps are allowed`},
		{"* * JAN * *", `day of month: "JAN" is none of 1-31; *, lists, ranges and steps are allowed, and L, 15W, ?`},

		{"* * LW * *",
			`day of month: "LW" is not supported; L, the last day, and 15W, the weekday nearest to the 15th, are`},
		{"* * L-3 * *",
			`day of month: "L-3" is not supported; L, the last day, and 15W, the weekday nearest to the 15th, are`},
		{"* * W * *", `day of month: "W" is none of 1-31; *, lists, ranges and steps are allowed, and L, 15W, ?`},
		{"* * 99W * *", "day of month: 99 is out of 1-31"},
		{"* * 0W * *", "day of month: 0 is out of 1-31"},
		{"* * 10-15W * *",
			`day of month: "10-15" is none of 1-31; *, lists, ranges and steps are allowed, and L, 15W, ?`},
		{"* * L,45 * *", "day of month: 45 is out of 1-31"},
		{"* * * * L",
			`day of week: "L" is none of 0-7 or SUN-SAT; *, lists, ranges and steps are allowed, and FRIL, FRI#2, ?`},
		{"* * * * 9L", "day of week: 9 is out of 0-7 (0 and 7 are SUN)"},
		{"* * * * 9#9", "day of week: 9 is out of 0-7 (0 and 7 are SUN)"},
		{"* * * * 5#0", "day of week: #0 is out of #1-#5"},
		{"* * * * 5#6", "day of week: #6 is out of #1-#5"},
		{"* * * * 5#", `day of week: #"" is out of #1-#5`},
		{"* * * * #2",
			`day of week: "" is none of 0-7 or SUN-SAT; *, lists, ranges and steps are allowed, and FRIL, FRI#2, ?`},

		{"0 0 30 2 *", "never fires: no year has such a day"},
		{"0 0 31 2,4,6,9,11 *", "never fires: no year has such a day"},
		{"0 0 30W 2 *", "never fires: no year has such a day"},
		{"0 0 0 30 2 MON", "never fires: no year has such a day"},
		{"0 0 0 29 2 ? 2027", "never fires: no year has such a day"},
		{"0 0 0 29 2 ? 2100", "never fires: no year has such a day"},
		{"0 0 0 29 2 MON 2028", "never fires: no year has such a day"},
		{"0 0 0 1 * MON#2", "never fires: no year has such a day"},
		{"0 0 0 ? 2 MON#5 2027", "never fires: no year has such a day"},
	} {
		_, err := cron.Parse(c.expr, "")
		if e, ok := errors.AsType[*cron.Error](err); !ok || e.Field != "cron_expr" || e.Reason != c.want ||
			e.Error() != "cron_expr: "+c.want {
			t.Errorf("Parse(%q):\n got %v\nwant cron_expr: %s", c.expr, err, c.want)
		}
	}
}

func TestParseRefusesWhatIsNoZone(t *testing.T) {
	for _, zone := range []string{
		"Local", "localtime", "posixrules", "Factory", "right/UTC", "right/Europe/Berlin", "posix/Europe/Berlin",
		"Europe", "Europe/Nowhere",
		"../UTC", "/etc/localtime", "Europe/Berlin\x00", "\x1b[31m", "+02:00", "UTC+2", " UTC", "CEST",
		strings.Repeat("z", 300),
	} {
		_, err := cron.Parse("@daily", zone)
		if e, ok := errors.AsType[*cron.Error](err); !ok || e.Field != "time_zone" ||
			!strings.HasSuffix(e.Reason, "is no IANA time zone; names such as Europe/Berlin are, and empty means UTC") {
			t.Errorf("Parse in zone %q: %v", zone, err)
		} else if len(e.Reason) > 200 || strings.ContainsAny(e.Reason, "\x00\x1b") {
			t.Errorf("zone %q reaches the message as it is: %q", zone, e.Reason)
		}
	}
}

func TestParseAcceptsEveryZoneOfTheDatabase(t *testing.T) {
	names := strings.Fields(zoneNames)
	if len(names) < 590 {
		t.Fatalf("%d zones, want all", len(names))
	}
	for _, name := range append(names, "") {
		if _, err := cron.Parse("@daily", name); err != nil {
			t.Error(err)
		}
	}
}

func TestParseAcceptsTheLongestExpression(t *testing.T) {
	expr := "0 0 1 1 *"
	expr += strings.Repeat(" ", cron.MaxExpr-len(expr))
	if _, err := cron.Parse(expr, ""); err != nil {
		t.Error(err)
	}
}

// ticks is the next few ticks as the wall clock of their zone shows them.
func ticks(t *testing.T, expr, zone, after, layout string, n int) []string {
	t.Helper()
	s := parse(t, expr, zone)
	from, err := time.Parse(time.RFC3339Nano, after)
	location, errZone := time.LoadLocation(zone)
	if s == nil || err != nil || errZone != nil {
		t.Fatal(err, errZone)
	}
	var all []string
	for _, tick := range s.NextN(from, n) {
		if tick.Location() != time.UTC || tick.Nanosecond() != 0 {
			t.Errorf("%q ticks at %s, want UTC and whole seconds", expr, tick)
		}
		all = append(all, tick.In(location).Format(layout))
	}
	return all
}

func TestExpressionsMeanWhatTheirDialectSays(t *testing.T) {
	const day, clock = "Mon 2006-01-02", "15:04:05"
	for _, c := range []struct {
		name, expr, layout string
		want               []string // after 2026-01-01T00:00:00Z, a Thursday
	}{
		{"a plain number with five fields counts from SUN 0", "0 0 * * 1", day,
			[]string{"Mon 2026-01-05", "Mon 2026-01-12"}},
		{"with seconds it counts from SUN 1", "0 0 0 * * 1", day, []string{"Sun 2026-01-04", "Sun 2026-01-11"}},
		{"with a year too", "0 0 0 * * 7 *", day, []string{"Sat 2026-01-03", "Sat 2026-01-10"}},
		{"0 is SUN with five fields", "0 0 * * 0", day, []string{"Sun 2026-01-04"}},
		{"7 is SUN too", "0 0 * * 7", day, []string{"Sun 2026-01-04", "Sun 2026-01-11"}},
		{"5-7 ends with SUN", "0 0 * * 5-7", day,
			[]string{"Fri 2026-01-02", "Sat 2026-01-03", "Sun 2026-01-04", "Fri 2026-01-09"}},
		{"names mean the same with five fields", "0 0 * * mon", day, []string{"Mon 2026-01-05"}},
		{"names mean the same with seconds", "0 0 0 * * Mon", day, []string{"Mon 2026-01-05"}},
		{"ranges of names", "0 0 * JUL-AUG FRI-SAT", day, []string{"Fri 2026-07-03", "Sat 2026-07-04"}},
		{"5/1 runs to SAT", "0 0 * * 5/1", day, []string{"Fri 2026-01-02", "Sat 2026-01-03", "Fri 2026-01-09"}},
		{"7/2 begins with SUN", "0 0 * * 7/2", day,
			[]string{"Sat 2026-01-03", "Sun 2026-01-04", "Tue 2026-01-06", "Thu 2026-01-08"}},
		{"either day is enough with five fields", "0 0 13 * FRI", day,
			[]string{"Fri 2026-01-02", "Fri 2026-01-09", "Tue 2026-01-13", "Fri 2026-01-16"}},
		{"both must match when one holds a star", "0 0 */2 * MON", day,
			[]string{"Mon 2026-01-05", "Mon 2026-01-19", "Mon 2026-02-09"}},
		{"an explicit range of all days is no star", "0 0 1-31 * MON", day,
			[]string{"Fri 2026-01-02", "Sat 2026-01-03"}},
		{"both must match with seconds", "0 0 0 13 * FRI", day,
			[]string{"Fri 2026-02-13", "Fri 2026-03-13", "Fri 2026-11-13"}},
		{"? is a star", "0 0 ? * MON", day, []string{"Mon 2026-01-05", "Mon 2026-01-12"}},
		{"L is the last day", "0 0 L * *", day, []string{"Sat 2026-01-31", "Sat 2026-02-28", "Tue 2026-03-31"}},
		{"W is the nearest weekday", "0 0 15W * *", day,
			[]string{"Thu 2026-01-15", "Mon 2026-02-16", "Mon 2026-03-16", "Wed 2026-04-15"}},
		{"W stays in its month", "0 0 1W 8 *", day, []string{"Mon 2026-08-03", "Mon 2027-08-02"}},
		{"W stays in its month at its end", "0 0 31W * *", day,
			[]string{"Fri 2026-01-30", "Tue 2026-03-31", "Fri 2026-05-29"}},
		{"the last FRI", "0 0 * * FRIL", day, []string{"Fri 2026-01-30", "Fri 2026-02-27"}},
		{"5L is FRI with five fields", "0 0 * * 5L", day, []string{"Fri 2026-01-30"}},
		{"5L is THU with seconds", "0 0 0 ? * 5L", day, []string{"Thu 2026-01-29"}},
		{"the second TUE", "0 0 * * TUE#2", day, []string{"Tue 2026-01-13", "Tue 2026-02-10"}},
		{"3#2 is TUE with seconds", "0 0 0 ? * 3#2", day, []string{"Tue 2026-01-13"}},
		{"lists of them", "0 0 * * MON#1,FRI#3", day, []string{"Mon 2026-01-05", "Fri 2026-01-16", "Mon 2026-02-02"}},
		{"a step of years begins at 1970", "0 0 0 1 1 ? */4", day, []string{"Tue 2030-01-01", "Sun 2034-01-01"}},
		{"a leap day is found over 2100", "0 0 0 29 2 MON", day,
			[]string{"Mon 2044-02-29", "Mon 2072-02-29", "Mon 2112-02-29"}},
		{"five fields are at second 0", "*/20 * * * *", clock, []string{"00:20:00", "00:40:00", "01:00:00"}},
		{"a value with a step runs to the end", "40/10 5 * * *", clock, []string{"05:40:00", "05:50:00", "05:40:00"}},
		{"a range with a step", "1-9/4 5 * * *", clock, []string{"05:01:00", "05:05:00", "05:09:00", "05:01:00"}},
		{"a step as long as the field fires once in it", "*/60 */24 * * *", clock, []string{"00:00:00", "00:00:00"}},
		{"a step in a list", "*/30,7 5 * * *", clock, []string{"05:00:00", "05:07:00", "05:30:00", "05:00:00"}},
		{"seconds come first", "10,20 30 5 * * *", clock, []string{"05:30:10", "05:30:20", "05:30:10"}},
		{"zeros may lead", "05 08 * * *", clock, []string{"08:05:00"}},
		{"spaces and tabs part fields", "\t5  8 * *\t* ", clock, []string{"08:05:00"}},
		{"@yearly", "@yearly", day, []string{"Fri 2027-01-01"}},
		{"@annually", "@ANNUALLY", day, []string{"Fri 2027-01-01"}},
		{"@monthly", "@monthly", day, []string{"Sun 2026-02-01", "Sun 2026-03-01"}},
		{"@weekly", "@weekly", day, []string{"Sun 2026-01-04", "Sun 2026-01-11"}},
		{"@daily", "@daily", day, []string{"Fri 2026-01-02", "Sat 2026-01-03"}},
		{"@midnight", "@midnight", clock, []string{"00:00:00"}},
		{"@hourly", " @hourly ", clock, []string{"01:00:00", "02:00:00"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := ticks(t, c.expr, "", "2026-01-01T00:00:00Z", c.layout, len(c.want))
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%q (-want +got):\n%s", c.expr, diff)
			}
		})
	}
}
