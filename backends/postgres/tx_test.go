package postgres

import (
	"errors"
	"testing"

	"github.com/kagzi/kagzi/engine"
)

func TestLargePayloadsAreSentAFewAtATime(t *testing.T) {
	s := open(t).(*Store)
	first := newStart(s)
	if _, err := s.StartRuns(t.Context(), engine.StartRunsParams{Runs: []engine.StartRun{first}}); err != nil {
		t.Fatal(err)
	}
	run := first.ID
	undone := errors.New("undone")
	large := engine.Payload{Data: make([]byte, engine.MaxPayload)}
	for name, insert := range map[string]func(*tx, int64) error{
		"steps": func(x *tx, n int64) error {
			return x.InsertSteps([]engine.Step{{
				ID: engine.NewID(s.Now()), RunID: run, Name: engine.NewID(s.Now()).String(), Attempt: 1, Sequence: n,
				Output: large, CreatedAt: s.Now(),
			}})
		},
		"signals": func(x *tx, n int64) error {
			return x.InsertSignals([]engine.Signal{
				{RunID: run, Sequence: n, Name: "s", Payload: large, ReceivedAt: s.Now()}})
		},
		"outputs": func(x *tx, _ int64) error { return x.SaveOutput(run, large) },
		"inputs": func(x *tx, _ int64) error {
			other := newStart(s)
			other.Input = large
			return x.InsertRun(&other)
		},
	} {
		most := 0
		_, err := write(s, "insert", func(x *tx) (none struct{}, err error) {
			for n := range int64(8) {
				if err := insert(x, n+1); err != nil {
					return none, err
				}
				most = max(most, x.batch.Len())
			}
			return none, undone
		})
		if !errors.Is(err, undone) {
			t.Errorf("%s: %v", name, err)
		}
		if fit := maxQueuedBytes / engine.MaxPayload; most > fit {
			t.Errorf("%d %s of %d bytes were sent together, want %d at most", most, name, engine.MaxPayload, fit)
		}
	}
}
