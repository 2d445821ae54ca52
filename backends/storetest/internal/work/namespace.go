package work

import (
	"fmt"
	"time"

	"github.com/kagzi/kagzi/backends/storetest/internal/fixture"
	"github.com/kagzi/kagzi/engine"
)

var NamespaceCases = []fixture.Case{
	{Name: "a namespace is made by its first use or by CreateNamespace", Run: func(s *fixture.F) {
		s.Start(fixture.InSpace("used"))
		got, err := s.Store.GetNamespace(s.Ctx, "used")
		s.Must(err, "GetNamespace")
		fixture.Equal(s, "enabled", got.Enabled, true)
		_, err = s.Store.GetNamespace(s.Ctx, "never")
		s.Refused(err, engine.ErrNotFound, "GetNamespace")
		n := engine.Namespace{Name: "made", DisplayName: "Made", Description: "by hand", Enabled: true,
			Retention: time.Hour,
			Keep:      map[engine.RunStatus]time.Duration{engine.RunFailed: 2 * time.Hour}, FailureQueue: "graves"}
		p := engine.NamespaceParams{Namespace: n, Method: "CreateNamespace", By: fixture.Somebody, AuditID: s.ID(),
			Now: s.Now}
		_, err = s.Store.CreateNamespace(s.Ctx, p)
		s.Must(err, "CreateNamespace")
		got, err = s.Store.GetNamespace(s.Ctx, "made")
		s.Must(err, "GetNamespace")
		fixture.Equal(s, "display name", got.DisplayName+got.Description+got.FailureQueue, "Madeby handgraves")
		fixture.Equal(s, "retention", got.Retention, time.Hour)
		fixture.Equal(s, "kept when failed", got.Keep[engine.RunFailed], 2*time.Hour)
		fixture.Equal(s, "has an id", got.ID.IsZero(), false)
		s.SameTime("created at", got.CreatedAt, s.Now)
		_, err = s.Store.CreateNamespace(s.Ctx, p)
		s.Must(err, "CreateNamespace repeated")
		p.Namespace.Description = "otherwise"
		_, err = s.Store.CreateNamespace(s.Ctx, p)
		s.Refused(err, engine.ErrExists, "CreateNamespace otherwise")
	}},
	{Name: "a disabled namespace starts and claims nothing",
		Run: func(s *fixture.F) {
			l := s.Held(fixture.WithRequest("r"))
			waits := s.Start()
			plan := s.Plan()
			s.Enable(false)
			answer := s.TryStart(s.NewRun())
			s.Refused(answer.Err, engine.ErrPrecondition, "StartRuns")
			again := s.Started(s.NewRun(fixture.WithRequest("r")))
			fixture.Equal(s, "run of the repetition", again.RunID, l.RunID)
			s.ClaimNothing("w1")
			_, err := s.TryPlan()
			s.Refused(err, engine.ErrPrecondition, "CreateSchedule")
			_, err = s.Store.TriggerSchedule(s.Ctx, engine.TriggerScheduleParams{
				Namespace: fixture.Space, Ref: plan.ID.String(), RunID: s.ID(), By: fixture.Somebody, AuditID: s.ID(),
				Now: s.Now})
			s.Refused(err, engine.ErrPrecondition, "TriggerSchedule")
			due, _, err := s.Store.DueSchedules(s.Ctx, s.Now.Add(time.Hour), 10)
			s.Must(err, "DueSchedules")
			fixture.Equal(s, "due", len(due), 0)
			s.Complete(l, "pay", "x")
			s.Finish(l, "done")
			s.Start(fixture.InSpace("elsewhere"))
			s.Enable(true)
			fixture.Equal(s, "claimed", s.Claim("w1").Run.ID, waits)
			s.Start()
		}},
	{Name: "a disabled namespace refuses retries but repeats answers", Run: func(s *fixture.F) {
		one, two := s.Start(), s.Start()
		s.Cancel(one)
		s.Cancel(two)
		p := engine.RetryRunParams{SteerParams: engine.SteerParams{
			Namespace: fixture.Space, RunID: one, By: fixture.Somebody, AuditID: s.ID(), Now: s.Now}, ID: s.ID(),
			RequestID: "r"}
		made, err := s.Store.RetryRun(s.Ctx, p)
		s.Must(err, "RetryRun")
		s.Enable(false)
		again, err := s.Store.RetryRun(s.Ctx, p)
		s.Must(err, "RetryRun repeated")
		fixture.Equal(s, "run of the repetition", again.RunID, made.RunID)
		p.RequestID, p.ID, p.AuditID = "", s.ID(), s.ID()
		again, err = s.Store.RetryRun(s.Ctx, p)
		s.Must(err, "RetryRun of a run whose retry is open")
		fixture.Equal(s, "open retry", again.RunID, made.RunID)
		p.RunID = two
		_, err = s.Store.RetryRun(s.Ctx, p)
		s.Refused(err, engine.ErrPrecondition, "RetryRun")
		s.Enable(true)
		_, err = s.Store.RetryRun(s.Ctx, p)
		s.Must(err, "RetryRun when it is enabled again")
	}},
	{Name: "namespace changes are audited, unknown ones are refused", Run: func(s *fixture.F) {
		s.Start()
		s.Enable(false)
		list := s.Audit(fixture.Space)
		fixture.Equal(s, "audit events", len(list), 1)
		fixture.Equal(s, "subject", list[0].Subject+" "+list[0].Method, "namespace DisableNamespace")
		_, err := s.Store.UpdateNamespace(s.Ctx,
			engine.NamespaceParams{Namespace: engine.Namespace{Name: "never"}, By: fixture.Somebody, AuditID: s.ID(),
				Now: s.Now})
		s.Refused(err, engine.ErrNotFound, "UpdateNamespace")
	}},
	{Name: "a stale namespace change is refused unless it is the same",
		Run: func(s *fixture.F) {
			s.Start()
			read, err := s.Store.GetNamespace(s.Ctx, fixture.Space)
			s.Must(err, "GetNamespace")
			s.Pass(time.Second)
			change := func(n engine.Namespace) error {
				_, err := s.Store.UpdateNamespace(s.Ctx,
					engine.NamespaceParams{Namespace: n, Method: "UpdateNamespace", By: fixture.Somebody,
						AuditID: s.ID(), Now: s.Now})
				return err
			}
			first, second := read, read
			first.Enabled, second.Description = false, "of orders"
			s.Must(change(first), "the first change")
			s.Refused(change(second), engine.ErrConflict, "a change of what was read before it")
			s.Must(change(first), "the first change once more")
			second.UpdatedAt = time.Time{}
			s.Must(change(second), "a change of whatever stands")
		}},
	{Name: "namespaces are listed by name, by page in both directions", Run: func(s *fixture.F) {
		for _, name := range []string{"c", "a", "d", "b"} {
			s.Start(fixture.InSpace(name))
		}
		list := func(p engine.Page) (names string, info engine.PageInfo) {
			s.Helper()
			page, info, err := s.Store.ListNamespaces(s.Ctx, p)
			s.Must(err, "ListNamespaces")
			for _, n := range page {
				if n.Name != fixture.Space {
					names += n.Name
				}
			}
			return names, info
		}
		first, info := list(engine.Page{Limit: 2})
		fixture.Equal(s, "first page", first, "ab")
		fixture.Equal(s, "has next", info.HasNext, true)
		rest, _ := list(engine.Page{Limit: 10, After: &engine.Cursor{Name: "b"}})
		fixture.Equal(s, "the rest", rest, "cd")
		back, _ := list(engine.Page{Limit: 2, Before: &engine.Cursor{Name: "c"}})
		fixture.Equal(s, "back", back, "ab")
	}},
	{Name: "every setting of a namespace counts as a change", Run: func(s *fixture.F) {
		s.Start()
		for _, change := range []func(*engine.Namespace){
			func(n *engine.Namespace) { n.DisplayName = "Orders" },
			func(n *engine.Namespace) { n.Description = "of orders" },
			func(n *engine.Namespace) { n.FailureQueue = "graves" },
			func(n *engine.Namespace) { n.Retention = time.Hour },
			func(n *engine.Namespace) {
				n.Keep = map[engine.RunStatus]time.Duration{engine.RunFailed: 2 * time.Hour}
			},
			func(n *engine.Namespace) { n.Enabled = false },
		} {
			s.Pass(time.Second)
			want, err := s.Store.GetNamespace(s.Ctx, fixture.Space)
			s.Must(err, "GetNamespace")
			change(&want)
			_, err = s.Store.UpdateNamespace(s.Ctx,
				engine.NamespaceParams{Namespace: want, Method: "UpdateNamespace", By: fixture.Somebody,
					AuditID: s.ID(), Now: s.Now})
			s.Must(err, "UpdateNamespace")
			want.UpdatedAt = s.Now
			got, err := s.Store.GetNamespace(s.Ctx, fixture.Space)
			s.Must(err, "GetNamespace")
			s.SameText("namespace", fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want))
		}
	}},
}
