package agq_test

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kagzi/kagzi/backends/sqlite"
	"github.com/kagzi/kagzi/backends/sqlite/sqlitetest"
	"github.com/kagzi/kagzi/engine/lab/long"
)

// The figures of the door on SQLite: go test ./engine/agq -bench . -run '^$'

func startBench(b *testing.B) *fixture {
	b.Helper()
	return open(b, "sqlite:"+sqlitetest.FreshIn(b, long.ScratchDir(b), sqlite.Migrate))
}

// submitMany submits jobs in actions of 100, over ten connections.
func (f *fixture) submitMany(prefix string, jobs int) {
	f.dial().want("$echo", "PLAN.SUBMIT", echoPlan)
	inputs := strings.TrimSuffix(strings.Repeat(`{"word":"hello"},`, 100), ",")
	next := make(chan int)
	var all sync.WaitGroup
	for range 10 {
		c := f.dial()
		all.Go(func() {
			for n := range next {
				c.want("${…", "ACTION.SUBMIT", fmt.Sprintf(`{"action_id":"%s%d","plan_id":"echo","inputs":[%s]}`, prefix, n, inputs))
			}
		})
	}
	for n := range (jobs + 99) / 100 {
		next <- n
	}
	close(next)
	all.Wait()
}

func BenchmarkSubmit(b *testing.B) {
	f := startBench(b)
	b.ResetTimer()
	f.submitMany("a", b.N)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
}

// BenchmarkFinish has ten workers. For each job a worker waits for two commits, first of the claim and then of the
// report. More workers share the commits: 30 finish a third more.
func BenchmarkFinish(b *testing.B) {
	f := startBench(b)
	f.submitMany("a", b.N)
	left := make(chan struct{}, b.N)
	for range b.N {
		left <- struct{}{}
	}
	close(left)
	b.ResetTimer()
	var all sync.WaitGroup
	for n := range 10 {
		c := f.as(fmt.Sprintf("w%d", n))
		all.Go(func() {
			for range left {
				job := c.popped()
				c.want("+OK", "JOB.UPDATE", job, `{"status":"completed","task_results":[{"task_number":1,"exit_code":0,"stdout":"x"}]}`)
			}
		})
	}
	all.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
}

func BenchmarkWake(b *testing.B) {
	f := startBench(b)
	c, s := f.as("w1"), f.dial()
	s.want("$echo", "PLAN.SUBMIT", echoPlan)
	var took time.Duration
	for n := 0; b.Loop(); n++ {
		c.send("BRPOPLPUSH", "queue:ready", "queue:processing", "0")
		for !strings.Contains(s.do("METRICS"), "$popping_workers $1") {
		}
		s.send("ACTION.SUBMIT", fmt.Sprintf(`{"action_id":"a%d","plan_id":"echo","inputs":[{"word":"x"}]}`, n))
		began := time.Now()
		job := strings.TrimPrefix(c.answer(), "$")
		took += time.Since(began)
		s.answer()
		c.want("+OK", "SET", "job:"+job+":status", "completed")
	}
	b.ReportMetric(float64(took.Microseconds())/float64(b.N), "µs/wake")
}

func BenchmarkIdleWorkers(b *testing.B) {
	f := startBench(b)
	memory := func() float64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapInuse+m.StackInuse) / (1 << 20)
	}
	before := memory()
	for b.Loop() {
		const workers = 1000
		clients := make([]*client, workers)
		for n := range clients {
			clients[n] = f.as(fmt.Sprintf("w%d", n))
			clients[n].send("BRPOP", "queue:ready", "0")
		}
		for !strings.Contains(f.dial().do("METRICS"), fmt.Sprintf("$popping_workers $%d", workers)) {
		}
		b.ReportMetric(memory()-before, "MiB")
		for _, c := range clients {
			_ = c.raw.Close()
		}
	}
}
