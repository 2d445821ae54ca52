package simulate

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/kagzi/kagzi/backends/memory"
	"github.com/kagzi/kagzi/engine"
)

// beside is a store on disk that gets every write of the in-memory database, in the same order and
// the same groups. It must give the same answers and hold the same rows at the end. It also
// notifies the server, which after a kill restarts on what the disk has. A beside with a nil store
// does nothing.
type beside struct {
	open   func() engine.Store
	report *Report
	memory *memory.Database

	baton baton // a group is carried out by both stores before the next one starts
	store engine.Store

	differs atomic.Bool // set at the first difference; later ones are not compared
}

func newBeside(open func() engine.Store, db *memory.Database, r *Report) *beside {
	if open == nil {
		return &beside{memory: db, baton: make(baton, 1)}
	}
	return &beside{open: open, report: r, memory: db, baton: make(baton, 1), store: open()}
}

// baton is a lock made of a channel of capacity one. Unlike with a mutex, a bubble's time passes
// while goroutines wait for it. Its holder may need time, because the store may delay a heartbeat
// to share a commit.
type baton chan struct{}

func (b baton) take() { b <- struct{}{} }
func (b baton) pass() { <-b }

// commit carries out calls that share a commit in memory, and may on disk.
func (b *beside) commit(calls ...*memory.Call) {
	b.baton.take()
	defer b.baton.pass()
	if b.store == nil {
		b.memory.Commit(calls...)
		return
	}
	tickets := ticketsOf(calls)
	b.memory.Commit(calls...)
	var group sync.WaitGroup
	for i, c := range calls {
		if c.Write {
			group.Go(func() { b.repeat(c, tickets[i]) })
			<-tickets[i].Admitted() // the next call comes after it
		}
	}
	group.Wait()
}

// ticketsOf returns new tickets for calls, with the same predecessors. A predecessor's outcome is
// known by now unless it is in the same group.
func ticketsOf(calls []*memory.Call) []*engine.Ticket {
	own := map[*engine.Ticket]*engine.Ticket{}
	tickets := make([]*engine.Ticket, len(calls))
	for i, c := range calls {
		before := own[c.Ticket.Prev()]
		if before == nil {
			before = engine.NewTicket(nil)
			before.Resolve(c.Ticket.Err())
		}
		tickets[i] = engine.NewTicket(before)
		if c.Ticket != nil {
			own[c.Ticket] = tickets[i]
		}
	}
	return tickets
}

// repeat makes a call that was already carried out in memory.
func (b *beside) repeat(c *memory.Call, ticket *engine.Ticket) {
	defer ticket.Admit()
	p := reflect.New(reflect.TypeOf(c.Params))
	p.Elem().Set(reflect.ValueOf(c.Params))
	if sequenced, ok := p.Interface().(interface{ SetTicket(*engine.Ticket) }); ok {
		sequenced.SetTicket(ticket)
	}
	if start, ok := p.Interface().(*engine.StartRunsParams); ok && start.Handoff != nil {
		start.Handoff = c.Handoff
	}
	in := []reflect.Value{reflect.ValueOf(context.Background()), p.Elem()}
	out := reflect.ValueOf(b.store).MethodByName(c.Verb).Call(in)
	var got []any
	for _, v := range out[:len(out)-1] {
		got = append(got, v.Interface())
	}
	err, _ := out[len(out)-1].Interface().(error)
	b.same(c.Verb+"'s error", c.Err, err)
	if c.Err == nil && err == nil {
		b.same(c.Verb+"'s answer", c.Answers(), got)
	}
}

// alike makes nothing and an empty list equal, and reduces errors to their text.
var alike = cmp.Options{
	cmpopts.EquateEmpty(),
	cmp.Comparer(func(a, b error) bool { return fmt.Sprint(a) == fmt.Sprint(b) }),
	cmp.Exporter(func(reflect.Type) bool { return true }),
}

func (b *beside) same(what string, inMemory, onDisk any) {
	if b.differs.Load() {
		return
	}
	b.report.note("compared: " + what)
	if diff := cmp.Diff(inMemory, onDisk, alike); diff != "" {
		b.differs.Store(true)
		b.report.check(16, false, "%s differs, from memory (-) to disk (+):\n%s", what, diff)
	}
}

// restart reopens the store as a killed server finds it: with all committed data and nothing that
// only the process remembered.
func (b *beside) restart() {
	b.baton.take()
	defer b.baton.pass()
	if b.store != nil {
		b.close()
		b.store = b.open()
	}
}

func (b *beside) close() {
	if err := b.store.Close(); err != nil {
		b.report.check(16, false, "the store does not close: %v", err)
	}
}

// end compares all rows and closes the store.
func (b *beside) end() {
	b.baton.take()
	defer b.baton.pass()
	if b.store == nil {
		return
	}
	plain := b.memory.Open(nil)
	defer plain.Close()
	for _, r := range b.memory.Runs() {
		b.same("run", runOf(plain, r.ID), runOf(b.store, r.ID))
	}
	b.same("the rest", restOf(plain), restOf(b.store))
	b.close()
	b.store = nil
}

// everything is a page size that holds everything in a simulation.
var everything = engine.Page{Limit: engine.MaxPage, Count: true}

// runOf returns everything that a store returns about a run.
func runOf(s engine.Store, id engine.ID) (all []any) {
	ctx := context.Background()
	add := func(parts ...any) { all = append(all, parts...) }
	run, err := s.GetRun(ctx, namespace, id)
	add(run, err)
	steps, _, err := s.ListSteps(ctx, namespace, id, engine.StepFilter{}, everything)
	add(steps, err)
	signals, _, err := s.ListSignals(ctx, namespace, id, everything)
	add(signals, err)
	return all
}

// restOf returns everything else.
func restOf(s engine.Store) (all []any) {
	ctx := context.Background()
	add := func(parts ...any) { all = append(all, parts...) }
	runs, info, err := s.ListRuns(ctx, engine.RunFilter{Namespace: namespace}, everything)
	add(len(runs), info, err)
	schedules, _, err := s.ListSchedules(ctx, engine.ScheduleFilter{Namespace: namespace}, everything)
	add(schedules, err)
	workers, _, err := s.ListWorkers(ctx, engine.WorkerFilter{}, everything)
	add(workers, err)
	namespaces, _, err := s.ListNamespaces(ctx, everything)
	add(namespaces, err)
	audit, _, err := s.ListAuditEvents(ctx, engine.AuditFilter{Namespace: namespace}, everything)
	add(audit, err)
	return all
}

// served is a server's access to the in-memory database. If there is a store beside it, that one
// notifies.
type served struct {
	*memory.Store
	beside *beside

	mu     sync.Mutex // serializes notifications
	notify func(engine.Notification)
}

// Notifier returns that of the store that was opened last.
func (s *served) Listen(ctx context.Context, notify func(engine.Notification), o engine.Outcomes) error {
	s.beside.baton.take()
	store := s.beside.store
	s.beside.baton.pass()
	if store == nil {
		return s.Store.Listen(ctx, notify, o)
	}
	s.mu.Lock()
	s.notify = notify
	s.mu.Unlock()
	return store.Listen(ctx, func(r engine.Notification) {
		s.mu.Lock()
		defer s.mu.Unlock()
		notify(r)
	}, o)
}

// Gap makes the server receive NotifyAll, as after a gap in listening.
func (s *served) Gap() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.notify == nil {
		s.Store.Gap()
	} else {
		s.notify(engine.Notification{Kind: engine.NotifyAll})
	}
}
