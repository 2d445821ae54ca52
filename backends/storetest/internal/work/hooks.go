package work

import (
	"fmt"
	"strings"
	"time"

	"github.com/kagzi/kagzi/backends/storetest/internal/fixture"
	"github.com/kagzi/kagzi/engine"
)

func hookNames(hooks []engine.Hook) string {
	var names []string
	for _, h := range hooks {
		names = append(names, h.Name)
	}
	return fmt.Sprint(names)
}

var HookCases = []fixture.Case{
	{Name: "a hook is kept as it was made", Run: func(s *fixture.F) {
		p := s.NewHook("gh", func(h *engine.Hook) {
			h.Scheme = engine.HookStripe
			// the store ignores these
			h.CreatedAt, h.RotatedAt, h.OldUntil, h.OldSecret = s.Now.Add(-time.Hour), s.Now, s.Now, "old"
		})
		p.Now = s.Now.Add(456 * time.Nanosecond)
		made, err := s.Store.CreateHook(s.Ctx, p)
		s.Must(err, "CreateHook")
		want := p.Hook
		want.CreatedAt, want.RotatedAt, want.OldUntil, want.OldSecret = s.Now, time.Time{}, time.Time{}, ""
		s.SameText("answer", fixture.HookText(made), fixture.HookText(want))
		s.SameText("hook", fixture.HookText(s.HookNamed("gh")), fixture.HookText(want))
		events := s.Audit(made.ID.String())
		fixture.Equal(s, "audit events", len(events), 1)
		fixture.Equal(s, "event", events[0].Method+" "+events[0].Subject+" by "+events[0].Actor.Name+": "+
			events[0].Detail,
			"CreateHook hook by "+fixture.Somebody.Name+": stripe hook gh that starts "+fixture.Kind+" on queue "+fixture.Queue)
	}},
	{Name: "a hook that does not exist is not found", Run: func(s *fixture.F) {
		s.Hook("gh")
		_, err := s.Store.GetHookByID(s.Ctx, s.ID())
		s.Refused(err, engine.ErrNotFound, "GetHookByID")
		_, err = s.Store.GetHook(s.Ctx, fixture.Space, "GH")
		s.Refused(err, engine.ErrNotFound, "GetHook")
		_, err = s.Store.GetHook(s.Ctx, "elsewhere", "gh")
		s.Refused(err, engine.ErrNotFound, "GetHook in another namespace")
		_, err = s.Store.RotateHook(s.Ctx, s.RotateParams("other", "a-new-secret-of-it", 0))
		s.Refused(err, engine.ErrNotFound, "RotateHook")
		err = s.Store.DeleteHook(s.Ctx, engine.DeleteHookParams{Namespace: fixture.Space, Name: "other", By: fixture.Somebody,
			AuditID: s.ID(), Now: s.Now})
		s.Refused(err, engine.ErrNotFound, "DeleteHook")
	}},
	{Name: "a name is one hook's in its namespace until that is deleted", Run: func(s *fixture.F) {
		first := s.Hook("gh")
		_, err := s.Store.CreateHook(s.Ctx, s.NewHook("gh"))
		s.Refused(err, engine.ErrExists, "CreateHook with a taken name")
		s.Hook("gh", func(h *engine.Hook) { h.Namespace = "elsewhere" })
		s.Must(s.Store.DeleteHook(s.Ctx, engine.DeleteHookParams{Namespace: fixture.Space, Name: "gh", By: fixture.Somebody,
			AuditID: s.ID(), Now: s.Now}), "DeleteHook")
		_, err = s.Store.GetHookByID(s.Ctx, first.ID)
		s.Refused(err, engine.ErrNotFound, "GetHookByID of a deleted hook")
		s.Hook("gh")
		fixture.Equal(s, "audit events of the first", len(s.Audit(first.ID.String())), 2)
	}},
	{Name: "making a hook again returns it as it is now", Run: func(s *fixture.F) {
		p := s.NewHook("gh")
		_, err := s.Store.CreateHook(s.Ctx, p)
		s.Must(err, "CreateHook")
		rotated := s.RotateHook("gh", "a-new-secret-of-it", time.Hour)
		p.AuditID = s.ID()
		again, err := s.Store.CreateHook(s.Ctx, p)
		s.Must(err, "CreateHook repeated")
		s.SameText("answer", fixture.HookText(again), fixture.HookText(rotated))
		for _, change := range []func(*engine.Hook){
			func(h *engine.Hook) { h.Name = "other" }, func(h *engine.Hook) { h.Queue = "other" },
			func(h *engine.Hook) { h.Type = "other" }, func(h *engine.Hook) { h.Namespace = "other" },
			func(h *engine.Hook) { h.Scheme = engine.HookPlain },
		} {
			other := p
			change(&other.Hook)
			_, err := s.Store.CreateHook(s.Ctx, other)
			s.Refused(err, engine.ErrExists, "CreateHook with a taken id")
		}
		fixture.Equal(s, "audit events", len(s.Audit(p.Hook.ID.String())), 2)
	}},
	{Name: "a rotation keeps the secret before until its end", Run: func(s *fixture.F) {
		made := s.Hook("gh")
		s.Pass(time.Minute)
		got := s.RotateHook("gh", "a-new-secret-of-it", time.Hour+789*time.Nanosecond)
		want := made
		want.OldSecret, want.Secret, want.RotatedAt, want.OldUntil = made.Secret, "a-new-secret-of-it", s.Now,
			s.Now.Add(time.Hour)
		s.SameText("answer", fixture.HookText(got), fixture.HookText(want))
		s.SameText("hook", fixture.HookText(s.HookNamed("gh")), fixture.HookText(want))
		s.Pass(time.Hour) // the earlier secret is no longer valid
		got = s.RotateHook("gh", "the-third-secret-of-it", time.Hour)
		fixture.Equal(s, "the earlier secret", got.OldSecret, "a-new-secret-of-it")
	}},
	{Name: "a rotation during another one is refused unless it ends both", Run: func(s *fixture.F) {
		s.Hook("gh")
		first := s.RotateHook("gh", "a-new-secret-of-it", time.Hour)
		_, err := s.Store.RotateHook(s.Ctx, s.RotateParams("gh", "the-third-secret-of-it", time.Hour))
		s.Refused(err, engine.ErrPrecondition, "RotateHook during a rotation")
		s.SameText("repeated rotation", fixture.HookText(s.RotateHook("gh", "a-new-secret-of-it", time.Minute)),
			fixture.HookText(first))
		got := s.RotateHook("gh", "the-third-secret-of-it", 0)
		fixture.Equal(s, "secrets", fmt.Sprint(got.Secrets(s.Now)), "[the-third-secret-of-it]")
		fixture.Equal(s, "earlier secret and its end", got.OldSecret+fixture.Clock(got.OldUntil), fixture.Clock(time.Time{}))
		s.SameText("hook", fixture.HookText(s.HookNamed("gh")), fixture.HookText(got))
		events := s.Audit(got.ID.String())
		fixture.Equal(s, "audit events", len(events), 3)
		for _, e := range events {
			fixture.Equal(s, "secret in an audit event", strings.Contains(fixture.AuditText(e), "secret-of"), false)
		}
	}},
	{Name: "hooks of a namespace are listed in pages, newest first", Run: func(s *fixture.F) {
		for _, name := range []string{"a", "b", "c"} {
			s.Hook(name)
			s.Hook(name, func(h *engine.Hook) { h.Namespace = "elsewhere" })
		}
		hooks, info := s.HookPage(fixture.Space, engine.Page{Limit: 2, Count: true})
		fixture.Equal(s, "first page", hookNames(hooks), "[c b]")
		fixture.Equal(s, "page info", info, engine.PageInfo{Total: 3, HasNext: true})
		hooks, _ = s.HookPage(fixture.Space, engine.Page{Limit: 2, After: &engine.Cursor{ID: hooks[1].ID}})
		fixture.Equal(s, "second page", hookNames(hooks), "[a]")
		hooks, _ = s.HookPage(fixture.Space, engine.Page{Limit: 2, Before: &engine.Cursor{ID: hooks[0].ID}})
		fixture.Equal(s, "page before it", hookNames(hooks), "[c b]")
		hooks, _ = s.HookPage("nowhere", engine.Page{Limit: 2})
		fixture.Equal(s, "hooks of an unused namespace", len(hooks), 0)
	}},
	{Name: "a hook makes its namespace, unless it must exist or is disabled", Run: func(s *fixture.F) {
		in := func(namespace string) func(*engine.Hook) { return func(h *engine.Hook) { h.Namespace = namespace } }
		p := s.NewHook("gh", in("new"))
		p.NamespaceMustExist = true
		_, err := s.Store.CreateHook(s.Ctx, p)
		s.Refused(err, engine.ErrNotFound, "CreateHook in a namespace that must exist")
		s.Hook("gh", in("new"))
		n, err := s.Store.GetNamespace(s.Ctx, "new")
		s.Must(err, "GetNamespace")
		n.Enabled = false
		_, err = s.Store.UpdateNamespace(s.Ctx, engine.NamespaceParams{Namespace: n, Method: "DisableNamespace",
			By: fixture.Somebody, AuditID: s.ID(), Now: s.Now})
		s.Must(err, "UpdateNamespace")
		_, err = s.Store.CreateHook(s.Ctx, s.NewHook("other", in("new")))
		s.Refused(err, engine.ErrPrecondition, "CreateHook in a disabled namespace")
	}},
	{Name: "a namespace with a hook is not empty, and emptying it deletes the hook", Run: func(s *fixture.F) {
		kept := s.Hook("gh", func(h *engine.Hook) { h.Namespace = "elsewhere" })
		s.Hook("gh")
		s.Hook("other")
		remove := func() error {
			return s.Store.DeleteNamespace(s.Ctx, engine.DeleteNamespaceParams{Name: fixture.Space, By: fixture.Somebody,
				AuditID: s.ID(), Now: s.Now})
		}
		err := remove()
		s.Refused(err, engine.ErrPrecondition, "DeleteNamespace")
		fixture.Equal(s, "what it has", strings.Contains(err.Error(), "it has 2 hooks;"), true)
		done, err := s.Store.EmptyNamespace(s.Ctx, engine.EmptyNamespaceParams{Name: fixture.Space, Limit: 10,
			By: fixture.Somebody, AuditID: s.ID(), Now: s.Now})
		s.Must(err, "EmptyNamespace")
		fixture.Equal(s, "deleted", done, engine.Emptied{Contents: engine.Contents{Hooks: 2}})
		s.Must(remove(), "DeleteNamespace")
		_, err = s.Store.GetHookByID(s.Ctx, kept.ID)
		s.Must(err, "GetHookByID of another namespace")
	}},
	{Name: "a namespace has at most as many hooks as are allowed", Run: func(s *fixture.F) {
		for i := range engine.MaxHooks {
			s.Hook(fmt.Sprint("h", i))
		}
		_, err := s.Store.CreateHook(s.Ctx, s.NewHook("more"))
		s.Refused(err, engine.ErrPrecondition, "CreateHook beyond the limit")
		s.Hook("more", func(h *engine.Hook) { h.Namespace = "elsewhere" })
	}},
}
