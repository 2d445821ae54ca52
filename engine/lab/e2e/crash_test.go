package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/kagzi/kagzi/engine/lab/long"
	"github.com/kagzi/kagzi/engine/lab/overlay"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	kagzi "github.com/kagzi/kagzi/sdk"
)

var rounds = flag.Int("crashes", long.Count(2, 20), "how often the server dies at each failpoint")

// program returns the real binary with failpoints, built once.
var program = sync.OnceValues(func() (string, error) {
	path := filepath.Join(scratch, programName)
	tags, err := overlay.Failpoints()
	if err != nil {
		return "", err
	}
	build := exec.Command("go", "build", tags, "-o", path, "github.com/kagzi/kagzi")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as it is shipped
	out, err := build.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build: %w: %s", err, out)
	}
	return path, nil
})

// scratch is a directory of this test process.
var scratch string

// workerVariable makes this program a worker: an address, a ledger, and the number of the step in
// which it dies (0: none), separated by bars.
const workerVariable = "KAGZI_TEST_WORKER"

func TestMain(m *testing.M) {
	if spec := os.Getenv(workerVariable); spec != "" {
		if err := beWorker(strings.Split(spec, "|")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		return
	}
	flag.Parse()
	told := false
	flag.Visit(func(f *flag.Flag) { told = told || f.Name == "test.parallel" || f.Name == "test.fuzz" })
	if !told {
		// These tests mostly wait for a disk or for time to pass, so many run in parallel. A fuzzer
		// computes.
		if err := flag.Set("test.parallel", "16"); err != nil {
			panic(err)
		}
	}
	var err error
	if scratch, err = os.MkdirTemp("", "kagzi-e2e-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(scratch)
	os.Exit(code)
}

// process is a server in its own process that is restarted whenever it dies.
type process struct {
	t       testing.TB
	url     string
	address string
	http    string   // address of its HTTP port; "off": none
	points  []string // the failpoints of the next lives
	deaths  int

	mu      sync.Mutex
	current *exec.Cmd
	dies    bool // current has a failpoint
	log     *strings.Builder
	ending  bool
	over    chan struct{}
}

// runProcess starts the real server on a database; its first lives end at the failpoints.
func runProcess(t testing.TB, url string, points []string) *process {
	t.Helper()
	return runProcessWith(t, url, "off", points)
}

// runProcessWith is runProcess with an HTTP port.
func runProcessWith(t testing.TB, url, http string, points []string) *process {
	t.Helper()
	p := &process{t: t, url: url, address: FreeAddress(t), http: http, points: points, log: &strings.Builder{},
		over: make(chan struct{})}
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	go p.keep(path)
	t.Cleanup(p.stop)
	return p
}

// keep restarts the server whenever it ends.
func (p *process) keep(path string) {
	defer close(p.over)
	for life := 0; ; life++ {
		cmd := exec.Command(path, "server", "--db", p.url, "--listen", p.address, "--data-dir", p.t.TempDir(),
			"--log-level", "warn",
			"--worker-lease", "2s", "--heartbeat-interval", "500ms", "--coordinator-interval", "500ms",
			"--drain-timeout", "5s",
			"--http", p.http, "--config", "off")
		cmd.Env = os.Environ()
		stoppable(cmd)
		p.mu.Lock()
		if p.ending {
			p.mu.Unlock()
			return
		}
		p.dies = life < len(p.points)
		if p.dies {
			cmd.Env = append(cmd.Env, "KAGZI_FAILPOINT="+p.points[life])
		}
		cmd.Stdout, cmd.Stderr = p.log, p.log
		said := p.log.Len()
		err := cmd.Start()
		p.current = cmd
		p.mu.Unlock()
		if err != nil {
			p.t.Errorf("start the server: %v", err)
			return
		}
		err = cmd.Wait()
		p.mu.Lock()
		ending, dies := p.ending, p.dies
		taken := !ending && strings.Contains(p.log.String()[said:], addressTaken)
		killed := wasKilled(cmd.ProcessState)
		if !ending && !taken || killed {
			p.deaths++
		}
		p.mu.Unlock()
		if taken { // somebody's connection took the port for a moment
			<-time.After(50 * time.Millisecond)
			life--
			continue
		}
		if ending {
			if err != nil && !(killed && dies) { // it may reach its failpoint while it stops
				p.t.Errorf("a server that was asked to stop ended with %v", err)
			}
			return
		}
		if !killed {
			p.t.Errorf("the server ended by itself: %v\n%s", err, p.log)
			return
		}
	}
}

// survive ends the lives with failpoints, and returns how often the server has died by then. It answers when
// survive returns, and dies no more.
func (p *process) survive(s *Server) (deaths int) {
	p.mu.Lock()
	p.points, deaths = nil, p.deaths
	if p.dies {
		if err := p.current.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			p.t.Errorf("kill the server: %v", err)
		}
	}
	p.mu.Unlock()
	eventually(p.t, "the server answers in a life without a failpoint", func() bool {
		p.mu.Lock()
		dies := p.dies
		p.mu.Unlock()
		if dies {
			return false
		}
		_, err := s.admin().GetServerInfo(p.t.Context(), &kagziv1.GetServerInfoRequest{})
		return err == nil
	})
	return deaths
}

// stop shuts the server down gracefully.
func (p *process) stop() {
	p.mu.Lock()
	p.ending = true
	if p.current != nil {
		if err := askToStop(p.current.Process); err != nil && !errors.Is(err, os.ErrProcessDone) {
			p.t.Errorf("ask the server to stop: %v", err)
			_ = p.current.Process.Kill()
		}
	}
	p.mu.Unlock()
	<-p.over
}

// crashPoints lists all failpoints by backend, with how often each passes before the server dies
// there.
var crashPoints = map[string][]string{
	"sqlite": {"sqlite.before_commit:30", "sqlite.after_commit:30", "sqlite.mid_group:4", "sqlite.after_claim:3",
		"matching.after_claim:3"},
	"postgres": {"postgres.before_commit:30", "postgres.after_commit:30", "postgres.mid_group:4",
		"postgres.after_claim:3", "matching.after_claim:3"},
}

func TestNoAcknowledgedWriteIsLostWhereverTheServerDies(t *testing.T) {
	if raced && testing.Short() {
		t.Skip("the server is a process of its own, which the race detector does not see")
	}
	for name, points := range crashPoints {
		for _, point := range points {
			t.Run(name+"/"+point, func(t *testing.T) {
				t.Parallel()
				crashServer(t, freshURL(t, name), point)
			})
		}
	}
}

func TestEveryFailpointHasItsCrash(t *testing.T) {
	tried := map[string]bool{}
	for _, points := range append(slices.Collect(maps.Values(crashPoints)), hookCrashes("sqlite")) {
		for _, point := range points {
			name, _, _ := strings.Cut(point, ":")
			tried[name] = true
		}
	}
	call := regexp.MustCompile(`Failpoint\("([^"]+)"\)`)
	found := 0
	for _, dir := range []string{"../../../backends/sqlite", "../../../backends/postgres", "../../matching",
		"../../server", "../../coordinator"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, match := range call.FindAllStringSubmatch(string(source), -1) {
				found++
				if !tried[match[1]] {
					t.Errorf("no test dies at %s of %s", match[1], file)
				}
			}
		}
	}
	if found < len(tried) {
		t.Errorf("%d failpoints were found in the sources, want at least %d", found, len(tried))
	}
}

func crashServer(t *testing.T, url, point string) {
	p := runProcess(t, url, repeated(point, *rounds))
	conn, err := grpc.NewClient(p.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	s := &Server{Conn: conn, Address: p.address, tb: t}
	path := filepath.Join(t.TempDir(), "ledger")
	for range 2 {
		l, err := openLedger(path)
		if err != nil {
			t.Fatal(err)
		}
		// Few slots, so that the runs take several claims.
		s.work(t, kagzi.WorkerOptions{MaxConcurrent: 2}, func(w *kagzi.Worker) {
			kagzi.Handle(w, "flow", l.flow(func(entry) {}))
		})
	}
	const runs = 20
	ctx := within(t, 90*time.Second)
	started := s.startStubbornly(t, ctx, runs)
	for name, id := range started {
		if _, err := s.client(t).Run(id).Wait(ctx); err != nil {
			t.Fatalf("run %s: %v", name, err)
		}
	}
	deaths := p.survive(s)
	s.checkLedger(t, path, started)
	p.stop()
	if deaths == 0 {
		t.Errorf("the server never died at %s", point)
	}
	checkDatabase(t, url)
	t.Logf("%d deaths", deaths)
}

// startStubbornly starts runs from several clients at once. Each repeats its call until it is
// acknowledged; a repetition gets the same run.
func (s *Server) startStubbornly(t testing.TB, ctx context.Context, runs int) map[string]string {
	t.Helper()
	var mu sync.Mutex
	started := map[string]string{}
	var group sync.WaitGroup
	for i := range runs {
		group.Go(func() {
			name := fmt.Sprintf("run-%d", i)
			request := &kagziv1.StartWorkflowRequest{
				WorkflowType: "flow", RequestId: name, Input: text(`"` + name + `"`)}
			for {
				answer, err := s.workflows().StartWorkflow(ctx, request, grpc.WaitForReady(true))
				if ctx.Err() != nil {
					t.Errorf("%s could not be started: %v", name, err)
					return
				}
				if err == nil {
					mu.Lock()
					started[name] = answer.RunId
					mu.Unlock()
					return
				}
			}
		})
	}
	group.Wait()
	// Each acknowledged start exists, and repeating it returns the same run.
	for name, id := range started {
		request := &kagziv1.StartWorkflowRequest{WorkflowType: "flow", RequestId: name, Input: text(`"` + name + `"`)}
		answer, err := s.workflows().StartWorkflow(ctx, request, grpc.WaitForReady(true))
		for err != nil && ctx.Err() == nil {
			answer, err = s.workflows().StartWorkflow(ctx, request, grpc.WaitForReady(true))
		}
		if answer.GetRunId() != id {
			t.Errorf("%s was acknowledged as %s, and is now %s", name, id, answer.GetRunId())
		}
	}
	return started
}

func repeated(point string, n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = point
	}
	return list
}

func TestNoRecordedStepRunsAgainWhenItsWorkerDies(t *testing.T) {
	eachServer(t, Options{}, func(t *testing.T, s *Server) {
		path := filepath.Join(t.TempDir(), "ledger")
		started := s.startStubbornly(t, within(t, time.Minute), 20)
		for _, step := range []int{1, 9, 17} {
			err := s.spawn(t, path, step).Wait()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || !wasKilled(exit.ProcessState) {
				t.Errorf("a worker that was to die ended with %v", err)
			}
		}
		last := s.spawn(t, path, 0)
		for name, id := range started {
			if w := s.await(t, id); w.Status != completed {
				t.Errorf("run %s is %s", name, w.Status)
			}
		}
		if err := askToStop(last.Process); err != nil {
			t.Fatal(err)
		}
		if err := last.Wait(); err != nil {
			t.Errorf("a worker that was asked to stop ended with %v", err)
		}
		s.checkLedger(t, path, started)
		begun := 0
		for _, e := range readLedger(t, path) {
			if e.Kind == "begin" {
				begun++
			}
		}
		if begun <= len(started)*flowSteps {
			t.Errorf("%d steps were begun, want more than %d: nobody died within one", begun, len(started)*flowSteps)
		}
	})
}

// spawn starts this test's binary as a worker that dies within its n-th step; 0: never.
func (s *Server) spawn(t testing.TB, path string, dieAt int) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	stoppable(cmd)
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s|%s|%d", workerVariable, s.Address, path, dieAt))
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd
}

// beWorker runs a worker process until a signal.
func beWorker(spec []string) error {
	if len(spec) != 3 {
		return fmt.Errorf("%s=%q, want an address, a ledger and a number", workerVariable, spec)
	}
	l, err := openLedger(spec[1])
	if err != nil {
		return err
	}
	dieAt, err := strconv.Atoi(spec[2])
	if err != nil {
		return err
	}
	w := kagzi.NewWorker(kagzi.WorkerOptions{
		Address: spec[0], Logger: quiet, MaxConcurrent: 4, DrainTimeout: 5 * time.Second})
	var begun atomic.Int64
	kagzi.Handle(w, "flow", l.flow(func(entry) {
		if int(begun.Add(1)) == dieAt {
			if self, err := os.FindProcess(os.Getpid()); err == nil {
				_ = self.Kill()
			}
			select {} // until it arrives
		}
	}))
	return w.Run(context.Background())
}
