package storetest

import (
	"fmt"
	"time"

	"github.com/kagzi/kagzi/engine"
)

var namespaceCases = []testCase{
	{"a namespace comes into being on first use, or as it is made", func(s *stage) {
		s.start(inSpace("used"))
		got, err := s.store.GetNamespace(s.ctx, "used")
		s.must(err, "GetNamespace")
		equal(s, "enabled", got.Enabled, true)
		_, err = s.store.GetNamespace(s.ctx, "never")
		s.refused(err, engine.ErrNotFound, "GetNamespace")
		n := engine.Namespace{Name: "made", DisplayName: "Made", Description: "by hand", Enabled: true, Retention: time.Hour,
			Keep: map[engine.RunStatus]time.Duration{engine.RunFailed: 2 * time.Hour}, FailureQueue: "graves"}
		p := engine.NamespaceParams{Namespace: n, Method: "CreateNamespace", By: somebody, AuditID: s.id(), Now: s.now}
		_, err = s.store.CreateNamespace(s.ctx, p)
		s.must(err, "CreateNamespace")
		got, err = s.store.GetNamespace(s.ctx, "made")
		s.must(err, "GetNamespace")
		equal(s, "display name", got.DisplayName+got.Description+got.FailureQueue, "Madeby handgraves")
		equal(s, "retention", got.Retention, time.Hour)
		equal(s, "kept when failed", got.Keep[engine.RunFailed], 2*time.Hour)
		equal(s, "has an id", got.ID.IsZero(), false)
		s.sameTime("created at", got.CreatedAt, s.now)
		_, err = s.store.CreateNamespace(s.ctx, p)
		s.must(err, "CreateNamespace repeated")
		p.Namespace.Description = "otherwise"
		_, err = s.store.CreateNamespace(s.ctx, p)
		s.refused(err, engine.ErrExists, "CreateNamespace otherwise")
	}},
	{"in a disabled namespace nothing starts, is claimed or is due, and what is held may finish", func(s *stage) {
		l := s.held(withRequest("r"))
		waits := s.start()
		plan := s.plan()
		s.enable(false)
		answer := s.tryStart(s.newRun())
		s.refused(answer.Err, engine.ErrPrecondition, "StartRuns")
		again := s.started(s.newRun(withRequest("r")))
		equal(s, "run of the repetition", again.RunID, l.RunID)
		s.claimNothing("w1")
		_, err := s.tryPlan()
		s.refused(err, engine.ErrPrecondition, "CreateSchedule")
		_, err = s.store.TriggerSchedule(s.ctx, engine.TriggerScheduleParams{Namespace: space, Ref: plan.ID.String(), RunID: s.id(), By: somebody, AuditID: s.id(), Now: s.now})
		s.refused(err, engine.ErrPrecondition, "TriggerSchedule")
		due, _, err := s.store.DueSchedules(s.ctx, s.now.Add(time.Hour), 10)
		s.must(err, "DueSchedules")
		equal(s, "due", len(due), 0)
		s.complete(l, "pay", "x")
		s.finish(l, "done")
		s.start(inSpace("elsewhere"))
		s.enable(true)
		equal(s, "claimed", s.claim("w1").Run.ID, waits)
		s.start()
	}},
	{"in a disabled namespace no run is retried, but a retry that was made is answered", func(s *stage) {
		one, two := s.start(), s.start()
		s.cancel(one)
		s.cancel(two)
		p := engine.RetryRunParams{SteerParams: engine.SteerParams{Namespace: space, RunID: one, By: somebody, AuditID: s.id(), Now: s.now}, ID: s.id(), RequestID: "r"}
		made, err := s.store.RetryRun(s.ctx, p)
		s.must(err, "RetryRun")
		s.enable(false)
		again, err := s.store.RetryRun(s.ctx, p)
		s.must(err, "RetryRun repeated")
		equal(s, "run of the repetition", again.RunID, made.RunID)
		p.RequestID, p.ID, p.AuditID = "", s.id(), s.id()
		again, err = s.store.RetryRun(s.ctx, p)
		s.must(err, "RetryRun of a run whose retry is open")
		equal(s, "open retry", again.RunID, made.RunID)
		p.RunID = two
		_, err = s.store.RetryRun(s.ctx, p)
		s.refused(err, engine.ErrPrecondition, "RetryRun")
		s.enable(true)
		_, err = s.store.RetryRun(s.ctx, p)
		s.must(err, "RetryRun when it is enabled again")
	}},
	{"changes are audited, and one that is not there cannot be changed", func(s *stage) {
		s.start()
		s.enable(false)
		list := s.audit(space)
		equal(s, "audit events", len(list), 1)
		equal(s, "subject", list[0].Subject+" "+list[0].Method, "namespace DisableNamespace")
		_, err := s.store.UpdateNamespace(s.ctx, engine.NamespaceParams{Namespace: engine.Namespace{Name: "never"}, By: somebody, AuditID: s.id(), Now: s.now})
		s.refused(err, engine.ErrNotFound, "UpdateNamespace")
	}},
	{"a change of a namespace that another came before is refused, unless it comes to the same", func(s *stage) {
		s.start()
		read, err := s.store.GetNamespace(s.ctx, space)
		s.must(err, "GetNamespace")
		s.pass(time.Second)
		change := func(n engine.Namespace) error {
			_, err := s.store.UpdateNamespace(s.ctx, engine.NamespaceParams{Namespace: n, Method: "UpdateNamespace", By: somebody, AuditID: s.id(), Now: s.now})
			return err
		}
		first, second := read, read
		first.Enabled, second.Description = false, "of orders"
		s.must(change(first), "the first change")
		s.refused(change(second), engine.ErrConflict, "a change of what was read before it")
		s.must(change(first), "the first change once more")
		second.UpdatedAt = time.Time{}
		s.must(change(second), "a change of whatever stands")
	}},
	{"namespaces are listed by name, by page in both directions", func(s *stage) {
		for _, name := range []string{"c", "a", "d", "b"} {
			s.start(inSpace(name))
		}
		list := func(p engine.Page) (names string, info engine.PageInfo) {
			s.Helper()
			page, info, err := s.store.ListNamespaces(s.ctx, p)
			s.must(err, "ListNamespaces")
			for _, n := range page {
				if n.Name != space {
					names += n.Name
				}
			}
			return names, info
		}
		first, info := list(engine.Page{Limit: 2})
		equal(s, "first page", first, "ab")
		equal(s, "has next", info.HasNext, true)
		rest, _ := list(engine.Page{Limit: 10, After: &engine.Cursor{Name: "b"}})
		equal(s, "the rest", rest, "cd")
		back, _ := list(engine.Page{Limit: 2, Before: &engine.Cursor{Name: "c"}})
		equal(s, "back", back, "ab")
	}},
	{"a change of anything that a person decides about a namespace is one", func(s *stage) {
		s.start()
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
			s.pass(time.Second)
			want, err := s.store.GetNamespace(s.ctx, space)
			s.must(err, "GetNamespace")
			change(&want)
			_, err = s.store.UpdateNamespace(s.ctx, engine.NamespaceParams{Namespace: want, Method: "UpdateNamespace", By: somebody, AuditID: s.id(), Now: s.now})
			s.must(err, "UpdateNamespace")
			want.UpdatedAt = s.now
			got, err := s.store.GetNamespace(s.ctx, space)
			s.must(err, "GetNamespace")
			s.sameText("namespace", fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want))
		}
	}},
}

// enable switches the usual namespace.
func (s *stage) enable(on bool) {
	s.Helper()
	n, err := s.store.GetNamespace(s.ctx, space)
	s.must(err, "GetNamespace")
	n.Enabled = on
	method := "EnableNamespace"
	if !on {
		method = "DisableNamespace"
	}
	_, err = s.store.UpdateNamespace(s.ctx, engine.NamespaceParams{Namespace: n, Method: method, By: somebody, AuditID: s.id(), Now: s.now})
	s.must(err, method)
}
