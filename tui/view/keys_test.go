package view

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui"
)

// shopWithKeys returns the day with an admin's key, a worker's and an expired one.
func shopWithKeys() *shop {
	w := newShop()
	for _, key := range []*kagziv1.Key{
		{Name: "ada", Role: kagziv1.KeyRole_KEY_ROLE_ADMIN},
		{Name: "orders", Role: kagziv1.KeyRole_KEY_ROLE_WORKER, Namespaces: []string{"default"},
			TaskQueues: []string{"orders*"}},
		{Name: "ci", Role: kagziv1.KeyRole_KEY_ROLE_CLIENT, Namespaces: []string{"default", "staging"},
			ExpiresAt: timestamppb.New(w.Now().Add(time.Second))},
	} {
		if _, err := w.CreateKey(context.Background(), &kagziv1.CreateKeyRequest{Key: key}); err != nil {
			panic(err)
		}
	}
	w.Advance(2 * time.Second)
	return w
}

// inKeys returns options for a shop with keys.
func inKeys(w **shop, open string) func() Options {
	return func() Options {
		*w = shopWithKeys()
		return Options{API: *w, Open: open, Now: (*w).Now}
	}
}

func TestKeysAreListedMadeAndRevoked(t *testing.T) {
	var w *shop
	onFixture(t, inKeys(&w, "keys"), 130, 40, func(r *fixture) {
		r.shows("Keys (3)", "ada", "● valid", "orders*", "default,staging", "⧖ expired")
		r.press("enter")
		r.shows("Role", "admin", "all namespaces")
		r.press("esc", "n")
		r.enter("billing")
		r.press("tab", "right", "right", "tab", "tab") // role client, operator
		r.enter("orders")
		r.press("ctrl-s")
		r.shows("only a worker's key is limited to queues")
		r.press("ctrl-u", "tab", "tab", "tab")
		r.enter("yesterday")
		r.press("ctrl-s")
		r.shows("want 90d, 2027-01-31")
		r.press("ctrl-u")
		r.enter("90d")
		r.press("ctrl-s")
		r.shows("The secret of the key billing:", "kz_", "not shown again")
		secret := regexp.MustCompile(`kz_\w+`).FindString(r.draw())
		r.press("esc")
		r.pass(6 * time.Second)
		r.shows("Keys (4)", "billing")
		if err := r.app.command("messages"); err != nil {
			t.Fatal(err)
		}
		r.shows("$ kagzi key create billing --role operator --namespace default --expires 2027-02-18T09:00:02Z")
		r.lacks(secret)
		r.press("esc", "g")

		r.press("j", "x")
		r.shows("Revoke key billing?", "kagzi key revoke ", "billing has the role operator, namespaces default")
		r.press("enter")
		r.shows("Keys (4)")
		r.press("x", "tab", "enter")
		r.settle()
		r.shows("revoke key billing: REVOKED", "Keys (3)")
		r.press("a")
		r.shows("Keys (4)", "with revoked ones", "■ revoked")
		r.press("A")
		r.shows("Audit of keys", "RevokeKey", "CreateKey")
	})
}

func TestTheLastKeyIsRevokedWithAWarning(t *testing.T) {
	var w *shop
	onFixture(t, inKeys(&w, "keys"), 120, 32, func(r *fixture) {
		r.press("space", "space", "space", "x")
		r.shows("Revoke key ada, ci and orders?", "No key is left then: every call is allowed without one.")
	})
}

func TestNoFirstKeyIsMadeHere(t *testing.T) {
	var w *shop
	onFixture(t, inShop(&w, "keys"), 120, 32, func(r *fixture) {
		r.shows("No keys: every call is allowed.", "kagzi key create NAME --role admin")
		r.press("n")
		if r.app.layer() != nil {
			t.Error("a form was opened")
		}
		r.shows("from the first key on every call needs one")
	})
}

// keyless is a server that shows its keys to nobody.
type keyless struct{ tui.API }

func (keyless) ListKeys(context.Context, *kagziv1.ListKeysRequest,
	...grpc.CallOption) (*kagziv1.ListKeysResponse, error) {
	return nil, status.Error(codes.PermissionDenied, "key ada has the role operator; ListKeys needs the role admin")
}

func TestKeysAreShownToAdminsOnly(t *testing.T) {
	onFixture(t, func() Options {
		w := shopWithKeys()
		return Options{API: keyless{keyed{w, kagziv1.KeyRole_KEY_ROLE_OPERATOR}}, Open: "keys", Now: w.Now}
	}, 120, 32, func(r *fixture) {
		r.shows("Cannot show this: key ada has the role operator; ListKeys needs the role admin")
		r.press("n")
		r.shows("may not new; that needs the role admin")
	})
}

func TestTheAuditLogIsShownAndOpensWhatWasChanged(t *testing.T) {
	var w *shop
	onFixture(t, inKeys(&w, "runs"), 140, 32, func(r *fixture) {
		id := onRun(t, r, "status:sleeping")
		r.press("x", "tab", "enter")
		if err := r.app.command("audit CancelWorkflow"); err != nil {
			t.Fatal(err)
		}
		r.settle()
		r.shows("CancelWorkflow", "run "+id, "ok")
		r.press("d")
		r.shows("Audit: CancelWorkflow", "Namespace")
		r.press("esc", "enter")
		r.settle()
		if got := r.app.trails.top().Crumb(); !strings.HasPrefix(got, "run ") {
			t.Errorf("enter opened %q", got)
		}
		r.press("esc", "esc", "a")
		r.pass(time.Second)
		r.shows("Audit of keys (3)", "CreateKey")
		r.lacks("CancelWorkflow")
	})
}

func TestEqualEventsOfTheAuditLogAreToldApart(t *testing.T) {
	onFixture(t, func() Options {
		w := newShop()
		return Options{API: twins{w}, Open: "audit", Now: w.Now}
	}, 120, 32, func(r *fixture) {
		r.shows("Audit (3)")
		r.press("j", "j", "k", "k")
		if got := r.app.trails.top().(*auditPage).tab.Index(); got != 0 {
			t.Errorf("the cursor is on row %d, want 0", got)
		}
	})
}

// twins is a server whose audit log has the same event three times.
type twins struct{ tui.API }

func (twins) ListAuditEvents(context.Context, *kagziv1.ListAuditEventsRequest,
	...grpc.CallOption) (*kagziv1.ListAuditEventsResponse, error) {
	events := make([]*kagziv1.AuditEvent, 3)
	for i := range events {
		events[i] = &kagziv1.AuditEvent{At: timestamppb.New(begin), Actor: "ada", Method: "CancelWorkflow", Outcome: "ok"}
	}
	return &kagziv1.ListAuditEventsResponse{Events: events}, nil
}

func TestTheViewsOfKeysAndAuditLookRight(t *testing.T) {
	for _, view := range []string{"keys", "audit --keys"} {
		var w *shop
		onFixture(t, inKeys(&w, view), 100, 16, func(r *fixture) {
			golden(t, strings.ReplaceAll(view, " --", "_"), r.draw())
		})
	}
}
