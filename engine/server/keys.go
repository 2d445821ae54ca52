package server

import (
	"context"
	"slices"

	"github.com/kagzi/kagzi/engine"
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
	var secret string
	secret, key.Hash = newSecret(key.Role, key.ID)
	key, err = s.store.CreateKey(ctx, engine.CreateKeyParams{Key: key, By: actorOf(ctx), AuditID: engine.NewID(now), Now: now})
	if err != nil {
		return nil, err
	}
	s.keysChanged() // the ring comes later than the answer
	return &kagziv1.CreateKeyResponse{Key: wire.KeyTo(&key), Secret: secret}, nil
}

// keyOf reads what the maker of a key decides. The rest is the server's.
func keyOf(k *kagziv1.Key) (engine.APIKey, error) {
	for field, set := range map[string]bool{
		"key.key_id": k.KeyId != "", "key.created_at": k.CreatedAt != nil, "key.last_used_at": k.LastUsedAt != nil, "key.revoked_at": k.RevokedAt != nil,
	} {
		if set {
			return engine.APIKey{}, engine.Invalid(field, "cannot be given: the server sets it")
		}
	}
	for field, n := range map[string]int{"key.task_queues": len(k.TaskQueues), "key.workflow_types": len(k.WorkflowTypes)} {
		if n > engine.MaxKeyGlobs {
			return engine.APIKey{}, engine.Invalid(field, "has %d entries, at most %d are allowed", n, engine.MaxKeyGlobs)
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
	list, around := wire.PageOfItems(request, page, info, keys, wire.KeyTo, func(k *engine.APIKey) engine.Cursor { return engine.Cursor{ID: k.ID} })
	return &kagziv1.ListKeysResponse{Keys: list, Page: around}, nil
}

// RevokeKey makes a key worthless: on this server with the answer, on the others within 5 s.
func (s *Server) RevokeKey(ctx context.Context, request *kagziv1.RevokeKeyRequest) (*kagziv1.RevokeKeyResponse, error) {
	id, err := wire.IDOf("key_id", request.KeyId)
	if err != nil {
		return nil, err
	}
	now := s.now()
	key, err := s.store.RevokeKey(ctx, engine.RevokeKeyParams{ID: id, By: actorOf(ctx), AuditID: engine.NewID(now), Now: now})
	if err != nil {
		return nil, err
	}
	s.keysChanged()
	return &kagziv1.RevokeKeyResponse{Key: wire.KeyTo(&key)}, nil
}

// WhoAmI tells the caller as whom it is known.
func (s *Server) WhoAmI(ctx context.Context, _ *kagziv1.WhoAmIRequest) (*kagziv1.WhoAmIResponse, error) {
	keys, err := s.keys.get(ctx)
	if err != nil {
		return nil, err
	}
	_, encrypted := tlsOf(ctx)
	response := &kagziv1.WhoAmIResponse{KeysRequired: s.options.NeedKey || !keys.empty(), Encrypted: encrypted, Certificate: certificateOf(ctx)}
	if key := callerOf(ctx); key != nil {
		response.Key = wire.KeyTo(&key.APIKey)
	}
	return response, nil
}
