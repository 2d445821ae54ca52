package server

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/servertest"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// fullOf holds a namespace that is empty after some parts; each takes a second. Once, when it is
// empty, something new was first.
type fullOf struct {
	*servertest.Books
	parts   int
	raced   bool
	calls   []engine.EmptyNamespaceParams
	now     time.Time
	deleted bool
}

func (f *fullOf) EmptyNamespace(_ context.Context, p engine.EmptyNamespaceParams) (engine.Emptied, error) {
	f.calls = append(f.calls, p)
	f.parts--
	f.now = f.now.Add(time.Second)
	return engine.Emptied{Contents: engine.Contents{Runs: 2, Keys: 1}, More: f.parts > 0}, nil
}

func (f *fullOf) DeleteNamespace(_ context.Context, p engine.DeleteNamespaceParams) error {
	if f.raced {
		f.raced, f.parts = false, 1
		return engine.NamespaceNotEmpty(p.Name, engine.Contents{Runs: 1})
	}
	f.deleted = true
	return nil
}

func TestADeletionByForceGoesOnInAnotherCall(t *testing.T) {
	f := &fullOf{Books: &servertest.Books{}, parts: 8, raced: true, now: servertest.Began}
	s := New(f, nil, Options{Clock: func() time.Time { return f.now }})
	request := &kagziv1.DeleteNamespaceRequest{Namespace: "old", Force: true, Reason: "why"}
	answer, err := s.DeleteNamespace(t.Context(), request)
	if err != nil || answer.Deleted || answer.Removed.Runs != 12 || len(f.calls) != 6 {
		t.Fatalf("first answer = %v, %v after %d parts, want 12 runs of 6 parts, and not deleted", answer, err, len(f.calls))
	}
	for i, p := range f.calls {
		if p.Again != (i > 0) || p.Name != "old" || p.Limit != emptiedAtOnce || p.Reason != "why" || p.AuditID.IsZero() {
			t.Errorf("part %d was asked for with %+v", i, p)
		}
	}
	request.Again = true
	answer, err = s.DeleteNamespace(t.Context(), request)
	if err != nil || !answer.Deleted || answer.Removed.Runs != 6 || answer.Removed.Keys != 3 || !f.deleted {
		t.Errorf("second answer = %v, %v, want the rest and a part for what was first", answer, err)
	}
	if !f.calls[6].Again {
		t.Error("the second call began again")
	}
}

func TestADeletionByForceEndsWithItsCaller(t *testing.T) {
	f := &fullOf{Books: &servertest.Books{}, parts: 8}
	ctx, gone := context.WithCancel(t.Context())
	gone()
	_, err := New(f, nil, Options{Clock: func() time.Time { return servertest.Began }}).DeleteNamespace(ctx,
		&kagziv1.DeleteNamespaceRequest{Namespace: "old", Force: true})
	if !errors.Is(err, context.Canceled) || len(f.calls) != 1 || f.deleted {
		t.Errorf("error = %v after %d parts, want that it was cancelled after one", err, len(f.calls))
	}
}
