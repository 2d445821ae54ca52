package daemon

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/daemon/internal/output"
)

// runCopy runs db copy with these arguments on existing databases.
func runCopy(ctx context.Context, b Backends, args ...string) (out, messages string, err error) {
	b.Status = func(context.Context, string) (engine.SchemaStatus, error) { return engine.SchemaStatus{}, nil }
	cmd := newDatabaseCopy(b)
	var o, m bytes.Buffer
	cmd.SetOut(&o)
	cmd.SetErr(&m)
	cmd.SetArgs(args)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err = cmd.ExecuteContext(ctx)
	return o.String(), m.String(), err
}

func TestCopySaysWhatArrivedAndWhatToDoNext(t *testing.T) {
	var asked engine.CopyParams
	b := Backends{Copy: func(_ context.Context, p engine.CopyParams) (engine.CopyReport, error) {
		asked = p
		p.Progress(engine.CopyProgress{Table: "runs", Rows: 5, Total: 9})
		p.Progress(engine.CopyProgress{Verifying: true, Table: "ru\x1b[2Jns", Rows: 9, Total: 9})
		return engine.CopyReport{Tables: []engine.CopyCount{{Table: "fires"}, {Table: "runs", Rows: 9}}}, nil
	}}
	out, messages, err := runCopy(t.Context(), b, "--from", "sqlite:a.db", "--to", "postgres://me:secret@host/kagzi")
	if err != nil {
		t.Fatal(err)
	}
	if asked.From != "sqlite:a.db" || asked.To != "postgres://me:secret@host/kagzi" || asked.Snapshot ||
		time.Since(asked.Now) > time.Minute {
		t.Errorf("asked for %+v", asked)
	}
	for _, want := range []string{"9  runs", "9  rows in total, equal in both databases",
		"kagzi server --db postgres://me@host/kagzi"} {
		if !strings.Contains(out, want) {
			t.Errorf("output lacks %q:\n%s", want, out)
		}
	}
	if strings.Contains(out, "secret") || strings.Contains(out, "fires") {
		t.Errorf("output tells too much:\n%s", out)
	}
	if !strings.Contains(messages, "reading both databases back") || strings.Contains(messages, "\x1b") {
		t.Errorf("messages = %q, want what is going on, without controls", messages)
	}
}

func TestACopyReportsHowMuchItHasCompared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := Backends{Copy: func(_ context.Context, p engine.CopyParams) (engine.CopyReport, error) {
			for _, progress := range []engine.CopyProgress{
				{Verifying: true, Total: 9}, {Verifying: true, Table: "fires", Total: 9},
				{Verifying: true, Table: "ru\x1b[2Jns", Rows: 5, Total: 9},
			} {
				p.Progress(progress)
				time.Sleep(2 * copyInterval)
			}
			return engine.CopyReport{}, nil
		}}
		_, messages, err := runCopy(t.Context(), b, "--from", "sqlite:a.db", "--to", "sqlite:b.db")
		if want := "all rows copied; reading both databases back\ncompared 5 of 9 rows (" +
			output.Plain("ru\x1b[2Jns") + ")\n"; err != nil || messages != want {
			t.Errorf("messages = %q (%v), want %q", messages, err, want)
		}
	})
}

func TestAnInterruptedCopyTellsHowToContinue(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	b := Backends{Copy: func(context.Context, engine.CopyParams) (engine.CopyReport, error) {
		cancel()
		return engine.CopyReport{}, errors.New("the database does not answer")
	}}
	_, messages, err := runCopy(ctx, b, "--from", "sqlite:a.db", "--to", "sqlite:b.db")
	if !errors.Is(err, context.Canceled) || !strings.Contains(messages, "the same command") ||
		!strings.Contains(messages, "--release") {
		t.Errorf("error = %v, messages = %q, want an interruption and both ways on", err, messages)
	}
}

func TestACompleteCopySaysSo(t *testing.T) {
	b := Backends{Copy: func(context.Context, engine.CopyParams) (engine.CopyReport, error) {
		return engine.CopyReport{Before: true}, nil
	}}
	out, _, err := runCopy(t.Context(), b, "--from", "sqlite:a.db", "--to", "sqlite:b.db")
	if err != nil || !strings.Contains(out, "already complete") ||
		!strings.Contains(out, "kagzi server --db sqlite:b.db") {
		t.Errorf("output = %q (%v)", out, err)
	}
}

func TestACopyKnowsTheDatabaseOfTheSettingsByAWord(t *testing.T) {
	own := "sqlite:" + filepath.Join(t.TempDir(), "own.db")
	t.Setenv("KAGZI_DB_URL", own)
	var asked []string
	b := Backends{
		Copy: func(_ context.Context, p engine.CopyParams) (engine.CopyReport, error) {
			asked = append(asked, p.From, p.To)
			return engine.CopyReport{}, nil
		},
		Release: func(_ context.Context, url string, _ bool) error {
			asked = append(asked, url)
			return nil
		},
	}
	for _, args := range [][]string{{"--from", "default", "--to", "sqlite:b.db"},
		{"--from", "sqlite:b.db", "--to", "default"}, {"--release", "default"}} {
		if _, _, err := runCopy(t.Context(), b, args...); err != nil {
			t.Errorf("%v: %v", args, err)
		}
	}
	if want := []string{own, "sqlite:b.db", "sqlite:b.db", own, own}; !slices.Equal(asked, want) {
		t.Errorf("asked about %q, want %q", asked, want)
	}
}

func TestReleaseIsAskedForByItself(t *testing.T) {
	var asked []any
	b := Backends{Release: func(_ context.Context, url string, force bool) error {
		asked = append(asked, url, force)
		return nil
	}}
	out, _, err := runCopy(t.Context(), b, "--release", "postgres://me:secret@host/kagzi", "--force")
	if err != nil || len(asked) != 2 || asked[0] != "postgres://me:secret@host/kagzi" || asked[1] != true ||
		strings.Contains(out, "secret") {
		t.Errorf("asked for %v, said %q (%v)", asked, out, err)
	}
	for _, args := range [][]string{
		{}, {"--from", "sqlite:a.db"}, {"--to", "sqlite:a.db"}, {"--release", "sqlite:a.db", "--from", "sqlite:a.db"},
		{"--release", "sqlite:a.db", "--snapshot"}, {"--from", "sqlite:a.db", "--to", "sqlite:b.db", "--force"},
	} {
		var coded interface{ ExitCode() int }
		if _, _, err := runCopy(t.Context(), b, args...); !errors.As(err, &coded) || coded.ExitCode() != exitUsage {
			t.Errorf("%v: %v, want a usage error", args, err)
		}
	}
}
