package scenario

import (
	"slices"
	"strconv"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// staffing lists the workers of the shop.
var staffing = []struct {
	id, host, queue, version, platform string
	types                              []string
	labels, capabilities               map[string]string
	most                               int32
}{
	{id: "orders-1", host: "shop-a1", queue: "orders", version: "2.4.1", platform: "linux-amd64",
		types: []string{"order", "refund.approval"}, most: 20,
		labels: map[string]string{"team": "shop", "zone": "eu-1"}},
	{id: "orders-0", host: "shop-a0", queue: "orders", version: "2.3.9", platform: "linux-amd64",
		types: []string{"order", "refund.approval"}, most: 20,
		labels: map[string]string{"team": "shop", "zone": "eu-1"}},
	{id: "mailer-1", host: "shop-b1", queue: "emails", version: "1.9.0", platform: "linux-amd64",
		types: []string{"invoice.send"}, most: 10,
		labels: map[string]string{"team": "shop", "zone": "eu-1"}},
	{id: "mailer-2", host: "shop-b2", queue: "emails", version: "1.9.0", platform: "linux-amd64",
		types: []string{"onboarding"}, most: 10,
		labels: map[string]string{"team": "growth", "zone": "eu-2"}},
	{id: "reports-1", host: "data-1", queue: "reports", version: "0.14.2", platform: "linux-arm64",
		types: []string{"report.nightly", "import.catalog", "sync.crm"}, most: 8,
		labels: map[string]string{"team": "data"}, capabilities: map[string]string{"tool:duckdb": "1.4"}},
	{id: "media-1", host: "gpu-1", queue: "media", version: "0.7.3", platform: "linux-arm64",
		types: []string{"thumbnail"}, most: mediaSlots,
		labels: map[string]string{"team": "shop", "gpu": "true"}, capabilities: map[string]string{"unit:vips": "8.17"}},
}

const (
	mediaSlots = 6

	// restart is how long it takes to restart a process that is gone.
	restart = 3 * time.Minute
	// heartbeat is the heartbeat interval. Before the rush it is longer, which no longer shows.
	heartbeat     = 10 * time.Second
	rareHeartbeat = 25 * time.Second
)

// worker is a process that runs workflow code.
type worker struct {
	number            int // in staffing
	id                string
	lives             int  // number of starts of its process; 0: never started
	online            bool // running and claiming runs
	silent            bool // it does not respond any more
	since             time.Time
	held              []*activation
	completed, failed int32 // since its last heartbeat
}

func (w *worker) clone() *worker {
	c := *w
	c.held = nil
	for _, a := range w.held {
		c.held = append(c.held, a.clone())
	}
	return &c
}

func (d *Day) worker(id string) *worker {
	for _, w := range d.workers {
		if w.id == id {
			return w
		}
	}
	return nil
}

// holds returns the worker and the activation of a run; nil if the worker does not hold it any
// more.
func (d *Day) holds(worker, run, token string) (*worker, *activation) {
	w := d.worker(worker)
	for _, a := range w.held {
		if a.run == run && a.token == token {
			return w, a
		}
	}
	return w, nil
}

// hires brings the workers online.
func (d *Day) hires() {
	for i, s := range staffing {
		w := &worker{number: i, id: s.id, completed: int32(1800 - 230*i), failed: int32(40 - 5*i)}
		d.workers = append(d.workers, w)
		d.hire(w)
	}
}

// hire starts the process of a worker.
func (d *Day) hire(w *worker) {
	s := staffing[w.number]
	if s.id == "orders-0" && d.now().After(d.begin) {
		s.version = "2.4.1" // the version that it was drained for
	}
	dice := mix(d.seed, uint64(w.number), uint64(d.now().Unix()))
	_, err := d.tasks.Register(ctx, &kagziv1.RegisterRequest{
		Namespace: defaultNamespace, TaskQueue: s.queue, WorkflowTypes: s.types, Hostname: s.host,
		Pid: int32(800 + dice%30_000), Version: s.version,
		Labels: s.labels, MaxConcurrent: s.most, Capabilities: s.capabilities, Platform: s.platform, WorkerId: s.id,
		InstanceId: strconv.FormatUint(dice, 36),
	})
	if !d.must("register "+s.id, err) {
		return
	}
	w.lives++
	w.online, w.silent, w.since, w.held = true, false, d.now(), nil
	d.beat(w)
	life := w.lives
	d.after(d.pulse(), func(d *Day) { d.beats(w.id, life) })
	d.offer(defaultNamespace, s.queue)
}

func (d *Day) pulse() time.Duration {
	if d.now().Before(d.begin.Add(-10 * time.Minute)) {
		return rareHeartbeat
	}
	return heartbeat
}

// beats sends the heartbeats of one life of a worker.
func (d *Day) beats(id string, life int) {
	w := d.worker(id)
	if w.lives != life || w.since.IsZero() || w.silent {
		return
	}
	d.beat(w)
	d.after(d.pulse(), func(d *Day) { d.beats(id, life) })
}

// beat sends a heartbeat, and acts on the answer.
func (d *Day) beat(w *worker) {
	uptime := d.now().Sub(w.since)
	dice := mix(d.seed, uint64(w.number+1), uint64(d.now().Unix()))
	r := &kagziv1.HeartbeatRequest{
		WorkerId: w.id, ActiveCount: int32(len(w.held)), CompletedDelta: w.completed, FailedDelta: w.failed,
		HeldIsWhole: true,
		Stats: &kagziv1.WorkerStats{
			CpuPercent:         float64(40+dice%300)/10 + 9*float64(len(w.held)),
			MemoryBytes:        int64(96+uint64(w.number+1)*37+dice>>8%24) << 20,
			DiskAvailableBytes: int64(44+w.number*3) << 30,
			UptimeSeconds:      int64(uptime.Seconds()),
			AverageRunMs:       900 + 710*float64(w.number+1) + float64(dice>>16%90),
		},
	}
	for _, a := range w.held {
		r.Held = append(r.Held, &kagziv1.Lease{RunId: a.run, LeaseToken: a.token})
	}
	answer, err := d.tasks.Heartbeat(ctx, r)
	if err != nil { // a person forced it offline: its process ends
		d.leaves(w, restart)
		return
	}
	w.completed, w.failed = 0, 0
	for _, l := range answer.Lost {
		if _, a := d.holds(w.id, l.RunId, l.LeaseToken); a != nil {
			d.drop(w, a)
		}
	}
	for _, c := range answer.Cancelling {
		if _, a := d.holds(w.id, c.RunId, c.LeaseToken); a != nil {
			d.told(w, a, c.Reason)
		}
	}
	if answer.ShouldDrain {
		w.online = false
		d.goesWhenDone(w)
	}
}

// hear makes all workers react at once to a change by somebody else.
func (d *Day) hear() {
	for _, w := range d.workers {
		if !w.since.IsZero() && !w.silent {
			d.beat(w)
		}
	}
	for _, w := range d.workers {
		d.offer(defaultNamespace, staffing[w.number].queue)
	}
}

// goesWhenDone ends a draining worker once it holds no runs.
func (d *Day) goesWhenDone(w *worker) {
	if !w.online && !w.silent && !w.since.IsZero() && len(w.held) == 0 {
		_, _ = d.tasks.Deregister(ctx, &kagziv1.DeregisterRequest{WorkerId: w.id})
		d.leaves(w, restart)
	}
}

// leaves ends the process of a worker, and restarts it later.
func (d *Day) leaves(w *worker, after time.Duration) {
	w.online, w.silent, w.since, w.held = false, false, time.Time{}, nil
	id := w.id
	d.after(after, func(d *Day) {
		if w := d.worker(id); w.since.IsZero() {
			d.hire(w)
		}
	})
}

// drop releases a run that the worker does not hold any more, and claims another.
func (d *Day) drop(w *worker, a *activation) {
	i := slices.Index(w.held, a)
	if i < 0 {
		return
	}
	full := len(w.held) >= int(staffing[w.number].most)
	w.held = slices.Delete(w.held, i, i+1)
	d.goesWhenDone(w)
	if queue := staffing[w.number].queue; full && w.online {
		d.after(0, func(d *Day) { d.offer(defaultNamespace, queue) })
	}
}

// claim makes the workers claim due runs.
func (d *Day) claim() {
	for _, q := range d.server.TakeDue() {
		d.offer(q[0], q[1])
	}
}

// offer makes the workers of a queue claim due runs, least busy first.
func (d *Day) offer(namespace, queue string) {
	if namespace != defaultNamespace {
		return // no workers
	}
	var able []*worker
	for _, w := range d.workers {
		if w.online && !w.silent && staffing[w.number].queue == queue {
			able = append(able, w)
		}
	}
	for len(able) > 0 {
		slices.SortStableFunc(able, func(a, b *worker) int { return len(a.held) - len(b.held) })
		if !d.poll(able[0], len(able) == 1) {
			able = able[1:]
		}
	}
}

// poll makes a worker claim one run, or as many as it has slots for. It returns false if it got
// none or is full.
func (d *Day) poll(w *worker, many bool) bool {
	s := staffing[w.number]
	room := int(s.most) - len(w.held)
	if room <= 0 || !w.online || w.silent {
		return false
	}
	if !many {
		room = 1
	}
	answer, err := d.tasks.PollTask(ctx, &kagziv1.PollTaskRequest{
		Namespace: defaultNamespace, WorkerId: w.id, TaskQueue: s.queue, WorkflowTypes: s.types,
		Wait: durationpb.New(0), MaxTasks: int32(room),
	})
	if err != nil || answer.Task == nil {
		return false
	}
	var taken []*activation
	for _, t := range append([]*kagziv1.Task{answer.Task}, answer.More...) {
		a := d.taken(t)
		taken = append(taken, a)
		w.held = append(w.held, a)
	}
	for _, a := range taken {
		d.proceed(w, a)
	}
	return len(taken) == room
}
