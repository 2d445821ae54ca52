package view

import (
	"slices"
	"testing"
	"time"
)

func TestEnterWorksInAnotherNamespace(t *testing.T) {
	var w *shop
	onFixture(t, inShop(&w, "namespaces"), 100, 30, func(r *fixture) {
		r.shows("default (here)", "staging")
		r.press("down", "enter")
		r.pass(time.Second)
		if got := r.app.link.Namespace(); got != "staging" {
			t.Fatalf("the namespace is %q, want staging", got)
		}
		r.shows("kagzi › staging › runs", `switched to namespace "staging"`)
	})
}

func TestTheCommandForANamespaceSaysWhatIsWrong(t *testing.T) {
	var w *shop
	onFixture(t, inShop(&w, "namespaces"), 120, 30, func(r *fixture) {
		if err := r.app.command("ns No_Such"); err == nil {
			t.Fatal("a name that no namespace can have was taken")
		}
		if err := r.app.command("ns later-perhaps"); err != nil {
			t.Fatal(err)
		}
		r.settle()
		r.shows(`namespace "later-perhaps" does not exist: kagzi namespace create later-perhaps`)
		if err := r.app.command("ns default"); err != nil {
			t.Fatal(err)
		}
		r.pass(time.Second)
		r.shows("default (here)")
	})
}

func TestARunOfTheNamespaceThatWasLeftIsNotCalledGone(t *testing.T) {
	var w *shop
	onFixture(t, inShop(&w, "runs"), 120, 30, func(r *fixture) {
		r.press("enter")
		r.settle()
		r.shows("1 Timeline")
		if err := r.app.command("ns staging"); err != nil {
			t.Fatal(err)
		}
		r.pass(time.Second)
		r.lacks("deleted on the server")
		r.shows(`this run belongs to namespace "default" and is not updated here; :ns default switches back`)
		if err := r.app.command("ns default"); err != nil {
			t.Fatal(err)
		}
		r.pass(time.Second)
		r.lacks("not updated")
	})
}

func TestNamespacesAreCompleted(t *testing.T) {
	var w *shop
	onFixture(t, inShop(&w, "namespaces"), 100, 30, func(r *fixture) {
		r.app.completions("ns s")
		r.settle()
		if got := r.app.completions("ns s"); !slices.Equal(got, []string{"ns staging"}) {
			t.Fatalf("completions of \"ns s\" = %q", got)
		}
	})
}

func TestANamespaceIsMadeChangedAndDisabled(t *testing.T) {
	var w *shop
	onFixture(t, inShop(&w, "namespaces"), 140, 40, func(r *fixture) {
		r.press("n")
		r.enter("Payments")
		r.press("ctrl-s")
		r.shows("is not a valid namespace name")
		for range len("Payments") {
			r.press("backspace")
		}
		r.enter("payments")
		r.press("down", "down", "down")
		r.enter("30d")
		r.press("ctrl-s")
		r.pass(time.Second)
		r.shows("payments", "30d", "Namespaces (3)")

		r.press("down", "e", "down")
		r.enter("Money comes in")
		r.press("ctrl-s")
		r.pass(time.Second)
		r.shows("Money comes in", "30d", "update namespace payments: changed")

		r.press("x")
		r.shows("Disable namespace payments?", "Nothing is deleted.")
		r.press("tab", "enter")
		r.pass(time.Second)
		r.shows("‖ disabled")
		if err := r.app.command("disable"); err == nil {
			t.Fatal("what is disabled was disabled again")
		}
		r.press("x", "tab", "enter")
		r.pass(time.Second)
		r.lacks("‖ disabled")
	})
}

func TestWhatIsSaidOfNothingIsOfTheNamespaceThatOneWorksIn(t *testing.T) {
	for view, want := range map[string]string{
		"runs":      `kagzi workflow start hello --input '{"name":"you"}' --namespace billing --address db:1`,
		"queues":    `No queue in "billing" has open runs or workers.`,
		"schedules": "kagzi schedule create report --cron '0 2 * * *' --namespace billing --address db:1",
		"workers":   "KAGZI_ADDRESS=db:1 KAGZI_NAMESPACE=billing go run ./worker",
	} {
		t.Run(view, func(t *testing.T) {
			onFixture(t, func() Options {
				w := emptyShop()
				return Options{API: w, Open: view, Now: w.Now, Address: "db:1"}
			}, 130, 24, func(r *fixture) {
				if err := r.app.command("namespace billing"); err != nil {
					t.Fatal(err)
				}
				r.pass(time.Second)
				r.shows(want)
			})
		})
	}
}
