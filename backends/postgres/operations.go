package postgres

import (
	"context"
	_ "embed"

	"github.com/kagzi/kagzi/backends/internal/storelogic"
	"github.com/kagzi/kagzi/engine"
)

// transact carries out an operation of package storelogic in a transaction of its own. One by the holder of a lease waits for those before it
// that are about the same run.
func (s *Store) transact(_ context.Context, c storelogic.Call, do func(storelogic.Tx) (any, error)) (any, error) {
	in := func(t *tx) (any, error) { return do(t) }
	if c.Lease != nil {
		return inLine(s, c.Lease.RunID, c.Ticket, c.Doing, in)
	}
	return write(s, c.Doing, in)
}

//go:embed sql/lock_namespace.sql
var lockNamespaceSQL string

//go:embed sql/lock_api_keys.sql
var lockAPIKeysSQL string

// locked carries out an operation behind a lock, so that it happens once at a time over all servers.
func locked[P, A any](s *Store, doing, lock string, a args, do func(storelogic.Tx, P) (A, error), p P) (A, error) {
	return write(s, doing, func(t *tx) (A, error) {
		if err := t.queue(lock, a); err != nil {
			var none A
			return none, err
		}
		return do(t, p)
	})
}

// UpdateNamespace replaces the settings of a namespace.
func (s *Store) UpdateNamespace(_ context.Context, p engine.NamespaceParams) (engine.Namespace, error) {
	return locked(s, "update a namespace", lockNamespaceSQL, args{"namespace": p.Namespace.Name}, storelogic.UpdateNamespace, p)
}

// CreateKey creates an API key.
func (s *Store) CreateKey(_ context.Context, p engine.CreateKeyParams) (engine.APIKey, error) {
	return locked(s, "create a key", lockAPIKeysSQL, args{}, storelogic.CreateKey, p)
}

// RevokeKey revokes an API key.
func (s *Store) RevokeKey(_ context.Context, p engine.RevokeKeyParams) (engine.APIKey, error) {
	return locked(s, "revoke a key", lockAPIKeysSQL, args{}, storelogic.RevokeKey, p)
}
