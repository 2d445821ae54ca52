package demo

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/kagzi/kagzi/tui"
	"github.com/kagzi/kagzi/tui/child"
)

// demoLimit limits one demo in a test; it takes about six seconds.
const demoLimit = 100 * time.Second

// built is a folder for the whole binary, which the tests share.
var built string

func TestMain(m *testing.M) {
	var err error
	if built, err = os.MkdirTemp("", "kagzi-demo-test-"); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(built)
	os.Exit(code)
}

// binaryOf returns the path of the whole binary.
func binaryOf(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(built, "kagzi.exe")
	if _, err := os.Stat(binary); err == nil {
		return binary
	}
	build := exec.Command("go", "build", "-o", binary, "github.com/kagzi/kagzi")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, output)
	}
	return binary
}

// TestBinary runs the demo from the whole binary, as users do.
func TestBinary(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and runs the whole binary")
	}
	binary := binaryOf(t)

	t.Run("all results are correct and it exits 0", func(t *testing.T) {
		d := startDemo(t, binary)
		output := d.rest()
		if err := d.cmd.Wait(); err != nil {
			t.Fatalf("demo: %v\n%s%s", err, output, d.stderr)
		}
		for _, want := range []string{
			"7 of 7 results are correct", "killed with 5 steps recorded", "nap         SLEEPING",
			"another did", "50 steps", "refund-card COMPLETED", "approval    waits for signal approval",
			"quote-5 COMPLETED",
			"the scene with Python and TypeScript is left out: ",
			"taken once", "schedule    ENABLED", "schedule    PAUSED", "one run each",
		} {
			if !strings.Contains(output, want) {
				t.Errorf("the output does not say %q:\n%s", want, output)
			}
		}
		for _, s := range scenes {
			if !regexp.MustCompile(`(?m)^` + s.title + ` +(COMPLETED|PAUSED) +right `).MatchString(output) {
				t.Errorf("the summary has no good line for %s:\n%s", s.title, output)
			}
		}
		d.leavesNothing(serverIn(t, output))
	})

	if runtime.GOOS == "windows" {
		return // Windows processes cannot send Ctrl-C to another
	}

	t.Run("an interrupt stops everything and exits 130", func(t *testing.T) {
		d := startDemo(t, binary)
		output := d.until("RUNNING")
		d.interrupt()
		d.rest()
		if code := d.exitCode(); code != 130 {
			t.Errorf("exit code %d, want 130", code)
		}
		d.leavesNothing(serverIn(t, output))
	})

	t.Run("a closed pipe stops everything", func(t *testing.T) {
		d := startDemo(t, binary)
		address := serverIn(t, d.until("RUNNING"))
		if err := d.out.Close(); err != nil {
			t.Fatal(err)
		}
		if code := d.exitCode(); code == 0 || d.stderr.Len() > 0 {
			t.Errorf("exit code %d, want that of the signal, and nothing said: %s", code, d.stderr)
		}
		d.leavesNothing(address)
	})

	t.Run("--keep runs until interrupted and prints commands", func(t *testing.T) {
		d := startDemo(t, binary, "--keep")
		output := d.until("Ctrl-C stops everything")
		address := serverIn(t, output)
		if _, err := child.Ask(t.Context(), tui.DialOptions{Address: address}, 5*time.Second); err != nil {
			t.Errorf("the server does not answer: %v", err)
		}
		for _, try := range []struct{ command, says string }{ // in this order
			{"workflow list", sagaType},
			{"workflow show --external", purchaseType},
			{"workflow signal", "delivered"},
			{"schedule show", tickCron},
			{"schedule trigger", "-"},
			{"schedule resume", "ENABLED"},
			{"schedule runs", "schedule:"},
		} {
			args := regexp.MustCompile(`(?m)^  \S*kagzi\S* (` + try.command + `.*)$`).FindStringSubmatch(output)
			if args == nil {
				t.Errorf("it does not say to try %q:\n%s", try.command, output)
				continue
			}
			said, err := exec.CommandContext(t.Context(), binary, strings.Fields(args[1])...).CombinedOutput()
			if err != nil || !strings.Contains(string(said), try.says) {
				t.Errorf("kagzi %s: %v, want one that says %q:\n%s", args[1], err, try.says, said)
			}
		}
		d.interrupt()
		d.rest()
		if code := d.exitCode(); code != 0 {
			t.Errorf("exit code %d, want 0", code)
		}
		d.leavesNothing(address)
	})
}

// running is a running demo.
type running struct {
	t      *testing.T
	cmd    *exec.Cmd
	dir    string // for its temporary files
	out    io.Closer
	lines  *bufio.Reader
	stderr *bytes.Buffer
}

func startDemo(t *testing.T, binary string, args ...string) *running {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), demoLimit)
	t.Cleanup(cancel)
	d := &running{t: t, dir: t.TempDir(), stderr: &bytes.Buffer{}}
	d.cmd = exec.CommandContext(ctx, binary, append([]string{"demo"}, args...)...)
	d.cmd.Env = append(os.Environ(), "TMPDIR="+d.dir, "TMP="+d.dir, "TEMP="+d.dir,
		"KAGZI_DB_URL=postgres://nowhere.invalid/x", "KAGZI_WORKER_LEASE=1h")
	d.cmd.Stderr = d.stderr
	out, err := d.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	d.out, d.lines = out, bufio.NewReader(out)
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return d
}

// until reads the demo's output up to a line that contains text.
func (d *running) until(text string) (read string) {
	d.t.Helper()
	for {
		line, err := d.lines.ReadString('\n')
		read += line
		if strings.Contains(line, text) {
			return read
		}
		if err != nil {
			d.t.Fatalf("the demo ended without saying %q (%v):\n%s%s", text, err, read, d.stderr)
		}
	}
}

func (d *running) rest() string {
	data, _ := io.ReadAll(d.lines)
	return string(data)
}

func (d *running) interrupt() {
	d.t.Helper()
	if err := d.cmd.Process.Signal(os.Interrupt); err != nil {
		d.t.Fatal(err)
	}
}

func (d *running) exitCode() int {
	err := d.cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		d.t.Fatal(err)
	}
	return d.cmd.ProcessState.ExitCode()
}

// leavesNothing checks that the server has exited and no temporary file is left.
func (d *running) leavesNothing(address string) {
	d.t.Helper()
	if conn, err := net.Dial("tcp", address); err == nil {
		_ = conn.Close()
		d.t.Errorf("somebody still listens at %s", address)
	}
	left, err := os.ReadDir(d.dir)
	if err != nil || len(left) > 0 {
		d.t.Errorf("temporary files left: %v, %v", left, err)
	}
}

func serverIn(t *testing.T, output string) string {
	t.Helper()
	found := regexp.MustCompile(`server at (\S+) `).FindStringSubmatch(output)
	if found == nil {
		t.Fatalf("the demo did not say where its server is:\n%s", output)
	}
	return found[1]
}
