//go:build linux || darwin

package stats

import (
	"math"
	"testing"
)

func TestAnEndlessDiskHasAPositiveSize(t *testing.T) {
	for _, c := range []struct {
		blocks uint64
		size   int64
		want   int64
	}{
		{0, 4096, 0},
		{3, 4096, 12288},
		{math.MaxInt64 / 4096, 4096, math.MaxInt64 - 4095},
		{math.MaxInt64/4096 + 1, 4096, math.MaxInt64},
		{math.MaxUint64 >> 24, 16 << 20, math.MaxInt64}, // s3fs, unless it is told a size
		{math.MaxUint64, 1, math.MaxInt64},
		{5, 0, 0},
	} {
		if got := inBytes(c.blocks, c.size); got != c.want {
			t.Errorf("%d blocks of %d are %d bytes, want %d", c.blocks, c.size, got, c.want)
		}
	}
}
