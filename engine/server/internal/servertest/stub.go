package servertest

import (
	"context"
	"errors"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// StubStore answers the few calls that tests need; every other call panics.
type StubStore struct {
	engine.Store
	OnGetRun func() (engine.Run, error)
}

func (StubStore) Now() time.Time { return engine.Micros(time.Now()) }

func (StubStore) Uncertainty() time.Duration { return 0 }

func (StubStore) Health(context.Context) error { return nil }

func (s StubStore) GetRun(context.Context, string, engine.ID) (engine.Run, error) {
	if s.OnGetRun == nil {
		return engine.Run{}, engine.ErrNotFound
	}
	return s.OnGetRun()
}

func (StubStore) Describe(context.Context) (engine.Description, error) {
	return engine.Description{Backend: "stub"}, nil
}

func (StubStore) Keyring(context.Context) ([]engine.APIKey, error) { return nil, nil }

func (StubStore) NoteRefusal(context.Context, engine.AuditEvent) error { return nil }

func (StubStore) RegisterWorker(_ context.Context, p engine.RegisterWorkerParams) (engine.Worker, error) {
	p.Worker.Status = engine.WorkerOnline
	return p.Worker, nil
}

var ErrBroken = errors.New("select * from secrets: connection to /var/lib/db broken")
