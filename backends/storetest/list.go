package storetest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// walk reads a whole list in pages, forwards and then backwards from its end, and fails the case unless both give the same
// items once each and every page says rightly what lies around it.
func walk[V any](s *stage, limit int, read func(engine.Page) ([]V, engine.PageInfo, error), cursor func(V) engine.Cursor) []V {
	s.Helper()
	all, last := walkOne(s, limit, read, cursor, true)
	back, _ := walkOne(s, limit, read, cursor, false)
	if len(all) == 0 {
		return nil
	}
	key := func(v V) string { return fmt.Sprint(cursor(v)) }
	back = append(back, last) // backwards starts before the last item
	for i := range max(len(all), len(back)) {
		if i >= len(all) || i >= len(back) || key(all[i]) != key(back[i]) {
			s.Fatalf("pages of %d: forwards %d items, backwards %d, which differ at %d", limit, len(all), len(back), i)
		}
	}
	return all
}

// walkOne reads in one direction; it returns the items in the list's order and the last of them.
func walkOne[V any](s *stage, limit int, read func(engine.Page) ([]V, engine.PageInfo, error), cursor func(V) engine.Cursor, forwards bool) (all []V, last V) {
	s.Helper()
	page := engine.Page{Limit: limit}
	if !forwards {
		whole, _, err := read(engine.Page{Limit: engine.MaxPage})
		s.must(err, "list")
		if len(whole) == 0 {
			return nil, last
		}
		page.Before = ptr(cursor(whole[len(whole)-1]))
	}
	for first := true; ; first = false {
		items, info, err := read(page)
		s.must(err, "list")
		if len(items) > limit {
			s.Fatalf("a page of %d has %d items", limit, len(items))
		}
		more := info.HasNext
		if forwards {
			equal(s, "HasPrev", info.HasPrev, !first)
			all = append(all, items...)
		} else {
			more = info.HasPrev
			equal(s, "HasNext", info.HasNext, true)
			all = append(slices.Clone(items), all...)
		}
		if len(items) > 0 {
			last = items[len(items)-1]
		}
		if !more {
			return all, last
		}
		equal(s, "items of a page that is not the last", len(items), limit)
		if forwards {
			page.After = ptr(cursor(items[len(items)-1]))
		} else {
			page.Before = ptr(cursor(items[0]))
		}
	}
}

func runCursor(r engine.Run) engine.Cursor { return engine.Cursor{ID: r.ID} }

func (s *stage) listed(f engine.RunFilter) []engine.ID {
	s.Helper()
	runs := walk(s, 2, func(p engine.Page) ([]engine.Run, engine.PageInfo, error) { return s.store.ListRuns(s.ctx, f, p) }, runCursor)
	var ids []engine.ID
	for _, r := range runs {
		ids = append(ids, r.ID)
	}
	_, info, err := s.store.ListRuns(s.ctx, f, engine.Page{Limit: 1, Count: true})
	s.must(err, "ListRuns")
	equal(s, "total", int(info.Total), len(ids))
	return ids
}

// gotten is the runs of these ids, which must come once each.
func (s *stage) gotten(ids ...engine.ID) map[engine.ID]engine.Run {
	s.Helper()
	runs, err := s.store.GetRuns(s.ctx, space, ids)
	s.must(err, "GetRuns")
	all := map[engine.ID]engine.Run{}
	for _, r := range runs {
		if _, twice := all[r.ID]; twice {
			s.Fatalf("run %s comes twice", r.ID)
		}
		all[r.ID] = r
	}
	return all
}

var listCases = []testCase{
	{"runs are listed newest first, once each, in both directions, with pages of any size", func(s *stage) {
		var want []engine.ID
		for range 7 {
			want = append([]engine.ID{s.start()}, want...)
			s.pass(time.Millisecond)
		}
		s.start(inSpace("other"))
		for _, limit := range []int{1, 2, 3, 6, 7, 8, engine.MaxPage} {
			var got []engine.ID
			for _, r := range walk(s, limit, func(p engine.Page) ([]engine.Run, engine.PageInfo, error) {
				return s.store.ListRuns(s.ctx, engine.RunFilter{Namespace: space}, p)
			}, runCursor) {
				got = append(got, r.ID)
			}
			s.sameIDs(fmt.Sprintf("pages of %d", limit), got, want)
		}
	}},
	{"runs are got by their ids, each once and without payloads, whatever else is asked for", func(s *stage) {
		l := s.held(tagged("customer", "x"), withExternal("order-1"))
		s.complete(l, "pay", "paid")
		elsewhere := s.start(inSpace("other"))
		want := []engine.Run{s.run(l.RunID), s.run(s.start(dueAt(s.now.Add(time.Hour))))}
		got := s.gotten(want[1].ID, s.id(), want[0].ID, elsewhere, want[1].ID, want[0].ID, engine.ID{})
		equal(s, "runs", len(got), len(want))
		for _, w := range want {
			w.Input, w.Output = engine.Payload{}, engine.Payload{}
			s.sameRun(got[w.ID], w)
		}
		equal(s, "runs of no ids", len(s.gotten()), 0)
		equal(s, "runs of unknown ids", len(s.gotten(s.id(), elsewhere)), 0)
		others, err := s.store.GetRuns(s.ctx, "other", []engine.ID{elsewhere, l.RunID})
		s.must(err, "GetRuns")
		equal(s, "runs of the other namespace", len(others), 1)
	}},
	{"as many runs as a page holds are got at once", func(s *stage) {
		starts := make([]engine.StartRun, engine.MaxPage)
		ids := make([]engine.ID, engine.MaxPage)
		for i := range starts {
			starts[i] = s.newRun()
			ids[i] = starts[i].ID
		}
		s.startAll(starts...)
		got := s.gotten(ids...)
		equal(s, "runs", len(got), engine.MaxPage)
		for _, id := range ids {
			equal(s, "id of the run", got[id].ID, id)
		}
	}},
	{"runs that come or end while a list is read move nothing that was there", func(s *stage) {
		var there []engine.ID
		for range 9 {
			there = append([]engine.ID{s.start()}, there...)
			s.pass(time.Millisecond)
		}
		var got []engine.ID
		page := engine.Page{Limit: 2}
		for {
			runs, info, err := s.store.ListRuns(s.ctx, engine.RunFilter{Namespace: space}, page)
			s.must(err, "ListRuns")
			for _, r := range runs {
				got = append(got, r.ID)
			}
			if !info.HasNext {
				break
			}
			page.After = ptr(runCursor(runs[len(runs)-1]))
			s.start()
			s.cancel(there[len(there)-1])
			s.pass(time.Millisecond)
		}
		s.sameIDs("runs", got, there)
	}},
	{"a page from the middle knows both sides", func(s *stage) {
		var ids []engine.ID
		for range 5 {
			ids = append([]engine.ID{s.start()}, ids...)
		}
		f := engine.RunFilter{Namespace: space}
		runs, info, err := s.store.ListRuns(s.ctx, f, engine.Page{Limit: 2, After: &engine.Cursor{ID: ids[0]}, Count: true})
		s.must(err, "ListRuns after")
		s.sameIDs("after the first", []engine.ID{runs[0].ID, runs[1].ID}, ids[1:3])
		equal(s, "info", info, engine.PageInfo{HasNext: true, HasPrev: true, Total: 5})
		runs, info, err = s.store.ListRuns(s.ctx, f, engine.Page{Limit: 2, Before: &engine.Cursor{ID: ids[4]}})
		s.must(err, "ListRuns before")
		s.sameIDs("before the last", []engine.ID{runs[0].ID, runs[1].ID}, ids[2:4])
		equal(s, "info", info, engine.PageInfo{HasNext: true, HasPrev: true})
		runs, info, err = s.store.ListRuns(s.ctx, f, engine.Page{Limit: 2, After: &engine.Cursor{ID: ids[4]}})
		s.must(err, "ListRuns after the last")
		equal(s, "runs after the last", len(runs), 0)
		equal(s, "info", info, engine.PageInfo{HasPrev: true})
		runs, info, err = s.store.ListRuns(s.ctx, f, engine.Page{Limit: 2, Before: &engine.Cursor{ID: ids[0]}})
		s.must(err, "ListRuns before the first")
		equal(s, "runs before the first", len(runs), 0)
		equal(s, "info", info, engine.PageInfo{HasNext: true})
	}},
	{"a list of runs leaves payloads out and keeps the rest", func(s *stage) {
		s.worker("w1")
		start := s.newRun(withExternal("ext"), withRequest("req"), tagged("k", "v"), requiring("gpu", ""), withPolicy(engine.RetryPolicy{MaximumAttempts: 2}))
		s.started(start)
		s.finish(s.claimOffering("gpu", "x").Lease, "done")
		runs, _, err := s.store.ListRuns(s.ctx, engine.RunFilter{Namespace: space}, engine.Page{Limit: 5})
		s.must(err, "ListRuns")
		want := s.run(start.ID)
		want.Input, want.Output = engine.Payload{}, engine.Payload{}
		s.sameRun(runs[0], want)
	}},
	{"runs are selected by every field of the filter", listByEveryFilter},
	{"a search, or a tag, finds all it means among few and among many", func(s *stage) {
		const many = 1100 // more than are sorted for a page
		runs := make([]engine.StartRun, many)
		for i := range runs {
			runs[i] = s.newRun(withExternal(fmt.Sprintf("many-%04d", i)), tagged("kind", "many", "half", fmt.Sprint(i%2)))
		}
		for part := range slices.Chunk(runs, engine.MaxBatch) {
			s.startAll(part...)
		}
		rare := s.start(withExternal("rare"), tagged("kind", "rare"))
		first := func(f engine.RunFilter, total int64) engine.ID {
			s.Helper()
			f.Namespace = space
			page, info, err := s.store.ListRuns(s.ctx, f, engine.Page{Limit: 2, Count: true})
			s.must(err, "ListRuns")
			equal(s, "total", info.Total, total)
			equal(s, "whether there are more", info.HasNext, total > 2)
			return page[0].ID
		}
		equal(s, "the newest of many", first(engine.RunFilter{Search: "many"}, many), runs[many-1].ID)
		equal(s, "the newest of some", first(engine.RunFilter{Search: "many-00"}, 100), runs[99].ID)
		equal(s, "the one", first(engine.RunFilter{Search: "rare"}, 1), rare)
		equal(s, "the newest of a kind", first(engine.RunFilter{Tags: map[string]string{"kind": "many"}}, many), runs[many-1].ID)
		equal(s, "the newest of half a kind", first(engine.RunFilter{Tags: map[string]string{"kind": "many", "half": "0"}}, many/2), runs[many-2].ID)
		equal(s, "the rare one", first(engine.RunFilter{Tags: map[string]string{"kind": "rare"}}, 1), rare)
		equal(s, "those of a long page", len(s.listed(engine.RunFilter{Namespace: space, Search: "many-000"})), 10)
		equal(s, "those of half a long page", len(s.listed(engine.RunFilter{Namespace: space, Search: "many-000", Tags: map[string]string{"half": "1"}})), 5)
	}},
	{"a run is found by its creation although its id is older or much newer", func(s *stage) {
		behind, ahead := engine.FirstID(s.now.Add(-59*time.Minute)), engine.FirstID(s.now.Add(100*24*time.Hour))
		for _, id := range []engine.ID{behind, ahead} {
			s.start(func(r *engine.StartRun) { r.ID = id })
		}
		all := engine.RunFilter{Namespace: space, CreatedAfter: s.now.Add(-time.Microsecond)}
		s.sameIDs("created since", s.listed(all), []engine.ID{ahead, behind})
		all.CreatedAfter = s.now
		s.sameIDs("created later", s.listed(all), nil)
	}},
	{"a running run is listed with what its lease has recorded", func(s *stage) {
		l := s.held()
		s.complete(l, "pay", "paid")
		runs, _, err := s.store.ListRuns(s.ctx, engine.RunFilter{Namespace: space, Statuses: []engine.RunStatus{engine.RunRunning}}, engine.Page{Limit: 5})
		s.must(err, "ListRuns")
		equal(s, "steps", runs[0].Steps, 1)
		equal(s, "bytes", runs[0].Bytes, int64(len("input")+len("paid")))
	}},
	{"attempts of steps are listed by sequence and attempt, in both directions", func(s *stage) {
		l := s.held()
		s.begin(l, "a")
		s.complete(l, "b", "2")
		s.release(l, false)
		l = s.claim("w1").Lease
		s.begin(l, "a")
		s.complete(l, "c", "3")
		s.release(l, false)
		l = s.claim("w1").Lease
		s.complete(l, "a", "1")
		for _, limit := range []int{1, 2, 4, 5, 9} {
			for name, want := range map[string]string{"": "a1 a2 a3 b1 c1 ", "a": "a1 a2 a3 ", "c": "c1 ", "d": ""} {
				got := ""
				for _, step := range walk(s, limit, func(p engine.Page) ([]engine.Step, engine.PageInfo, error) {
					return s.store.ListSteps(s.ctx, space, l.RunID, name, p)
				}, func(t engine.Step) engine.Cursor { return engine.Cursor{Number: t.Sequence, Minor: t.Attempt} }) {
					got += fmt.Sprintf("%s%d ", step.Name, step.Attempt)
				}
				equal(s, fmt.Sprintf("attempts of %q by %d", name, limit), got, want)
			}
		}
		_, info, err := s.store.ListSteps(s.ctx, space, l.RunID, "", engine.Page{Limit: 1, Count: true})
		s.must(err, "ListSteps")
		equal(s, "total", info.Total, 5)
		_, _, err = s.store.ListSteps(s.ctx, space, s.id(), "", engine.Page{Limit: 1})
		s.refused(err, engine.ErrNotFound, "ListSteps of an unknown run")
		_, _, err = s.store.ListSteps(s.ctx, "other", l.RunID, "", engine.Page{Limit: 1})
		s.refused(err, engine.ErrNotFound, "ListSteps in another namespace")
	}},
	{"workers are listed newest first and selected by namespace, queue and status", listWorkers},
	{"types are listed by name with what they have", func(s *stage) {
		s.worker("w1")
		s.start(ofType("b"), inQueue("z"))
		s.start(ofType("b"), inQueue("Z"))
		s.cancel(s.start(ofType("b"), inQueue("z")))
		s.cancel(s.start(ofType("a")))
		s.start(ofType("C"))
		s.start(ofType("d"), inSpace("other"))
		for _, limit := range []int{1, 2, 3, 9} {
			got := ""
			for _, t := range walk(s, limit, func(p engine.Page) ([]engine.TypeInfo, engine.PageInfo, error) {
				return s.store.ListTypes(s.ctx, space, p)
			}, func(t engine.TypeInfo) engine.Cursor { return engine.Cursor{Name: t.Type} }) {
				got += fmt.Sprintln(t.Type, t.Total, t.Active, t.Queues)
			}
			equal(s, fmt.Sprintf("types by %d", limit), got, "C 1 1 [orders]\na 1 0 [orders]\nb 3 2 [Z z]\n")
		}
	}},
	{"queues show what waits, runs and sleeps, and what nobody serves", queueDepths},
	{"stats count everything, of one namespace or of all", func(s *stage) {
		s.worker("w1")
		s.endedRuns()
		s.worker("w2")
		s.offline("w2", engine.OfflineForced)
		running := s.heldNext()
		sleeping := s.heldNext()
		s.sleep(sleeping, "nap", time.Hour)
		oldest := s.now
		s.start(ofType("slow"))
		s.pass(time.Minute)
		s.start()
		s.start(dueAt(s.now.Add(time.Hour)))
		s.start(inSpace("other"), ofType("slow"))
		w := s.newWorker("w3")
		w.Namespace = "other"
		s.register(w, true)
		equal(s, "run that runs", running.RunID.IsZero(), false)

		one, err := s.store.GetStats(s.ctx, space, s.now)
		s.must(err, "GetStats")
		equal(s, "statuses", fmt.Sprint(one.ByStatus), fmt.Sprint(map[engine.RunStatus]int64{
			engine.RunPending: 3, engine.RunRunning: 1, engine.RunSleeping: 1, engine.RunCompleted: 1, engine.RunFailed: 1,
			engine.RunCancelled: 1, engine.RunTerminated: 1,
		}))
		equal(s, "types", fmt.Sprint(one.ByType), fmt.Sprint(map[string]int64{kind: 8, "slow": 1}))
		equal(s, "workers", one.Workers, 2)
		equal(s, "online workers", one.OnlineWorkers, 1)
		s.sameTime("oldest due", one.OldestDue, oldest)
		all, err := s.store.GetStats(s.ctx, "", s.now)
		s.must(err, "Stats of all")
		equal(s, "pending of all", all.ByStatus[engine.RunPending], 4)
		equal(s, "slow of all", all.ByType["slow"], 2)
		equal(s, "workers of all", all.Workers, 3)
		equal(s, "online workers of all", all.OnlineWorkers, 2)
	}},
	{"a run is the same however it is asked for, also while it is held, and its steps are its namespace's alone", func(s *stage) {
		s.start(withExternal("first"), func(r *engine.StartRun) { r.Input = text("another") }, inSpace("other"))
		s.start(withExternal("second"), func(r *engine.StartRun) { r.Input = text("a third") }, inQueue("other"))
		l := s.held(withExternal("mine"))
		s.lose("w1")
		l = s.claim("w1").Lease
		s.heldNext() // another lease beside it
		look := func(when string) {
			s.Helper()
			run := s.run(l.RunID)
			named, err := s.store.GetRunByExternalID(s.ctx, space, "mine")
			s.must(err, "GetRunByExternalID "+when)
			s.sameRun(named, run)
			run.Input, run.Output = engine.Payload{}, engine.Payload{}
			s.sameRun(s.gotten(l.RunID)[l.RunID], run)
		}
		look("while it is held")
		s.complete(l, "pay", "paid")
		step := s.step(l.RunID, "pay")
		look("when its lease has recorded a result")
		got, err := s.store.GetStep(s.ctx, space, step.ID)
		s.must(err, "GetStep")
		s.sameStep(got, step)
		_, err = s.store.GetStep(s.ctx, "other", step.ID)
		s.refused(err, engine.ErrNotFound, "GetStep in another namespace")
		s.finish(l, "done")
		look("after its end")
	}},
}

// claimOffering claims one run for w1, which offers this; there must be one.
func (s *stage) claimOffering(key, value string) engine.Task {
	s.Helper()
	p := s.claimParams("w1")
	p.Offers = []engine.Offer{{Key: key, Value: value}}
	claimed := s.claimWith(p)
	equal(s, "claimed runs", len(claimed.Tasks), 1)
	return claimed.Tasks[0]
}

func listByEveryFilter(s *stage) {
	parent := s.id()
	created := map[engine.ID]time.Time{}
	add := func(changes ...func(*engine.StartRun)) engine.ID {
		s.pass(time.Second)
		id := s.start(changes...)
		created[id] = s.now
		return id
	}
	s.worker("w1")
	ended := s.endedRuns()
	held := s.heldNext()
	s.sleep(held, "nap", time.Hour)
	running := s.heldNext()
	a := add(ofType("a"), tagged("team", "x", "env", "prod"))
	b := add(ofType("b"), inQueue("second"), tagged("team", "x"), withExternal("ext-1"))
	c := add(ofType("A"), tagged("team", "X"), withExternal("ext-22"))
	d := add(ofType("a"), inQueue("Second"), withExternal("EXT-1"), func(r *engine.StartRun) { r.ParentRunID = parent })
	s.start(ofType("a"), inSpace("other"), tagged("team", "x"), withExternal("ext-1"))

	check := func(what string, f engine.RunFilter, want ...engine.ID) {
		s.Helper()
		f.Namespace = space
		s.sameIDs(what, s.listed(f), want)
	}
	statuses := func(list ...engine.RunStatus) engine.RunFilter { return engine.RunFilter{Statuses: list} }
	check("PENDING", statuses(engine.RunPending), d, c, b, a)
	check("RUNNING", statuses(engine.RunRunning), running.RunID)
	check("SLEEPING", statuses(engine.RunSleeping), held.RunID)
	check("TIMED_OUT", statuses(engine.RunTimedOut))
	for status, id := range ended {
		check(status.String(), statuses(status), id)
	}
	check("open", statuses(engine.RunPending, engine.RunSleeping, engine.RunRunning), d, c, b, a, running.RunID, held.RunID)
	check("ended badly or waiting", statuses(engine.RunTerminated, engine.RunPending), d, c, b, a, ended[engine.RunTerminated])
	check("type a", engine.RunFilter{Types: []string{"a"}}, d, a)
	check("types", engine.RunFilter{Types: []string{"b", "A", "none"}}, c, b)
	check("queue", engine.RunFilter{Queues: []string{"second"}}, b)
	check("queues", engine.RunFilter{Queues: []string{"second", "Second"}}, d, b)
	check("tag", engine.RunFilter{Tags: map[string]string{"team": "x"}}, b, a)
	check("tags", engine.RunFilter{Tags: map[string]string{"team": "x", "env": "prod"}}, a)
	check("tag of no run", engine.RunFilter{Tags: map[string]string{"team": "y"}})
	check("parent", engine.RunFilter{ParentRunID: parent}, d)
	check("worker", engine.RunFilter{WorkerID: "w1"}, slices.SortedFunc(slices.Values([]engine.ID{
		running.RunID, ended[engine.RunCompleted], ended[engine.RunFailed]}), func(a, b engine.ID) int { return strings.Compare(b.String(), a.String()) })...)
	check("schedule of no run", engine.RunFilter{ScheduleID: "none"})
	check("created after", engine.RunFilter{CreatedAfter: created[a]}, d, c, b)
	check("created just before", engine.RunFilter{CreatedAfter: created[a].Add(-time.Microsecond), CreatedBefore: created[c]}, b, a)
	check("created before and after one moment", engine.RunFilter{CreatedAfter: created[b], CreatedBefore: created[b]})
	check("external id", engine.RunFilter{Search: "ext-1"}, b)
	check("prefix of external ids", engine.RunFilter{Search: "ext"}, c, b)
	check("no wildcard", engine.RunFilter{Search: "%"})
	check("no single wildcard", engine.RunFilter{Search: "ext_"})
	check("run id", engine.RunFilter{Search: c.String()}, c)
	check("prefix of a run id", engine.RunFilter{Search: b.String()[:35]}, slices.Collect(func(yield func(engine.ID) bool) {
		for _, id := range []engine.ID{d, c, b, a} {
			if strings.HasPrefix(id.String(), b.String()[:35]) && !yield(id) {
				return
			}
		}
	})...)
	check("tags of which one is rare", engine.RunFilter{Tags: map[string]string{"team": "x", "env": "test"}})
	check("tag and search", engine.RunFilter{Tags: map[string]string{"team": "x"}, Search: "ext"}, b)
	check("type and search", engine.RunFilter{Types: []string{"A"}, Search: "ext"}, c)
	check("several at once", engine.RunFilter{Types: []string{"a", "b"}, Tags: map[string]string{"team": "x"}, Queues: []string{queue},
		Statuses: []engine.RunStatus{engine.RunPending}, CreatedBefore: created[d]}, a)
}

func listWorkers(s *stage) {
	var all []string
	for i, name := range []string{"b", "a", "c", "B", "_"} {
		w := s.newWorker(name)
		w.Queues = []string{"q", "q" + name}
		if i == 4 {
			w.Namespace = "other"
		}
		s.register(w, true)
		if i == 1 || i == 3 {
			s.pass(time.Second) // the others share their moment
		}
		all = append(all, name)
	}
	s.must(s.store.DrainWorker(s.ctx, engine.DrainWorkerParams{WorkerID: "c", Now: s.now}), "DrainWorker")
	s.offline("a", engine.OfflineForced)
	check := func(what string, f engine.WorkerFilter, want string) {
		s.Helper()
		for _, limit := range []int{1, 2, 3, 9} {
			got := ""
			for _, w := range walk(s, limit, func(p engine.Page) ([]engine.Worker, engine.PageInfo, error) {
				return s.store.ListWorkers(s.ctx, f, p)
			}, func(w engine.Worker) engine.Cursor { return engine.Cursor{At: w.RegisteredAt, Name: w.ID} }) {
				got += w.ID + " "
				s.sameText("worker", workerText(w), workerText(s.workerState(w.ID)))
			}
			equal(s, fmt.Sprintf("%s by %d", what, limit), got, want)
		}
		_, info, err := s.store.ListWorkers(s.ctx, f, engine.Page{Limit: 1, Count: true})
		s.must(err, "ListWorkers")
		equal(s, "total", int(info.Total), len(strings.Fields(want)))
	}
	equal(s, "workers", len(all), 5)
	check("all", engine.WorkerFilter{}, "_ c B b a ")
	check("one namespace", engine.WorkerFilter{Namespace: space}, "c B b a ")
	check("a queue", engine.WorkerFilter{Queue: "q"}, "_ c B b a ")
	check("a queue of one", engine.WorkerFilter{Queue: "qB"}, "B ")
	check("a part of a queue's name", engine.WorkerFilter{Queue: "qa\""}, "")
	check("ONLINE", engine.WorkerFilter{Status: engine.WorkerOnline}, "_ B b ")
	check("DRAINING", engine.WorkerFilter{Status: engine.WorkerDraining}, "c ")
	check("OFFLINE", engine.WorkerFilter{Status: engine.WorkerOffline}, "a ")
	check("several at once", engine.WorkerFilter{Namespace: space, Queue: "qb", Status: engine.WorkerOnline}, "b ")
}

func queueDepths(s *stage) {
	w := s.newWorker("w1")
	w.Capabilities = map[string]string{"gpu": "a100"}
	s.register(w, true)
	idle := s.newWorker("w2")
	idle.Queues = []string{"idle", queue}
	s.register(idle, true)
	s.heldNext()
	sleeping := s.heldNext()
	s.sleep(sleeping, "nap", time.Minute)
	oldest := s.now
	s.start(requiring("gpu", "a100"))
	s.pass(time.Second)
	s.start(requiring("gpu", "t4"))
	s.start(ofType("nobody"))
	s.start(ofType("nobody"), dueAt(s.now.Add(time.Hour)))
	s.start(inQueue("empty-handed"))
	s.start(inQueue("Zone"))
	s.cancel(s.start(inQueue("over")))
	s.start(inSpace("other"), inQueue("theirs"))
	drained := s.newWorker("w3")
	drained.Queues, drained.Types = []string{queue, "drained"}, []string{"nobody"}
	s.register(drained, true)
	s.must(s.store.DrainWorker(s.ctx, engine.DrainWorkerParams{WorkerID: "w3", Now: s.now}), "DrainWorker")

	depths := func(queue string) []engine.QueueDepth {
		s.Helper()
		list, err := s.store.GetQueueDepth(s.ctx, space, queue, s.now)
		s.must(err, "GetQueueDepth")
		return list
	}
	got := ""
	for _, d := range depths("") {
		got += fmt.Sprintln(d.Queue, d.Pending, d.Running, d.Sleeping, clock(d.OldestDue), d.OnlineWorkers, mapOf(d.Unserved))
	}
	second := oldest.Add(time.Second)
	equal(s, "queues", got, fmt.Sprintln("Zone", 1, 0, 0, clock(second), 0, "order=1 ")+
		fmt.Sprintln("drained", 0, 0, 0, "unset", 0, "")+
		fmt.Sprintln("empty-handed", 1, 0, 0, clock(second), 0, "order=1 ")+
		fmt.Sprintln("idle", 0, 0, 0, "unset", 1, "")+
		fmt.Sprintln(queue, 4, 1, 1, clock(oldest), 2, "nobody=1 order=1 "))
	s.pass(2 * time.Hour)
	one := depths(queue)
	equal(s, "rows of one queue", len(one), 1)
	equal(s, "unserved later", mapOf(one[0].Unserved), "nobody=2 order=1 ")
	s.offline("w1", engine.OfflineForced)
	s.offline("w2", engine.OfflineForced)
	equal(s, "unserved without workers", mapOf(depths(queue)[0].Unserved), "nobody=2 order=4 ")
	equal(s, "a queue that is not there", len(depths("nowhere")), 0)
}

func mapOf(m map[string]int64) string {
	out := ""
	for _, key := range slices.Sorted(maps.Keys(m)) {
		out += fmt.Sprintf("%s=%d ", key, m[key])
	}
	return out
}
