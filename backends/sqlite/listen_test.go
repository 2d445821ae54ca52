package sqlite

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine"
)

func TestNotifyQueueClaimed(t *testing.T) {
	for _, c := range []struct {
		name          string
		starts, slots int
		apart         bool // the starts have their own commit
		claimed       bool
	}{
		{name: "one run, claimed in its commit", starts: 1, slots: 2, claimed: true},
		{name: "one run, claimed after its commit", starts: 1, slots: 2, apart: true},
		{name: "two runs, one of them claimed", starts: 2, slots: 1},
		{name: "two runs, both claimed", starts: 2, slots: 2, claimed: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := fresh(t)
			notifications := make(chan engine.Notification, 100)
			ctx, stop := context.WithCancel(t.Context())
			listening := make(chan error, 1)
			go func() { listening <- s.Listen(ctx, func(r engine.Notification) { notifications <- r }, nil) }()
			defer func() { stop(); <-listening }()
			<-notifications // it is listening
			holding(t, s, 1)
			for r := range notifications { // a call may be answered before it notifies
				if r.Kind == engine.NotifyQueue {
					break
				}
			}

			var starts []engine.StartRun
			for range c.starts {
				starts = append(starts, startOf("t", s))
			}
			p := engine.ClaimParams{Namespace: "default", Queue: "q", Types: []string{"t"}, HistoryBytes: 1 << 20,
				Now: s.Now().Add(time.Minute)}
			for range c.slots {
				p.Slots = append(p.Slots, engine.ClaimSlot{WorkerID: "w1", Token: engine.NewToken()})
			}
			started, claimed := make(chan error, 1), make(chan error, 1)
			release := hold(t, s)
			go func() {
				_, err := s.StartRuns(t.Context(), engine.StartRunsParams{Runs: starts})
				started <- err
			}()
			waiting(t, s, 1)
			if c.apart {
				release()
				release = hold(t, s)
			}
			go func() {
				out, err := s.Claim(t.Context(), p)
				if got, want := len(out.Tasks), min(c.starts, c.slots); got != want {
					err = errors.Join(err, fmt.Errorf("claimed %d runs, want %d", got, want))
				}
				claimed <- err
			}()
			if waiting(t, s, 1); !c.apart {
				waiting(t, s, 2)
			}
			release()
			if err := errors.Join(<-started, <-claimed); err != nil {
				t.Fatal(err)
			}
			for r := range notifications {
				if r.Kind != engine.NotifyQueue {
					continue
				}
				if want := (engine.Notification{Kind: engine.NotifyQueue, Namespace: "default", Name: "q",
					Claimed: c.claimed}); r != want {
					t.Fatalf("notification = %+v, want %+v", r, want)
				}
				return
			}
		})
	}
}
