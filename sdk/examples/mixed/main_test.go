package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/kagzi/kagzi/backends/sqlite"
	"github.com/kagzi/kagzi/backends/sqlite/sqlitetest"
	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/lab/e2e"
	kagzi "github.com/kagzi/kagzi/sdk"
)

// worker in the environment makes the test binary the Go worker.
const worker = "MIXED_TEST_WORKER"

func TestMain(m *testing.M) {
	if os.Getenv(worker) != "" {
		os.Args = os.Args[:1]
		main()
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// notTried says loudly that the test did not run, past what `go test` shows of a test that is skipped.
func notTried(t *testing.T, why string) {
	t.Helper()
	fmt.Fprintf(os.Stderr, "\n!!!!!!!! NOT TRIED: the example of three languages: %s\n", why)
	if os.Getenv("CI") != "" {
		t.Fatal(why)
	}
	t.Skip(why)
}

// output returns what a script of an SDK prints. Its exit code 77 says that the language is not there.
func output(ctx context.Context, t *testing.T, script string) string {
	t.Helper()
	out, err := exec.CommandContext(ctx, "bash", script).Output()
	var ended *exec.ExitError
	switch {
	case errors.As(err, &ended) && ended.ExitCode() == 77:
		notTried(t, string(ended.Stderr))
	case errors.As(err, &ended):
		t.Fatalf("%s: %v\n%s", script, err, ended.Stderr)
	case err != nil:
		notTried(t, err.Error())
	}
	return strings.TrimSpace(string(out))
}

// language is a program that runs a worker.
type language struct {
	program string
	args    []string
	env     string
}

// start starts a worker process; kill ends it as kill -9 does.
func (l language) start(ctx context.Context, t *testing.T, address string) (kill func()) {
	t.Helper()
	said := new(bytes.Buffer)
	cmd := exec.CommandContext(ctx, l.program, l.args...)
	cmd.Env = append(os.Environ(), "KAGZI_ADDRESS="+address, "KAGZI_CONFIG=off", l.env)
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	killed := false
	kill = func() {
		if killed {
			return
		}
		killed = true
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
	}
	t.Cleanup(func() {
		kill()
		if t.Failed() {
			t.Logf("%s said:\n%s", filepath.Base(l.program), said)
		}
	})
	return kill
}

func TestSettleThroughThreeLanguagesWhoseWorkersAreKilled(t *testing.T) {
	if runtime.GOOS == "windows" {
		notTried(t, "the scripts of the SDKs need a shell")
	}
	if testing.Short() {
		t.Skip("installs and starts three languages")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute) // it may install and build
	defer cancel()
	sdks := filepath.Join("..", "..")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	python := output(ctx, t, filepath.Join(sdks, "python", "venv.sh"))
	output(ctx, t, filepath.Join(sdks, "typescript", "install.sh"))
	binary := filepath.Join(t.TempDir(), "kagzi")
	build := exec.CommandContext(ctx, "go", "build", "-o", binary, "github.com/kagzi/kagzi")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the command line: %v\n%s", err, out)
	}
	languages := []language{
		{program: self, env: worker + "=1"},
		{program: python, args: []string{filepath.Join(sdks, "python", "examples", "assess.py")}},
		{program: "node", args: []string{filepath.Join(sdks, "typescript", "build", "examples", "review.js")}},
	}

	store, err := sqlite.Open(t.Context(), sqlitetest.Fresh(t, sqlite.Migrate), engine.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	server := e2e.New(t, store, e2e.Options{}) // a silent worker is lost after 0.6 s
	c, err := kagzi.NewClient(kagzi.ClientOptions{Profile: kagzi.NoProfile, Address: server.Address})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	startAll := func() (kills []func()) {
		for _, l := range languages {
			kills = append(kills, l.start(ctx, t, server.Address))
		}
		return kills
	}
	kills := startAll()
	run, err := kagzi.Start(ctx, c, "settle", Claim{ID: "c-1", Text: "Water came through the roof"},
		kagzi.StartOptions{Queue: queue, ExternalID: "settle:c-1"})
	if err != nil {
		t.Fatal(err)
	}
	waits(ctx, t, c, "review:c-1", "signal:decision")
	for _, kill := range kills {
		kill()
	}
	startAll()
	if err := decide(ctx, c, "c-1", Review{Approved: true, By: "Ada"}); err != nil {
		t.Fatal(err)
	}
	const want = "claim c-1 (water damage): 1000 paid, approved by Ada"
	if got, err := kagzi.Result[string](ctx, run); err != nil || got != want {
		t.Fatalf("got %q, %v, want %q", got, err, want)
	}

	tree := command(ctx, t, binary, "workflow", "show", "--external", "settle:c-1", "--tree", "--address",
		server.Address)
	at := -1
	for _, line := range []string{"settle ", "child: assess ", "child: review ", "decision ", "send-limit ", "pay "} {
		next := strings.Index(tree, line)
		if next <= at {
			t.Errorf("the tree lacks %q, or has it elsewhere:\n%s", line, tree)
		}
		at = next
	}
	workers := command(ctx, t, binary, "worker", "list", "--address", server.Address)
	for _, sdk := range []string{"  go ", "  python 0.1.0", "  typescript 0.1.0"} {
		if n := strings.Count(workers, sdk); n != 2 {
			t.Errorf("%d workers are listed as %q, want 2:\n%s", n, sdk, workers)
		}
	}
}

// waits waits until a run is parked for something.
func waits(ctx context.Context, t *testing.T, c *kagzi.Client, externalID, what string) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		d, err := c.GetByExternalID(ctx, externalID)
		if err == nil && d.Status == kagzi.StatusSleeping && d.WaitingFor == what {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("run %s does not wait for %s: it is %+v, %v", externalID, what, d, err)
		}
	}
}

func command(ctx context.Context, t *testing.T, program string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(ctx, program, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}
