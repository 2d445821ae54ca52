package daemon

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/kagzi/kagzi/engine/daemon/internal/output"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// reloadable returns a server that reloads its settings with read when the test sends a signal;
// lines is its log.
func reloadable(t *testing.T, c Config, lost func() bool, read func() (Config, []string, error)) (s *served,
	hear chan<- os.Signal, level slog.Leveler, lines <-chan string) {
	t.Helper()
	heard, log := make(chan os.Signal), make(chan string, 100)
	ctx, stop := context.WithCancel(context.Background())
	r := &reloading{heard: heard, lost: lost, stop: stop, read: read, level: &slog.LevelVar{}}
	r.level.Set(c.LogLevel)
	c.Sources = map[string]string{} // as after reading settings
	c.Log = output.NewLog(toChannel(log), r.level, "text")
	s = &served{stop: stop, done: make(chan error, 1)}
	ready, ended := make(chan Ready, 1), make(chan struct{})
	go func() {
		defer close(ended)
		s.done <- run(ctx, c, embedded(nil), r, func(r Ready) { ready <- r })
	}()
	t.Cleanup(func() { stop(); <-ended })
	select {
	case s.Ready = <-ready:
	case err := <-s.done:
		t.Fatalf("the server ended before it was ready: %v", err)
	}
	return s, heard, r.level, log
}

type toChannel chan<- string

func (c toChannel) Write(line []byte) (int, error) {
	select {
	case c <- string(line):
	default: // the test needs no more
	}
	return len(line), nil
}

// settingOf returns a setting from the server's info.
func settingOf(t *testing.T, s *served, name string) (value, source string) {
	t.Helper()
	conn, err := grpc.NewClient(s.Client, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	info, err := kagziv1.NewAdminServiceClient(conn).GetServerInfo(t.Context(), &kagziv1.GetServerInfoRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range info.Facts {
		if f.Section == "settings" && f.Name == name {
			return f.Value, f.Source
		}
	}
	t.Fatalf("the server does not tell of %s", name)
	return "", ""
}

func TestReloadAppliesTheLogLevelAndNamesOtherChanges(t *testing.T) {
	c := testConfig(t)
	c.LogLevel = slog.LevelInfo
	next := c
	next.LogLevel, next.Sources = slog.LevelDebug, map[string]string{"log-level": "file k.toml:2"}
	next.WorkerLease, next.DB = 2*c.WorkerLease, "postgres://kagzi:hunter2@db/kagzi"
	s, hear, level, lines := reloadable(t, c, func() bool { return false }, func() (Config, []string, error) {
		return next, []string{"an old name"}, nil
	})
	hear <- os.Interrupt // any signal
	var got []string
	for len(got) < 3 {
		if line := <-lines; !strings.Contains(line, "level=INFO msg=stop") {
			got = append(got, line)
		}
	}
	text := strings.Join(got, "")
	for _, want := range []string{"an old name", "settings reloaded", "log_level=DEBUG", "level=WARN",
		`settings="db, worker-lease"`} {
		if !strings.Contains(text, want) {
			t.Errorf("log = %s, want %s", text, want)
		}
	}
	if strings.Contains(text, "hunter2") {
		t.Errorf("the log holds a password: %s", text)
	}
	if level.Level() != slog.LevelDebug {
		t.Errorf("the log's level = %s, want DEBUG", level.Level())
	}
	if value, source := settingOf(t, s, "log-level"); value != "debug" || source != "file k.toml:2" {
		t.Errorf("log-level = %s from %q, want debug from the file", value, source)
	}
	if value, _ := settingOf(t, s, "worker-lease"); value != brief(c.WorkerLease) {
		t.Errorf("worker-lease = %s, want %s as before", value, brief(c.WorkerLease))
	}
}

func TestReloadKeepsTheSettingsIfTheNewOnesAreWrong(t *testing.T) {
	c := testConfig(t)
	s, hear, level, lines := reloadable(t, c, func() bool { return false }, func() (Config, []string, error) {
		return Config{LogLevel: slog.LevelError}, nil, errors.New("kagzi.toml:3: nonsense")
	})
	hear <- os.Interrupt
	if line := <-lines; !strings.Contains(line, "level=WARN") || !strings.Contains(line, "kagzi.toml:3: nonsense") {
		t.Errorf("log = %s, want a warning that names the line", line)
	}
	if value, _ := settingOf(t, s, "log-level"); value != "info" || level.Level() != slog.LevelInfo {
		t.Errorf("log-level = %s, want info as before", value)
	}
}

func TestAServerStopsGracefullyWhenItsTerminalCloses(t *testing.T) {
	s, hear, _, _ := reloadable(t, testConfig(t), func() bool { return true }, func() (Config, []string, error) {
		t.Error("the settings were read")
		return Config{}, nil, nil
	})
	hear <- os.Interrupt
	if err := <-s.done; err != nil {
		t.Errorf("Run = %v, want nil after a stop", err)
	}
}
