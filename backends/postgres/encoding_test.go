package postgres

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kagzi/kagzi/backends/postgres/pgtest"
	"github.com/kagzi/kagzi/engine"
)

func TestANewDatabaseWithoutUTF8IsRefused(t *testing.T) {
	url, _ := pgtest.OwnDatabase(t, "encoding 'LATIN1' lc_collate 'C' lc_ctype 'C'")
	for name, err := range map[string]error{"Migrate": Migrate(t.Context(), url),
		"Open": second(Open(t.Context(), url, engine.OpenOptions{}))} {
		if err == nil || !strings.Contains(err.Error(), "has the encoding LATIN1") ||
			!strings.Contains(err.Error(), "createdb --encoding UTF8 --template template0 ") {
			t.Errorf("%s: %v, want a refusal with the command to make a right one", name, err)
		}
	}
}

func second[A any](_ A, err error) error { return err }

// oldStore opens a store on an old database with another encoding, and returns what it logs.
func oldStore(t *testing.T, encoding, clientEncoding string) (s *Store, log string) {
	t.Helper()
	url, admin := pgtest.OwnDatabase(t, "encoding '"+encoding+"' lc_collate 'C' lc_ctype 'C'")
	role := roleOf(t, url)
	execute(t, admin, "grant create on schema public to "+role,
		"alter role "+role+" set client_encoding = '"+clientEncoding+"'")
	text := createMigrationsSQL + ";\n"
	for _, m := range migrationsOf(t) {
		text += m.SQL + ";\n"
	}
	conn := adminConnection(t, url)
	if _, err := conn.PgConn().Exec(t.Context(), text).ReadAll(); err != nil {
		t.Fatal(err)
	}
	for _, m := range migrationsOf(t) {
		if _, err := conn.Exec(t.Context(), insertMigrationSQL,
			args{"number": m.Number, "name": m.Name, "checksum": checksum(m)}); err != nil {
			t.Fatal(err)
		}
	}
	var buffer bytes.Buffer
	s, err := Open(t.Context(), url, engine.OpenOptions{Log: slog.New(slog.NewTextHandler(&buffer, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	status, err := Status(t.Context(), url)
	if err != nil || len(status.Warnings) != 1 || !strings.Contains(status.Warnings[0], encoding) {
		t.Errorf("Status = %+v (%v), want a warning of the encoding", status, err)
	}
	return s, buffer.String()
}

func TestAnEncodingThatCannotHoldATextFailsTheWrite(t *testing.T) {
	for _, c := range []struct{ encoding, client, good, bad, named string }{
		{"LATIN1", "UTF8", "é", "世", "the character U+4E16"},
		{"EUC_JP", "EUC_JP", "e", "世", "a text"},
	} {
		t.Run(c.encoding, func(t *testing.T) {
			s, log := oldStore(t, c.encoding, c.client)
			d, err := s.Describe(t.Context())
			if err != nil || len(d.Warnings) != 1 || !strings.Contains(d.Warnings[0], c.encoding) ||
				!strings.Contains(log, c.encoding) {
				t.Errorf("log %q, description %+v (%v); want a warning of the encoding in both", log, d, err)
			}
			register(t, s, "w1")
			start(t, s, 8)
			claimed, err := s.Claim(t.Context(), claimParams(s, "w1", 8))
			if err != nil || len(claimed.Tasks) != 8 {
				t.Fatalf("Claim: %d tasks, %v", len(claimed.Tasks), err)
			}
			refused := func(what string, err error) {
				t.Helper()
				if engine.KindOf(err) != engine.KindInvalid || !strings.Contains(err.Error(), c.encoding) ||
					!strings.Contains(err.Error(), c.named) {
					t.Errorf("%s: %v, want a refusal that names the encoding and %s", what, err, c.named)
				}
			}
			var group sync.WaitGroup // the refused call's group holds other calls too
			for i, task := range claimed.Tasks {
				group.Go(func() {
					now := s.Now()
					output := engine.Payload{Data: []byte("世"), Metadata: map[string]string{"name": c.good}}
					if i%2 == 0 {
						output.Metadata["name"] = c.bad
					}
					_, err := s.CompleteStep(t.Context(), engine.CompleteStepParams{Lease: task.Lease,
						Step: engine.StepRef{Name: "a"}, ID: engine.NewID(now), Output: output, Now: now})
					if i%2 == 0 {
						refused("CompleteStep", err)
					} else if err != nil {
						t.Errorf("CompleteStep with what the encoding holds: %v", err)
					}
				})
			}
			group.Wait()
			now, lease := s.Now(), claimed.Tasks[0].Lease
			failing := func(text string) (_, _ error) {
				f := engine.Failure{Message: text, NonRetryable: true}
				_, step := s.FailStep(t.Context(), engine.FailStepParams{Lease: lease, Step: engine.StepRef{Name: "b"},
					ID: engine.NewID(now), Failure: f, Now: now})
				_, run := s.FailRun(t.Context(), engine.FailRunParams{Lease: lease, Failure: f, Now: now})
				return step, run
			}
			step, run := failing(c.bad)
			refused("FailStep", step)
			refused("FailRun", run)
			if step, run := failing(c.good); step != nil || run != nil {
				t.Errorf("FailStep and FailRun with what the encoding holds: %v, %v", step, run)
			}
			if err := s.Health(t.Context()); err != nil {
				t.Errorf("Health: %v, want it well", err)
			}
		})
	}
}

func TestErrorsOfTheDataAreToldFromOthers(t *testing.T) {
	for code, want := range map[string]engine.Kind{
		codeNoEquivalent: engine.KindInvalid, codeNoCharacter: engine.KindInvalid, codeOutOfRange: engine.KindInvalid,
		codeCheck: engine.KindInvalid, codeTooLong: engine.KindTooLarge, codeLimit: engine.KindTooLarge,
		codeOvertaken: engine.KindInternal, codeUnique: engine.KindInternal, "22999": engine.KindInternal,
	} {
		err := &pgconn.PgError{Code: code, Message: `secret "value"`}
		if got := translate("write", err); engine.KindOf(got) != want || strings.Contains(got.Error(), "secret") {
			t.Errorf("SQLSTATE %s is %v of kind %d, want kind %d", code, got, engine.KindOf(got), want)
		}
		if !alone(err) {
			t.Errorf("SQLSTATE %s fails the calls beside", code)
		}
	}
}
