package cron

import (
	"strconv"
	"strings"
	"time"

	"github.com/adhocore/gronx"
)

// Next returns the first tick strictly after a time, in UTC and at a whole second. It returns false
// if there is none, because the expression's years or the year 9999 have passed.
func (s *Schedule) Next(after time.Time) (time.Time, bool) {
	instant := clamp(after)
	if s.every > 0 {
		return tick(s.nextMultiple(instant))
	}
	p := s.periodAt(instant)
	wall := instant + p.offset // all times up to here are done
	for next, ok := s.nextWall(max(wall, s.firstWall(p)-1)); ; {
		if ok && next-p.offset < p.end {
			return tick(next - p.offset)
		}
		following := s.periodAt(p.end)
		switch landing := p.end + following.offset; {
		case landing <= wall && !s.once: // the clock is put back to before wall: its times occur again
			p, wall = following, landing-1
			next, ok = s.nextWall(wall)
		case !ok:
			return time.Time{}, false
		case next < landing: // in a jump
			return tick(p.end)
		default: // nothing is due before the wall clock shows next, whatever the zone does until then
			instant = max(p.end, next-reach)
			p = s.periodAt(instant)
			wall = instant + p.offset - 1
		}
	}
}

// tick returns a time in the form that Next returns.
func tick(instant int64) (time.Time, bool) {
	if instant > endOfTime {
		return time.Time{}, false
	}
	return time.Unix(instant, 0).UTC(), true
}

// NextN returns the first n ticks strictly after a time, in order; fewer if there are no more.
func (s *Schedule) NextN(after time.Time, n int) []time.Time {
	var ticks []time.Time
	for len(ticks) < n {
		next, ok := s.Next(after)
		if !ok {
			break
		}
		ticks = append(ticks, next)
		after = next
	}
	return ticks
}

// nextWall returns the expression's first wall-clock time strictly after wall; both are read as
// UTC. gronx searches. In UTC it meets no day with a missing or repeated hour.
func (s *Schedule) nextWall(wall int64) (int64, bool) {
	for wall < s.lastWall { // after the last year gronx takes long, and may return a time in the past
		from := time.Unix(wall, 0).UTC()
		next, err := gronx.NextTickAfter(s.expr, from, false)
		if err != nil || !next.After(from) {
			return 0, false
		}
		day := floorDay(next.Unix())
		if s.days.match(day) {
			return next.Unix(), true
		}
		wall = (day+1)*secondsPerDay - 1 // gronx checks only one of the two day fields
	}
	return 0, false
}

// floorDay returns the day of a wall-clock time.
func floorDay(wall int64) int64 { return floorDiv(wall, secondsPerDay) }

// gronxExpr returns the expression for gronx: seven fields that it cannot misread. gronx accepts a
// day that matches either day field. If a day must match both, gronx gets only the day of month,
// and nextWall checks the other.
func (s *Schedule) gronxExpr() string {
	dom, dow := s.days.dom.gronx(), s.days.dow.gronx()
	switch {
	case s.days.either && (s.days.dom.whole || s.days.dow.whole):
		dom, dow = "*", "*"
	case !s.days.either && !s.days.dom.whole:
		dow = "*"
	}
	fields := []string{list(s.seconds, 60), list(s.minutes, 60), list(s.hours, 24), dom,
		list(s.days.months.members(), 12), dow, "*"}
	if !s.days.anyYear {
		years := s.days.years.members()
		for i := range years {
			years[i] += firstYear
		}
		fields[6] = list(years, lastYear)
	}
	return strings.Join(fields, " ")
}

// gronx returns a day field in the syntax of gronx.
func (f *field) gronx() string {
	if f.whole {
		return "*"
	}
	var items []string
	if f.values.count() > 0 {
		items = append(items, list(f.values.members(), 31))
	}
	if f.last {
		items = append(items, "L")
	}
	for _, day := range f.near.members() {
		items = append(items, strconv.Itoa(day)+"W")
	}
	for _, weekday := range f.lasts.members() {
		items = append(items, strconv.Itoa(weekday)+"L")
	}
	for _, nth := range f.nth.members() {
		items = append(items, strconv.Itoa(nth%7)+"#"+strconv.Itoa(nth/7+1))
	}
	return strings.Join(items, ",")
}

// list returns values as a list of numbers and ranges, or "*" if they are all values.
func list(values []int, all int) string {
	if len(values) == all {
		return "*"
	}
	var items []string
	for i := 0; i < len(values); {
		j := i
		for j+1 < len(values) && values[j+1] == values[j]+1 {
			j++
		}
		item := strconv.Itoa(values[i])
		if j > i {
			item += "-" + strconv.Itoa(values[j])
		}
		items = append(items, item)
		i = j + 1
	}
	return strings.Join(items, ",")
}
