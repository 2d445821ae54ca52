package server

import (
	"context"
	"slices"
	"sync"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/auth"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// knownNamespaces refuses requests about a namespace that does not exist. It remembers those that
// do, until one is deleted. What makes something in a namespace is checked by the store again.
type knownNamespaces struct {
	store Store
	auto  bool // the first use makes a namespace
	seen  sync.Map
}

// check returns an error if the request names an unknown namespace. Malformed names are left to the
// handler, and so are the creation of a namespace and a registration, whose handler checks the key.
func (k *knownNamespaces) check(ctx context.Context, request any) error {
	if k.auto {
		return nil
	}
	switch r := request.(type) {
	case *kagziv1.DeleteNamespaceRequest: // it answers by itself: to create the namespace would not help
		return nil
	case *kagziv1.CreateNamespaceRequest, *kagziv1.RegisterRequest,
		*kagziv1.ListAuditEventsRequest: // the audit outlives what it is about
		return nil
	case *kagziv1.StartWorkflowsRequest:
		for _, start := range r.Requests {
			if err := k.exists(ctx, start.GetNamespace()); err != nil {
				return err
			}
		}
		return nil
	case *kagziv1.BulkWorkflowsRequest:
		return k.exists(ctx, wire.BulkSelection(r).GetNamespace())
	case *kagziv1.StartChildRequest:
		return k.exists(ctx, r.GetChild().GetNamespace())
	case interface{ GetNamespace() string }:
		return k.exists(ctx, r.GetNamespace())
	}
	return nil
}

// exists returns NamespaceUnknown, with the nearest name, unless the namespace exists.
func (k *knownNamespaces) exists(ctx context.Context, name string) error {
	if name == "" || name == engine.DefaultNamespace || k.auto {
		return nil
	}
	if _, seen := k.seen.Load(name); seen || engine.CheckNamespace("namespace", name) != nil {
		return nil
	}
	_, err := k.store.GetNamespace(ctx, name)
	if engine.KindOf(err) == engine.KindNotFound {
		return engine.NamespaceUnknown(name, k.nearest(ctx, name))
	}
	if err == nil {
		k.seen.Store(name, struct{}{})
	}
	return err
}

// notify forgets a namespace that may have been deleted, on this server or another.
func (k *knownNamespaces) notify(r engine.Notification) {
	switch r.Kind {
	case engine.NotifyNamespace:
		k.seen.Delete(r.Name)
	case engine.NotifyAll:
		k.seen.Clear()
	}
}

// nearest returns the existing name that is most like a name, among those that the caller's key is
// for; "" if none is.
func (k *knownNamespaces) nearest(ctx context.Context, name string) string {
	list, _, err := k.store.ListNamespaces(ctx, engine.Page{Limit: engine.MaxPage})
	if err != nil {
		return "" // the caller learns at least that it does not exist
	}
	names := []string{engine.DefaultNamespace}
	for i := range list {
		names = append(names, list[i].Name)
	}
	if key := auth.CallerOf(ctx); key != nil {
		names = slices.DeleteFunc(names, func(n string) bool { return !key.Reaches(n) })
	}
	return wire.Nearest(name, names)
}
