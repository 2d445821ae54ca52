package view

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// sizes lists the window sizes in which every view is drawn.
var sizes = []struct{ width, height int }{{60, 15}, {80, 24}, {120, 32}, {200, 50}}

// errGone is the error of a server that does not run.
var errGone = status.Error(codes.Unavailable,
	`connection error: desc = "transport: Error while dialing: dial tcp 127.0.0.1:50051: connect: connection refused"`)

// states lists the states of a view. before changes the shop before the program starts, after
// changes it once the program waits.
var states = []struct {
	name   string
	shop   func() *shop
	before func(w *shop)
	after  func(r *fixture, w *shop)
}{
	{name: "full", shop: newShop},
	{name: "empty", shop: emptyShop},
	{name: "loading", shop: newShop, before: (*shop).Hang},
	{name: "error", shop: newShop, before: func(w *shop) { w.Down(errGone) }},
	{name: "reconnecting", shop: newShop, after: func(r *fixture, w *shop) {
		w.Down(errGone)
		r.pass(3 * time.Second)
	}},
}

// goldenView draws a view at every size and in every state. open returns the command that opens it,
// and keys are pressed then.
func goldenView(t *testing.T, name string, open func(w *shop) string, keys ...string) {
	t.Helper()
	if raced {
		t.Skip("screens are compared without the race detector")
	}
	var all strings.Builder
	for _, state := range states {
		for _, size := range sizes {
			var w *shop
			options := func() Options {
				w = state.shop()
				if state.before != nil {
					state.before(w)
				}
				return Options{API: w, Open: open(w), Now: w.Now}
			}
			onFixture(t, options, size.width, size.height, func(r *fixture) {
				r.press(keys...)
				if state.after != nil {
					state.after(r, w)
				}
				fmt.Fprintf(&all, "== %s, %s, %dx%d\n%s", name, state.name, size.width, size.height, r.draw())
			})
		}
	}
	golden(t, name, jitter.ReplaceAllString(all.String(), "reconnecting in 2s"))
}

// jitter matches the only random text on the screens: the delay before a reconnect.
var jitter = regexp.MustCompile(`reconnecting in \ds`)

// always returns the same command for every shop.
func always(command string) func(*shop) string {
	return func(*shop) string { return command }
}

// firstRun, firstWorker and firstSchedule return ids of a shop's objects; empty if it has none.
func firstRun(w *shop) string {
	answer, _ := w.ListWorkflows(context.Background(),
		&kagziv1.ListWorkflowsRequest{Page: &kagziv1.PageRequest{PageSize: 1}})
	for _, r := range answer.GetWorkflows() {
		return r.GetRunId()
	}
	return "01890000-0000-7000-8000-000000000000"
}

func firstWorker(w *shop) string {
	answer, _ := w.ListWorkers(context.Background(), &kagziv1.ListWorkersRequest{})
	for _, worker := range answer.GetWorkers() {
		return worker.GetWorkerId()
	}
	return "nobody"
}

func firstSchedule(w *shop) string {
	answer, _ := w.ListWorkflowSchedules(context.Background(), &kagziv1.ListWorkflowSchedulesRequest{})
	for _, s := range answer.GetSchedules() {
		return s.GetScheduleId()
	}
	return "nothing"
}
