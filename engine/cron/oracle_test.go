package cron_test

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// The oracle says when an expression ticks without sharing a line with the package: it reads
// expressions with a parser of its own, and watches a clock on the wall minute by minute around
// each change of a zone. Valid expressions only.

// What the oracle knows: a little more than anything asks for.
var oracleFirst, oracleLast = time.Date(1999, 12, 1, 0, 0, 0, 0, time.UTC), time.Date(2038, 2, 1, 0, 0, 0, 0, time.UTC)

// oracleDay numbers days from oracleFirst.
func oracleDay(unix int64) int64 { return (unix - oracleFirst.Unix()) / 86400 }

// oracle is one expression.
type oracle struct {
	second, minute, hour, dom, month, dow map[int]bool
	year                                  map[int]bool // nil is any
	lastOfMonth                           bool
	near                                  []int // nW
	lastDow                               map[int]bool
	nth                                   map[[2]int]bool // weekday, n
	either                                bool
	fixed                                 bool

	day        []bool // per oracleDay
	hourMinute [24][60]bool
	seconds    []int64 // within a minute
	times      []int64 // within a day
}

var oracleMacros = map[string]string{
	"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
	"@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}

func newOracle(expr string) *oracle {
	if five, ok := oracleMacros[strings.ToLower(expr)]; ok {
		expr = five
	}
	parts := strings.Fields(strings.ToUpper(expr))
	unix := len(parts) == 5
	if unix {
		parts = append([]string{"0"}, parts...)
	}
	o := &oracle{lastDow: map[int]bool{}, nth: map[[2]int]bool{}}
	o.second, o.minute, o.hour = oracleValues(parts[0], 0, 59), oracleValues(parts[1], 0, 59),
		oracleValues(parts[2], 0, 23)
	o.readDom(parts[3])
	months := strings.NewReplacer("JAN", "1", "FEB", "2", "MAR", "3", "APR", "4", "MAY", "5", "JUN", "6",
		"JUL", "7", "AUG", "8", "SEP", "9", "OCT", "10", "NOV", "11", "DEC", "12")
	o.month = oracleValues(months.Replace(parts[4]), 1, 12)
	o.readDow(parts[5], unix)
	if len(parts) == 7 && parts[6] != "*" {
		o.year = oracleValues(parts[6], 1970, 2100)
	}
	free := func(text string) bool { return strings.ContainsAny(text, "*?") }
	o.either = unix && !free(parts[3]) && !free(parts[5])
	o.fixed = !free(parts[1]) && !free(parts[2])
	o.precompute()
	return o
}

// oracleValues reads lists, ranges and steps of numbers.
func oracleValues(text string, low, high int) map[int]bool {
	values := map[int]bool{}
	for _, item := range strings.Split(text, ",") {
		span, step, stepped := strings.Cut(item, "/")
		from, to, by := low, high, 1
		if stepped {
			by, _ = strconv.Atoi(step)
		}
		if a, b, ranged := strings.Cut(span, "-"); ranged {
			from, _ = strconv.Atoi(a)
			to, _ = strconv.Atoi(b)
		} else if span != "*" && span != "?" {
			from, _ = strconv.Atoi(a)
			if !stepped {
				to = from
			}
		}
		for v := from; v <= to; v += by {
			values[v] = true
		}
	}
	return values
}

func (o *oracle) readDom(text string) {
	var plain []string
	for _, item := range strings.Split(text, ",") {
		if item == "L" {
			o.lastOfMonth = true
		} else if n, ok := strings.CutSuffix(item, "W"); ok {
			day, _ := strconv.Atoi(n)
			o.near = append(o.near, day)
		} else {
			plain = append(plain, item)
		}
	}
	o.dom = map[int]bool{}
	if plain != nil {
		o.dom = oracleValues(strings.Join(plain, ","), 1, 31)
	}
}

func (o *oracle) readDow(text string, unix bool) {
	first, low, high := 0, 0, 6
	if !unix {
		first, low, high = 1, 1, 7
	}
	for i, name := range []string{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"} {
		text = strings.ReplaceAll(text, name, strconv.Itoa(i+first))
	}
	weekday := func(number string) int {
		n, _ := strconv.Atoi(number)
		return (n - first) % 7
	}
	o.dow = map[int]bool{}
	for _, item := range strings.Split(text, ",") {
		if day, n, ok := strings.Cut(item, "#"); ok {
			nth, _ := strconv.Atoi(n)
			o.nth[[2]int{weekday(day), nth}] = true
		} else if day, ok := strings.CutSuffix(item, "L"); ok {
			o.lastDow[weekday(day)] = true
		} else {
			if rest, ok := strings.CutPrefix(item, "7/"); ok && unix {
				item = "0/" + rest // a week that begins with its 7th day begins with SUN
			}
			for v := range oracleValues(item, low, high) {
				o.dow[(v-first)%7] = true
			}
		}
	}
}

func (o *oracle) precompute() {
	for date := oracleFirst; date.Before(oracleLast); date = date.AddDate(0, 0, 1) {
		o.day = append(o.day, o.fires(date))
	}
	for s := range 60 {
		if o.second[s] {
			o.seconds = append(o.seconds, int64(s))
		}
	}
	for h := range 24 {
		for m := range 60 {
			if o.hour[h] && o.minute[m] {
				o.hourMinute[h][m] = true
				for _, s := range o.seconds {
					o.times = append(o.times, int64(h*3600+m*60)+s)
				}
			}
		}
	}
}

// fires is true when the expression's fields for days match a date.
func (o *oracle) fires(date time.Time) bool {
	if !o.month[int(date.Month())] || o.year != nil && !o.year[date.Year()] {
		return false
	}
	sameMonth := func(other time.Time) bool { return other.Month() == date.Month() }
	weekday, week := int(date.Weekday()), 1
	for sameMonth(date.AddDate(0, 0, -7*week)) {
		week++
	}
	dom := o.dom[date.Day()] || o.lastOfMonth && !sameMonth(date.AddDate(0, 0, 1))
	for _, n := range o.near {
		nth := time.Date(date.Year(), date.Month(), n, 0, 0, 0, 0, time.UTC)
		if !sameMonth(nth) {
			continue
		}
		for _, away := range []int{0, -1, 1, -2, 2} {
			day := nth.AddDate(0, 0, away)
			if sameMonth(day) && day.Weekday() != time.Saturday && day.Weekday() != time.Sunday {
				dom = dom || day.Equal(date)
				break
			}
		}
	}
	dow := o.dow[weekday] || o.nth[[2]int{weekday, week}] || o.lastDow[weekday] && !sameMonth(date.AddDate(0, 0, 7))
	if o.either {
		return dom || dow
	}
	return dom && dow
}

// clock is a zone as the oracle sees it: where its offset changes, and what the wall clock shows
// around each change.
type clock struct {
	name    string
	zone    *time.Location
	first   int64 // offset before the first change
	changes []change
}

type change struct {
	at, after int64 // the instant, and the offset from then on
	by        int64 // how far the clock is put forward, back if negative
	from, to  int64 // the instants that faces covers, one per minute
	faces     []face
}

// face is what the wall clock shows at one instant.
type face struct {
	minutes      int64 // since oracleFirst
	hour, minute int
}

// newClock finds a zone's changes of offset by looking at it every so many seconds, and then
// closer.
func newClock(name string, every int64) *clock {
	zone, err := time.LoadLocation(name)
	if err != nil {
		panic(err)
	}
	offset := func(unix int64) int64 {
		_, seconds := time.Unix(unix, 0).In(zone).Zone()
		return int64(seconds)
	}
	begin, end := oracleFirst.Unix()+3*86400, oracleLast.Unix()-3*86400
	c := &clock{name: name, zone: zone, first: offset(begin)}
	current := c.first
	for unix := begin; unix < end; unix += every {
		next := offset(unix + every)
		if next == current {
			continue
		}
		early, late := unix, unix+every
		for late-early > 1 {
			if middle := (early + late) / 2; offset(middle) == current {
				early = middle
			} else {
				late = middle
			}
		}
		c.changes = append(c.changes, change{at: late, after: next, by: next - current})
		current = next
	}
	return c
}

// watch reads the wall clock around each change.
func (c *clock) watch() {
	for i := range c.changes {
		ch := &c.changes[i]
		around := max(ch.by, -ch.by) + 3*3600
		ch.from, ch.to = ch.at-around, ch.at+around
		for unix := ch.from; unix < ch.to; unix += 60 {
			year, month, day := time.Unix(unix, 0).In(c.zone).Date()
			hour, minute, second := time.Unix(unix, 0).In(c.zone).Clock()
			if second != 0 {
				panic(c.name + " has an offset of odd seconds")
			}
			shown := time.Date(year, month, day, hour, minute, 0, 0, time.UTC).Unix() - oracleFirst.Unix()
			ch.faces = append(ch.faces, face{minutes: shown / 60, hour: hour, minute: minute})
		}
	}
}

// ticks is every tick from one instant on and before another.
func (o *oracle) ticks(c *clock, from, to int64) []int64 {
	var ticks []int64
	offset, unix := c.first, from
	for i := range c.changes {
		ch := &c.changes[i]
		if ch.from >= to {
			break
		}
		if ch.to > unix {
			ticks = o.steady(ticks, offset, unix, min(ch.from, to))
			ticks = o.walk(ticks, ch, unix, to)
			unix = max(unix, ch.to)
		}
		offset = ch.after
	}
	return o.steady(ticks, offset, unix, to)
}

// steady appends the ticks of a stretch in which the offset stays.
func (o *oracle) steady(ticks []int64, offset, from, to int64) []int64 {
	for day := oracleDay(from + offset); day <= oracleDay(to+offset); day++ {
		if !o.day[day] {
			continue
		}
		midnight := oracleFirst.Unix() + day*86400 - offset
		for _, clock := range o.times {
			if at := midnight + clock; at >= from && at < to {
				ticks = append(ticks, at)
			}
		}
	}
	return ticks
}

// walk appends the ticks around a change, watching the clock: what it jumps over fires once when it
// has landed, what it shows again fires again unless the time is fixed.
func (o *oracle) walk(ticks []int64, ch *change, from, to int64) []int64 {
	var seen []int64
	highest := ch.faces[0].minutes - 1
	for i, f := range ch.faces {
		at := ch.from + 60*int64(i)
		if f.minutes > highest+1 {
			for skipped := highest + 1; skipped < f.minutes; skipped++ {
				if o.day[skipped/1440] && o.hourMinute[skipped/60%24][skipped%60] {
					seen = append(seen, at)
					break
				}
			}
		}
		again := f.minutes <= highest
		highest = max(highest, f.minutes)
		if !o.day[f.minutes/1440] || !o.hourMinute[f.hour][f.minute] || again && o.fixed {
			continue
		}
		for _, s := range o.seconds {
			if n := len(seen); n == 0 || seen[n-1] != at+s {
				seen = append(seen, at+s)
			}
		}
	}
	low, _ := slices.BinarySearch(seen, from)
	high, _ := slices.BinarySearch(seen, to)
	return append(ticks, seen[min(low, high):high]...)
}
