package sqlite

import (
	"path/filepath"
	"testing"

	"github.com/kagzi/kagzi/engine"
)

func TestARequestAnsweredWithAnEarlierRunIsKnownAfterTheStoreIsOpenedAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kagzi.db")
	s := openAt(t, path)
	first := startOf("t", s)
	first.ExternalID = "order-1"
	second := startOf("t", s)
	second.ExternalID, second.RequestID = "order-1", "request-2"
	answers, err := s.StartRuns(t.Context(), []engine.StartRun{first, second})
	if err != nil || answers[1].RunID != first.ID {
		t.Fatalf("answers = %+v (%v), want the first run twice", answers, err)
	}
	if _, err := s.TerminateRun(t.Context(), engine.EndRunParams{Namespace: "default", RunID: first.ID, AuditID: engine.NewID(s.Now()), Now: s.Now()}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	second.ID = engine.NewID(s.Now())
	answers, err = openAt(t, path).StartRuns(t.Context(), []engine.StartRun{second})
	if err != nil || answers[0].RunID != first.ID || !answers[0].Repeated {
		t.Fatalf("answers = %+v (%v), want the first run, repeated", answers, err)
	}
}
