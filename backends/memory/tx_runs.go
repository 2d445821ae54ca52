package memory

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/kagzi/kagzi/backends/internal/storelogic"
	"github.com/kagzi/kagzi/engine"
)

// The files tx_*.go implement storelogic.Tx; its comments describe the methods.

var _ storelogic.Tx = (*tx)(nil)

func (t *tx) Run(namespace string, id engine.ID) (*storelogic.Run, error) {
	r := t.db.runs[id]
	if r == nil || namespace != "" && r.Namespace != namespace {
		return nil, nil
	}
	run := &storelogic.Run{Run: r.Run, FinalToken: r.FinalToken, TiedTo: r.TiedTo, Settled: r.Settled}
	run.Input, run.Output = engine.Payload{}, engine.Payload{}
	if l := r.Lease; l != nil {
		run.Token, run.Holder, run.ClaimedAt, run.Progressed, run.WasHeld = l.Token, l.Holder, l.ClaimedAt,
			l.Progressed, true
	}
	return run, nil
}

func (t *tx) PausesRuns(worker string) (bool, error) {
	w := t.db.workers[worker]
	return w != nil && w.PausesRuns, nil
}

func (t *tx) Payloads(id engine.ID) (input, output engine.Payload, err error) {
	if r := t.db.runs[id]; r != nil {
		input, output = r.Input, r.Output
	}
	return input, output, nil
}

func (t *tx) SaveRun(run *storelogic.Run) error {
	r := t.change(run.ID)
	if r == nil {
		return fmt.Errorf("save run %s: there is no such run", run.ID)
	}
	input, output := r.Input, r.Output
	r.Run, r.FinalToken, r.TiedTo, r.Settled = run.Run, run.FinalToken, run.TiedTo, run.Settled
	r.Input, r.Output = input, output
	if run.Ending && run.ContinuedAs.IsZero() {
		r.UnreadSignals, _, _ = t.CountSignals(run.ID)
	}
	switch {
	case !run.Token.IsZero():
		r.Lease = &Lease{Token: run.Token, Holder: run.Holder, ClaimedAt: run.ClaimedAt, Progressed: run.Progressed}
	case run.WasHeld:
		r.Lease = nil
	}
	return nil
}

func (t *tx) SaveOutput(id engine.ID, output engine.Payload) error {
	t.change(id).Output = output
	return nil
}

func (t *tx) InsertRun(start *engine.StartRun) error {
	if !t.insertRun(start) {
		return fmt.Errorf("run %s cannot be made: its id or external id is taken", start.ID)
	}
	return nil
}

// insertRun makes the run unless a rule prevents it.
func (t *tx) insertRun(start *engine.StartRun) bool {
	t.useNamespace(start.Namespace, start.CreatedAt)
	if t.db.runs[start.ID] != nil {
		return false
	}
	if start.RequestID != "" {
		if id, _ := t.Requested(start.Namespace, start.RequestID); !id.IsZero() {
			return false
		}
	}
	if start.ExternalID != "" && start.Origin == engine.OriginUser &&
		t.external(start.Namespace, start.ExternalID, start.Reuse == engine.ReuseNever) != nil {
		return false
	}
	run := start.NewRun()
	t.putRun(run.ID, &Run{Run: run, TiedTo: run.Tied()})
	return true
}

func (t *tx) ImportRun(r *storelogic.Run) error {
	t.useNamespace(r.Namespace, r.CreatedAt)
	t.putRun(r.ID, &Run{Run: r.Run, TiedTo: r.TiedTo, Settled: r.Settled})
	return nil
}

// external returns the user's run with the external id: the open one or, with ended ones, the
// newest.
func (t *tx) external(namespace, externalID string, ended bool) (found *Run) {
	for _, r := range t.find(func(r *Run) bool {
		return r.Namespace == namespace && r.ExternalID == externalID && r.Origin == engine.OriginUser &&
			(ended || !r.Status.Ended())
	}) {
		found = r
	}
	return found
}

func (t *tx) OpenExternal(namespace, externalID string) (engine.ID, error) {
	if r := t.external(namespace, externalID, false); r != nil && externalID != "" {
		return r.ID, nil
	}
	return engine.ID{}, nil
}

func (t *tx) Requested(namespace, requestID string) (engine.ID, error) {
	if requestID == "" {
		return engine.ID{}, nil
	}
	if q, ok := t.db.requests[name{namespace, requestID}]; ok {
		return q.run, nil
	}
	if q, ok := t.db.past[name{namespace, requestID}]; ok {
		return q.run, nil
	}
	return t.first(func(r *Run) bool { return r.Namespace == namespace && r.RequestID == requestID }), nil
}

func (t *tx) LeaveRequest(start *engine.StartRun, answer engine.ID) error {
	put(t, t.db.requests, name{start.Namespace, start.RequestID},
		request{answer, start, engine.Micros(start.CreatedAt)})
	return nil
}

func (t *tx) LeftRequest(namespace, requestID string) (*engine.StartRun, error) {
	if q, ok := t.db.requests[name{namespace, requestID}]; ok {
		return q.start, nil
	}
	return t.db.past[name{namespace, requestID}].start, nil
}

func (t *tx) OpenRetry(id engine.ID) (engine.ID, error) {
	return t.first(func(r *Run) bool { return !r.Status.Ended() && t.lifeOf(r, id) }), nil
}

// lifeOf says whether run id was retried as r, or as a run that r continues.
func (t *tx) lifeOf(r *Run, id engine.ID) bool {
	for range len(t.db.runs) { // imported runs may form a circle
		if r == nil || r.RetriedFrom == id {
			break
		}
		r = t.db.runs[r.ContinuedFrom]
	}
	return r != nil && r.RetriedFrom == id
}

func (t *tx) OpenChildren(parent engine.ID) ([]engine.ID, error) {
	return t.ids(func(r *Run) bool {
		return r.ParentRunID == parent && !r.Status.Ended() && r.ParentClose > engine.CloseAbandon
	}), nil
}

func (t *tx) SetParent(id, parent, step engine.ID) error {
	r := t.change(id)
	r.ParentRunID, r.ParentStepID = parent, step
	return nil
}

// lane returns a key for runs that share a queue, type, requirements and priority.
func (r *Run) lane() string {
	return fmt.Sprint(r.Namespace, "\x00", r.Queue, "\x00", r.Type, "\x00", r.Requirements, "\x00", r.Priority)
}

func (t *tx) FirstGated(namespace, workflowType, key string) ([]engine.ID, error) {
	gated := t.find(func(r *Run) bool {
		return r.Gated && r.Namespace == namespace && r.Type == workflowType && r.ConcurrencyKey == key
	})
	slices.SortStableFunc(gated, func(a, b *Run) int { return a.HeldAt.Compare(b.HeldAt) })
	taken := len(t.placesOf(&engine.Run{Namespace: namespace, Type: workflowType, ConcurrencyKey: key}))
	type line struct {
		lane  string
		limit int
	}
	var first []engine.ID
	seen := map[line]bool{}
	for _, r := range gated {
		l := line{r.lane(), r.ConcurrencyLimit}
		if !seen[l] && max(l.limit, 1) > taken {
			first = append(first, r.ID)
		}
		seen[l] = true
	}
	return first, nil
}

func (t *tx) Expired(now time.Time, limit int) (ids []engine.ID, next time.Time, err error) {
	expiring := t.find(func(r *Run) bool { return !r.Status.Ended() && !r.ExpiresAt().IsZero() })
	slices.SortStableFunc(expiring, func(a, b *Run) int { return a.ExpiresAt().Compare(b.ExpiresAt()) })
	for _, r := range expiring {
		if len(ids) == limit || r.ExpiresAt().After(now) {
			return ids, r.ExpiresAt(), nil
		}
		ids = append(ids, r.ID)
	}
	return ids, next, nil
}

func (t *tx) LeftBehind(now time.Time, limit int) (left []storelogic.Left, next time.Time, err error) {
	freeAt := func(r *Run) time.Time {
		w := t.db.workers[r.Lease.Holder]
		if w.Reason == engine.OfflineLost {
			return w.LastHeartbeatAt.Add(r.Timeouts.Heartbeat)
		}
		return w.DeregisteredAt
	}
	held := t.find(func(r *Run) bool {
		return r.Lease != nil && t.db.workers[r.Lease.Holder] != nil &&
			t.db.workers[r.Lease.Holder].Status == engine.WorkerOffline
	})
	slices.SortStableFunc(held, func(a, b *Run) int { return freeAt(a).Compare(freeAt(b)) })
	for _, r := range held {
		if len(left) == limit || freeAt(r).After(now) {
			return left, freeAt(r), nil
		}
		left = append(left, storelogic.Left{RunID: r.ID,
			Lost: t.db.workers[r.Lease.Holder].Reason == engine.OfflineLost})
	}
	return left, next, nil
}

func (t *tx) Receipt(run engine.ID, token engine.Token) (storelogic.Receipt, error) {
	return t.db.runs[run].Receipts[token], nil
}

func (t *tx) LeaveReceipt(run engine.ID, token engine.Token, rec storelogic.Receipt) error {
	r := t.change(run)
	if r.Receipts == nil {
		r.Receipts = map[engine.Token]storelogic.Receipt{}
	}
	r.Receipts[token] = rec
	return nil
}

func (t *tx) signal(run engine.ID, take func(*engine.Signal) bool) *engine.Signal {
	for _, s := range t.db.runs[run].Signals {
		if take(&s) {
			return &s
		}
	}
	return nil
}

func (t *tx) NextSignal(run engine.ID, signal string) (*engine.Signal, error) {
	return t.signal(run, func(s *engine.Signal) bool { return s.Name == signal && s.StepName == "" }), nil
}

func (t *tx) SignalByID(run engine.ID, id string) (*engine.Signal, error) {
	return t.signal(run, func(s *engine.Signal) bool { return s.SignalID == id && id != "" }), nil
}

func (t *tx) Unconsumed(run engine.ID) (signals []engine.Signal, err error) {
	for _, s := range t.db.runs[run].Signals {
		if s.StepName == "" {
			signals = append(signals, s)
		}
	}
	return signals, nil
}

func (t *tx) CountSignals(run engine.ID) (waiting int, last int64, err error) {
	for _, s := range t.db.runs[run].Signals {
		if s.StepName == "" {
			waiting++
		}
		last = max(last, s.Sequence)
	}
	return waiting, last, nil
}

func (t *tx) InsertSignals(signals []engine.Signal) error {
	for _, s := range signals {
		r := t.change(s.RunID)
		r.Signals = append(r.Signals, s)
		slices.SortFunc(r.Signals, func(a, b engine.Signal) int { return cmp.Compare(a.Sequence, b.Sequence) })
	}
	return nil
}

func (t *tx) MeasureUnconsumed(run engine.ID) (bytes int64, err error) {
	for _, s := range t.db.runs[run].Signals {
		if s.StepName == "" {
			bytes += int64(s.Payload.Size())
		}
	}
	return bytes, nil
}

func (t *tx) MoveSignals(from, to engine.ID) error {
	old, next := t.change(from), t.change(to)
	var consumed []engine.Signal
	for _, s := range old.Signals {
		if s.StepName != "" {
			consumed = append(consumed, s)
			continue
		}
		s.RunID = to
		next.Signals = append(next.Signals, s)
	}
	old.Signals = consumed
	return nil
}

func (t *tx) SignalInChain(first engine.ID, id string) (bool, error) {
	for _, r := range t.db.runs {
		if r.FirstRunID != first {
			continue
		}
		if s := t.signal(r.ID, func(s *engine.Signal) bool { return s.SignalID == id && id != "" }); s != nil {
			return true, nil
		}
	}
	return false, nil
}

func (t *tx) ReturnSignals(run engine.ID, steps []string) error {
	signals := t.change(run).Signals
	for i := range signals {
		if slices.Contains(steps, signals[i].StepName) {
			signals[i].StepName = ""
		}
	}
	return nil
}

func (t *tx) ConsumeSignal(run engine.ID, sequence int64, step string) error {
	signals := t.change(run).Signals
	for i := range signals {
		if signals[i].Sequence == sequence {
			signals[i].StepName = step
		}
	}
	return nil
}
