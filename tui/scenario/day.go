// Package scenario plays a day in a small shop on a real server through its API: who starts which
// runs, what workflow code does with them, what fails, and who fixes it. A seed determines
// everything. `kagzi tui --demo` and the tests of screens show it.
//
// The day runs as fast as the server's clock can be moved: Play returns when the last day has
// passed. Advance or Run continue it.
package scenario

import (
	"cmp"
	"container/heap"
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"google.golang.org/grpc"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// Server is a server whose clock can be moved.
type Server interface {
	Direct() grpc.ClientConnInterface // a call has taken effect when it returns; for unary calls
	Now() time.Time
	SetNow(time.Time)
	Commits() uint64      // number of commits; shows whether somebody else made a call
	Upkeep() time.Time    // does what is due, and returns when to call it again
	NextDue() time.Time   // when a run may next be claimed
	TakeDue() [][2]string // the namespaces and queues in which runs may be claimed now
}

const (
	defaultNamespace = "default"

	// Past is how long the day runs before its beginning, Running how long its server has been up
	// then.
	Past    = 24 * time.Hour
	Running = 74 * time.Hour
)

// Day is the scenario on a server. It may be used from many goroutines.
type Day struct {
	mu        sync.Mutex // guards the fields below
	seed      uint64
	begin     time.Time
	server    Server
	runs      kagziv1.WorkflowServiceClient
	tasks     kagziv1.WorkerServiceClient
	admin     kagziv1.AdminServiceClient
	schedules kagziv1.WorkflowScheduleServiceClient
	spaces    kagziv1.NamespaceServiceClient
	agenda    agenda
	random    random
	plans     map[string]*plan // by run id, for runs that differ from their type's plan
	pieceRuns map[Piece]string
	workers   []*worker
	weather   weather
	commits   uint64 // at the last advance
	wrong     error  // error of the first call that must not fail
}

// Play plays the last day on an unused server, whose clock is Running before begin. It returns with
// the clock at begin: some 400 runs have ended, and some 40 are open, including the pieces of ID.
func Play(server Server, seed uint64, begin time.Time) (*Day, error) {
	d := &Day{seed: seed, begin: begin, random: newRandom(seed, 2), plans: map[string]*plan{},
		pieceRuns: map[Piece]string{}}
	d.meet(server)
	d.open()
	d.advance(begin.Add(-Past))
	d.populate()
	d.advance(begin)
	return d, d.wrong
}

// On returns the day on another server, which must be a copy of the day's server at this moment.
func (d *Day) On(server Server) *Day {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := &Day{
		seed: d.seed, begin: d.begin, agenda: d.agenda.clone(), random: d.random.clone(), plans: maps.Clone(d.plans),
		pieceRuns: maps.Clone(d.pieceRuns),
		weather:   d.weather,
	}
	for _, w := range d.workers {
		c.workers = append(c.workers, w.clone())
	}
	c.meet(server)
	c.commits = server.Commits()
	return c
}

func (d *Day) meet(server Server) {
	conn := server.Direct()
	d.server = server
	d.runs, d.tasks, d.admin = kagziv1.NewWorkflowServiceClient(conn), kagziv1.NewWorkerServiceClient(conn),
		kagziv1.NewAdminServiceClient(conn)
	d.schedules, d.spaces = kagziv1.NewWorkflowScheduleServiceClient(conn), kagziv1.NewNamespaceServiceClient(conn)
}

// ctx is the context of every call: they run in this process, and take no time.
var ctx = context.Background()

// must records the error of a call that must not fail.
func (d *Day) must(what string, err error) bool {
	if err != nil && d.wrong == nil {
		d.wrong = fmt.Errorf("scenario: %s: %w", what, err)
	}
	return err == nil
}

func (d *Day) now() time.Time { return d.server.Now() }

// Advance moves the clock and plays everything that happens meanwhile.
func (d *Day) Advance(by time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.advance(d.now().Add(by))
}

// advance plays everything that happens until a moment, and stops the clock there.
func (d *Day) advance(until time.Time) {
	if d.server.Commits() != d.commits { // somebody else made a call
		d.hear()
	}
	for {
		upkeep := d.server.Upkeep()
		next := earliest(d.agenda.next(), upkeep, d.server.NextDue())
		if next.IsZero() || next.After(until) {
			break
		}
		d.server.SetNow(next)
		d.claim()
		if at := d.agenda.next(); !at.IsZero() && !at.After(d.now()) {
			heap.Pop(&d.agenda).(item).do(d)
		}
	}
	d.server.SetNow(until)
	d.commits = d.server.Commits()
}

// earliest returns the first of the set moments.
func earliest(moments ...time.Time) (first time.Time) {
	for _, t := range moments {
		if !t.IsZero() && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	return first
}

// beat is how often Run moves the clock.
const beat = 50 * time.Millisecond

// Run plays the day at a multiple of real time, until ctx ends.
func (d *Day) Run(ctx context.Context, speed float64) {
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	began, from := time.Now(), d.now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		to := from.Add(time.Duration(float64(time.Since(began)) * speed))
		d.mu.Lock()
		d.advance(to)
		d.mu.Unlock()
	}
}

// start starts a run that follows a plan.
func (d *Day) start(r *kagziv1.StartWorkflowRequest, p *plan) string {
	started, err := d.runs.StartWorkflow(ctx, r)
	if !d.must("start "+r.WorkflowType, err) {
		return ""
	}
	d.follow(started.RunId, p)
	return started.RunId
}

// follow sets the plan of a run.
func (d *Day) follow(run string, p *plan) {
	if p != planOf(p.kind) {
		d.plans[run] = p
	}
}

// planFor returns the plan of a run's code.
func (d *Day) planFor(run, kind string) *plan { return cmp.Or(d.plans[run], planOf(kind)) }

// request returns the request that starts a run of a plan.
func (d *Day) request(p *plan, namespace string) *kagziv1.StartWorkflowRequest {
	r := &kagziv1.StartWorkflowRequest{
		Namespace: namespace, WorkflowType: p.kind, TaskQueue: p.queue, Version: p.version, RetryPolicy: p.retry,
	}
	if p.input != nil {
		r.Input = jsonPayload(p.input(d.random))
	}
	if p.tags != nil {
		r.Tags = p.tags(d.random)
	}
	if p.named != nil {
		r.ExternalId = p.named(d.random)
	}
	if p.key != nil {
		r.ConcurrencyKey, r.ConcurrencyLimit = p.key(d.random), 1
	}
	if p.limit > 0 {
		r.Timeouts = &kagziv1.TimeoutConfig{ExecutionTimeoutMs: p.limit.Milliseconds()}
	}
	return r
}
