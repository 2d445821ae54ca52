package sqlite

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine"
)

func TestAQueueIsRungForRunsThatTheirOwnCommitClaimedAsTaken(t *testing.T) {
	for _, c := range []struct {
		name           string
		starts, grants int
		apart          bool // the starts have a commit of their own
		taken          bool
	}{
		{name: "one run, claimed in its commit", starts: 1, grants: 2, taken: true},
		{name: "one run, claimed after its commit", starts: 1, grants: 2, apart: true},
		{name: "two runs, one of them claimed", starts: 2, grants: 1},
		{name: "two runs, both claimed", starts: 2, grants: 2, taken: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := fresh(t)
			rings := make(chan engine.Notification, 100)
			ctx, stop := context.WithCancel(t.Context())
			listening := make(chan error, 1)
			go func() { listening <- s.Listen(ctx, func(r engine.Notification) { rings <- r }) }()
			defer func() { stop(); <-listening }()
			<-rings // that it listens
			holding(t, s, 1)
			for r := range rings { // a call may be answered before it rings
				if r.Kind == engine.NotifyQueue {
					break
				}
			}

			var starts []engine.StartRun
			for range c.starts {
				starts = append(starts, startOf("t", s))
			}
			p := engine.ClaimParams{Namespace: "default", Queue: "q", Types: []string{"t"}, HistoryBytes: 1 << 20, Now: s.Now().Add(time.Minute)}
			for range c.grants {
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
				if got, want := len(out.Tasks), min(c.starts, c.grants); got != want {
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
			for r := range rings {
				if r.Kind != engine.NotifyQueue {
					continue
				}
				if want := (engine.Notification{Kind: engine.NotifyQueue, Namespace: "default", Name: "q", Claimed: c.taken}); r != want {
					t.Fatalf("ring = %+v, want %+v", r, want)
				}
				return
			}
		})
	}
}
