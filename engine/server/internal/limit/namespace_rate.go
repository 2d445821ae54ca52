package limit

import (
	"fmt"
	"sync"
	"time"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// maxQuotas is how many recently active namespaces have a quota of their own; further ones share
// one.
const maxQuotas = 4096

// NamespaceRate limits the runs and signals that clients add to each namespace per second, so that
// one namespace cannot overload the database for the others. The zero value has no limit.
//
// A namespace may be up to a second ahead of its rate. Until then a batch is accepted as a whole.
type NamespaceRate struct {
	PerSecond int

	mu sync.Mutex
	// free is when each namespace is back at its rate, by the monotonic clock.
	free map[string]time.Time
}

// take counts what is added to namespaces. If one of them has to wait, it counts nothing and
// returns that namespace and the time.
func (r *NamespaceRate) take(added map[string]int, now time.Time) (namespace string, wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.free)+len(added) > maxQuotas {
		r.forget(now)
	}
	for name := range added {
		if ahead := r.free[r.place(name)].Sub(now); ahead >= time.Second && ahead-time.Second >= wait {
			namespace, wait = name, ahead-time.Second+time.Millisecond
		}
	}
	if wait > 0 {
		return namespace, wait
	}
	if r.free == nil {
		r.free = map[string]time.Time{}
	}
	for name, n := range added {
		place := r.place(name)
		from := r.free[place]
		if from.Before(now) {
			from = now
		}
		r.free[place] = from.Add(time.Duration(n) * time.Second / time.Duration(r.PerSecond))
	}
	return "", 0
}

// place returns the key under which a namespace is counted.
func (r *NamespaceRate) place(namespace string) string {
	if _, known := r.free[namespace]; !known && len(r.free) >= maxQuotas {
		return ""
	}
	return namespace
}

// forget deletes the namespaces that are back at their rate.
func (r *NamespaceRate) forget(now time.Time) {
	for namespace, free := range r.free {
		if !free.After(now) {
			delete(r.free, namespace)
		}
	}
}

// Check returns an error if a request adds to a namespace above its rate. Other requests, such as
// cancelling runs, are not limited.
func (r *NamespaceRate) Check(request any) error {
	if r.PerSecond <= 0 {
		return nil
	}
	added := addedBy(request)
	if len(added) == 0 {
		return nil
	}
	namespace, wait := r.take(added, time.Now())
	if wait == 0 {
		return nil
	}
	return &engine.Error{Kind: engine.KindExhausted, Subject: "namespace", SubjectID: namespace, RetryAfter: wait,
		Message: fmt.Sprintf(
			"namespace %s exceeds its limit of %d runs and signals per second (--namespace-rate); try again in %s",
			namespace, r.PerSecond, wait.Round(time.Millisecond))}
}

// addedBy returns how many runs and signals a request adds, by namespace.
func addedBy(request any) map[string]int {
	switch r := request.(type) {
	case *kagziv1.StartWorkflowRequest:
		return map[string]int{wire.OrDefault(r.GetNamespace()): 1}
	case *kagziv1.StartWorkflowsRequest:
		added := map[string]int{}
		for _, start := range r.GetRequests() {
			added[wire.OrDefault(start.GetNamespace())]++
		}
		return added
	case *kagziv1.SignalWorkflowRequest:
		return map[string]int{wire.OrDefault(r.GetNamespace()): 1}
	case *kagziv1.TriggerWorkflowScheduleRequest:
		return map[string]int{wire.OrDefault(r.GetNamespace()): 1}
	}
	return nil
}
