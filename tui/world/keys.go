package world

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// keyring is who may come in. A world asks nobody for a key: the one that the caller is said to have changes what WhoAmI tells, and
// no call is refused for it.
type keyring struct {
	keys     []*kagziv1.Key
	caller   *kagziv1.Key // nil: without a key
	warnings []string
}

// CallAs gives the caller a key; nil takes it away.
func (w *World) CallAs(key *kagziv1.Key) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.keyring.caller = key
}

// Warn sets what the server tells as its warnings.
func (w *World) Warn(warnings ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.keyring.warnings = warnings
}

// WhoAmI is the caller as CallAs says.
func (w *World) WhoAmI(ctx context.Context, _ *kagziv1.WhoAmIRequest, _ ...grpc.CallOption) (*kagziv1.WhoAmIResponse, error) {
	return call(w, ctx, "AdminService/WhoAmI", func() (*kagziv1.WhoAmIResponse, error) {
		return &kagziv1.WhoAmIResponse{Key: proto.CloneOf(w.keyring.caller), KeysRequired: w.keyring.caller != nil || len(w.validKeys()) > 0}, nil
	})
}

// CreateKey makes a key, whose secret opens nothing.
func (w *World) CreateKey(ctx context.Context, request *kagziv1.CreateKeyRequest, _ ...grpc.CallOption) (*kagziv1.CreateKeyResponse, error) {
	return call(w, ctx, "AdminService/CreateKey", func() (*kagziv1.CreateKeyResponse, error) {
		key := proto.CloneOf(request.Key)
		if err := checkName("name", key.GetName()); err != nil {
			return nil, err
		}
		for _, k := range w.validKeys() {
			if k.Name == key.Name {
				return nil, taken("key", k.KeyId, "a key has the name "+key.Name+" already")
			}
		}
		key.KeyId, key.CreatedAt = w.ids.id(w.now), stamp(w.now)
		w.keyring.keys = append(w.keyring.keys, key)
		w.audited("CreateKey", "", "key", key.KeyId, "", key.Name)
		return &kagziv1.CreateKeyResponse{Key: proto.CloneOf(key), Secret: "kz_demo_" + key.KeyId}, nil
	})
}

// ListKeys is all keys, newest first.
func (w *World) ListKeys(ctx context.Context, request *kagziv1.ListKeysRequest, _ ...grpc.CallOption) (*kagziv1.ListKeysResponse, error) {
	return call(w, ctx, "AdminService/ListKeys", func() (*kagziv1.ListKeysResponse, error) {
		n := len(w.keyring.keys)
		keys, page, err := pageOf(request, request.Page, listing[*kagziv1.Key]{
			n: n, key: func(i int) string { return w.keyring.keys[n-1-i].KeyId }, falls: true,
			show: func(i int) *kagziv1.Key { return proto.CloneOf(w.keyring.keys[n-1-i]) },
		})
		return &kagziv1.ListKeysResponse{Keys: keys, Page: page}, err
	})
}

// RevokeKey makes a key worthless for good.
func (w *World) RevokeKey(ctx context.Context, request *kagziv1.RevokeKeyRequest, _ ...grpc.CallOption) (*kagziv1.RevokeKeyResponse, error) {
	return call(w, ctx, "AdminService/RevokeKey", func() (*kagziv1.RevokeKeyResponse, error) {
		for _, k := range w.keyring.keys {
			if k.KeyId != request.KeyId {
				continue
			}
			if k.RevokedAt == nil {
				k.RevokedAt = stamp(w.now)
				w.audited("RevokeKey", "", "key", k.KeyId, "", k.Name)
			}
			return &kagziv1.RevokeKeyResponse{Key: proto.CloneOf(k)}, nil
		}
		return nil, notFound("key", request.KeyId, "no key "+request.KeyId)
	})
}

// validKeys are those that are neither revoked nor expired.
func (w *World) validKeys() []*kagziv1.Key {
	var valid []*kagziv1.Key
	for _, k := range w.keyring.keys {
		if k.RevokedAt == nil && (k.ExpiresAt == nil || moment(k.ExpiresAt).After(w.now)) {
			valid = append(valid, k)
		}
	}
	return valid
}
