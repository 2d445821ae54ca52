package simulate

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kagzi/kagzi/backends/memory"
	"github.com/kagzi/kagzi/engine"
)

// untold returns a simulation with an empty database whose clients were told nothing.
func untold(db *memory.Database) *simulation {
	w := &simulation{plan: &Plan{}, report: &Report{Counts: map[string]int{}}, db: db}
	w.acks = acks{starts: map[string]string{}, runs: map[string]string{}, ends: map[string]string{},
		signals: map[string]string{}, schedules: map[string]*Template{}}
	return w
}

// broken wants exactly these invariants to be reported.
func broken(t *testing.T, name string, r *Report, want ...int) {
	t.Helper()
	if got := r.Broken(); !slices.Equal(got, want) {
		t.Errorf("%s: broken = %v, want %v; %v", name, got, want, r.Violations)
	}
}

func TestStartsAndOrdersAreComparedWithTheirAnswers(t *testing.T) {
	one, two := engine.ID{1}, engine.ID{2}
	asked := func(id engine.ID, change ...func(r *memory.Run)) *memory.Run {
		return row(id, engine.RunCompleted, append([]func(*memory.Run){func(r *memory.Run) {
			r.RequestID, r.Type, r.Queue, r.ExternalID, r.ConcurrencyKey = "q"+id.String(), programType,
				"default", "e", "k"
		}}, change...)...)
	}
	signal := func(ids ...string) func(r *memory.Run) {
		return func(r *memory.Run) {
			for _, id := range ids {
				r.Signals = append(r.Signals, engine.Signal{SignalID: id})
			}
		}
	}
	status := func(s engine.RunStatus) func(r *memory.Run) { return func(r *memory.Run) { r.Status = s } }
	continued := func(r *memory.Run) { r.ContinuedAs = two }
	started := func(w *simulation) {
		w.acks.starts["q"+one.String()] = one.String()
		w.plan.Starts = []Start{{Name: "q" + one.String(), External: "e", Key: "k"}}
	}
	ordered := func(do string) func(w *simulation) {
		return func(w *simulation) { w.acks.orders = []acked{{do, one.String()}} }
	}
	signalled := func(w *simulation) { w.acks.signals["id"] = one.String() }
	for _, test := range []struct {
		name string
		runs []*memory.Run
		told func(w *simulation)
		want int
	}{
		{"a start", []*memory.Run{asked(one)}, started, 0},
		{"a start that is not there", []*memory.Run{asked(two)}, started, 1},
		{"a start of another type", []*memory.Run{asked(one, func(r *memory.Run) { r.Type = "else" })}, started, 1},
		{"a start in another queue", []*memory.Run{asked(one, func(r *memory.Run) { r.Queue = "else" })}, started, 1},
		{"a start with another external id", []*memory.Run{asked(one, func(r *memory.Run) { r.ExternalID = "else" })},
			started, 1},
		{"a start with another key", []*memory.Run{asked(one, func(r *memory.Run) { r.ConcurrencyKey = "else" })},
			started, 1},
		{"two runs of a request", []*memory.Run{
			asked(one), asked(two, func(r *memory.Run) { r.RequestID = "q" + one.String() })}, started, 12},
		{"a cancelled run", []*memory.Run{asked(one, status(engine.RunCancelled))}, ordered("cancel"), 0},
		{"a cancelled run that is completed", []*memory.Run{asked(one)}, ordered("cancel"), 4},
		{"a run that was stopped with a grace, and completed", []*memory.Run{asked(one)}, ordered("stop"), 0},
		{"a terminated run", []*memory.Run{asked(one, status(engine.RunTerminated))}, ordered("terminate"), 0},
		{"a terminated run that is cancelled", []*memory.Run{asked(one, status(engine.RunCancelled))},
			ordered("terminate"), 4},
		{"a signal", []*memory.Run{asked(one, signal("else", "id"))}, signalled, 0},
		{"a signal that is not there", []*memory.Run{asked(one, signal("else"))}, signalled, 2},
		{"a signal that is there twice", []*memory.Run{asked(one, signal("id", "id"))}, signalled, 2},
		{"a signal that went on with its run", []*memory.Run{asked(one, continued), asked(two, signal("id"))},
			signalled, 0},
		{"a signal that did not go on with its run", []*memory.Run{asked(one, continued), asked(two)}, signalled, 2},
	} {
		w, byID := untold(nil), map[string]*memory.Run{}
		for _, r := range test.runs {
			byID[r.ID.String()] = r
		}
		test.told(w)
		w.finalStarts(byID)
		w.finalOrders(byID)
		broken(t, test.name, w.report, slices.DeleteFunc([]int{test.want}, func(i int) bool { return i == 0 })...)
	}
}

func TestARunMustHaveBeenRequested(t *testing.T) {
	for name, change := range map[string]func(r *memory.Run){
		"a start": func(r *memory.Run) { r.RequestID = "q" }, "a child": func(r *memory.Run) {
			r.ParentRunID = engine.ID{9}
		},
		"a tick": func(r *memory.Run) { r.ScheduleID = "s" }, "a handler": func(r *memory.Run) {
			r.FailedRunID = engine.ID{9}
		},
		"a retry": func(r *memory.Run) {
			r.RetriedFrom = engine.ID{9}
		}, "a continuation of no run": func(r *memory.Run) { r.ContinuedFrom = engine.ID{9} },
	} {
		w := untold(nil)
		w.asked(row(watchedRun, engine.RunCompleted, change))
		broken(t, name, w.report)
	}
	w := untold(nil)
	w.asked(row(watchedRun, engine.RunCompleted))
	broken(t, "a run that nobody asked for", w.report, 1)
}

func TestEachFailedRunHasItsHandlerOnce(t *testing.T) {
	watched := func(s engine.RunStatus) *memory.Run {
		return row(watchedRun, s, func(r *memory.Run) { r.OnFailureWorkflow = "h" })
	}
	handler := func(of engine.ID, change ...func(r *memory.Run)) *memory.Run {
		return row(engine.ID{9}, engine.RunCompleted,
			append([]func(*memory.Run){func(r *memory.Run) { r.FailedRunID = of }}, change...)...)
	}
	for _, test := range []struct {
		name string
		runs []*memory.Run
		ok   bool
	}{
		{"a failed run", []*memory.Run{watched(engine.RunFailed), handler(watchedRun)}, true},
		{"a run that ran out of time", []*memory.Run{watched(engine.RunTimedOut), handler(watchedRun)}, true},
		{"a completed run", []*memory.Run{watched(engine.RunCompleted)}, true},
		{"a failed run without one", []*memory.Run{watched(engine.RunFailed)}, false},
		{"a run that ran out of time without one", []*memory.Run{watched(engine.RunTimedOut)}, false},
		{"a failed run with two", []*memory.Run{
			watched(engine.RunFailed), handler(watchedRun), handler(watchedRun)}, false},
		{"a cancelled run with one", []*memory.Run{watched(engine.RunCancelled), handler(watchedRun)}, false},
		{"a run that wants none", []*memory.Run{row(watchedRun, engine.RunFailed)}, true},
		{"a run that wants none and has one", []*memory.Run{
			row(watchedRun, engine.RunFailed), handler(watchedRun)}, false},
		{"a handler that has one", []*memory.Run{
			watched(engine.RunFailed), handler(watchedRun, func(r *memory.Run) { r.OnFailureWorkflow = "h" })}, false},
	} {
		w := untold(nil)
		w.finalHandlers(test.runs)
		if got := w.report.Broken(); (len(got) == 0) != test.ok || len(got) > 1 || len(got) == 1 && got[0] != 11 {
			t.Errorf("%s: broken = %v, want that it is well: %t", test.name, got, test.ok)
		}
	}
}

func TestEndsAreComparedWithTheDatabase(t *testing.T) {
	db := memory.New(memory.Options{})
	s := db.Open(nil)
	defer s.Close()
	at := time.Unix(1000, 0).UTC()
	start := engine.StartRun{Run: engine.Run{
		ID: watchedRun, Namespace: namespace, RequestID: "q", Type: programType, Queue: "default", CreatedAt: at,
		AvailableAt: at}}
	if answers, err := s.StartRuns(t.Context(), engine.StartRunsParams{Runs: []engine.StartRun{start}}); err != nil ||
		answers[0].Err != nil {
		t.Fatal(answers, err)
	}
	open := untold(db)
	open.final()
	broken(t, "a run that has not ended", open.report, 7)
	if _, err := s.CancelRun(t.Context(), engine.EndRunParams{
		Namespace: namespace, RunID: watchedRun, AuditID: engine.ID{8}, Now: at.Add(time.Second)}); err != nil {
		t.Fatal(err)
	}
	for end, want := range map[string][]int{
		endText("CANCELLED", "", at.Add(time.Second)):  nil,
		endText("CANCELLED", "", at):                   {4},
		endText("COMPLETED", "", at.Add(time.Second)):  {4},
		endText("CANCELLED", "x", at.Add(time.Second)): {4},
	} {
		w := untold(db)
		w.acks.ends[watchedRun.String()] = end
		w.final()
		broken(t, end, w.report, want...)
	}
	w := untold(nil)
	w.seen("r", "a")
	w.seen("r", "a")
	w.seen("other", "b")
	broken(t, "an end that was told twice", w.report)
	w.seen("r", "b")
	broken(t, "an end that was told in two ways", w.report, 4)
}

// scheduled returns a schedule with a tick every 5 s since 1,000 s. It has fired at 1,005 s and
// 1,015 s, has skipped one, and is to fire at 1,020 s.
func scheduled(t *testing.T) (db *memory.Database, s *memory.Store, id engine.ID, runs []*memory.Run) {
	t.Helper()
	db = memory.New(memory.Options{})
	s = db.Open(nil)
	id = engine.ID{5}
	at := func(seconds int64) time.Time { return time.Unix(seconds, 0).UTC() }
	plan := engine.Schedule{ID: id, Namespace: namespace, Queue: "default", Type: programType,
		CronExpr: "*/5 * * * * *", Enabled: true, Overlap: engine.OverlapSkip,
		CreatedAt: at(1000), NextFireAt: at(1005)}
	made, err := s.CreateSchedule(t.Context(),
		engine.ScheduleParams{Schedule: plan, AuditID: engine.ID{6}, Now: at(1000)})
	if err != nil {
		t.Fatal(err)
	}
	fire := engine.FireScheduleParams{ScheduleID: id, Revision: made.Revision, Expect: at(1005), Skipped: 1,
		Next: at(1020), Now: at(1016),
		Ticks: []engine.Tick{{At: at(1005), RunID: engine.ID{1}}}}
	if _, err := s.FireSchedule(t.Context(), fire); err != nil {
		t.Fatal(err)
	}
	if _, err := s.CancelRun(t.Context(), engine.EndRunParams{
		Namespace: namespace, RunID: engine.ID{1}, AuditID: engine.ID{7}, Now: at(1016)}); err != nil {
		t.Fatal(err)
	}
	fire.Expect, fire.Next, fire.Skipped, fire.Ticks = at(1020), at(1020), 0,
		[]engine.Tick{{At: at(1015), RunID: engine.ID{2}}}
	if _, err := s.FireSchedule(t.Context(), fire); err != nil {
		t.Fatal(err)
	}
	return db, s, id, db.Runs()
}

func TestTheTicksOfAScheduleAreCounted(t *testing.T) {
	db, s, id, runs := scheduled(t)
	defer s.Close()
	for _, test := range []struct {
		name  string
		plan  Template
		runs  []*memory.Run
		want  []int
		about string
	}{
		{"each tick has its run, or is skipped", Template{Every: 5}, runs, nil, ""},
		{"a tick has no run", Template{Every: 5}, runs[1:], []int{6}, "has 0 runs"},
		{"a tick has two runs", Template{Every: 5}, append(slices.Clone(runs), runs[0]), []int{6}, "has 2 runs"},
		{"a run is of a tick that did not fire", Template{Every: 5},
			append(slices.Clone(runs), row(watchedOther, engine.RunCompleted, func(r *memory.Run) {
				r.ScheduleID, r.ScheduledAt = id.String(), time.Unix(1010, 0).UTC()
			})), []int{6}, "whose record says otherwise"},
		{"there were fewer ticks", Template{Every: 10}, runs, []int{6}, "had 1 ticks"},
		{"there were more ticks", Template{Every: 1}, runs, []int{6}, "had 19 ticks"},
		{"a tick fired that is none", Template{Every: 10}, runs, []int{6}, "none of its ticks"},
	} {
		w := untold(db)
		w.acks.schedules[id.String()] = &test.plan
		w.finalSchedules(test.runs)
		broken(t, test.name, w.report, test.want...)
		if !strings.Contains(w.report.String(), test.about) {
			t.Errorf("%s: %s, want %q", test.name, w.report, test.about)
		}
	}
	unknown := untold(db)
	unknown.finalSchedules(runs)
	broken(t, "a schedule that nobody was told of", unknown.report)
}

func TestAStuckScheduleIsDetected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, s, id, _ := scheduled(t) // its next tick was long ago
		defer s.Close()
		began, w := time.Now(), untold(db)
		w.catchUp(id.String())
		broken(t, "a schedule whose tick is due", w.report, 6)
		if took := time.Since(began); took < healing || took > healing+2*time.Second {
			t.Errorf("it was waited for %s, want %s", took, healing)
		}
		w = untold(db)
		now := time.Now()
		go func() {
			time.Sleep(time.Minute)
			_, _ = s.FireSchedule(t.Context(), engine.FireScheduleParams{
				ScheduleID: id, Revision: db.Schedules()[0].Revision, Expect: time.Unix(1020, 0).UTC(),
				Next: now.Add(time.Hour), Now: now})
		}()
		w.catchUp(id.String())
		broken(t, "a schedule that catches up", w.report)
		if took := time.Since(now); took < time.Minute || took > time.Minute+2*time.Second {
			t.Errorf("it was waited for %s, want a minute", took)
		}
	})
}
