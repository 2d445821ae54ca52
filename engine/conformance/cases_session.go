package conformance

import (
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/kagzi/kagzi/engine/conformance/program"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// hellos returns the hellos so far.
func (c *attempt) hellos() []*kagziv1.RegisterRequest {
	var all []*kagziv1.RegisterRequest
	for _, m := range c.board.all() {
		if h := m.up.GetHello(); h != nil {
			all = append(all, h)
		}
	}
	return all
}

// reconnects breaks the connection and waits for the next hello, whose stream it returns.
func (c *attempt) reconnects() int64 {
	n, last := len(c.hellos()), int64(0)
	for _, m := range c.board.all() {
		last = max(last, m.stream)
	}
	g := &going{c: c, f: newFamily(c.host, "")}
	g.until("a stream in use", func() bool { return c.board.sent(last) > 1 })
	c.proxy.cut()
	g.until("another hello", func() bool { return len(c.hellos()) > n })
	var stream int64
	g.until("a welcome", func() bool {
		stream = last
		for _, m := range c.board.all() {
			if m.down.GetWelcome() != nil {
				stream = max(stream, m.stream)
			}
		}
		return stream > last && c.board.sent(stream) > 1
	})
	return stream
}

// sent counts the messages of the subject on a stream.
func (b *board) sent(stream int64) (n int) {
	for _, m := range b.all() {
		if m.stream == stream && m.up != nil {
			n++
		}
	}
	return n
}

// sentOn returns the messages of the subject on a stream.
func (c *attempt) sentOn(stream int64) []*kagziv1.SessionRequest {
	var all []*kagziv1.SessionRequest
	for _, m := range c.board.all() {
		if m.stream == stream && m.up != nil {
			all = append(all, m.up)
		}
	}
	return all
}

// beats waits for so many heartbeats that the subject sends from now on, and returns the last.
func (c *attempt) beats(n int) (last *kagziv1.HeartbeatRequest) {
	from := c.board.length()
	g := &going{c: c, f: newFamily(c.host, "")}
	g.until("heartbeats", func() bool {
		seen := 0
		for _, m := range c.board.since(from) {
			if m.up.GetHeartbeat() != nil {
				seen++
				last = m.up.GetHeartbeat()
			}
		}
		return seen >= n
	})
	return last
}

// after injects a message behind the next one to the subject.
func (c *attempt) after(injected *kagziv1.SessionResponse) {
	c.board.mu.Lock()
	defer c.board.mu.Unlock()
	c.board.inject = func(_ int64, r *kagziv1.SessionResponse) []*kagziv1.SessionResponse {
		c.board.inject = nil
		return []*kagziv1.SessionResponse{r, injected}
	}
}

func sessionCases() []fixed {
	one := func(id, name string, run func(c *attempt)) fixed {
		return fixed{id: id, name: name, run: run, alone: true}
	}
	return []fixed{
		one("1.2", "the hello has what it must have", func(c *attempt) {
			h := c.hellos()[0]
			c.want(slices.Contains(h.GetWorkflowTypes(), "conformance") && h.GetTaskQueue() == queue && h.GetInstanceId() != "" &&
				h.GetMaxConcurrent() == 100 && h.GetBuildId() == build && h.GetNamespace() == namespace, "it is %s", h)
		}),
		one("1.3", "a new stream names instance and worker", func(c *attempt) {
			c.reconnects()
			all := c.hellos()
			a, b := all[len(all)-2], all[len(all)-1]
			c.want(a.GetInstanceId() == b.GetInstanceId() && b.GetWorkerId() != "", "the hello is %s, the one before %s", b, a)
		}),
		one("2.3", "a new stream begins with a heartbeat that names all runs", func(c *attempt) {
			g := c.start(step("m"))
			g.asked("m")
			stream := c.reconnects()
			beat := c.sentOn(stream)[1].GetHeartbeat()
			c.want(beat.GetHeldIsWhole() && len(beat.GetHeld()) == 1 && beat.GetHeld()[0].GetRunId() == g.id(), "the second message is %s", c.sentOn(stream)[1])
			g.give("m", "1")
			g.completes()
		}),
		one("2.2", "code goes on without a stream, and its result is sent later", func(c *attempt) {
			g := c.start(step("m"), step("n"))
			g.asked("m")
			c.proxy.cut()
			g.give("m", "1")
			g.give("n", "2")
			g.traced(g.completes(), "m", "1", "n", "2")
			c.want(len(c.gate.questions(g.id()+"/m")) == 1, "step m ran again")
		}),
		one("2.3", "unanswered operations go before credit", func(c *attempt) {
			g := c.start(step("m"), step("n"))
			g.asked("m")
			broken := false
			g.hook(func(r *kagziv1.SessionRequest) *kagziv1.ErrorDetail {
				if ofStep("m")(r) && !broken {
					broken = true
					go c.proxy.cut()
					return &kagziv1.ErrorDetail{Code: kagziv1.ErrorCode_ERROR_CODE_UNAVAILABLE, Message: "broken"}
				}
				return nil
			})
			g.give("m", "1")
			g.give("n", "2")
			g.completes()
			var last int64
			for _, m := range c.board.all() {
				last = max(last, m.stream)
			}
			credit, result := -1, -1
			for i, r := range c.sentOn(last) {
				if r.GetCredit() != nil && credit < 0 {
					credit = i
				}
				if ofStep("m")(r) {
					result = i
				}
			}
			c.want(result < 0 || credit < 0 || result < credit, "the result was message %d, credit %d", result, credit)
		}),
		one("3.2", "credit is what is free", func(c *attempt) {
			g := c.start(step("m"))
			g.asked("m")
			stream := c.reconnects()
			sum := int32(0)
			g.until("credit", func() bool {
				sum = 0
				for _, r := range c.sentOn(stream) {
					sum += r.GetCredit().GetTasks()
				}
				return sum > 0
			})
			c.want(sum == 99, "the credit is %d, want 99", sum)
			g.give("m", "1")
			g.completes()
			g.until("the credit of the run that has ended", func() bool {
				sum = 0
				for _, r := range c.sentOn(stream) {
					sum += r.GetCredit().GetTasks()
				}
				return sum == 100
			})
		}),
		one("3.3", "a task that comes twice is run once, and its credit returned", func(c *attempt) {
			stream := c.reconnects()
			c.board.mu.Lock()
			c.board.inject = func(_ int64, r *kagziv1.SessionResponse) []*kagziv1.SessionResponse {
				if r.GetTask() == nil {
					return []*kagziv1.SessionResponse{r}
				}
				c.board.inject = nil
				return []*kagziv1.SessionResponse{r, proto.CloneOf(r)}
			}
			c.board.mu.Unlock()
			g := c.start(step("m"))
			q := g.asked("m")
			credits := func(want int32) {
				g.until(fmt.Sprint(want, " credits"), func() (enough bool) {
					sum := int32(0)
					for _, r := range c.sentOn(stream) {
						sum += r.GetCredit().GetTasks()
					}
					return sum == want
				})
			}
			credits(101) // of the second task
			c.want(len(c.gate.questions(q.Key)) == 1, "the step ran twice")
			g.give("m", "1")
			g.completes()
			credits(102)
		}),
		one("7.4", "a task of a run that is held, under another token, ends the old activation", func(c *attempt) {
			g := c.start(step("m"), step("n"))
			g.asked("m")
			g.suspend()
			g.give("m", "1")
			g.give("n", "2")
			g.traced(g.completes(), "m", "1", "n", "2")
		}),
		one("4.2", "heartbeats name what is held", func(c *attempt) {
			g := c.start(step("m"))
			g.asked("m")
			beat := c.beats(1)
			c.want(beat.GetHeldIsWhole() && len(beat.GetHeld()) == 1 && beat.GetHeld()[0].GetLeaseToken() != "" && beat.TasksReceived != nil, "it is %s", beat)
			g.give("m", "1")
			g.completes()
		}),
		one("26.2", "an answer to an unknown number is ignored", func(c *attempt) {
			c.after(&kagziv1.SessionResponse{Seq: 1 << 40, Event: &kagziv1.SessionResponse_Ack{Ack: &kagziv1.Ack{}}})
			c.start(step("a-m")).completes()
		}),
		one("26.1", "an event that nobody knows is ignored", func(c *attempt) {
			unknown := &kagziv1.SessionResponse{}
			unknown.ProtoReflect().SetUnknown([]byte{0xf2, 0x3f, 0x02, 0x08, 0x01}) // field 1022, a message
			c.after(unknown)
			c.start(step("a-m")).completes()
		}),
		one("7.1", "a word to stop a run that is not held is ignored", func(c *attempt) {
			c.after(&kagziv1.SessionResponse{Event: &kagziv1.SessionResponse_CancelTask{CancelTask: &kagziv1.CancelTask{
				RunId: "0190b6e2-8f00-7000-8000-000000000001", LeaseToken: "x"}}})
			c.start(step("a-m")).completes()
		}),
		one("11.7", "a hint about a wait that is over is ignored", func(c *attempt) {
			g := c.start(step("a-m"), wait("go"), step("a-n"))
			c.after(&kagziv1.SessionResponse{Event: &kagziv1.SessionResponse_WaitOver{WaitOver: &kagziv1.WaitOver{RunId: g.id(), StepName: "x"}}})
			g.parked()
			g.signal("go", "1")
			g.completes()
		}),
		one("8.2", "nothing begins after 80 % of the lease without contact", func(c *attempt) {
			g := c.start(step("m"), step("n"))
			g.asked("m")
			c.board.onCalls(func(method string, answered bool) error { // a subject may beat outside of its session, too
				if method == "Heartbeat" && !answered {
					return status.Error(codes.Unavailable, "no contact")
				}
				return nil
			})
			defer c.board.onCalls(nil)
			c.board.mu.Lock()
			silent := time.Now() // later than the last heartbeat that the subject knows to be accepted was sent
			c.board.inject = func(_ int64, r *kagziv1.SessionResponse) []*kagziv1.SessionResponse {
				if r.GetHeartbeat() != nil {
					return nil
				}
				return []*kagziv1.SessionResponse{r}
			}
			c.board.mu.Unlock()
			g.until("the end of 80 % of the lease", func() bool { return time.Since(silent) > caseLease*8/10 })
			g.give("m", "1")
			g.recorded("m")
			c.beats(2)
			c.board.mu.Lock()
			c.board.inject = nil
			heard := time.Now()
			c.board.mu.Unlock()
			c.board.onCalls(nil)
			q := g.give("n", "2")
			c.want(c.gate.questions(q.Key)[0].at.After(heard), "step n began before")
			g.traced(g.completes(), "m", "1", "n", "2")
		}),
		one("2.1", "a worker outlasts a server that restarts", func(c *attempt) {
			g := c.start(step("m"), step("n"))
			g.asked("m")
			c.check(c.host.restart())
			g.give("m", "1")
			g.give("n", "2")
			g.traced(g.completes(), "m", "1", "n", "2")
		}),
		one("16.4", "a timer that ends while its answer is lost comes after what was recorded before", func(c *attempt) {
			lostAnswer(c, nap("late", 500), func(r *kagziv1.SessionRequest) bool { return r.GetSleep() != nil },
				func(g *going) {
					end := g.row("late").GetWakeUpAt().AsTime()
					g.until("the end of the timer", func() bool { return time.Now().After(end) })
				}, "null")
		}),
		one("16.4", "a signal that comes while an answer is lost comes after what was recorded before", func(c *attempt) {
			lostAnswer(c, wait("late"), func(r *kagziv1.SessionRequest) bool { return r.GetAwaitSignal() != nil },
				func(g *going) { g.signal("late", "1") }, "1")
		}),
		one("6.2", "a sleep that is repeated after its run has woken still parks", func(c *attempt) { wokenUnheard(c) }),
		one("25.1", "a worker that is asked to end lets its runs end first", func(c *attempt) { drains(c) }),
		one("25.3", "a worker that is killed leaves its runs to another", func(c *attempt) {
			g := c.start(step("m"), step("n"))
			g.give("m", "1")
			g.asked("n")
			c.check(c.again(c.ctx))
			g.give("n", "2")
			g.traced(g.completes(), "m", "1", "n", "2")
			c.want(len(c.gate.questions(g.id()+"/m")) == 1, "step m ran again")
		}),
		one("12.8", "a process that a step ends is started again, and the step with it", func(c *attempt) {
			g := c.start(step("m"))
			g.say("m", program.Answer{Do: "exit"})
			select {
			case <-c.process.ended:
			case <-c.ctx.Done():
				c.fail("the process did not end")
			}
			c.check(c.again(c.ctx))
			g.give("m", "1")
			g.traced(g.completes(), "m", "1")
		}),
		one("25.4", "what a subject prints does not matter", func(c *attempt) {
			g := c.start(step("m"))
			g.say("m", program.Answer{Do: "print", Text: "{\"seq\":1}\nnoise"})
			g.give("m", "1")
			g.completes()
		}),
	}
}

// lostAnswer loses the answer to a wait, and breaks the connection once the result of step m, which the
// subject has sent behind the wait, is recorded, and what the wait waits for has happened.
func lostAnswer(c *attempt, o *program.Op, is func(*kagziv1.SessionRequest) bool, happen func(*going), result string) {
	g := gated(c, list(fork(list(step("n"), o), list(step("m")))), func(g *going) {
		c.board.mu.Lock()
		defer c.board.mu.Unlock()
		c.board.inject = func(_ int64, r *kagziv1.SessionResponse) []*kagziv1.SessionResponse {
			if to := c.board.log[len(c.board.log)-1].to; to != nil && runOf(to) == g.id() && is(to) {
				return nil
			}
			return []*kagziv1.SessionResponse{r}
		}
	})
	g.asked("m")
	g.give("n", "1") // the wait goes behind the beginning of m, which would wait for its answer otherwise
	g.until("the wait", func() bool { return g.row("late") != nil && g.count(is) > 0 })
	g.give("m", "2")
	g.recorded("m")
	happen(g)
	c.board.mu.Lock()
	c.board.inject = nil
	c.board.mu.Unlock()
	c.proxy.cut()
	g.traced(g.completes(), "begin", "0", "n", "1", "m", "2", "late", result)
}

// wokenUnheard loses the answer to a sleep that parks, and the task when the timer has ended. The repeated
// sleep must not be taken for one that is over: its lease is.
func wokenUnheard(c *attempt) {
	g := gated(c, list(nap("late", 500), step("m")), func(g *going) {
		c.board.mu.Lock()
		defer c.board.mu.Unlock()
		c.board.inject = func(_ int64, r *kagziv1.SessionResponse) []*kagziv1.SessionResponse {
			if r.GetSleeping() != nil || r.GetTask().GetRunId() == g.id() {
				return nil
			}
			return []*kagziv1.SessionResponse{r}
		}
	})
	g.recorded("late") // by the claim of the task
	c.board.mu.Lock()
	c.board.inject = nil
	c.board.mu.Unlock()
	c.proxy.cut()
	g.give("m", "1")
	g.traced(g.completes(), "begin", "0", "late", "null", "m", "1")
	c.want(len(c.gate.questions(g.id()+"/m")) == 1, "step m ran under the lease that the sleep had ended")
}

// drains stops the subject while a run is in hand.
func drains(c *attempt) {
	g := c.start(step("m"), step("n"), returns("1"))
	g.asked("m")
	p := c.process
	stopped := make(chan error, 1)
	go func() { stopped <- p.stop(stopLimit) }()
	g.until("goodbye", func() bool {
		for _, m := range c.board.all() {
			if m.up.GetGoodbye().GetDrain() {
				return true
			}
		}
		return false
	})
	credits := func() (n int) {
		for _, m := range c.board.all() {
			if m.up.GetCredit() != nil {
				n++
			}
		}
		return n
	}
	before := credits()
	g.c.want(g.c.gate.answer(g.asked("m").Key, program.Answer{Do: "return"}), "step m is gone")
	g.c.want(g.c.gate.answer(g.asked("n").Key, program.Answer{Do: "return"}), "step n is gone")
	// not completes: the subject is about to end
	c.check(await(c.ctx, func() (bool, error) { return ended(g.get().GetStatus()), nil }, c.host.changes))
	c.want(g.get().GetStatus() == kagziv1.WorkflowStatus_WORKFLOW_STATUS_COMPLETED, "the run is %s", g.get().GetStatus())
	err := <-stopped
	c.want(err == nil, "the subject ended with %v", err)
	c.want(credits() == before, "it asked for more runs")
	workers, err := c.host.workers(c.ctx)
	c.check(err)
	c.want(len(workers) == 0, "it did not deregister")
	c.process = nil
	c.check(c.begin(c.ctx, c.more))
}
