package agq_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kagzi/kagzi/backends"
	"github.com/kagzi/kagzi/backends/postgres/pgtest"
	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/agq"
	"github.com/kagzi/kagzi/engine/server"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// onTwoServers runs a test with two servers on one store, in memory and on Postgres.
func onTwoServers(t *testing.T, test func(t *testing.T, a, b *fixture)) {
	t.Run("in memory", func(t *testing.T) {
		w := newWorld()
		test(t, w.start(t), w.start(t))
	})
	t.Run("on Postgres", func(t *testing.T) {
		url := pgtest.Lend(t, backends.Migrate).URL
		test(t, open(t, url), open(t, url))
	})
}

const newer = "-ERR worker w1 has a newer connection…"

// registered returns a connection of the worker w1 that may hold two jobs.
func (f *fixture) registered() *client {
	f.Helper()
	c := f.dial()
	c.want("+OK worker_id=w1…", "WORKER.REGISTER", strings.Replace(registration, `"w7"`, `"w1"`, 1))
	return c
}

// TestANewerConnectionOnAnotherServerFencesTheOlder has a worker that comes to another server while its
// connection to the first is still open, as after a network that went silent. Nothing tells the first server
// before it answers: the store does.
func TestANewerConnectionOnAnotherServerFencesTheOlder(t *testing.T) {
	done := `{"status":"completed","task_results":[{"task_number":1,"stdout":"%s"}]}`
	for name, args := range map[string][]string{
		"JOB.UPDATE to its end": {"JOB.UPDATE", "ID", fmt.Sprintf(done, "old")},
		"JOB.UPDATE of a task":  {"JOB.UPDATE", "ID", `{"current_task":1}`},
		"SET status":            {"SET", "job:ID:status", "completed"},
		"SET stdout":            {"SET", "job:ID:stdout", "old"},
		"GET":                   {"GET", "job:ID"},
	} {
		t.Run(name, func(t *testing.T) {
			onTwoServers(t, func(t *testing.T, a, b *fixture) {
				jobs := a.submit("a", 2)
				old := a.registered()
				old.want("*[$queue:ready ${\"job_id\":\""+jobs[0]+"\"…", "BRPOP", "queue:ready", "20")
				fresh := b.registered()
				fresh.want("*[$queue:ready ${\"job_id\":\""+jobs[1]+"\"…", "BRPOP", "queue:ready", "20")
				args := slices.Clone(args)
				args[1] = strings.ReplaceAll(args[1], "ID", jobs[0])
				got := old.do(args...)
				if args[0] == "GET" { // the job as any client may see it, or refused
					if !matches(got, newer) && !strings.Contains(got, jobs[0]) {
						t.Errorf("GET is answered %q", got)
					}
				} else if !matches(got, newer) {
					t.Errorf("the older connection's %s is answered %q", args[0], got)
				}
				for _, job := range jobs { // the newer connection has both
					fresh.want("+OK", "JOB.UPDATE", job, fmt.Sprintf(done, "new"))
					if out := string(b.run(job).Output.GetData()); !strings.Contains(out, `"stdout":"new"`) {
						t.Errorf("the job ended with %s", out)
					}
				}
			})
		})
	}
}

// TestAnOlderConnectionOnAnotherServerPopsNoMore has both a pop that waits, which a notification of the database
// ends, and one that comes later.
func TestAnOlderConnectionOnAnotherServerPopsNoMore(t *testing.T) {
	t.Run("on Postgres", func(t *testing.T) {
		url := pgtest.Lend(t, backends.Migrate).URL
		a, b := open(t, url), open(t, url)
		old := a.as("w1")
		old.send("BRPOPLPUSH", "queue:ready", "queue:processing", "0")
		watch := a.dial()
		for !strings.Contains(watch.do("METRICS"), "$popping_workers $1") {
		}
		fresh := b.as("w1")
		fresh.send("BRPOPLPUSH", "queue:ready", "queue:processing", "20")
		if got := old.answer(); got != "nil$" {
			t.Fatalf("the older connection's pop is answered %q", got)
		}
		job := a.submit("a", 1)[0]
		if got := fresh.answer(); got != "$"+job {
			t.Fatalf("the newer connection's pop is answered %q", got)
		}
		old.want(newer, "BRPOPLPUSH", "queue:ready", "queue:processing", "0")
		old.want(newer, "PING", "w1")
		fresh.want("+OK", "SET", "job:"+job+":status", "completed")

		back := a.as("w1") // the first server again, over a connection of its own
		job = a.submit("b", 1)[0]
		back.want("$"+job, "BRPOPLPUSH", "queue:ready", "queue:processing", "20")
		fresh.want(newer, "SET", "job:"+job+":status", "completed")
		back.want("+OK", "SET", "job:"+job+":status", "completed")
	})
}

// TestAConnectionThatNeverPoppedIsNotFenced has a connection that never popped: it is no older one.
func TestAConnectionThatNeverPoppedIsNotFenced(t *testing.T) {
	onTwoServers(t, func(t *testing.T, a, b *fixture) {
		job := a.submit("a", 1)[0]
		other := b.as("w1")
		pops := a.as("w1")
		pops.want("$"+job, "BRPOPLPUSH", "queue:ready", "queue:processing", "20")
		other.want("+OK", "SET", "job:"+job+":status", "completed")
	})
}

// TestAClaimThatNeverReachedItsWorkerComesBack has a job that the store has as the worker's, and that no
// connection got: its server was killed in between. The worker lives on, so no lease ends.
func TestAClaimThatNeverReachedItsWorkerComesBack(t *testing.T) {
	w := newWorld()
	f := serveWith(t, w.db.Open(nil), w.now, server.Options{WorkerLease: 100 * time.Millisecond},
		func(d *agq.Door) { d.BeatEvery(time.Millisecond) })
	c := f.as("w1")
	c.want("+OK", "SET", "worker:w1:tools", "echo,wc")
	job := f.submit("a", 1)[0]
	answer, err := kagziv1.NewWorkerServiceClient(f.conn).PollTask(t.Context(), &kagziv1.PollTaskRequest{WorkerId: "w1",
		TaskQueue: "agq:ready", WorkflowTypes: []string{engine.JobType}})
	if err != nil || answer.RunId != job {
		t.Fatalf("PollTask is answered %v, %v", answer, err)
	}
	got := "nil$"
	for end := time.Now().Add(20 * time.Second); got == "nil$" && time.Now().Before(end); {
		got = c.do("BRPOPLPUSH", "queue:ready", "queue:processing", "0.02")
	}
	if got != "$"+job {
		t.Fatalf("the worker's pop is answered %q, want %s", got, job)
	}
	c.want("+OK", "SET", "job:"+job+":status", "completed")
	if run := f.run(job); run.LeaseLosses != 0 {
		t.Errorf("the job counts %d losses", run.LeaseLosses)
	}
}

// between runs something once, before a read of a run or before the begin of a step that stages an output.
type between struct {
	engine.Store
	beforeRead, beforeOutput atomic.Pointer[func()]
}

func runOnce(do *atomic.Pointer[func()]) {
	if f := do.Swap(nil); f != nil {
		(*f)()
	}
}

func (b *between) GetHistory(ctx context.Context, p engine.HistoryParams) ([]engine.Step, int64, error) {
	runOnce(&b.beforeRead)
	return b.Store.GetHistory(ctx, p)
}

func (b *between) BeginStep(ctx context.Context, p engine.BeginStepParams) (engine.Begun, error) {
	if p.Name == "stdout" {
		runOnce(&b.beforeOutput)
	}
	return b.Store.BeginStep(ctx, p)
}

// TestAReportIsRepeatedWhileItCounts has a worker that repeats its report over another connection while the
// first is still being carried out.
func TestAReportIsRepeatedWhileItCounts(t *testing.T) {
	for name, hook := range map[string]func(*between) *atomic.Pointer[func()]{
		"the job ends between two reads of it":       func(b *between) *atomic.Pointer[func()] { return &b.beforeRead },
		"the job ends before the output is recorded": func(b *between) *atomic.Pointer[func()] { return &b.beforeOutput },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			store := &between{Store: w.db.Open(nil)}
			f := serve(t, store, w.now)
			job := f.submit("a", 1)[0]
			c := f.as("w1")
			c.want("$"+job, "BRPOPLPUSH", "queue:ready", "queue:processing", "20")
			again := f.as("w1")
			end := func() { c.want("+OK", "JOB.UPDATE", job, `{"status":"completed"}`) }
			hook(store).Store(&end)
			again.want("+OK", "SET", "job:"+job+":stdout", "x")
			again.want("+OK", "SET", "job:"+job+":status", "completed")
		})
	}
}
