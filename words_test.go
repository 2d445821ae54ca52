package main

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/kagzi/kagzi/engine"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/render"
)

// The server's sentence and the facts shown below it are written in packages that may not import
// each other.
func TestExplanationsAndFactsFormatTimesAlike(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for _, d := range []time.Duration{
		time.Millisecond, 999 * time.Millisecond, time.Second, 2400 * time.Millisecond, 59*time.Second + 1, time.Minute,
		90 * time.Second, time.Hour - 1,
		2*time.Hour + 5*time.Minute + 30*time.Second, 26 * time.Hour, 49 * time.Hour, 400 * 24 * time.Hour,
	} {
		sleeps := engine.Explain(engine.Circumstances{Run: engine.Run{
			ID: engine.FirstID(now), Status: engine.RunSleeping, WaitingFor: "timer:nap", AvailableAt: now.Add(d),
		}}, now)
		ended := engine.Explain(engine.Circumstances{
			Run: engine.Run{ID: engine.FirstID(now), Status: engine.RunCompleted, FinishedAt: now.Add(-d)}}, now)
		facts := render.ExplainPairs(&kagziv1.ExplainWorkflowResponse{
			Since: timestamppb.New(now.Add(-d)), NextAt: timestamppb.New(now.Add(d)),
		}, render.View{Now: now})
		for label, sentence := range map[string]string{"Next": sleeps.Summary, "Since": ended.Summary} {
			said := ""
			for _, p := range facts {
				if p.Label == label {
					said, _, _ = strings.Cut(p.Lines[0], " (")
				}
			}
			if said == "" || !strings.HasSuffix(sentence, " "+said) {
				t.Errorf("%v off: %q, and below it %s %q", d, sentence, label, said)
			}
		}
	}
}
