package cron

import "time"

const secondsPerDay = 24 * 60 * 60

// days says on which days an expression fires. A day is the number of days since 1970-01-01.
type days struct {
	dom, dow field
	months   set
	years    set
	anyYear  bool
	either   bool // one of dom and dow has to match, not both
}

func civil(day int64) time.Time { return time.Unix(day*secondsPerDay, 0).UTC() }

func dayOf(year int, month time.Month, day int) int64 {
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Unix() / secondsPerDay
}

// match says whether the expression fires on the day.
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

// matchMonth says whether the day-of-month field matches a date.
func (d *days) matchMonth(date time.Time) bool {
	dom := date.Day()
	if d.dom.values.has(dom) {
		return true
	}
	return d.dom.last && dom == lengthOfMonth(date) || d.dom.near != (set{}) &&
		d.nearest(dom, date.Weekday(), lengthOfMonth(date))
}

// matchWeek says whether the day-of-week field matches a date.
func (d *days) matchWeek(date time.Time) bool {
	weekday := int(date.Weekday())
	return d.dow.values.has(weekday) ||
		d.dow.nth.has(nthWeekday(weekday, (date.Day()-1)/7+1)) ||
		d.dow.lasts.has(weekday) && date.Day()+7 > lengthOfMonth(date)
}

func lengthOfMonth(date time.Time) int { return date.AddDate(0, 1, -date.Day()).Day() }

// nearest says whether some nW means the day dom, which is that weekday in a month of that length.
// nW is the nth day unless that is on a weekend. Then it is the adjacent Friday or Monday, or if
// that is in another month, the first Monday or the last Friday.
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

// last returns the last day that matches; a day after the end of time if there is no last one. It
// returns false if no day matches.
func (d *days) last() (int64, bool) {
	from, to := dayOf(firstYear, time.January, 1), dayOf(lastYear, time.December, 31)
	if d.anyYear {
		from, to = dayOf(2000, time.January, 1), dayOf(2399, time.December, 31) // the calendar repeats after 400 years
	}
	for day := to; day >= from; day-- {
		if d.match(day) {
			if d.anyYear {
				day = floorDay(endOfTime) + 1 // wall clocks are at most a day ahead of UTC
			}
			return day, true
		}
	}
	return 0, false
}
