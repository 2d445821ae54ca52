package bench

import (
	"context"
	"os"
	"slices"
	"sync"
	"time"
)

// memoryEvery is the interval between two reads of the servers' memory.
const memoryEvery = 250 * time.Millisecond

// The figures of a cost.
const (
	serverTime   = "server"
	workerTime   = "worker"
	loadTime     = "load"
	databaseTime = "database"
	commitsEach  = "commits"
	writesEach   = "writes in a commit"
	memoryFirst  = "server memory, first tenth"
	memoryLast   = "server memory, last tenth"
	memoryPeak   = "server memory, peak"
)

// cost is what a part of a measurement used, as far as this machine can tell: by private servers,
// by the bench's own processes, and by a local Postgres.
type cost struct {
	stretch string // part of the workload; empty for all of it
	per     string // unit of processor time and commits: "run", "step"
	figures []figure
}

// of returns the figure with a name; 0 if it was not measured.
func (c cost) of(name string) float64 {
	for _, f := range c.figures {
		if f.name == name {
			return f.value
		}
	}
	return 0
}

// meter measures a cost. The caller must call end.
type meter struct {
	r        *fixture
	ctx      context.Context
	began    time.Time
	before   reading
	counting counters

	stop    context.CancelFunc
	watcher sync.WaitGroup
	memory  []float64 // of all servers together in MiB, one value per read
}

// reading is the processor time that each part has used so far.
type reading struct {
	server, worker, load, database time.Duration
	measured                       map[string]bool // by figure name
}

// since reports whether the usage of a part since an earlier reading is known, because it was known
// then too. Workers count from when they were ready.
func (r reading) since(earlier reading, name string) bool {
	return r.measured[name] && (earlier.measured[name] || name == workerTime)
}

// meter starts to measure. It reads the memory until the end.
func (r *fixture) meter(ctx context.Context) (*meter, error) {
	m := &meter{r: r, ctx: ctx}
	var err error
	if m.counting, err = r.counted(ctx); err != nil {
		return nil, err
	}
	watching, stop := context.WithCancel(ctx)
	m.stop = stop
	m.watcher.Go(func() { m.watch(watching) })
	m.before, m.began = r.read(), time.Now()
	return m, nil
}

// end returns the cost for n runs or steps.
func (m *meter) end(stretch, per string, n int) (cost, error) {
	after := m.r.read()
	m.halt()
	counted, err := m.r.counted(m.ctx)
	c := cost{stretch: stretch, per: per}
	each := func(name string, total time.Duration) {
		if after.since(m.before, name) && n > 0 {
			c.figures = append(c.figures, figure{name, "µs", float64(total.Microseconds()) / float64(n)})
		}
	}
	each(serverTime, after.server-m.before.server)
	each(workerTime, after.worker-m.before.worker)
	each(loadTime, after.load-m.before.load)
	each(databaseTime, after.database-m.before.database)
	if of := counted.minus(m.counting); of.commits > 0 && n > 0 {
		c.figures = append(c.figures, figure{commitsEach, "", of.commits / float64(n)},
			figure{writesEach, "", of.writes / of.commits})
	}
	c.figures = append(c.figures, memoryFigures(m.memory)...)
	return c, err
}

// halt stops reading the memory. It may be called twice.
func (m *meter) halt() {
	m.stop()
	m.watcher.Wait()
}

// watch reads the memory of the servers at intervals, and once at the end.
func (m *meter) watch(ctx context.Context) {
	ticker := time.NewTicker(memoryEvery)
	defer ticker.Stop()
	for {
		if bytes, known := m.r.serverMemory(); known {
			m.memory = append(m.memory, mebibytes(bytes))
		}
		if ctx.Err() != nil {
			return
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
		}
	}
}

// memoryFigures returns the means of the first and last tenth of the values, and the maximum.
func memoryFigures(looks []float64) []figure {
	if len(looks) == 0 {
		return nil
	}
	tenth := max(1, len(looks)/10)
	return []figure{
		{memoryFirst, "MiB", mean(looks[:tenth])}, {memoryLast, "MiB", mean(looks[len(looks)-tenth:])},
		{memoryPeak, "MiB", slices.Max(looks)},
	}
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

func mebibytes(n int64) float64 { return float64(n) / (1 << 20) }

// read returns the processor time of every part, without what a worker used before it was ready.
func (r *fixture) read() reading {
	t := reading{measured: map[string]bool{}}
	add := func(name string, to *time.Duration, used time.Duration, known bool) {
		if known {
			*to += used
			t.measured[name] = true
		}
	}
	for _, s := range r.servers {
		if s.pid == 0 {
			continue
		}
		used, known := processorTime(s.pid)
		add(serverTime, &t.server, used, known)
	}
	for _, w := range r.workers {
		used, known := familyTime(w.PID())
		add(workerTime, &t.worker, used-w.starting, known)
	}
	used, known := processorTime(os.Getpid())
	add(loadTime, &t.load, used, known)
	if r.database != "" {
		used, known := postgresTime(r.database)
		add(databaseTime, &t.database, used, known)
	}
	return t
}

// serverMemory returns the memory of all private servers together.
func (r *fixture) serverMemory() (total int64, known bool) {
	for _, s := range r.servers {
		if s.pid == 0 {
			continue
		}
		if n, ok := residentBytes(s.pid); ok {
			total, known = total+n, true
		}
	}
	return total, known
}

// counted returns the counters of the private servers.
func (r *fixture) counted(ctx context.Context) (c counters, err error) {
	for _, s := range r.servers {
		if s.metrics == "" {
			continue
		}
		if err := c.fetch(ctx, s.metrics); err != nil {
			return c, err
		}
	}
	return c, nil
}
