package sqlite

import (
	"context"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// BenchmarkWritesBesideBackups measures how long a start takes, with 20 callers on a database of
// some 100 MB: alone, and while one backup after another is made.
func BenchmarkWritesBesideBackups(b *testing.B) {
	for _, beside := range []bool{false, true} {
		name := "alone"
		if beside {
			name = "beside backups"
		}
		b.Run(name, func(b *testing.B) {
			s := openAt(b, filepath.Join(b.TempDir(), "kagzi.db"))
			fat(b, s)
			ctx, stop := context.WithCancel(b.Context())
			copies, bytes, took := 0, int64(0), time.Duration(0)
			var copying sync.WaitGroup
			if beside {
				copying.Go(func() {
					for dir := b.TempDir(); ctx.Err() == nil; {
						begun := time.Now()
						made, err := s.Backup(ctx, filepath.Join(dir, time.Now().Format("150405.000000000")))
						if err == nil {
							copies, bytes, took = copies+1, bytes+made.Bytes, took+time.Since(begun)
						}
					}
				})
			}
			b.ResetTimer()
			waits := waitsOf(b, s, 20, b.N)
			b.StopTimer()
			stop()
			copying.Wait()
			slices.Sort(waits)
			b.ReportMetric(float64(waits[len(waits)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(waits[len(waits)*99/100].Microseconds())/1000, "p99-ms")
			if copies > 0 {
				b.ReportMetric(float64(copies), "backups")
				b.ReportMetric(float64(bytes)/1e6/took.Seconds(), "backup-MB/s")
			}
		})
	}
}

// fat stores 100 MB of inputs.
func fat(b *testing.B, s *Store) {
	for range 100 {
		starts := make([]engine.StartRun, 64)
		for i := range starts {
			starts[i] = startOf("fat", s)
			starts[i].Input.Data = make([]byte, 16<<10)
		}
		if _, err := s.StartRuns(b.Context(), engine.StartRunsParams{Runs: starts}); err != nil {
			b.Fatal(err)
		}
	}
}

// waitsOf returns how long each of n starts took.
func waitsOf(b *testing.B, s *Store, callers, n int) []time.Duration {
	waits := make([]time.Duration, n)
	var group sync.WaitGroup
	for c := range callers {
		group.Go(func() {
			for i := c; i < n; i += callers {
				begun := time.Now()
				if _, err := s.StartRuns(b.Context(),
					engine.StartRunsParams{Runs: []engine.StartRun{startOf("t", s)}}); err != nil {
					b.Error(err)
				}
				waits[i] = time.Since(begun)
			}
		})
	}
	group.Wait()
	return waits
}
