package limit

import (
	"fmt"
	"sync"
	"time"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// maxQuotas is how many namespaces are told apart that have added something lately; more than that share one quota.
const maxQuotas = 4096

// NamespaceRate holds each namespace to what its clients may add to it in a second, so that a flood
// of one leaves the database to the others. Its zero value is for a rate of 0, which is none.
//
// A namespace may be a second ahead of its rate, and a batch goes through whole as long as it is not.
type NamespaceRate struct {
	PerSecond int

	mu sync.Mutex
	// free is from when on each namespace would owe nothing, by the monotonic clock.
	free map[string]time.Time
}

// take counts in what namespaces are to get or, when one of them has to wait, says which and how
// long, and counts nothing.
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

// place is where a namespace is counted.
func (r *NamespaceRate) place(namespace string) string {
	if _, known := r.free[namespace]; !known && len(r.free) >= maxQuotas {
		return ""
	}
	return namespace
}

// forget drops those that owe nothing.
func (r *NamespaceRate) forget(now time.Time) {
	for namespace, free := range r.free {
		if !free.After(now) {
			delete(r.free, namespace)
		}
	}
}

// Check refuses what a client adds to a namespace faster than it may. What somebody does against a
// flood, such as to cancel its runs, is free.
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
			"namespace %s gets more than %d runs and signals a second, which is the most that this server takes for one (--namespace-rate); try again in %s",
			namespace, r.PerSecond, wait.Round(time.Millisecond))}
}

// addedBy is how many runs and signals a request adds to which namespaces.
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
