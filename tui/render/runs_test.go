package render

import (
	"strings"
	"testing"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

func TestRunPairsShowWhatTheCodeLeft(t *testing.T) {
	got := map[string]string{}
	for _, p := range RunPairs(&kagziv1.Workflow{Unreached: []string{"charge", "ship\x1b[31m"}, UnreadSignals: 2,
		PauseReason: "diverged"}, View{}) {
		got[p.Label] = strings.Join(p.Lines, " ")
	}
	for key, want := range map[string]string{"Not reached": `charge, ship\x1b[31m`, "Unread signals": "2",
		"Paused because": "its code has diverged from its history"} {
		if got[key] != want {
			t.Errorf("%s: %q, want %q", key, got[key], want)
		}
	}
}
