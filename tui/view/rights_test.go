package view

import (
	"testing"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/world"
)

// asked is a world whose caller has a key of a role.
func asked(role kagziv1.KeyRole) func() Options {
	return func() Options {
		w := world.New(1, begin)
		w.CallAs(&kagziv1.Key{Name: "ada", Role: role})
		return Options{API: w, Open: "runs status:open", Now: w.Now}
	}
}

func TestAKeyTakesAwayWhatItMayNotDo(t *testing.T) {
	for role, able := range map[kagziv1.KeyRole]struct{ cancel, terminate, namespace bool }{
		kagziv1.KeyRole_KEY_ROLE_ADMIN: {true, true, true}, kagziv1.KeyRole_KEY_ROLE_OPERATOR: {true, true, false},
		kagziv1.KeyRole_KEY_ROLE_CLIENT: {true, false, false}, kagziv1.KeyRole_KEY_ROLE_VIEWER: {false, false, false},
	} {
		onRig(t, asked(role), 120, 30, func(r *rig) {
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
	onRig(t, asked(kagziv1.KeyRole_KEY_ROLE_VIEWER), 120, 30, func(r *rig) {
		r.shows("viewer · read-only")
		r.lacks("<x>")
		r.press("x")
		r.shows("your key ada has the role viewer, which may not cancel; it takes the role client")
	})
}

func TestAnExposedServerIsMarkedEverywhere(t *testing.T) {
	const warning = "other machines can reach this server, which needs no key"
	onRig(t, func() Options {
		w := world.New(1, begin)
		w.Warn(warning)
		return Options{API: w, Open: "overview", Now: w.Now}
	}, 120, 30, func(r *rig) {
		r.shows("exposed", "✗ alarm", warning)
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
