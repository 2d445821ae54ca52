package kagzitest

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	kagzi "github.com/kagzi/kagzi/sdk"
)

// This file ends tests that wait for something that never happens: their clock would jump on without
// end. First the calls of the client fail, so that most tests return and say where they waited. A
// test that does not return is left behind.

// limit runs test and gives it up when it has waited for its lifetime.
func (e *Env) limit(test func()) {
	ended, returned := make(chan struct{}), false
	go func() { // not in this goroutine, which must return even if the test does not
		defer close(ended)
		test()
		returned = true
	}()
	guard := time.NewTimer(lifetime)
	defer guard.Stop()
	select {
	case <-ended:
		if !returned && !e.t.Failed() && !e.t.Skipped() {
			runtime.Goexit() // as the test did; package testing reports it
		}
		return
	case <-guard.C:
	}
	e.t.Error(e.waiting())
	close(e.gaveUp)
	_ = e.Client.Close() // fails its calls
	guard.Reset(endLimit)
	select {
	case <-ended:
	case <-guard.C:
		e.t.Error("kagzitest: the test does not return although the calls of its client failed; " +
			"it waits for something else")
	}
}

// waiting says what the open runs wait for.
func (e *Env) waiting() string {
	text := fmt.Sprintf("kagzitest: the test still waits after %d years of test time", lifetime/(365*24*time.Hour))
	open, told := kagzi.ListOptions{Statuses: []kagzi.Status{
		kagzi.StatusPending, kagzi.StatusRunning, kagzi.StatusSleeping}}, 0
	for run, err := range e.Client.List(context.Background(), open) {
		if told++; err != nil || told > 10 {
			break
		}
		if why, err := e.Client.Run(run.RunID).Explain(context.Background()); err == nil {
			text += fmt.Sprintf("\n  run %s of type %s: %s", run.RunID, run.WorkflowType, why.Summary)
		}
	}
	return text
}

func (e *Env) givenUp() bool {
	select {
	case <-e.gaveUp:
		return true
	default:
		return false
	}
}

// endIfGivenUp ends a test that lets time pass again and again.
func (e *Env) endIfGivenUp() {
	e.t.Helper()
	if e.givenUp() {
		e.t.FailNow()
	}
}

// bubbled is synctest.Test, but goroutines that are still blocked at the end fail the test instead of
// ending the test binary. They are named with their stacks.
func bubbled(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	bubble := ""
	defer func() {
		t.Helper()
		p := recover()
		err, ok := p.(error)
		if !ok || !strings.HasPrefix(err.Error(), "deadlock: ") {
			if p != nil {
				panic(p)
			}
			return
		}
		t.Fatalf("kagzitest: code is still blocked after the test, and is left behind:\n%s", stacks(bubble))
	}()
	synctest.Test(t, func(t *testing.T) {
		var own [200]byte
		bubble = bubbleOf(string(own[:runtime.Stack(own[:], false)]))
		test(t)
	})
}

// bubbleOf returns how a stack names the bubble of its goroutine, such as "synctest bubble 3", "" if
// it is in none.
func bubbleOf(stack string) string {
	title, _, _ := strings.Cut(stack, "]:\n")
	if _, bubble, ok := strings.Cut(title, "synctest bubble "); ok {
		return "synctest bubble " + bubble
	}
	return ""
}

// stacks returns the stacks of the goroutines that are in a bubble.
func stacks(bubble string) string {
	all := make([]byte, 1<<20)
	all = all[:runtime.Stack(all, true)]
	var in []string
	for stack := range strings.SplitSeq(string(all), "\n\n") {
		if bubbleOf(stack) == bubble {
			in = append(in, stack)
		}
	}
	return strings.Join(in, "\n\n")
}
