package server

import (
	"context"
	"slices"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/auth"
	"github.com/kagzi/kagzi/engine/server/internal/secret"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// CreateKey makes a key and tells its secret, which nobody can be told again.
func (s *Server) CreateKey(ctx context.Context, request *kagziv1.CreateKeyRequest) (*kagziv1.CreateKeyResponse, error) {
	if request.Key == nil {
		return nil, engine.Invalid("key", "must be set")
	}
	now := s.now()
	key, err := keyOf(request.Key)
	if err != nil {
		return nil, err
	}
	key.ID, key.CreatedAt = engine.NewID(now), now
	if err := engine.CheckKey(&key); err != nil {
		return nil, err
	}
	text, hash := secret.New(key.Role, key.ID)
	key.Hash = hash
	key, err = s.store.CreateKey(ctx, engine.CreateKeyParams{
		Key: key, By: auth.ActorOf(ctx), AuditID: engine.NewID(now), Now: now})
	if err != nil {
		return nil, err
	}
	s.guard.KeysChanged() // the notification comes later than the answer
	return &kagziv1.CreateKeyResponse{Key: wire.KeyTo(&key), Secret: text}, nil
}

// keyOf reads what the maker of a key decides. The rest is the server's.
func keyOf(k *kagziv1.Key) (engine.APIKey, error) {
	for field, set := range map[string]bool{
		"key.key_id": k.KeyId != "", "key.created_at": k.CreatedAt != nil, "key.last_used_at": k.LastUsedAt != nil,
		"key.revoked_at": k.RevokedAt != nil,
	} {
		if set {
			return engine.APIKey{}, engine.Invalid(field, "cannot be given: the server sets it")
		}
	}
	for field, n := range map[string]int{"key.task_queues": len(k.TaskQueues),
		"key.workflow_types": len(k.WorkflowTypes)} {
		if n > engine.MaxKeyGlobs {
			return engine.APIKey{}, engine.Invalid(
				field, "has %d entries, at most %d are allowed", n, engine.MaxKeyGlobs)
		}
	}
	key := engine.APIKey{
		Name: k.Name, Namespaces: slices.Compact(slices.Sorted(slices.Values(k.Namespaces))),
		Queues: wire.Dedupe(k.TaskQueues), Types: wire.Dedupe(k.WorkflowTypes),
	}
	if _, known := kagziv1.KeyRole_name[int32(k.Role)]; known { // another one is refused as no role
		key.Role = engine.KeyRole(k.Role)
	}
	var err error
	key.ExpiresAt, err = wire.TimeOf("key.expires_at", k.ExpiresAt)
	return key, err
}

// ListKeys is all keys, those that were revoked too, newest first.
func (s *Server) ListKeys(ctx context.Context, request *kagziv1.ListKeysRequest) (*kagziv1.ListKeysResponse, error) {
	page, err := wire.PageOf(request, request.Page, wire.BelowIDs)
	if err != nil {
		return nil, err
	}
	keys, info, err := s.store.ListKeys(ctx, page)
	if err != nil {
		return nil, err
	}
	list, around := wire.PageOfItems(request, page, info, keys, wire.KeyTo, func(k *engine.APIKey) engine.Cursor {
		return engine.Cursor{ID: k.ID}
	})
	return &kagziv1.ListKeysResponse{Keys: list, Page: around}, nil
}

// RevokeKey makes a key worthless: on this server with the answer, on the others within 5 s.
func (s *Server) RevokeKey(ctx context.Context, request *kagziv1.RevokeKeyRequest) (*kagziv1.RevokeKeyResponse, error) {
	id, err := wire.IDOf("key_id", request.KeyId)
	if err != nil {
		return nil, err
	}
	now := s.now()
	key, err := s.store.RevokeKey(ctx, engine.RevokeKeyParams{
		ID: id, By: auth.ActorOf(ctx), AuditID: engine.NewID(now), Now: now})
	if err != nil {
		return nil, err
	}
	s.guard.KeysChanged()
	return &kagziv1.RevokeKeyResponse{Key: wire.KeyTo(&key)}, nil
}

// WhoAmI tells the caller as whom it is known.
func (s *Server) WhoAmI(ctx context.Context, _ *kagziv1.WhoAmIRequest) (*kagziv1.WhoAmIResponse, error) {
	required, err := s.guard.KeysRequired(ctx)
	if err != nil {
		return nil, err
	}
	_, encrypted := auth.TLSOf(ctx)
	response := &kagziv1.WhoAmIResponse{KeysRequired: required, Encrypted: encrypted,
		Certificate: auth.CertificateOf(ctx)}
	if key := auth.CallerOf(ctx); key != nil {
		response.Key = wire.KeyTo(&key.APIKey)
	}
	return response, nil
}

// KeyOf returns the key whose secret stands in an authorization header ("Bearer kz_…"), for callers
// that come another way than over gRPC; nil where none is needed. Without a valid one the error is
// of engine.KindNoKey. While the database does not answer, it goes by the keys as they were last
// read: it is for what only looks at this server.
func (s *Server) KeyOf(ctx context.Context, authorization string) (*engine.APIKey, error) {
	return s.guard.KeyOf(ctx, authorization)
}
