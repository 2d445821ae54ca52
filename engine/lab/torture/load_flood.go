//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/kagzi/kagzi/engine/lab/torture/check"
	"github.com/kagzi/kagzi/engine/lab/torture/history"
	kagzi "github.com/kagzi/kagzi/sdk"
)

// largePayload is a little less than a payload may have.
const largePayload = 1900 << 10

// floodType is that of the runs of a storm, which end as soon as they are begun.
const floodType = "torture.flood"

// flood is the storm of L-07: beside the load, which takes from the machine what it has, starts with payloads of almost 2 MiB are sent at the whole
// rate of the matrix, whatever became of those before. A start that is not acknowledged in time is given up. The servers' memory is watched meanwhile.
func flood(ctx context.Context, t *torture) error {
	var senders []*client
	defer func() {
		for _, c := range senders {
			c.sdk.Close()
		}
	}()
	for i := range clients {
		c, err := kagzi.NewClient(kagzi.ClientOptions{Profile: kagzi.NoProfile, Address: t.rig.servers[i%len(t.rig.servers)].door.address(), Logger: quiet,
			DialOptions: []grpc.DialOption{triedIn(t.replays)}})
		if err != nil {
			return err
		}
		senders = append(senders, &client{c, t.replays})
	}
	t.rig.fault("a storm", func() bool {
		var group sync.WaitGroup
		defer group.Wait()
		group.Go(func() { t.watchMemory(ctx) })
		t.send(ctx, senders, &group)
		return t.flood.sent.Load() > 0
	})
	return nil
}

// flooding is what came of a storm.
type flooding struct{ sent, taken atomic.Int64 }

// send starts runs at the matrix's rate until ctx ends.
func (t *torture) send(ctx context.Context, senders []*client, group *sync.WaitGroup) {
	payload := filler(newLuck(t.options.seed).r, largePayload-20)
	tick := time.NewTicker(time.Duration(float64(time.Second) / (standardRate * t.options.scale)))
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		t.flood.sent.Add(1)
		group.Go(func() {
			if t.startOnce(context.WithoutCancel(ctx), senders[n%len(senders)], fmt.Sprintf("flood-%d", n), fmt.Sprintf("%020d", n)+payload) {
				t.flood.taken.Add(1)
			}
		})
	}
}

// startOnce starts a run of the storm, and reports whether that was acknowledged in time.
func (t *torture) startOnce(ctx context.Context, c *client, request, input string) bool {
	text, err := json.Marshal(input)
	if err != nil {
		panic(err) // a text
	}
	t.load.expected.Store(request, check.Wanted{Type: floodType, Queue: "default", Input: history.Digest(text)})
	event := c.log.Begin(history.Event{Op: history.Start, Request: request})
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	run, err := kagzi.Start(ctx, c.sdk, floodType, input, kagzi.StartOptions{RequestID: request})
	if event.Outcome, event.Code = outcome(err); err == nil {
		event.Run = run.ID()
	}
	c.log.Finish(event)
	return err == nil
}

// flooded says how much of the storm was taken. How much a machine can take is its own affair, so that there is no limit but that it is some.
func flooded(t *torture) figure {
	sent, taken := t.flood.sent.Load(), t.flood.taken.Load()
	lasted := float64(t.healed-t.faulty) / 1e9
	return figure{name: "starts of the storm acknowledged within " + callLimit.String(), limit: "> 0",
		got: fmt.Sprintf("%d of %d, %.1f MiB a second", taken, sent, float64(taken)*largePayload/(1<<20)/lasted), ok: taken > 0, hard: true}
}

// watchMemory notes the most that the servers take, until ctx ends.
func (t *torture) watchMemory(ctx context.Context) {
	for t.pause(ctx, 200*time.Millisecond, 300*time.Millisecond) {
		for _, s := range t.rig.servers {
			t.memory = max(t.memory, memoryOf(s.current().pid()))
		}
	}
}

// memory wants the servers to have kept within so many MiB.
func memory(limit int) func(t *torture) figure {
	return func(t *torture) figure {
		return figure{name: "memory of a server", got: fmt.Sprintf("%d MiB at most", t.memory), limit: fmt.Sprintf("≤ %d MiB", limit),
			ok: t.memory > 0 && t.memory <= limit}
	}
}
