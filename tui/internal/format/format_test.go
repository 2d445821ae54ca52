package format

import (
	"testing"
)

func TestRatesAreReadable(t *testing.T) {
	for _, c := range []struct {
		perSecond float64
		want      string
	}{{0, "0/s"}, {1234.4, "1 234/s"}, {12, "12/s"}, {1.26, "1.3/s"}, {0.1, "0.1/s"}, {0.07, "4.2/min"},
		{1.0 / 60, "1.0/min"}, {1.0 / 3600, "1.0/h"}} {
		if got := PerTime(c.perSecond); got != c.want {
			t.Errorf("%g a second reads %q, want %q", c.perSecond, got, c.want)
		}
	}
}
