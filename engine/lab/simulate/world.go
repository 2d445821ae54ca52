// Package simulate runs the real server, matcher, coordinator, client and worker against each other
// in a bubble of testing/synctest. The database is in memory; its calls fail, come late, or succeed
// but report failure, while processes die and connections break: minutes of virtual time in
// milliseconds. A seed decides what is done, what goes wrong (NewPlan) and in which order the calls
// of all servers are committed. Then everything heals, must come to an end, and is checked against
// the promises (watch.go, final.go).
//
// Only the plan and the choice among waiting calls follow from the seed. The choices of Go's
// runtime do not: ready cases of a select, timers due together, the order of map keys, random ids
// and jitter. Command replay fixes these too; there one seed always has the same history.
// Report.Trace shows whether two histories were the same.
//
// A store on disk can be given the same calls and server deaths. Then every answer, and in the end
// every row, is compared with memory (beside.go).
package simulate

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"

	"github.com/kagzi/kagzi/backends/memory"
	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/lab/host"
	kagzi "github.com/kagzi/kagzi/sdk"
)

const (
	namespace = "default"
	// healing limits how long everything may take to end after the last fault.
	healing = 10 * time.Minute
)

// simulation is one running simulation.
type simulation struct {
	plan    *Plan
	report  *Report
	began   time.Time
	db      *memory.Database
	beside  *beside
	watch   *watch
	traffic *traffic
	network *network
	clients []*client
	acks    acks
	over    context.Context // until everything was checked
	graves  sync.WaitGroup  // of killed processes

	healed chan struct{} // closed then

	mu      sync.Mutex
	begun   int              // number of step bodies
	bodies  map[int]chan int // bodies that events wait for
	lives   int
	workers []*worker // nil: dead
	servers []*server // nil: dead
}

// client is a program that starts runs and waits for them.
type client struct {
	host *host.Host
	sdk  *kagzi.Client
}

// Run carries out a plan. Call it in a bubble of testing/synctest, from the bubble's only
// goroutine. If open is not nil, it opens the store that is compared with the in-memory database,
// and again each time the plan's only server was killed.
func Run(plan Plan, trace bool, open func() engine.Store) *Report {
	report := &Report{Counts: map[string]int{}}
	w := &simulation{plan: &plan, report: report, began: time.Now(), network: &network{}, healed: make(chan struct{}),
		bodies: map[int]chan int{}}
	w.watch = newWatch(report, trace)
	keep := 0
	for _, e := range plan.Events {
		if e.Do == "lose" || e.Do == "failover" {
			keep = 50
		}
	}
	w.db = memory.New(memory.Options{Keep: keep, Endings: plan.Endings, Watch: w.watch.heed})
	w.beside = newBeside(open, w.db, report)
	w.traffic = newTraffic(w.beside, &plan, report)
	stop := make(chan struct{})
	var director sync.WaitGroup
	director.Go(func() { w.traffic.direct(stop) })
	w.open()
	w.live()
	w.close()
	close(stop)
	director.Wait()
	w.beside.end()
	return report
}

func (w *simulation) open() {
	w.network.listeners = make([]*bufconn.Listener, w.plan.Servers)
	for i := range w.plan.Servers {
		w.servers = append(w.servers, serve(i, w.beside, w.traffic, w.network.listen(i)))
	}
	for range w.plan.Clients {
		w.clients = append(w.clients, w.connect())
	}
	for i := range w.plan.Workers {
		w.workers = append(w.workers, w.hire(i))
	}
}

func (w *simulation) connect() *client {
	h := host.New(w.network.connect)
	c, err := kagzi.NewClient(kagzi.ClientOptions{
		Profile: kagzi.NoProfile, Address: "passthrough:///simulation", Namespace: namespace, Logger: quiet,
		DialOptions: []grpc.DialOption{grpc.WithContextDialer(h.Dial)},
	})
	if err != nil {
		panic("simulate: " + err.Error()) // the options are fixed
	}
	return &client{host: h, sdk: c}
}

// live runs the chaos, the healing and the final checks.
func (w *simulation) live() {
	over, end := context.WithCancel(context.Background())
	defer end()
	w.over = over
	var asked, waited sync.WaitGroup
	w.ask(&asked, &waited)
	var events sync.WaitGroup
	for i, e := range w.plan.Events {
		events.Go(func() { w.happen(e, rand.New(rand.NewPCG(w.plan.Seed, uint64(100+i)))) })
	}
	time.Sleep(w.plan.Chaos)
	w.traffic.heal()
	close(w.healed)
	events.Wait()
	asked.Wait()
	w.stopSchedules()
	w.resumeForgotten()
	w.settle()
	w.final()
	end()
	waited.Wait()
}

// settle lets time pass until every run has ended, but not for ever.
func (w *simulation) settle() {
	for limit := time.Now().Add(healing); time.Now().Before(limit); time.Sleep(2 * time.Second) {
		if !w.anyOpen() {
			time.Sleep(2 * heartbeat) // a client that waits for an end learns of it
			return
		}
		w.acceptHoles()
	}
}

func (w *simulation) anyOpen() bool {
	for _, r := range w.db.Runs() {
		if !r.Status.Ended() {
			return true
		}
	}
	return false
}

func (w *simulation) close() {
	for _, k := range w.workers {
		k.close()
	}
	for _, c := range w.clients {
		_ = c.sdk.Close()
	}
	for _, s := range w.servers {
		s.close()
	}
	w.graves.Wait()
}
