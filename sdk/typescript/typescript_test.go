// Package typescript runs the tests of the TypeScript SDK.
package typescript

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

// notTried says loudly that the tests did not run, past what `go test` shows of a test that is skipped.
func notTried(t *testing.T, why string) {
	t.Helper()
	fmt.Fprintf(os.Stderr, "\n!!!!!!!! NOT TRIED: the TypeScript SDK: %s\n", why)
	if os.Getenv("CI") != "" {
		t.Fatal(why)
	}
	t.Skip(why)
}

func TestTheTypeScriptSDK(t *testing.T) {
	if runtime.GOOS == "windows" {
		notTried(t, "install.sh needs a shell")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	if out, err := exec.CommandContext(ctx, "bash", "install.sh").CombinedOutput(); err != nil {
		var ended *exec.ExitError
		if errors.As(err, &ended) && ended.ExitCode() == 77 {
			notTried(t, string(out))
		}
		t.Fatalf("install: %v\n%s", err, out)
	}
	binary := filepath.Join(t.TempDir(), "kagzi")
	build := exec.CommandContext(ctx, "go", "build", "-o", binary, ".")
	build.Dir = filepath.Join("..", "..")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as it is shipped
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the server: %v\n%s", err, out)
	}
	arguments := []string{"--test"}
	if testing.Short() {
		arguments = append(arguments, "build/tests/data.test.js")
	} else {
		arguments = append(arguments, "build/tests/")
	}
	tests := exec.CommandContext(ctx, "node", arguments...)
	tests.Env = append(os.Environ(), "KAGZI_BIN="+binary)
	tests.WaitDelay = 10 * time.Second
	out, err := tests.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}
