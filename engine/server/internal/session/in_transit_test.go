package session

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/servertest"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

func TestATaskIsInTransitUntilItsWorkerCanHaveNamedIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, l := newSession(&servertest.Books{}), &network{free: make(chan error)}
		w.out.stream, w.out.sentTask = l.send, w.sent
		lease := engine.Lease{Namespace: "default", RunID: servertest.SomeID(1), Token: engine.NewToken()}
		named := []*kagziv1.Lease{{RunId: lease.RunID.String(), LeaseToken: lease.Token.Wire()}}
		want := func(when string, under bool) {
			t.Helper()
			if all := w.inTransit(&kagziv1.HeartbeatRequest{}); len(all) == 1 != under || under &&
				all[0] != (engine.Lease{RunID: lease.RunID, Token: lease.Token}) {
				t.Errorf("%s: %v is under way, want the task: %t", when, all, under)
			}
			if all := w.inTransit(&kagziv1.HeartbeatRequest{Held: named}); len(all) != 0 {
				t.Errorf("%s: %v is under way although the worker names it", when, all)
			}
		}
		w.deliver(engine.Task{Run: engine.Run{ID: lease.RunID}, Lease: lease})
		time.Sleep(w.service.options.WorkerLease - time.Nanosecond)
		want("while the network is slow", true)
		time.Sleep(time.Nanosecond)
		want("when the network takes nothing for as long as a lease holds", false)
		l.free <- nil
		synctest.Wait()
		time.Sleep(w.service.nameWithin() - time.Nanosecond)
		want("before it has to be named", true)
		time.Sleep(time.Nanosecond)
		want("when it has to be named", false)
		w.adopt([]*kagziv1.Lease{{RunId: servertest.SomeID(2).String(), LeaseToken: engine.NewToken().Wire()}})
		want("of an earlier session", false)
	})
}

// A worker that reports tasks_received may have a connection of any speed.
func TestATaskIsInTransitUntilItsWorkerHasReceivedIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, l := newSession(&servertest.Books{}), &network{free: make(chan error)}
		w.out.stream, w.out.sentTask = l.send, w.sent
		lease := w.service.options.WorkerLease
		var tasks []engine.Task
		want := func(when string, received int64, numbers ...int) {
			t.Helper()
			all := w.inTransit(&kagziv1.HeartbeatRequest{TasksReceived: &received})
			for _, n := range numbers {
				if !slices.ContainsFunc(all, func(l engine.Lease) bool { return l.RunID == tasks[n-1].Run.ID }) {
					t.Errorf("%s: task %d is not under way", when, n)
				}
			}
			if len(all) != len(numbers) {
				t.Errorf("%s: %d tasks are under way, want %d", when, len(all), len(numbers))
			}
		}
		for n := range 4 {
			tasks = append(tasks, aTask(n+1))
			w.deliver(tasks[n])
		}
		l.free <- nil
		l.free <- nil
		synctest.Wait() // the network has two tasks, and takes no more
		time.Sleep(2*lease - time.Nanosecond)
		want("for twice as long as a lease, nothing has come", 0, 1, 2, 3, 4)
		time.Sleep(time.Nanosecond)
		want("then the worker takes nothing in", 0)
		want("it does", 1, 2, 3, 4)
		time.Sleep(2*lease - time.Nanosecond)
		want("and goes on", 1, 2, 3, 4)
		want("one that was sent before", 0, 2, 3, 4)
		want("what has come is to be named", 2, 3, 4)
		time.Sleep(2*lease - time.Nanosecond)
		want("it is as long as ever", 2, 3, 4)
		time.Sleep(time.Nanosecond)
		want("until it is over", 2)
		if all := w.inTransit(&kagziv1.HeartbeatRequest{}); len(all) != 0 {
			t.Errorf("%v is under way to a worker that does not count", all)
		}
		l.free <- nil
		l.free <- nil
	})
}

func TestAWorkerCannotHaveReceivedLessThanNothing(t *testing.T) {
	less := int64(-1)
	_, err := newTestService(&servertest.Books{}).heartbeat(
		t.Context(), &kagziv1.HeartbeatRequest{WorkerId: "w", TasksReceived: &less}, nil, 0)
	if !errors.Is(err, engine.ErrInvalid) || !strings.Contains(err.Error(), "tasks_received") {
		t.Errorf("%v, want it refused for tasks_received", err)
	}
}

func TestTasksInTransitCountAsNamedAndAreNotAnswered(t *testing.T) {
	under, lost := engine.Lease{RunID: servertest.SomeID(1), Token: engine.NewToken()},
		engine.Lease{RunID: servertest.SomeID(2), Token: engine.NewToken()}
	b := &servertest.Books{Beat: engine.Beat{
		Lost:       []engine.Lease{under, lost},
		Cancelling: []engine.Held{{Lease: under, GraceUntil: servertest.Began}},
	}}
	answer, err := newTestService(b).heartbeat(
		t.Context(), &kagziv1.HeartbeatRequest{WorkerId: "w", HeldIsWhole: true, Held: []*kagziv1.Lease{
			{RunId: lost.RunID.String(), LeaseToken: lost.Token.Wire()},
		}}, []engine.Lease{under}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if held := servertest.Last[engine.HeartbeatParams](b).Held; len(held) != 2 || held[0] != lost || held[1] != under {
		t.Errorf("the store is told of %v, want %v and %v", held, lost, under)
	}
	if len(answer.Lost) != 1 || answer.Lost[0].RunId != lost.RunID.String() || len(answer.Cancelling) != 0 {
		t.Errorf("lost %v, to stop %v, want only that %v is lost", answer.Lost, answer.Cancelling, lost)
	}
}
