package agq_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/kagzi/kagzi/backends/memory"
	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/agq"
	"github.com/kagzi/kagzi/engine/coordinator"
	"github.com/kagzi/kagzi/engine/matching"
	"github.com/kagzi/kagzi/engine/server"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// fixture is a server with its door.
type fixture struct {
	testing.TB
	store  engine.Store
	server *server.Server
	conn   grpc.ClientConnInterface
	upkeep *coordinator.Coordinator
	at     string // address of the door
	stop   func()
}

// world is a database whose time a test moves. Servers on it share both.
type world struct {
	db     *memory.Database
	passed atomic.Int64
}

func newWorld() *world {
	w := &world{}
	w.db = memory.New(memory.Options{Now: w.now})
	return w
}

func (w *world) now() time.Time { return engine.Micros(time.Now().Add(time.Duration(w.passed.Load()))) }

// pass moves the time, and lets the coordinators do what is due in each second of it.
func (w *world) pass(d time.Duration, of ...*fixture) {
	for ; d > 0; d -= time.Second {
		w.passed.Add(int64(min(d, time.Second)))
		for _, f := range of {
			f.upkeep.Pass(f.Context())
		}
	}
}

// start starts a server on a world.
func (w *world) start(t testing.TB) *fixture {
	t.Helper()
	return serve(t, w.db.Open(nil), w.now)
}

// start starts a server on a database of its own.
func start(t testing.TB) *fixture {
	t.Helper()
	return newWorld().start(t)
}

// serve starts a server and its door on a store.
func serve(t testing.TB, store engine.Store, now func() time.Time) *fixture {
	t.Helper()
	return serveWith(t, store, now, server.Options{}, nil)
}

// serveWith is serve with options of the server, and with a change to its door.
func serveWith(t testing.TB, store engine.Store, now func() time.Time, o server.Options,
	change func(*agq.Door)) *fixture {
	t.Helper()
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	matcher := matching.New(store, log)
	o.Log = log
	f := &fixture{TB: t, store: store, server: server.New(store, matcher, o)}
	f.conn = f.server.Direct()
	f.upkeep = coordinator.New(store, coordinator.Options{Clock: now, Log: log, Observer: f.server})
	f.upkeep.Begin()
	ctx, cancel := context.WithCancel(context.Background())
	var parts sync.WaitGroup
	parts.Go(func() { _ = matcher.Run(ctx) })
	calls, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	parts.Go(func() { _ = f.server.Run(ctx, calls) })
	parts.Go(func() {
		_ = store.Listen(ctx, func(n engine.Notification) {
			matcher.Notify(n)
			f.server.Notify(n)
			f.upkeep.Notify(n)
		}, f.server)
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f.at = l.Addr().String()
	door := agq.New(f.server.Direct(), agq.Options{Log: log, Now: now, Shared: true})
	if change != nil {
		change(door)
	}
	parts.Go(func() {
		if err := door.Serve(ctx, l); err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	f.stop = sync.OnceFunc(func() {
		cancel()
		parts.Wait()
	})
	t.Cleanup(f.stop)
	return f
}

// client speaks RESP over one connection.
type client struct {
	t   testing.TB
	raw net.Conn
	r   *bufio.Reader
}

func (f *fixture) dial() *client {
	f.Helper()
	raw, err := net.Dial("tcp", f.at)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = raw.Close() })
	return &client{f, raw, bufio.NewReader(raw)}
}

// as returns a connection that speaks for a worker.
func (f *fixture) as(worker string) *client {
	f.Helper()
	c := f.dial()
	c.want("$"+worker, "PING", worker)
	return c
}

func encode(args ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	return b.String()
}

func (c *client) send(args ...string) {
	c.t.Helper()
	if _, err := io.WriteString(c.raw, encode(args...)); err != nil {
		c.t.Fatalf("send %q: %v", args, err)
	}
}

// answer reads an answer as text: its first line, with the text of a bulk string after $, nil, or items in
// brackets.
func (c *client) answer() string {
	c.t.Helper()
	_ = c.raw.SetReadDeadline(time.Now().Add(30 * time.Second))
	text, err := readAnswer(c.r)
	if err != nil {
		c.t.Fatalf("read an answer: %v", err)
	}
	return text
}

func readAnswer(r *bufio.Reader) (string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return "", err
	}
	line = strings.TrimSuffix(line, "\r\n")
	n, _ := strconv.Atoi(line[1:])
	switch {
	case line == "_" || (line[0] == '$' || line[0] == '*') && n < 0:
		return "nil" + line[:1], nil
	case line[0] == '$':
		text := make([]byte, n+2)
		_, err := io.ReadFull(r, text)
		return "$" + string(text[:n]), err
	case line[0] == '*' || line[0] == '%':
		if line[0] == '%' {
			n *= 2
		}
		items := make([]string, n)
		for i := range items {
			if items[i], err = readAnswer(r); err != nil {
				return "", err
			}
		}
		return line[:1] + "[" + strings.Join(items, " ") + "]", nil
	}
	return line, nil
}

func (c *client) do(args ...string) string {
	c.t.Helper()
	c.send(args...)
	return c.answer()
}

// want requires an answer. One that ends with … need only begin like it.
func (c *client) want(want string, args ...string) {
	c.t.Helper()
	if got := c.do(args...); !matches(got, want) {
		c.t.Fatalf("%q is answered %q, want %q", args, got, want)
	}
}

func matches(got, want string) bool {
	if head, open := strings.CutSuffix(want, "…"); open {
		return strings.HasPrefix(got, head)
	}
	return got == want
}

// closed requires that the server has closed the connection.
func (c *client) closed() {
	c.t.Helper()
	_ = c.raw.SetReadDeadline(time.Now().Add(30 * time.Second))
	if b, err := c.r.ReadByte(); err == nil {
		c.t.Fatalf("the connection is open, and says %q", b)
	}
}

const echoPlan = `{"plan_id":"echo","plan_description":"says a word","tasks":[` +
	`{"task_number":1,"command":"echo","args":["{{input.word}}"],"timeout_secs":5},` +
	`{"task_number":2,"command":"wc","args":["-c"],"input_from_task":1}]}`

// submit submits an action of the plan echo with so many jobs, and returns their ids.
func (f *fixture) submit(action string, jobs int) []string {
	f.Helper()
	c := f.dial()
	defer func() { _ = c.raw.Close() }()
	c.want("$echo", "PLAN.SUBMIT", echoPlan)
	inputs := strings.Repeat(`{"word":"hello"},`, jobs)
	answer := c.do("ACTION.SUBMIT", fmt.Sprintf(`{"action_id":%q,"plan_id":"echo","inputs":[%s]}`, action,
		strings.TrimSuffix(inputs, ",")))
	return idsIn(f, answer)
}

// idsIn returns the job ids of the answer to ACTION.SUBMIT.
func idsIn(t testing.TB, answer string) []string {
	t.Helper()
	_, list, found := strings.Cut(answer, `"job_ids":[`)
	if !found {
		t.Fatalf("ACTION.SUBMIT is answered %q", answer)
	}
	list, _, _ = strings.Cut(list, "]")
	return strings.Split(strings.ReplaceAll(list, `"`, ""), ",")
}

// run returns a run as the API shows it.
func (f *fixture) run(id string) *kagziv1.Workflow {
	f.Helper()
	answer, err := kagziv1.NewWorkflowServiceClient(f.conn).GetWorkflow(f.Context(),
		&kagziv1.GetWorkflowRequest{RunId: id})
	if err != nil {
		f.Fatal(err)
	}
	return answer.Workflow
}

// steps returns the steps of a run as "name STATUS", with all attempts.
func (f *fixture) steps(id string) string {
	f.Helper()
	answer, err := kagziv1.NewAdminServiceClient(f.conn).ListSteps(f.Context(), &kagziv1.ListStepsRequest{RunId: id})
	if err != nil {
		f.Fatal(err)
	}
	var all []string
	for _, s := range answer.Steps {
		all = append(all, s.Name+" "+strings.TrimPrefix(s.Status.String(), "STEP_STATUS_"))
	}
	return strings.Join(all, ", ")
}

// wantStatus requires a job's status.
func (f *fixture) wantStatus(id, status string) {
	f.Helper()
	c := f.dial()
	defer func() { _ = c.raw.Close() }()
	if got := c.do("JOB.STATUS", id); !strings.Contains(got, `"status":"`+status+`"`) {
		f.Fatalf("job %s is %s, want status %q", id, got, status)
	}
}

// passUntil moves the time until a job has a status. A machine that is busy looks to the coordinator as if it had
// slept, and silence during a sleep does not count.
func (w *world) passUntil(f *fixture, id, status string) {
	f.Helper()
	c := f.dial()
	defer func() { _ = c.raw.Close() }()
	for range 600 {
		w.pass(time.Second, f)
		if strings.Contains(c.do("JOB.STATUS", id), `"status":"`+status+`"`) {
			return
		}
	}
	f.wantStatus(id, status)
}
