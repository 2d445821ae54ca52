package work

import (
	"fmt"
	"strings"
	"time"

	"github.com/kagzi/kagzi/backends/storetest/internal/fixture"
	"github.com/kagzi/kagzi/engine"
)

const doomed = "doomed" // a namespace to delete

// makeDoomed creates the namespace.
func makeDoomed(s *fixture.F) {
	s.Helper()
	_, err := s.Store.CreateNamespace(s.Ctx, engine.NamespaceParams{
		Namespace: engine.Namespace{Name: doomed, Description: "of old", Enabled: true}, Method: "CreateNamespace",
		By: fixture.Somebody, AuditID: s.ID(), Now: s.Now})
	s.Must(err, "CreateNamespace")
}

func deletion(s *fixture.F) engine.DeleteNamespaceParams {
	return engine.DeleteNamespaceParams{Name: doomed, Reason: "moved away", Detail: "all of it", By: fixture.Somebody,
		AuditID: s.ID(), Now: s.Now}
}

func emptying(s *fixture.F, again bool, limit int) engine.EmptyNamespaceParams {
	return engine.EmptyNamespaceParams{Name: doomed, Again: again, Limit: limit, By: fixture.Somebody,
		AuditID: s.ID(), Now: s.Now}
}

// emptyAll empties the namespace in parts, and returns what was deleted.
func emptyAll(s *fixture.F, again bool, limit int) (all engine.Contents) {
	s.Helper()
	for range 100 {
		part, err := s.Store.EmptyNamespace(s.Ctx, emptying(s, again, limit))
		s.Must(err, "EmptyNamespace")
		if part.Runs > int64(limit) || part.Schedules > int64(limit) {
			s.Fatalf("one call deleted %s, want at most %d of a kind", part.Contents, limit)
		}
		all.Runs, all.Schedules = all.Runs+part.Runs, all.Schedules+part.Schedules
		all.Workers, all.Keys = all.Workers+part.Workers, all.Keys+part.Keys
		if !part.More {
			return all
		}
		again = true
	}
	s.Fatalf("the namespace is not empty after 100 calls; deleted %s", all)
	return all
}

func inDoomed(r *engine.StartRun) { r.Namespace = doomed }

func planInDoomed(p *engine.Schedule) { p.Namespace = doomed }

func workerInDoomed(s *fixture.F, id string) engine.RegisterWorkerParams {
	w := s.NewWorker(id)
	w.Namespace = doomed
	return engine.RegisterWorkerParams{Worker: w, Chosen: true, NamespaceMustExist: true, Now: s.Now}
}

func importInDoomed(s *fixture.F) engine.ImportRunsParams {
	return engine.ImportRunsParams{Namespace: doomed, NamespaceMustExist: true, By: fixture.Somebody, AuditID: s.ID(),
		Now: s.Now, Runs: []engine.ImportedRun{{Run: engine.Run{ID: s.ID(), Namespace: doomed, Queue: fixture.Queue,
			Type: fixture.Kind, Status: engine.RunPending, Attempts: 1, Input: fixture.Text("in"), CreatedAt: s.Now,
			Origin: engine.OriginImport}}}}
}

// planFor makes a schedule whose namespace must exist.
func planFor(s *fixture.F) engine.ScheduleParams {
	return engine.ScheduleParams{NamespaceMustExist: true, Method: "CreateWorkflowSchedule", By: fixture.Somebody,
		AuditID: s.ID(), Now: s.Now, Schedule: engine.Schedule{ID: s.ID(), Namespace: doomed, CronExpr: "* * * * *",
			Enabled: true, Queue: fixture.Queue, Type: fixture.Kind, MaxCatchup: 1,
			NextFireAt: s.Now.Add(time.Minute)}}
}

func startMustExist(s *fixture.F, r engine.StartRun) error {
	list, err := s.Store.StartRuns(s.Ctx, engine.StartRunsParams{Runs: []engine.StartRun{r}, NamespaceMustExist: true})
	if err != nil {
		return err
	}
	return list[0].Err
}

// uses returns what uses a namespace that must exist, by name.
func uses(s *fixture.F) map[string]func() error {
	run, plan, worker, in := s.NewRun(inDoomed), planFor(s), workerInDoomed(s, "w-doomed"), importInDoomed(s)
	return map[string]func() error{
		"StartRuns": func() error { return startMustExist(s, run) },
		"CreateSchedule": func() error {
			_, err := s.Store.CreateSchedule(s.Ctx, plan)
			return err
		},
		"RegisterWorker": func() error {
			_, err := s.Store.RegisterWorker(s.Ctx, worker)
			return err
		},
		"ImportRuns": func() error {
			_, err := s.Store.ImportRuns(s.Ctx, in)
			return err
		},
	}
}

// NamespaceEndCases are about namespaces that are deleted.
var NamespaceEndCases = []fixture.Case{
	{Name: "an empty namespace is deleted and audited", Run: func(s *fixture.F) {
		makeDoomed(s)
		s.Must(s.Store.DeleteNamespace(s.Ctx, deletion(s)), "DeleteNamespace")
		_, err := s.Store.GetNamespace(s.Ctx, doomed)
		s.Refused(err, engine.ErrNotFound, "GetNamespace")
		s.Refused(s.Store.DeleteNamespace(s.Ctx, deletion(s)), engine.ErrNotFound, "DeleteNamespace again")
		_, err = s.Store.EmptyNamespace(s.Ctx, emptying(s, false, 1))
		s.Refused(err, engine.ErrNotFound, "EmptyNamespace")
		events, _, err := s.Store.ListAuditEvents(s.Ctx, engine.AuditFilter{Namespace: doomed}, engine.Page{Limit: 9})
		s.Must(err, "ListAuditEvents")
		last := events[0]
		fixture.Equal(s, "audit", strings.Join([]string{last.Method, last.Subject, last.SubjectID, last.Reason,
			last.Detail}, "|"), "DeleteNamespace|namespace|doomed|moved away|all of it")
	}},
	{Name: "a deleted namespace comes back only where it may be made", Run: func(s *fixture.F) {
		for _, name := range []string{"StartRuns", "CreateSchedule", "RegisterWorker", "ImportRuns"} {
			makeDoomed(s)
			s.Start(inDoomed) // fills what a store caches
			emptyAll(s, false, 10)
			s.Must(s.Store.DeleteNamespace(s.Ctx, deletion(s)), "DeleteNamespace")
			s.Refused(uses(s)[name](), engine.ErrNotFound, name+" in a deleted namespace")
		}
		s.Start(inDoomed)
		got, err := s.Store.GetNamespace(s.Ctx, doomed)
		s.Must(err, "GetNamespace")
		fixture.Equal(s, "settings", fmt.Sprint(got.Enabled, got.Description), "true")
	}},
	{Name: "a namespace that holds something is refused with counts", Run: func(s *fixture.F) {
		s.Key("root", engine.RoleAdmin)
		refused := func(want string) {
			s.Helper()
			err := s.Store.DeleteNamespace(s.Ctx, deletion(s))
			s.Refused(err, engine.ErrPrecondition, "DeleteNamespace")
			if !strings.Contains(err.Error(), " it has "+want+"; ") {
				s.Fatalf("error = %v, want it to say %q", err, want)
			}
		}
		makeDoomed(s)
		run := s.Start(inDoomed)
		refused("1 run")
		p := s.EndParams(run, "")
		p.Namespace = doomed
		_, err := s.Store.CancelRun(s.Ctx, p)
		s.Must(err, "CancelRun")
		s.Start(inDoomed)
		refused("2 runs")
		_, err = s.TryPlan(planInDoomed)
		s.Must(err, "CreateSchedule")
		_, err = s.Store.RegisterWorker(s.Ctx, workerInDoomed(s, "w1"))
		s.Must(err, "RegisterWorker")
		key := s.Key("both", engine.RoleViewer, func(k *engine.APIKey) { k.Namespaces = []string{"a", doomed} })
		refused("2 runs, 1 schedule, 1 worker, 1 key")
		s.Offline("w1", engine.OfflineForced)
		s.Revoke(key.ID)
		refused("2 runs, 1 schedule")
	}},
	{Name: "emptying deletes everything of one namespace, in parts", Run: func(s *fixture.F) {
		s.Key("root", engine.RoleAdmin)
		makeDoomed(s)
		stays := s.Start()
		plan := s.Plan()
		s.Worker("w1")
		for i := range 5 {
			s.Start(inDoomed, fixture.WithRequest(fmt.Sprint("r", i)),
				func(r *engine.StartRun) { r.Tags = map[string]string{"k": "v"} })
		}
		_, err := s.Store.RegisterWorker(s.Ctx, workerInDoomed(s, "w2"))
		s.Must(err, "RegisterWorker")
		claim := s.ClaimParams("w2")
		claim.Namespace = doomed
		l := s.ClaimWith(claim).Tasks[0].Lease
		s.Complete(l, "pay", "x")
		s.Signal(l.RunID, "go", "!", func(p *engine.SignalRunParams) { p.Namespace = doomed })
		mine, err := s.TryPlan(planInDoomed)
		s.Must(err, "CreateSchedule")
		s.Pass(time.Minute)
		fired, err := s.Store.FireSchedule(s.Ctx, engine.FireScheduleParams{ScheduleID: mine.ID,
			Revision: mine.Revision, Expect: mine.NextFireAt, Next: mine.NextFireAt.Add(time.Hour), Now: s.Now,
			Ticks: []engine.Tick{{At: mine.NextFireAt, RunID: s.ID()}}})
		s.Must(err, "FireSchedule")
		fixture.Equal(s, "fired", fired.Runs, 1)
		alone := s.Key("alone", engine.RoleViewer, func(k *engine.APIKey) { k.Namespaces = []string{doomed} })
		both := s.Key("both", engine.RoleViewer, func(k *engine.APIKey) { k.Namespaces = []string{"a", doomed} })
		all := emptyAll(s, false, 2)
		fixture.Equal(s, "deleted", all.String(), "6 runs, 1 schedule, 1 worker, 2 keys")
		s.Must(s.Store.DeleteNamespace(s.Ctx, deletion(s)), "DeleteNamespace")
		_, err = s.Store.GetRun(s.Ctx, doomed, l.RunID)
		s.Refused(err, engine.ErrNotFound, "GetRun")
		_, err = s.TryComplete(l, "ship", "x")
		s.Refused(err, engine.ErrNotFound, "CompleteStep of a deleted run")
		_, err = s.Store.GetWorker(s.Ctx, "w2")
		s.Refused(err, engine.ErrNotFound, "GetWorker")
		fixture.Equal(s, "a key for it alone is revoked", s.Kept(alone.ID).RevokedAt.IsZero(), false)
		fixture.Equal(s, "namespaces of another key", fmt.Sprint(s.Kept(both.ID).Namespaces), "[a]")
		fixture.Equal(s, "it is not revoked", s.Kept(both.ID).RevokedAt.IsZero(), true)
		fixture.Equal(s, "audit of keys", s.KeyAudit()[0].SubjectID != s.KeyAudit()[1].SubjectID, true)
		s.Status(stays, engine.RunPending)
		s.Schedule(plan.ID)
		fixture.Equal(s, "another namespace's worker", s.WorkerState("w1").Status, engine.WorkerOnline)
		again := s.TryStart(s.NewRun(inDoomed, fixture.WithRequest("r0")))
		s.Must(again.Err, "StartRuns with an old request")
		fixture.Equal(s, "old requests are forgotten", again.Repeated, false)
	}},
	{Name: "emptying deletes pinned runs, children and remembered requests", Run: func(s *fixture.F) {
		makeDoomed(s)
		pinned, pruned := s.Start(inDoomed), s.Start(inDoomed, fixture.WithRequest("past"))
		_, err := s.Store.PinRun(s.Ctx, engine.PinRunParams{SteerParams: engine.SteerParams{Namespace: doomed,
			RunID: pinned, By: fixture.Somebody, AuditID: s.ID(), Now: s.Now}, Pinned: true})
		s.Must(err, "PinRun")
		p := s.EndParams(pruned, "")
		p.Namespace = doomed
		_, err = s.Store.CancelRun(s.Ctx, p)
		s.Must(err, "CancelRun")
		s.Pass(time.Hour)
		_, err = s.Store.Prune(s.Ctx, engine.PruneParams{Namespace: doomed, Status: engine.RunCancelled, Before: s.Now,
			Limit: 10})
		s.Must(err, "Prune")
		s.Start(inDoomed, func(r *engine.StartRun) {
			r.ParentRunID, r.ParentClose = pinned, engine.CloseCancel
		})
		all := emptyAll(s, false, 1)
		fixture.Equal(s, "deleted", all.String(), "2 runs")
		s.Must(s.Store.DeleteNamespace(s.Ctx, deletion(s)), "DeleteNamespace")
		made := s.TryStart(s.NewRun(inDoomed, fixture.WithRequest("past")))
		fixture.Equal(s, "remembered request", made.Repeated, false)
	}},
	{Name: "emptying starts with disabling and stops where it is enabled", Run: func(s *fixture.F) {
		makeDoomed(s)
		s.Start(inDoomed)
		s.Start(inDoomed)
		part, err := s.Store.EmptyNamespace(s.Ctx, emptying(s, false, 1))
		s.Must(err, "EmptyNamespace")
		fixture.Equal(s, "more", part.More, true)
		s.Refused(s.TryStart(s.NewRun(inDoomed)).Err, engine.ErrPrecondition, "StartRuns while it is emptied")
		s.Refused(s.Store.DeleteNamespace(s.Ctx, deletion(s)), engine.ErrPrecondition, "DeleteNamespace")
		n, err := s.Store.GetNamespace(s.Ctx, doomed)
		s.Must(err, "GetNamespace")
		n.Enabled = true
		_, err = s.Store.UpdateNamespace(s.Ctx, engine.NamespaceParams{Namespace: n, Method: "EnableNamespace",
			By: fixture.Somebody, AuditID: s.ID(), Now: s.Now})
		s.Must(err, "UpdateNamespace")
		_, err = s.Store.EmptyNamespace(s.Ctx, emptying(s, true, 1))
		s.Refused(err, engine.ErrConflict, "EmptyNamespace after it was enabled")
		fixture.Equal(s, "deleted after it began again", emptyAll(s, false, 1).Runs, 2)
	}},
	{Name: "a use at the same time as a deletion is before it or refused", Run: func(s *fixture.F) {
		for range fixture.RoundsOf(4, 4) {
			for _, name := range []string{"StartRuns", "CreateSchedule", "RegisterWorker", "ImportRuns"} {
				makeDoomed(s)
				use, p := uses(s)[name], deletion(s)
				errs := fixture.AtOnce(2, func(i int) error {
					if i == 0 {
						return use()
					}
					return s.Store.DeleteNamespace(s.Ctx, p)
				})
				_, err := s.Store.GetNamespace(s.Ctx, doomed)
				switch {
				case errs[0] == nil:
					s.Refused(errs[1], engine.ErrPrecondition, "DeleteNamespace after "+name)
					s.Must(err, "GetNamespace")
					emptyAll(s, false, 10)
					s.Must(s.Store.DeleteNamespace(s.Ctx, deletion(s)), "DeleteNamespace of what is empty")
				default:
					s.Must(errs[1], "DeleteNamespace before "+name)
					s.Refused(errs[0], engine.ErrNotFound, name+" after DeleteNamespace")
					s.Refused(err, engine.ErrNotFound, "GetNamespace")
				}
			}
		}
	}},
}
