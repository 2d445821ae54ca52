package demo

import (
	"context"
	"fmt"
	"time"

	kagzi "github.com/kagzi/kagzi/sdk"
)

// How often the demo polls the ledger and the server.
const (
	lookEvery = 10 * time.Millisecond
	askEvery  = 50 * time.Millisecond
)

// poll calls look until it finds something.
func poll(ctx context.Context, every time.Duration, look func() (found bool, err error)) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if found, err := look(); found || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// killHalfway waits until the step after the middle one is running, and kills its worker.
func killHalfway(ctx context.Context, p *player, run *kagzi.Run, f *facts) error {
	victim, err := atWorkOn(ctx, p.env.ledger, run.ID(), stepName(tenSteps/2+1))
	if err != nil {
		return err
	}
	steps, err := listSteps(ctx, p.env.api, run.ID())
	if err != nil {
		return err
	}
	k := &kill{worker: victim}
	for _, step := range steps {
		if step.completed() {
			k.recorded = append(k.recorded, step)
		}
	}
	if err := p.env.kill(victim); err != nil {
		return err
	}
	f.killed = k
	p.say(fmt.Sprintf("%s killed with %d steps recorded", victim, len(k.recorded)))
	return nil
}

// atWorkOn waits until a step has started and returns its worker.
func atWorkOn(ctx context.Context, l ledger, runID, step string) (worker string, err error) {
	err = poll(ctx, lookEvery, func() (bool, error) {
		executions, err := l.read(runID)
		for _, e := range executions {
			if e.Step == step {
				worker = e.Worker
			}
		}
		return worker != "", err
	})
	if err != nil {
		return "", fmt.Errorf("wait for step %s to begin: %w", step, err)
	}
	return worker, nil
}

// approve waits until the run is parked for its signal, and sends the signal twice under one id,
// like a client that got no answer. A run that ends without waiting gets none.
func approve(ctx context.Context, p *player, run *kagzi.Run, f *facts) error {
	waits := false
	err := poll(ctx, lookEvery, func() (found bool, err error) {
		var over bool
		waits, over = p.waitsFor(waitForApproval)
		return waits || over, nil
	})
	if err != nil {
		return fmt.Errorf("wait for the run to wait for its signal: %w", err)
	}
	for waits && f.sent < 2 {
		if err := kagzi.Signal(ctx, run, approvalSignal, approvedPrice,
			kagzi.SignalOptions{ID: approvalID}); err != nil {
			return fmt.Errorf("signal: %w", err)
		}
		f.sent++
	}
	return nil
}
