package coordinator

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine"
)

func TestDivergedRunsArePausedWhenANotificationSaysSo(t *testing.T) {
	for name, notification := range map[string]engine.Notification{
		"a report": {Kind: engine.NotifyDiverged},
		"a worker": {Kind: engine.NotifyWorker, Name: "w1"},
		"anything": {Kind: engine.NotifyAll},
	} {
		t.Run(name, func(t *testing.T) {
			n := &notebook{}
			withCoordinator(t, Options{Observer: n, BatchSize: 2}, func(t *testing.T, f *fakeStore, log *bytes.Buffer) {
				pass(time.Minute)
				before := f.count("PauseDiverged")
				pass(time.Hour)
				if got := f.count("PauseDiverged") - before; got != 0 {
					t.Fatalf("%d looks for diverged runs without a notification, want none", got)
				}
				f.set(func() { f.diverged = 5 })
				f.notify(notification)
				pass(10 * time.Millisecond)
				f.set(func() {
					if f.diverged != 0 {
						t.Errorf("%d diverged runs are left, want none", f.diverged)
					}
				})
				if want := []string{"diverged 2", "diverged 2", "diverged 1"}; !slices.Equal(n.others, want) {
					t.Errorf("the observer heard %q, want %q", n.others, want)
				}
				if got := strings.Count(log.String(), "run paused: the code of each build in service has diverged"); got != 5 {
					t.Errorf("%d lines in the log, want one a run:\n%s", got, log)
				}
			})
		})
	}
}

func TestAStormOfReportsIsFewLooksForDivergedRuns(t *testing.T) {
	withCoordinator(t, Options{}, func(t *testing.T, f *fakeStore, _ *bytes.Buffer) {
		pass(time.Minute)
		before := f.count("PauseDiverged")
		for range 1000 {
			f.notify(engine.Notification{Kind: engine.NotifyDiverged})
			pass(time.Millisecond)
		}
		pass(time.Second)
		if got := f.count("PauseDiverged") - before; got < 2 || got > 6 {
			t.Errorf("%d looks in a second, want one each 250ms", got)
		}
	})
}
