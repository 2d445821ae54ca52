package server

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/secret"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

func TestASessionIsValidFromLoginToLogout(t *testing.T) {
	_, conn, l, secrets := guarded(t)
	admin := kagziv1.NewAdminServiceClient(conn)
	made, err := admin.CreateSession(with(soon(t), secrets[engine.RoleViewer]), &kagziv1.CreateSessionRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if made.Key.GetName() != "the-viewer" || made.ExpiresAt.AsTime().Before(l.Now()) {
		t.Errorf("the answer is %v, want the key and the end of the session", made)
	}
	in := with(soon(t), made.Secret)
	me, err := admin.WhoAmI(in, &kagziv1.WhoAmIRequest{})
	if err != nil || me.Key.GetName() != "the-viewer" || me.SessionExpiresAt == nil {
		t.Errorf("in the session: %v, %v", me, err)
	}
	if _, err := admin.ListKeys(in, &kagziv1.ListKeysRequest{}); status.Code(err) != codes.PermissionDenied {
		t.Errorf("ListKeys in a viewer's session: %v, want PERMISSION_DENIED", err)
	}
	if _, err := admin.CreateSession(in, &kagziv1.CreateSessionRequest{}); status.Code(err) != codes.PermissionDenied {
		t.Errorf("a session out of a session: %v, want PERMISSION_DENIED", err)
	}
	if _, err := admin.EndSession(in, &kagziv1.EndSessionRequest{}); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.WhoAmI(in, &kagziv1.WhoAmIRequest{}); status.Code(err) != codes.Unauthenticated {
		t.Errorf("after logout: %v, want UNAUTHENTICATED", err)
	}
	events := l.Recorded()
	if last := events[len(events)-1]; last.Method != "EndSession" ||
		!strings.Contains(last.Actor.Name, "the-viewer (") || !strings.HasSuffix(last.Actor.Name, " session "+made.SessionId) {
		t.Errorf("the logout was by %q, want the key and its session", last.Actor.Name)
	}
	for _, e := range events {
		if strings.Contains(e.Detail+e.Actor.Name+e.SubjectID, made.Secret) {
			t.Errorf("the audit event %v holds the secret of the session", e)
		}
	}
}

func TestASessionNeedsAKey(t *testing.T) {
	_, conn, _, secrets := guarded(t)
	admin := kagziv1.NewAdminServiceClient(conn)
	if _, err := admin.CreateSession(with(soon(t), secrets[engine.RoleWorker]),
		&kagziv1.CreateSessionRequest{}); status.Code(err) != codes.PermissionDenied {
		t.Errorf("a worker's session: %v, want PERMISSION_DENIED", err)
	}
	if _, err := admin.EndSession(with(soon(t), secrets[engine.RoleViewer]),
		&kagziv1.EndSessionRequest{}); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("the end of no session: %v, want FAILED_PRECONDITION", err)
	}
}

func TestFailedLoginsAndSessionsOfAnAddressAreDelayed(t *testing.T) {
	for what, try := range map[string]func(kagziv1.AdminServiceClient, context.Context) error{
		"logins": func(admin kagziv1.AdminServiceClient, ctx context.Context) error {
			_, err := admin.CreateSession(with(ctx, "kz_admin_none"), &kagziv1.CreateSessionRequest{})
			return err
		},
		"sessions": func(admin kagziv1.AdminServiceClient, ctx context.Context) error {
			unknown, _ := secret.NewSession(engine.NewID(time.Now()))
			_, err := admin.WhoAmI(with(ctx, unknown), &kagziv1.WhoAmIRequest{})
			return err
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			_, conn, _, _ := guarded(t)
			admin, began := kagziv1.NewAdminServiceClient(conn), time.Now()
			for i := range 11 { // ten a second are free
				if took := time.Since(began); took != 0 {
					t.Errorf("%s: %d failures took %s, want them free", what, i, took)
				}
				if err := try(admin, soon(t)); status.Code(err) != codes.Unauthenticated {
					t.Errorf("%s: %v, want UNAUTHENTICATED", what, err)
				}
			}
			if took := time.Since(began); took != 250*time.Millisecond {
				t.Errorf("%s: the eleventh failure in a second came after %s, want 250ms", what, took)
			}
		})
	}
}
