package postgres

import (
	"sync"

	"github.com/kagzi/kagzi/engine"
)

// begunKept limits how many steps and runs are remembered, about.
const begunKept = 1 << 16

// begun remembers what the statements of common calls do not apply to: steps that have an attempt,
// and runs whose end affects others, with an empty name. Their calls are operations from the start.
// It may forget some, and remember what is over: then a call takes the longer way, with the same
// result.
type begun struct {
	mu           sync.Mutex
	now, earlier map[stepKey]struct{} // earlier is dropped when now is full
}

func (b *begun) add(run engine.ID, step string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.now) >= begunKept/2 {
		b.earlier, b.now = b.now, nil
	}
	if b.now == nil {
		b.now = map[stepKey]struct{}{}
	}
	b.now[stepKey{run, step}] = struct{}{}
}

func (b *begun) has(run engine.ID, step string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, now := b.now[stepKey{run, step}]
	_, earlier := b.earlier[stepKey{run, step}]
	return now || earlier
}

func (b *begun) remove(run engine.ID, step string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.now, stepKey{run, step})
	delete(b.earlier, stepKey{run, step})
}

// expect remembers what an operation means for later calls, which may come before it is answered.
func (b *begun) expect(op *operation) {
	switch p := op.Params.(type) {
	case engine.BeginStepParams:
		b.add(p.Lease.RunID, p.Name)
	case engine.FailStepParams:
		b.add(p.Lease.RunID, p.Step.Name)
	case engine.StartChildParams:
		b.add(p.Lease.RunID, "")
	case engine.SignalRunParams: // the end of the run counts its signals
		b.add(p.RunID, "")
	}
}

// note remembers what a committed operation means for later calls.
func (b *begun) note(op *operation) {
	switch p := op.Params.(type) {
	case engine.StartChildParams:
		b.add(op.answer.(engine.Step).ChildRunID, "")
	case engine.FireScheduleParams:
		for _, tick := range p.Ticks {
			b.add(tick.RunID, "")
		}
	case engine.CompleteStepParams:
		b.remove(p.Lease.RunID, p.Step.Name)
	case engine.CompleteRunParams:
		b.remove(p.Lease.RunID, "")
	}
}
