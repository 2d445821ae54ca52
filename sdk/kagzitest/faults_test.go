package kagzitest_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/lab/host"
)

// faults wraps a server's store and decides, by seed, method and number, what happens to each call.
// It also checks what the store has recorded: no fault may change a recorded result or end a run
// twice.
type faults struct {
	engine.Store
	t        *testing.T
	seed     uint64
	rate     float64
	fates    []string
	spare    []string         // methods without faults
	off      func(who uint64) // takes a worker offline
	someHost func(who int) *host.Host

	mu            sync.Mutex
	calls         map[string]int
	hits          map[string]int
	ready, healed bool
	recorded      map[string]string // the first result of a step
	ended         map[engine.ID]engine.Token
}

// What can happen to a call. All but the first carry it out.
const (
	fateFail      = "fail"       // and report that the database does not answer
	fateLose      = "lose"       // likewise
	fateLate      = "late"       // after up to 40 s
	fateCutBefore = "cut before" // after a connection was cut
	fateCutAfter  = "cut after"  // before a connection is cut, and the caller answered
	fateOffBefore = "off before" // after a worker was taken offline
	fateOffAfter  = "off after"  // before a worker is taken offline, and the caller answered
)

var errAway = &engine.Error{Kind: engine.KindUnavailable, Message: "the database does not answer"}

// hit counts what happened.
func (f *faults) hit(what string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hits[what]++
}

// begin enables the faults.
func (f *faults) begin() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ready = true
}

func (f *faults) heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.healed = true
}

// fate returns what happens to the next call of a method, and its random source.
func (f *faults) fate(verb string) (string, *rand.Rand) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls[verb]++
	if !f.ready || f.healed || slices.Contains(f.spare, verb) {
		return "", nil
	}
	h := fnv.New64a()
	fmt.Fprint(h, verb, f.calls[verb])
	luck := rand.New(rand.NewPCG(f.seed, h.Sum64()))
	if luck.Float64() >= f.rate {
		return "", nil
	}
	fate := f.fates[luck.IntN(len(f.fates))]
	f.hits[fate]++
	return fate, luck
}

// cut breaks the connections of a random host.
func (f *faults) cut(luck *rand.Rand) { f.someHost(luck.IntN(3)).Cut(host.All) }

// meet carries out a write, or not.
func meet[P, A any](ctx context.Context, f *faults, verb string, p P,
	call func(context.Context, P) (A, error)) (A, error) {
	var none A
	fate, luck := f.fate(verb)
	if fate == "" {
		return call(ctx, p)
	}
	if fate == fateFail {
		return none, errAway
	}
	if s, ok := any(&p).(interface {
		GetTicket() *engine.Ticket
		SetTicket(*engine.Ticket)
	}); ok && s.GetTicket() != nil { // later operations are handed over once it is known what the server was told
		ticket := engine.NewTicket(s.GetTicket().Prev())
		s.SetTicket(ticket)
		defer ticket.Close(nil)
	}
	switch fate {
	case fateLate:
		time.Sleep(time.Duration(luck.Int64N(int64(40 * time.Second))))
	case fateCutBefore:
		f.cut(luck)
	case fateOffBefore:
		f.off(luck.Uint64())
	}
	answer, err := call(ctx, p)
	switch fate {
	case fateLose:
		if err == nil {
			return none, errAway
		}
	case fateCutAfter:
		f.cut(luck)
	case fateOffAfter:
		f.off(luck.Uint64())
	}
	return answer, err
}

// look is meet for reads.
func look[A any](ctx context.Context, f *faults, verb string, call func(context.Context) (A, error)) (A, error) {
	switch fate, _ := f.fate(verb); fate {
	case fateFail, fateLose:
		var none A
		return none, errAway
	}
	return call(ctx)
}

// told is meet for methods without an answer.
func told[P any](ctx context.Context, f *faults, verb string, p P, call func(context.Context, P) error) error {
	_, err := meet(ctx, f, verb, p, func(ctx context.Context, p P) (struct{}, error) {
		return struct{}{}, call(ctx, p)
	})
	return err
}

func (f *faults) StartRuns(ctx context.Context, p engine.StartRunsParams) ([]engine.Started, error) {
	return meet(ctx, f, "StartRuns", p, f.Store.StartRuns)
}

func (f *faults) CancelRun(ctx context.Context, p engine.EndRunParams) (engine.RunEnd, error) {
	return meet(ctx, f, "CancelRun", p, f.Store.CancelRun)
}

func (f *faults) PauseRun(ctx context.Context, p engine.PauseRunParams) (engine.Run, error) {
	return meet(ctx, f, "PauseRun", p, f.Store.PauseRun)
}

func (f *faults) ResumeRun(ctx context.Context, p engine.ResumeRunParams) (engine.Run, error) {
	return meet(ctx, f, "ResumeRun", p, f.Store.ResumeRun)
}

func (f *faults) SignalRun(ctx context.Context, p engine.SignalRunParams) (engine.Signalled, error) {
	return meet(ctx, f, "SignalRun", p, f.Store.SignalRun)
}

func (f *faults) Claim(ctx context.Context, p engine.ClaimParams) (engine.Claimed, error) {
	return meet(ctx, f, "Claim", p, f.Store.Claim)
}

func (f *faults) BeginStep(ctx context.Context, p engine.BeginStepParams) (engine.Begun, error) {
	return meet(ctx, f, "BeginStep", p, f.Store.BeginStep)
}

func (f *faults) CompleteStep(ctx context.Context, p engine.CompleteStepParams) (engine.Step, error) {
	return meet(ctx, f, "CompleteStep", p, func(ctx context.Context, p engine.CompleteStepParams) (engine.Step, error) {
		step, err := f.Store.CompleteStep(ctx, p)
		if err == nil {
			f.records(p.Lease.RunID, &step)
		}
		return step, err
	})
}

func (f *faults) FailStep(ctx context.Context, p engine.FailStepParams) (engine.Verdict, error) {
	return meet(ctx, f, "FailStep", p, f.Store.FailStep)
}

func (f *faults) Sleep(ctx context.Context, p engine.SleepParams) (engine.Step, error) {
	return meet(ctx, f, "Sleep", p, f.Store.Sleep)
}

func (f *faults) AwaitSignal(ctx context.Context, p engine.AwaitSignalParams) (engine.AwaitedSignal, error) {
	return meet(ctx, f, "AwaitSignal", p, f.Store.AwaitSignal)
}

func (f *faults) StartChild(ctx context.Context, p engine.StartChildParams) (engine.Step, error) {
	return meet(ctx, f, "StartChild", p, f.Store.StartChild)
}

func (f *faults) AwaitChildren(ctx context.Context, p engine.AwaitChildrenParams) ([]engine.Step, error) {
	return meet(ctx, f, "AwaitChildren", p, f.Store.AwaitChildren)
}

func (f *faults) CompleteRun(ctx context.Context, p engine.CompleteRunParams) (engine.Completed, error) {
	return meet(ctx, f, "CompleteRun", p, func(ctx context.Context,
		p engine.CompleteRunParams) (engine.Completed, error) {
		done, err := f.Store.CompleteRun(ctx, p)
		if err == nil {
			f.ends(p.Lease)
		}
		return done, err
	})
}

func (f *faults) FailRun(ctx context.Context, p engine.FailRunParams) (engine.RunVerdict, error) {
	return meet(ctx, f, "FailRun", p, func(ctx context.Context, p engine.FailRunParams) (engine.RunVerdict, error) {
		verdict, err := f.Store.FailRun(ctx, p)
		if err == nil && !verdict.Retry {
			f.ends(p.Lease)
		}
		return verdict, err
	})
}

func (f *faults) Release(ctx context.Context, p engine.ReleaseParams) error {
	return told(ctx, f, "Release", p, f.Store.Release)
}

func (f *faults) RegisterWorker(ctx context.Context, p engine.RegisterWorkerParams) (engine.Worker, error) {
	return meet(ctx, f, "RegisterWorker", p, f.Store.RegisterWorker)
}

func (f *faults) Heartbeat(ctx context.Context, p engine.HeartbeatParams) (engine.Beat, error) {
	return meet(ctx, f, "Heartbeat", p, f.Store.Heartbeat)
}

func (f *faults) DrainWorker(ctx context.Context, p engine.DrainWorkerParams) error {
	return told(ctx, f, "DrainWorker", p, f.Store.DrainWorker)
}

func (f *faults) ForceOfflineWorker(ctx context.Context, p engine.OfflineWorkerParams) (engine.Deregistered, error) {
	return meet(ctx, f, "ForceOfflineWorker", p, f.Store.ForceOfflineWorker)
}

func (f *faults) FreeLost(ctx context.Context, now time.Time) (engine.Freed, error) {
	return meet(ctx, f, "FreeLost", now, f.Store.FreeLost)
}

func (f *faults) TimeoutSteps(ctx context.Context, p engine.TimeoutStepsParams) (engine.TimedOut, error) {
	return meet(ctx, f, "TimeoutSteps", p, f.Store.TimeoutSteps)
}

func (f *faults) EndExpired(ctx context.Context, p engine.EndExpiredParams) (engine.Expired, error) {
	return meet(ctx, f, "EndExpired", p, f.Store.EndExpired)
}

func (f *faults) LiveWorkers(ctx context.Context) ([]engine.LiveWorker, error) {
	return look(ctx, f, "LiveWorkers", f.Store.LiveWorkers)
}

func (f *faults) GetRun(ctx context.Context, namespace string, id engine.ID) (engine.Run, error) {
	return look(ctx, f, "GetRun", func(ctx context.Context) (engine.Run, error) {
		return f.Store.GetRun(ctx, namespace, id)
	})
}

func (f *faults) GetWorker(ctx context.Context, id string) (engine.Worker, error) {
	return look(ctx, f, "GetWorker", func(ctx context.Context) (engine.Worker, error) {
		return f.Store.GetWorker(ctx, id)
	})
}

func (f *faults) HeldBy(ctx context.Context, worker string) ([]engine.Held, error) {
	return look(ctx, f, "HeldBy", func(ctx context.Context) ([]engine.Held, error) {
		return f.Store.HeldBy(ctx, worker)
	})
}

// records compares a recorded result with the one before.
func (f *faults) records(run engine.ID, s *engine.Step) {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := run.String() + "/" + s.Name
	if before, again := f.recorded[key]; again && before != string(s.Output.Data) {
		f.t.Errorf("step %s is recorded with %s, and later with %s", s.Name, before, s.Output.Data)
	}
	f.recorded[key] = string(s.Output.Data)
}

// recordOf returns the recorded result of a step.
func (f *faults) recordOf(run, step string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.recorded[run+"/"+step]
}

// ends checks that no other lease has ended the run before.
func (f *faults) ends(l engine.Lease) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if before, again := f.ended[l.RunID]; again && before != l.Token {
		f.t.Errorf("run %s is ended twice", l.RunID)
	}
	f.ended[l.RunID] = l.Token
}

// String returns what has happened.
func (f *faults) String() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	text := fmt.Sprintf("of the calls %v of those met %.2f:", f.fates, f.rate)
	for _, what := range slices.Sorted(maps.Keys(f.hits)) {
		text += fmt.Sprintf(" %s %d,", what, f.hits[what])
	}
	return text
}
