// Package scenario is a day in a small shop, played on a real server through its API: who starts
// which runs, what the code of its workers does with them, what goes wrong, and who puts it right.
// A seed decides all of it. `kagzi tui --demo` and the tests of screens show it.
//
// The day is played as fast as the server's clock can be moved: Play returns when the last day has
// passed. After that it goes on with Advance or Run.
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
	Direct() grpc.ClientConnInterface // what a call does has been done when it returns; for unary calls
	Now() time.Time
	SetNow(time.Time)
	Commits() uint64      // how many there were; by which the day knows that somebody else has called
	Upkeep() time.Time    // does what time has made due, and is when to call it again
	NextDue() time.Time   // when a run may next be claimed
	TakeDue() [][2]string // the namespaces and queues in which runs may be claimed by now
}

const (
	defaultNamespace = "default"

	// Past is how long before its beginning a day has been going on, and Running how long its server has been.
	Past    = 24 * time.Hour
	Running = 74 * time.Hour
)

// Day is the scenario on a server. It may be used from many goroutines.
type Day struct {
	mu        sync.Mutex // guards all below
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
	plans     map[string]*plan // by run id, where it is not the usual one of its type
	pieceRuns map[Piece]string
	workers   []*worker
	weather   weather
	commits   uint64 // when the day was last advanced
	wrong     error  // the first call that had to be answered and was not
}

// Play has the last day pass on a server that nobody has used, whose clock stands Running before
// begin. The clock stands at begin when it returns: some 400 runs have ended, and some 40 are open,
// among them the pieces of ID.
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

// On is the day as it goes on on another server, which is a copy of its own at this moment.
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

// ctx is that of every call: they are carried out in this process, and take no time.
var ctx = context.Background()

// must notes a call that had to be answered and was not.
func (d *Day) must(what string, err error) bool {
	if err != nil && d.wrong == nil {
		d.wrong = fmt.Errorf("scenario: %s: %w", what, err)
	}
	return err == nil
}

func (d *Day) now() time.Time { return d.server.Now() }

// Advance lets time pass, and all happen that happens in it.
func (d *Day) Advance(by time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.advance(d.now().Add(by))
}

// advance lets everything happen that happens until a moment, and stops the clock there.
func (d *Day) advance(until time.Time) {
	if d.server.Commits() != d.commits { // somebody else has called
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

// earliest is the first of moments, but for those that are unset.
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

// Run lets the day's time go, so many times as fast as ours, until ctx ends.
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

// follow has a run's code do what a plan says.
func (d *Day) follow(run string, p *plan) {
	if p != planOf(p.kind) {
		d.plans[run] = p
	}
}

// planFor is what the code of a run does.
func (d *Day) planFor(run, kind string) *plan { return cmp.Or(d.plans[run], planOf(kind)) }

// request is a run as somebody starts it who follows a plan.
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
