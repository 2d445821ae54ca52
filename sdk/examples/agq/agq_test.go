// Package agq tests the examples of workers of AGQ, with the clients that they use.
package agq

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// built is the directory with the program, which all tests share.
var built string

func TestMain(m *testing.M) {
	var err error
	if built, err = os.MkdirTemp("", "kagzi-agq"); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(built)
	os.Exit(code)
}

// build builds kagzi once.
var build = sync.OnceValues(func() (string, error) {
	file := filepath.Join(built, "kagzi")
	out, err := exec.Command("go", "build", "-o", file, "github.com/kagzi/kagzi").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, out)
	}
	return file, err
})

func program(t *testing.T) string {
	t.Helper()
	file, err := build()
	if err != nil {
		t.Fatalf("build: %v", err)
	}
	return file
}

// tool returns a program of this machine, or skips the test. In CI it must be there.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	switch {
	case err == nil:
		return path
	case os.Getenv("CI") != "":
		t.Fatalf("%s is not installed; .ci/run installs it", name)
	}
	t.Skipf("%s is not installed", name)
	return ""
}

// python returns an interpreter that has redis-py.
func python(t *testing.T) string {
	t.Helper()
	path := os.Getenv("KAGZI_TEST_REDIS_PYTHON")
	if path == "" {
		path = tool(t, "python3")
	}
	if out, err := exec.Command(path, "-c", "import redis").CombinedOutput(); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("%s has no redis-py, which .ci/run installs: %s", path, out)
		}
		t.Skipf("%s has no redis-py", path)
	}
	return path
}

// server starts a server and returns the address of its AGQ port, and a function that runs kagzi against it.
func server(t *testing.T) (agq string, kagzi func(args ...string) string) {
	t.Helper()
	file := program(t)
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, file, "server", "--data-dir", t.TempDir(), "--config", "off",
		"--listen", "127.0.0.1:0", "--http", "off", "--agq", "127.0.0.1:0", "--agq-verify")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	said, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait()
	})
	address := ""
	for lines := bufio.NewScanner(said); agq == "" && lines.Scan(); {
		name, value, _ := strings.Cut(strings.TrimSpace(lines.Text()), " ")
		switch name {
		case "address":
			address = strings.TrimSpace(value)
		case "agq":
			agq = strings.TrimSpace(value)
		}
	}
	return agq, func(args ...string) string {
		t.Helper()
		run := exec.Command(file, append(args, "--address", address, "--profile", "off")...)
		out, err := run.CombinedOutput()
		if err != nil {
			t.Fatalf("kagzi %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
}

// begin starts a worker and ends it with the test.
func begin(t *testing.T, name string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait()
	})
}

func TestWorkersRunThePlan(t *testing.T) {
	for worker, start := range map[string]func(t *testing.T, address string){
		"py-1": func(t *testing.T, address string) {
			begin(t, python(t), "worker.py", "py-1", "redis://"+address)
		},
		"sh-1": func(t *testing.T, address string) {
			tool(t, "redis-cli")
			tool(t, "jq")
			_, port, err := net.SplitHostPort(address)
			if err != nil {
				t.Fatal(err)
			}
			begin(t, tool(t, "bash"), "worker.sh", "sh-1", port)
		},
	} {
		t.Run(worker, func(t *testing.T) {
			address, kagzi := server(t)
			start(t, address)
			out := kagzi("agq", "submit", "plan.json", "--action", "a1", "--input", `{"first":"b","second":"a","third":"b"}`,
				"--input", `{"first":1,"second":2,"third":3}`, "-o", "json")
			var made struct {
				Action string   `json:"action_id"`
				Jobs   []string `json:"job_ids"`
			}
			if err := json.Unmarshal([]byte(out), &made); err != nil || made.Action != "a1" || len(made.Jobs) != 2 {
				t.Fatalf("submit says %s: %v", out, err)
			}
			kagzi(append([]string{"workflow", "wait", "--timeout", "2m"}, made.Jobs...)...)
			if status := kagzi("agq", "status", "a1", "-o", "json"); !strings.Contains(status, `"completed": 2`) {
				t.Fatalf("the action is %s", status)
			}
			if says := kagzi("agq", "verify", worker, "sort"); !strings.HasPrefix(says, "sort (") {
				t.Errorf("the worker's sort says %q", says)
			}
			list := kagzi("workflow", "list", "-q", `type = "agq.job" and tag.agq.action = a1`, "-o", "jsonl")
			if n := strings.Count(list, "WORKFLOW_STATUS_COMPLETED") + strings.Count(list, `"COMPLETED"`); n != 2 {
				t.Errorf("the list of runs is %s", list)
			}
			if workers := kagzi("agq", "workers"); !strings.Contains(workers, "ACTIVE") ||
				!strings.Contains(workers, "sort: sort (") {
				t.Errorf("the list of workers is %s", workers)
			}
		})
	}
}

// TestRedisPyConnectsWithoutOptions has the ways of a client that begins with HELLO 3.
func TestRedisPyConnectsWithoutOptions(t *testing.T) {
	address, _ := server(t)
	code := fmt.Sprintf(`
import redis
for protocol in (2, 3):
    of = {"protocol": protocol}
    if int(redis.__version__.split(".")[0]) < 5: # it has RESP2 alone
        of = {}
    r = redis.Redis.from_url("redis://w%%d@%s" %% protocol, decode_responses=True, **of)
    assert r.ping() is True, "ping"
    assert r.brpop("queue:ready", 1) is None, "brpop"
    assert r.brpoplpush("queue:ready", "queue:processing", 1) is None, "brpoplpush"
    assert r.keys("worker:*:alive") != [], "keys"
    assert r.get("job:none") is None, "get"
    pipe = r.pipeline(transaction=False)
    pipe.get("job:none"); pipe.llen("queue:ready")
    assert pipe.execute() == [None, 0], "pipeline"
    try:
        r.get("other")
        raise SystemExit("a key that is not AGQ's is served")
    except redis.ResponseError as e:
        assert "unknown key space" in str(e), e
    r.close()
print("good")
`, address)
	out, err := exec.Command(python(t), "-c", code).CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "good" {
		t.Fatalf("%v: %s", err, out)
	}
}
