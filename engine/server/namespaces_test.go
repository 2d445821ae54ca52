package server

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/auth"
	"github.com/kagzi/kagzi/engine/server/internal/servertest"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// sharedNamespace is a namespace that another server changes between the first reading of it and
// the first writing.
type sharedNamespace struct {
	servertest.StubStore
	stands engine.Namespace
	writes int
}

func (s *sharedNamespace) GetNamespace(context.Context, string) (engine.Namespace, error) {
	return s.stands, nil
}

func (s *sharedNamespace) UpdateNamespace(_ context.Context, p engine.NamespaceParams) (engine.Namespace, error) {
	if s.writes++; s.writes == 1 {
		s.stands.Enabled, s.stands.UpdatedAt = false, s.stands.UpdatedAt.Add(time.Second)
	}
	if !p.Namespace.UpdatedAt.Equal(s.stands.UpdatedAt) {
		return engine.Namespace{}, &engine.Error{Kind: engine.KindConflict}
	}
	s.stands = p.Namespace
	return s.stands, nil
}

func TestAChangeOfANamespaceUndoesNoneOfAnotherServer(t *testing.T) {
	store := &sharedNamespace{stands: engine.Namespace{Name: "shop", Enabled: true, UpdatedAt: time.Unix(1, 0)}}
	s := New(store, nil, Options{Trusted: true})
	_, err := s.UpdateNamespace(t.Context(), &kagziv1.UpdateNamespaceRequest{
		Namespace: "shop", Description: new("of orders")})
	if err != nil {
		t.Fatal(err)
	}
	if store.stands.Enabled || store.stands.Description != "of orders" {
		t.Errorf("the namespace stands as %+v, want it disabled by the other server, with the description of this one",
			store.stands)
	}
}

func TestTheNamespacesOfAKeyArePagedAsAllAre(t *testing.T) {
	b := &servertest.Books{Namespaces: map[string]engine.Namespace{}}
	for _, name := range []string{"a", "b", "c", "d", "e", "others"} {
		b.Namespaces[name] = engine.Namespace{Name: name}
	}
	key := &auth.Key{APIKey: engine.APIKey{Role: engine.RoleViewer,
		Namespaces: []string{"a", "b", "c", "d", "e", "unused"}}}
	list := New(b, nil, Options{Trusted: true}).namespacesOf(key)
	at := func(name string) *engine.Cursor { return &engine.Cursor{Name: name} }
	for _, c := range []struct {
		page engine.Page
		want string // the names, in brackets where more precedes or follows
	}{
		{engine.Page{Limit: 9}, "abcde of 0"},
		{engine.Page{Limit: 5, Count: true}, "abcde of 5"},
		{engine.Page{Limit: 2, Count: true}, "ab> of 5"},
		{engine.Page{Limit: 2, After: at("b")}, "<cd> of 0"},
		{engine.Page{Limit: 3, After: at("b")}, "<cde of 0"},
		{engine.Page{Limit: 2, After: at("bb")}, "<cd> of 0"},
		{engine.Page{Limit: 2, After: at("e")}, "< of 0"},
		{engine.Page{Limit: 2, Before: at("d")}, "<bc> of 0"},
		{engine.Page{Limit: 3, Before: at("d")}, "abc> of 0"},
		{engine.Page{Limit: 2, Before: at("a")}, "> of 0"},
		{engine.Page{Limit: 2, Before: wire.BehindNames}, "<de of 0"},
	} {
		names, info, err := list(t.Context(), c.page)
		got := ""
		for _, n := range names {
			got += n.Name
		}
		if info.HasPrev {
			got = "<" + got
		}
		if info.HasNext {
			got += ">"
		}
		if got += fmt.Sprint(" of ", info.Total); err != nil || got != c.want {
			t.Errorf("%+v is %s, %v, want %s", c.page, got, err, c.want)
		}
	}
}

func TestAChangeOfANamespaceIsTriedSoManyTimes(t *testing.T) {
	for _, c := range []struct {
		with engine.Kind
		want int
	}{{engine.KindConflict, changeTries}, {engine.KindExists, changeTries}, {engine.KindUnavailable, 1}} {
		store := &busyNamespace{with: c.with}
		_, err := New(store, nil, Options{Trusted: true}).DisableNamespace(
			t.Context(), &kagziv1.DisableNamespaceRequest{Namespace: "shop"})
		if store.writes != c.want || engine.KindOf(err) != c.with {
			t.Errorf("a change that is refused as %d was tried %d times, %v, want %d", c.with, store.writes,
				err, c.want)
		}
	}
}

// busyNamespace is a namespace none of whose changes succeeds.
type busyNamespace struct {
	servertest.StubStore
	with   engine.Kind
	writes int
}

func (b *busyNamespace) GetNamespace(_ context.Context, name string) (engine.Namespace, error) {
	return engine.Namespace{Name: name, Enabled: true}, nil
}

func (b *busyNamespace) UpdateNamespace(context.Context, engine.NamespaceParams) (engine.Namespace, error) {
	b.writes++
	return engine.Namespace{}, &engine.Error{Kind: b.with}
}
