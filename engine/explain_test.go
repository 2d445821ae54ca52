package engine

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestExplain(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	at := func(d time.Duration) time.Time { return now.Add(d) }
	worker := func(change func(w *Worker)) Worker {
		w := Worker{ID: "w1", Status: WorkerOnline, Queues: []string{"orders"}, Types: []string{"order"},
			MaxConcurrent: 2, LastHeartbeatAt: at(-time.Second)}
		if change != nil {
			change(&w)
		}
		return w
	}
	run := Run{ID: FirstID(now), Namespace: "default", Queue: "orders", Type: "order", Status: RunPending,
		CreatedAt: at(-time.Hour), AvailableAt: at(-90 * time.Second)}
	declined, full := &Failure{Message: "card declined"}, &Failure{Code: FailureExhausted, Message: "no room"}

	tests := []struct {
		name    string
		change  func(c *Circumstances)
		summary string
		blocker Blocker
		since   time.Time
		next    time.Time
		detail  string
	}{
		{"completed", func(c *Circumstances) { c.Run.Status, c.Run.FinishedAt = RunCompleted, at(-3*time.Minute) },
			"completed 3m ago", BlockedByNothing, at(-3 * time.Minute), time.Time{}, ""},
		{"failed", func(c *Circumstances) {
			c.Run.Status, c.Run.FinishedAt, c.Run.Error = RunFailed, at(-time.Second), declined
		}, "failed 1s ago: card declined", BlockedByNothing, at(-time.Second), time.Time{}, "kagzi workflow retry"},
		{"terminated, where no step failed", func(c *Circumstances) {
			c.Run.Status, c.Run.FinishedAt = RunTerminated, at(-time.Second)
		}, "terminated 1s ago", BlockedByNothing, at(-time.Second), time.Time{},
			"retries it and keeps the results of completed steps"},
		{"failed, full of bytes", func(c *Circumstances) {
			c.Run.Status, c.Run.FinishedAt, c.Run.Error, c.Run.Bytes = RunFailed, at(-time.Second), full,
				MaxRunBytes-MaxPayload+1
		}, "failed 1s ago: no room", BlockedByNothing, at(-time.Second), time.Time{}, "would hit the same limit"},
		{"failed, full of steps", func(c *Circumstances) {
			c.Run.Status, c.Run.FinishedAt, c.Run.Error, c.Run.Steps = RunFailed, at(-time.Second), full, MaxSteps
		}, "failed 1s ago: no room", BlockedByNothing, at(-time.Second), time.Time{},
			"--restart` runs it from the beginning"},
		{"failed, full of steps, for another reason", func(c *Circumstances) {
			c.Run.Status, c.Run.FinishedAt, c.Run.Error, c.Run.Steps = RunFailed, at(-time.Second), declined, MaxSteps
		}, "failed 1s ago: card declined", BlockedByNothing, at(-time.Second), time.Time{},
			"retries it and keeps the results of completed steps"},
		{"failed on a size, with room left", func(c *Circumstances) {
			c.Run.Status, c.Run.FinishedAt, c.Run.Error, c.Run.Bytes = RunFailed, at(-time.Second), full, MaxRunBytes/2
		}, "failed 1s ago: no room", BlockedByNothing, at(-time.Second), time.Time{},
			"retries it and keeps the results of completed steps"},
		{"running", func(c *Circumstances) {
			c.Run.Status, c.Run.WorkerID, c.Run.AvailableAt = RunRunning, "w1", time.Time{}
			c.Steps = []Step{{Name: "charge", Kind: StepFunction, Status: StepRunning, Attempt: 2,
				StartedAt: at(-4 * time.Second), TimeoutAt: at(time.Minute)}}
		}, "runs step charge (attempt 2) on worker w1 for 4s", BlockedByNothing, at(-4 * time.Second), at(time.Minute),
			"last heartbeat was 1s ago"},
		{"running, blocked outside of calls", func(c *Circumstances) {
			c.Run.Status, c.Run.WorkerID, c.Run.StartedAt = RunRunning, "w1", at(-time.Minute)
			c.Workers[0].Stats.Blocked = []BlockedCode{
				{RunID: FirstID(at(time.Hour)).String(), Since: at(-time.Hour)},
				{RunID: c.Run.ID.String(), Since: at(-12 * time.Second), Stack: "main.wait()"},
				{RunID: c.Run.ID.String(), Branch: "2.1", Since: at(-9 * time.Second)}}
		}, "runs on worker w1, where its code is blocked outside of SDK calls for 12s", BlockedByNothing,
			at(-12 * time.Second), time.Time{},
			"it keeps its slot; wait with|the code of branch 2.1 is blocked outside of SDK calls for 9s"},
		{"running, with held calls beside a step", func(c *Circumstances) {
			c.Run.Status, c.Run.WorkerID, c.Run.StartedAt = RunRunning, "w1", at(-time.Minute)
			c.Steps = []Step{{Name: "charge", Kind: StepFunction, Status: StepRunning,
				StartedAt: at(-4 * time.Second)}}
			c.Workers[0].Stats.Blocked = []BlockedCode{{RunID: c.Run.ID.String(), Since: at(-6 * time.Second),
				Held: []Call{{Name: "bill"}}, Owed: []Call{{Name: "ship"}, {Name: "nap"}}}}
		}, "runs step charge on worker w1 for 4s", BlockedByNothing, at(-4 * time.Second), time.Time{},
			"new calls are held for 6s (bill), because the code has not made recorded ones: ship, nap"},
		{"running, on a worker that is silent", func(c *Circumstances) {
			c.Run.Status, c.Run.WorkerID, c.Run.StartedAt, c.WorkerLease = RunRunning, "w1", at(-time.Minute),
				30*time.Second
			c.Workers[0].LastHeartbeatAt = at(-20 * time.Second)
		}, "runs on worker w1", BlockedByNothing, at(-time.Minute), at(10 * time.Second),
			"last heartbeat was 20s ago|if it stays silent, its lease expires in 10s and another worker gets the run soon after"},
		{"running, on a silent worker, with a heartbeat timeout", func(c *Circumstances) {
			c.Run.Status, c.Run.WorkerID, c.Run.StartedAt, c.WorkerLease = RunRunning, "w1", at(-time.Minute),
				30*time.Second
			c.Run.Timeouts.Heartbeat = 5 * time.Minute
			c.Workers[0].LastHeartbeatAt = at(-31 * time.Second)
		}, "runs on worker w1", BlockedByNothing, at(-time.Minute), at(4*time.Minute + 29*time.Second),
			"its lease expires in 4m29s"},
		{"in a step, on a worker that is silent", func(c *Circumstances) {
			c.Run.Status, c.Run.WorkerID, c.WorkerLease = RunRunning, "w1", 30*time.Second
			c.Steps = []Step{{Name: "charge", Kind: StepFunction, Status: StepRunning, StartedAt: at(-4 * time.Second),
				TimeoutAt: at(time.Minute)}}
			c.Workers[0].LastHeartbeatAt = at(-20 * time.Second)
		}, "runs step charge on worker w1 for 4s", BlockedByNothing, at(-4 * time.Second), at(10 * time.Second),
			"its lease expires in 10s"},
		{"in a step that times out first, on a silent worker", func(c *Circumstances) {
			c.Run.Status, c.Run.WorkerID, c.WorkerLease = RunRunning, "w1", 30*time.Second
			c.Steps = []Step{{Name: "charge", Kind: StepFunction, Status: StepRunning, StartedAt: at(-4 * time.Second),
				TimeoutAt: at(5 * time.Second)}}
			c.Workers[0].LastHeartbeatAt = at(-20 * time.Second)
		}, "runs step charge on worker w1 for 4s", BlockedByNothing, at(-4 * time.Second), at(5 * time.Second),
			"its lease expires in 10s"},
		{"in a step, on a worker that was silent for too long", func(c *Circumstances) {
			c.Run.Status, c.Run.WorkerID, c.WorkerLease = RunRunning, "w1", 30*time.Second
			c.Steps = []Step{{Name: "charge", Kind: StepFunction, Status: StepRunning, StartedAt: at(-40 * time.Second),
				TimeoutAt: at(time.Minute)}}
			c.Workers[0].LastHeartbeatAt = at(-31 * time.Second)
		}, "runs step charge on worker w1 for 40s", BlockedByNothing, at(-40 * time.Second), time.Time{},
			"another worker gets the run within seconds"},
		{"running, on a worker that was silent for too long", func(c *Circumstances) {
			c.Run.Status, c.Run.WorkerID, c.Run.StartedAt, c.WorkerLease = RunRunning, "w1", at(-time.Minute),
				30*time.Second
			c.Workers[0].LastHeartbeatAt = at(-31 * time.Second)
		}, "runs on worker w1", BlockedByNothing, at(-time.Minute), time.Time{},
			"its lease has expired; if it stays silent, another worker gets the run within seconds"},
		{"running, on a worker that was taken off", func(c *Circumstances) {
			c.Run.Status, c.Run.WorkerID, c.Run.StartedAt, c.WorkerLease = RunRunning, "w1", at(-time.Minute),
				30*time.Second
			c.Run.Timeouts.Heartbeat, c.Workers = 5*time.Minute, nil
		}, "runs on worker w1", BlockedByNothing, at(-time.Minute), time.Time{},
			"another worker gets the run after its heartbeat timeout of 5m"},
		{"retry", func(c *Circumstances) {
			c.Run.AvailableAt = at(38 * time.Second)
			c.Steps = []Step{{Name: "charge", Status: StepPending, Failures: 6, RetryAt: at(38 * time.Second),
				Error: declined, FinishedAt: at(-time.Second),
				RetryPolicy: &RetryPolicy{MaximumAttempts: 10}}}
		}, "retries charge, attempt 7 of 10 in 38s: card declined", BlockedByRetryDelay, at(-time.Second),
			at(38 * time.Second), ""},
		{"run retry", func(c *Circumstances) {
			c.Run.AvailableAt, c.Run.Failures, c.Run.RetryPolicy, c.Run.Error = at(time.Second), 1,
				&RetryPolicy{MaximumAttempts: -1}, declined
		}, "retries the whole run, attempt 2 in 1s: card declined", BlockedByRetryDelay, time.Time{},
			at(time.Second), ""},
		{"run retry by its own policy", func(c *Circumstances) {
			c.Run.AvailableAt, c.Run.Failures, c.Run.Error = at(time.Second), 1, declined
			c.Run.RetryPolicy, c.Run.RunRetryPolicy = &RetryPolicy{MaximumAttempts: 9}, &RetryPolicy{MaximumAttempts: 4}
		}, "retries the whole run, attempt 2 of 4 in 1s: card declined", BlockedByRetryDelay, time.Time{},
			at(time.Second), ""},
		{"lost workers", func(c *Circumstances) { c.Run.AvailableAt, c.Run.LeaseLosses = at(2*time.Second), 3 },
			"lost 3 workers in a row, runs again in 2s", BlockedByRetryDelay, time.Time{}, at(2 * time.Second),
			"it fails after 10 in a row"},
		{"lost with other runs, not due yet", func(c *Circumstances) {
			c.Run.AvailableAt, c.Run.Suspect = at(300*time.Millisecond), Suspect{Of: 7, Worker: "w0", At: now}
		}, "its worker w0 was lost, runs again now", BlockedByRetryDelay, time.Time{}, at(300 * time.Millisecond),
			"it is one of 7 suspects: worker w0 was lost while it held them, and one worker gets at most 3 of them at a time|the suspicion ends when it records a result, waits or ends, or has run for 10m"},
		{"a suspect that no worker may hold", func(c *Circumstances) {
			c.Run.AvailableAt, c.Run.Suspect = at(-2*time.Second),
				Suspect{Of: 7, Worker: "w0", At: at(-3 * time.Second)}
		}, "due for 2s, but it is one of 7 suspects of the loss of worker w0, and no free worker may hold another",
			BlockedByBusyWorkers, at(-2 * time.Second), time.Time{}, "at most 3 of them at a time"},
		{"the only suspect, in the delay of a loss", func(c *Circumstances) {
			c.Run.AvailableAt, c.Run.LeaseLosses = at(2*time.Second), 3
			c.Run.Suspect = Suspect{Of: 1, Worker: "w0", At: now, Again: true}
		}, "lost 3 workers in a row, runs again in 2s", BlockedByRetryDelay, time.Time{}, at(2 * time.Second),
			"no worker gets another suspect beside it"},
		{"lost workers, in the retry of a run", func(c *Circumstances) {
			c.Run.AvailableAt, c.Run.LeaseLosses = at(2*time.Second), 3
			c.Run.Failures, c.Run.RetryPolicy, c.Run.Error = 1, &RetryPolicy{MaximumAttempts: 5}, declined
		}, "lost 3 workers in a row, runs again in 2s", BlockedByRetryDelay, time.Time{}, at(2 * time.Second),
			"it fails after 10 in a row|before that its code failed 1 time: card declined"},
		{"run retry, when a worker had been lost", func(c *Circumstances) {
			c.Run.AvailableAt, c.Run.LeaseLosses = at(2*time.Second), 1
			c.Run.Failures, c.Run.RetryPolicy, c.Run.Error = 1, &RetryPolicy{MaximumAttempts: 5}, declined
		}, "retries the whole run, attempt 2 of 5 in 2s: card declined", BlockedByRetryDelay, time.Time{},
			at(2 * time.Second), ""},
		{"run retry, when workers had been lost", func(c *Circumstances) {
			c.Run.AvailableAt, c.Run.LeaseLosses = at(2*time.Second), 3
			c.Run.Failures, c.Run.RetryPolicy, c.Run.Error = 1, &RetryPolicy{MaximumAttempts: 5}, declined
			c.Steps = []Step{{Name: "charge", Status: StepPending, RetryAt: at(2 * time.Second), Error: declined,
				FinishedAt: at(-time.Second)}}
		}, "retries the whole run, attempt 2 of 5 in 2s: card declined", BlockedByRetryDelay, at(-time.Second),
			at(2 * time.Second), ""},
		{"timer", func(c *Circumstances) {
			c.Run.Status, c.Run.AvailableAt, c.Run.WaitingFor = RunSleeping, at(26*time.Hour), "timer:cool-off"
			c.Steps = []Step{{Name: "cool-off", Kind: StepSleep, Status: StepRunning, StartedAt: at(-time.Hour),
				WakeAt: at(26 * time.Hour)}}
		}, "sleeps in cool-off, wakes in 1d2h", BlockedByTimer, at(-time.Hour), at(26 * time.Hour), ""},
		{"signal with a limit", func(c *Circumstances) {
			c.Run.Status, c.Run.AvailableAt, c.Run.WaitingFor = RunSleeping, at(time.Hour), "signal:approval"
			c.Steps = []Step{{Name: "approval:2", Kind: StepSignal, SignalName: "approval", Status: StepRunning,
				StartedAt: at(-time.Hour), Awaited: 1}}
		}, "waits for signal approval, times out in 1h", BlockedBySignal, at(-time.Hour), at(time.Hour),
			"kagzi workflow signal"},
		{"child", func(c *Circumstances) {
			child := FirstID(at(-time.Minute))
			c.Run.Status, c.Run.AvailableAt, c.Run.WaitingFor = RunSleeping, time.Time{}, "child:"+child.String()
			c.Steps = []Step{{Name: "ship", Kind: StepChild, ChildRunID: child, Status: StepRunning,
				StartedAt: at(-time.Minute), Awaited: 1}}
		}, "waits for child run " + FirstID(at(-time.Minute)).String(), BlockedByChild, at(-time.Minute), time.Time{},
			"kagzi workflow explain"},
		{"paused", func(c *Circumstances) {
			c.Run.Paused, c.Run.AvailableAt = true, time.Time{}
			c.LastPause = &AuditEvent{At: at(-time.Hour), Actor: Actor{Name: "ada"}, Reason: "wrong price"}
		}, "paused by ada 1h ago: wrong price", BlockedByPause, at(-time.Hour), time.Time{}, "kagzi workflow resume"},
		{"key", func(c *Circumstances) {
			c.Run.Gated, c.Run.HeldAt, c.Run.AvailableAt = true, at(-time.Minute), time.Time{}
			c.Run.ConcurrencyKey, c.Run.ConcurrencyLimit, c.PlacesOfKey, c.AheadInLine = "customer-1", 2, 2, 1
		}, "waits for a slot of concurrency key customer-1, which allows 2 runs at a time", BlockedByKey,
			at(-time.Minute), time.Time{}, "2 places are taken, and 1 run is ahead"},
		{"key that no claim has met", func(c *Circumstances) {
			c.Run.ConcurrencyKey, c.Run.ConcurrencyLimit, c.PlacesOfKey = "customer-1", 2, 2
		}, "waits for a slot of concurrency key customer-1, which allows 2 runs at a time", BlockedByKey,
			at(-90 * time.Second), time.Time{}, "2 places are taken"},
		{"key of open runs", func(c *Circumstances) {
			c.Run.Gated, c.Run.HeldAt, c.Run.AvailableAt = true, at(-time.Minute), time.Time{}
			c.Run.ConcurrencyKey, c.Run.ConcurrencyLimit, c.Run.ConcurrencyScope = "customer-1", 2, ScopeOpen
			c.PlacesOfKey, c.HoldersOfKey = 2, []ID{FirstID(at(-time.Hour)), FirstID(at(-time.Minute))}
		}, "waits for a place of concurrency key customer-1: 2 of 2 taken by " + FirstID(at(-time.Hour)).String() +
			", " + FirstID(at(-time.Minute)).String(), BlockedByKey, at(-time.Minute), time.Time{}, "0 runs are ahead"},
		{"more places of a key than are named", func(c *Circumstances) {
			c.Run.ConcurrencyKey, c.Run.ConcurrencyLimit, c.Run.ConcurrencyScope = "customer-1", 3, ScopeOpen
			c.PlacesOfKey, c.HoldersOfKey = 3, []ID{FirstID(at(-time.Hour))}
		}, "waits for a place of concurrency key customer-1: 3 of 3 taken by " + FirstID(at(-time.Hour)).String() +
			" and 2 more", BlockedByKey, at(-90 * time.Second), time.Time{}, "3 places are taken by"},
		{"a place that it has", func(c *Circumstances) {
			c.Run.ConcurrencyKey, c.Run.ConcurrencyLimit, c.Run.ConcurrencyScope = "customer-1", 1, ScopeOpen
			c.Run.HasPlace, c.PlacesOfKey, c.Run.AvailableAt = true, 1, at(-time.Second)
		}, "due for 1s, and about to be handed to worker w1", BlockedByNothing, at(-time.Second), time.Time{}, ""},
		{"key with a slot", func(c *Circumstances) {
			c.Run.ConcurrencyKey, c.Run.ConcurrencyLimit, c.PlacesOfKey, c.Run.AvailableAt = "customer-1", 2, 1,
				at(-time.Second)
		}, "due for 1s, and about to be handed to worker w1", BlockedByNothing, at(-time.Second), time.Time{}, ""},
		{"start ahead", func(c *Circumstances) { c.Run.AvailableAt = at(time.Hour) },
			"starts in 1h", BlockedByStart, at(-time.Hour), at(time.Hour), ""},
		{"namespace disabled", func(c *Circumstances) { c.NamespaceEnabled = false },
			"due, but namespace default is disabled", BlockedByNamespace, at(-90 * time.Second), time.Time{},
			"kagzi namespace enable default"},
		{"asleep, namespace disabled", func(c *Circumstances) {
			c.NamespaceEnabled, c.Run.Status, c.Run.AvailableAt, c.Run.WaitingFor = false, RunSleeping, at(time.Hour),
				"timer:nap"
			c.Steps = []Step{{Name: "nap", Kind: StepSleep, Status: StepRunning, StartedAt: at(-time.Hour),
				WakeAt: at(time.Hour)}}
		}, "sleeps in nap, wakes in 1h", BlockedByTimer, at(-time.Hour), at(time.Hour),
			"namespace default is disabled; the run cannot continue until `kagzi namespace enable default`"},
		{"paused, because no build's code matches", func(c *Circumstances) {
			c.Run.Paused, c.Run.Divergences = true, diverged(at(-time.Hour))
		}, "paused, because its code has diverged from its history, 1h ago", BlockedByPause, at(-time.Hour), time.Time{},
			"build one calls bill, and does not call the recorded a, b, c, d, e, 1 more|restore the code|--accept-divergence"},
		{"due, and waits for another build", func(c *Circumstances) { c.Run.Divergences = diverged(at(-time.Hour)) },
			"waits for a worker of another build, because its code has diverged from its history", BlockedByNoWorker,
			at(-time.Hour), time.Time{}, "build one calls bill|every build in service"},
		{"paused, namespace disabled", func(c *Circumstances) {
			c.NamespaceEnabled, c.Run.Paused, c.Run.AvailableAt = false, true, time.Time{}
		},
			"paused", BlockedByPause, time.Time{}, time.Time{}, "kagzi workflow resume|kagzi namespace enable default"},
		{"no worker at all", func(c *Circumstances) { c.Workers = nil },
			"due for 1m30s, but no online worker serves type order in queue orders", BlockedByNoWorker,
			at(-90 * time.Second), time.Time{}, "no worker is connected to queue orders"},
		{"another type", func(c *Circumstances) {
			c.Workers = []Worker{worker(func(w *Worker) { w.Types = []string{"mail"} })}
		},
			"due for 1m30s, but no online worker serves type order in queue orders", BlockedByNoWorker,
			at(-90 * time.Second), time.Time{}, "worker w1 serves the queue, but not type order: it serves mail"},
		{"a requirement", func(c *Circumstances) { c.Run.Requirements = map[string]string{"gpu": "true"} },
			"due for 1m30s, but no online worker serves type order in queue orders with gpu=true", BlockedByNoWorker,
			at(-90 * time.Second), time.Time{}, "worker w1 does not offer gpu=true"},
		{"a requirement that any value meets", func(c *Circumstances) {
			c.Run.Requirements = map[string]string{"tool:jq": ""}
		},
			"due for 1m30s, but no online worker serves type order in queue orders with tool:jq", BlockedByNoWorker,
			at(-90 * time.Second), time.Time{}, "worker w1 does not offer tool:jq"},
		{"draining", func(c *Circumstances) {
			c.Workers = []Worker{worker(func(w *Worker) { w.Status = WorkerDraining })}
		},
			"due for 1m30s, but no online worker serves type order in queue orders", BlockedByNoWorker,
			at(-90 * time.Second), time.Time{}, "draining"},
		{"busy", func(c *Circumstances) { c.Workers = []Worker{worker(func(w *Worker) { w.Active = 2 })} },
			"due for 1m30s, but all workers that could take it are busy (1)", BlockedByBusyWorkers,
			at(-90 * time.Second), time.Time{}, "worker w1 runs 2 of 2"},
		{"queue limit", func(c *Circumstances) {
			c.Workers, c.RunningInQueue = []Worker{worker(func(w *Worker) { w.QueueLimit = 3 })}, 3
		}, "due for 1m30s, but all workers that could take it are busy (1)", BlockedByBusyWorkers,
			at(-90 * time.Second), time.Time{}, "3 of at most 3 runs of its queue"},
		{"free", func(c *Circumstances) { c.Run.AvailableAt = at(-time.Second) },
			"due for 1s, and about to be handed to worker w1", BlockedByNothing, at(-time.Second), time.Time{}, ""},
		{"free, beside a busy one", func(c *Circumstances) {
			c.Run.AvailableAt = at(-time.Second)
			c.Workers = []Worker{worker(func(w *Worker) { w.ID, w.Active = "w0", 2 }), worker(nil)}
		}, "due for 1s, and about to be handed to worker w1", BlockedByNothing, at(-time.Second), time.Time{}, ""},
		{"two are free", func(c *Circumstances) {
			c.Run.AvailableAt = at(-time.Second)
			c.Workers = []Worker{worker(func(w *Worker) { w.ID, w.Active = "w0", 2 }), worker(nil),
				worker(func(w *Worker) { w.ID = "w2" })}
		}, "due for 1s, and about to be handed to one of 2 workers", BlockedByNothing, at(-time.Second),
			time.Time{}, ""},
		{"the only worker is gone, and nobody knows yet", func(c *Circumstances) {
			c.Workers = []Worker{worker(func(w *Worker) { w.LastHeartbeatAt = at(-12 * time.Second) })}
		}, "due for 1m30s, but not yet claimed by 1 worker with a free slot, last heartbeat 12s ago", BlockedByNothing,
			at(-90 * time.Second), time.Time{},
			"worker w1: last heartbeat 12s ago|a dead worker goes offline when its lease expires"},
		{"one of two is busy, and so says nothing", func(c *Circumstances) {
			c.Workers = []Worker{worker(func(w *Worker) { w.Active = 2 }),
				worker(func(w *Worker) { w.ID, w.LastHeartbeatAt = "w2", at(-15*time.Second) }),
				worker(func(w *Worker) { w.ID, w.LastHeartbeatAt = "w3", at(-14*time.Second) })}
		}, "due for 1m30s, but not yet claimed by 2 workers with a free slot, last heartbeat 14s ago",
			BlockedByNothing, at(-90 * time.Second), time.Time{},
			"worker w2: last heartbeat 15s ago|worker w3: last heartbeat 14s ago"},
		{"deadline and grace", func(c *Circumstances) {
			c.Run.DeadlineAt, c.Run.CancelRequestedAt, c.Run.GraceUntil, c.Run.CancelReason = at(time.Hour),
				at(-time.Second), at(time.Minute), "enough"
			c.Run.AvailableAt = at(-time.Second)
		}, "due for 1s, and about to be handed to worker w1", BlockedByNothing, at(-time.Second), time.Time{},
			"cancellation was requested 1s ago: enough; the run is CANCELLED when its code returns, or in 1m at the latest|its deadline ends it in 1h"},
		{"a sleep that its deadline cuts short", func(c *Circumstances) {
			c.Run.Status, c.Run.WaitingFor, c.Run.AvailableAt, c.Run.DeadlineAt = RunSleeping, "timer:nap",
				at(time.Hour), at(2*time.Minute)
			c.Steps = []Step{{Name: "nap", Kind: StepSleep, Status: StepRunning, StartedAt: at(-time.Second),
				WakeAt: at(time.Hour)}}
		}, "sleeps in nap, wakes in 1h", BlockedByTimer, at(-time.Second), at(2 * time.Minute),
			"its deadline ends it in 2m"},
		{"a sleep that is over before its deadline", func(c *Circumstances) {
			c.Run.Status, c.Run.WaitingFor, c.Run.AvailableAt, c.Run.DeadlineAt = RunSleeping, "timer:nap",
				at(time.Minute), at(2*time.Minute)
			c.Steps = []Step{{Name: "nap", Kind: StepSleep, Status: StepRunning, StartedAt: at(-time.Second),
				WakeAt: at(time.Minute)}}
		}, "sleeps in nap, wakes in 1m", BlockedByTimer, at(-time.Second), at(time.Minute),
			"its deadline ends it in 2m"},
		{"paused, with a deadline", func(c *Circumstances) {
			c.Run.Paused, c.Run.PausedAt, c.Run.DeadlineAt = true, at(-time.Minute), at(2*time.Minute)
		}, "paused", BlockedByPause, time.Time{}, time.Time{},
			"its deadline does not run while it is paused; it has 3m left"},
		{"paused by an older version, with a deadline", func(c *Circumstances) {
			c.Run.Paused, c.Run.DeadlineAt = true, at(2*time.Minute)
		}, "paused", BlockedByPause, time.Time{}, time.Time{}, "its deadline does not run while it is paused"},
		{"pausing", func(c *Circumstances) {
			c.Run.Status, c.Run.WorkerID, c.Run.StartedAt, c.Run.Pausing = RunRunning, "w1", at(-time.Hour), true
			c.Steps = []Step{{Name: "ship", Kind: StepFunction, Status: StepRunning, Attempt: 1,
				StartedAt: at(-time.Minute)}}
			c.LastPause = &AuditEvent{At: at(-time.Second), Actor: Actor{Name: "ada"}, Reason: "wrong price"}
		}, "pausing, as soon as what runs is recorded: runs step ship on worker w1 for 1m", BlockedByNothing,
			at(-time.Minute), time.Time{},
			"the pause was asked for by ada 1s ago: wrong price|`kagzi workflow pause --now"},
		{"no worker takes it, and its grace ends first", func(c *Circumstances) {
			c.Workers, c.Run.DeadlineAt, c.Run.CancelRequestedAt, c.Run.GraceUntil = nil, at(time.Hour),
				at(-time.Second), at(time.Minute)
		}, "due for 1m30s, but no online worker serves type order in queue orders", BlockedByNoWorker,
			at(-90 * time.Second), at(time.Minute), "or in 1m"},
		{"on a worker whose lease is over, with a deadline", func(c *Circumstances) {
			c.Run.Status, c.Run.WorkerID, c.Run.StartedAt, c.WorkerLease, c.Run.DeadlineAt = RunRunning, "w1",
				at(-time.Minute), 30*time.Second, at(time.Hour)
			c.Workers[0].LastHeartbeatAt = at(-40 * time.Second)
		}, "runs on worker w1", BlockedByNothing, at(-time.Minute), time.Time{},
			"another worker gets the run within seconds|its deadline ends it in 1h"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := Circumstances{Run: run, Workers: []Worker{worker(nil)}, NamespaceEnabled: true}
			if test.change != nil {
				test.change(&c)
			}
			got := Explain(c, now)
			if got.Summary != test.summary {
				t.Errorf("summary\n  got  %s\n  want %s", got.Summary, test.summary)
			}
			if got.Blocker != test.blocker || !got.Since.Equal(test.since) || !got.NextAt.Equal(test.next) {
				t.Errorf("blocker %d since %v next %v, want %d, %v, %v", got.Blocker, got.Since, got.NextAt,
					test.blocker, test.since, test.next)
			}
			for detail := range strings.SplitSeq(test.detail, "|") {
				if detail != "" && !slices.ContainsFunc(got.Details, func(d string) bool {
					return strings.Contains(d, detail)
				}) {
					t.Errorf("details %q lack %q", got.Details, detail)
				}
			}
		})
	}
}
