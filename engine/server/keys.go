package server

import (
	"context"
	"slices"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/auth"
	"github.com/kagzi/kagzi/engine/server/internal/secret"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/proto/query"
)

// CreateKey makes a key and returns its secret, which cannot be read again.
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

// keyOf reads the fields that the request may set; the server sets the others.
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
		"key.workflow_types": len(k.WorkflowTypes), "key.worker_ids": len(k.WorkerIds)} {
		if n > engine.MaxKeyGlobs {
			return engine.APIKey{}, engine.Invalid(
				field, "has %d entries, at most %d are allowed", n, engine.MaxKeyGlobs)
		}
	}
	key := engine.APIKey{
		Name: k.Name, Namespaces: slices.Compact(slices.Sorted(slices.Values(k.Namespaces))),
		Queues: wire.Dedupe(k.TaskQueues), Types: wire.Dedupe(k.WorkflowTypes),
		WorkerIDs: wire.Dedupe(k.WorkerIds),
	}
	if _, known := kagziv1.KeyRole_name[int32(k.Role)]; known { // an unknown one stays unset and is refused later
		key.Role = engine.KeyRole(k.Role)
	}
	var err error
	key.ExpiresAt, err = wire.TimeOf("key.expires_at", k.ExpiresAt)
	return key, err
}

// ListKeys returns a page of all keys, including revoked ones, newest first.
func (s *Server) ListKeys(ctx context.Context, request *kagziv1.ListKeysRequest) (*kagziv1.ListKeysResponse, error) {
	page, err := wire.PageOf(request, request.Page, wire.BelowIDs)
	if err != nil {
		return nil, err
	}
	q, err := queryOf(&query.Keys, request.Query, s.now())
	if err != nil {
		return nil, err
	}
	keys := listing[engine.APIKey, *kagziv1.Key]{read: s.store.ListKeys, message: wire.KeyTo,
		place: func(k *engine.APIKey) engine.Cursor { return engine.Cursor{ID: k.ID} }}
	if q != nil {
		keys.within = spanOf(q.Between("created"))
	}
	list, around, err := keys.page(ctx, request, page, q)
	if err != nil {
		return nil, err
	}
	return &kagziv1.ListKeysResponse{Keys: list, Page: around}, nil
}

// RevokeKey revokes a key. This server refuses the key from the answer on, other servers within 5
// s.
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

// WhoAmI returns the key, the certificate and the encryption of the call.
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
	if session, inSession := auth.SessionOf(ctx); inSession {
		response.SessionExpiresAt = wire.TimeTo(session.ExpiresAt)
	}
	return response, nil
}

// KeyOf returns the key of an authorization header ("Bearer kz_…"), for requests that do not come
// over gRPC; nil if no key is needed. Without a valid key the error is of engine.KindNoKey. While
// the database does not answer, it uses the keys as last read, so use it only for reading from this
// server.
func (s *Server) KeyOf(ctx context.Context, authorization string) (*engine.APIKey, error) {
	return s.guard.KeyOf(ctx, authorization)
}
