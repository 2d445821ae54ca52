package agqload

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kagzi/kagzi/engine/lab/torture/history"
)

// Operations of the history. A worker's claim of a job is named by its pop: PROC/SEQ.
const (
	opSubmit history.Op = "agq.submit" // of the action Request, with the inputs in Value; Status EXISTS if it was repeated
	opPop    history.Op = "agq.pop"    // got the job Run; Refused: none was there
	opReport history.Op = "agq.report" // of the job Run under the claim Token: Status, and the output in Value
	opLeave  history.Op = "agq.leave"  // the worker unregistered
)

const (
	statusCompleted = "completed"
	statusFailed    = "failed"
	alreadyExists   = "EXISTS"
)

// Options size a load.
type Options struct {
	Doors      []string // addresses of AGQ ports
	Seed       uint64
	Workers    int
	Submitters int
	Pause      time.Duration // of a submitter between two actions, on average
	WorkTime   time.Duration // of a job, at most
}

// Load is a load of AGQ workers and clients.
type Load struct {
	o    Options
	logs []*history.Log

	mu      sync.Mutex
	trouble []string
	actions []string       // acknowledged ones, of which the end is not known yet
	fails   map[string]int // failed reports by job

	Submitted, Ended atomic.Int64 // actions that were acknowledged, and those of which all jobs have ended
}

// New returns a load.
func New(o Options) *Load { return &Load{o: o, fails: map[string]int{}} }

// plan is what all jobs run. Its tasks are never executed: workers here only report.
const plan = `{"plan_id":"torture","tasks":[{"task_number":1,"command":"echo","args":["{{input.word}}"],"timeout_secs":900}]}`

// Run submits actions until starting ends, and works until all of them have ended, or ctx has.
func (l *Load) Run(ctx, starting context.Context) {
	working, stop := context.WithCancel(ctx)
	defer stop()
	var workers, submitters sync.WaitGroup
	for n := range l.o.Workers {
		w := &worker{load: l, id: fmt.Sprintf("w%d", n+1), random: rand.New(rand.NewPCG(l.o.Seed, uint64(n))),
			seed: n%2 == 1}
		w.log = l.newLog(w.id)
		workers.Go(func() { w.run(working) })
	}
	for n := range l.o.Submitters {
		s := &submitter{load: l, random: rand.New(rand.NewPCG(l.o.Seed, uint64(1000+n))), number: n}
		s.log = l.newLog(fmt.Sprintf("client-%d", n+1))
		submitters.Go(func() { s.run(ctx, starting) })
	}
	submitters.Wait()
	l.awaitEnds(ctx)
	stop()
	workers.Wait()
}

// Events returns what workers and clients saw. The load must have ended.
func (l *Load) Events() []history.Event {
	var all []history.Event
	for _, log := range l.logs {
		all = append(all, log.Events()...)
	}
	return all
}

// Trouble returns answers that no fault explains.
func (l *Load) Trouble() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.trouble
}

func (l *Load) newLog(proc string) *history.Log {
	log := history.NewLog(proc)
	l.logs = append(l.logs, log)
	return log
}

func (l *Load) report(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.trouble = append(l.trouble, fmt.Sprintf(format, args...))
}

// mayFail says whether a job may be reported as failed once more: it has three retries, and each costs a
// second or more.
func (l *Load) mayFail(job string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fails[job] >= 2 {
		return false
	}
	l.fails[job]++
	return true
}

func (l *Load) door(r *rand.Rand) string { return l.o.Doors[r.IntN(len(l.o.Doors))] }

// awaitEnds asks for the actions until all have ended.
func (l *Load) awaitEnds(ctx context.Context) {
	r := rand.New(rand.NewPCG(l.o.Seed, 2000))
	var c *conn
	defer func() { c.close() }()
	for wait := time.Duration(0); pause(ctx, wait); {
		wait = 50 * time.Millisecond
		l.mu.Lock()
		open := l.actions
		l.mu.Unlock()
		if len(open) == 0 {
			return
		}
		var err error
		if c == nil {
			if c, err = dial(l.door(r)); err != nil {
				c = nil
				continue
			}
		}
		a, err := c.do(0, "ACTION.STATUS", open[0])
		if err != nil {
			c.close()
			c = nil
			continue
		}
		var s struct{ Pending, Running int }
		if json.Unmarshal([]byte(a.text), &s) != nil || a.refused() {
			l.report("ACTION.STATUS of %s, which was acknowledged, is answered %.200q", open[0], a.text)
		} else if s.Pending+s.Running > 0 {
			continue
		}
		wait = 0
		l.Ended.Add(1)
		l.mu.Lock()
		l.actions = l.actions[1:]
		l.mu.Unlock()
	}
}

// pause waits, and says whether ctx goes on.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// submitter is a client that submits actions.
type submitter struct {
	load   *Load
	log    *history.Log
	random *rand.Rand
	number int
	conn   *conn
}

func (s *submitter) run(ctx, starting context.Context) {
	defer func() { s.conn.close() }()
	if !s.insist(ctx, func(a *answer) bool { return a.text == "torture" }, "PLAN.SUBMIT", plan) {
		return
	}
	for n := 0; starting.Err() == nil; n++ {
		s.submit(ctx, fmt.Sprintf("a%d-%d", s.number, n))
		pause(starting, time.Duration(s.random.Int64N(2*int64(s.load.o.Pause))))
	}
}

// insist repeats a command until it is answered as it should be.
func (s *submitter) insist(ctx context.Context, good func(*answer) bool, args ...string) bool {
	for ctx.Err() == nil {
		a, err := s.do(args...)
		if err == nil && good(&a) {
			return true
		}
		if err == nil {
			s.load.report("%q is answered %.200q", args[0], a.text)
			return false
		}
		pause(ctx, 20*time.Millisecond)
	}
	return false
}

func (s *submitter) do(args ...string) (answer, error) {
	var err error
	if s.conn == nil {
		if s.conn, err = dial(s.load.door(s.random)); err != nil {
			s.conn = nil
			return answer{}, err
		}
	}
	a, err := s.conn.do(0, args...)
	if err != nil {
		s.conn.close()
		s.conn = nil
	}
	return a, err
}

// submit submits an action until its answer says that it is there.
func (s *submitter) submit(ctx context.Context, action string) {
	words := make([]string, 1+s.random.IntN(4))
	inputs := make([]map[string]string, len(words))
	for i := range words {
		words[i] = action + "/" + strconv.Itoa(i+1)
		inputs[i] = map[string]string{"word": words[i]}
	}
	text, err := json.Marshal(map[string]any{"action_id": action, "plan_id": "torture", "inputs": inputs})
	if err != nil {
		panic(err) // texts
	}
	for tried := false; ctx.Err() == nil; tried = true {
		event := s.log.Begin(history.Event{Op: opSubmit, Request: action, Value: strings.Join(words, " ")})
		a, err := s.do("ACTION.SUBMIT", string(text))
		if err != nil {
			pause(ctx, 20*time.Millisecond)
			continue // it may have counted
		}
		var made struct {
			Jobs []string `json:"job_ids"`
		}
		switch {
		case tried && strings.HasPrefix(a.text, "ERR Action already exists"):
			event.Status = alreadyExists
		case a.refused() || json.Unmarshal([]byte(a.text), &made) != nil || len(made.Jobs) != len(words):
			event.Outcome = history.Refused
			s.log.Finish(event)
			s.load.report("ACTION.SUBMIT is answered %.200q", a.text)
			return
		}
		event.Outcome = history.OK
		event.Run = strings.Join(made.Jobs, " ")
		s.log.Finish(event)
		s.load.Submitted.Add(1)
		s.load.mu.Lock()
		s.load.actions = append(s.load.actions, action)
		s.load.mu.Unlock()
		return
	}
}
