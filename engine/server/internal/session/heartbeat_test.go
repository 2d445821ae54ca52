package session

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/servertest"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

func TestOnlyASessionsHeartbeatThatNamesNothingMayWait(t *testing.T) {
	b := &servertest.Books{}
	w, _ := polling(b)
	w.service.options.HeartbeatInterval = 4 * time.Second
	for _, test := range []struct {
		name string
		beat func()
		want time.Duration
	}{
		{"a session's that names nothing", func() { w.do(t, beatOf(nil)) }, 100 * time.Millisecond},
		{"one that names a run", func() { w.do(t, beatOf(leaseWords(aTask(1)))) }, 0},
		{"a call of its own", func() {
			if _, err := w.service.Heartbeat(t.Context(), &kagziv1.HeartbeatRequest{WorkerId: "w"}); err != nil {
				t.Fatal(err)
			}
		}, 0},
	} {
		test.beat()
		if got := servertest.Last[engine.HeartbeatParams](b).MaxWait; got != test.want {
			t.Errorf("%s may wait for %s, want %s", test.name, got, test.want)
		}
	}
	w.service.options.HeartbeatInterval = time.Minute
	if w.do(t, beatOf(nil)); servertest.Last[engine.HeartbeatParams](b).MaxWait != 250*time.Millisecond {
		t.Error("with a long interval a heartbeat may wait for longer than 250 ms")
	}
}

func TestAHeartbeatSaysWhatBecameOfTheRunsOfLostLeases(t *testing.T) {
	cancelled, deleted := engine.Lease{RunID: servertest.SomeID(1), Token: engine.NewToken()},
		engine.Lease{RunID: servertest.SomeID(2), Token: engine.NewToken()}
	b := &servertest.Books{Beat: engine.Beat{Lost: []engine.Lease{cancelled, deleted}},
		Runs: []engine.Run{{ID: cancelled.RunID, Status: engine.RunCancelled}}}
	answer, err := newTestService(b).heartbeat(t.Context(), &kagziv1.HeartbeatRequest{WorkerId: "w"}, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	want := []*kagziv1.Lease{
		{RunId: cancelled.RunID.String(), LeaseToken: cancelled.Token.Wire(),
			RunStatus: kagziv1.WorkflowStatus_WORKFLOW_STATUS_CANCELLED},
		{RunId: deleted.RunID.String(), LeaseToken: deleted.Token.Wire()},
	}
	for i, l := range answer.Lost {
		if len(answer.Lost) != len(want) || l.String() != want[i].String() {
			t.Fatalf("lost = %v, want %v", answer.Lost, want)
		}
	}
	if len(answer.Lost) == 0 {
		t.Fatal("no lease is lost, want two")
	}
}

// settable is a store whose clock can be set.
type settable struct {
	*servertest.Books
	ahead time.Duration
}

func (s *settable) Now() time.Time { return time.Now().Add(s.ahead) }

// TestAClockThatIsSetAheadFreesNoRun: a claim that is not known to its worker's session yet, when
// the clock is set, is no run that was forgotten.
func TestAClockThatIsSetAheadFreesNoRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &servertest.Books{}
		store := &settable{Books: b}
		s := newTestService(store)
		frees := func(when string, want bool) {
			t.Helper()
			if _, err := s.heartbeat(t.Context(), &kagziv1.HeartbeatRequest{WorkerId: "w", HeldIsWhole: true}, nil,
				0); err != nil {
				t.Fatal(err)
			}
			if got := servertest.Last[engine.HeartbeatParams](b).Whole; got != want {
				t.Errorf("%s a heartbeat frees what it does not name: %t, want %t", when, got, want)
			}
		}
		frees("at first", true)
		time.Sleep(time.Hour) // in the bubble, as below
		frees("an hour later", true)
		store.ahead = 24 * time.Hour
		frees("when the clock was set ahead", false)
		time.Sleep(9 * time.Second)
		frees("before a run has to be named that was claimed then", false)
		time.Sleep(time.Second)
		frees("after that", true)
		store.ahead -= time.Hour
		frees("when the clock was set back", true)
		for range 5 {
			time.Sleep(time.Minute)
			store.ahead += 100 * time.Millisecond
			frees("when the clock is a little fast", true)
		}
	})
}
