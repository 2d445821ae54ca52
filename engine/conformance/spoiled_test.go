package conformance

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// mistake is one that authors of SDKs could make. It changes what the Go SDK sends or gets.
type mistake struct {
	name    string
	section string // in which it must be found
	up      func(r *kagziv1.SessionRequest)
	down    func(r *kagziv1.SessionResponse)
	call    func(request any, err error) error // of a call outside of the session; it returns the error for the SDK
}

var mistakes = []mistake{
	{name: "branches are not sent", section: "15.5", up: func(r *kagziv1.SessionRequest) {
		if c := r.GetCompleteStep(); c != nil {
			c.Branch = ""
		}
	}},
	{name: "started_at is that of each report", section: "12.3", up: func(r *kagziv1.SessionRequest) {
		if b := r.GetBeginStep(); b != nil {
			b.StartedAt = timestamppb.New(b.GetStartedAt().AsTime().Add(time.Millisecond))
		}
	}},
	{name: "operations do not name the one before", section: "5", up: func(r *kagziv1.SessionRequest) { r.After = 0 }},
	{name: "too much credit is returned", section: "3.2", up: func(r *kagziv1.SessionRequest) {
		if c := r.GetCredit(); c != nil {
			c.Tasks++
		}
	}},
	{name: "results are handed over by name", section: "16.3", down: func(r *kagziv1.SessionResponse) {
		for _, s := range r.GetTask().GetHistory() {
			s.Settled = 0
		}
	}},
	{name: "types of errors are lost", section: "24.1", up: func(r *kagziv1.SessionRequest) {
		if f := r.GetFailStep().GetError(); f != nil {
			f.Type = ""
		}
		if f := r.GetFailWorkflow().GetError(); f != nil {
			f.Type = ""
		}
	}},
	{name: "the policy of a step is not sent", section: "12.7", up: func(r *kagziv1.SessionRequest) {
		if f := r.GetFailStep(); f != nil {
			f.RetryPolicy = nil
		}
	}},
	{name: "a wait has no limit", section: "18.4", up: func(r *kagziv1.SessionRequest) {
		if a := r.GetAwaitSignal(); a != nil {
			a.Timeout = nil
		}
	}},
	{name: "what may be repeated is taken for final", section: "6.3", down: func(r *kagziv1.SessionResponse) {
		if d := r.GetError(); d.GetCode() == kagziv1.ErrorCode_ERROR_CODE_UNAVAILABLE {
			d.Code, d.NonRetryable = kagziv1.ErrorCode_ERROR_CODE_INVALID_ARGUMENT, true
		}
	}},
	{name: "nothing is owed", section: "17.3", down: func(r *kagziv1.SessionResponse) {
		if t := r.GetTask(); t != nil {
			t.OwedFrom = 1 << 40
		}
	}},
	// Ten so far.
	{name: "only the first page of a history is read", section: "14.1", down: func(r *kagziv1.SessionResponse) {
		if t := r.GetTask(); t != nil {
			t.NextHistoryToken = ""
		}
	}},
	{name: "a page that cannot be read is empty", section: "14.3", call: func(request any, err error) error {
		if _, ok := request.(*kagziv1.GetHistoryRequest); ok {
			return nil
		}
		return err
	}},
	{name: "rows of no kind are those of signals", section: "13.1", down: func(r *kagziv1.SessionResponse) {
		for _, s := range r.GetTask().GetHistory() {
			if s.GetKind() == kagziv1.StepKind_STEP_KIND_UNSPECIFIED {
				s.Kind = kagziv1.StepKind_STEP_KIND_SIGNAL
			}
		}
	}},
	{name: "rows of unknown kinds are those of signals", section: "26.1", down: func(r *kagziv1.SessionResponse) {
		for _, s := range r.GetTask().GetHistory() {
			if _, known := kagziv1.StepKind_name[int32(s.GetKind())]; !known {
				s.Kind = kagziv1.StepKind_STEP_KIND_SIGNAL
			}
		}
	}},
	{name: "results without a place are none", section: "16.6", down: func(r *kagziv1.SessionResponse) {
		for _, s := range r.GetTask().GetHistory() {
			if s.GetSettled() == 0 {
				s.Status = kagziv1.StepStatus_STEP_STATUS_RUNNING
			}
		}
	}},
	{name: "what is new is taken for everything", section: "31.4", down: func(r *kagziv1.SessionResponse) {
		if t := r.GetTask(); t != nil {
			t.Base = ""
		}
	}},
	{name: "a deadlock has no type", section: "11.8", up: func(r *kagziv1.SessionRequest) {
		if e := r.GetFailWorkflow().GetError(); e != nil {
			e.Type = ""
		}
	}},
	{name: "blocked code is not reported", section: "17.8", up: func(r *kagziv1.SessionRequest) {
		if h := r.GetHeartbeat(); h != nil {
			h.Blocked = nil
		}
	}},
	{name: "starts have another request id when they are repeated", section: "30.1", call: func(request any, err error) error {
		switch r := request.(type) {
		case *kagziv1.StartWorkflowRequest:
			r.RequestId += "x"
		case *kagziv1.StartWorkflowsRequest:
			for _, one := range r.GetRequests() {
				one.RequestId += "x"
			}
		}
		return err
	}},
}

// spoiled lets the SDK make the mistake of that name.
func spoiled(name string) []grpc.DialOption {
	n := slices.IndexFunc(mistakes, func(m mistake) bool { return m.name == name })
	return []grpc.DialOption{grpc.WithChainStreamInterceptor(func(ctx context.Context, d *grpc.StreamDesc,
		conn *grpc.ClientConn,
		method string, open grpc.Streamer, options ...grpc.CallOption) (grpc.ClientStream, error) {
		s, err := open(ctx, d, conn, method, options...)
		return &spoiledStream{s, mistakes[n]}, err
	}), grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, request, answer any,
		conn *grpc.ClientConn, call grpc.UnaryInvoker, options ...grpc.CallOption) error {
		err := call(ctx, method, request, answer, conn, options...)
		if f := mistakes[n].call; f != nil && err != nil {
			return f(request, err)
		}
		return err
	})}
}

type spoiledStream struct {
	grpc.ClientStream
	mistake mistake
}

func (s *spoiledStream) SendMsg(m any) error {
	if r, ok := m.(*kagziv1.SessionRequest); ok && s.mistake.up != nil {
		r = proto.CloneOf(r)
		s.mistake.up(r)
		m = r
	}
	return s.ClientStream.SendMsg(m)
}

func (s *spoiledStream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	if r, ok := m.(*kagziv1.SessionResponse); ok && err == nil && s.mistake.down != nil {
		s.mistake.down(r)
	}
	return err
}

// shorter makes failures quick.
func shorter(t *testing.T) {
	event, start, block := eventLimit, startLimit, blockLimit
	eventLimit, startLimit, blockLimit = 2*time.Second, 5*time.Second, 12*time.Second
	t.Cleanup(func() { eventLimit, startLimit, blockLimit = event, start, block })
}

// failures runs part of the suite and returns what failed.
func failures(t *testing.T, o Options) ([]Finding, error) {
	t.Helper()
	var mu sync.Mutex
	var all []Finding
	o.Stores = inMemory
	o.Report = func(f Finding) {
		mu.Lock()
		defer mu.Unlock()
		if f.Failure != "" {
			all = append(all, f)
		}
	}
	err := Run(t.Context(), o)
	return all, err
}

func TestTheSuiteFindsTenMistakes(t *testing.T) { findsMistakes(t, 0, 10) }

func TestTheSuiteFindsMistakesOfTasksPagesAndStarts(t *testing.T) {
	findsMistakes(t, 10, len(mistakes))
}

func findsMistakes(t *testing.T, from, to int) {
	shorter(t)
	for _, m := range mistakes[from:to] {
		t.Run(strings.ReplaceAll(m.name, " ", "_"), func(t *testing.T) {
			t.Parallel() // most of the time is spent waiting for what does not come
			all, err := failures(t, Options{Command: goSubject(t, m.name), Only: []string{m.section}})
			if err != nil {
				t.Fatal(err)
			}
			if len(all) == 0 {
				t.Error("the suite has not found it")
			}
			for _, f := range all {
				t.Logf("§%s %s: %s", f.Section, f.Case, f.Failure)
			}
		})
	}
}

func TestRandomProgramsFindMistakesAndAreShrunk(t *testing.T) {
	shorter(t)
	all, err := failures(t, Options{Command: goSubject(t, mistakes[0].name), Only: []string{"random"}, Seeds: 6, From: 1, Modes: []string{"nothing"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		n := 0
		for _, list := range f.Program.Lists() {
			n += len(*list)
		}
		if n <= 4 && f.Seed > 0 {
			return
		}
		t.Logf("seed %d was shrunk to %d ops", f.Seed, n)
	}
	t.Errorf("no failure was shrunk to a few ops: %v", all)
}

func TestSubjectsThatDoNotWork(t *testing.T) {
	shorter(t)
	startLimit = time.Second
	pipe := filepath.Join(t.TempDir(), "left") // a process that is left holds it open
	if err := exec.Command("mkfifo", pipe).Run(); err != nil {
		t.Fatal(err)
	}
	held := make(chan error, 1)
	go func() {
		f, err := os.Open(pipe) // waits for the process
		if err == nil {
			_, err = io.Copy(io.Discard, f) // waits for its end
		}
		held <- err
	}()
	for name, c := range map[string]struct {
		command []string
		want    string // in the error of the suite
	}{
		"no_such_program":   {[]string{filepath.Join(t.TempDir(), "none")}, "start the subject"},
		"ends_at_once":      {[]string{"sh", "-c", "echo cannot; exit 7"}, "exit status 7"},
		"says_why":          {[]string{"sh", "-c", "echo cannot >&2; exit 7"}, "cannot"},
		"speaks_nonsense":   {[]string{"sh", "-c", "while :; do echo '{\"seq\":1}\x1b[2J'; sleep 0.01; done"}, "no worker registered within 1s"},
		"leaves_a_process":  {[]string{"sh", "-c", "(exec 3>" + pipe + "; sleep 600) & sleep 60"}, "no worker registered within 1s"},
		"ignores_the_words": {[]string{"sh", "-c", "trap '' TERM; while :; do sleep 0.05; done"}, "no worker registered within 1s"},
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			_, err := failures(t, Options{Command: c.command, Only: []string{"15.4"}})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the suite says %v, want %q", err, c.want)
			}
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("it took %s", took)
			}
		})
	}
	select {
	case err := <-held:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Error("a process that the subject had started goes on")
	}
}

// A subject that registers and does nothing more fails its cases, and each within its limit.
func TestASubjectThatOnlyRegisters(t *testing.T) {
	shorter(t)
	began := time.Now()
	all, err := failures(t, Options{Command: goSubject(t, idles), Only: []string{"15.5"}})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 6 {
		t.Errorf("%d cases fail, want all", len(all))
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %s", took)
	}
}

// idles is the argument of a subject that only registers a worker.
const idles = "idle"

// idle registers a worker and waits.
func idle() error {
	conn, err := grpc.NewClient(os.Getenv("KAGZI_ADDRESS"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	_, err = kagziv1.NewWorkerServiceClient(conn).Register(context.Background(), &kagziv1.RegisterRequest{
		Namespace: "default", TaskQueue: queue, WorkflowTypes: []string{"conformance"}})
	if err != nil {
		return err
	}
	select {} // until it is killed
}
