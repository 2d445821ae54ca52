package storetest_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// Each of these stores breaks one promise. They wrap a real store and use only its methods.
var sabotages = append(slices.Concat(aroundSabotages, keySabotages, sessionSabotages, hookSabotages), []sabotage{
	{"the current token wins", func(s engine.Store) engine.Store {
		return dropsTheFence{s}
	}, []string{"fence", "race"}},
	{"the zero token opens nothing", func(s engine.Store) engine.Store { return trustsNobody{s} }, []string{"fence"}},
	{"a run is handed out once", func(s engine.Store) engine.Store {
		return &claimsTwice{Store: s}
	}, []string{"claim"}},
	{"an answer means that the change is there", func(s engine.Store) engine.Store {
		return answersWithoutCommit{s}
	}, []string{"step"}},
	{"an answer comes after the commit", func(s engine.Store) engine.Store {
		return answersBeforeCommit{s}
	}, []string{"step", "race"}},
	{"a repetition gets the first answer", func(s engine.Store) engine.Store {
		return &losesRepetitions{Store: s}
	}, []string{"step"}},
	{"a run's end is repeated OK", func(s engine.Store) engine.Store { return forgetsEnds{s} }, []string{"finish"}},
	{"ended runs are final", func(s engine.Store) engine.Store { return agreesToEveryCancel{s} }, []string{"cancel"}},
	{"a start notifies its queue", func(s engine.Store) engine.Store {
		return mute{s, engine.NotifyQueue}
	}, []string{"notification"}},
	{"a lease's end notifies the slot", func(s engine.Store) engine.Store {
		return mute{s, engine.NotifySlot}
	}, []string{"notification"}},
	{"a cancel notifies the worker", func(s engine.Store) engine.Store {
		return mute{s, engine.NotifyWorker}
	}, []string{"notification"}},
	{"what happens to a worker is not notified as its registration", func(s engine.Store) engine.Store {
		return notifiesAsRegistered{s}
	}, []string{"notification"}},
	{"a notification comes after the commit", func(s engine.Store) engine.Store {
		return &notifiesEarly{Store: s}
	}, []string{"notification"}},
	{"a sleep is no attempt", func(s engine.Store) engine.Store { return countsSleeps{s} }, []string{"sleep"}},
	{"a sleep lasts as long as it was asked for", func(s engine.Store) engine.Store {
		return wakesEarly{s}
	}, []string{"sleep"}},
	{"a timer is set to the millisecond", func(s engine.Store) engine.Store {
		return sleepsWholeSeconds{s}
	}, []string{"sleep"}},
	{"a retry waits for its delay", func(s engine.Store) engine.Store { return retriesAtOnce{s} }, []string{"retry"}},
	{"a verdict counts the failures", func(s engine.Store) engine.Store {
		return countsToOne{s}
	}, []string{"retry", "model"}},
	{"the jitter is passed in", func(s engine.Store) engine.Store { return invents{s} }, []string{"retry", "model"}},
	{"a worker that leaves frees its runs", func(s engine.Store) engine.Store {
		return keepsLeases{s}
	}, []string{"worker"}},
	{"a lost worker may have been heard", func(s engine.Store) engine.Store { return looksOnce{s} }, []string{"lost"}},
	{"one server takes a lost worker off", func(s engine.Store) engine.Store {
		return takesItself{s}
	}, []string{"lost", "model"}},
	{"a lost worker counts as a loss", func(s engine.Store) engine.Store {
		return forgivesLosses{s}
	}, []string{"lost"}},
	{"unnamed leases are freed", func(s engine.Store) engine.Store { return ignoresWhole{s} }, []string{"worker"}},
	{"requirements are met", func(s engine.Store) engine.Store { return ignoresRequirements{s} }, []string{"claim"}},
	{"limits hold", func(s engine.Store) engine.Store { return overshoots{s} }, []string{"limits"}},
	{"several types are taken in one order", func(s engine.Store) engine.Store {
		return shufflesTypes{s}
	}, []string{"claim"}},
	{"next due is exact", func(s engine.Store) engine.Store { return polls{s} }, []string{"claim"}},
	{"a start of a batch fails alone", func(s engine.Store) engine.Store {
		return failsTogether{s}
	}, []string{"start"}},
	{"a request is answered once", func(s engine.Store) engine.Store {
		return forgetsRequests{s}
	}, []string{"start", "race"}},
	{"a page repeats nothing", func(s engine.Store) engine.Store { return repeatsRows{s} }, []string{"list"}},
	{"a page leaves nothing out", func(s engine.Store) engine.Store { return losesRows{s} }, []string{"list"}},
	{"names are ordered by bytes", func(s engine.Store) engine.Store { return sortsByLocale{s} }, []string{"text"}},
	{"payloads are kept byte for byte", func(s engine.Store) engine.Store { return cutsAtNUL{s} }, []string{"text"}},
	{"times keep microseconds", func(s engine.Store) engine.Store { return roundsTimes{s} }, []string{"text"}},
	{"prune leaves live runs alone", func(s engine.Store) engine.Store {
		return prunesTheLiving{s}
	}, []string{"upkeep"}},
	{"a sweep says what it dealt with", func(s engine.Store) engine.Store {
		return namesNobody{s}
	}, []string{"upkeep", "lost"}},
	{"timeouts are swept", func(s engine.Store) engine.Store { return neverTimesOut{s} }, []string{"upkeep"}},
	{"what stands in a line keeps its order", func(s engine.Store) engine.Store {
		return placesEarly{s}
	}, []string{"ticket"}},
	{"what is given was claimed", func(s engine.Store) engine.Store { return givesUnclaimed{s} }, []string{"hand-off"}},
	{"who waits hears what came of it", func(s engine.Store) engine.Store {
		return takesAndForgets{s}
	}, []string{"hand-off"}},
	{"the model notices a run handed out twice", func(s engine.Store) engine.Store {
		return &claimsTwice{Store: s}
	}, []string{"model"}},
}...)

// givesUnclaimed hands runs to waiting pollers, and leaves them for others too.
type givesUnclaimed struct{ engine.Store }

func (g givesUnclaimed) StartRuns(ctx context.Context, p engine.StartRunsParams) ([]engine.Started, error) {
	starts, handoff := p.Runs, p.Handoff
	p.Handoff = nil
	started, err := g.Store.StartRuns(ctx, p)
	if err != nil || handoff == nil {
		return started, err
	}
	for i := range starts {
		if k := handoff.Offer(&starts[i]); k != nil {
			k.Commit(engine.Task{Run: starts[i].Run,
				Lease: engine.Lease{Namespace: starts[i].Namespace, RunID: starts[i].ID, Token: k.Slot().Token}})
		}
	}
	return started, nil
}

// takesAndForgets takes credit and hands out nothing for it.
type takesAndForgets struct{ engine.Store }

func (g takesAndForgets) StartRuns(ctx context.Context, p engine.StartRunsParams) ([]engine.Started, error) {
	if p.Handoff != nil {
		p.Handoff.Offer(&p.Runs[0])
	}
	return g.Store.StartRuns(ctx, p)
}

// placesEarly admits the next write without waiting for the order of this one.
type placesEarly struct{ engine.Store }

func (p placesEarly) CompleteStep(ctx context.Context, params engine.CompleteStepParams) (engine.Step, error) {
	params.Ticket.Admit()
	params.Ticket = nil
	return p.Store.CompleteStep(ctx, params)
}

func (p placesEarly) CompleteRun(ctx context.Context, params engine.CompleteRunParams) (engine.Completed, error) {
	params.Ticket = nil
	return p.Store.CompleteRun(ctx, params)
}

// dropsTheFence writes under any token as if it were the current one.
type dropsTheFence struct{ engine.Store }

func (d dropsTheFence) CompleteStep(ctx context.Context, p engine.CompleteStepParams) (engine.Step, error) {
	step, err := d.Store.CompleteStep(ctx, p)
	if errors.Is(err, engine.ErrLeaseLost) {
		if l, none := d.CurrentLease(ctx, p.Lease.Namespace, p.Lease.RunID); none == nil {
			p.Lease = l
			return d.Store.CompleteStep(ctx, p)
		}
	}
	return step, err
}

// trustsNobody treats a lease without a token as the current one.
type trustsNobody struct{ engine.Store }

func (d trustsNobody) CompleteRun(ctx context.Context, p engine.CompleteRunParams) (engine.Completed, error) {
	if p.Lease.Token.IsZero() {
		return engine.Completed{Status: engine.RunCompleted}, nil
	}
	return d.Store.CompleteRun(ctx, p)
}

// claimsTwice hands the last claimed run out again with the next claim.
type claimsTwice struct {
	engine.Store
	mu   sync.Mutex
	last []engine.Task
}

func (d *claimsTwice) Claim(ctx context.Context, p engine.ClaimParams) (engine.Claimed, error) {
	claimed, err := d.Store.Claim(ctx, p)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err == nil && len(claimed.Tasks) == 0 {
		claimed.Tasks, d.last = d.last, nil
	} else {
		d.last = claimed.Tasks
	}
	return claimed, err
}

// answersWithoutCommit acknowledges every step whose name ends in 7, and loses it.
type answersWithoutCommit struct{ engine.Store }

func (d answersWithoutCommit) CompleteStep(ctx context.Context, p engine.CompleteStepParams) (engine.Step, error) {
	if strings.HasSuffix(p.Step.Name, "7") {
		return engine.Step{ID: p.ID, Name: p.Step.Name, Output: p.Output}, nil
	}
	return d.Store.CompleteStep(ctx, p)
}

// answersBeforeCommit acknowledges a write and commits it later.
type answersBeforeCommit struct{ engine.Store }

func (d answersBeforeCommit) CompleteStep(ctx context.Context, p engine.CompleteStepParams) (engine.Step, error) {
	go d.Store.CompleteStep(context.WithoutCancel(ctx), p) // nobody learns whether it succeeds
	return engine.Step{ID: p.ID, RunID: p.Lease.RunID, Name: p.Step.Name, Kind: engine.StepFunction,
		Status: engine.StepCompleted, Output: p.Output}, nil
}

// losesRepetitions recognizes only one repetition of a write.
type losesRepetitions struct {
	engine.Store
	mu   sync.Mutex
	seen map[string]bool
}

func (d *losesRepetitions) CompleteStep(ctx context.Context, p engine.CompleteStepParams) (engine.Step, error) {
	key := p.Lease.Token.Wire() + p.Step.String()
	d.mu.Lock()
	again := d.seen[key]
	if d.seen == nil {
		d.seen = map[string]bool{}
	}
	d.seen[key] = true
	d.mu.Unlock()
	if again {
		return engine.Step{}, engine.LeaseLost(p.Lease.RunID, engine.RunRunning)
	}
	return d.Store.CompleteStep(ctx, p)
}

// forgetsEnds answers the repetition of an end as if another lease had sent it.
type forgetsEnds struct{ engine.Store }

func (d forgetsEnds) CompleteRun(ctx context.Context, p engine.CompleteRunParams) (engine.Completed, error) {
	if r, err := d.GetRun(ctx, p.Lease.Namespace, p.Lease.RunID); err == nil && r.Status.Ended() {
		return engine.Completed{}, engine.LeaseLost(r.ID, r.Status)
	}
	return d.Store.CompleteRun(ctx, p)
}

// agreesToEveryCancel says that it cancelled a run that had ended before.
type agreesToEveryCancel struct{ engine.Store }

func (d agreesToEveryCancel) CancelRun(ctx context.Context, p engine.EndRunParams) (engine.RunEnd, error) {
	end, err := d.Store.CancelRun(ctx, p)
	if errors.Is(err, engine.ErrPrecondition) {
		return engine.RunEnd{Status: engine.RunCancelled}, nil
	}
	return end, err
}

// mute never sends one kind of notification, except for the namespace in which listeners test
// whether they hear.
type mute struct {
	engine.Store
	kind engine.NotificationKind
}

func (d mute) Listen(ctx context.Context, notify func(engine.Notification), o engine.Outcomes) error {
	return d.Store.Listen(ctx, func(r engine.Notification) {
		if r.Kind != d.kind || r.Namespace == "probe" {
			notify(r)
		}
	}, o)
}

// notifiesAsRegistered sets Registered on each notification of a worker.
type notifiesAsRegistered struct{ engine.Store }

func (d notifiesAsRegistered) Listen(ctx context.Context, notify func(engine.Notification), o engine.Outcomes) error {
	return d.Store.Listen(ctx, func(r engine.Notification) {
		r.Registered = r.Registered || r.Kind == engine.NotifyWorker
		notify(r)
	}, o)
}

// notifiesEarly notifies for a start before it has begun.
type notifiesEarly struct {
	engine.Store
	mu            sync.Mutex
	notifications []func(engine.Notification)
}

func (d *notifiesEarly) Listen(ctx context.Context, notify func(engine.Notification), o engine.Outcomes) error {
	var one sync.Mutex
	quiet := func(r engine.Notification) {
		one.Lock()
		defer one.Unlock()
		notify(r)
	}
	d.mu.Lock()
	d.notifications = append(d.notifications, quiet)
	d.mu.Unlock()
	return d.Store.Listen(ctx, quiet, o)
}

func (d *notifiesEarly) StartRuns(ctx context.Context, p engine.StartRunsParams) ([]engine.Started, error) {
	d.mu.Lock()
	for _, notify := range d.notifications {
		notify(engine.Notification{Kind: engine.NotifyQueue, Namespace: p.Runs[0].Namespace, Name: p.Runs[0].Queue})
	}
	d.mu.Unlock()
	return d.Store.StartRuns(ctx, p)
}

// countsSleeps counts every sleep as an attempt.
type countsSleeps struct{ engine.Store }

func (d countsSleeps) GetRun(ctx context.Context, namespace string, id engine.ID) (engine.Run, error) {
	r, err := d.Store.GetRun(ctx, namespace, id)
	if err != nil {
		return r, err
	}
	steps, _, err := d.ListSteps(ctx, namespace, id, engine.StepFilter{}, engine.Page{Limit: engine.MaxPage})
	for _, s := range steps {
		if s.Kind == engine.StepSleep {
			r.Attempts++
		}
	}
	return r, err
}

// wakesEarly completes timers at any claim.
type wakesEarly struct{ engine.Store }

func (d wakesEarly) Claim(ctx context.Context, p engine.ClaimParams) (engine.Claimed, error) {
	p.Now = p.Now.Add(time.Hour)
	return d.Store.Claim(ctx, p)
}

// sleepsWholeSeconds cuts off fractions of seconds.
type sleepsWholeSeconds struct{ engine.Store }

func (d sleepsWholeSeconds) Sleep(ctx context.Context, p engine.SleepParams) (engine.Step, error) {
	p.Duration = p.Duration.Truncate(time.Second)
	return d.Store.Sleep(ctx, p)
}

// retriesAtOnce ignores the retry delay.
type retriesAtOnce struct{ engine.Store }

func (d retriesAtOnce) FailStep(ctx context.Context, p engine.FailStepParams) (engine.Verdict, error) {
	p.Failure.RetryAfterMS = 1
	return d.Store.FailStep(ctx, p)
}

// countsToOne treats each retried failure as the first, known ones included.
type countsToOne struct{ engine.Store }

func (d countsToOne) FailStep(ctx context.Context, p engine.FailStepParams) (engine.Verdict, error) {
	v, err := d.Store.FailStep(ctx, p)
	if v.Retry {
		v.Failures = 1
	}
	return v, err
}

// invents uses its own randomness for the jitter.
type invents struct{ engine.Store }

func (d invents) FailStep(ctx context.Context, p engine.FailStepParams) (engine.Verdict, error) {
	p.Jitter = 0.123
	return d.Store.FailStep(ctx, p)
}

// keepsLeases frees nothing when a worker goes.
type keepsLeases struct{ engine.Store }

func (d keepsLeases) ForceOfflineWorker(context.Context, engine.OfflineWorkerParams) (engine.Deregistered, error) {
	return engine.Deregistered{Off: true}, nil
}

// looksOnce makes a lost worker OFFLINE even if it was heard from since.
type looksOnce struct{ engine.Store }

func (d looksOnce) ForceOfflineWorker(ctx context.Context, p engine.OfflineWorkerParams) (engine.Deregistered, error) {
	p.HeardAt = p.Now.Add(time.Hour)
	return d.Store.ForceOfflineWorker(ctx, p)
}

// takesItself says of every OFFLINE worker that this call made it OFFLINE.
type takesItself struct{ engine.Store }

func (d takesItself) ForceOfflineWorker(ctx context.Context,
	p engine.OfflineWorkerParams) (engine.Deregistered, error) {
	taken, err := d.Store.ForceOfflineWorker(ctx, p)
	if w, seen := d.GetWorker(ctx, p.WorkerID); seen == nil && w.Status == engine.WorkerOffline {
		taken.Off = true
	}
	return taken, err
}

// forgivesLosses counts no losses.
type forgivesLosses struct{ engine.Store }

func (d forgivesLosses) ForceOfflineWorker(ctx context.Context,
	p engine.OfflineWorkerParams) (engine.Deregistered, error) {
	p.Reason = engine.OfflineForced
	return d.Store.ForceOfflineWorker(ctx, p)
}

// ignoresWhole frees nothing that a heartbeat does not name.
type ignoresWhole struct{ engine.Store }

func (d ignoresWhole) Heartbeat(ctx context.Context, p engine.HeartbeatParams) (engine.Beat, error) {
	p.Whole = false
	return d.Store.Heartbeat(ctx, p)
}

// ignoresRequirements offers whatever any run requires.
type ignoresRequirements struct{ engine.Store }

func (d ignoresRequirements) Claim(ctx context.Context, p engine.ClaimParams) (engine.Claimed, error) {
	runs, _, err := d.ListRuns(ctx, engine.RunFilter{Namespace: p.Namespace}, engine.Page{Limit: engine.MaxPage})
	for _, r := range runs {
		for key, value := range r.Requirements {
			p.Offers = append(p.Offers, engine.Offer{Key: key, Value: value})
		}
	}
	if err != nil {
		return engine.Claimed{}, err
	}
	return d.Store.Claim(ctx, p)
}

// overshoots checks the limit before the claim instead of within it.
type overshoots struct{ engine.Store }

func (d overshoots) Claim(ctx context.Context, p engine.ClaimParams) (engine.Claimed, error) {
	if p.QueueLimit > 0 {
		p.QueueLimit += len(p.Slots) - 1
	}
	return d.Store.Claim(ctx, p)
}

// failsTogether refuses a whole batch because of one start.
type failsTogether struct{ engine.Store }

func (d failsTogether) StartRuns(ctx context.Context, p engine.StartRunsParams) ([]engine.Started, error) {
	answers, err := d.Store.StartRuns(ctx, p)
	for _, a := range answers {
		if a.Err != nil && len(answers) > 1 {
			return nil, a.Err
		}
	}
	return answers, err
}

// forgetsRequests makes a run for each call.
type forgetsRequests struct{ engine.Store }

func (d forgetsRequests) StartRuns(ctx context.Context, p engine.StartRunsParams) ([]engine.Started, error) {
	p.Runs = slices.Clone(p.Runs)
	for i := range p.Runs {
		p.Runs[i].RequestID = ""
	}
	return d.Store.StartRuns(ctx, p)
}

// namesNobody times steps out without returning which.
type namesNobody struct{ engine.Store }

func (d namesNobody) TimeoutSteps(ctx context.Context, p engine.TimeoutStepsParams) (engine.TimedOut, error) {
	out, err := d.Store.TimeoutSteps(ctx, p)
	for i := range out.Attempts {
		out.Attempts[i].Step = ""
	}
	return out, err
}

func (d namesNobody) FreeLost(ctx context.Context, now time.Time) (engine.Freed, error) {
	freed, err := d.Store.FreeLost(ctx, now)
	clear(freed.Runs)
	return freed, err
}

// neverTimesOut times nothing out.
type neverTimesOut struct{ engine.Store }

func (d neverTimesOut) TimeoutSteps(context.Context, engine.TimeoutStepsParams) (engine.TimedOut, error) {
	return engine.TimedOut{}, nil
}
