package auth

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/async"
	"github.com/kagzi/kagzi/engine/server/internal/secret"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
	contract "github.com/kagzi/kagzi/proto/wire"
)

// A call's context holds the key of its caller. Without a key the caller is "local" and may do
// everything: the database has no keys, or only this process can reach the server.

type callerMark struct{}

// WithCaller returns a context with the key of the caller.
func WithCaller(ctx context.Context, key *Key) context.Context {
	return context.WithValue(ctx, callerMark{}, key)
}

// CallerOf returns the key of the call; nil for a local one.
func CallerOf(ctx context.Context) *Key {
	key, _ := ctx.Value(callerMark{}).(*Key)
	return key
}

// ActorOf returns the caller for the audit log. A program that acts for it has named itself: a claim,
// quoted behind the name.
func ActorOf(ctx context.Context) engine.Actor {
	actor := engine.Actor{Name: "local"}
	if key := CallerOf(ctx); key != nil {
		actor.Name = key.actor()
	}
	if claims := metadata.ValueFromIncomingContext(ctx, contract.Agent); len(claims) > 0 {
		if claim := contract.AgentName(claims[len(claims)-1]); claim != "" {
			actor.Name += " via " + strconv.Quote(claim)
		}
	}
	if p, ok := peer.FromContext(ctx); ok && p.Addr != nil {
		actor.Peer = wire.Cut(p.Addr.String())
	}
	return actor
}

// KeyOf returns the key of an authorization header ("Bearer kz_…"), for listeners other than gRPC;
// nil if no key is needed. Without a valid key the error is of engine.KindNoKey. While the database
// does not answer it uses the keys as last read, so use it only for listeners that report about
// this server.
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

// authenticate returns the key of a call. It delays failed calls of an address that has had too
// many.
func (g *Guard) authenticate(ctx context.Context) (*Key, error) {
	key, err := g.identify(ctx, metadata.ValueFromIncomingContext(ctx, "authorization"))
	if engine.KindOf(err) == engine.KindNoKey {
		g.failures.delay(ctx, hostOf(ctx))
	}
	return key, err
}

// identify returns the key of a call by its secret or, without one, by the client certificate.
func (g *Guard) identify(ctx context.Context, authorization []string) (*Key, error) {
	return g.identifyBy(ctx, g.keys.get, authorization)
}

// identifyBy is identify with the keys that read returns.
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
	current := keys.byID[key.ID]
	if !key.ValidAt(g.store.Now()) || current == nil {
		g.noteDead(ctx, key)
		return nil, noKey("the API key %q has expired or was revoked; ask for a new one", key.Name)
	}
	g.Used(current)
	g.usedSession(key.session)
	return key, nil
}

// shown returns the key that a call presents, which may have expired or been revoked. It computes
// at most one hash.
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
				"an API key is needed: give --api-key-file or KAGZI_API_KEY, " +
					"or in other clients the metadata `authorization: Bearer SECRET`")
	}
	scheme, text, _ := strings.Cut(authorization[0], " ")
	if len(authorization) == 1 && strings.EqualFold(scheme, "bearer") {
		if key, err := g.bySession(ctx, keys, text); key != nil || err != nil {
			return key, err
		}
	}
	id, ok := secret.Parse(text)
	if len(authorization) > 1 || !strings.EqualFold(scheme, "bearer") || !ok {
		return nil,
			noKey(
				"the API key is malformed: send `authorization: Bearer SECRET` with the whole secret, " +
					"which begins with kz_")
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
	return nil, noKey("the API key is unknown on this server")
}

// opensWith says whether the hash is that of the caller's secret, in constant time.
func (k *Key) opensWith(hash *[sha256.Size]byte) bool {
	return subtle.ConstantTimeCompare(hash[:], k.Hash[:]) == 1
}

func noKey(format string, args ...any) error {
	return &engine.Error{Kind: engine.KindNoKey, Subject: "key", Message: fmt.Sprintf(format, args...)}
}

// CertificateOf returns the common name of the caller's verified certificate; empty if there is
// none.
func CertificateOf(ctx context.Context) string {
	info, _ := TLSOf(ctx)
	if len(info.State.VerifiedChains) == 0 || len(info.State.VerifiedChains[0]) == 0 {
		return ""
	}
	return info.State.VerifiedChains[0][0].Subject.CommonName
}

// TLSOf returns the TLS state of the call; false if it is not encrypted.
func TLSOf(ctx context.Context) (credentials.TLSInfo, bool) {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return credentials.TLSInfo{}, false
	}
	info, ok := p.AuthInfo.(credentials.TLSInfo)
	return info, ok
}

// hostOf returns the address of the caller without its port.
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

// usedEvery is the resolution of a key's last use, in seconds.
const usedEvery = 60

// Used records that a key was used, at most once in usedEvery seconds.
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
