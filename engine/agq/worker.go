package agq

import (
	"context"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// beatEvery is the shortest interval of the heartbeats that are passed on for one worker; its other commands
// count as long as they come that often.
const beatEvery = 5 * time.Second

// worker is a worker that pops on this server. Its claims come over one session, as those of an SDK do, so an
// idle worker costs no query but its heartbeats.
type worker struct {
	door *Door
	who  server.Identity
	ctx  context.Context    // of its calls; it does not end
	end  context.CancelFunc // ends the session
	over chan struct{}      // closed when the session has ended

	// The stream is used under sending.
	sending sync.Mutex
	stream  grpc.BidiStreamingClient[kagziv1.SessionRequest, kagziv1.SessionResponse]
	seq     int64
	beaten  time.Time
	ended   int // reports since the last heartbeat, by outcome
	failed  int

	mu     sync.Mutex
	owner  *conn // the connection that pops; the others of this id are fenced
	held   []*job
	number int                                      // of the session, by which other servers know it
	most   int                                      // jobs at a time
	credit int                                      // tasks that the server may still send
	calls  map[int64]func(*kagziv1.SessionResponse) // operations without an answer, by number
	told   *time.Timer
}

// job is a job that the worker holds.
type job struct {
	run   string
	token string
	input jobInput
	begun chan struct{} // closed when the step has begun, or could not
}

// profile is what a worker says about itself.
type profile struct {
	hostname, platform, version string
	tools                       *[]string // nil: it never named any
	units                       []string
	says                        map[string]string // by tool or unit: what it said when an operator asked
	most                        int
	session                     int // the number of the worker's session; it is stored as the worker's pid
	tags                        map[string]string
}

// registration makes the request for a worker.
func (d *Door) registration(p *profile, who server.Identity) *kagziv1.RegisterRequest {
	r := &kagziv1.RegisterRequest{
		Namespace: who.Namespace, TaskQueue: readyQueue, WorkflowTypes: []string{jobType}, WorkerId: who.Worker,
		InstanceId: who.Instance, Hostname: p.hostname, Platform: p.platform, Version: p.version,
		MaxConcurrent: int32(max(p.most, 1)), Pid: int32(p.session), Labels: p.tags, Capabilities: map[string]string{},
	}
	if d.verify { // first: a worker that always has jobs is asked all the same
		r.TaskQueue, r.TaskQueues = verifyQueue+who.Worker, []string{readyQueue}
	}
	for name, text := range p.says {
		r.Capabilities[saysPrefix+name] = text
	}
	for _, unit := range p.units {
		r.Capabilities[unitPrefix+unit] = ""
	}
	if p.tools == nil {
		r.Capabilities[anyTool] = ""
		return r
	}
	for _, tool := range *p.tools {
		r.Capabilities[toolPrefix+tool] = ""
	}
	return r
}

// profileOf returns the profile of a registered worker.
func profileOf(w *engine.Worker) *profile {
	p := &profile{hostname: w.Hostname, platform: w.Platform, version: w.Version, most: w.MaxConcurrent, session: w.PID,
		tags: w.Labels, says: map[string]string{}}
	if _, any := w.Capabilities[anyTool]; !any {
		p.tools = &[]string{}
	}
	for key, value := range w.Capabilities {
		if name, is := strings.CutPrefix(key, saysPrefix); is {
			p.says[name] = value
		}
		if tool, is := strings.CutPrefix(key, toolPrefix); is && key != anyTool {
			*p.tools = append(*p.tools, tool)
		}
		if unit, is := strings.CutPrefix(key, unitPrefix); is {
			p.units = append(p.units, unit)
		}
	}
	return p
}

// attend returns the worker of the connection with an open session. The connection takes the worker over from
// an older one. said is its new profile; nil: the one that is known.
func (c *conn) attend(said *profile) (*worker, error) {
	who, d := c.who(), c.door
	w := c.worker()
	if w != nil && w.isOpen() && said == nil && !w.goneFor(c) {
		w.takeOver(c)
		return w, nil
	}
	known, held, err := d.server.WorkerOf(c.caller.ctx, who)
	switch {
	case notFound(err):
		if said == nil {
			said = &profile{tools: c.tools}
		}
	case err != nil:
		return nil, err
	case said == nil:
		said = profileOf(&known)
		if c.tools != nil {
			said.tools = c.tools
		}
	}
	next, err := d.newWorker(c.caller.ctx, who, said)
	if err != nil {
		return nil, err
	}
	if err := next.adopt(held); err != nil {
		next.close()
		return nil, err
	}
	d.mu.Lock()
	older := d.workers[who]
	d.workers[who] = next
	d.mu.Unlock()
	if older != nil {
		older.replaced(c)
	}
	next.takeOver(c)
	return next, nil
}

// newWorker opens the session of a worker.
func (d *Door) newWorker(caller context.Context, who server.Identity, p *profile) (*worker, error) {
	calls := context.WithoutCancel(caller)
	as := *p
	as.session = 1 + rand.IntN(math.MaxInt32)
	ctx, end := context.WithCancel(calls)
	stream, err := d.work.Session(ctx)
	if err != nil {
		end()
		return nil, err
	}
	w := &worker{door: d, who: who, ctx: calls, end: end, over: make(chan struct{}), stream: stream, seq: 1,
		number: as.session, most: max(p.most, 1), beaten: time.Now()}
	hello := &kagziv1.SessionRequest{Seq: 1,
		Operation: &kagziv1.SessionRequest_Hello{Hello: d.registration(&as, who)}}
	if err := stream.Send(hello); err != nil && !errors.Is(err, io.EOF) {
		end()
		return nil, err
	}
	if _, err = stream.Recv(); err != nil { // the welcome
		end()
		return nil, err
	}
	go w.receive()
	return w, nil
}

// adopt makes the worker hold what it held before.
func (w *worker) adopt(held []engine.Held) error {
	for _, h := range held {
		claim, err := w.door.server.Claim(w.ctx, w.who, h.Lease.RunID)
		if err != nil {
			return err
		}
		if claim.Token == "" || claim.Run.Type != jobType {
			continue
		}
		input, err := inputOf(claim.Run.Input.Data)
		if err != nil {
			continue // not made by this door; it ends by its lease
		}
		w.held = append(w.held, newJob(h.Lease.RunID.String(), claim.Token, input, true))
	}
	return nil
}

func newJob(run, token string, input jobInput, begun bool) *job {
	j := &job{run: run, token: token, input: input, begun: make(chan struct{})}
	if begun {
		close(j.begun)
	}
	return j
}

func (w *worker) isOpen() bool {
	select {
	case <-w.over:
		return false
	default:
		return true
	}
}

func (w *worker) close() { w.end() }

// leave ends what the connection does for its worker. The worker keeps its jobs, for a newer connection or
// until its lease is over; a worker that was only this connection gives them back.
func (c *conn) leave() {
	if c.identity == "" {
		return
	}
	who, d := c.who(), c.door
	w := c.worker()
	if w == nil {
		return
	}
	w.mu.Lock()
	mine := w.owner == c
	w.mu.Unlock()
	if !mine {
		return
	}
	d.forget(w)
	if !isAnonymous(who.Worker) {
		return
	}
	_, err := d.work.Deregister(w.ctx, &kagziv1.DeregisterRequest{WorkerId: who.Worker})
	if err != nil && !notFound(err) {
		d.log.Warn("jobs of a closed connection could not be given back; they are when its lease is over",
			"worker", who.Worker, "error", err)
	}
}

// forget ends a worker's session.
func (d *Door) forget(w *worker) {
	d.mu.Lock()
	if d.workers[w.who] == w {
		delete(d.workers, w.who)
	}
	d.mu.Unlock()
	w.close()
	<-w.over
}

// send sends an operation.
func (w *worker) send(build func(*kagziv1.SessionRequest)) error {
	w.sending.Lock()
	defer w.sending.Unlock()
	w.seq++
	m := &kagziv1.SessionRequest{Seq: w.seq}
	build(m)
	return w.stream.Send(m)
}

// beat passes a heartbeat on, but not more often than beatEvery. It does not wait for the store.
func (w *worker) beat() {
	w.sending.Lock()
	defer w.sending.Unlock()
	if now := time.Now(); now.Sub(w.beaten) >= w.door.beat {
		w.beaten = now
	} else {
		return
	}
	// what it does not name is given back: a claim whose answer never came to this server
	r := &kagziv1.HeartbeatRequest{WorkerId: w.who.Worker, CompletedDelta: int32(w.ended),
		FailedDelta: int32(w.failed), HeldIsWhole: true}
	w.mu.Lock()
	for _, j := range w.held {
		r.Held = append(r.Held, &kagziv1.Lease{RunId: j.run, LeaseToken: j.token})
	}
	w.mu.Unlock()
	r.ActiveCount = int32(len(r.Held))
	w.seq++
	w.ended, w.failed = 0, 0
	_ = w.stream.Send(&kagziv1.SessionRequest{Seq: w.seq,
		Operation: &kagziv1.SessionRequest_Heartbeat{Heartbeat: r}}) // a session that has ended says so itself
}

// count counts a report for the next heartbeat.
func (w *worker) count(failed bool) {
	w.sending.Lock()
	defer w.sending.Unlock()
	if failed {
		w.failed++
	} else {
		w.ended++
	}
}

// receive handles what the session says until it ends.
func (w *worker) receive() {
	var err error
	for {
		var m *kagziv1.SessionResponse
		if m, err = w.stream.Recv(); err != nil {
			break
		}
		switch event := m.Event.(type) {
		case *kagziv1.SessionResponse_Task:
			w.deliver(event.Task)
		case *kagziv1.SessionResponse_CancelTask:
			if event.CancelTask.GraceUntil == nil {
				w.drop(event.CancelTask.RunId, event.CancelTask.LeaseToken)
			}
		case *kagziv1.SessionResponse_Heartbeat:
			for _, lost := range event.Heartbeat.Lost {
				w.drop(lost.RunId, lost.LeaseToken)
			}
		}
		w.answered(m)
	}
	w.mu.Lock()
	owner, open := w.owner, w.calls
	w.calls = nil
	close(w.over)
	w.mu.Unlock()
	for _, answered := range open {
		answered(nil)
	}
	w.end()
	w.door.mu.Lock()
	if w.door.workers[w.who] == w {
		delete(w.door.workers, w.who)
	}
	w.door.mu.Unlock()
	if owner == nil {
		return
	}
	if code := status.Code(err).String(); code == "Unauthenticated" {
		owner.finish() // its key has ended
		return
	}
	if w.takenOver() {
		owner.fenceOf(w.number)
		return
	}
	if p := owner.popOf(w.number); p != nil && !w.resume(owner, p) {
		owner.answerPop(p, nil)
	}
}

// popOf returns the pop that waits for a session; nil: none does.
func (c *conn) popOf(session int) *pop {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.popped != session {
		return nil // it has a newer session
	}
	return c.pop
}

// resume opens another session for a pop that waits while its session has ended, such as that of a worker which
// was lost in the meantime. It says whether the pop goes on.
func (w *worker) resume(c *conn, p *pop) bool {
	c.mu.Lock()
	gone := c.pop != p || c.fenced || c.closing
	c.mu.Unlock()
	if gone || w.door.stopping() {
		return false
	}
	known, held, err := w.door.server.WorkerOf(w.ctx, w.who)
	if err != nil || known.Status == engine.WorkerDraining ||
		known.Status == engine.WorkerOffline && known.Reason != engine.OfflineLost {
		return false
	}
	next, err := w.door.newWorker(w.ctx, w.who, profileOf(&known))
	if err != nil {
		return false
	}
	if err := next.adopt(held); err != nil {
		next.close()
		return false
	}
	d := w.door
	d.mu.Lock()
	_, other := d.workers[w.who]
	if !other {
		d.workers[w.who] = next
		next.mu.Lock()
		next.owner = c
		next.mu.Unlock()
		c.mu.Lock()
		c.popped = next.number
		c.mu.Unlock()
	}
	d.mu.Unlock()
	if other { // a newer command or connection was faster
		next.close()
		return false
	}
	if next.want() != nil {
		return false
	}
	next.keepAlive(p, c)
	return true
}

// drop forgets a job. With a token, only if the worker holds it under this one.
func (w *worker) drop(run, token string) *job {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := slices.IndexFunc(w.held, func(j *job) bool { return j.run == run && (token == "" || j.token == token) })
	if at < 0 {
		return nil
	}
	j := w.held[at]
	w.held = slices.Delete(w.held, at, at+1)
	return j
}

// find returns a job that the worker holds; nil: none.
func (w *worker) find(run string) *job {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, j := range w.held {
		if j.run == run {
			return j
		}
	}
	return nil
}
