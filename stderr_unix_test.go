//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// startServerWith starts a server that writes its log to stderr, and returns its addresses.
func startServerWith(t *testing.T, stderr *os.File) (cmd *exec.Cmd, calls, health string) {
	t.Helper()
	cmd = program(context.Background(), t, "server", "--data-dir", filepath.Join(t.TempDir(), "data"), "--listen",
		"127.0.0.1:0", "--http", "127.0.0.1:0", "--config", "off")
	out := filepath.Join(t.TempDir(), "stdout")
	stdout, err := os.Create(out)
	if err != nil {
		t.Fatal(err)
	}
	defer stdout.Close()
	cmd.Stdout, cmd.Stderr = stdout, stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill() // it is over already, or is now
			_ = cmd.Wait()
		}
	})
	for limit := time.Now().Add(30 * time.Second); time.Now().Before(limit); time.Sleep(20 * time.Millisecond) {
		text, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		if found := regexp.MustCompile(`(?s)http://(\S+)/metrics\n.*--address (\S+)\n`).FindSubmatch(
			text); found != nil {
			return cmd, string(found[2]), string(found[1])
		}
	}
	t.Fatal("the server is not ready within 30 s")
	return nil, "", ""
}

// stopped waits until a process ends after SIGTERM, and wants exit code 0.
func stopped(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("the server ended with %v, want exit code 0", err)
		}
	case <-time.After(20 * time.Second):
		_ = cmd.Process.Kill() // it is over already, or is now
		<-ended
		t.Fatal("the server did not end within 20 s of SIGTERM")
	}
}

// serves fails the test unless the server answers calls, also after it had to log.
func serves(t *testing.T, cmd *exec.Cmd, calls, health string) {
	t.Helper()
	for range 3 {
		if err := cmd.Process.Signal(syscall.SIGHUP); err != nil { // logs "settings reloaded"
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
	}
	if code, _, errs := finish(t, "workflow", "start", "t", "--address", calls, "--timeout", "10s"); code != 0 {
		t.Errorf("workflow start ends with %d: %s", code, errs)
	}
	answer, err := http.Get("http://" + health + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Errorf("readyz = %s", answer.Status)
	}
}

func TestServerContinuesWhenStderrIsClosed(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd, calls, health := startServerWith(t, w)
	w.Close()
	r.Close()
	serves(t, cmd, calls, health)
	answer, err := http.Get("http://" + health + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(answer.Body)
	answer.Body.Close()
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`(?m)^kagzi_log_lines_dropped_total [1-9]`).Match(text) {
		t.Error("the metrics do not count the dropped lines")
	}
	stopped(t, cmd)
}

// fullPipe returns a pipe that takes not one byte more.
func fullPipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	var fds [2]int
	if err := syscall.Pipe(fds[:]); err != nil {
		t.Fatal(err)
	}
	if err := syscall.SetNonblock(fds[1], true); err != nil {
		t.Fatal(err)
	}
	for chunk := bytes.Repeat([]byte("."), 4096); len(chunk) > 0; {
		if _, err := syscall.Write(fds[1], chunk); errors.Is(err, syscall.EAGAIN) {
			chunk = chunk[:len(chunk)/2]
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.SetNonblock(fds[1], false); err != nil {
		t.Fatal(err)
	}
	r, w = os.NewFile(uintptr(fds[0]), "r"), os.NewFile(uintptr(fds[1]), "w")
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

func TestServerContinuesWhenStderrIsNotRead(t *testing.T) {
	_, w := fullPipe(t)
	cmd, calls, health := startServerWith(t, w)
	serves(t, cmd, calls, health)
	stopped(t, cmd)
}

func TestServerThatCannotStartEndsWhenStderrIsNotRead(t *testing.T) {
	_, w := fullPipe(t)
	cmd := program(context.Background(), t, "server", "--listen", "0.0.0.0:0", "--data-dir",
		filepath.Join(t.TempDir(), "data"), "--config", "off")
	cmd.Stderr = w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case <-ended:
		if code := cmd.ProcessState.ExitCode(); code != 78 {
			t.Errorf("exit code %d, want 78", code)
		}
	case <-time.After(20 * time.Second):
		_ = cmd.Process.Kill() // it is over already, or is now
		<-ended
		t.Fatal("the server did not end")
	}
}

func TestServerWritesItsLogOnceStderrIsRead(t *testing.T) {
	r, w := fullPipe(t)
	cmd, _, _ := startServerWith(t, w)
	w.Close()
	read := make(chan string, 1)
	go func() {
		text, _ := io.ReadAll(r) // what was read counts
		read <- string(text)
	}()
	stopped(t, cmd)
	if text := strings.TrimLeft(<-read, "."); !strings.Contains(text, "msg=stopped") {
		t.Errorf("the log %q does not end as usual", text)
	}
}
