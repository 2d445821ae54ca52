package view

import (
	"context"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui"
	"github.com/kagzi/kagzi/tui/internal/format"
	"github.com/kagzi/kagzi/tui/theme"
)

// keyed is a server whose caller has a key with a role. The screens apply it.
type keyed struct {
	tui.API
	role kagziv1.KeyRole
}

func (k keyed) WhoAmI(context.Context, *kagziv1.WhoAmIRequest, ...grpc.CallOption) (*kagziv1.WhoAmIResponse, error) {
	return &kagziv1.WhoAmIResponse{Key: &kagziv1.Key{Name: "ada", Role: k.role}, KeysRequired: true}, nil
}

// cautious is a server that reports a warning.
type cautious struct {
	tui.API
	of string
}

func (a cautious) GetServerInfo(ctx context.Context, request *kagziv1.GetServerInfoRequest,
	options ...grpc.CallOption) (*kagziv1.GetServerInfoResponse, error) {
	info, err := a.API.GetServerInfo(ctx, request, options...)
	if err == nil {
		info.Warnings = []string{a.of}
	}
	return info, err
}

// asked is a server whose caller has a key with a role.
func asked(role kagziv1.KeyRole) func() Options {
	return func() Options {
		w := newShop()
		return Options{API: keyed{w, role}, Open: "runs status:open", Now: w.Now}
	}
}

func TestAKeyTakesAwayWhatItMayNotDo(t *testing.T) {
	for role, able := range map[kagziv1.KeyRole]struct{ cancel, terminate, namespace bool }{
		kagziv1.KeyRole_KEY_ROLE_ADMIN: {true, true, true}, kagziv1.KeyRole_KEY_ROLE_OPERATOR: {true, true, false},
		kagziv1.KeyRole_KEY_ROLE_CLIENT: {true, false, false}, kagziv1.KeyRole_KEY_ROLE_VIEWER: {false, false, false},
	} {
		onFixture(t, asked(role), 120, 30, func(r *fixture) {
			may := func(name string, want bool) {
				action := r.app.actions().byName(name)
				if action == nil {
					t.Fatalf("%s: there is no %s", role, name)
				}
				why := ""
				if action.Off != nil {
					why = action.Off()
				}
				if (why == "") != want {
					t.Errorf("%s: %s may be done = %t (%s), want %t", role, name, why == "", why, want)
				}
			}
			may("cancel", able.cancel)
			may("terminate", able.terminate)
			if err := r.app.command("namespaces"); err != nil {
				t.Fatal(err)
			}
			r.settle()
			may("new", able.namespace)
		})
	}
}

func TestAViewerIsToldWhyNothingCanBeChanged(t *testing.T) {
	onFixture(t, asked(kagziv1.KeyRole_KEY_ROLE_VIEWER), 120, 30, func(r *fixture) {
		r.shows("viewer · read-only")
		r.lacks("<x>")
		r.press("x")
		r.shows("your key ada has the role viewer, which may not cancel; that needs the role client")
	})
}

func TestAnExposedServerIsMarkedEverywhere(t *testing.T) {
	const warning = "other machines can reach this server, which needs no key"
	onFixture(t, func() Options {
		w := newShop()
		return Options{API: cautious{w, warning}, Open: "overview", Now: w.Now}
	}, 120, 30, func(r *fixture) {
		r.shows("exposed", "✗ critical", warning)
		if err := r.app.command("runs"); err != nil {
			t.Fatal(err)
		}
		r.settle()
		r.shows("exposed")
		if err := r.app.command("server"); err != nil {
			t.Fatal(err)
		}
		r.settle()
		r.shows("exposed", warning)
	})
}

// discreet is a server that reports neither its activity nor its workers to the caller.
type discreet struct{ *shop }

func (discreet) GetActivity(context.Context, *kagziv1.GetActivityRequest,
	...grpc.CallOption) (*kagziv1.GetActivityResponse, error) {
	return nil, status.Error(codes.PermissionDenied, "an admin's")
}

func (discreet) ListWorkers(context.Context, *kagziv1.ListWorkersRequest,
	...grpc.CallOption) (*kagziv1.ListWorkersResponse, error) {
	return nil, status.Error(codes.PermissionDenied, "a keeper's")
}

func TestWhoIsNotToldWhatTheServerDoesIsShownNoFiguresOfIt(t *testing.T) {
	onFixture(t, func() Options {
		w := newShop()
		return Options{API: discreet{w}, Now: w.Now}
	}, 120, 40, func(r *fixture) {
		byStatus := r.app.overview.Stats().GetWorkflowsByStatus()
		kept := byStatus["FAILED"] + byStatus["TIMED_OUT"]
		if kept == 0 {
			t.Fatal("no run has failed")
		}
		r.shows(format.Number(kept)+" failed in all", "The server reports its activity only",
			"to admins of all namespaces.")
		r.lacks("0 failed", "/s done", "started", "peak 0/s", "0 of 0 slots")
		p := r.app.trails.top().(*overviewPage)
		for _, tile := range p.Tiles() {
			if tile.ID == "failed" && (tile.Cells[0].Text != r.app.look.Glyph(theme.Failed)+" "+format.Number(kept) ||
				tile.Cells[2].Text != "in all") {
				t.Errorf("the tile of failed runs says %q", tile.Cells)
			}
		}
	})
}
