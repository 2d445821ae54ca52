package main

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
	"syscall"
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine/lab/e2e"
	kagzi "github.com/kagzi/kagzi/sdk"
)

// workerAt in the environment makes the test binary a worker of that server; faultsIn is the
// directory whose files make steps fail.
const (
	workerAt = "KAGZI_TEST_WORKER_AT"
	faultsIn = "KAGZI_TEST_FAULTS_IN"
)

// work runs the worker of these tests.
func work(address string) error {
	w := kagzi.NewWorker(kagzi.WorkerOptions{Address: address, Queue: "e2e"})
	kagzi.Handle(w, "grow", grow)
	kagzi.Handle(w, "fragile", fragile)
	return w.Run(context.Background())
}

// grow runs a step per signal.
func grow(ctx kagzi.Context, _ struct{}) (string, error) {
	for _, name := range []string{"seed", "sprout", "bloom"} {
		if _, err := kagzi.Step(ctx, name, func(context.Context) (string, error) { return name, nil }); err != nil {
			return "", err
		}
		if name == "bloom" {
			break
		}
		if _, err := kagzi.WaitSignal[string](ctx, "water-"+name, 0); err != nil {
			return "", err
		}
	}
	return "grown", nil
}

// fragile fails in its second step while a file named broken exists.
func fragile(ctx kagzi.Context, _ struct{}) (string, error) {
	if _, err := kagzi.Step(ctx, "prepare", func(context.Context) (string, error) {
		return "prepared", nil
	}); err != nil {
		return "", err
	}
	return kagzi.Step(ctx, "deliver", func(context.Context) (string, error) {
		if _, err := os.Stat(filepath.Join(os.Getenv(faultsIn), "broken")); err == nil {
			return "", errors.New("the van is broken")
		}
		return "delivered", nil
	}, kagzi.Retry{Attempts: 1})
}

// pane is a terminal with a program in it.
type pane struct {
	t      *testing.T
	socket string
}

// openPane runs the program in a terminal of that size.
func openPane(t *testing.T, width, height int, env []string, args ...string) *pane {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("no tmux here")
	}
	if _, err := exec.LookPath("tmux"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("tmux is needed and not installed")
		}
		t.Skip("SKIPPED: tmux is not installed, so the terminal UI is not tried in a terminal")
	}
	p := &pane{t: t, socket: filepath.Join(shortDir(t), "tmux")}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := append([]string{"env", "-u", "NO_COLOR", runAsProgram + "=1", "XDG_CONFIG_HOME=" + t.TempDir(),
		"XDG_CACHE_HOME=" + t.TempDir(), "LC_ALL=C.UTF-8"}, env...)
	command = append(append(command, self), args...)
	quoted := make([]string, len(command))
	for i, word := range command {
		quoted[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	p.tmux("-f", os.DevNull, "new-session", "-d", "-x", fmt.Sprint(width), "-y", fmt.Sprint(height),
		"trap : INT; "+strings.Join(quoted, " ")+"; echo exit code $?; exec sleep 600")
	t.Cleanup(func() { p.tmux("kill-server") })
	return p
}

// shortDir returns a directory whose name is short enough for a socket.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "kagzi")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func (p *pane) tmux(args ...string) string {
	p.t.Helper()
	out, err := exec.Command("tmux", append([]string{"-S", p.socket}, args...)...).CombinedOutput()
	if err != nil {
		p.t.Fatalf("tmux %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// keys presses keys, by their tmux names, or types text.
func (p *pane) keys(keys ...string) {
	p.t.Helper()
	p.tmux(append([]string{"send-keys"}, keys...)...)
}

func (p *pane) text(text string) {
	p.t.Helper()
	p.tmux("send-keys", "-l", text)
}

func (p *pane) screen() string {
	p.t.Helper()
	return p.tmux("capture-pane", "-p")
}

// sees polls until the screen satisfies ok, because a terminal does not report changes.
func (p *pane) sees(what string, ok func(screen string) bool) string {
	p.t.Helper()
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(30 * time.Millisecond)
	defer tick.Stop()
	for {
		screen := p.screen()
		if ok(screen) {
			return screen
		}
		select {
		case <-tick.C:
		case <-deadline:
			p.t.Fatalf("not on the screen: %s\n%s", what, screen)
		}
	}
}

// shows waits until each text is on the screen.
func (p *pane) shows(texts ...string) string {
	p.t.Helper()
	return p.sees(strings.Join(texts, " and "), func(screen string) bool {
		for _, text := range texts {
			if !strings.Contains(screen, text) {
				return false
			}
		}
		return true
	})
}

// row waits until one line contains all texts.
func (p *pane) row(texts ...string) {
	p.t.Helper()
	p.sees("a line with "+strings.Join(texts, ", "), func(screen string) bool {
		for line := range strings.Lines(screen) {
			missing := false
			for _, text := range texts {
				missing = missing || !strings.Contains(line, text)
			}
			if !missing {
				return true
			}
		}
		return false
	})
}

// startWorker runs the worker of these tests.
func startWorker(t testing.TB, address, faults string) {
	t.Helper()
	cmd := program(context.Background(), t)
	cmd.Env = append(cmd.Env, workerAt+"="+address, faultsIn+"="+faults)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
}

func ran(t *testing.T, address string, args ...string) string {
	t.Helper()
	code, out, errs := finish(t, append(args, "--address", address)...)
	if code != 0 {
		t.Fatalf("kagzi %v: exit code %d, %s", args, code, errs)
	}
	return out
}

func TestTheTerminalUIShowsAndControlsARealServer(t *testing.T) {
	data, faults := filepath.Join(t.TempDir(), "data"), t.TempDir()
	address := e2e.FreeAddress(t)
	server, _, _ := startServerAt(t, data, address)
	startWorker(t, address, faults)
	broken := filepath.Join(faults, "broken")
	if err := os.WriteFile(broken, nil, 0o600); err != nil {
		t.Fatal(err)
	}

	editor := filepath.Join(t.TempDir(), "editor")
	if err := os.WriteFile(editor, []byte("#!/bin/sh\nprintf '{\"written\": \"in the editor\"}' > \"$1\"\n"),
		0o700); err != nil {
		t.Fatal(err)
	}
	ui := openPane(t, 120, 40, []string{"EDITOR=" + editor}, "tui", "--address", address, "--view", "runs")
	ui.shows("live", "No runs")

	// start a run in the form and watch its timeline grow
	ui.keys("n")
	ui.shows("Start a run")
	ui.text("grow")
	ui.keys("Tab")
	ui.text("e2e")
	ui.keys("Tab", "C-o")
	ui.shows("in the editor")
	ui.keys("C-s")
	ui.sees("the form is gone", func(screen string) bool { return !strings.Contains(screen, "Start a run") })
	ui.row("sleeping", "grow")
	ui.keys("Enter")
	ui.shows("Timeline", "seed", "water-seed")
	ui.keys("s")
	ui.shows("Signal the run", "water-seed") // the name of the awaited signal is filled in
	ui.keys("C-s")
	ui.shows("sprout", "water-sprout")
	ui.keys("Escape")

	// cancel another one; the question defaults to no
	ran(t, address, "workflow", "start", "grow", "--queue", "e2e", "--external-id", "unwanted")
	ui.row("sleeping", "grow", "unwanted")
	ui.keys("g")
	ui.keys("x")
	ui.shows("Cancel", "kagzi workflow cancel")
	ui.keys("Enter")
	ui.row("sleeping", "unwanted")
	ui.keys("x")
	ui.shows("kagzi workflow cancel")
	ui.keys("Tab", "Enter")
	ui.row("cancelled", "unwanted")

	// retry a failed run from the failed step
	ran(t, address, "workflow", "start", "fragile", "--queue", "e2e", "--external-id", "parcel")
	ui.row("failed", "fragile", "parcel", "the van is broken")
	if err := os.Remove(broken); err != nil {
		t.Fatal(err)
	}
	ui.keys("g")
	ui.keys("Enter")
	ui.shows("Timeline", "prepare", "deliver")
	ui.keys("f")
	ui.keys("t")
	ui.shows("deliver", "kagzi workflow retry")
	ui.keys("Tab", "Enter")
	ui.shows("✓ completed", "runs › run") // the new run was opened
	ui.keys("Escape")
	ui.shows("the van is broken") // the failed run
	ui.keys("Escape")
	ui.row("completed", "fragile")

	// kill and restart the server; the screen stays
	if err := server.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = server.Wait()
	ui.shows("reconnecting", "unwanted")
	startServerAt(t, data, address)
	ui.shows("live", "unwanted")
	ran(t, address, "workflow", "start", "grow", "--queue", "e2e", "--external-id", "afterwards")
	ui.row("grow", "afterwards")

	ui.keys("q")
	ui.shows("exit code 0")
}

func TestCtrlCInTheEditorIsForTheEditorAlone(t *testing.T) {
	editor := filepath.Join(t.TempDir(), "editor")
	script :=
		"#!/bin/sh\ntrap 'echo it was heard' INT\necho editing\nuntil read -r line; do :; done\nprintf '{\"written\": \"nevertheless\"}' > \"$1\"\n"
	if err := os.WriteFile(editor, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	ui := openPane(t, 120, 40, []string{"EDITOR=" + editor}, "tui", "--demo", "--view", "runs")
	ui.shows("STATUS", "Runs (1")
	ui.keys("n")
	ui.shows("Start a run")
	ui.keys("Tab", "Tab", "C-o")
	ui.shows("editing")
	ui.keys("C-c") // as in vi, where it ends typing
	ui.shows("it was heard")
	ui.keys("Enter") // ends the editor
	ui.shows("Start a run", "nevertheless")
	ui.keys("Escape")
	ui.sees("the form is gone", func(screen string) bool { return !strings.Contains(screen, "Start a run") })
	ui.keys("q")
	ui.shows("exit code 0")
}

func TestTheTerminalUINeedsATerminal(t *testing.T) {
	code, out, errs := finish(t, "tui", "--demo")
	if code == 0 || out != "" || !strings.Contains(errs, "kagzi workflow list") {
		t.Errorf("exit code %d, %q, %q, want an error that names a command for pipes", code, out, errs)
	}
	for _, terminal := range []string{"TERM=dumb", "TERM=no-such-terminal"} {
		ui := openPane(t, 80, 24, []string{terminal}, "tui", "--demo")
		ui.shows("needs a terminal", "exit code 1")
	}
}

func TestTheTerminalUIFitsTheTerminal(t *testing.T) {
	for _, try := range []struct {
		name          string
		width, height int
		env, args     []string
		never         string
	}{
		{"small", 60, 15, nil, nil, ""},
		{"large", 200, 60, nil, nil, ""},
		{"ASCII", 80, 24, []string{"LC_ALL=C"}, nil, "?"},
		{"no colour", 80, 24, []string{"NO_COLOR=1"}, nil, ""},
	} {
		t.Run(try.name, func(t *testing.T) {
			ui := openPane(t, try.width, try.height, try.env,
				append([]string{"tui", "--demo", "--view", "runs"}, try.args...)...)
			screen := ui.shows("STATUS", "Runs (1")
			if try.never != "" && strings.Contains(strings.ReplaceAll(screen, "<?>", ""), try.never) {
				t.Errorf("the terminal was given what it cannot show:\n%s", screen)
			}
			if try.name == "no colour" {
				painted := ui.tmux("capture-pane", "-p", "-e")
				if found := regexp.MustCompile(`\x1b\[[0-9;]*\b(3[0-8]|4[0-8]|9[0-7]|10[0-7])[;m]`).FindString(
					painted); found != "" {
					t.Errorf("without colours the terminal was sent %q", found)
				}
				if !regexp.MustCompile(`\x1b\[(0;)?7m`).MatchString(painted) {
					t.Error("the row under the cursor does not stand out")
				}
			}
			ui.tmux("resize-window", "-x", "100", "-y", "30")
			ui.shows("STATUS", "Runs (1")
			ui.tmux("resize-window", "-x", "40", "-y", "10")
			ui.shows("too small")
			ui.tmux("resize-window", "-x", "80", "-y", "24")
			ui.shows("STATUS", "Runs (1")
			ui.keys("q")
			ui.shows("exit code 0")
		})
	}
}

func TestTheTerminalUIBeginsWithTheRunsThatAFilterChooses(t *testing.T) {
	ui := openPane(t, 100, 24, nil, "tui", "--demo", "--view", "runs", "--filter", "status:failed type:order")
	ui.row("failed", "order", "order-70344")
	if screen := ui.screen(); strings.Contains(screen, "completed") {
		t.Errorf("runs that the filter does not choose are shown:\n%s", screen)
	}
	ui.keys("q", "q") // the first clears the filter
	ui.shows("exit code 0")
}

func TestAnUnknownViewIsAUsageError(t *testing.T) {
	ui := openPane(t, 100, 24, nil, "tui", "--demo", "--view", "rums")
	ui.shows(`there is no command "rums"; did you mean runs?`, "exit code 64")
}

func TestKagziAloneStartsAServerAndOpensAFileWithoutOne(t *testing.T) {
	address, data := e2e.FreeAddress(t), filepath.Join(t.TempDir(), "data")
	ui := openPane(t, 100, 30, []string{"KAGZI_LISTEN=" + address, "KAGZI_ADDRESS=" + address,
		"KAGZI_DATA_DIR=" + data})
	ui.shows("server in this process", "live")
	ran(t, address, "workflow", "start", "lonely", "--external-id", "kept")
	ui.keys("2")
	ui.row("pending", "lonely", "kept")
	ui.keys("q")
	ui.shows("exit code 0")
	if code, _, _ := finish(t, "workflow", "list", "--address", address); code != 7 {
		t.Errorf("after the UI was closed a list ends with %d, want 7: no server", code)
	}

	file := filepath.Join(data, "kagzi.db")
	look := openPane(t, 100, 30, nil, "tui", "--db", file, "--view", "runs")
	look.shows("kagzi.db", "read-only")
	look.row("pending", "lonely", "kept")
	_, beside, _ := startServer(t, data)
	ran(t, beside, "workflow", "start", "lonely", "--external-id", "seen-beside")
	look.row("pending", "lonely", "seen-beside")
	look.keys("x")
	look.keys("?")
	look.shows("Help")
	if strings.Contains(look.screen(), ":cancel") {
		t.Errorf("a file opened read-only offers to cancel:\n%s", look.screen())
	}
	look.keys("q", "q")
	look.shows("exit code 0")
}
