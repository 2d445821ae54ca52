package agq_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// popped pops a job as AGW does.
func (c *client) popped() string {
	c.t.Helper()
	got := c.do("BRPOPLPUSH", "queue:ready", "queue:processing", "20")
	if !strings.HasPrefix(got, "$") {
		c.t.Fatalf("the pop is answered %q", got)
	}
	return got[1:]
}

func TestAGWsRecordedConversation(t *testing.T) {
	f := start(t)
	job := f.submit("a1", 1)[0]
	c := f.dial()
	c.want("+OK", "CLIENT", "SETINFO", "LIB-NAME", "redis-rs")
	c.want("+OK", "CLIENT", "SETINFO", "LIB-VER", "0.24.0")
	c.want("+OK", "AUTH", strings.Repeat("ab", 32))
	c.want("+OK", "SET", "worker:w1:tools", "echo,wc,sort")
	c.want("$w1", "PING", "w1")
	c.want("$"+job, "BRPOPLPUSH", "queue:ready", "queue:processing", "5")
	c.want(`${"job_id":"`+job+`","plan_id":"echo","action_id":"a1","input":{"word":"hello"},"status":"pending"}`,
		"GET", "job:"+job)
	c.want(`${"plan_description":"says a word","plan_id":"echo","tasks":[…`, "GET", "plan:echo")
	c.want("+OK", "SET", "job:"+job+":stdout", "hello\n6\n")
	c.want("+OK", "SET", "job:"+job+":stderr", "")
	f.wantStatus(job, "running")
	c.want("+OK", "SET", "job:"+job+":status", "completed")
	c.want(":1", "LREM", "queue:processing", "1", job)
	c.want("nil$", "BRPOPLPUSH", "queue:ready", "queue:processing", "0.05")
	f.wantStatus(job, "completed")
	if got := f.steps(job); got != "job COMPLETED, stdout COMPLETED" {
		t.Errorf("the run's steps are %s", got)
	}
	if out := string(f.run(job).Output.GetData()); out != `{"status":"completed","worker_id":"w1","stdout":"hello\n6\n"}` {
		t.Errorf("the run's output is %s", out)
	}
	d := f.dial()
	d.want("$hello\n6\n", "GET", "job:"+job+":stdout")
	d.want(`${"job_id":"`+job+`","action_id":"a1","plan_id":"echo","status":"completed"…`, "JOB.STATUS", job)
}

func TestTheNextCommandGivesAPopUp(t *testing.T) {
	f := start(t)
	c := f.as("w1")
	c.send("BRPOPLPUSH", "queue:ready", "queue:processing", "20")
	c.send("PING", "w1")
	if a, b := c.answer(), c.answer(); a != "nil$" || b != "$w1" {
		t.Fatalf("a pop and a PING are answered %q and %q", a, b)
	}
	job := f.submit("a1", 1)[0] // nobody pops: the claim that may follow is given back
	c.want("$"+job, "BRPOPLPUSH", "queue:ready", "queue:processing", "20")
}

func TestAPopByAFullWorkerGivesTheOldestBack(t *testing.T) {
	f := start(t)
	jobs := f.submit("a1", 1)
	c := f.as("w1")
	for range 3 { // the answer of each was lost
		c.want("$"+jobs[0], "BRPOPLPUSH", "queue:ready", "queue:processing", "20")
	}
	c.want("+OK", "SET", "job:"+jobs[0]+":status", "completed")
	run := f.run(jobs[0])
	if run.LeaseLosses != 0 || run.GetStepRetries() != 0 {
		t.Errorf("pops without a report cost %d losses and %d retries", run.LeaseLosses, run.GetStepRetries())
	}
}

// TestAGWWithAFastHeartbeat has AGW's ways: at each tick of its heartbeat it gives up whatever it waits for, a
// pop or an answer after it, and drops the late answer. Every job is done, and none waits for a lease.
func TestAGWWithAFastHeartbeat(t *testing.T) {
	f := start(t)
	const jobs = 200
	ids := f.submit("a1", jobs)
	c := f.as("w1")
	for done, tick := 0, 0; done < jobs; tick++ {
		if tick > 3*jobs {
			t.Fatalf("after %d ticks %d jobs are done", tick, done)
		}
		c.send("BRPOPLPUSH", "queue:ready", "queue:processing", "5")
		if tick%2 == 1 { // the tick falls into the pop, or between its answer and the fetch
			c.send("PING", "w1")
			c.answer() // dropped, a job or not
			if got := c.answer(); got != "$w1" {
				t.Fatalf("PING is answered %q", got)
			}
			continue
		}
		job := strings.TrimPrefix(c.answer(), "$")
		if job == "nil$" {
			continue
		}
		c.want(`${"job_id":"`+job+`"…`, "GET", "job:"+job)
		c.want("$…", "GET", "plan:echo")
		c.want("+OK", "SET", "job:"+job+":stdout", "x")
		c.want("+OK", "SET", "job:"+job+":stderr", "")
		c.want("+OK", "SET", "job:"+job+":status", "completed")
		c.want(":1", "LREM", "queue:processing", "1", job)
		done++
	}
	for _, id := range ids {
		run := f.run(id)
		if run.Status.String() != "WORKFLOW_STATUS_COMPLETED" || run.LeaseLosses != 0 || run.GetStepRetries() != 0 {
			t.Fatalf("job %s is %s with %d losses and %d retries", id, run.Status, run.LeaseLosses, run.GetStepRetries())
		}
	}
}

// steps of a worker after which it may die.
var conversation = [][]string{
	{"GET", "job:JOB"}, {"GET", "plan:echo"}, {"SET", "job:JOB:stdout", "hello"}, {"SET", "job:JOB:stderr", "e"},
	{"SET", "job:JOB:status", "completed"}, {"LREM", "queue:processing", "1", "JOB"},
}

func said(job string, args []string) []string {
	out := make([]string, len(args))
	for i, a := range args {
		out[i] = strings.ReplaceAll(a, "JOB", job)
	}
	return out
}

// TestAWorkerReconnectsAfterEachCommand breaks the connection after each command of a conversation, before its
// answer is read. The worker goes on over a new connection, to the same server or another one, and repeats.
func TestAWorkerReconnectsAfterEachCommand(t *testing.T) {
	for _, other := range []bool{false, true} {
		for cut := range conversation {
			t.Run(fmt.Sprintf("%s/another server %t", strings.Join(conversation[cut], " "), other), func(t *testing.T) {
				w := newWorld()
				f := w.start(t)
				next := f
				if other {
					next = w.start(t)
				}
				job := f.submit("a1", 1)[0]
				c := f.as("w1")
				c.want("$"+job, "BRPOPLPUSH", "queue:ready", "queue:processing", "20")
				for _, args := range conversation[:cut] {
					c.do(said(job, args)...)
				}
				c.send(said(job, conversation[cut])...)
				_ = c.raw.Close()
				c = next.as("w1")
				for _, args := range conversation[min(cut, 2):] {
					if got := c.do(said(job, args)...); strings.HasPrefix(got, "-") {
						t.Fatalf("%q is answered %q", args, got)
					}
				}
				run := f.run(job)
				want := `{"status":"completed","worker_id":"w1","stdout":"hello","stderr":"e"}`
				if string(run.Output.GetData()) != want || run.LeaseLosses != 0 {
					t.Errorf("the job ended as %s with %s and %d losses", run.Status, run.Output.GetData(), run.LeaseLosses)
				}
			})
		}
	}
}

func TestALeaseLastsNinetySeconds(t *testing.T) {
	w := newWorld()
	f := w.start(t)
	job := f.submit("a1", 1)[0]
	c := f.as("w1")
	c.want("$"+job, "BRPOPLPUSH", "queue:ready", "queue:processing", "20")
	_ = c.raw.Close()
	for range 8 { // 80 s of silence
		w.pass(10*time.Second, f)
	}
	f.wantStatus(job, "running")
	back := f.as("w1") // it counts again
	back.want("+OK", "SET", "job:"+job+":stdout", "x")
	w.pass(10*time.Second, f)
	f.wantStatus(job, "running")
	_ = back.raw.Close()
	w.passUntil(f, job, "pending")
	other := f.as("w2")
	other.want("$"+job, "BRPOPLPUSH", "queue:ready", "queue:processing", "20")
	late := f.as("w1")
	for _, to := range []string{"completed", "failed"} {
		late.want("-ERR Job "+job+" is not claimed by worker w1…", "SET", "job:"+job+":status", to)
	}
	late.want("-ERR Job "+job+" is not claimed by worker w1…", "SET", "job:"+job+":stdout", "late")
	late.want("nil$", "GET", "job:"+job+":stdout")
	other.want("+OK", "SET", "job:"+job+":stdout", "mine")
	other.want("+OK", "SET", "job:"+job+":status", "completed")
	late.want("-ERR Invalid status transition: completed -> completed", "SET", "job:"+job+":status", "completed")
	late.want("$mine", "GET", "job:"+job+":stdout")
	if run := f.run(job); run.GetWorkerId() != "w2" {
		t.Errorf("the job counts for %s", run.GetWorkerId())
	}
}

func TestThreeLostWorkersMakeAJobDead(t *testing.T) {
	w := newWorld()
	f := w.start(t)
	job := f.submit("a1", 1)[0]
	for n := range 3 {
		c := f.as(fmt.Sprintf("w%d", n))
		c.want("$"+job, "BRPOPLPUSH", "queue:ready", "queue:processing", "20")
		_ = c.raw.Close()
		w.passUntil(f, job, []string{"pending", "pending", "dead"}[n])
		w.pass(10*time.Second, f) // the delay of the next run
	}
	c := f.dial()
	c.want("+OK job_id=…", "JOB.RETRY", job)
	f.wantStatus(job, "pending")
}

func TestAJobThatTakesTooLongRunsAgain(t *testing.T) {
	w := newWorld()
	f := w.start(t)
	job := f.submit("a1", 1)[0]
	c := f.as("w1")
	c.want("$"+job, "BRPOPLPUSH", "queue:ready", "queue:processing", "20")
	c.want("+OK", "SET", "job:"+job+":status", "running") // answered after the start of the step
	for range 62 {
		w.pass(time.Minute/2, f)
		c.want("+OK", "WORKER.HEARTBEAT", "w1") // a PING may be passed on later
		w.pass(time.Minute/2, f)
	}
	c.want("-ERR Job "+job+" is not claimed by worker w1…", "SET", "job:"+job+":status", "completed")
	c.want("$"+job, "BRPOPLPUSH", "queue:ready", "queue:processing", "20")
	c.want("+OK", "SET", "job:"+job+":status", "completed")
	if got := f.steps(job); got != "job FAILED, job COMPLETED" && got != "job PENDING, job COMPLETED" {
		t.Errorf("the attempts of the job are %s", got)
	}
}

func TestAFailedJobHasThreeRetries(t *testing.T) {
	w := newWorld()
	f := w.start(t)
	job := f.submit("a1", 1)[0]
	c := f.as("w1")
	for n := range 4 {
		c.want("$"+job, "BRPOPLPUSH", "queue:ready", "queue:processing", "20")
		c.want("+OK", "SET", "job:"+job+":stderr", "bad")
		c.want("+OK", "SET", "job:"+job+":status", "failed")
		c.want("+OK", "SET", "job:"+job+":status", "failed") // its answer was lost; it counts once
		if n < 3 {
			f.wantStatus(job, "pending")
			c.want("nil$", "BRPOPLPUSH", "queue:ready", "queue:processing", "0.01")
		}
		w.pass(time.Minute, f)
	}
	f.wantStatus(job, "dead")
	if run := f.run(job); run.GetStepRetries() != 3 || run.GetError().GetStack() != "bad" {
		t.Errorf("the job had %d retries and ended with %v", run.GetStepRetries(), run.Error)
	}
}

func TestToolsDecideWhoGetsAJob(t *testing.T) {
	f := start(t)
	job := f.submit("a1", 1)[0]
	none, some, all := f.as("none"), f.as("some"), f.as("all")
	none.want("+OK", "SET", "worker:none:tools", "")
	some.want("+OK", "SET", "worker:some:tools", "echo,sort")
	for _, c := range []*client{none, some} {
		c.want("nil$", "BRPOPLPUSH", "queue:ready", "queue:processing", "0.1")
	}
	all.want("+OK", "SET", "worker:all:tools", "echo, wc")
	all.want("$"+job, "BRPOPLPUSH", "queue:ready", "queue:processing", "20")
	all.want("+OK", "SET", "job:"+job+":status", "completed")
	job = f.submit("a2", 1)[0]
	f.as("never").want("$"+job, "BRPOPLPUSH", "queue:ready", "queue:processing", "20")
}

func TestAStoppingServerAnswersPops(t *testing.T) {
	f := start(t)
	c := f.as("w1")
	c.send("BRPOP", "queue:ready", "0")
	waiting := f.dial()
	for !strings.Contains(waiting.do("METRICS"), "$popping_workers $1") {
	}
	go f.stop()
	if got := c.answer(); got != "nil*" {
		t.Errorf("the pop is answered %q", got)
	}
	c.closed()
}

func TestAnAnonymousPopsJobReturnsWithItsConnection(t *testing.T) {
	f := start(t)
	job := f.submit("a1", 1)[0]
	c := f.dial()
	c.want("*[$queue:ready ${\"job_id\":\""+job+"\"…", "BRPOP", "queue:ready", "20")
	_ = c.raw.Close()
	f.as("w1").want("$"+job, "BRPOPLPUSH", "queue:ready", "queue:processing", "20")
	if run := f.run(job); run.LeaseLosses != 0 {
		t.Errorf("the job counts %d losses", run.LeaseLosses)
	}
}

func TestANewerConnectionFencesTheOlder(t *testing.T) {
	f := start(t)
	old, fresh := f.as("w1"), f.as("w1")
	old.send("BRPOP", "queue:ready", "0")
	waiting := f.dial()
	for !strings.Contains(waiting.do("METRICS"), "$popping_workers $1") {
	}
	job := ""
	fresh.send("BRPOPLPUSH", "queue:ready", "queue:processing", "20")
	if got := old.answer(); got != "nil*" {
		t.Fatalf("the pop of the older connection is answered %q", got)
	}
	job = f.submit("a1", 1)[0]
	if got := fresh.answer(); got != "$"+job {
		t.Fatalf("the pop of the newer connection is answered %q", got)
	}
	old.want("-ERR worker w1 has a newer connection…", "SET", "job:"+job+":status", "completed")
	fresh.want("+OK", "SET", "job:"+job+":status", "completed")
}

func TestAPopGoesOnWhenItsWorkerWasLostMeanwhile(t *testing.T) {
	w := newWorld()
	f := w.start(t)
	c := f.as("w1")
	c.send("BRPOPLPUSH", "queue:ready", "queue:processing", "0")
	waiting := f.dial()
	for !strings.Contains(waiting.do("METRICS"), "$popping_workers $1") {
	}
	offline := func() bool {
		worker, err := f.store.GetWorker(t.Context(), "w1")
		return err == nil && worker.Status == engine.WorkerOffline
	}
	for n := 0; !offline() && n < 600; n++ {
		w.pass(time.Second, f)
		if worker, err := f.store.GetWorker(t.Context(), "w1"); err == nil && !worker.RegisteredAt.Equal(
			worker.LastHeartbeatAt) && n > 30 {
			break // it is back already
		}
	}
	job := f.submit("a1", 1)[0]
	if got := c.answer(); got != "$"+job {
		t.Errorf("the pop is answered %q, want %s", got, job)
	}
}
