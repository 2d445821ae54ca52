package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
	"time"
)

// runAsProgram in the environment makes the test binary the program itself.
const runAsProgram = "KAGZI_TEST_RUN_MAIN"

func TestMain(m *testing.M) {
	if address := os.Getenv(workerAt); address != "" {
		if err := work(address); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if os.Getenv(runAsProgram) != "" {
		os.Exit(run(os.Args[1:]))
	}
	code := m.Run()
	if endBrowser != nil {
		endBrowser()
	}
	os.Exit(code)
}

// endBrowser ends the browser of the tests of the page, which are compiled on Linux only: the
// browser's protocol is too large to compile for systems on which nobody drives one.
var endBrowser func()

// program returns a kagzi process without KAGZI_ variables in its environment.
func program(ctx context.Context, t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, self, args...)
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "KAGZI_") {
			cmd.Env = append(cmd.Env, e)
		}
	}
	cmd.Env = append(cmd.Env, runAsProgram+"=1")
	return cmd
}

// finish runs a program until it exits.
func finish(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := program(ctx, t, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// startServer waits until a server prints that it is ready, and returns its address.
func startServer(t *testing.T, dataDir string) (cmd *exec.Cmd, address string, stderr *bytes.Buffer) {
	t.Helper()
	return startServerAt(t, dataDir, "127.0.0.1:0")
}

// startServerAt does so at an address.
func startServerAt(t *testing.T, dataDir, listen string) (cmd *exec.Cmd, address string, stderr *bytes.Buffer) {
	t.Helper()
	cmd, stderr = program(context.Background(), t, "server", "--data-dir", dataDir, "--listen", listen, "--http", "off",
		"--config", "off"), &bytes.Buffer{}
	cmd.Stderr = stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill() // it has ended already, or does now
			_ = cmd.Wait()
		}
	})
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		if found := regexp.MustCompile(`--address (\S+)$`).FindStringSubmatch(lines.Text()); found != nil {
			return cmd, found[1], stderr
		}
	}
	_ = cmd.Wait()
	t.Fatalf("the server ended before it was ready: %s", stderr)
	return nil, "", nil
}

func TestSIGTERMStopsAServerWithExitCode0(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no SIGTERM here")
	}
	for _, signal := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		dir := filepath.Join(t.TempDir(), "data")
		cmd, address, stderr := startServer(t, dir)
		if code, _, errs := finish(t, "workflow", "list", "--address", address); code != 0 {
			t.Errorf("the next command that the server names ends with %d: %s", code, errs)
		}
		if err := cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("after %v: %v, want exit code 0\n%s", signal, err, stderr)
		}
		if code, out, errs := finish(t, "db", "check", "--data-dir", dir); code != 0 || out != "sound\n" {
			t.Errorf("db check = %d, %q, %s, want 0 and sound", code, out, errs)
		}
	}
}

func TestASecondServerOnTheSameFileIsAConflictAndNamesTheHolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	_, address, _ := startServer(t, dir)
	code, out, errs := finish(t, "server", "--data-dir", dir, "--listen", "127.0.0.1:0", "--http", "off",
		"--config", "off")
	if code != 6 || out != "" || !strings.Contains(errs, address) {
		t.Errorf("exit code %d, stdout %q, stderr %q, want 6 and the address %s", code, out, errs, address)
	}
}

func TestExitCodesTellWhatWentWrong(t *testing.T) {
	nothing := filepath.Join(t.TempDir(), "nothing")
	for _, try := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"version"}, 0, ""},
		{[]string{"server", "--help"}, 0, ""},
		{[]string{"db", "status", "--data-dir", nothing}, 5, "no database"},
		{[]string{"db", "check", "--data-dir", nothing}, 5, "kagzi.db"},
		{[]string{"db", "backup", "--verify", nothing}, 5, "no such file: " + nothing},
		{[]string{"db", "restore", nothing, "--dry-run", "--data-dir", nothing}, 5, "no such file: " + nothing},
		{[]string{"db", "status", "--db", "mysql://secret@host/x"}, 64, "want sqlite:PATH or postgres://"},
		{[]string{"server", "--db", "mysql://secret@host/x", "--config", "off"}, 64, "want sqlite:PATH or postgres://"},
		{[]string{"key", "list", "--db", "sqlite:"}, 64, "want sqlite:PATH"},
		{[]string{"key", "list", "--db", "sqlite:" + nothing}, 5, "no database"},
		{[]string{"db", "backup", "--db", "sqlite:" + nothing, nothing + ".backup"}, 5, "no database"},
		{[]string{"server", "--worker-lease", "soon"}, 64, "--worker-lease"},
		{[]string{"server", "--worker-lease", "10s"}, 64, "two heartbeats"},
		{[]string{"server", "extra"}, 64, "extra"},
		{[]string{"tui", "--demo", "--db", "x"}, 64, "--db and --demo cannot be given together"},
		{[]string{"tui", "--db", nothing}, 5, "no database"},
		{[]string{"tui", "--db", "sqlite:" + nothing}, 5, "no database sqlite:" + nothing},
		{[]string{"tui", "--db", "postgres://secret@host/x"}, 64, "kagzi tui --read-only"},
		{[]string{"db", "copy", "--from", "sqlite:" + nothing, "--to", "sqlite:" + nothing + ".copy"}, 5,
			"no database"},
		{[]string{"db", "copy", "--release", "sqlite:" + nothing}, 5, "no database"},
		{[]string{"server", "--unheard-of"}, 64, "unheard-of"},
		{[]string{"server", "--listen", "0.0.0.0:0", "--data-dir", nothing}, 78, "--insecure"},
	} {
		t.Run(strings.Join(try.args[:min(2, len(try.args))], " "), func(t *testing.T) {
			code, _, errs := finish(t, try.args...)
			if code != try.code || !strings.Contains(errs, try.says) || strings.Contains(errs, "secret") {
				t.Errorf("%q: exit code %d, %q, want %d and %q", try.args, code, errs, try.code, try.says)
			}
		})
	}
	if _, err := os.Stat(nothing); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s: %v, want that nothing was made", nothing, err)
	}
}

func TestCommandsOnADatabaseSayWhetherItIsInUseOrOutOfReach(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	startServer(t, dir)
	spare := t.TempDir()
	backup := filepath.Join(spare, "backup.db")
	held, free := "sqlite:"+filepath.Join(dir, "kagzi.db"), "sqlite:"+filepath.Join(spare, "free.db")
	for _, args := range [][]string{
		{"db", "backup", backup, "--db", held},
		{"db", "migrate", "--db", free},
	} {
		if code, _, errs := finish(t, args...); code != 0 {
			t.Fatalf("%q: exit code %d, %s", args, code, errs)
		}
	}
	away := "postgres:///kagzi?host=" + t.TempDir() // a socket directory without a socket
	for _, try := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"db", "restore", backup, "--force", "--db", held}, 6, "in use by process"},
		{[]string{"db", "migrate", "--db", held}, 6, "in use by process"},
		{[]string{"db", "copy", "--from", held, "--to", free}, 6, "in use by process"},
		{[]string{"db", "copy", "--from", free, "--to", held}, 6, "in use by process"},
		{[]string{"db", "copy", "--release", held}, 6, "in use by process"},
		{[]string{"db", "check", "--accept", "--db", held}, 6, "in use by process"},
		{[]string{"key", "list", "--db", held}, 6, "in use by process"},
		{[]string{"db", "backup", backup, "--db", held}, 6, "exists"},
		{[]string{"db", "restore", backup, "--db", away}, 7, "does not answer"},
		{[]string{"db", "migrate", "--db", away}, 7, "does not answer"},
		{[]string{"db", "status", "--db", away}, 7, "does not answer"},
		{[]string{"db", "check", "--db", away}, 7, "does not answer"},
		{[]string{"db", "copy", "--from", away, "--to", free}, 7, "does not answer"},
		{[]string{"db", "copy", "--from", free, "--to", away}, 7, "does not answer"},
		{[]string{"db", "copy", "--release", away}, 7, "does not answer"},
		{[]string{"db", "backup", filepath.Join(spare, "another.db"), "--db", away}, 7, "does not answer"},
	} {
		if code, _, errs := finish(t, try.args...); code != try.code || !strings.Contains(errs, try.says) {
			t.Errorf("%q: exit code %d, %q, want %d and %q", try.args, code, errs, try.code, try.says)
		}
	}
}

func TestTheVersionIsTheReleaseElseTheModuleElseTheCommit(t *testing.T) {
	build := func(version string, settings ...debug.BuildSetting) func() (*debug.BuildInfo, bool) {
		return func() (*debug.BuildInfo, bool) {
			return &debug.BuildInfo{Main: debug.Module{Version: version}, Settings: settings}, true
		}
	}
	revision := debug.BuildSetting{Key: "vcs.revision", Value: "0123456789abcdef0123"}
	for _, try := range []struct {
		release string
		read    func() (*debug.BuildInfo, bool)
		want    string
	}{
		{"v1.2.3", build("v9.9.9"), "v1.2.3"},
		{"", build("v1.0.0"), "v1.0.0"},
		{"", build("(devel)", revision), "devel+0123456789ab"},
		{"", build("", revision, debug.BuildSetting{Key: "vcs.modified", Value: "true"}), "devel+0123456789ab.dirty"},
		{"", build("(devel)"), "devel"},
		{"", func() (*debug.BuildInfo, bool) { return nil, false }, "devel"},
	} {
		if got := versionOf(try.release, try.read); got != try.want {
			t.Errorf("version = %q, want %q", got, try.want)
		}
	}
}
