//go:build linux

package main

import (
	"context"
	"strings"
	"testing"

	"github.com/kagzi/kagzi/engine/lab/torture/workload"

	"github.com/kagzi/kagzi/engine/lab/torture/fixture"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	"github.com/kagzi/kagzi/engine/lab/torture/history"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// crowded is a torture in which sessions waited for locks and clients got these answers.
func crowded(waits int, answered ...error) *torture {
	t := &torture{load: &workload.Load{}, system: &system{cluster: &fixture.Cluster{}}}
	t.heat.waits = waits
	t.heat.calls.Add(1)
	for _, err := range answered {
		t.load.Answers.HandleRPC(context.Background(), &stats.End{Client: true, Error: err})
	}
	return t
}

func TestNoCallerMayGetALockTimeout(t *testing.T) {
	busy := status.Error(codes.Unavailable, "a lock was not free in time")
	worker := func(code string) *torture {
		with := crowded(1)
		with.events = []history.Event{{Proc: "worker-1.1", Code: code}}
		return with
	}
	behind := worker("UNAVAILABLE")
	behind.events[0].Why = workload.BehindRefused
	for name, test := range map[string]struct {
		with *torture
		ok   bool
	}{
		"nobody is":                       {crowded(1, nil, status.Error(codes.NotFound, "")), true},
		"a client is, beneath what calls": {crowded(1, nil, busy, nil), false},
		"an internal error":               {crowded(1, status.Error(codes.Internal, "")), false},
		"a worker is":                     {worker("UNAVAILABLE"), false},
		"a worker gets an internal error": {worker("INTERNAL"), false},
		"what stood behind a refusal":     {behind, true},
		"a worker's lease is lost":        {worker("LEASE_LOST"), true},
	} {
		if f := noRefusal(test.with); f.ok != test.ok || !f.hard {
			t.Errorf("%s: %s, hard %t, want ok %t and hard", name, f, f.hard, test.ok)
		}
	}
}

func TestACrowdWithoutLockWaitsProvesNothing(t *testing.T) {
	if got := contended(crowded(1)); got != nil {
		t.Errorf("somebody waited for a lock: %q is missing", got)
	}
	if got := contended(crowded(0)); len(got) != 1 || !strings.Contains(got[0], "wait for a lock") {
		t.Errorf("nobody waited for a lock: %q is missing", got)
	}
	embedded := crowded(0)
	if embedded.system.cluster = nil; contended(embedded) != nil {
		t.Errorf("of a database that shows no locks: %q is missing", contended(embedded))
	}
	if got := contended(&torture{system: &system{}}); len(got) != 1 {
		t.Errorf("without a crowd: %q is missing", got)
	}
}

func TestOperationsAfterARefusalChangedNothing(t *testing.T) {
	for message, want := range map[string]history.Outcome{
		workload.BehindRefused: history.Refused, "a lock was not free in time": history.Unknown} {
		e := workload.Refused(history.Event{Op: history.Complete},
			&kagziv1.ErrorDetail{Code: kagziv1.ErrorCode_ERROR_CODE_UNAVAILABLE, Message: message})
		if e.Outcome != want || e.Why != message || e.Code != "UNAVAILABLE" {
			t.Errorf("after %q: outcome %q, code %s, %q, want %q", message, e.Outcome, e.Code, e.Why, want)
		}
	}
}
