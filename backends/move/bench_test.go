package move_test

import (
	"math/rand/v2"
	"testing"

	"github.com/kagzi/kagzi/backends"
	"github.com/kagzi/kagzi/backends/move"
	"github.com/kagzi/kagzi/engine"
)

// BenchmarkCopy moves some forty thousand rows of all tables, and verifies both databases.
func BenchmarkCopy(b *testing.B) {
	move.SetBatch(2000, 4<<20)
	defer move.SetBatch(12, 8000)
	for _, d := range directions {
		b.Run(d[0]+" to "+d[1], func(b *testing.B) {
			from := freshURL(b, d[0])
			populate(b, from, rand.New(rand.NewPCG(1, 1)), 5000)
			var rows, bytes int64
			for b.Loop() {
				report, err := backends.Copy(b.Context(), engine.CopyParams{
					From: from, To: freshURL(b, d[1]), Snapshot: true, Now: someDay,
					Progress: func(p engine.CopyProgress) { bytes = max(bytes, p.Bytes) },
				})
				if err != nil {
					b.Fatal(err)
				}
				rows += report.Rows()
			}
			b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
			b.ReportMetric(float64(bytes)*float64(b.N)/1e6/b.Elapsed().Seconds(), "MB/s")
		})
	}
}
