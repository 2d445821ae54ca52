package main

import (
	"bufio"
	"bytes"
	"context"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// shown is a page without a server.
type shown struct {
	cmd     *exec.Cmd
	address string
	ended   chan error
}

// startShown runs `kagzi web` until it prints an address.
func startShown(t *testing.T, args ...string) *shown {
	t.Helper()
	cmd := program(context.Background(), t, append([]string{"web"}, args...)...)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &shown{cmd: cmd, ended: make(chan error, 1)}
	lines := bufio.NewScanner(stdout)
	lines.Scan()
	s.address = lines.Text()
	go func() { s.ended <- cmd.Wait() }()
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // it may have ended
	if !strings.HasPrefix(s.address, "http://127.0.0.1:") {
		t.Fatalf("kagzi web %v printed %q, and says %s", args, s.address, &stderr)
	}
	return s
}

// interrupted ends it as a person does.
func (s *shown) interrupted(t *testing.T) {
	t.Helper()
	if err := s.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := <-s.ended; err != nil {
		t.Errorf("after Ctrl-C it ended with %v", err)
	}
}

// site is the address without its path.
func (s *shown) site() string {
	u, _ := url.Parse(s.address) // it was checked
	return "http://" + u.Host
}

func TestPageOfADatabaseFileNeedsNoServer(t *testing.T) {
	a, _ := startSite(t)
	run := a.begin(nil)
	code, exported, errs := finish(t, "workflow", "export", run, "--address", a.grpc)
	if code != 0 {
		t.Fatalf("export: %s", errs)
	}
	capsule := filepath.Join(t.TempDir(), "run.zip")
	if err := os.WriteFile(capsule, []byte(exported), 0o600); err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "copy.db")
	if code, _, errs := finish(t, "db", "backup", copied, "--address", a.grpc); code != 0 {
		t.Fatalf("backup: %s", errs)
	}
	a.stop()
	for _, c := range []struct {
		args []string
		path string
	}{{[]string{"--db", copied}, "/"}, {[]string{capsule}, "/n/default/runs/"}} {
		s := startShown(t, c.args...)
		p := profile(t, s.site())
		p.expect("403")
		p.expect("favicon") // asked for by the browser itself, for the refusal
		p.open("/")
		p.shows("open the address that kagzi web printed")
		p.do("open the address", chromedp.Navigate(s.address))
		p.shows("read-only")
		if at := value[string](p, "location.href"); strings.Contains(at, "token") || !strings.HasPrefix(at, s.site()+c.path) {
			t.Errorf("the page is at %s, want a path without the token", at)
		}
		p.open("/n/default/runs")
		p.shows("order")
		p.picture("shown" + filepath.Ext(c.args[len(c.args)-1]))
		if n := value[int](p, `document.querySelectorAll("form[method=post], input[type=checkbox]").length`); n > 0 {
			t.Errorf("%v: a page of a copy offers %d actions", c.args, n)
		}
		p.expect("/live") // the page asks for it again
		s.interrupted(t)
	}
}

func TestShowOpensThePageOfARun(t *testing.T) {
	a := startAgents(t, "--http-base-path", "/kagzi")
	run := a.begin(nil)
	code, out, errs := finish(t, "workflow", "show", run, "--web", "--address", a.grpc)
	if want := "http://" + a.http + "/kagzi" + runPage(run) + "\n"; code != 0 || out != want {
		t.Errorf("it printed %q (%d, %s), want %s", out, code, errs, want)
	}
	if code, out, errs = finish(t, "web", "--address", a.grpc); code != 0 || out != "http://"+a.http+"/kagzi/\n" {
		t.Errorf("kagzi web printed %q (%d, %s)", out, code, errs)
	}
	p := profile(t, "http://"+a.http)
	p.open("/kagzi" + runPage(run))
	p.shows("order", "pending")
	p.click(`nav a[href="/kagzi/n/default/runs"]`)
	p.at("/kagzi/n/default/runs")

	off := startAgents(t, "--web", "off")
	if code, _, errs := finish(t, "web", "--address", off.grpc); code == 0 || !strings.Contains(errs, "--web on") {
		t.Errorf("without a page: %d %s, want how to have one", code, errs)
	}
}
