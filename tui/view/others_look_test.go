package view

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestWorkersLookRight(t *testing.T)    { goldenView(t, "workers", always("workers")) }
func TestSchedulesLookRight(t *testing.T)  { goldenView(t, "schedules", always("schedules")) }
func TestNamespacesLookRight(t *testing.T) { goldenView(t, "namespaces", always("namespaces")) }

func TestAWorkerLooksRight(t *testing.T) {
	goldenView(t, "worker", func(*shop) string { return "worker reports-1" })
}

func TestAScheduleLooksRight(t *testing.T) {
	goldenView(t, "schedule", func(*shop) string { return "schedule catalog-import" })
}

func TestTheFormOfAScheduleLooksRight(t *testing.T) {
	var all strings.Builder
	for _, expr := range []string{"30 9 * * 1-5", "61 * * * *"} {
		for _, size := range sizes {
			var w *shop
			onFixture(t, inShop(&w, "schedules"), size.width, size.height, func(r *fixture) {
				r.press("n")
				r.enter("report.nightly")
				r.press("down", "down")
				r.enter(expr)
				r.pass(time.Second)
				fmt.Fprintf(&all, "== %s, %dx%d\n%s", expr, size.width, size.height, r.draw())
			})
		}
	}
	golden(t, "schedule_form", all.String())
}

func TestTheFormOfANamespaceLooksRight(t *testing.T) {
	goldenView(t, "namespace_form", always("namespaces"), "n")
}
