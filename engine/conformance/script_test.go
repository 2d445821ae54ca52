package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/kagzi/kagzi/engine/conformance/program"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

func writerLane(t *testing.T) *lane {
	t.Helper()
	l, err := newLane(inMemory, "the Go SDK", nil, false, programLease)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.close)
	if err := l.begin(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	return l
}

// Code that computes between two calls is not taken to rest, however long it takes.
func TestAProgramThatComputesDoesNotRest(t *testing.T) {
	l := writerLane(t)
	slow := &program.Op{Op: "block", MS: 80}
	sc, err := l.write(t.Context(), test{Program: &program.Program{Ops: list(fork(list(slow, step("a-1"), slow, step("a-2")), list(step("a-3"))))}}, -1)
	if err != nil {
		t.Fatal(err)
	}
	first := sc.events[0].state
	if first.gates != "|a-1 |a-3" {
		t.Errorf("the first event happens at %s, want both bodies at the gate", first)
	}
	for _, e := range sc.events[1:] {
		if strings.HasPrefix(e.state.gates, "|a-3") && !strings.Contains(e.state.rows, "a-2") {
			t.Errorf("an event happens at %s, before the body of a-2 asks", e.state)
		}
	}
}

// A program that is about to be cancelled, or that a signal is about to wake, does not rest either.
func TestAProgramRestsOnlyWhenEverythingHasArrived(t *testing.T) {
	l := writerLane(t)
	p := test{Program: &program.Program{Ops: list(fork(list(wait("go"), &program.Op{Op: "block", MS: 40}, step("a-1")),
		list(&program.Op{Op: "try", Ops: list(step("a-2"), step("a-3")), Cancelled: list(&program.Op{Op: "block", MS: 40}, step("a-4"))})))},
		Signals: []sending{{"go", "1"}}}
	for seed := range uint64(6) {
		p.Seed = seed
		sc, err := l.write(t.Context(), p, 1)
		if err != nil {
			t.Fatal(err)
		}
		for i, e := range sc.events {
			if i == 0 {
				continue
			}
			before := sc.events[i-1]
			if before.kind == "signal" && !strings.Contains(e.state.gates, "|a-1") {
				t.Errorf("seed %d: after the signal an event happens at %s", seed, e.state)
			}
			if before.kind == "cancel" && !strings.Contains(e.state.rows, "kagzi:cancelled=COMPLETED!") {
				t.Errorf("seed %d: after the cancellation an event happens at %s", seed, e.state)
			}
		}
	}
}

// A body whose process was killed does not wait at the gate, even if its question comes later.
func TestBodiesOfADeadProcessDoNotWait(t *testing.T) {
	g, err := newGate(newBell())
	if err != nil {
		t.Fatal(err)
	}
	defer g.close()
	before := g.next()
	first := askGate(t, before)
	if _, rung := g.keys(), g.bell.next(); len(g.keys()) == 0 {
		<-rung
	}
	g.next()
	for _, said := range []<-chan program.Answer{first, askGate(t, before)} {
		if a := <-said; a.Do != "fail" || !a.NonRetryable {
			t.Errorf("the gate says %v, want a failure", a)
		}
	}
	if keys := g.keys(); len(keys) > 0 {
		t.Errorf("%q wait", keys)
	}
}

func askGate(t *testing.T, url string) <-chan program.Answer {
	said := make(chan program.Answer, 1)
	go func() {
		r, _ := http.NewRequestWithContext(context.WithoutCancel(t.Context()), http.MethodPost, url, bytes.NewReader([]byte(`{"key":"r/a"}`)))
		resp, err := http.DefaultClient.Do(r)
		var a program.Answer
		if err == nil {
			err = json.NewDecoder(resp.Body).Decode(&a)
			_ = resp.Body.Close()
		}
		if err != nil {
			t.Error(err)
		}
		said <- a
	}()
	return said
}

// A child may end before or after the parent whose wait for it was cancelled: seed 1062.
func TestAResultAfterACancellationIsNotCompared(t *testing.T) {
	of := func(settled, cancelled int64, kind string) []Record {
		return records([]member{{run: &kagziv1.Workflow{}, rows: []*kagziv1.Step{
			{Name: "kid", Kind: kagziv1.StepKind_STEP_KIND_CHILD_WORKFLOW, Status: kagziv1.StepStatus_STEP_STATUS_FAILED, Settled: settled,
				Error: &kagziv1.ErrorDetail{Type: kind}},
			{Name: "kagzi:cancelled", Kind: kagziv1.StepKind_STEP_KIND_FUNCTION, Status: kagziv1.StepStatus_STEP_STATUS_COMPLETED, Settled: cancelled},
		}}}, &program.Program{}, false)
	}
	for _, same := range [][]Record{of(0, 1, "run_ended"), of(2, 1, "cancelled")} {
		if d := difference(of(-1, 1, "cancelled"), same); d != "" {
			t.Error(d)
		}
	}
	if difference(of(1, 2, "cancelled"), of(1, 2, "run_ended")) == "" || difference(of(1, 2, "cancelled"), of(-1, 1, "cancelled")) == "" {
		t.Error("a result that came before the cancellation is not compared")
	}
}

// The retry of a branch that was left is running when the run ends, or not begun: seed 165.
func TestARetryThatTheEndOfItsRunLeftIsNotCompared(t *testing.T) {
	of := func(rows ...*kagziv1.Step) []Record {
		return records([]member{{run: &kagziv1.Workflow{}, rows: rows}}, &program.Program{}, true)
	}
	row := func(kind string, change func(*kagziv1.Step)) *kagziv1.Step {
		s := &kagziv1.Step{Name: "r2", Kind: kagziv1.StepKind_STEP_KIND_FUNCTION, Status: kagziv1.StepStatus_STEP_STATUS_FAILED,
			Error: &kagziv1.ErrorDetail{Type: kind}}
		change(s)
		return s
	}
	waiting := row("flaky", func(s *kagziv1.Step) { s.RetryAt = timestamppb.New(time.Unix(1, 0)) })
	running := row("run_ended", func(*kagziv1.Step) {})
	if d := difference(of(waiting), of(running)); d != "" {
		t.Error(d)
	}
	if final := row("flaky", func(s *kagziv1.Step) { s.Settled = 1 }); difference(of(waiting), of(final)) == "" {
		t.Error("a failure that is final is not compared")
	}
}

// After the cancellation a sibling's failure may end a branch before or after it makes a record of its own.
func TestAnOwnRecordOfABranchAfterTheCancellationIsNotCompared(t *testing.T) {
	own := func(branch string, settled int64) *kagziv1.Step {
		return &kagziv1.Step{Name: "kagzi:patched:p/1", Kind: kagziv1.StepKind_STEP_KIND_FUNCTION, Branch: branch,
			Status: kagziv1.StepStatus_STEP_STATUS_COMPLETED, Settled: settled}
	}
	of := func(more ...*kagziv1.Step) []Record {
		cancelled := &kagziv1.Step{Name: "kagzi:cancelled", Kind: kagziv1.StepKind_STEP_KIND_FUNCTION,
			Status: kagziv1.StepStatus_STEP_STATUS_COMPLETED, Settled: 3}
		return records([]member{{run: &kagziv1.Workflow{}, rows: append(more, cancelled)}}, &program.Program{}, true)
	}
	if d := difference(of(own("1.2", 4)), of()); d != "" {
		t.Error(d)
	}
	if difference(of(own("1.2", 2)), of()) == "" {
		t.Error("a record before the cancellation is not compared")
	}
	if difference(of(own("", 4)), of()) == "" {
		t.Error("a record of the workflow function is not compared")
	}
}

// Whether a step that runs has been announced depends on time, and is not part of the state.
func TestAnAnnouncedStepIsInNoState(t *testing.T) {
	pending, running := kagziv1.StepStatus_STEP_STATUS_PENDING, kagziv1.StepStatus_STEP_STATUS_RUNNING
	for _, status := range []kagziv1.StepStatus{pending, running} {
		s := &kagziv1.Step{Name: "a", Kind: kagziv1.StepKind_STEP_KIND_FUNCTION, Status: status}
		if text, counts := standing(s); counts {
			t.Errorf("the state has %s", text)
		}
	}
}
