package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"
)

// notTried says loudly that the test did not run, past what `go test` shows of a test that is skipped.
func notTried(t *testing.T, why string) {
	t.Helper()
	fmt.Fprintf(os.Stderr, "\n!!!!!!!! NOT TRIED: the demo in three languages: %s\n", why)
	if os.Getenv("CI") != "" {
		t.Fatal(why)
	}
	t.Skip(why)
}

// prepared runs a script that installs an SDK, and returns what it prints. Its exit code 77 says that
// the language is not there.
func prepared(ctx context.Context, t *testing.T, script string) string {
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

func TestThreeLanguages(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and runs the whole binary, and starts three languages")
	}
	if runtime.GOOS == "windows" {
		notTried(t, "the scripts of the SDKs need a shell")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute) // it may install and build
	defer cancel()
	sdks, err := filepath.Abs(filepath.Join("..", "..", "sdk"))
	if err != nil {
		t.Fatal(err)
	}
	python := prepared(ctx, t, filepath.Join(sdks, "python", "venv.sh"))
	prepared(ctx, t, filepath.Join(sdks, "typescript", "install.sh"))
	project := t.TempDir() // has the package as `npm install` would put it there
	packages := filepath.Join(project, "node_modules", "@kagzi")
	if err := errors.Join(os.MkdirAll(packages, 0o700),
		os.Symlink(filepath.Join(sdks, "typescript"), filepath.Join(packages, "sdk"))); err != nil {
		t.Fatal(err)
	}
	binary := binaryOf(t) // is built in the folder of this package
	t.Setenv("PATH", filepath.Dir(python)+string(filepath.ListSeparator)+os.Getenv("PATH"))
	t.Chdir(project)

	d := startDemo(t, binary, "--keep")
	output := d.until("Ctrl-C stops everything")
	address := serverIn(t, output)
	for _, want := range []string{
		"8 of 8 results are correct", "go-1 killed in step send-limit", "python-1 killed in step model",
		"typescript-1 killed in step check", "python 0.1.0, typescript 0.1.0: each lost its worker",
	} {
		if !strings.Contains(output, want) {
			t.Errorf("the output does not say %q:\n%s", want, output)
		}
	}
	if strings.Contains(output, "left out") {
		t.Errorf("a scene is left out:\n%s", output)
	}
	said := func(args ...string) string {
		out, err := exec.CommandContext(ctx, binary, append(args, "--address", address)...).CombinedOutput()
		if err != nil {
			t.Errorf("kagzi %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	tree := said("workflow", "show", "--external", claimID, "--tree")
	order := regexp.MustCompile(`(?s)claim .*─ assess .*─ child: claim-assess .*─ child: claim-review .*─ decide ` +
		`.*─ send-limit .*─ pay `)
	if !order.MatchString(tree) {
		t.Errorf("the tree does not show the three runs below each other:\n%s", tree)
	}
	workers := said("worker", "list")
	for _, id := range []string{"go-2", "python-2", "typescript-2"} {
		language, _, _ := strings.Cut(id, "-")
		if !regexp.MustCompile(`(?m)^` + id + ` .*  ` + language + ` `).MatchString(workers) {
			t.Errorf("the list of workers does not name the SDK of %s:\n%s", id, workers)
		}
	}
	d.interrupt()
	d.rest()
	if code := d.exitCode(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	d.leavesNothing(address)
}
