package server

import (
	"context"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/auth"
	"github.com/kagzi/kagzi/engine/server/internal/secret"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// CreateSession starts a session of the caller's key and returns its secret, which cannot be read
// again.
func (s *Server) CreateSession(ctx context.Context,
	_ *kagziv1.CreateSessionRequest) (*kagziv1.CreateSessionResponse, error) {
	key := auth.CallerOf(ctx)
	if key == nil {
		return nil, &engine.Error{Kind: engine.KindPrecondition, Subject: "session",
			Message: "calls need no key on this server, so there is nothing to log in with; make a key with kagzi key create"}
	}
	if _, inSession := auth.SessionOf(ctx); inSession {
		return nil, &engine.Error{Kind: engine.KindDenied, Subject: "session",
			Message: "a session cannot start another, which would outlive it; log in with the API key"}
	}
	now := s.now()
	id := engine.NewID(now)
	text, hash := secret.NewSession(id)
	made, err := s.store.CreateSession(ctx, engine.CreateSessionParams{
		Session: engine.Session{ID: id, KeyID: key.ID, Hash: hash}, By: auth.ActorOf(ctx), AuditID: engine.NewID(now),
		Now: now})
	if err != nil {
		return nil, err
	}
	return &kagziv1.CreateSessionResponse{SessionId: made.ID.String(), Secret: text,
		ExpiresAt: wire.TimeTo(made.ExpiresAt), Key: wire.KeyTo(&key.APIKey)}, nil
}

// EndSession ends the caller's session. This server refuses it from the answer on, other servers
// within 5 s.
func (s *Server) EndSession(ctx context.Context,
	_ *kagziv1.EndSessionRequest) (*kagziv1.EndSessionResponse, error) {
	session, inSession := auth.SessionOf(ctx)
	if !inSession {
		return nil, &engine.Error{Kind: engine.KindPrecondition, Subject: "session",
			Message: "the call is made with no session; to end all sessions of a key, revoke it with kagzi key revoke"}
	}
	now := s.now()
	err := s.store.EndSession(ctx, engine.EndSessionParams{ID: session.ID, By: auth.ActorOf(ctx),
		AuditID: engine.NewID(now), Now: now})
	if err != nil {
		return nil, err
	}
	s.guard.KeysChanged() // the notification comes later than the answer
	return &kagziv1.EndSessionResponse{}, nil
}
