package server

import (
	"cmp"
	"context"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/auth"
	"github.com/kagzi/kagzi/engine/server/internal/secret"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// CreateHook makes a hook and returns its secret, which no other call returns.
func (s *Server) CreateHook(ctx context.Context, request *kagziv1.CreateHookRequest) (*kagziv1.CreateHookResponse,
	error) {
	namespace, err := wire.NamespaceOf(request.Namespace)
	if err != nil {
		return nil, err
	}
	now := s.now()
	h := engine.Hook{ID: engine.NewID(now), Namespace: namespace, Name: request.Name,
		Queue: wire.OrDefault(request.TaskQueue), Type: request.WorkflowType,
		Secret: cmp.Or(request.Secret, secret.NewForHook())}
	if _, known := kagziv1.HookSignature_name[int32(request.Signature)]; known { // others stay unset and are refused
		h.Scheme = engine.HookScheme(request.Signature)
	}
	if err := engine.CheckHook(&h); err != nil {
		return nil, err
	}
	made, err := s.store.CreateHook(ctx, engine.CreateHookParams{Hook: h, NamespaceMustExist: !s.known.auto,
		By: auth.ActorOf(ctx), AuditID: engine.NewID(now), Now: now})
	if err != nil {
		return nil, err
	}
	return &kagziv1.CreateHookResponse{Hook: wire.HookTo(&made, now), Secret: h.Secret}, nil
}

// GetHook returns a hook without its secrets.
func (s *Server) GetHook(ctx context.Context, request *kagziv1.GetHookRequest) (*kagziv1.GetHookResponse, error) {
	namespace, err := hookOf(request)
	if err != nil {
		return nil, err
	}
	h, err := s.store.GetHook(ctx, namespace, request.Name)
	if err != nil {
		return nil, err
	}
	return &kagziv1.GetHookResponse{Hook: wire.HookTo(&h, s.now())}, nil
}

// hookOf returns the namespace of a request about a hook, whose name it checks.
func hookOf(request interface {
	GetNamespace() string
	GetName() string
}) (namespace string, err error) {
	if namespace, err = wire.NamespaceOf(request.GetNamespace()); err != nil {
		return "", err
	}
	return namespace, engine.CheckHookName("name", request.GetName())
}

// ListHooks returns a page of the hooks of a namespace, newest first, without their secrets.
func (s *Server) ListHooks(ctx context.Context, request *kagziv1.ListHooksRequest) (*kagziv1.ListHooksResponse,
	error) {
	namespace, err := wire.NamespaceOf(request.Namespace)
	if err != nil {
		return nil, err
	}
	page, err := wire.PageOf(request, request.Page, wire.BelowIDs)
	if err != nil {
		return nil, err
	}
	hooks, info, err := s.store.ListHooks(ctx, namespace, page)
	if err != nil {
		return nil, err
	}
	now := s.now()
	list, around := wire.PageOfItems(request, page, info, hooks,
		func(h *engine.Hook) *kagziv1.Hook { return wire.HookTo(h, now) },
		func(h *engine.Hook) engine.Cursor { return engine.Cursor{ID: h.ID} })
	return &kagziv1.ListHooksResponse{Hooks: list, Page: around}, nil
}

// RotateHook gives a hook a new secret and returns it.
func (s *Server) RotateHook(ctx context.Context, request *kagziv1.RotateHookRequest) (*kagziv1.RotateHookResponse,
	error) {
	namespace, err := hookOf(request)
	if err != nil {
		return nil, err
	}
	overlap := engine.DefaultHookOverlap
	if request.Overlap != nil {
		if overlap, err = wire.DurationOf("overlap", request.Overlap); err != nil {
			return nil, err
		}
	}
	if err := engine.CheckHookOverlap("overlap", overlap); err != nil {
		return nil, err
	}
	next := cmp.Or(request.Secret, secret.NewForHook())
	if err := engine.CheckHookSecret("secret", next); err != nil {
		return nil, err
	}
	now := s.now()
	p := engine.RotateHookParams{Namespace: namespace, Name: request.Name, Secret: next, By: auth.ActorOf(ctx),
		AuditID: engine.NewID(now), Now: now}
	if overlap > 0 {
		p.OldUntil = now.Add(overlap)
	}
	h, err := s.store.RotateHook(ctx, p)
	if err != nil {
		return nil, err
	}
	return &kagziv1.RotateHookResponse{Hook: wire.HookTo(&h, now), Secret: next}, nil
}

// DeleteHook deletes a hook; its runs stay.
func (s *Server) DeleteHook(ctx context.Context, request *kagziv1.DeleteHookRequest) (*kagziv1.DeleteHookResponse,
	error) {
	namespace, err := hookOf(request)
	if err != nil {
		return nil, err
	}
	now := s.now()
	err = s.store.DeleteHook(ctx, engine.DeleteHookParams{Namespace: namespace, Name: request.Name,
		By: auth.ActorOf(ctx), AuditID: engine.NewID(now), Now: now})
	if err != nil {
		return nil, err
	}
	return &kagziv1.DeleteHookResponse{}, nil
}
