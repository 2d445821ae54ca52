package installer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestTheServerRunsUntilItsContextEnds(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	var args []string
	err := runOptions{name: "kagzi"}.run(ctx, []string{"--listen", ":0"},
		Options{Run: func(ctx context.Context, got []string) error {
			args = got
			stop()
			<-ctx.Done()
			return nil
		}}, os.Getenv, nil)
	if err != nil || strings.Join(args, " ") != "--listen :0" {
		t.Errorf("run = %v with %q, want nil with the server's arguments", err, args)
	}
}

func TestHowTheServerEndedIsHowTheProcessEnds(t *testing.T) {
	want := refuse(70, "the disk is gone")
	err := runOptions{name: "kagzi"}.run(t.Context(), nil,
		Options{Run: func(context.Context, []string) error { return want }}, os.Getenv, nil)
	if !errors.Is(err, want) || codeOf(err) != 70 {
		t.Errorf("run = %v with code %d, want %v with 70", err, codeOf(err), want)
	}
}

func TestTheDatabasesURLComesFromAFileOrACredential(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := write(databaseURL, " postgres://me:secret@host/db\n")
	for _, try := range []struct {
		r    runOptions
		code int // 0: none
	}{
		{runOptions{urlFile: good}, 0},
		{runOptions{urlFile: write("bom", "\xef\xbb\xbfpostgres://me:secret@host/db\r\n")}, 0},
		{runOptions{credential: databaseURL}, 0},
		{runOptions{credential: "other"}, 1},
		{runOptions{urlFile: write("empty", "\n")}, exitUsage},
		{runOptions{urlFile: write("two", "a\nb")}, exitUsage},
	} {
		set := map[string]string{}
		err := try.r.databaseURL(func(string) string { return dir }, func(k, v string) error { set[k] = v; return nil })
		switch {
		case try.code != 0:
			wantCode(t, err, try.code)
		case err != nil || set["KAGZI_DB"] != "postgres://me:secret@host/db":
			t.Errorf("%+v set %q, %v, want the URL", try.r, set, err)
		}
	}
	wantCode(t, runOptions{credential: "x"}.databaseURL(func(string) string { return "" }, nil), exitUsage, "systemd")
}

// logDir returns a log directory for a test. It resets the crash output at the end, because Windows
// cannot remove an open file.
func logDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Cleanup(func() { _ = debug.SetCrashOutput(nil, debug.CrashOptions{}) })
	return dir
}

func TestWhatIsPrintedGoesToTheLogDirectory(t *testing.T) {
	dir := logDir(t)
	err := runOptions{name: "kagzi", logDir: dir}.run(
		t.Context(), nil, Options{Run: func(context.Context, []string) error {
			fmt.Fprintln(os.Stdout, "to stdout")
			fmt.Fprintln(os.Stderr, "to stderr")
			return nil
		}}, os.Getenv, nil)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, logName)); err != nil || string(text) != "to stdout\nto stderr\n" {
		t.Errorf("log = %q, %v, want both lines", text, err)
	}
}

func TestWhyTheServerEndedIsInItsLogBeforeTheProcessEnds(t *testing.T) {
	dir := logDir(t)
	stderr := os.Stderr
	err := runOptions{name: "kagzi", logDir: dir}.run(
		t.Context(), nil, Options{Run: func(context.Context, []string) error {
			fmt.Fprintln(os.Stdout, "starting")
			return refuse(exitUsage, "the port is taken\x1b[2J")
		}}, os.Getenv, nil)
	wantCode(t, err, exitUsage, "port")
	if text, err := os.ReadFile(filepath.Join(dir, logName)); err != nil ||
		!strings.HasPrefix(string(text), "starting\nerror: the port is taken") ||
		strings.Contains(string(text), "\x1b") {
		t.Errorf("log = %q, %v, want the error as well, without what moves the cursor", text, err)
	}
	if os.Stderr != stderr {
		t.Error("what is printed still goes to the log")
	}
}

func TestAMissingURLOfTheDatabaseIsInTheLog(t *testing.T) {
	dir := logDir(t)
	missing := filepath.Join(dir, "db.url")
	err := runOptions{name: "kagzi", logDir: dir, urlFile: missing}.run(
		t.Context(), nil, Options{Run: func(context.Context, []string) error {
			t.Error("the server was run without the database that it is to have")
			return nil
		}}, os.Getenv, nil)
	wantCode(t, err, 1, missing)
	if text, err := os.ReadFile(filepath.Join(dir, logName)); err != nil ||
		!strings.HasPrefix(string(text), "error: read the database URL: open "+missing) {
		t.Errorf("log = %q, %v, want why the service does not run", text, err)
	}
}

func TestALogTakesALimitedSpace(t *testing.T) {
	l, err := openLog(logDir(t))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	l.size, l.limit = 20, 20
	for i := range 20 {
		if _, err := fmt.Fprintf(l, "line %02d..\n", i); err != nil { // ten bytes
			t.Fatal(err)
		}
	}
	names, err := filepath.Glob(l.path + "*")
	if err != nil || len(names) != logsKept+1 {
		t.Fatalf("files = %q, %v, want %d", names, err, logsKept+1)
	}
	for name, want := range map[string]string{
		l.path: "line 18..\nline 19..\n", l.numbered(logsKept): "line 08..\nline 09..\n"} {
		if text, err := os.ReadFile(name); err != nil || string(text) != want {
			t.Errorf("%s = %q, %v, want %q", filepath.Base(name), text, err, want)
		}
	}
}

func TestALogThatCannotRotateKeepsItsFile(t *testing.T) {
	l, err := openLog(logDir(t))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	l.size, l.limit = 20, 20
	if err := os.MkdirAll(filepath.Join(l.numbered(logsKept), "in the way"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(l.numbered(logsKept-1), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	want := ""
	for i := range 9 {
		line := fmt.Sprintf("line %02d..\n", i)
		want += line
		if _, err := l.Write([]byte(line)); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(l.path); err != nil || string(text) != want {
		t.Errorf("log = %q, %v, want all lines", text, err)
	}
}

func TestATailShowsTheLastLinesAndFollowsIntoTheNextFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := openLog(logDir(t))
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		write := func(text string) {
			if _, err := l.Write([]byte(text)); err != nil {
				t.Error(err)
			}
		}
		write("one\ntwo\nthree \x1b[31m\nfo")
		ctx, stop := context.WithCancel(t.Context())
		var got bytes.Buffer
		var group sync.WaitGroup
		group.Go(func() {
			if err := tail(ctx, &got, l.path, 2, true); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(tailInterval / 2) // the bubble's clock
		write("ur\nfive\n")
		if err := l.rotate(); err != nil {
			t.Fatal(err)
		}
		write("six\n")
		time.Sleep(tailInterval)
		write("seven\n")
		time.Sleep(tailInterval)
		stop()
		group.Wait()
		if want := "two\nthree \\x1b[31m\nfour\nfive\nsix\nseven\n"; got.String() != want {
			t.Errorf("tail = %q, want %q", got.String(), want)
		}
		if first, err := os.ReadFile(l.numbered(1)); err != nil || !strings.HasSuffix(string(first), "five\n") {
			t.Errorf("the file before, which was followed, = %q, %v, want what was written until the next began",
				first, err)
		}
	})
	var none bytes.Buffer
	if err := tail(t.Context(), &none, filepath.Join(t.TempDir(), logName), 5, false); err != nil || none.Len() > 0 {
		t.Errorf("tail of a log that is not there = %q, %v, want nothing", none.String(), err)
	}
}

func TestAStopEndsTheServerAndWaitsForIt(t *testing.T) {
	ended := false
	p := newProgram(t.Context(), func(ctx context.Context) error {
		<-ctx.Done()
		ended = true
		return errTest
	})
	p.failed = func(error) { t.Error("a stop was taken for a failure") }
	if err := p.Start(nil); err != nil {
		t.Fatal(err)
	}
	if err := p.Stop(nil); !errors.Is(err, errTest) || !ended {
		t.Errorf("Stop = %v, ended: %v, want how the server ended", err, ended)
	}
}

func TestAServerThatEndsByItselfIsAFailure(t *testing.T) {
	for _, end := range []error{errTest, nil} { // also without an error, because nobody asked it to stop
		p := newProgram(t.Context(), func(context.Context) error { return end })
		failures := make(chan error, 1)
		p.failed = func(err error) { failures <- err }
		if err := p.Start(nil); err != nil {
			t.Fatal(err)
		}
		if err := <-failures; err == nil || end != nil && !errors.Is(err, end) {
			t.Errorf("failure = %v, want one for %v", err, end)
		}
	}
}
