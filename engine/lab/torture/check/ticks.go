package check

import "fmt"

// ticksFireOnce is I6. A schedule's ticks are computed by division: there is no cron here. Ticks
// are owed up to the next undecided one; whether that has come far enough is checked elsewhere.
func (i *indexed) ticksFireOnce() Line {
	l := Line{ID: "I6", Of: "ticks"}
	fires, ofRun := map[string]map[int64]Fire{}, map[string]Fire{}
	for _, f := range i.Dump.Fires {
		if other, twice := ofRun[f.Run]; twice {
			l.violate("the ticks %d of schedule %s and %d of %s have the same run %s", other.Tick, other.Schedule,
				f.Tick, f.Schedule, f.Run)
		}
		ofRun[f.Run] = f
		if fires[f.Schedule] == nil {
			fires[f.Schedule] = map[int64]Fire{}
		}
		if _, twice := fires[f.Schedule][f.Tick]; twice {
			l.violate("schedule %s fired the tick %d twice", f.Schedule, f.Tick)
		}
		fires[f.Schedule][f.Tick] = f
	}
	runs := map[string]int{}
	for _, r := range i.Dump.Runs {
		if r.Schedule != "" {
			runs[r.Schedule]++
		}
	}
	var latest, skipped int64
	for _, s := range i.Dump.Schedules {
		fired := fires[s.ID]
		if s.Every == 0 { // its ticks are unknown
			continue
		}
		if runs[s.ID] != len(fired) || s.Fired != int64(len(fired)) {
			l.violate("schedule %s has %d runs of %d fires, and counts %d", s.ID, runs[s.ID], len(fired), s.Fired)
		}
		missed := int64(0)
		period := s.Every * 1e6
		if s.NextFire == 0 {
			l.violate("schedule %s (every %d s) has no next tick", s.ID, s.Every)
		}
		for tick := (s.CreatedAt/period + 1) * period; tick < s.NextFire; tick += period {
			l.Checked++
			f, ok := fired[tick]
			if !ok {
				missed++
				continue
			}
			latest = max(latest, f.FiredAt-tick)
			if r := i.runs[f.Run]; r == nil || r.Schedule != s.ID {
				l.violate("tick %d of schedule %s has no run", tick, s.ID)
			}
			delete(fired, tick)
		}
		for tick := range fired {
			l.violate("schedule %s fired %d, which is none of its ticks", s.ID, tick)
		}
		if missed != s.Skipped && !i.Lossy {
			l.violate("schedule %s (every %d s) has missed %d ticks and counts %d as skipped", s.ID, s.Every,
				missed, s.Skipped)
		}
		skipped += s.Skipped
	}
	if l.Checked > 0 {
		l.Note = fmt.Sprintf("; %d skipped, the latest by %d ms, over all faults", skipped, latest/1000)
	}
	return l
}
