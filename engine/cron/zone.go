package cron

import (
	"fmt"
	"strings"
	"time"

	"github.com/kagzi/kagzi/proto/zone"
)

// Limits of a timestamp on the wire, years 1 to 9999, in Unix seconds.
var (
	startOfTime = time.Date(1, time.January, 1, 0, 0, 0, 0, time.UTC).Unix()
	endOfTime   = time.Date(9999, time.December, 31, 23, 59, 59, 0, time.UTC).Unix()
)

// clamp returns a time in Unix seconds, rounded down and clamped to startOfTime and endOfTime.
func clamp(t time.Time) int64 { return min(max(t.Unix(), startOfTime), endOfTime) }

// loadZone returns a zone of the IANA database. It refuses other names that a system may have,
// because they differ between machines ("localtime") or count leap seconds ("right/UTC").
func loadZone(name string) (*time.Location, error) {
	if name == "" {
		return time.UTC, nil
	}
	own := name == "Local" || name == "localtime" || name == "posixrules" || name == "Factory" ||
		strings.HasPrefix(name, "posix/") || strings.HasPrefix(name, "right/")
	location, err := zone.Load(name)
	if err != nil || own {
		reason := fmt.Sprintf("%s is no IANA time zone; names such as Europe/Berlin are, and empty means UTC",
			quote(name))
		return nil, &Error{Field: "time_zone", Reason: reason}
	}
	return location, nil
}

// period is a time span in which a zone has one offset from UTC. Times are Unix seconds and offsets
// seconds east of UTC, so that instant + offset is the wall clock read as UTC.
type period struct {
	start, end int64 // start is inclusive, end exclusive
	offset     int64
	before     int64 // the offset just before start; equal to offset if nothing changes there
}

// reach is how far periodAt looks to either side. No zone has ever changed its offset twice in that
// time, and no clock was ever put back by more than half of it.
const reach = 2 * secondsPerDay

// periodAt returns the period around an instant. It ends at changes of the offset, or else at an
// arbitrary time; at an arbitrary start no wall-clock time is repeated. It compares offsets only,
// because time.Time.ZoneBounds returns wrong bounds for zones that follow a rule instead of a
// table, such as an end before the instant itself on the last day of a leap year.
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

// change returns the first instant with the offset of late; early has another one.
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

// firstWall returns the wall clock at the first instant of p at which a tick can be due. For fixed
// times that is after all wall-clock times that occurred before.
func (s *Schedule) firstWall(p period) int64 {
	if s.once {
		return p.start + max(p.offset, p.before)
	}
	return p.start + p.offset
}

// jumped says whether p begins with a jump over a tick, and the clock does not land on a tick
// itself.
func (s *Schedule) jumped(p period) bool {
	if p.before >= p.offset {
		return false
	}
	landing := p.start + p.offset
	return s.countWalls(p.start+p.before, landing) > 0 && s.countWalls(landing, landing+1) == 0
}
