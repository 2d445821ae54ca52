package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/lab/long"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// Any bytes may be sent to any method. The server answers or refuses them, never with INTERNAL. A
// refusal gives the reason in text that is safe for a terminal and names a bad field. A refused
// call changes nothing that can be read.

var randomCalls = flag.Int("fuzz.calls", long.Count(200, 600),
	"make this many calls in TestRandomCalls…, evenly over methods; KAGZI_TEST_SEED replays a seed")

var onlyMethod = flag.String("fuzz.method", "", "call only this method (default all)")

// FuzzAPI searches for a call that breaks these rules. It takes a method by name; any other text
// stands for one of them. -fuzz.method keeps to one method; the text is then more random input, and
// a finding is replayed with the same -fuzz.method:
//
//	go test ./engine/lab/e2e -run '^$' -fuzz FuzzAPI -fuzztime 10m
//	go test ./engine/lab/e2e -run '^$' -fuzz FuzzAPI -fuzztime 10m -fuzz.method Session
//
// Or all of them, two at once, with how many inputs each has had and how many broke a rule (it
// stops at the first):
//
//	export T=$(mktemp -d); go test -c -fuzz FuzzAPI -o $T/fuzz.test ./engine/lab/e2e
//	grep -oh '^ *rpc [A-Za-z]*' proto/kagzi/v1/*.proto | awk '{print $2}' | (cd engine/lab/e2e && xargs -P 2 -I M sh -c '
//	  $T/fuzz.test -test.run "^$" -test.fuzz FuzzAPI -test.fuzztime 10m -test.fuzzminimizetime 100x -test.parallel 1 \
//	    -test.fuzzcachedir $T/M -fuzz.method M > $T/M.log 2>&1 && n=0 || n=1
//	  echo M $(grep -o "execs: [0-9]*" $T/M.log | tail -1) failures: $n')
//
// The store is in memory and time is virtual, so that an input costs only the server's work.
// TestRandomCalls… runs on SQLite.
func FuzzAPI(f *testing.F) {
	for _, name := range methodNames(f) {
		f.Add(name, []byte{})
		f.Add(name, []byte{0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10})
	}
	b := &bubble{asked: make(chan question), over: make(chan struct{})}
	f.Cleanup(func() { b.close(f) })
	f.Fuzz(func(t *testing.T, method string, script []byte) {
		if *onlyMethod != "" && method != *onlyMethod {
			method, script = *onlyMethod, slices.Concat(script, []byte(method))
		}
		for _, told := range b.ask(t, method, script) {
			t.Error(told)
		}
	})
}

// methodNames lists the methods to call.
func methodNames(tb testing.TB) (names []string) {
	tb.Helper()
	eachMethod(func(name string, _ protoreflect.MethodDescriptor, _ string) { names = append(names, name) })
	slices.Sort(names)
	switch {
	case *onlyMethod == "":
		return names
	case !slices.Contains(names, *onlyMethod):
		tb.Fatalf("there is no method %q, want one of %v", *onlyMethod, names)
	}
	return []string{*onlyMethod}
}

func TestRandomCallsAreAnsweredOrRefusedWithoutATrace(t *testing.T) {
	t.Parallel()
	seed := long.Seed(t)
	target, random := newTarget(t, openStore(t, freshURL(t, "sqlite")), patient), rand.New(rand.NewPCG(seed, 0))
	for i := range *randomCalls {
		script := make([]byte, random.IntN(64))
		for j := range script {
			script[j] = byte(random.Uint32())
		}
		target.try(t, target.names[i%len(target.names)], script)
		if t.Failed() {
			t.Fatalf("KAGZI_TEST_SEED=%d, call %d", seed, i+1)
		}
	}
	answered, refused := 0, 0
	for _, name := range target.names {
		t.Logf("%-28s %6d answered %6d refused", name, target.answered[name], target.refused[name])
		answered, refused = answered+target.answered[name], refused+target.refused[name]
	}
	if *onlyMethod == "" && (answered < *randomCalls/10 || refused < *randomCalls/10) {
		t.Errorf("of %d calls %d were answered and %d refused: they no longer reach what they are for", *randomCalls,
			answered, refused)
	}
}

// target is a server in which no time passes, so that only calls change it.
type target struct {
	s       *Server // as an admin with a key
	defects *defects
	methods map[string]protoreflect.MethodDescriptor
	names   []string
	at      inputStage
	before  func() string // the state before; nil: the fixture must be reset
	stages  int           // how often the fixture was set

	// For a store that can tell, so that it need not be read twice for each call; otherwise nil.
	writes   func() int64                            // how many times it has written
	settle   func()                                  // waits until nothing is in flight
	remember func(t testing.TB) (read func() string) // remembers the state, to be read later

	answered, refused map[string]int // calls by method
}

func newTarget(tb testing.TB, store engine.Store, o Options) *target {
	tb.Helper()
	defects := &defects{}
	o.Server.Log, o.Coordinator.Log = slog.New(defects), slog.New(defects)
	o.Server.PollTimeout = time.Millisecond
	o.Server.Backup = func(context.Context) (engine.Backup, io.ReadCloser, error) {
		const size = 300 << 10 // some messages
		return engine.Backup{TakenAt: store.Now(), Bytes: size},
			io.NopCloser(io.LimitReader(rand.NewChaCha8([32]byte{}), size)), nil
	}
	o.Server.HeartbeatInterval = 24 * time.Hour // no worker is lost, however long this takes
	o.Wrap = func(s engine.Store) engine.Store { return still{s, s.Now()} }
	c := &target{
		s: New(tb, store, o).lock(tb), defects: defects, methods: map[string]protoreflect.MethodDescriptor{},
		names:    methodNames(tb),
		answered: map[string]int{}, refused: map[string]int{},
	}
	eachMethod(func(name string, method protoreflect.MethodDescriptor, _ string) { c.methods[name] = method })
	for _, name := range []string{"default", "spare"} {
		fine(c.s.namespaces().CreateNamespace(within(tb, 20*time.Second),
			&kagziv1.CreateNamespaceRequest{Namespace: name}))(tb)
	}
	return c
}

// still is a store whose clock never moves.
type still struct {
	engine.Store
	at time.Time
}

func (s still) Now() time.Time { return s.at }

// defects is a log handler that keeps messages which no caller may cause.
type defects struct {
	mu   sync.Mutex
	told []string
}

func (d *defects) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelError }
func (d *defects) WithAttrs([]slog.Attr) slog.Handler               { return d }
func (d *defects) WithGroup(string) slog.Handler                    { return d }

func (d *defects) Handle(_ context.Context, r slog.Record) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	text := r.Message
	r.Attrs(func(a slog.Attr) bool { text += " " + a.String(); return true })
	d.told = append(d.told, text)
	return nil
}

// take returns the messages since the last call.
func (d *defects) take() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	told := d.told
	d.told = nil
	return told
}

// set makes a held run with a step, and a schedule, whatever earlier calls did to the server.
func (c *target) set(t testing.TB) {
	t.Helper()
	ctx := within(t, 20*time.Second)
	fine(c.s.namespaces().EnableNamespace(ctx, &kagziv1.EnableNamespaceRequest{Namespace: "default"}))(t)
	queue := engine.NewID(time.Now()).String() // where no other run is due
	w := c.s.register(t, func(r *kagziv1.RegisterRequest) { r.TaskQueue = queue })
	c.at = inputStage{worker: w.id, run: c.s.start(t, ofQueue(queue))}
	task := w.take(t)
	c.at.token, c.at.step = task.LeaseToken, w.completeStep(t, task, "first", "x").StepId
	c.at.schedule = c.s.schedule(t, func(r *kagziv1.CreateWorkflowScheduleRequest) {
		r.CronExpr, r.TaskQueue = "@yearly", "idle"
	}).ScheduleId
	c.stages++
	if c.remember != nil {
		c.before = c.remember(t)
		return
	}
	state := c.read(t, c.s.Store)
	c.before = func() string { return state }
}

// read returns the whole fixture, and the number of everything with the newest.
func (c *target) read(t testing.TB, store engine.Store) string {
	t.Helper()
	ctx := t.Context()
	var b strings.Builder
	add := func(what any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(what)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s\n", text)
	}
	run, err := engine.ParseID(c.at.run)
	if err != nil {
		t.Fatal(err)
	}
	newest := engine.Page{Limit: 3, Count: true}
	r, err := store.GetRun(ctx, "default", run)
	add(r, err)
	steps, _, err := store.ListSteps(ctx, "default", run, engine.StepFilter{}, engine.Page{Limit: 100})
	add(steps, err)
	signals, _, err := store.ListSignals(ctx, "default", run, engine.Page{Limit: 100})
	add(signals, err)
	schedule, err := store.GetSchedule(ctx, "default", c.at.schedule)
	if errors.Is(err, engine.ErrNotFound) { // it was deleted
		err = nil
	}
	add(schedule, err)
	add(store.GetWorker(ctx, c.at.worker))
	add(store.HeldBy(ctx, c.at.worker))
	add(store.GetStats(ctx, "", c.s.Store.Now()))
	for _, namespace := range []string{"default", "spare"} {
		runs, info, err := store.ListRuns(ctx, engine.RunFilter{Namespace: namespace}, newest)
		add([]any{runs, info.Total}, err)
		schedules, info, err := store.ListSchedules(ctx, engine.ScheduleFilter{Namespace: namespace}, newest)
		add([]any{schedules, info.Total}, err)
		hooks, info, err := store.ListHooks(ctx, namespace, newest)
		add([]any{hooks, info.Total}, err)
	}
	for _, namespace := range []string{"", "default", "spare"} {
		events, info, err := store.ListAuditEvents(ctx, engine.AuditFilter{Namespace: namespace}, newest)
		add([]any{events, info.Total}, err)
	}
	workers, info, err := store.ListWorkers(ctx, engine.WorkerFilter{}, newest)
	add([]any{workers, info.Total}, err)
	namespaces, info, err := store.ListNamespaces(ctx, engine.Page{Limit: 100, Count: true})
	add([]any{namespaces, info.Total}, err)
	keys, info, err := store.ListKeys(ctx, newest)
	for i := range keys {
		keys[i].LastUsedAt = time.Time{} // updated now and then
	}
	add([]any{keys, info.Total}, err)
	return b.String()
}

// settled returns the state once nothing is in flight.
func (c *target) settled(t testing.TB) string {
	t.Helper()
	for before := c.read(t, c.s.Store); ; {
		now := c.read(t, c.s.Store)
		if now == before {
			return now
		}
		before = now
	}
}

// try makes one call.
func (c *target) try(t testing.TB, name string, script []byte) {
	method := c.methods[name]
	if method == nil {
		sum := fnv.New32a()
		sum.Write([]byte(name))
		name = c.names[int(sum.Sum32())%len(c.names)]
		method = c.methods[name]
	}
	if c.before == nil {
		c.set(t)
	}
	var writes int64
	if c.writes != nil {
		writes = c.writes()
	}
	f := &forge{entropy: &entropy{script}, at: c.at, words: words(c.at)}
	messages := f.messages(method)
	err := c.call(t, method, messages)
	if c.settle != nil {
		c.settle()
	}
	code := status.Code(err)
	if err == nil {
		c.answered[name]++
	} else {
		c.refused[name]++
	}
	c.check(t, name, err)
	// A session's operations, or a poll whose caller went away, may end after the answer.
	lingers := name == "Session" || name == "PollTask" || code == codes.DeadlineExceeded
	if c.writes != nil {
		switch {
		case c.writes() == writes:
			return
		case err == nil || lingers:
			c.before = nil
			return
		}
	}
	now := ""
	if lingers {
		now = c.settled(t)
	} else {
		now = c.read(t, c.s.Store)
	}
	before := c.before()
	if now == before {
		return
	}
	if err != nil && !lingers {
		t.Errorf("%s was refused (%v) and changed\n%s\ninto\n%s", name, err, before, now)
	}
	c.before = nil
}

// check checks that an answer is safe for its reader.
func (c *target) check(t testing.TB, name string, err error) {
	for _, told := range c.defects.take() {
		t.Errorf("%s brought about: %s", name, told)
	}
	code, message := status.Code(err), status.Convert(err).Message()
	switch {
	case code == codes.Internal || code == codes.Unknown || code == codes.DataLoss || code == codes.Unauthenticated:
		t.Errorf("%s: %v", name, err)
	case code == codes.DeadlineExceeded && !waits(c.methods[name]):
		t.Errorf("%s did not come to an end: %v", name, err)
	case code == codes.InvalidArgument && detailOf(err).Metadata["field"] == "":
		t.Errorf("%s was refused without a field: %v", name, err)
	case len(message) > 2000:
		t.Errorf("%s was refused in %d bytes: %.300q", name, len(message), message)
	}
	for _, r := range message {
		if unicode.In(r, unicode.C) || r == unicode.ReplacementChar {
			t.Errorf("%s was refused in text that holds %U: %q", name, r, message)
			break
		}
	}
}

// waits reports whether a method may run for as long as its caller likes.
func waits(method protoreflect.MethodDescriptor) bool {
	return method.IsStreamingServer() || method.IsStreamingClient() ||
		slices.Contains([]protoreflect.Name{"PollTask", "WaitWorkflow"}, method.Name())
}

// rawCodec sends bytes as they are.
type rawCodec struct{}

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}

func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	return encoding.GetCodecV2("proto").Unmarshal(data, v)
}

// call sends the messages and reads all answers, or the first answer of an endless stream.
func (c *target) call(t testing.TB, method protoreflect.MethodDescriptor, messages [][]byte) error {
	limit := 20 * time.Second
	if waits(method) {
		limit = 100 * time.Millisecond
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	path := "/" + string(method.Parent().FullName()) + "/" + string(method.Name())
	stream, err := c.s.Conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, path,
		grpc.ForceCodecV2(rawCodec{}),
		grpc.MaxCallRecvMsgSize(engine.MaxMessage+64<<10), grpc.MaxCallSendMsgSize(64<<20))
	if err != nil {
		return err
	}
	for _, m := range messages {
		if err := stream.SendMsg(m); err != nil {
			break // the answer says why
		}
	}
	_ = stream.CloseSend()
	for {
		err := stream.RecvMsg(emptyOf(method.Output()))
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case strings.HasPrefix(string(method.Name()), "Watch"):
			return nil
		}
	}
}
