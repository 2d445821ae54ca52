package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

const benchLimit = 3 * time.Minute

// TestBinary runs tiny workloads from the whole binary: server, worker and load in three processes.
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

	t.Run("every workload, tiny, on a private server", func(t *testing.T) {
		dir := t.TempDir()
		out, code := run(t, "--workload", "W1,W2,W3,W4,W5,W6,W7,W8", "--scale", "0.001", "--repeat", "2", "--json",
			"--dir", dir, "--db", "sqlite:"+filepath.Join(t.TempDir(), "bench.db"))
		if code != 0 {
			t.Fatalf("exit code %d", code)
		}
		var r report
		if err := json.Unmarshal(out, &r); err != nil {
			t.Fatalf("report: %v\n%s", err, out)
		}
		if len(r.Workloads) != len(workloads) || r.Server.Backend != "sqlite" || !r.Server.Private || r.Repeat != 2 {
			t.Fatalf("report = %+v", r)
		}
		for i, w := range r.Workloads {
			if w.Workload != workloads[i].id || w.Runs < 1 || len(w.Figures) < 2 {
				t.Errorf("workload %d = %+v", i, w)
			}
			for _, f := range w.Figures {
				if !(f.Min > 0 && f.Min <= f.Median && f.Median <= f.Max) {
					t.Errorf("%s %s: min %v, median %v, max %v", w.Workload, f.Name, f.Min, f.Median, f.Max)
				}
			}
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("left in the directory: %v, %v", left, err)
		}
	})

	t.Run("a server that is not there is exit code 7", func(t *testing.T) {
		if _, code := run(t, "--address", "127.0.0.1:1"); code != exitUnavailable {
			t.Errorf("exit code %d, want %d", code, exitUnavailable)
		}
	})

	t.Run("a workload that is not there is exit code 64", func(t *testing.T) {
		if _, code := run(t, "--workload", "W0"); code != exitUsage {
			t.Errorf("exit code %d, want %d", code, exitUsage)
		}
	})
}
