package web

import (
	"context"
	"net/http"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// whoAmI is a method that every key may call.
const whoAmI = "/kagzi.v1.AdminService/WhoAmI"

// Sessions are the logins of the page: sessions of the API's keys. Its contexts come from requests
// behind the gate, which says from where they are.
type Sessions struct{ direct server.Direct }

// Login changes an API key into the secret of a session, for a cookie that lasts until expires. Within
// that time the server decides when the session ends.
func (s Sessions) Login(_ context.Context, key string, r *http.Request) (token string, expires time.Time, err error) {
	if !strings.HasPrefix(key, "kz_") || strings.ContainsAny(key, " \t\r\n") {
		key = "none" // it still counts as a failure of its address
	}
	began := time.Now()
	session, err := kagziv1.NewAdminServiceClient(s.direct).CreateSession(as(r.Context(), key),
		&kagziv1.CreateSessionRequest{})
	if status.Code(err) == codes.Unauthenticated && key == "none" {
		err = status.Error(codes.Unauthenticated, "this is no API key: a key begins with kz_ and is one word")
	}
	if err != nil {
		return "", time.Time{}, err
	}
	return session.Secret, began.Add(engine.SessionLife), nil
}

// Identify returns a context whose calls are made in a session, or an error if the session is over.
// While the database does not answer, the calls fail instead.
func (s Sessions) Identify(ctx context.Context, token string) (context.Context, error) {
	ctx = as(ctx, token)
	if _, err := s.direct.Authenticate(ctx, whoAmI); status.Code(err) == codes.Unauthenticated {
		return nil, err
	}
	return ctx, nil
}

// Logout ends a session.
func (s Sessions) Logout(ctx context.Context, token string) error {
	_, err := kagziv1.NewAdminServiceClient(s.direct).EndSession(as(ctx, token), &kagziv1.EndSessionRequest{})
	return err
}

// as returns a context whose calls show a secret, and no other.
func as(ctx context.Context, secret string) context.Context {
	had, _ := metadata.FromIncomingContext(ctx)
	md := had.Copy()
	md.Set("authorization", "Bearer "+secret)
	return metadata.NewIncomingContext(ctx, md)
}
