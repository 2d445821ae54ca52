package server

import (
	"context"
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// sharedNamespace is a namespace that another server changes between the first reading of it and the first writing.
type sharedNamespace struct {
	stubStore
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
	_, err := s.UpdateNamespace(t.Context(), &kagziv1.UpdateNamespaceRequest{Namespace: "shop", Description: new("of orders")})
	if err != nil {
		t.Fatal(err)
	}
	if store.stands.Enabled || store.stands.Description != "of orders" {
		t.Errorf("the namespace stands as %+v, want it disabled by the other server, with the description of this one", store.stands)
	}
}
