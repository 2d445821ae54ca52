//go:build linux

package main

import (
	"context"
	"errors"
	"io"
	"net"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kagzi/kagzi/engine/lab/torture/workload"

	"github.com/kagzi/kagzi/engine/lab/torture/fixture"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/kagzi/kagzi/engine/lab/overlay"
	"github.com/kagzi/kagzi/engine/lab/torture/history"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	kagzi "github.com/kagzi/kagzi/sdk"
)

func TestHelpIsNotAnError(t *testing.T) {
	if code := command(t.Context(), []string{"--help"}); code != exitHeld {
		t.Errorf("--help ends with %d, want %d", code, exitHeld)
	}
	if code := command(t.Context(), []string{"--no-such"}); code != exitVacuous {
		t.Errorf("a flag that is not there ends with %d, want %d", code, exitVacuous)
	}
}

func TestErrand(t *testing.T) {
	kinds := map[workload.Kind]int{}
	cancelled, twice := 0, 0
	for n := range 2000 {
		a, b := workload.Standard.Errand(7, n), workload.Standard.Errand(7, n)
		if a.Name != b.Name || a.Kind != b.Kind || !slices.Equal(a.Pauses, b.Pauses) || a.Cancel != b.Cancel ||
			a.Twice != b.Twice {
			t.Fatalf("errand %d = %+v, and then %+v: it has to follow from its seed", n, a, b)
		}
		if slices.Max(a.Fails) > workload.MostFails {
			t.Errorf("errand %d fails %v, more often than a step is tried", n, a.Fails)
		}
		kinds[a.Kind]++
		if a.Cancel > 0 {
			cancelled++
		}
		if a.Twice {
			twice++
		}
	}
	for k, share := range map[workload.Kind]float64{
		workload.Napping: workload.Standard.Naps, workload.Flaky: workload.Standard.Flaky,
		workload.Fanned: workload.Standard.Fanned, workload.Doomed: workload.Standard.Doomed} {
		if got := float64(kinds[k]) / 2000; got < share/2 || got > 2*share {
			t.Errorf("%.3f of the errands are %s, want about %.3f", got, k, share)
		}
	}
	if cancelled == 0 || twice == 0 {
		t.Errorf("%d cancelled and %d started twice, want some of both", cancelled, twice)
	}
}

// echo is a server that sends back what it receives.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(conn, conn)
				conn.Close()
			}()
		}
	}()
	return l.Addr().String()
}

func TestProxy(t *testing.T) {
	p, err := fixture.NewProxy("tcp", echo(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	conn, err := net.Dial("tcp", p.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	say := func(text string) string {
		t.Helper()
		if _, err := conn.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		answer := make([]byte, len(text))
		if _, err := io.ReadFull(conn, answer); err != nil {
			t.Fatal(err)
		}
		return string(answer)
	}
	if got := say("hello"); got != "hello" {
		t.Fatalf("in fair weather %q came back", got)
	}
	p.Set(fixture.Conditions{Silent: true})
	if _, err := conn.Write([]byte("held")); err != nil {
		t.Fatal(err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if n, err := conn.Read(make([]byte, 1)); err == nil || n > 0 {
		t.Error("something came through a silent network")
	}
	_ = conn.SetReadDeadline(time.Time{})
	p.Set(fixture.Conditions{})
	held := make([]byte, 4)
	if _, err := io.ReadFull(conn, held); err != nil || string(held) != "held" {
		t.Errorf("after the silence %q came (%v), want what was held", held, err)
	}
	if n := p.Cut(); n != 1 {
		t.Errorf("%d connections were cut, want 1", n)
	}
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("a connection that was cut still works")
	}
}

func TestEveryScenario(t *testing.T) {
	ids := map[string]bool{}
	for _, s := range scenarios {
		if ids[s.id] {
			t.Errorf("%s is there twice", s.id)
		}
		ids[s.id] = true
		if s.name == "" || s.alone == nil && s.inject == nil && s.id != "F-00" && s.need != (need{}) {
			t.Errorf("%s needs faults and has none", s.id)
		}
		if s.inject != nil && s.need.faults == 0 {
			t.Errorf("%s proves nothing: it does not say how many faults it needs", s.id)
		}
	}
	for _, chosen := range shortSelection {
		id, db, _ := strings.Cut(chosen, " ")
		if !ids[id] || len(choose(id, db, false, false)) == 0 {
			t.Errorf("the short form names %q, which is not there", chosen)
		}
	}
}

func TestAFaultThatCannotBeInjectedIsToldApart(t *testing.T) {
	if !fixture.IsNotHere(errors.Join(errors.New("x"), fixture.NotHere("no loop device"))) ||
		fixture.IsNotHere(errors.New("x")) {
		t.Error("notHere is not known again")
	}
}

func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		torture := &torture{system: &system{random: newRandom(1)}}
		begun, calls := time.Now(), 0
		if err := torture.every(ctx, time.Second, 2*time.Second, func() error { calls++; return nil }); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took != time.Minute || calls < 30 || calls > 60 {
			t.Errorf("%d calls in %s, want 30 to 60 in a minute", calls, took)
		}
	})
}

func TestWhatAFrozenWorkerWasAboutToReport(t *testing.T) {
	tell := func(op history.Op, run, step string) history.Event {
		return history.Event{Op: op, Run: run, Token: "t-" + run, Step: step, Value: run + "." + step}
	}
	events := []history.Event{
		// in the middle of s1
		tell(history.CodeBegins, "a", "s0"), tell(history.Complete, "a", "s0"), tell(history.CodeBegins, "a", "s1"),
		tell(history.CodeBegins, "b", "s0"), tell(history.Fail, "b", "s0"),
		tell(history.CodeBegins, "c", "s0"), tell(history.Release, "c", ""),
		tell(history.CodeBegins, "d", "s0"), tell(history.End, "d", ""),
	}
	got := unreported(events)
	want := history.Event{Op: history.Complete, Run: "a", Token: "t-a", Step: "s1", Value: `"a.s1"`}
	if len(got) != 1 || !reflect.DeepEqual(got[0], want) {
		t.Errorf("unreported = %+v, want %+v alone", got, want)
	}
}

func TestFurthest(t *testing.T) {
	settings := []setting{{0, 0}, {100, -time.Hour}, {200, time.Hour}, {300, 0}}
	for _, test := range []struct {
		at   int64
		want time.Duration
	}{
		{50, 0},
		{110, 0},          // a reading from before 100 may still count
		{150, -time.Hour}, // not any more
		{200, time.Hour},  // as soon as it is set
		{310, time.Hour},  // as at 110
		{330, 0},
	} {
		if got := furthest(settings, test.at, 20); got != test.want {
			t.Errorf("furthest at %d = %s, want %s", test.at, got, test.want)
		}
	}
	if got := furthest(nil, 5, 20); got != 0 {
		t.Errorf("furthest of a clock that nobody set = %s", got)
	}
}

func TestTheClockPatchFitsThisGo(t *testing.T) {
	_, edits, err := overlay.Parse(fixture.ClockPatch)
	if err != nil {
		t.Fatal(err)
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := overlay.Write(t.TempDir(), strings.TrimSpace(string(root)), edits); err != nil {
		t.Error(err)
	}
}

func TestAClientThatWillCancelDoesNotListen(t *testing.T) {
	at := func(op history.Op, seconds int64) history.Event {
		return history.Event{Op: op, Run: "r", Outcome: history.OK, Status: "COMPLETED", Invoked: seconds * 1e9,
			Returned: seconds * 1e9}
	}
	waited := &torture{events: []history.Event{at(history.End, 1), at(history.Observe, 3)}}
	if f := heard(waited); !strings.Contains(f.got, "longest 2s") {
		t.Errorf("of a client that waited: %s", f)
	}
	cancelled := at(history.Cancel, 20)
	cancelled.Outcome = history.Refused
	if f := heard(&torture{events: []history.Event{at(history.End, 1), cancelled, at(history.Observe, 20)}}); f.got !=
		"nobody waited" {
		t.Errorf("of one that came to cancel: %s", f)
	}
}

func TestALostLeaseIsSeen(t *testing.T) {
	at := func(op history.Op, token string, seconds int64) history.Event {
		return history.Event{Op: op, Run: "r", Token: token, Outcome: history.OK, Invoked: seconds * 1e9,
			Returned: seconds * 1e9}
	}
	late := at(history.Complete, "a", 3)
	late.Outcome, late.Code, late.Status = history.Refused, "LEASE_LOST", "RUNNING"
	cancelled := late
	cancelled.Status = "CANCELLED"
	for name, test := range map[string]struct {
		events []history.Event
		want   string
	}{
		"given back": {[]history.Event{
			at(history.Claim, "a", 1), at(history.Park, "a", 2), at(history.Claim, "b", 3)}, "0"},
		"handed to another": {[]history.Event{
			at(history.Claim, "a", 1), at(history.Complete, "a", 2), at(history.Claim, "b", 3)}, "1"},
		"a write was refused": {[]history.Event{at(history.Claim, "a", 1), late}, "1"},
		"both, of one lease":  {[]history.Event{at(history.Claim, "a", 1), at(history.Claim, "b", 2), late}, "1"},
		"the run was ended":   {[]history.Event{at(history.Claim, "a", 1), cancelled}, "0"},
	} {
		if f := noLeaseLost(&torture{events: test.events}); f.got != test.want {
			t.Errorf("%s: %s leases lost, want %s", name, f.got, test.want)
		}
	}
}

func TestARowOfTheTable(t *testing.T) {
	a := attempt{scenario{id: "F-99", name: "a fault"}, "postgres://someone:secret@host/db"}
	r := result{attempt: a, seed: 7, took: 20 * time.Second, code: exitViolated, report: &report{
		scope: "3 faults", trouble: []string{"x"},
		figures: []figure{{name: "speed", got: "1 | 2", limit: "3"}, {name: "size", got: "4", ok: true}},
	}}
	want :=
		`| F-99 a fault | a given database | 7 | 20s | 3 faults; 1 violations; missed: speed: 1 \| 2 (pass: 3); size: 4 | VIOLATED |`
	if got := r.row(); got != want {
		t.Errorf("row = %s\nwant  %s", got, want)
	}
	r = result{attempt: a, seed: 7, code: exitNotHere, why: "no\nstrace"}
	if got, want := r.row(), `| F-99 a fault | a given database | 7 | 0s | no strace | NOT TRIED |`; got != want {
		t.Errorf("row = %s\nwant  %s", got, want)
	}
}

// lossy answers that no run exists.
type lossy struct {
	kagziv1.UnimplementedWorkflowServiceServer
}

func (lossy) GetWorkflow(context.Context, *kagziv1.GetWorkflowRequest) (*kagziv1.GetWorkflowResponse, error) {
	return nil, status.Error(codes.NotFound, "no such run")
}

// clientOf returns a client of a server that has these services, until the test ends.
func clientOf(t *testing.T, register func(*grpc.Server)) *kagzi.Client {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	register(server)
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
	sdk, err := kagzi.NewClient(kagzi.ClientOptions{
		Profile: kagzi.NoProfile, Address: l.Addr().String(), Logger: workload.Quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sdk.Close() })
	return sdk
}

func TestAClientDoesNotWaitForARunThatWasLost(t *testing.T) {
	sdk := clientOf(t, func(s *grpc.Server) { kagziv1.RegisterWorkflowServiceServer(s, lossy{}) })
	c := &workload.Client{SDK: sdk, Log: history.NewLog("client")}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if c.LookTwice(ctx, "r") || ctx.Err() != nil {
		t.Errorf("a client went on asking for a run that was lost (%v)", ctx.Err())
	}
	if events := c.Log.Events(); len(events) != 1 || events[0].Outcome != history.Refused {
		t.Errorf("history = %+v, want one answer: that it is not there", events)
	}
}

// over answers with a failed run.
type over struct {
	kagziv1.UnimplementedWorkflowServiceServer
	run *kagziv1.Workflow
}

func (o over) GetWorkflow(context.Context, *kagziv1.GetWorkflowRequest) (*kagziv1.GetWorkflowResponse, error) {
	return &kagziv1.GetWorkflowResponse{Workflow: o.run}, nil
}

func TestAnObservedEndIsWrittenDownWithWhyAndWhen(t *testing.T) {
	run := &kagziv1.Workflow{Status: kagziv1.WorkflowStatus_WORKFLOW_STATUS_FAILED,
		FinishedAt: &timestamppb.Timestamp{Seconds: 1, Nanos: 2000}, Attempts: 3,
		Error: &kagziv1.ErrorDetail{Code: kagziv1.ErrorCode_ERROR_CODE_TIMEOUT, Message: "broken"}}
	c := &workload.Client{SDK: clientOf(t, func(s *grpc.Server) {
		kagziv1.RegisterWorkflowServiceServer(s, over{run: run})
	}), Log: history.NewLog("client")}
	if err := c.Observe(t.Context(), "r"); err != nil {
		t.Fatal(err)
	}
	got := c.Log.Events()[0]
	got.Invoked, got.Returned = 0, 0
	want := history.Event{Proc: "client", Seq: 1, Op: history.Observe, Run: "r", Outcome: history.OK, Status: "FAILED",
		Code: "TIMEOUT", Message: "broken", Ended: 1_000_002,
		Answer: "FAILED  TIMEOUT 1000002 3"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("history = %+v\nwant      %+v", got, want)
	}
}

func TestRestartRulesOfTheUnit(t *testing.T) {
	const text = "[Unit]\nStartLimitIntervalSec=0\n[Service]\n# Restart=no\nRestart=on-failure\nRestartSec=2s\nRestartPreventExitStatus=64 71\n"
	got, err := parseUnit(text)
	if want := (unit{2 * time.Second, []int{64, 71}}); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("unit = %+v (%v), want %+v", got, err, want)
	}
	for _, wrong := range []string{"on-failure", "IntervalSec=0", "2s", "64"} {
		if got, err := parseUnit(strings.Replace(text, wrong, "x", 1)); err == nil {
			t.Errorf("without %s: %+v, want it refused", wrong, got)
		}
	}
}
