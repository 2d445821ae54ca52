package auth

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net"
	"strings"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/async"
	"github.com/kagzi/kagzi/engine/server/internal/secret"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
)

// Who makes a call. What a context says of it is the key that let the call in; without one the
// caller is "local" and may do everything, because the database has no keys or the server is
// reached from within its process only.

type callerMark struct{}

func WithCaller(ctx context.Context, key *Key) context.Context {
	return context.WithValue(ctx, callerMark{}, key)
}

// CallerOf is the key of the call, nil for a local one.
func CallerOf(ctx context.Context) *Key {
	key, _ := ctx.Value(callerMark{}).(*Key)
	return key
}

// ActorOf is who makes a call, for the audit log.
func ActorOf(ctx context.Context) engine.Actor {
	actor := engine.Actor{Name: "local"}
	if key := CallerOf(ctx); key != nil {
		actor.Name = key.actor()
	}
	if p, ok := peer.FromContext(ctx); ok && p.Addr != nil {
		actor.Peer = wire.Cut(p.Addr.String())
	}
	return actor
}

// KeyOf is the key whose secret stands in an authorization header ("Bearer kz_…"), for listeners
// other than gRPC; nil where none is needed. Without a valid one the error is of engine.KindNoKey.
// While the database does not answer, it goes by the keys as they were last read: it is for
// listeners that only tell of this server.
func (g *Guard) KeyOf(ctx context.Context, authorization string) (*engine.APIKey, error) {
	var headers []string
	if authorization != "" {
		headers = []string{authorization}
	}
	key, err := g.identifyBy(ctx, g.keys.getOrLast, headers)
	if err != nil || key == nil {
		return nil, err
	}
	return &key.APIKey, nil
}

// authenticate finds out who makes a call.
func (g *Guard) authenticate(ctx context.Context) (*Key, error) {
	key, err := g.identify(ctx, metadata.ValueFromIncomingContext(ctx, "authorization"))
	if engine.KindOf(err) == engine.KindNoKey {
		g.failures.delay(ctx, hostOf(ctx))
	}
	return key, err
}

// identify finds the key of a call by its secret, and without one by the caller's certificate.
func (g *Guard) identify(ctx context.Context, authorization []string) (*Key, error) {
	return g.identifyBy(ctx, g.keys.get, authorization)
}

// identifyBy is identify by the keys that read gets.
func (g *Guard) identifyBy(ctx context.Context, read func(context.Context) (*keyset, error),
	authorization []string) (*Key, error) {
	if g.trusted {
		return nil, nil
	}
	keys, err := read(ctx)
	if err != nil || keys.empty() && !g.needKey {
		return nil, err
	}
	key, err := g.shown(ctx, keys, authorization)
	if err != nil {
		return nil, err
	}
	if !key.ValidAt(g.store.Now()) || keys.byID[key.ID] == nil {
		g.noteDead(ctx, key)
		return nil, noKey("the API key %q has expired or was revoked; ask for a new one", key.Name)
	}
	g.Used(key)
	return key, nil
}

// shown is the key that a call shows, which may have ended. It costs one hash at most.
func (g *Guard) shown(ctx context.Context, keys *keyset, authorization []string) (*Key, error) {
	if len(authorization) == 0 {
		name := CertificateOf(ctx)
		if key := keys.byName[name]; key != nil && name != "" {
			return key, nil
		}
		if name != "" {
			return nil, noKey("no API key has the name that is in the client certificate, %q", wire.Cut(name))
		}
		return nil,
			noKey(
				"an API key is needed: give --api-key-file or KAGZI_API_KEY, or in other clients the metadata `authorization: Bearer SECRET`")
	}
	scheme, text, _ := strings.Cut(authorization[0], " ")
	id, ok := secret.Parse(text)
	if len(authorization) > 1 || !strings.EqualFold(scheme, "bearer") || !ok {
		return nil,
			noKey(
				"the API key is not whole: it is to be sent as `authorization: Bearer SECRET`, with all of the secret, which begins with kz_")
	}
	key := keys.byID[id]
	if key == nil {
		key = g.keys.wasRevoked(id)
	}
	if key != nil {
		if hash := secret.Hash(text); key.opensWith(&hash) {
			return key, nil
		}
	}
	return nil, noKey("the API key is unknown here")
}

// opensWith says whether the hash is that of the key's secret. How long it takes does not depend on how much of it is.
func (k *Key) opensWith(hash *[sha256.Size]byte) bool {
	return subtle.ConstantTimeCompare(hash[:], k.Hash[:]) == 1
}

func noKey(format string, args ...any) error {
	return &engine.Error{Kind: engine.KindNoKey, Subject: "key", Message: fmt.Sprintf(format, args...)}
}

// CertificateOf is the common name of the caller's certificate; empty when there is none that was verified.
func CertificateOf(ctx context.Context) string {
	info, _ := TLSOf(ctx)
	if len(info.State.VerifiedChains) == 0 || len(info.State.VerifiedChains[0]) == 0 {
		return ""
	}
	return info.State.VerifiedChains[0][0].Subject.CommonName
}

// TLSOf is how the call is encrypted, if it is.
func TLSOf(ctx context.Context) (credentials.TLSInfo, bool) {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return credentials.TLSInfo{}, false
	}
	info, ok := p.AuthInfo.(credentials.TLSInfo)
	return info, ok
}

// hostOf is the address that a call comes from, without its port.
func hostOf(ctx context.Context) string {
	p, ok := peer.FromContext(ctx)
	if !ok || p.Addr == nil {
		return ""
	}
	host, _, err := net.SplitHostPort(p.Addr.String())
	if err != nil {
		return p.Addr.String()
	}
	return host
}

// usedEvery is how exact a key's last use is, in seconds.
const usedEvery = 60

// Used notes that a key was used, at most once in usedEvery seconds.
func (g *Guard) Used(key *Key) {
	if key == nil || !async.Elapsed(&key.used, usedEvery) {
		return
	}
	g.uses.mu.Lock()
	if g.uses.pending == nil {
		g.uses.pending = map[engine.ID]time.Time{}
	}
	g.uses.pending[key.ID] = g.store.Now()
	g.uses.mu.Unlock()
	async.Notify(g.uses.wake)
}
