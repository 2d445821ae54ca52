package cli

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	kagzi "github.com/kagzi/kagzi/sdk"
	"github.com/kagzi/kagzi/sdk/profile"
)

// asWorker in the environment makes the test binary a worker that behaves as the variable says.
const asWorker = "KAGZI_TEST_WORKER"

func TestMain(m *testing.M) {
	if behaviour := os.Getenv(asWorker); behaviour != "" {
		os.Exit(work(behaviour))
	}
	_ = os.Setenv("KAGZI_CONFIG", "off") // do not use the settings of the user running the tests
	os.Exit(m.Run())
}

func work(behaviour string) int {
	switch behaviour {
	case "diverges", "hides that it diverges":
		fmt.Println("order 01936b2e: step charge expected, ship got")
		fmt.Println("checked 3 open runs of 1 workflow types in namespace default: 1 diverge, 0 came to no end")
		if behaviour == "diverges" {
			return 1
		}
		return 0
	case "knows the SDK":
		flags := flag.NewFlagSet(os.Args[0], flag.ContinueOnError)
		verbose := flags.Bool("v", false, "")
		if flags.Parse(os.Args[1:]) != nil || !*verbose || flags.NArg() > 0 {
			return 2
		}
		w := kagzi.NewWorker(kagzi.WorkerOptions{})
		kagzi.Handle(w, "order", func(kagzi.Context, int) (int, error) { return 0, nil })
		if err := w.Run(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	case "fails":
		return 1
	case "does nothing":
		fmt.Println(strings.Repeat("x", 2*verdictLength))
		return 0
	case "knows no check":
		fmt.Fprintln(os.Stderr, "flag provided but not defined: -kagzi-check")
		return 2
	case "dies":
		self, err := os.FindProcess(os.Getpid())
		if err == nil && self.Kill() == nil {
			select {}
		}
	case "waits":
		interrupted := make(chan os.Signal, 1)
		signal.Notify(interrupted, os.Interrupt)
		fmt.Println("waiting")
		<-interrupted
		return 3
	}
	fmt.Println(strings.Join(os.Args[1:], " "))
	for _, name := range []string{"KAGZI_CHECK", "KAGZI_ADDRESS", "KAGZI_NAMESPACE", "KAGZI_API_KEY", "OTHER"} {
		value, ok := os.LookupEnv(name)
		fmt.Println(name, value, ok)
	}
	fmt.Println("checked 0 open runs of 1 workflow types in namespace stage: 0 diverge, 0 came to no end")
	return 0
}

// emptyServer has no runs.
type emptyServer struct {
	kagziv1.UnimplementedWorkflowServiceServer
}

func (emptyServer) ListWorkflows(context.Context,
	*kagziv1.ListWorkflowsRequest) (*kagziv1.ListWorkflowsResponse, error) {
	return &kagziv1.ListWorkflowsResponse{}, nil
}

func TestCheck(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Run("starts the worker with -kagzi-check and server settings",
		func(t *testing.T) {
			t.Setenv(asWorker, "fine")
			t.Setenv("KAGZI_ADDRESS", "old:1")
			t.Setenv("OTHER", "kept")
			s := &session{server: &fake{}, environ: map[string]string{"KAGZI_API_KEY": "secret"}}
			out, msg := s.want(t, ExitOK, "check", "--address", "box:1", "-n", "stage", self, "--output", "x",
				"-n", "mine",
				"--", "a b")
			want :=
				"--output x -n mine -- a b\nKAGZI_CHECK 1 true\nKAGZI_ADDRESS box:1 true\nKAGZI_NAMESPACE stage true\nKAGZI_API_KEY secret true\nOTHER kept true\n" +
					"checked 0 open runs of 1 workflow types in namespace stage: 0 diverge, 0 came to no end\n"
			if diff := cmp.Diff(want, out); diff != "" || msg != "" {
				t.Errorf("stderr %q, stdout %s", msg, diff)
			}
		})
	t.Run("exits 1 if runs would diverge, without output of its own", func(t *testing.T) {
		t.Setenv(asWorker, "diverges")
		if out, msg := (&session{}).want(t, ExitError, "check", self); !strings.HasPrefix(
			out, "order 01936b2e: step charge expected, ship got\nchecked 3 ") || msg != "" {
			t.Errorf("stdout %q, stderr %q", out, msg)
		}
	})
	t.Run("prints only the counts on stdout with -o json", func(t *testing.T) {
		t.Setenv(asWorker, "diverges")
		for format, want := range map[string]string{
			"json": `{
  "sound": false,
  "checks": [
    {
      "namespace": "default",
      "open_runs": 3,
      "workflow_types": 1,
      "diverged": 1,
      "stuck": 0
    }
  ]
}
`,
			"jsonl": `{"namespace":"default","open_runs":3,"workflow_types":1,"diverged":1,"stuck":0}` + "\n",
			"yaml":  "sound: false\nchecks:\n  - namespace: default\n    open_runs: 3\n    workflow_types: 1\n    diverged: 1\n    stuck: 0\n",
		} {
			out, msg := (&session{}).want(t, ExitError, "check", "-o", format, self)
			if out != want || !strings.HasPrefix(msg, "order 01936b2e: step charge expected, ship got\nchecked 3 ") {
				t.Errorf("%s: stdout %q, stderr %q", format, out, msg)
			}
		}
		t.Setenv(asWorker, "does nothing")
		if out, msg := (&session{}).want(t, ExitError, "check", "-o", "json", self); out != "" ||
			!strings.Contains(msg, "checked nothing") {
			t.Errorf("without a verdict: stdout %q, stderr %q", out, msg)
		}
	})
	t.Run("reports a worker without the SDK's check, with its exit code", func(t *testing.T) {
		t.Setenv(asWorker, "knows no check")
		if _, msg := (&session{}).want(t, 2, "check", self); !strings.Contains(msg, "not defined") ||
			!strings.Contains(msg, "ended with exit status 2 and no verdict") {
			t.Errorf("stderr %q", msg)
		}
	})
	t.Run("does not take a failing worker for a verdict", func(t *testing.T) {
		t.Setenv(asWorker, "fails")
		if _, msg := (&session{}).want(t, ExitError, "check", self); !strings.Contains(
			msg, "ended with exit status 1 and no verdict") {
			t.Errorf("stderr %q", msg)
		}
	})
	t.Run("fails if the worker exits 0 without a verdict", func(t *testing.T) {
		t.Setenv(asWorker, "does nothing")
		if _, msg := (&session{}).want(t, ExitError, "check", self); !strings.Contains(
			msg, "exited with 0 but checked nothing: main must call the worker's Run") {
			t.Errorf("stderr %q", msg)
		}
	})
	t.Run("fails if the worker exits 0 although runs diverge", func(t *testing.T) {
		t.Setenv(asWorker, "hides that it diverges")
		if _, msg := (&session{}).want(t, ExitError, "check", self); !strings.Contains(
			msg, "must exit with another code") {
			t.Errorf("stderr %q", msg)
		}
	})
	t.Run("matches the verdict line of the SDK", func(t *testing.T) {
		t.Setenv(asWorker, "knows the SDK")
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		server := grpc.NewServer()
		kagziv1.RegisterWorkflowServiceServer(server, emptyServer{})
		go server.Serve(listener) // until Stop
		defer server.Stop()
		(&session{}).want(t, ExitOK, "check", "--address", listener.Addr().String(), self, "-v")
	})
	t.Run("exits with 128 plus the signal of a killed worker", func(t *testing.T) {
		if runtime.GOOS == "windows" {
			t.Skip("Windows ends a process with an exit code and no signal")
		}
		t.Setenv(asWorker, "dies")
		if _, msg := (&session{}).want(t, 128+9, "check", self); !strings.Contains(msg, "signal: killed") {
			t.Errorf("stderr %q", msg)
		}
	})
	t.Run("reports a missing command as a usage error", func(t *testing.T) {
		if _, msg := (&session{}).want(t, ExitUsage, "check", "./no-such-worker"); !strings.Contains(
			msg, "cannot start ./no-such-worker") {
			t.Errorf("stderr %q", msg)
		}
	})
	t.Run("forwards an interrupt and exits 130", func(t *testing.T) {
		t.Setenv(asWorker, "waits")
		ctx, interrupt := context.WithCancel(t.Context())
		s := &session{server: &fake{}}
		if code := Execute(ctx, root(s.env()), []string{"check", self}, strings.NewReader(""), onWrite(interrupt),
			discard{}); code != ExitInterrupted {
			t.Errorf("exit code %d", code)
		}
	})
	t.Run("gives up after --timeout", func(t *testing.T) {
		t.Setenv(asWorker, "waits")
		if _, msg := (&session{}).want(t, ExitError, "check", "--timeout", "300ms", self); !strings.Contains(
			msg, "gave up after 300ms") {
			t.Errorf("stderr %q", msg)
		}
	})
}

// onWrite is an output that calls a function on each write.
type onWrite func()

func (f onWrite) Write(p []byte) (int, error) {
	f()
	return len(p), nil
}

func TestCheck_environment_leaves_out_a_key_that_is_not_given(t *testing.T) {
	got, err := checkEnvironment([]string{"A=1", "KAGZI_API_KEY=stale", "KAGZI_API_KEY_FILE=gone", "KAGZI_NAMESPACE=x"},
		&ClientFlags{Profile: profile.Profile{Address: "a:1", Namespace: "n", TLSCA: "ca.pem"}, Timeout: time.Second})
	want := []string{"A=1", "KAGZI_ADDRESS=a:1", "KAGZI_NAMESPACE=n", "KAGZI_PROFILE=off", "KAGZI_TLS=true",
		"KAGZI_TLS_CA=ca.pem"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("environment %q, %v, want %q", got, err, want)
	}
}
