package runs

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kagzi/kagzi/backends/storetest/internal/fixture"
	"github.com/kagzi/kagzi/engine"
)

var ListCases = []fixture.Case{
	{Name: "runs are listed newest first in pages of any size",
		Run: func(s *fixture.F) {
			var want []engine.ID
			for range 7 {
				want = append([]engine.ID{s.Start()}, want...)
				s.Pass(time.Millisecond)
			}
			s.Start(fixture.InSpace("other"))
			for _, limit := range []int{1, 2, 3, 6, 7, 8, engine.MaxPage} {
				var got []engine.ID
				for _, r := range fixture.Walk(s, limit, func(p engine.Page) ([]engine.Run, engine.PageInfo, error) {
					return s.Store.ListRuns(s.Ctx, engine.RunFilter{Namespace: fixture.Space}, p)
				}, fixture.RunCursor) {
					got = append(got, r.ID)
				}
				s.SameIDs(fmt.Sprintf("pages of %d", limit), got, want)
			}
		}},
	{Name: "GetRuns returns each run once, without payloads",
		Run: func(s *fixture.F) {
			l := s.Held(fixture.Tagged("customer", "x"), fixture.WithExternal("order-1"))
			s.Complete(l, "pay", "paid")
			elsewhere := s.Start(fixture.InSpace("other"))
			want := []engine.Run{s.Run(l.RunID), s.Run(s.Start(fixture.DueAt(s.Now.Add(time.Hour))))}
			got := s.Gotten(want[1].ID, s.ID(), want[0].ID, elsewhere, want[1].ID, want[0].ID, engine.ID{})
			fixture.Equal(s, "runs", len(got), len(want))
			for _, w := range want {
				w.Input, w.Output = engine.Payload{}, engine.Payload{}
				s.SameRun(got[w.ID], w)
			}
			fixture.Equal(s, "runs of no ids", len(s.Gotten()), 0)
			fixture.Equal(s, "runs of unknown ids", len(s.Gotten(s.ID(), elsewhere)), 0)
			others, err := s.Store.GetRuns(s.Ctx, "other", []engine.ID{elsewhere, l.RunID})
			s.Must(err, "GetRuns")
			fixture.Equal(s, "runs of the other namespace", len(others), 1)
		}},
	{Name: "GetRuns returns as many runs as a page holds", Run: func(s *fixture.F) {
		starts := make([]engine.StartRun, engine.MaxPage)
		ids := make([]engine.ID, engine.MaxPage)
		for i := range starts {
			starts[i] = s.NewRun()
			ids[i] = starts[i].ID
		}
		s.StartAll(starts...)
		got := s.Gotten(ids...)
		fixture.Equal(s, "runs", len(got), engine.MaxPage)
		for _, id := range ids {
			fixture.Equal(s, "id of the run", got[id].ID, id)
		}
	}},
	{Name: "runs that start or end during a list move no others", Run: func(s *fixture.F) {
		var there []engine.ID
		for range 9 {
			there = append([]engine.ID{s.Start()}, there...)
			s.Pass(time.Millisecond)
		}
		var got []engine.ID
		page := engine.Page{Limit: 2}
		for {
			runs, info, err := s.Store.ListRuns(s.Ctx, engine.RunFilter{Namespace: fixture.Space}, page)
			s.Must(err, "ListRuns")
			for _, r := range runs {
				got = append(got, r.ID)
			}
			if !info.HasNext {
				break
			}
			page.After = fixture.Ptr(fixture.RunCursor(runs[len(runs)-1]))
			s.Start()
			s.Cancel(there[len(there)-1])
			s.Pass(time.Millisecond)
		}
		s.SameIDs("runs", got, there)
	}},
	{Name: "a page from the middle knows both neighbours", Run: func(s *fixture.F) {
		var ids []engine.ID
		for range 5 {
			ids = append([]engine.ID{s.Start()}, ids...)
		}
		f := engine.RunFilter{Namespace: fixture.Space}
		runs, info, err := s.Store.ListRuns(s.Ctx, f,
			engine.Page{Limit: 2, After: &engine.Cursor{ID: ids[0]}, Count: true})
		s.Must(err, "ListRuns after")
		s.SameIDs("after the first", []engine.ID{runs[0].ID, runs[1].ID}, ids[1:3])
		fixture.Equal(s, "info", info, engine.PageInfo{HasNext: true, HasPrev: true, Total: 5})
		runs, info, err = s.Store.ListRuns(s.Ctx, f, engine.Page{Limit: 2, Before: &engine.Cursor{ID: ids[4]}})
		s.Must(err, "ListRuns before")
		s.SameIDs("before the last", []engine.ID{runs[0].ID, runs[1].ID}, ids[2:4])
		fixture.Equal(s, "info", info, engine.PageInfo{HasNext: true, HasPrev: true})
		runs, info, err = s.Store.ListRuns(s.Ctx, f, engine.Page{Limit: 2, After: &engine.Cursor{ID: ids[4]}})
		s.Must(err, "ListRuns after the last")
		fixture.Equal(s, "runs after the last", len(runs), 0)
		fixture.Equal(s, "info", info, engine.PageInfo{HasPrev: true})
		runs, info, err = s.Store.ListRuns(s.Ctx, f, engine.Page{Limit: 2, Before: &engine.Cursor{ID: ids[0]}})
		s.Must(err, "ListRuns before the first")
		fixture.Equal(s, "runs before the first", len(runs), 0)
		fixture.Equal(s, "info", info, engine.PageInfo{HasNext: true})
	}},
	{Name: "lists leave payloads out", Run: func(s *fixture.F) {
		s.Worker("w1")
		start := s.NewRun(fixture.WithExternal("ext"), fixture.WithRequest("req"), fixture.Tagged("k", "v"),
			fixture.Requiring("gpu", ""), fixture.WithPolicy(engine.RetryPolicy{MaximumAttempts: 2}))
		s.Started(start)
		s.Finish(s.ClaimOffering("gpu", "x").Lease, "done")
		runs, _, err := s.Store.ListRuns(s.Ctx, engine.RunFilter{Namespace: fixture.Space}, engine.Page{Limit: 5})
		s.Must(err, "ListRuns")
		want := s.Run(start.ID)
		want.Input, want.Output = engine.Payload{}, engine.Payload{}
		s.SameRun(runs[0], want)
	}},
	{Name: "runs are selected by every field of the filter", Run: listByEveryFilter},
	{Name: "searches and tags find all among few and many runs", Run: func(s *fixture.F) {
		const many = 1100 // more than are sorted for a page
		runs := make([]engine.StartRun, many)
		for i := range runs {
			runs[i] = s.NewRun(fixture.WithExternal(fmt.Sprintf("many-%04d", i)),
				fixture.Tagged("kind", "many", "half", fmt.Sprint(i%2)))
		}
		for part := range slices.Chunk(runs, engine.MaxBatch) {
			s.StartAll(part...)
		}
		rare := s.Start(fixture.WithExternal("rare"), fixture.Tagged("kind", "rare"))
		first := func(f engine.RunFilter, total int64) engine.ID {
			s.Helper()
			f.Namespace = fixture.Space
			page, info, err := s.Store.ListRuns(s.Ctx, f, engine.Page{Limit: 2, Count: true})
			s.Must(err, "ListRuns")
			fixture.Equal(s, "total", info.Total, total)
			fixture.Equal(s, "whether there are more", info.HasNext, total > 2)
			return page[0].ID
		}
		fixture.Equal(s, "the newest of many", first(engine.RunFilter{Search: "many"}, many), runs[many-1].ID)
		fixture.Equal(s, "the newest of some", first(engine.RunFilter{Search: "many-00"}, 100), runs[99].ID)
		fixture.Equal(s, "the one", first(engine.RunFilter{Search: "rare"}, 1), rare)
		fixture.Equal(s, "the newest of a kind", first(engine.RunFilter{Tags: map[string]string{"kind": "many"}}, many),
			runs[many-1].ID)
		fixture.Equal(s, "the newest of half a kind",
			first(engine.RunFilter{Tags: map[string]string{"kind": "many", "half": "0"}}, many/2), runs[many-2].ID)
		fixture.Equal(s, "the rare one", first(engine.RunFilter{Tags: map[string]string{"kind": "rare"}}, 1), rare)
		fixture.Equal(s, "those of a long page",
			len(s.Listed(engine.RunFilter{Namespace: fixture.Space, Search: "many-000"})), 10)
		fixture.Equal(s, "those of half a long page",
			len(s.Listed(engine.RunFilter{Namespace: fixture.Space, Search: "many-000",
				Tags: map[string]string{"half": "1"}})), 5)
	}},
	{Name: "created filters find runs with older and newer ids", Run: func(s *fixture.F) {
		behind, ahead := engine.FirstID(s.Now.Add(-59*time.Minute)), engine.FirstID(s.Now.Add(100*24*time.Hour))
		for _, id := range []engine.ID{behind, ahead} {
			s.Start(func(r *engine.StartRun) { r.ID = id })
		}
		all := engine.RunFilter{Namespace: fixture.Space, CreatedAfter: s.Now.Add(-time.Microsecond)}
		s.SameIDs("created since", s.Listed(all), []engine.ID{ahead, behind})
		all.CreatedAfter = s.Now
		s.SameIDs("created later", s.Listed(all), nil)
	}},
	{Name: "a RUNNING run is listed with its lease's counts", Run: func(s *fixture.F) {
		l := s.Held()
		s.Complete(l, "pay", "paid")
		runs, _, err := s.Store.ListRuns(s.Ctx, engine.RunFilter{
			Namespace: fixture.Space, Statuses: []engine.RunStatus{engine.RunRunning}}, engine.Page{Limit: 5})
		s.Must(err, "ListRuns")
		fixture.Equal(s, "steps", runs[0].Steps, 1)
		fixture.Equal(s, "bytes", runs[0].Bytes, int64(len("input")+len("paid")))
	}},
	{Name: "attempts are listed by sequence and attempt both ways", Run: func(s *fixture.F) {
		l := s.Held()
		s.Begin(l, "a")
		s.Complete(l, "b", "2")
		s.Release(l, false)
		l = s.Claim("w1").Lease
		s.Begin(l, "a")
		s.Complete(l, "c", "3")
		s.Release(l, false)
		l = s.Claim("w1").Lease
		s.Complete(l, "a", "1")
		for _, limit := range []int{1, 2, 4, 5, 9} {
			for name, want := range map[string]string{"": "a1 a2 a3 b1 c1 ", "a": "a1 a2 a3 ", "c": "c1 ", "d": ""} {
				got := ""
				for _, step := range fixture.Walk(s, limit,
					func(p engine.Page) ([]engine.Step, engine.PageInfo, error) {
						return s.Store.ListSteps(s.Ctx, fixture.Space, l.RunID,
							engine.StepFilter{Name: name}, p)
					}, func(t engine.Step) engine.Cursor {
						return engine.Cursor{Number: t.Sequence, Minor: t.Attempt}
					}) {
					got += fmt.Sprintf("%s%d ", step.Name, step.Attempt)
				}
				fixture.Equal(s, fmt.Sprintf("attempts of %q by %d", name, limit), got, want)
			}
		}
		_, info, err := s.Store.ListSteps(s.Ctx, fixture.Space, l.RunID, engine.StepFilter{},
			engine.Page{Limit: 1, Count: true})
		s.Must(err, "ListSteps")
		fixture.Equal(s, "total", info.Total, 5)
		_, _, err = s.Store.ListSteps(s.Ctx, fixture.Space, s.ID(), engine.StepFilter{}, engine.Page{Limit: 1})
		s.Refused(err, engine.ErrNotFound, "ListSteps of an unknown run")
		_, _, err = s.Store.ListSteps(s.Ctx, "other", l.RunID, engine.StepFilter{}, engine.Page{Limit: 1})
		s.Refused(err, engine.ErrNotFound, "ListSteps in another namespace")
	}},
	{Name: "attempts are selected by status, and by being the latest", Run: selectedSteps},
	{Name: "workers are listed newest first and filtered", Run: listWorkers},
	{Name: "types are listed by name with their counts", Run: func(s *fixture.F) {
		s.Worker("w1")
		s.Start(fixture.OfType("b"), fixture.InQueue("z"))
		s.Start(fixture.OfType("b"), fixture.InQueue("Z"))
		s.Cancel(s.Start(fixture.OfType("b"), fixture.InQueue("z")))
		s.Cancel(s.Start(fixture.OfType("a")))
		s.Start(fixture.OfType("C"))
		s.Start(fixture.OfType("d"), fixture.InSpace("other"))
		for _, limit := range []int{1, 2, 3, 9} {
			got := ""
			for _, t := range fixture.Walk(s, limit, func(p engine.Page) ([]engine.TypeInfo, engine.PageInfo, error) {
				return s.Store.ListTypes(s.Ctx, fixture.Space, p)
			}, func(t engine.TypeInfo) engine.Cursor { return engine.Cursor{Name: t.Type} }) {
				got += fmt.Sprintln(t.Type, t.Total, t.Active, t.Queues)
			}
			fixture.Equal(s, fmt.Sprintf("types by %d", limit), got, "C 1 1 [orders]\na 1 0 [orders]\nb 3 2 [Z z]\n")
		}
	}},
	{Name: "queue depth counts waiting, running and unserved runs", Run: queueDepths},
	{Name: "stats count one namespace or all", Run: func(s *fixture.F) {
		s.Worker("w1")
		s.EndedRuns()
		s.Worker("w2")
		s.Offline("w2", engine.OfflineForced)
		running := s.HeldNext()
		sleeping := s.HeldNext()
		s.Sleep(sleeping, "nap", time.Hour)
		oldest := s.Now
		s.Start(fixture.OfType("slow"))
		s.Pass(time.Minute)
		s.Start()
		s.Start(fixture.DueAt(s.Now.Add(time.Hour)))
		s.Start(fixture.InSpace("other"), fixture.OfType("slow"))
		w := s.NewWorker("w3")
		w.Namespace = "other"
		s.Register(w, true)
		fixture.Equal(s, "run that runs", running.RunID.IsZero(), false)

		one, err := s.Store.GetStats(s.Ctx, fixture.Space, s.Now)
		s.Must(err, "GetStats")
		fixture.Equal(s, "statuses", fmt.Sprint(one.ByStatus), fmt.Sprint(map[engine.RunStatus]int64{
			engine.RunPending: 3, engine.RunRunning: 1, engine.RunSleeping: 1, engine.RunCompleted: 1,
			engine.RunFailed:    1,
			engine.RunCancelled: 1, engine.RunTerminated: 1,
		}))
		fixture.Equal(s, "types", fmt.Sprint(one.ByType), fmt.Sprint(map[string]int64{fixture.Kind: 8, "slow": 1}))
		fixture.Equal(s, "workers", one.Workers, 2)
		fixture.Equal(s, "online workers", one.OnlineWorkers, 1)
		s.SameTime("oldest due", one.OldestDue, oldest)
		all, err := s.Store.GetStats(s.Ctx, "", s.Now)
		s.Must(err, "Stats of all")
		fixture.Equal(s, "pending of all", all.ByStatus[engine.RunPending], 4)
		fixture.Equal(s, "slow of all", all.ByType["slow"], 2)
		fixture.Equal(s, "workers of all", all.Workers, 3)
		fixture.Equal(s, "online workers of all", all.OnlineWorkers, 2)
	}},
	{Name: "every way to read a run returns the same",
		Run: func(s *fixture.F) {
			s.Start(fixture.WithExternal("first"), func(r *engine.StartRun) {
				r.Input = fixture.Text("another")
			}, fixture.InSpace("other"))
			s.Start(fixture.WithExternal("second"), func(r *engine.StartRun) {
				r.Input = fixture.Text("a third")
			}, fixture.InQueue("other"))
			s.Held(fixture.WithExternal("mine"))
			s.Lose("w1")
			l := s.Claim("w1").Lease
			s.HeldNext() // another lease in addition
			look := func(when string) {
				s.Helper()
				run := s.Run(l.RunID)
				named, err := s.Store.GetRunByExternalID(s.Ctx, fixture.Space, "mine")
				s.Must(err, "GetRunByExternalID "+when)
				s.SameRun(named, run)
				run.Input, run.Output = engine.Payload{}, engine.Payload{}
				s.SameRun(s.Gotten(l.RunID)[l.RunID], run)
			}
			look("while it is held")
			s.Complete(l, "pay", "paid")
			step := s.Step(l.RunID, "pay")
			look("when its lease has recorded a result")
			got, err := s.Store.GetStep(s.Ctx, fixture.Space, step.ID)
			s.Must(err, "GetStep")
			s.SameStep(got, step)
			_, err = s.Store.GetStep(s.Ctx, "other", step.ID)
			s.Refused(err, engine.ErrNotFound, "GetStep in another namespace")
			s.Finish(l, "done")
			look("after its end")
		}},
}

func listByEveryFilter(s *fixture.F) {
	parent := s.ID()
	created := map[engine.ID]time.Time{}
	add := func(changes ...func(*engine.StartRun)) engine.ID {
		s.Pass(time.Second)
		id := s.Start(changes...)
		created[id] = s.Now
		return id
	}
	s.Worker("w1")
	ended := s.EndedRuns()
	held := s.HeldNext()
	s.Sleep(held, "nap", time.Hour)
	running := s.HeldNext()
	a := add(fixture.OfType("a"), fixture.Tagged("team", "x", "env", "prod"))
	b := add(fixture.OfType("b"), fixture.InQueue("second"), fixture.Tagged("team", "x"), fixture.WithExternal("ext-1"))
	c := add(fixture.OfType("A"), fixture.Tagged("team", "X"), fixture.WithExternal("ext-22"))
	d := add(fixture.OfType("a"), fixture.InQueue("Second"), fixture.WithExternal("EXT-1"), func(r *engine.StartRun) {
		r.ParentRunID = parent
	})
	s.Start(fixture.OfType("a"), fixture.InSpace("other"), fixture.Tagged("team", "x"), fixture.WithExternal("ext-1"))

	check := func(what string, f engine.RunFilter, want ...engine.ID) {
		s.Helper()
		f.Namespace = fixture.Space
		s.SameIDs(what, s.Listed(f), want)
	}
	statuses := func(list ...engine.RunStatus) engine.RunFilter { return engine.RunFilter{Statuses: list} }
	check("PENDING", statuses(engine.RunPending), d, c, b, a)
	check("RUNNING", statuses(engine.RunRunning), running.RunID)
	check("SLEEPING", statuses(engine.RunSleeping), held.RunID)
	check("TIMED_OUT", statuses(engine.RunTimedOut))
	for status, id := range ended {
		check(status.String(), statuses(status), id)
	}
	check("open", statuses(engine.RunPending, engine.RunSleeping, engine.RunRunning), d, c, b, a, running.RunID,
		held.RunID)
	check("ended badly or waiting", statuses(engine.RunTerminated, engine.RunPending), d, c, b, a,
		ended[engine.RunTerminated])
	check("type a", engine.RunFilter{Types: []string{"a"}}, d, a)
	check("types", engine.RunFilter{Types: []string{"b", "A", "none"}}, c, b)
	check("queue", engine.RunFilter{Queues: []string{"second"}}, b)
	check("queues", engine.RunFilter{Queues: []string{"second", "Second"}}, d, b)
	check("tag", engine.RunFilter{Tags: map[string]string{"team": "x"}}, b, a)
	check("tags", engine.RunFilter{Tags: map[string]string{"team": "x", "env": "prod"}}, a)
	check("tag of no run", engine.RunFilter{Tags: map[string]string{"team": "y"}})
	check("parent", engine.RunFilter{ParentRunID: parent}, d)
	check("worker", engine.RunFilter{WorkerID: "w1"}, slices.SortedFunc(slices.Values([]engine.ID{
		running.RunID, ended[engine.RunCompleted], ended[engine.RunFailed]}), func(a, b engine.ID) int {
		return strings.Compare(b.String(), a.String())
	})...)
	check("schedule of no run", engine.RunFilter{ScheduleID: "none"})
	check("created after", engine.RunFilter{CreatedAfter: created[a]}, d, c, b)
	check("created just before", engine.RunFilter{
		CreatedAfter: created[a].Add(-time.Microsecond), CreatedBefore: created[c]}, b, a)
	check("created before and after one moment", engine.RunFilter{CreatedAfter: created[b], CreatedBefore: created[b]})
	check("external id", engine.RunFilter{Search: "ext-1"}, b)
	check("prefix of external ids", engine.RunFilter{Search: "ext"}, c, b)
	check("no wildcard", engine.RunFilter{Search: "%"})
	check("no single wildcard", engine.RunFilter{Search: "ext_"})
	check("run id", engine.RunFilter{Search: c.String()}, c)
	check("prefix of a run id", engine.RunFilter{Search: b.String()[:35]},
		slices.Collect(func(yield func(engine.ID) bool) {
			for _, id := range []engine.ID{d, c, b, a} {
				if strings.HasPrefix(id.String(), b.String()[:35]) && !yield(id) {
					return
				}
			}
		})...)
	check("tags of which one is rare", engine.RunFilter{Tags: map[string]string{"team": "x", "env": "test"}})
	check("tag and search", engine.RunFilter{Tags: map[string]string{"team": "x"}, Search: "ext"}, b)
	check("type and search", engine.RunFilter{Types: []string{"A"}, Search: "ext"}, c)
	check("several at once", engine.RunFilter{
		Types: []string{"a", "b"}, Tags: map[string]string{"team": "x"}, Queues: []string{fixture.Queue},
		Statuses: []engine.RunStatus{engine.RunPending}, CreatedBefore: created[d]}, a)
}

func listWorkers(s *fixture.F) {
	var all []string
	for i, name := range []string{"b", "a", "c", "B", "_"} {
		w := s.NewWorker(name)
		w.Queues = []string{"q", "q" + name}
		if i == 4 {
			w.Namespace = "other"
		}
		s.Register(w, true)
		if i == 1 || i == 3 {
			s.Pass(time.Second) // the others have the same time
		}
		all = append(all, name)
	}
	s.Must(s.Store.DrainWorker(s.Ctx, engine.DrainWorkerParams{WorkerID: "c", Now: s.Now}), "DrainWorker")
	s.Offline("a", engine.OfflineForced)
	check := func(what string, f engine.WorkerFilter, want string) {
		s.Helper()
		for _, limit := range []int{1, 2, 3, 9} {
			got := ""
			for _, w := range fixture.Walk(s, limit, func(p engine.Page) ([]engine.Worker, engine.PageInfo, error) {
				return s.Store.ListWorkers(s.Ctx, f, p)
			}, func(w engine.Worker) engine.Cursor { return engine.Cursor{At: w.RegisteredAt, Name: w.ID} }) {
				got += w.ID + " "
				s.SameText("worker", fixture.WorkerText(w), fixture.WorkerText(s.WorkerState(w.ID)))
			}
			fixture.Equal(s, fmt.Sprintf("%s by %d", what, limit), got, want)
		}
		_, info, err := s.Store.ListWorkers(s.Ctx, f, engine.Page{Limit: 1, Count: true})
		s.Must(err, "ListWorkers")
		fixture.Equal(s, "total", int(info.Total), len(strings.Fields(want)))
	}
	fixture.Equal(s, "workers", len(all), 5)
	check("all", engine.WorkerFilter{}, "_ c B b a ")
	check("one namespace", engine.WorkerFilter{Namespace: fixture.Space}, "c B b a ")
	check("a queue", engine.WorkerFilter{Queue: "q"}, "_ c B b a ")
	check("a queue of one", engine.WorkerFilter{Queue: "qB"}, "B ")
	check("a part of a queue's name", engine.WorkerFilter{Queue: "qa\""}, "")
	check("ONLINE", engine.WorkerFilter{Status: engine.WorkerOnline}, "_ B b ")
	check("DRAINING", engine.WorkerFilter{Status: engine.WorkerDraining}, "c ")
	check("OFFLINE", engine.WorkerFilter{Status: engine.WorkerOffline}, "a ")
	check("several at once", engine.WorkerFilter{
		Namespace: fixture.Space, Queue: "qb", Status: engine.WorkerOnline}, "b ")
}

func queueDepths(s *fixture.F) {
	w := s.NewWorker("w1")
	w.Capabilities = map[string]string{"gpu": "a100"}
	s.Register(w, true)
	idle := s.NewWorker("w2")
	idle.Queues = []string{"idle", fixture.Queue}
	s.Register(idle, true)
	s.HeldNext()
	sleeping := s.HeldNext()
	s.Sleep(sleeping, "nap", time.Minute)
	oldest := s.Now
	s.Start(fixture.Requiring("gpu", "a100"))
	s.Pass(time.Second)
	s.Start(fixture.Requiring("gpu", "t4"))
	s.Start(fixture.OfType("nobody"))
	s.Start(fixture.OfType("nobody"), fixture.DueAt(s.Now.Add(time.Hour)))
	s.Start(fixture.InQueue("empty-handed"))
	s.Start(fixture.InQueue("Zone"))
	s.Cancel(s.Start(fixture.InQueue("over")))
	s.Start(fixture.InSpace("other"), fixture.InQueue("theirs"))
	drained := s.NewWorker("w3")
	drained.Queues, drained.Types = []string{fixture.Queue, "drained"}, []string{"nobody"}
	s.Register(drained, true)
	s.Must(s.Store.DrainWorker(s.Ctx, engine.DrainWorkerParams{WorkerID: "w3", Now: s.Now}), "DrainWorker")

	depths := func(queue string) []engine.QueueDepth {
		s.Helper()
		list, err := s.Store.GetQueueDepth(s.Ctx, fixture.Space, queue, s.Now)
		s.Must(err, "GetQueueDepth")
		return list
	}
	got := ""
	for _, d := range depths("") {
		got += fmt.Sprintln(d.Queue, d.Pending, d.Running, d.Sleeping, fixture.Clock(d.OldestDue), d.OnlineWorkers,
			mapOf(d.Unserved))
	}
	second := oldest.Add(time.Second)
	fixture.Equal(s, "queues", got, fmt.Sprintln("Zone", 1, 0, 0, fixture.Clock(second), 0, "order=1 ")+
		fmt.Sprintln("drained", 0, 0, 0, "unset", 0, "")+
		fmt.Sprintln("empty-handed", 1, 0, 0, fixture.Clock(second), 0, "order=1 ")+
		fmt.Sprintln("idle", 0, 0, 0, "unset", 1, "")+
		fmt.Sprintln(fixture.Queue, 4, 1, 1, fixture.Clock(oldest), 2, "nobody=1 order=1 "))
	s.Pass(2 * time.Hour)
	one := depths(fixture.Queue)
	fixture.Equal(s, "rows of one queue", len(one), 1)
	fixture.Equal(s, "unserved later", mapOf(one[0].Unserved), "nobody=2 order=1 ")
	s.Offline("w1", engine.OfflineForced)
	s.Offline("w2", engine.OfflineForced)
	fixture.Equal(s, "unserved without workers", mapOf(depths(fixture.Queue)[0].Unserved), "nobody=2 order=4 ")
	fixture.Equal(s, "a queue that is not there", len(depths("nowhere")), 0)
}

func mapOf(m map[string]int64) string {
	out := ""
	for _, key := range slices.Sorted(maps.Keys(m)) {
		out += fmt.Sprintf("%s=%d ", key, m[key])
	}
	return out
}
