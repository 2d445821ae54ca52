package engine

import (
	"context"
	"time"
)

// Hooks holds the operations on hooks, which start runs for deliveries over HTTP. They send no
// notification: every delivery reads its hook.
type Hooks interface {
	// CreateHook makes a hook, and its namespace if that is new. A name that is taken in the
	// namespace is ErrExists, a disabled namespace NamespaceDisabled, and more than MaxHooks hooks of
	// a namespace ErrPrecondition. If the hook with this id exists with the same fields, it is
	// returned as it is now.
	CreateHook(ctx context.Context, p CreateHookParams) (Hook, error)
	// RotateHook gives a hook a new secret. The one before stays valid until p.OldUntil; unset: it
	// is invalid from now on, like one from an earlier rotation. While a secret of an earlier
	// rotation is still valid, a rotation with OldUntil is ErrPrecondition, because only two secrets
	// are valid at a time. A call that repeats the newest rotation changes nothing and returns the
	// hook. A hook that does not exist is HookNotFound.
	RotateHook(ctx context.Context, p RotateHookParams) (Hook, error)
	// DeleteHook deletes a hook; its runs stay. A hook that does not exist is HookNotFound.
	DeleteHook(ctx context.Context, p DeleteHookParams) error
	// GetHookByID returns the hook with this id, or HookNotFound.
	GetHookByID(ctx context.Context, id ID) (Hook, error)
	// GetHook returns the hook of a namespace with this name, or HookNotFound.
	GetHook(ctx context.Context, namespace, name string) (Hook, error)
	// ListHooks returns a page of the hooks of a namespace, newest first, by ID.
	ListHooks(ctx context.Context, namespace string, p Page) ([]Hook, PageInfo, error)
}

// CreateHookParams holds a hook to make. The audit event has Subject "hook" and the hook's id, and
// as Detail its name and what it starts.
type CreateHookParams struct {
	Hook Hook // with ID and Secret from the caller; CreatedAt is Now
	// NamespaceMustExist: see StartRunsParams.
	NamespaceMustExist bool
	By                 Actor
	AuditID            ID
	Now                time.Time
}

// RotateHookParams names a hook, with its new secret.
type RotateHookParams struct {
	Namespace string
	Name      string
	Secret    string
	OldUntil  time.Time // unset: the secret before is invalid at once
	By        Actor
	AuditID   ID
	Now       time.Time
}

// DeleteHookParams names a hook to delete.
type DeleteHookParams struct {
	Namespace string
	Name      string
	By        Actor
	AuditID   ID
	Now       time.Time
}
