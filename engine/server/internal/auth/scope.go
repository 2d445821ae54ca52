package auth

import (
	"context"
	"fmt"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// A scope refuses a request that is about what is not the key's. The namespace that a request names
// decides, and where it names an id alone, the namespace of the row. What is refused by name is
// refused with the same words whether the namespace exists or not; what is refused by id is
// answered as an id that does not exist.
type scope func(g *Guard, ctx context.Context, key *Key, request any) error

// ofNothing is of requests that are about no namespace.
func ofNothing(*Guard, context.Context, *Key, any) error { return nil }

// whereRead is of requests whose handler asks the key, because what it is about is known only there.
func whereRead(*Guard, context.Context, *Key, any) error { return nil }

// ofAll is of requests that are about all namespaces.
func ofAll(_ *Guard, _ context.Context, key *Key, _ any) error {
	if key.ReachesAll() {
		return nil
	}
	return denied("this is about all namespaces: it takes an admin's key that is for all, and %q is not", key.Name)
}

// ofNamespace is of requests that name one namespace, empty meaning "default".
func ofNamespace(_ *Guard, _ context.Context, key *Key, request any) error {
	r, ok := request.(interface{ GetNamespace() string })
	if !ok {
		return fmt.Errorf("%T names no namespace", request) // a defect of the table
	}
	return key.enters(r.GetNamespace())
}

// enters refuses a namespace that is not the key's.
func (k *Key) enters(namespace string) error {
	namespace = wire.OrDefault(namespace)
	if k.Reaches(namespace) {
		return nil
	}
	return denied("the API key %q is not for the namespace %q", k.Name, wire.Cut(namespace))
}

func ofEachStart(_ *Guard, _ context.Context, key *Key, request any) error {
	for _, start := range request.(*kagziv1.StartWorkflowsRequest).Requests {
		if err := key.enters(start.GetNamespace()); err != nil {
			return err
		}
	}
	return nil
}

func ofFilter(_ *Guard, _ context.Context, key *Key, request any) error {
	return key.enters(request.(*kagziv1.BulkWorkflowsRequest).GetFilter().GetNamespace())
}

func ofChild(_ *Guard, _ context.Context, key *Key, request any) error {
	return key.enters(request.(*kagziv1.StartChildRequest).GetChild().GetNamespace())
}

// ofNamespaceOrAll is of requests that mean all namespaces when they name none.
func ofNamespaceOrAll(g *Guard, ctx context.Context, key *Key, request any) error {
	var namespace *string
	switch r := request.(type) {
	case *kagziv1.GetStatsRequest:
		namespace = r.Namespace
	case *kagziv1.WatchStatsRequest:
		namespace = r.Namespace
	}
	if namespace == nil {
		return ofAll(g, ctx, key, request)
	}
	return key.enters(*namespace)
}

// ofNamespaceOrKeys is of requests for the audit log, that of the keys when they name no namespace.
func ofNamespaceOrKeys(g *Guard, ctx context.Context, key *Key, request any) error {
	namespace := request.(*kagziv1.ListAuditEventsRequest).Namespace
	if namespace == "" {
		return ofAll(g, ctx, key, request)
	}
	return key.enters(namespace)
}

// ofWorker is of requests that name a worker, which may be OFFLINE.
func ofWorker(g *Guard, ctx context.Context, key *Key, request any) error {
	return g.ownWorker(ctx, key, request.(interface{ GetWorkerId() string }).GetWorkerId(), engine.WorkerUnknown)
}

// ofLiveWorker is of requests that change a worker.
func ofLiveWorker(g *Guard, ctx context.Context, key *Key, request any) error {
	return g.ownWorker(ctx, key, request.(interface{ GetWorkerId() string }).GetWorkerId(), engine.WorkerNotFound)
}

// ownWorker refuses a worker that is not the key's with the words for one that does not exist.
func (g *Guard) ownWorker(ctx context.Context, key *Key, id string, notFound func(string) error) error {
	if key.ReachesAll() || engine.CheckWorkerID("worker_id", id) != nil {
		return nil // what is wrong with the id, the handler says
	}
	worker, err := g.store.GetWorker(ctx, id)
	switch {
	case engine.KindOf(err) == engine.KindNotFound:
		return notFound(id)
	case err != nil:
		return err
	case !key.Owns(&worker):
		return notFound(id)
	}
	return nil
}

// Owns says whether a worker is in one of the key's namespaces and, for a worker's key, serves
// nothing that the key does not.
func (k *Key) Owns(w *engine.Worker) bool { return k.Reaches(w.Namespace) && k.lacks(w) == "" }

// lacks is what of a worker's queues and types the key is not for, in words; empty when it is for all of them.
func (k *Key) lacks(w *engine.Worker) string {
	for _, queue := range w.Queues {
		if !k.ServesQueue(queue) {
			return fmt.Sprintf("the task queue %q", queue)
		}
	}
	for _, name := range w.Types {
		if !k.ServesType(name) {
			return fmt.Sprintf("the workflow type %q", name)
		}
	}
	for name := range w.TypeLimits { // they bind other workers too
		if !k.ServesType(name) {
			return fmt.Sprintf("the workflow type %q", name)
		}
	}
	return ""
}

// MayRegister refuses a registration that the key does not allow. An id that a worker of others
// has, or had, is refused as one that is taken: to register under it would take their row over.
func (g *Guard) MayRegister(ctx context.Context, w *engine.Worker, chosen bool) error {
	key := CallerOf(ctx)
	if key == nil {
		return nil
	}
	if err := key.enters(w.Namespace); err != nil {
		return err
	}
	if lacks := key.lacks(w); lacks != "" {
		return denied("the API key %q is not for %s", key.Name, lacks)
	}
	if !chosen || key.ReachesAll() {
		return nil
	}
	known, err := g.store.GetWorker(ctx, w.ID)
	switch {
	case engine.KindOf(err) == engine.KindNotFound:
		return nil
	case err != nil:
		return err
	case !key.Owns(&known):
		return engine.WorkerTaken(w.ID)
	}
	return nil
}

// ofServedRun is of requests that read a run without its lease: a worker's key reads only what it may be handed.
func ofServedRun(g *Guard, ctx context.Context, key *Key, request any) error {
	if err := ofNamespace(g, ctx, key, request); err != nil || len(key.Queues) == 0 && len(key.Types) == 0 {
		return err
	}
	namespace, id, err := wire.RunOf(request.(*kagziv1.GetHistoryRequest))
	if err != nil {
		return err
	}
	runs, err := g.store.GetRuns(ctx, namespace, []engine.ID{id})
	if err != nil {
		return err
	}
	if len(runs) == 0 || !key.ServesQueue(runs[0].Queue) || !key.ServesType(runs[0].Type) {
		return engine.RunNotFound(id)
	}
	return nil
}

func denied(format string, args ...any) error {
	return &engine.Error{Kind: engine.KindDenied, Subject: "key", Message: fmt.Sprintf(format, args...)}
}
