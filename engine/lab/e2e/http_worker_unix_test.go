//go:build unix

package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine/server/rest"
)

// shellWorker starts the example's worker with a workflow of the test.
func shellWorker(t *testing.T, url, workflow string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sh", "../../../sdk/examples/shell/worker.sh", workflow)
	cmd.Env = append(os.Environ(), "KAGZI_HTTP="+url)
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})
	return cmd
}

// waitFor waits until a file has a text.
func waitFor(t *testing.T, file, text string) {
	t.Helper()
	for ctx := within(t, time.Minute); ; {
		got, err := os.ReadFile(file)
		if err == nil && bytes.Contains(got, []byte(text)) {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s holds %q, want %q", file, got, text)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func TestAShellWorkerIsKilledHalfwayAndItsRunGoesOn(t *testing.T) {
	for _, tool := range []string{"curl", "jq"} {
		if _, err := exec.LookPath(tool); err != nil {
			if os.Getenv("CI") != "" {
				t.Fatal(tool + " is not on this machine, and CI skips nothing")
			}
			t.Skip(tool + " is not on this machine")
		}
	}
	o := Options{}
	o.Server.HeartbeatInterval = 2 * time.Second // a shell is slow on a busy machine
	eachServer(t, o, func(t *testing.T, s *Server) {
		w := web{t: t, url: s.serveHTTP(t, rest.GateOptions{Loopback: true})}
		dir := t.TempDir()
		log, pipe, workflow := filepath.Join(dir, "log"), filepath.Join(dir, "pipe"), filepath.Join(dir, "workflow.sh")
		if err := syscall.Mkfifo(pipe, 0o600); err != nil {
			t.Fatal(err)
		}
		script := strings.NewReplacer("LOG", log, "PIPE", pipe).Replace(`
queue=shell type=order
first() { echo "first $1" >>LOG; echo "{\"n\":7}"; }
second() { echo second >>LOG; cat PIPE; }
never() { echo "never $1" >>LOG; return 3; }
workflow() {
	a=$(step first first "$1") || return
	b=$(step second second) || return
	c=$(step never never x) && return 1
	echo "{\"a\":$a,\"b\":\"$b\"}"
}
`)
		if err := os.WriteFile(workflow, []byte(script), 0o600); err != nil {
			t.Fatal(err)
		}
		run := w.fine("POST", "/v1/workflows", `{"workflowType":"order","taskQueue":"shell","input":{"json":"o-1"},
			"retryPolicy":{"maximumAttempts":1}}`).at("runId")
		killed := shellWorker(t, w.url, workflow)
		waitFor(t, log, "second")
		if err := syscall.Kill(-killed.Process.Pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		shellWorker(t, w.url, workflow)
		waitFor(t, log, "second\nsecond")
		if err := os.WriteFile(pipe, []byte("done\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		a := w.fine("GET", "/v1/workflows/"+run+"/result?wait=60s", "")
		if got := a.at("workflow.output.json"); got != `{"a":{"n":7},"b":"done"}` {
			t.Errorf("output %s of %s", got, a.text)
		}
		if text, err := os.ReadFile(log); err != nil || string(text) != "first o-1\nsecond\nsecond\nnever x\n" {
			t.Errorf("commands %q, %v, want that only the interrupted one ran twice", text, err)
		}
	})
}
