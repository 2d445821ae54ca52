package cron

import "time"

const secondsPerDay = 24 * 60 * 60

// days says which days an expression fires on. A day is a number, of days since 1970-01-01.
type days struct {
	dom, dow field
	months   set
	years    set
	anyYear  bool
	either   bool // one of dom and dow is enough
}

func civil(day int64) time.Time { return time.Unix(day*secondsPerDay, 0).UTC() }

func dayOf(year int, month time.Month, day int) int64 {
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Unix() / secondsPerDay
}

// match is true when the expression fires on the day.
func (d *days) match(day int64) bool {
	date := civil(day)
	if !d.months.has(int(date.Month())) || !d.anyYear && !d.years.has(date.Year()-firstYear) {
		return false
	}
	if d.either {
		return d.matchMonth(date) || d.matchWeek(date)
	}
	return d.matchMonth(date) && d.matchWeek(date)
}

// matchMonth is what the field for the day of the month says of a date.
func (d *days) matchMonth(date time.Time) bool {
	dom := date.Day()
	if d.dom.values.has(dom) {
		return true
	}
	return d.dom.last && dom == lengthOfMonth(date) || d.dom.near != (set{}) &&
		d.nearest(dom, date.Weekday(), lengthOfMonth(date))
}

// matchWeek is what the field for the day of the week says of a date.
func (d *days) matchWeek(date time.Time) bool {
	weekday := int(date.Weekday())
	return d.dow.values.has(weekday) ||
		d.dow.nth.has(nthWeekday(weekday, (date.Day()-1)/7+1)) ||
		d.dow.lasts.has(weekday) && date.Day()+7 > lengthOfMonth(date)
}

func lengthOfMonth(date time.Time) int { return date.AddDate(0, 1, -date.Day()).Day() }

// nearest is true when dom, which is such a weekday in a month of that length, is what some nW means there: the nth if
// that is no weekend, else the Friday before or the Monday after, whichever is next to it and in the month, else the
// first Monday or the last Friday.
func (d *days) nearest(dom int, weekday time.Weekday, length int) bool {
	near := &d.dom.near
	switch weekday {
	case time.Saturday, time.Sunday:
		return false
	case time.Friday:
		sunday := dom + 2
		return near.has(dom) || dom < length && near.has(dom+1) || sunday == length && near.has(sunday)
	case time.Monday:
		saturday := dom - 2
		return near.has(dom) || dom > 1 && near.has(dom-1) || saturday == 1 && near.has(saturday)
	}
	return near.has(dom)
}

// last is the last day that matches, one after the end of time when there is always another; false when none ever does.
func (d *days) last() (int64, bool) {
	from, to := dayOf(firstYear, time.January, 1), dayOf(lastYear, time.December, 31)
	if d.anyYear {
		from, to = dayOf(2000, time.January, 1), dayOf(2399, time.December, 31) // the calendar repeats after 400 years
	}
	for day := to; day >= from; day-- {
		if d.match(day) {
			if d.anyYear {
				day = floorDay(endOfTime) + 1 // a wall clock is at most a day ahead of UTC
			}
			return day, true
		}
	}
	return 0, false
}
