package storelogic

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func id(n byte) engine.ID { return engine.ID{15: n} }

// memory is a Tx over maps. It implements only what these tests need; the rest panics. It records
// each change.
type memory struct {
	Tx
	t             *testing.T
	runs          map[engine.ID]Run
	steps         []engine.Step
	signals       []engine.Signal
	schedule      *engine.Schedule
	keys          []engine.APIKey
	audit         []engine.AuditEvent
	notifications []engine.Notification
	log           []string
}

func newMemory(t *testing.T, runs ...Run) *memory {
	m := &memory{t: t, runs: map[engine.ID]Run{}}
	for _, r := range runs {
		m.runs[r.ID] = r
	}
	return m
}

// aRun returns a run that is due, aHeldRun one that is held under the token of its own id.
func aRun(n byte) Run {
	return Run{Run: engine.Run{ID: id(n), Namespace: "default", Queue: "q", Type: "t", Status: engine.RunPending,
		Attempts: 1, CreatedAt: noon, AvailableAt: noon}}
}

func aHeldRun(n byte) Run {
	r := aRun(n)
	r.Status, r.AvailableAt, r.Token, r.Holder, r.WorkerID, r.WasHeld = engine.RunRunning, time.Time{},
		engine.Token(id(n)), "w", "w", true
	return r
}

func leaseOf(r Run) engine.Lease { return engine.Lease{RunID: r.ID, Token: engine.Token(r.ID)} }

func (m *memory) note(format string, args ...any) {
	m.log = append(m.log, fmt.Sprintf(format, args...))
}

// ids returns the ids of the runs that the filter accepts, in order.
func (m *memory) ids(take func(Run) bool) (ids []engine.ID) {
	for id, r := range m.runs {
		if take(r) {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b engine.ID) int { return bytes.Compare(a[:], b[:]) })
	return ids
}

func (m *memory) Run(_ string, id engine.ID) (*Run, error) {
	r, ok := m.runs[id]
	if !ok {
		return nil, nil
	}
	return &r, nil
}

func (m *memory) SaveRun(r *Run) error {
	m.note("save %d %s", r.ID[15], r.Status)
	m.runs[r.ID] = *r
	return nil
}

func (m *memory) InsertRun(start *engine.StartRun) error {
	for _, r := range m.runs {
		if r.ExternalID != "" && r.ExternalID == start.ExternalID && !r.Status.Ended() {
			m.t.Errorf("run %s starts while %s still holds its external id", start.ID, r.ID)
		}
	}
	m.note("start %s", start.Type)
	m.runs[start.ID] = Run{Run: start.Run, TiedTo: start.Tied()}
	return nil
}

func (m *memory) Payloads(id engine.ID) (engine.Payload, engine.Payload, error) {
	return m.runs[id].Input, m.runs[id].Output, nil
}

func (m *memory) OpenChildren(parent engine.ID) ([]engine.ID, error) {
	return m.ids(func(r Run) bool {
		return r.ParentRunID == parent && !r.Status.Ended() && r.ParentClose > engine.CloseAbandon
	}), nil
}

func (m *memory) SetParent(id, parent, step engine.ID) error {
	r := m.runs[id]
	r.ParentRunID, r.ParentStepID = parent, step
	m.runs[id] = r
	return nil
}

func (m *memory) FirstGated(_, _, key string) ([]engine.ID, error) {
	gated := m.ids(func(r Run) bool { return r.Gated && r.ConcurrencyKey == key })
	return gated[:min(1, len(gated))], nil
}

func (m *memory) Expired(now time.Time, limit int) ([]engine.ID, time.Time, error) {
	expired := m.ids(func(r Run) bool {
		return !r.Status.Ended() && !r.ExpiresAt().IsZero() && !r.ExpiresAt().After(now)
	})
	return expired[:min(limit, len(expired))], time.Time{}, nil
}

func (m *memory) HandlerQueue(string, string) (string, error)               { return "", nil }
func (m *memory) Namespace(string) (*engine.Namespace, error)               { return nil, nil }
func (m *memory) Receipt(engine.ID, engine.Token) (Receipt, error)          { return Receipt{}, nil }
func (m *memory) LeaveReceipt(engine.ID, engine.Token, Receipt) error       { return nil }
func (m *memory) InterruptSteps(engine.ID, engine.Failure, time.Time) error { return nil }
func (m *memory) WakeSteps(engine.ID, time.Time) error                      { return nil }
func (m *memory) Notify(n engine.Notification) {
	m.notifications = append(m.notifications, n)
}
func (m *memory) ReportSideEffects(*engine.SideEffects) {}

func (m *memory) InsertAudit(e engine.AuditEvent) error {
	m.audit = append(m.audit, e)
	m.note("audit")
	return nil
}

func (m *memory) EndSteps(run engine.ID, f engine.Failure, _ time.Time) error {
	for i := range m.steps {
		if s := &m.steps[i]; s.RunID == run && s.Open() {
			if s.Status == engine.StepRunning {
				s.Error = &f
			}
			s.Status = engine.StepFailed
		}
	}
	return nil
}

func (m *memory) find(match func(engine.Step) bool) *engine.Step {
	for _, s := range m.steps {
		if match(s) {
			return &s
		}
	}
	return nil
}

func (m *memory) Attempt(run engine.ID, ref engine.StepRef) (*engine.Step, error) {
	return m.find(func(s engine.Step) bool {
		return s.RunID == run && (s.ID == ref.ID || ref.Name != "" && s.Name == ref.Name && s.Latest)
	}), nil
}

func (m *memory) NextOfGroup(run engine.ID, group int64) (*engine.Step, error) {
	return m.find(func(s engine.Step) bool { return s.RunID == run && s.Open() && s.Awaited == group }), nil
}

func (m *memory) Waiting(run engine.ID) (steps []engine.Step, err error) {
	for _, s := range m.steps {
		if s.RunID == run && (s.Open() || s.Awaited != 0) {
			steps = append(steps, s)
		}
	}
	return steps, nil
}

func (m *memory) SaveStep(step *engine.Step) error {
	for i := range m.steps {
		if m.steps[i].ID == step.ID {
			m.steps[i] = *step
		}
	}
	m.note("step %s %s", step.Name, step.Status)
	return nil
}

func (m *memory) InsertSteps(steps []engine.Step) error {
	m.steps = append(m.steps, steps...)
	m.note("steps")
	return nil
}

func (m *memory) SignalByID(engine.ID, string) (*engine.Signal, error) { return nil, nil }

func (m *memory) CountSignals(engine.ID) (int, int64, error) {
	return len(m.signals), int64(len(m.signals)), nil
}

func (m *memory) NextSignal(_ engine.ID, name string) (*engine.Signal, error) {
	for _, s := range m.signals {
		if s.Name == name && s.StepName == "" {
			return &s, nil
		}
	}
	return nil, nil
}

func (m *memory) ConsumeSignal(_ engine.ID, sequence int64, step string) error {
	for i := range m.signals {
		if m.signals[i].Sequence == sequence {
			m.signals[i].StepName = step
		}
	}
	return nil
}

func (m *memory) SettleStep(step engine.ID, settled int64) error {
	m.note("settle %d as %d", step[15], settled)
	return nil
}

func (m *memory) SetAwaited([]engine.ID, int64) error { return nil }

func (m *memory) Unconsumed(engine.ID) ([]engine.Signal, error) { return nil, nil }
func (m *memory) MeasureUnconsumed(engine.ID) (int64, error)    { return 0, nil }
func (m *memory) MoveSignals(_, _ engine.ID) error              { return nil }
func (m *memory) SignalInChain(engine.ID, string) (bool, error) { return false, nil }

func (m *memory) InsertSignals(signals []engine.Signal) error {
	m.signals = append(m.signals, signals...)
	m.note("signal")
	return nil
}

func (m *memory) Schedule(string, string) (*engine.Schedule, error) {
	if m.schedule == nil {
		return nil, nil
	}
	s := *m.schedule
	return &s, nil
}

func (m *memory) SaveSchedule(s *engine.Schedule) error {
	m.schedule = s
	return nil
}

func (m *memory) OpenOf(schedule, _ engine.ID) (int, error) {
	return len(m.ids(func(r Run) bool { return r.ScheduleID == schedule.String() && !r.Status.Ended() })), nil
}

func (m *memory) InsertFire(engine.ID, time.Time, engine.ID, time.Time) (bool, error) {
	return true, nil
}

func (m *memory) findKey(match func(engine.APIKey) bool) (*engine.APIKey, error) {
	for _, k := range m.keys {
		if match(k) {
			return &k, nil
		}
	}
	return nil, nil
}

func (m *memory) APIKey(id engine.ID) (*engine.APIKey, error) {
	return m.findKey(func(k engine.APIKey) bool { return k.ID == id })
}

func (m *memory) APIKeyNamed(name string) (*engine.APIKey, error) {
	return m.findKey(func(k engine.APIKey) bool { return k.Name == name && k.RevokedAt.IsZero() })
}

func (m *memory) CountAPIKeys() (all, lasting int, err error) {
	for _, k := range m.keys {
		if !k.RevokedAt.IsZero() {
			continue
		}
		all++
		if k.Role == engine.RoleAdmin && len(k.Namespaces) == 0 && k.ExpiresAt.IsZero() {
			lasting++
		}
	}
	return all, lasting, nil
}

func (m *memory) InsertAPIKey(k *engine.APIKey) error {
	m.keys = append(m.keys, *k)
	m.note("key %s", k.Name)
	return nil
}

func (m *memory) RevokeAPIKey(id engine.ID, at time.Time) error {
	for i := range m.keys {
		if m.keys[i].ID == id {
			m.keys[i].RevokedAt = at
		}
	}
	m.note("revoke %d", id[15])
	return nil
}

// saves returns how often a run was written.
func (m *memory) saves(n byte) (times int) {
	for _, line := range m.log {
		var run int
		var status string
		if k, _ := fmt.Sscanf(line, "save %d %s", &run, &status); k == 2 && run == int(n) {
			times++
		}
	}
	return times
}
