package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

const benchLimit = 3 * time.Minute

// TestBinary runs small workloads from the whole binary: server, worker and load in three
// processes.
func TestBinary(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and runs the whole binary")
	}
	binary := filepath.Join(t.TempDir(), "kagzi.exe")
	build := exec.Command("go", "build", "-o", binary, "github.com/kagzi/kagzi")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, output)
	}
	run := func(t *testing.T, args ...string) (stdout []byte, code int) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), benchLimit)
		defer cancel()
		cmd := exec.CommandContext(ctx, binary, append([]string{"bench"}, args...)...)
		cmd.Env = append(os.Environ(), "KAGZI_ADDRESS=")
		var out, messages bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &messages
		err := cmd.Run()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		if code = cmd.ProcessState.ExitCode(); code != 0 {
			t.Logf("exit code %d: %s", code, messages.Bytes())
		}
		return out.Bytes(), code
	}

	measured := func(t *testing.T, chosen string, args ...string) report {
		t.Helper()
		dir := t.TempDir()
		out, code := run(t, append([]string{"--workload", chosen, "--scale", "0.001", "--json",
			"--dir", dir, "--db", "sqlite:" + filepath.Join(t.TempDir(), "bench.db")}, args...)...)
		if code != 0 {
			t.Fatalf("exit code %d", code)
		}
		var r report
		if err := json.Unmarshal(out, &r); err != nil {
			t.Fatalf("report: %v\n%s", err, out)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("left in the directory: %v, %v", left, err)
		}
		if r.Server.Backend != "sqlite" || !r.Server.Private ||
			r.Server.Durability != "journal_mode=wal, synchronous=full" || r.Cores < 1 || r.Go == "" {
			t.Errorf("report = %+v", r)
		}
		if len(r.Machine) != 3 || slices.ContainsFunc(r.Machine, func(f spread) bool {
			return !(f.Min > 0 && f.Min <= f.Median && f.Median <= f.Max)
		}) {
			t.Errorf("machine = %+v, want what it gave of processor, loopback and disk", r.Machine)
		}
		names := strings.Split(chosen, ",")
		if len(r.Workloads) != len(names) {
			t.Fatalf("%d workloads, want %d", len(r.Workloads), len(names))
		}
		for i, w := range r.Workloads {
			if w.Workload != names[i] || w.Runs < 1 || len(w.Figures) < 2 || len(w.Costs) == 0 {
				t.Errorf("workload %d = %+v", i, w)
			}
		}
		return r
	}
	t.Run("W1 to W8 and W11 to W22 at a small scale, twice on private servers", func(t *testing.T) {
		r := measured(t, all, "--repeat", "2")
		for _, w := range r.Workloads {
			for _, f := range w.Figures {
				if !(f.Min > 0 && f.Min <= f.Median && f.Median <= f.Max) {
					t.Errorf("%s %s: min %v, median %v, max %v", w.Workload, f.Name, f.Min, f.Median, f.Max)
				}
			}
			for _, f := range w.Costs[0].Figures {
				if f.Name == commitsEach && f.Median <= 0 {
					t.Errorf("%s made no commits", w.Workload)
				}
			}
		}
		if r.Repeat != 2 {
			t.Errorf("repeat = %d, want 2", r.Repeat)
		}
	})

	t.Run("the long workloads at a small scale", func(t *testing.T) {
		figures := map[string]float64{}
		for _, w := range measured(t, "W6-1M,W7-10K,W9,W10,W13-100K").Workloads {
			for _, f := range w.Figures {
				figures[w.Workload+" "+f.Name] = f.Median
			}
		}
		if got := figures["W10 ended runs, full table"]; got != 1000 {
			t.Errorf("%v ended runs in the full table, want 1000", got)
		}
		for _, name := range []string{"W6-1M ratio", "W7-10K late p99", "W9 first tasks p99",
			"W10 W1 slowdown, throughput", "W10 list page p95", "W10 list in the web page p95", "W13-100K worker memory"} {
			if figures[name] <= 0 {
				t.Errorf("%s = %v, want more than 0", name, figures[name])
			}
		}
	})

	t.Run("a worker is started by a command, as in any other language", func(t *testing.T) {
		if runtime.GOOS == "windows" {
			t.Skip("the command is for a shell of Unix")
		}
		command := "'" + binary + `' bench worker --private --address "$KAGZI_ADDRESS" --namespace "$KAGZI_NAMESPACE" ` +
			`--queue "$KAGZI_BENCH_QUEUE" --slots "$KAGZI_BENCH_SLOTS"`
		if r := measured(t, "W1,W2,W5,W15,W17", "--worker", command); r.Worker != command {
			t.Errorf("the report names the worker %q", r.Worker)
		}
		if _, code := run(t, "--workload", "W1", "--worker", "exit 3"); code != 1 {
			t.Errorf("a command that fails: exit code %d, want 1", code)
		}
	})

	t.Run("a missing server exits 7", func(t *testing.T) {
		if _, code := run(t, "--address", "127.0.0.1:1"); code != exitUnavailable {
			t.Errorf("exit code %d, want %d", code, exitUnavailable)
		}
	})

	t.Run("an unknown workload exits 64", func(t *testing.T) {
		if _, code := run(t, "--workload", "W0"); code != exitUsage {
			t.Errorf("exit code %d, want %d", code, exitUsage)
		}
	})
}
