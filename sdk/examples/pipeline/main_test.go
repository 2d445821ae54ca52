package main

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kagzi/kagzi/backends/sqlite"
	"github.com/kagzi/kagzi/backends/sqlite/sqlitetest"
	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/lab/e2e"
	kagzi "github.com/kagzi/kagzi/sdk"
	"github.com/kagzi/kagzi/sdk/kagzitest"
)

// hangingWorker in the environment makes the test binary a worker that never ends its second step.
// Its value is the address of the server.
const hangingWorker = "PIPELINE_TEST_HANGING_WORKER"

func TestMain(m *testing.M) {
	if address := os.Getenv(hangingWorker); address != "" {
		p := &Pipeline{Out: os.TempDir(), Compress: func(io.Writer, io.Reader) error {
			fmt.Println("compressing")
			select {}
		}}
		if err := newWorker(p, address, "first").Run(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func newWorker(p *Pipeline, address, id string) *kagzi.Worker {
	w := kagzi.NewWorker(kagzi.WorkerOptions{Profile: kagzi.NoProfile, Address: address, Queue: queue, WorkerID: id})
	kagzi.Handle(w, "file", p.Process)
	return w
}

// in makes a folder with one file.
func in(t *testing.T, text string) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "letter.txt")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func wantStored(t *testing.T, name, text string) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(z); err != nil || string(got) != text {
		t.Errorf("stored %q, %v, want %q", got, err, text)
	}
}

// The folder is missing for a while, as a disk would be that was pulled out.
func TestStoreIsRetriedUntilTheFolderIsThere(t *testing.T) {
	file, out := in(t, "dear reader"), filepath.Join(t.TempDir(), "disk")
	kagzitest.Run(t, func(t *testing.T, env *kagzitest.Env) {
		p := &Pipeline{Out: out, Compress: compress}
		kagzi.Handle(env.Worker, "file", p.Process)
		env.Start()
		run, err := kagzi.Start(t.Context(), env.Client, "file", file, kagzi.StartOptions{})
		if err != nil {
			t.Fatal(err)
		}
		env.Pass(time.Hour)
		if d, err := run.Describe(t.Context()); err != nil || d.Status.Ended() {
			t.Fatalf("got %+v, %v, want an open run", d, err)
		}
		if err := os.Mkdir(out, 0o700); err != nil {
			t.Fatal(err)
		}
		r, err := kagzi.Result[Result](t.Context(), run)
		if err != nil {
			t.Fatal(err)
		}
		wantStored(t, r.Stored, "dear reader")
		if _, err := os.Stat(filepath.Join(filepath.Dir(file), "done", "letter.txt")); err != nil {
			t.Error(err)
		}
	})
}

func TestMissingFileFailsAtOnce(t *testing.T) {
	kagzitest.Run(t, func(t *testing.T, env *kagzitest.Env) {
		p := &Pipeline{Out: t.TempDir(), Compress: compress}
		kagzi.Handle(env.Worker, "file", p.Process)
		env.Start()
		run, err := kagzi.Start(t.Context(), env.Client, "file", "/nowhere/letter.txt", kagzi.StartOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var failed *kagzi.RunError
		if _, err := kagzi.Result[Result](t.Context(), run); !errors.As(err, &failed) ||
			failed.Status != kagzi.StatusFailed {
			t.Errorf("got %v, want a failed run", err)
		}
	})
}

// A real worker process is killed in the middle of its second step. Another worker takes the run
// over, finds the first step recorded, and runs the second one again.
func TestKilledWorkerIsReplaced(t *testing.T) {
	store, err := sqlite.Open(t.Context(), sqlitetest.Fresh(t, sqlite.Migrate), engine.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	server := e2e.New(t, store, e2e.Options{}) // a silent worker is lost after 0.6 s
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	kill := startHanging(ctx, t, server.Address)

	c, err := kagzi.NewClient(kagzi.ClientOptions{Profile: kagzi.NoProfile, Address: server.Address})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	files := []string{in(t, "dear reader")}
	runs, err := startFiles(ctx, c, files)
	if err != nil {
		t.Fatal(err)
	}
	again, err := startFiles(ctx, c, files)
	if err != nil || again[0].ID() != runs[0].ID() || !again[0].AlreadyExisted() {
		t.Errorf("a second start gave %v, %v, want the same run", again, err)
	}
	kill()

	w := newWorker(&Pipeline{Out: t.TempDir(), Compress: compress}, server.Address, "second")
	working, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- w.Run(working) }()
	r, err := kagzi.Result[Result](ctx, runs[0])
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err != nil || r.DigestedBy != "first" || r.StoredBy != "second" {
		t.Fatalf("got %+v, %v, want a digest by first and the rest by second", r, err)
	}
	wantStored(t, r.Stored, "dear reader")
}

// startHanging starts a worker process; kill waits until it is in its second step and kills it
// there.
func startHanging(ctx context.Context, t *testing.T, address string) (kill func()) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), hangingWorker+"="+address)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // where the test failed before
	return func() {
		t.Helper()
		if !bufio.NewScanner(out).Scan() {
			_ = cmd.Wait()
			t.Fatalf("the worker ended before its second step: %s", said.String())
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // that it was killed is no news
	}
}
