package metrics

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/servertest"
)

func TestRunsThatFailedBySideEffectAreLoggedUpToALimit(t *testing.T) {
	var log bytes.Buffer
	r := NewRecorder(&Events{}, slog.New(slog.NewTextHandler(&log, nil)), time.Now)
	s := r.Observer()
	late, cancelled, again, last, poison := servertest.SomeID(1), servertest.SomeID(2), servertest.SomeID(3),
		servertest.SomeID(4), servertest.SomeID(5)
	s.RunsExpired(engine.Expired{Runs: 2, TimedOut: []engine.ID{late}, Cancelled: []engine.ID{cancelled}})
	s.StepsTimedOut([]engine.TimedOutAttempt{
		{RunID: again, Step: "pay", Worker: "w1",
			Verdict: engine.Verdict{Retry: true, RetryAt: servertest.Began, Failures: 2}},
		{RunID: last, Step: "ship", Worker: "w2"},
	})
	r.CountSideEffects(&engine.SideEffects{Failed: []engine.ID{poison}, Stopped: 2})
	for _, want := range []string{
		`msg="run timed out" run=` + late.String() + "\n",
		`msg="run cancelled at the end of its grace" run=` + cancelled.String() + "\n",
		`msg="step timed out and will be retried" run=` + again.String() + " step=pay worker=w1 failures=2 at=" +
			servertest.Began.Format("2006-01-02T15:04:05."),
		`msg="step timed out for good" run=` + last.String() + " step=ship worker=w2\n",
		`msg="run failed: its worker was lost too often" run=` + poison.String() + "\n",
	} {
		if strings.Count(log.String(), want) != 1 {
			t.Errorf("%q is not in the log once:\n%s", want, log.String())
		}
	}
	if n := strings.Count(log.String(), "\n"); n != 5 {
		t.Errorf("%d lines, want 5:\n%s", n, log.String())
	}
	for what, tell := range map[string]func(n int){
		"runs":  func(n int) { s.RunsExpired(engine.Expired{Runs: n, TimedOut: make([]engine.ID, n)}) },
		"steps": func(n int) { s.StepsTimedOut(make([]engine.TimedOutAttempt, n)) },
	} {
		for _, more := range []int{0, 7} {
			log.Reset()
			tell(mostNamed + more)
			if n := strings.Count(log.String(), "run="); n != mostNamed ||
				strings.Contains(log.String(), "others=7\n") != (more == 7) {
				t.Errorf("%d and %d %s: %d were named, want %d and how many others there are:\n%s", mostNamed, more,
					what, n, mostNamed, log.String())
			}
		}
	}
}
