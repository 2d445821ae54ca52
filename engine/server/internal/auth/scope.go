package auth

import (
	"context"
	"fmt"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// A scope refuses a request that the key is not for. The request's namespace decides or, if it has
// only an id, the namespace of the row. A refusal must not tell what exists: for a namespace the
// error is the same whether it exists or not, and for an id it is that of an id that does not
// exist.
type scope func(g *Guard, ctx context.Context, key *Key, request any) error

// forNone is for requests about no namespace.
func forNone(*Guard, context.Context, *Key, any) error { return nil }

// leftToHandler is for requests whose handler checks the key, because only it knows what the
// request is about.
func leftToHandler(*Guard, context.Context, *Key, any) error { return nil }

// forAll is for requests about all namespaces.
func forAll(_ *Guard, _ context.Context, key *Key, _ any) error {
	if key.ReachesAll() {
		return nil
	}
	return denied("this is about all namespaces: it takes an admin's key that is for all, and %q is not", key.Name)
}

// forNamespace is for requests that name one namespace; empty means "default".
func forNamespace(_ *Guard, _ context.Context, key *Key, request any) error {
	r, ok := request.(interface{ GetNamespace() string })
	if !ok {
		return fmt.Errorf("%T names no namespace", request) // Permissions is wrong
	}
	return key.enters(r.GetNamespace())
}

// enters returns an error if the key is not for the namespace.
func (k *Key) enters(namespace string) error {
	namespace = wire.OrDefault(namespace)
	if k.Reaches(namespace) {
		return nil
	}
	return denied("the API key %q is not for the namespace %q", k.Name, wire.Cut(namespace))
}

func forEachStart(_ *Guard, _ context.Context, key *Key, request any) error {
	for _, start := range request.(*kagziv1.StartWorkflowsRequest).Requests {
		if err := key.enters(start.GetNamespace()); err != nil {
			return err
		}
	}
	return nil
}

func forFilter(_ *Guard, _ context.Context, key *Key, request any) error {
	return key.enters(wire.BulkSelection(request.(*kagziv1.BulkWorkflowsRequest)).GetNamespace())
}

func forChild(_ *Guard, _ context.Context, key *Key, request any) error {
	return key.enters(request.(*kagziv1.StartChildRequest).GetChild().GetNamespace())
}

// forNamespaceOrAll is for requests that mean all namespaces if they name none.
func forNamespaceOrAll(g *Guard, ctx context.Context, key *Key, request any) error {
	var namespace *string
	switch r := request.(type) {
	case *kagziv1.GetStatsRequest:
		namespace = r.Namespace
	case *kagziv1.WatchStatsRequest:
		namespace = r.Namespace
	}
	if namespace == nil {
		return forAll(g, ctx, key, request)
	}
	return key.enters(*namespace)
}

// forNamespaceOrKeys is for requests for the audit log; without a namespace, that of the keys.
func forNamespaceOrKeys(g *Guard, ctx context.Context, key *Key, request any) error {
	namespace := request.(*kagziv1.ListAuditEventsRequest).Namespace
	if namespace == "" {
		return forAll(g, ctx, key, request)
	}
	return key.enters(namespace)
}

// forWorker is for requests that name a worker, which may be OFFLINE.
func forWorker(g *Guard, ctx context.Context, key *Key, request any) error {
	return g.ownWorker(ctx, key, request.(interface{ GetWorkerId() string }).GetWorkerId(), engine.WorkerUnknown)
}

// forLiveWorker is for requests that change a worker.
func forLiveWorker(g *Guard, ctx context.Context, key *Key, request any) error {
	return g.ownWorker(ctx, key, request.(interface{ GetWorkerId() string }).GetWorkerId(), engine.WorkerNotFound)
}

// ownWorker returns notFound if the key is not for the worker, as if it did not exist.
func (g *Guard) ownWorker(ctx context.Context, key *Key, id string, notFound func(string) error) error {
	if key.ReachesAll() || engine.CheckWorkerID("worker_id", id) != nil {
		return nil // the handler returns the error for an invalid id
	}
	if err := key.actsAs(id); err != nil {
		return err
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

// Owns says whether a worker is in one of the key's namespaces and serves only queues and types
// that the key is for.
func (k *Key) Owns(w *engine.Worker) bool { return k.Reaches(w.Namespace) && k.lacks(w) == "" }

// lacks names a queue or type of the worker that the key is not for; empty if there is none.
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
	for name := range w.TypeLimits { // these limit other workers too
		if !k.ServesType(name) {
			return fmt.Sprintf("the workflow type %q", name)
		}
	}
	return ""
}

// MayRegister returns an error if the key does not allow a registration. An id of a worker that the
// key does not own, even an OFFLINE one, counts as taken: to register with it would take over its
// row.
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
	if !chosen && len(key.WorkerIDs) > 0 {
		return denied("the API key %q is %s: the worker must choose its id, and chose none", key.Name, key.workers())
	}
	if err := key.actsAs(w.ID); chosen && err != nil {
		return err
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

// forServedRun is for requests that read a run without its lease: a worker's key may read only
// runs that its worker could claim.
func forServedRun(g *Guard, ctx context.Context, key *Key, request any) error {
	if err := forNamespace(g, ctx, key, request); err != nil ||
		len(key.Queues)+len(key.Types)+len(key.WorkerIDs) == 0 {
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
	if runs[0].Status == engine.RunRunning {
		return key.actsAs(runs[0].WorkerID)
	}
	return nil
}

func denied(format string, args ...any) error {
	return &engine.Error{Kind: engine.KindDenied, Subject: "key", Message: fmt.Sprintf(format, args...)}
}
