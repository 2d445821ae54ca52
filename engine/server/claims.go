package server

import (
	"context"

	"google.golang.org/grpc"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/auth"
)

// This file is for doors whose workers know neither their lease tokens nor what they have recorded.

// Claim is a run as a worker that may hold it sees it.
type Claim struct {
	Run   engine.Run
	Token string        // of the lease under which the worker holds the run; empty: it does not
	Steps []engine.Step // the latest attempt of each step, in sequence order
	PID   int           // with a Token: the pid with which the worker registered last
}

// Identity names a worker. Only the instance that registered under an id has the id's runs.
type Identity struct {
	Namespace string
	Worker    string
	Instance  string
}

// Claim returns a run for a worker, with its lease if the worker holds it. The caller's key must be one
// for this worker; it need not be one that reads runs. So the caller must not show a run to a worker
// that does not hold it.
func (d Direct) Claim(ctx context.Context, who Identity, run engine.ID) (Claim, error) {
	s := d.server
	ctx, err := d.asWorker(ctx, who)
	if err != nil {
		return Claim{}, s.errors.Status(err)
	}
	c, err := s.claimOf(ctx, who, run)
	return c, s.errors.Status(err)
}

// WorkerOf returns a registered worker with the runs that it holds, or an error of engine.KindNotFound if
// the id is unknown or belongs to another instance.
func (d Direct) WorkerOf(ctx context.Context, who Identity) (engine.Worker, []engine.Held, error) {
	s := d.server
	ctx, err := d.asWorker(ctx, who)
	if err != nil {
		return engine.Worker{}, nil, s.errors.Status(err)
	}
	w, err := s.registered(ctx, who)
	if err != nil {
		return engine.Worker{}, nil, s.errors.Status(err)
	}
	held, err := s.store.HeldBy(ctx, who.Worker)
	return w, held, s.errors.Status(err)
}

// PIDOf returns the pid with which a worker registered last, or the error of WorkerOf.
func (d Direct) PIDOf(ctx context.Context, who Identity) (int, error) {
	ctx, err := d.asWorker(ctx, who)
	if err != nil {
		return 0, d.server.errors.Status(err)
	}
	w, err := d.server.registered(ctx, who)
	return w.PID, d.server.errors.Status(err)
}

// registered returns the worker that an instance has registered.
func (s *Server) registered(ctx context.Context, who Identity) (engine.Worker, error) {
	w, err := s.store.GetWorker(ctx, who.Worker)
	if err == nil && !who.is(&w) {
		err = &engine.Error{Kind: engine.KindNotFound, Subject: "worker", SubjectID: who.Worker,
			Message: "no worker " + who.Worker}
	}
	return w, err
}

func (i Identity) is(w *engine.Worker) bool {
	return w.Namespace == i.Namespace && w.InstanceID == i.Instance
}

// asWorker admits a caller whose key is one for the worker.
func (d Direct) asWorker(ctx context.Context, who Identity) (context.Context, error) {
	s := d.server
	const method = "/kagzi.v1.WorkerService/CompleteWorkflow"
	ctx = grpc.NewContextWithServerTransportStream(ctx, named(method))
	ctx, err := s.guard.Admit(ctx, s.guard.MethodOf(method))
	if err != nil {
		return ctx, err
	}
	if key := auth.CallerOf(ctx); key != nil && !key.Reaches(who.Namespace) {
		return ctx, &engine.Error{Kind: engine.KindDenied, Subject: "key",
			Message: "the API key " + key.Name + " is not for the namespace " + who.Namespace}
	}
	return ctx, auth.MayActAs(ctx, who.Worker)
}

// rereads limits how often a run is read again because its lease changed meanwhile.
const rereads = 10

// claimOf reads a run and its lease. The run may end or be claimed again in between, so the lease counts only
// if it was current before and after the run was read; otherwise the run is read again.
func (s *Server) claimOf(ctx context.Context, who Identity, run engine.ID) (Claim, error) {
	for n := 0; ; n++ {
		c, changed, err := s.readClaim(ctx, who, run)
		if err != nil || !changed || n == rereads {
			return c, err
		}
	}
}

// readClaim reads a run and its lease once. changed says that the lease ended while the run was read.
func (s *Server) readClaim(ctx context.Context, who Identity, run engine.ID) (c Claim, changed bool, err error) {
	before, err := s.leaseToken(ctx, who.Namespace, run)
	if err != nil {
		return c, false, err
	}
	if c.Run, err = s.store.GetRun(ctx, who.Namespace, run); err != nil {
		return c, false, err
	}
	for from := int64(0); ; {
		steps, next, err := s.store.GetHistory(ctx, engine.HistoryParams{Namespace: who.Namespace, RunID: run,
			From: from, Bytes: engine.HistoryBytes})
		if err != nil {
			return c, false, err
		}
		if c.Steps = append(c.Steps, steps...); next == 0 {
			break
		}
		from = next
	}
	if before.IsZero() || c.Run.WorkerID != who.Worker || c.Run.Status != engine.RunRunning {
		return c, false, nil
	}
	w, err := s.store.GetWorker(ctx, who.Worker)
	if engine.KindOf(err) == engine.KindNotFound || err == nil && !who.is(&w) {
		return c, false, nil
	}
	if err != nil {
		return c, false, err
	}
	after, err := s.leaseToken(ctx, who.Namespace, run)
	if err == nil && after == before {
		c.Token, c.PID = after.Wire(), w.PID
	}
	return c, err == nil && after != before, err
}

// leaseToken returns the token of a run's lease; zero if nobody holds the run.
func (s *Server) leaseToken(ctx context.Context, namespace string, run engine.ID) (engine.Token, error) {
	l, err := s.store.CurrentLease(ctx, namespace, run)
	if engine.KindOf(err) == engine.KindLeaseLost {
		return engine.Token{}, nil
	}
	return l.Token, err
}
