// Package python runs the tests of the Python SDK.
package python

import (
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

	"github.com/kagzi/kagzi/backends/postgres/pgtest"
)

// notTried says loudly that the tests did not run, past what `go test` shows of a test that is skipped.
func notTried(t *testing.T, why string) {
	t.Helper()
	fmt.Fprintf(os.Stderr, "\n!!!!!!!! NOT TRIED: the Python SDK: %s\n", why)
	if os.Getenv("CI") != "" {
		t.Fatal(why)
	}
	t.Skip(why)
}

func TestThePythonSDK(t *testing.T) {
	if testing.Short() {
		pytest(t, nil, "tests/test_basics.py")
		return
	}
	pytest(t, nil)
}

// Where this machine has no Postgres the test is skipped and says so, or fails when CI is set;
// KAGZI_TEST_POSTGRES names one.
func TestTheExampleOfTwoServers(t *testing.T) {
	pytest(t, []string{"KAGZI_TEST_POSTGRES=" + pgtest.DurableURL(t)}, "tests/test_examples.py", "-k", "goes_on")
}

// pytest runs tests of the SDK, all or those that arguments name.
func pytest(t *testing.T, environment []string, which ...string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		notTried(t, "venv.sh needs a shell")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	interpreter, err := exec.CommandContext(ctx, "bash", "venv.sh").Output()
	if err != nil {
		var ended *exec.ExitError
		if errors.As(err, &ended) {
			notTried(t, string(ended.Stderr))
		}
		notTried(t, err.Error())
	}
	binary := filepath.Join(t.TempDir(), "kagzi")
	build := exec.CommandContext(ctx, "go", "build", "-o", binary, ".")
	build.Dir = filepath.Join("..", "..")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as it is shipped
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the server: %v\n%s", err, out)
	}
	arguments := append([]string{"-m", "pytest", "-q", "--color=no", "-p", "no:cacheprovider"}, which...)
	tests := exec.CommandContext(ctx, strings.TrimSpace(string(interpreter)), arguments...)
	tests.Env = append(append(os.Environ(), "KAGZI_BIN="+binary, "PYTHONDONTWRITEBYTECODE=1"), environment...)
	tests.WaitDelay = 10 * time.Second
	out, err := tests.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}
