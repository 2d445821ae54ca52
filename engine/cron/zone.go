package cron

import (
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // so that zones are known on systems without a database of them
)

// What a timestamp on the wire can hold, years 1 to 9999, in Unix seconds.
var (
	startOfTime = time.Date(1, time.January, 1, 0, 0, 0, 0, time.UTC).Unix()
	endOfTime   = time.Date(9999, time.December, 31, 23, 59, 59, 0, time.UTC).Unix()
)

// clamp is a time in Unix seconds, rounded down, and kept within what there is.
func clamp(t time.Time) int64 { return min(max(t.Unix(), startOfTime), endOfTime) }

// loadZone finds a zone of the IANA database. Names that a system keeps beside it are refused,
// since they mean different things on different machines ("localtime") or count leap seconds
// ("right/UTC").
func loadZone(name string) (*time.Location, error) {
	if name == "" {
		return time.UTC, nil
	}
	own := name == "Local" || name == "localtime" || name == "posixrules" || name == "Factory" ||
		strings.HasPrefix(name, "posix/") || strings.HasPrefix(name, "right/")
	location, err := time.LoadLocation(name)
	if err != nil || own {
		reason := fmt.Sprintf("%s is no IANA time zone; names such as Europe/Berlin are, and empty means UTC",
			quote(name))
		return nil, &Error{Field: "time_zone", Reason: reason}
	}
	return location, nil
}

// period is a stretch of time in which a zone keeps one offset from UTC. All is in Unix seconds, and offsets in seconds
// east of UTC, so that instant + offset is the wall clock, read as if it were in UTC.
type period struct {
	start, end int64 // from start on, before end
	offset     int64
	before     int64 // the offset just before start; offset where nothing changes there
}

// reach is how far periodAt looks to either side. No zone has ever changed its offset twice in so
// short a time, and no clock was ever put back by more than half of it.
const reach = 2 * secondsPerDay

// periodAt is the stretch around an instant, bounded by a change of the offset or else arbitrarily,
// but at a start where nothing changes the clock shows nothing again. It looks at offsets only:
// time.Time.ZoneBounds answers with bounds that are not so where a zone goes by its rule instead of
// by a table, such as an end before the instant itself on the last day of a leap year.
func (s *Schedule) periodAt(instant int64) period {
	p := period{start: instant - reach/2, end: instant + reach, offset: s.offset(instant)}
	p.before = s.offset(instant - reach)
	if p.before != p.offset {
		p.start = s.change(instant-reach, instant)
	}
	if s.offset(p.end) != p.offset {
		p.end = s.change(instant, p.end)
	}
	return p
}

func (s *Schedule) offset(instant int64) int64 {
	_, offset := time.Unix(instant, 0).In(s.zone).Zone()
	return int64(offset)
}

// change is the first instant of the offset that late has and early has not.
func (s *Schedule) change(early, late int64) int64 {
	offset := s.offset(late)
	for late-early > 1 {
		if middle := early + (late-early)/2; s.offset(middle) == offset {
			late = middle
		} else {
			early = middle
		}
	}
	return late
}

// firstWall is the wall clock at the first instant of p at which a tick can be due: for fixed times
// not before the clock has passed what it showed already.
func (s *Schedule) firstWall(p period) int64 {
	if s.once {
		return p.start + max(p.offset, p.before)
	}
	return p.start + p.offset
}

// jumped is true when p begins with a jump over the time of some tick, and the clock lands on no tick itself.
func (s *Schedule) jumped(p period) bool {
	if p.before >= p.offset {
		return false
	}
	landing := p.start + p.offset
	return s.countWalls(p.start+p.before, landing) > 0 && s.countWalls(landing, landing+1) == 0
}
