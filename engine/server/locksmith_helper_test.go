package server

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/servertest"
)

// with is a context whose calls show a secret.
func with(ctx context.Context, secret string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+secret)
}

// guarded is a server over keys of every role for the namespaces "default" and "team", and one
// admin's for all.
func guarded(t *testing.T) (*Server, *grpc.ClientConn, *servertest.KeyStore, map[engine.KeyRole]string) {
	t.Helper()
	l := &servertest.KeyStore{Notifications: "in-process"}
	l.Make(engine.APIKey{Name: "root", Role: engine.RoleAdmin})
	secrets := map[engine.KeyRole]string{}
	for role := engine.RoleAdmin; role <= engine.RoleViewer; role++ {
		key := engine.APIKey{Name: "the-" + role.String(), Role: role, Namespaces: []string{"default", "team"}}
		if role == engine.RoleAdmin {
			key.Namespaces = nil
		}
		secrets[role] = l.Make(key)
	}
	s, conn := serve(t, l)
	return s, conn, l, secrets
}

func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}
