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

// sizes are the windows that every view is drawn in.
var sizes = []struct{ width, height int }{{60, 15}, {80, 24}, {120, 32}, {200, 50}}

// errGone is how a server that is not there answers.
var errGone = status.Error(codes.Unavailable,
	`connection error: desc = "transport: Error while dialing: dial tcp 127.0.0.1:50051: connect: connection refused"`)

// states are what a view can be in. before is done to the shop before the program begins, after
// when it has come to rest.
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

// goldenView draws a view at every size and in every state. open is the command that opens it in a
// shop, keys are pressed then.
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

// jitter is the one thing on the screens that is left to chance: when a lost connection is tried again.
var jitter = regexp.MustCompile(`reconnecting in \ds`)

// always is a command that is the same in every shop.
func always(command string) func(*shop) string {
	return func(*shop) string { return command }
}

// firstRun, firstWorker and firstSchedule are ids of things in a shop; empty in one that has none.
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
