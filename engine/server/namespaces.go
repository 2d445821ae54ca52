package server

import (
	"context"
	"errors"
	"slices"
	"sort"
	"time"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/auth"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/proto/query"
)

// CreateNamespace makes a namespace that nothing has used yet.
func (s *Server) CreateNamespace(ctx context.Context,
	request *kagziv1.CreateNamespaceRequest) (*kagziv1.CreateNamespaceResponse, error) {
	n := engine.Namespace{
		Name: request.Namespace, DisplayName: request.DisplayName, Description: request.GetDescription(), Enabled: true,
		FailureQueue: request.FailureTaskQueue,
	}
	var err error
	if n.Retention, err = wire.DurationOf("retention", request.Retention); err != nil {
		return nil, err
	}
	if n.Keep, err = wire.KeepOf(request.Keep); err != nil {
		return nil, err
	}
	p := s.namespaceParams(ctx, "CreateNamespace", "")
	p.Namespace = n
	p.Namespace.ID, p.Namespace.CreatedAt, p.Namespace.UpdatedAt = engine.NewID(p.Now), p.Now, p.Now
	if err := n.Validate(); err != nil {
		return nil, err
	}
	if n, err = s.store.CreateNamespace(ctx, p); err != nil {
		return nil, err
	}
	return &kagziv1.CreateNamespaceResponse{Namespace: wire.NamespaceTo(&n)}, nil
}

func (s *Server) namespaceParams(ctx context.Context, method, reason string) engine.NamespaceParams {
	now := s.now()
	return engine.NamespaceParams{Method: method, Reason: reason, By: auth.ActorOf(ctx),
		AuditID: engine.NewID(now), Now: now}
}

// readNamespace returns one namespace. The default namespace exists even if the store has no row
// for it; it then has neither an id nor times. A server does not insert that row when it starts,
// because a database with rows cannot be the target of a copy or restore.
func (s *Server) readNamespace(ctx context.Context, name string) (engine.Namespace, error) {
	n, err := s.store.GetNamespace(ctx, name)
	if name == engine.DefaultNamespace && engine.KindOf(err) == engine.KindNotFound {
		return engine.Namespace{Name: name, Enabled: true}, nil
	}
	return n, err
}

// unused says whether this is the default namespace without a row in the store.
func unused(n *engine.Namespace) bool { return n.Name == engine.DefaultNamespace && n.ID.IsZero() }

// readNamespaces returns a page of the store's namespaces, always including the default one.
func (s *Server) readNamespaces(ctx context.Context, page engine.Page) ([]engine.Namespace, engine.PageInfo, error) {
	list, info, err := s.store.ListNamespaces(ctx, page)
	if err != nil {
		return nil, engine.PageInfo{}, err
	}
	n, err := s.readNamespace(ctx, engine.DefaultNamespace)
	if err != nil || !unused(&n) {
		return list, info, err
	}
	if page.Count {
		info.Total++
	}
	at := sort.Search(len(list), func(i int) bool { return list[i].Name > n.Name })
	before := page.After != nil && page.After.Name >= n.Name || at == 0 && info.HasPrev && page.Before != nil
	behind := page.Before != nil && page.Before.Name <= n.Name || at == len(list) && info.HasNext && page.Before == nil
	switch {
	case before:
		info.HasPrev = true
		return list, info, nil
	case behind:
		info.HasNext = true
		return list, info, nil
	}
	list = slices.Insert(list, at, n)
	switch {
	case len(list) <= page.Limit:
	case page.Before != nil:
		list, info.HasPrev = list[1:], true
	default:
		list, info.HasNext = list[:page.Limit], true
	}
	return list, info, nil
}

// GetNamespace returns one namespace.
func (s *Server) GetNamespace(ctx context.Context,
	request *kagziv1.GetNamespaceRequest) (*kagziv1.GetNamespaceResponse, error) {
	if err := engine.CheckNamespace("namespace", request.Namespace); err != nil {
		return nil, err
	}
	n, err := s.readNamespace(ctx, request.Namespace)
	if err != nil {
		return nil, err
	}
	return &kagziv1.GetNamespaceResponse{Namespace: wire.NamespaceTo(&n)}, nil
}

// ListNamespaces returns a page of namespaces, by name; for a key that is not for all, only its
// own.
func (s *Server) ListNamespaces(ctx context.Context,
	request *kagziv1.ListNamespacesRequest) (*kagziv1.ListNamespacesResponse, error) {
	page, err := wire.PageOf(request, request.Page, wire.BehindNames)
	if err != nil {
		return nil, err
	}
	q, err := queryOf(&query.Namespaces, request.Query, s.now())
	if err != nil {
		return nil, err
	}
	list := s.readNamespaces
	if key := auth.CallerOf(ctx); key != nil && !key.ReachesAll() {
		list = s.namespacesOf(key)
	}
	namespaces := listing[engine.Namespace, *kagziv1.Namespace]{read: list, message: wire.NamespaceTo,
		place: func(n *engine.Namespace) engine.Cursor { return engine.Cursor{Name: n.Name} }}
	messages, around, err := namespaces.page(ctx, request, page, q)
	if err != nil {
		return nil, err
	}
	return &kagziv1.ListNamespacesResponse{Namespaces: messages, Page: around}, nil
}

// namespacesOf returns a function that lists the namespaces of a key that are in use, with the
// paging of the store. Others are not counted.
func (s *Server) namespacesOf(key *auth.Key) func(context.Context, engine.Page) ([]engine.Namespace,
	engine.PageInfo, error) {
	return func(ctx context.Context, page engine.Page) ([]engine.Namespace, engine.PageInfo, error) {
		var all []engine.Namespace // sorted, as the key's names are
		for _, name := range key.Namespaces {
			n, err := s.readNamespace(ctx, name)
			if engine.KindOf(err) == engine.KindNotFound {
				continue
			}
			if err != nil {
				return nil, engine.PageInfo{}, err
			}
			all = append(all, n)
		}
		from, to := 0, len(all)
		switch {
		case page.After != nil:
			from = sort.Search(len(all), func(i int) bool { return all[i].Name > page.After.Name })
			to = min(to, from+page.Limit)
		case page.Before != nil:
			to = sort.Search(len(all), func(i int) bool { return all[i].Name >= page.Before.Name })
			from = max(0, to-page.Limit)
		default:
			to = min(to, page.Limit)
		}
		info := engine.PageInfo{HasPrev: from > 0, HasNext: to < len(all)}
		if page.Count {
			info.Total = int64(len(all))
		}
		return all[from:to], info, nil
	}
}

// UpdateNamespace changes the fields that the request sets.
func (s *Server) UpdateNamespace(ctx context.Context,
	request *kagziv1.UpdateNamespaceRequest) (*kagziv1.UpdateNamespaceResponse, error) {
	n, err := s.changeNamespace(ctx, "UpdateNamespace", request.Namespace, request.Reason,
		func(n *engine.Namespace) (err error) {
			if request.DisplayName != nil {
				n.DisplayName = *request.DisplayName
			}
			if request.Description != nil {
				n.Description = *request.Description
			}
			if request.FailureTaskQueue != nil {
				n.FailureQueue = *request.FailureTaskQueue
			}
			if request.Keep != nil {
				if n.Keep, err = wire.KeepOf(request.Keep.Keep); err != nil {
					return err
				}
			}
			if request.Retention != nil {
				n.Retention, err = wire.DurationOf("retention", request.Retention)
			}
			return err
		})
	if err != nil {
		return nil, err
	}
	return &kagziv1.UpdateNamespaceResponse{Namespace: n}, nil
}

// EnableNamespace allows runs to start, to be claimed and to be fired again.
func (s *Server) EnableNamespace(ctx context.Context,
	request *kagziv1.EnableNamespaceRequest) (*kagziv1.EnableNamespaceResponse, error) {
	n, err := s.changeNamespace(ctx, "EnableNamespace", request.Namespace, request.Reason,
		func(n *engine.Namespace) error {
			n.Enabled = true
			return nil
		})
	if err != nil {
		return nil, err
	}
	return &kagziv1.EnableNamespaceResponse{Namespace: n}, nil
}

// DisableNamespace stops runs from starting, being claimed and being fired. Runs that a worker
// holds may finish.
func (s *Server) DisableNamespace(ctx context.Context,
	request *kagziv1.DisableNamespaceRequest) (*kagziv1.DisableNamespaceResponse, error) {
	n, err := s.changeNamespace(ctx, "DisableNamespace", request.Namespace, request.Reason,
		func(n *engine.Namespace) error {
			n.Enabled = false
			return nil
		})
	if err != nil {
		return nil, err
	}
	return &kagziv1.DisableNamespaceResponse{Namespace: n}, nil
}

const (
	emptiedAtOnce = 200             // limit of what one transaction deletes of a namespace
	emptiedIn     = 5 * time.Second // about how long one call deletes
)

// DeleteNamespace deletes a namespace; with Force also what is in it, for as long as one call may
// take. It keeps nothing in memory, so the call can be repeated on any server, also after a crash.
func (s *Server) DeleteNamespace(ctx context.Context,
	request *kagziv1.DeleteNamespaceRequest) (*kagziv1.DeleteNamespaceResponse, error) {
	if err := engine.CheckNamespace("namespace", request.Namespace); err != nil {
		return nil, err
	}
	if request.Namespace == engine.DefaultNamespace {
		return nil, engine.Invalid("namespace", "must not be %q, which always exists; delete what is in it instead",
			engine.DefaultNamespace)
	}
	if err := engine.CheckReason(request.Reason); err != nil {
		return nil, err
	}
	response := &kagziv1.DeleteNamespaceResponse{Removed: &kagziv1.NamespaceContents{}}
	if !request.Force {
		err := s.deleteEmpty(ctx, request, "")
		response.Deleted = err == nil
		return response, err
	}
	var removed engine.Contents
	begun, again := s.options.Clock(), request.Again
	for {
		now := s.now()
		part, err := s.store.EmptyNamespace(ctx, engine.EmptyNamespaceParams{Name: request.Namespace, Again: again,
			Limit: emptiedAtOnce, Reason: request.Reason, By: auth.ActorOf(ctx), AuditID: engine.NewID(now), Now: now})
		if err != nil {
			return nil, err
		}
		again = true
		removed.Add(part.Contents)
		if !part.More {
			err := s.deleteEmpty(ctx, request, "with everything in it")
			if err == nil || engine.KindOf(err) != engine.KindPrecondition {
				response.Deleted, response.Removed = err == nil, wire.ContentsTo(removed)
				return response, err
			}
			// a start or registration was first
		}
		if ctx.Err() != nil || s.options.Clock().Sub(begun) > emptiedIn {
			response.Removed = wire.ContentsTo(removed)
			return response, ctx.Err()
		}
	}
}

func (s *Server) deleteEmpty(ctx context.Context, request *kagziv1.DeleteNamespaceRequest, detail string) error {
	now := s.now()
	return s.store.DeleteNamespace(ctx, engine.DeleteNamespaceParams{Name: request.Namespace, Reason: request.Reason,
		Detail: detail, By: auth.ActorOf(ctx), AuditID: engine.NewID(now), Now: now})
}

// changeNamespace reads a namespace, changes it and writes it back. Changes on this server run one
// after another. If another server's change came between, it starts again, so that no change undoes
// fields that it did not set.
func (s *Server) changeNamespace(ctx context.Context, method, name, reason string,
	change func(*engine.Namespace) error) (*kagziv1.Namespace, error) {
	if err := engine.CheckNamespace("namespace", name); err != nil {
		return nil, err
	}
	if err := engine.CheckReason(reason); err != nil {
		return nil, err
	}
	s.namespaces.Lock()
	defer s.namespaces.Unlock()
	for try := 1; ; try++ {
		n, err := s.readNamespace(ctx, name)
		if err != nil {
			return nil, err
		}
		if err := change(&n); err != nil {
			return nil, err
		}
		if err := n.Validate(); err != nil {
			return nil, err
		}
		p := s.namespaceParams(ctx, method, reason)
		p.Namespace = n
		if unused(&n) {
			n, err = s.store.CreateNamespace(ctx, p)
		} else {
			n, err = s.store.UpdateNamespace(ctx, p)
		}
		if err == nil {
			return wire.NamespaceTo(&n), nil
		}
		if !errors.Is(err, engine.ErrConflict) && !errors.Is(err, engine.ErrExists) || try == changeTries {
			return nil, err
		}
	}
}
