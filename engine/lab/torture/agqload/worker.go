package agqload

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/kagzi/kagzi/engine/lab/torture/history"
)

// worker is a worker of AGQ that misbehaves in all ways that the protocol allows. It speaks as AGW does, or as
// seed 002 says.
type worker struct {
	load   *Load
	log    *history.Log
	id     string
	seed   bool // it registers and reports as seed 002 says
	random *rand.Rand
	conn   *conn // nil: none
	values int
}

// claim is a job that the worker got.
type claim struct {
	job   string
	token string // of the history
	value string // the output that is reported
}

// what a worker does with a job that it got.
type conduct int

const (
	reports     conduct = iota // once
	fails                      // the job failed
	lateAfter                  // reports it as failed, and then as completed, which must not count
	repeats                    // reports it again with another output, as if the answer had been lost
	second                     // reports over a second connection
	dies                       // forgets all and comes back
	popsAgain                  // never got the answer of the pop; its report comes late
	unregisters                // leaves, and reports late
	conducts
)

// weights of what a worker does, in percent.
var weights = [conducts]int{
	reports: 30, fails: 8, lateAfter: 8, repeats: 14, second: 14, dies: 8, popsAgain: 10, unregisters: 8,
}

func (w *worker) conduct() conduct {
	at := w.random.IntN(100)
	for c, share := range weights {
		if at -= share; at < 0 {
			return conduct(c)
		}
	}
	return reports
}

func (w *worker) run(ctx context.Context) {
	defer func() { w.hangUp() }()
	for next := (*claim)(nil); ctx.Err() == nil; {
		got := next
		if next = nil; got == nil {
			if got = w.pop(ctx); got == nil {
				continue
			}
		}
		next = w.work(ctx, got)
	}
}

// work does a job, and returns the next one if it got one meanwhile.
func (w *worker) work(ctx context.Context, c *claim) (next *claim) {
	does := w.conduct()
	if does == unregisters && !w.seed || (does == fails || does == lateAfter) && !w.load.mayFail(c.job) {
		does = reports
	}
	if !w.seed && !w.fetch(ctx, c.job) {
		return nil // it is no longer its own
	}
	pause(ctx, time.Duration(w.random.Int64N(int64(w.load.o.WorkTime))))
	switch does {
	case fails, lateAfter:
		if w.report(ctx, c, statusFailed) && does == lateAfter {
			w.report(ctx, c, statusCompleted)
		}
	case repeats:
		if w.report(ctx, c, statusCompleted) {
			w.renew(c)
			w.report(ctx, c, statusCompleted)
		}
	case second:
		old := w.conn
		w.conn = nil
		w.report(ctx, c, statusCompleted)
		old.close()
	case dies:
		w.hangUp()
	case popsAgain:
		if next = w.pop(ctx); next == nil || next.job != c.job { // otherwise it has the same again
			w.report(ctx, c, statusCompleted)
		}
	case unregisters:
		if w.leave(ctx) {
			w.report(ctx, c, statusCompleted)
		}
	default:
		w.report(ctx, c, statusCompleted)
	}
	return next
}

// renew gives a claim another output.
func (w *worker) renew(c *claim) {
	w.values++
	c.value = fmt.Sprintf("%s-%d", w.id, w.values)
}

func (w *worker) hangUp() {
	w.conn.close()
	w.conn = nil
}

// connect makes a connection that speaks for the worker. A worker of seed 002 registers; that is refused while
// its last connection is open.
func (w *worker) connect(ctx context.Context, introduce bool) bool {
	for ctx.Err() == nil && w.conn == nil {
		var err error
		if w.conn, err = dial(w.load.door(w.random)); err != nil {
			w.conn = nil
			pause(ctx, 20*time.Millisecond)
			continue
		}
		if w.introduce(introduce) {
			return true
		}
		w.hangUp()
		pause(ctx, 20*time.Millisecond)
	}
	return w.conn != nil
}

func (w *worker) introduce(register bool) bool {
	if w.seed && register {
		a, err := w.conn.do(0, "WORKER.REGISTER", fmt.Sprintf(`{"worker_id":%q,"hostname":"h","agw_version":"0.1.0",`+
			`"capabilities":{"tools":["echo"]}}`, w.id))
		if err == nil && a.refused() && a.text != "ERR Worker ID already registered" && !passing(a.text) {
			w.load.report("WORKER.REGISTER is answered %.200q", a.text)
		}
		return err == nil && !a.refused()
	}
	a, err := w.conn.do(0, "PING", w.id)
	if err == nil && a.text != w.id {
		w.load.report("PING is answered %.200q", a.text)
	}
	return err == nil && a.text == w.id
}

// passing says whether a refusal tells of a fault, such as a server without its database.
func passing(text string) bool {
	for _, part := range []string{"database", "unavailable", "stopping", "not serving", "try again"} {
		if strings.Contains(strings.ToLower(text), part) {
			return true
		}
	}
	return false
}

// do sends a command over the worker's connection. After an error there is none.
func (w *worker) do(beyond time.Duration, args ...string) (answer, error) {
	a, err := w.conn.do(beyond, args...)
	if err != nil {
		w.hangUp()
	}
	return a, err
}

// pop pops a job; nil: it got none, or does not know.
func (w *worker) pop(ctx context.Context) *claim {
	if !w.connect(ctx, true) {
		return nil
	}
	event := w.log.Begin(history.Event{Op: opPop})
	command := []string{"BRPOPLPUSH", "queue:ready", "queue:processing", "0.5"}
	if w.seed {
		command = []string{"BRPOP", "queue:ready", "0.5"}
	}
	a, err := w.do(time.Second, command...)
	if err != nil {
		return nil
	}
	if event.Outcome = history.Refused; a.null || a.refused() {
		if event.Why = a.text; a.refused() {
			w.hangUp() // such as a connection that a newer one has fenced
			pause(ctx, 20*time.Millisecond)
		}
		w.log.Finish(event)
		return nil
	}
	job := a.text
	if w.seed {
		var whole struct {
			ID string `json:"job_id"`
		}
		if len(a.items) != 2 || json.Unmarshal([]byte(a.items[1].text), &whole) != nil || whole.ID == "" {
			w.load.report("BRPOP is answered %.200q", fmt.Sprint(a.items))
		}
		job = whole.ID
	}
	event.Outcome, event.Run = history.OK, job
	w.log.Finish(event)
	c := &claim{job: job, token: tokenOf(event)}
	w.renew(c)
	return c
}

// tokenOf names the claim that a pop has made.
func tokenOf(e history.Event) string { return fmt.Sprintf("%s/%d", e.Proc, e.Seq) }

// fetch reads the job and its plan, as AGW does, and says whether the worker holds it.
func (w *worker) fetch(ctx context.Context, job string) bool {
	for _, key := range []string{"job:" + job, "plan:torture"} {
		for {
			if !w.connect(ctx, true) {
				return false
			}
			a, err := w.do(0, "GET", key)
			if err != nil {
				continue
			}
			if a.null || a.refused() {
				if !passing(a.text) {
					w.load.report("GET %s is answered %.200q by a worker that holds the job", key, a.text)
				}
				return false
			}
			break
		}
	}
	return true
}

// report reports a job until it is answered, and says whether it counted. A broken connection repeats all of it.
func (w *worker) report(ctx context.Context, c *claim, status string) bool {
	for w.connect(ctx, false) {
		var event history.Event
		begin := func() {
			event = w.log.Begin(history.Event{Op: opReport, Run: c.job, Token: c.token, Status: status, Value: c.value})
		}
		var a answer
		var err error
		if w.seed {
			update, _ := json.Marshal(map[string]any{"status": status, "worker_id": w.id, // texts always encode
				"task_results": []map[string]any{{"task_number": 1, "exit_code": 0, "stdout": c.value}}})
			begin()
			a, err = w.do(0, "JOB.UPDATE", c.job, string(update))
		} else {
			if _, err = w.do(0, "SET", "job:"+c.job+":stdout", c.value); err == nil {
				_, err = w.do(0, "SET", "job:"+c.job+":stderr", "")
			}
			if err != nil {
				continue
			}
			begin()
			a, err = w.do(0, "SET", "job:"+c.job+":status", status)
		}
		if err != nil {
			continue
		}
		if event.Outcome = history.OK; a.refused() {
			if event.Outcome, event.Why = history.Refused, a.text; passing(a.text) {
				event.Outcome = history.Unknown
				w.log.Finish(event)
				pause(ctx, 20*time.Millisecond)
				continue
			}
		}
		w.log.Finish(event)
		if !w.seed && w.conn != nil {
			_, _ = w.do(0, "LREM", "queue:processing", "1", c.job)
		}
		return event.Outcome == history.OK
	}
	return false
}

// leave unregisters the worker, and says whether it knows that it did.
func (w *worker) leave(ctx context.Context) bool {
	if !w.connect(ctx, true) {
		return false
	}
	event := w.log.Begin(history.Event{Op: opLeave})
	a, err := w.do(0, "WORKER.UNREGISTER", w.id)
	if err != nil {
		return false
	}
	if event.Outcome = history.OK; a.refused() {
		event.Outcome, event.Why = history.Refused, a.text
	}
	w.log.Finish(event)
	w.hangUp()
	return event.Outcome == history.OK
}
