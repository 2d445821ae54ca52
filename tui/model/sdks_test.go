package model

import (
	"testing"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

func TestTheSDKOfAWorkerIsAskedForOnce(t *testing.T) {
	withLink(t, func(s *server) {
		s.workers = []*kagziv1.Worker{
			{WorkerId: "py", Capabilities: map[string]string{"sdk:python": "0.1.0", "gpu": "a100"}},
			{WorkerId: "old", Capabilities: map[string]string{"gpu": "a100"}},
		}
	}, func(t *testing.T, s *server, u *ui, l *Link) {
		u.settle()
		sdks := NewSDKs(l)
		defer sdks.Close()
		changes := 0
		sdks.Changed = func() { changes++ }
		for range 5 { // as each load of a timeline does
			for _, id := range []string{"", "py", "old", "gone"} {
				sdks.Of(id)
			}
			u.settle()
		}
		s.live(u, time.Minute)
		if got := sdks.Of("py"); got != "python 0.1.0" || sdks.Of("old") != "" || sdks.Of("gone") != "" {
			t.Errorf("got %q, %q and %q, want python 0.1.0 and nothing", got, sdks.Of("old"), sdks.Of("gone"))
		}
		if n := s.called("GetWorker"); n != 3 || changes != 1 {
			t.Errorf("asked %d times and changed %d times, want 3 questions and 1 change", n, changes)
		}
	})
}
