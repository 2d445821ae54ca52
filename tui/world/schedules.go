package world

import (
	"time"

	"google.golang.org/protobuf/proto"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

const (
	overlapSkip      = kagziv1.OverlapPolicy_OVERLAP_POLICY_SKIP
	overlapBufferOne = kagziv1.OverlapPolicy_OVERLAP_POLICY_BUFFER_ONE
)

// schedule is a template and when it fires.
type schedule struct {
	*kagziv1.WorkflowSchedule
	requestID string
	ticks     *ticker // nil while it is broken
	armed     int     // grows with each change, so that what was planned before is void
}

// arm plans the schedule's next tick.
func (w *World) arm(s *schedule) {
	s.armed++
	armed := s.armed
	if s.Enabled && s.ticks != nil && s.NextFireAt != nil {
		w.at(moment(s.NextFireAt), func() {
			if s.armed == armed {
				w.tick(s)
			}
		})
	}
}

// tick fires what has come due; of ticks that were missed, the most recent ones.
func (w *World) tick(s *schedule) {
	if !w.namespaces[s.Namespace].Enabled {
		return // it is armed again with its namespace
	}
	var due []time.Time
	next, more := moment(s.NextFireAt), true
	missed := 0
	for ; more && !next.After(w.now); next, more = s.ticks.next(next) {
		due = append(due, next)
		if len(due) > int(s.MaxCatchup) && w.now.Sub(due[0]) > 10*time.Second {
			due, missed = due[1:], missed+1
		}
	}
	s.NextFireAt = nil
	if more {
		s.NextFireAt = stamp(next)
	}
	if missed > 0 {
		s.SkippedTicks += int64(missed)
		w.note("WARN", "ticks skipped", "schedule", s.Name, "namespace", s.Namespace, "ticks", missed)
	}
	for _, at := range due {
		w.decide(s, at)
	}
	w.schedulesChanged()
	w.arm(s)
}

// decide fires a tick, or does with it what is to be done while a run of the schedule is open.
func (w *World) decide(s *schedule, at time.Time) {
	busy := w.openOf(s)
	switch {
	case busy && s.OverlapPolicy == overlapBufferOne && s.BufferedTick == nil:
		s.BufferedTick = stamp(at)
	case busy && (s.OverlapPolicy == overlapSkip || s.OverlapPolicy == overlapBufferOne):
		s.SkippedTicks++
		w.note("INFO", "tick skipped", "schedule", s.Name, "namespace", s.Namespace, "tick", at.Format(time.RFC3339))
	default:
		w.fire(s, at)
	}
}

func (w *World) openOf(s *schedule) bool {
	for _, r := range w.open {
		if r.GetScheduleId() == s.ScheduleId {
			return true
		}
	}
	return false
}

// fire starts the run of a tick.
func (w *World) fire(s *schedule, tick time.Time) {
	m := w.templated(s)
	m.ExternalId, m.ScheduledAt = "schedule:"+s.ScheduleId+":"+tick.UTC().Format(time.RFC3339), stamp(tick)
	r := w.begins(m, planOf(s.WorkflowType), w.now)
	s.TotalRuns++
	if s.LastFiredAt == nil || tick.After(moment(s.LastFiredAt)) {
		s.LastFiredAt = stamp(tick)
	}
	lag := 2 + float64(mix(w.seed, uint64(tick.Unix()))%300)/10
	w.activity.count(w.now, func(t *tally) { t.lag = lag })
	w.note("INFO", "tick fired", "schedule", s.Name, "namespace", s.Namespace, "run", r.RunId, "tick", tick.Format(time.RFC3339))
}

// templated is a run as the schedule has it start.
func (w *World) templated(s *schedule) *kagziv1.Workflow {
	m := &kagziv1.Workflow{
		RunId: w.ids.id(w.now), Namespace: s.Namespace, TaskQueue: s.TaskQueue, WorkflowType: s.WorkflowType, Version: s.Version,
		ScheduleId: proto.String(s.ScheduleId), Input: proto.CloneOf(s.Input), RetryPolicy: proto.CloneOf(s.RetryPolicy),
		Timeouts: proto.CloneOf(s.Timeouts), OnFailureWorkflow: s.OnFailureWorkflow, OnFailureTaskQueue: s.OnFailureTaskQueue, Tags: s.Tags,
	}
	if p := planOf(s.WorkflowType); p.key != nil {
		m.ConcurrencyKey, m.ConcurrencyLimit = p.key(w.luck), 1
	}
	return m
}

// settleSchedule has the schedule of a run that has ended count it, and start the tick that waited for it.
func (w *World) settleSchedule(r *run) {
	for _, s := range w.schedules {
		if s.ScheduleId != r.GetScheduleId() {
			continue
		}
		switch r.Status {
		case completed:
			s.SuccessfulRuns++
		case failed, timedOut:
			s.FailedRuns++
		}
		if s.BufferedTick != nil && !w.openOf(s) {
			tick := moment(s.BufferedTick)
			s.BufferedTick = nil
			w.fire(s, tick)
		}
		w.schedulesChanged()
	}
}

func (s *schedule) summary() *kagziv1.WorkflowSchedule {
	m := proto.CloneOf(s.WorkflowSchedule)
	m.Input = nil
	return m
}

// timetable is the schedules that the world begins with.
var timetable = []struct {
	name, kind, cron, zone string
	overlap                kagziv1.OverlapPolicy
	paused                 bool
	age                    time.Duration
	fired, failed, skipped int64
}{
	{name: "nightly-report", kind: "report.nightly", cron: "0 2 * * *", zone: "Europe/Berlin", overlap: overlapSkip, age: 212 * 24 * time.Hour, fired: 211, failed: 3},
	{name: "catalog-import", kind: "import.catalog", cron: "*/15 * * * *", overlap: overlapSkip, age: 90 * 24 * time.Hour, fired: 8512, failed: 97, skipped: 31},
	{name: "crm-sync", kind: "sync.crm", cron: "0 */20 * * * *", overlap: overlapBufferOne, age: 41 * 24 * time.Hour, fired: 2903, failed: 40, skipped: 6},
	{name: "thumbnail-sweep", kind: "thumbnail", cron: "@hourly", zone: "America/New_York", age: 33 * 24 * time.Hour, fired: 790, failed: 11},
	{name: "monthly-invoices", kind: "invoice.send", cron: "0 9 1 * *", zone: "Asia/Tokyo", age: 120 * 24 * time.Hour, paused: true, fired: 4},
	{name: "onboarding-digest", kind: "onboarding", cron: "30 7 * * MON-FRI", zone: "Europe/Kyjiw", age: 9 * 24 * time.Hour, fired: 6},
}

// timetables makes the schedules.
func (w *World) timetables() {
	for i, t := range timetable {
		created := w.begin.Add(-t.age)
		p := planOf(t.kind)
		s := &schedule{WorkflowSchedule: &kagziv1.WorkflowSchedule{
			Namespace: defaultNamespace, ScheduleId: idAt(idStamp(created), mix(w.seed, uint64(i))), Name: t.name, CronExpr: t.cron,
			TimeZone: t.zone, OverlapPolicy: t.overlap, Enabled: !t.paused, TaskQueue: p.queue, WorkflowType: t.kind, Version: p.version,
			Input: jsonPayload(p.input(w.luck)), MaxCatchup: usualCatchup, CreatedAt: stamp(created), UpdatedAt: stamp(created),
			TotalRuns: t.fired, SuccessfulRuns: t.fired - t.failed, FailedRuns: t.failed, SkippedTicks: t.skipped,
		}}
		if p.tags != nil {
			s.Tags = p.tags(w.luck)
		}
		w.schedules = append(w.schedules, s)
		w.retime(s, w.now)
	}
}

// retime works out the schedule's next tick after a moment. A schedule that cannot be worked out is broken.
func (w *World) retime(s *schedule, after time.Time) {
	s.ticks, s.NextFireAt, s.Broken = nil, nil, ""
	ticks, err := parseCron(s.CronExpr, s.TimeZone)
	if err != nil {
		s.Broken = err.Error()
	} else if next, ok := ticks.next(after); ok {
		s.ticks, s.NextFireAt = ticks, stamp(next)
	}
	w.schedulesChanged()
	w.arm(s)
}
