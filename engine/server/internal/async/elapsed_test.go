package async

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestWhatIsNotedNowAndThenIsNotedAgainAfterTheClockWasSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		for name, c := range map[string]struct {
			last int64
			want bool
		}{
			"never":              {0, true},
			"this second":        {now.Unix(), false},
			"59 seconds ago":     {now.Unix() - 59, false},
			"a minute ago":       {now.Unix() - 60, true},
			"by a clock ahead":   {now.Unix() + 1, true},
			"by a clock of 2100": {time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC).Unix(), true},
		} {
			var last atomic.Int64
			last.Store(c.last)
			if got := Elapsed(&last, 60); got != c.want {
				t.Errorf("%s: passed = %v, want %v", name, got, c.want)
			}
			if c.want && last.Load() != now.Unix() {
				t.Errorf("%s: the last moment is %d, want now, %d", name, last.Load(), now.Unix())
			}
		}
	})
}
