package transport

import (
	"testing"
	"time"
)

func TestBackoffSpreadsWorkersOverTheWholeDelay(t *testing.T) {
	for n, want := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60} {
		const draws, parts = 10_000, 10
		longest := want * time.Second
		var in [parts]int
		for range draws {
			delay := Backoff(n + 1)
			if delay <= 0 || delay > longest+time.Millisecond {
				t.Fatalf("delay before attempt %d = %s, want more than 0 and at most %s", n+2, delay, longest)
			}
			in[min(int(delay*parts/longest), parts-1)]++
		}
		for i, got := range in {
			if got > 2*draws/parts {
				t.Errorf("%d of %d workers come in tenth %d of %s, want about as many in each", got, draws,
					i+1, longest)
			}
		}
	}
}
