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

// install runs install.sh of a package.
func install(ctx context.Context, t *testing.T, folder string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		notTried(t, "install.sh needs a shell")
	}
	if out, err := exec.CommandContext(ctx, "bash", filepath.Join(folder, "install.sh")).CombinedOutput(); err != nil {
		var ended *exec.ExitError
		if errors.As(err, &ended) && ended.ExitCode() == 77 {
			notTried(t, string(out))
		}
		t.Fatalf("install: %v\n%s", err, out)
	}
}

// server builds the server and returns its path.
func server(ctx context.Context, t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "kagzi")
	build := exec.CommandContext(ctx, "go", "build", "-o", binary, ".")
	build.Dir = filepath.Join("..", "..")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as it is shipped
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the server: %v\n%s", err, out)
	}
	return binary
}

func TestTheTypeScriptSDK(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	install(ctx, t, ".")
	tests := "build/tests/"
	if testing.Short() {
		tests = "build/tests/data.test.js"
	}
	run(ctx, t, ".", tests)
}

func TestTheWorld(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds and kills an app for a minute")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	install(ctx, t, ".")
	install(ctx, t, "world")
	run(ctx, t, "world", "build/tests/")
}

// run runs tests of a package on the server.
func run(ctx context.Context, t *testing.T, folder, files string) {
	t.Helper()
	tests := exec.CommandContext(ctx, "node", "--test", files)
	tests.Dir = folder
	tests.Env = append(os.Environ(), "KAGZI_BIN="+server(ctx, t))
	tests.WaitDelay = 10 * time.Second
	out, err := tests.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}
