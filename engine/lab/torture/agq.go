//go:build linux

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/kagzi/kagzi/engine/lab/torture/agqload"
	"github.com/kagzi/kagzi/engine/lab/torture/fixture"
	"github.com/kagzi/kagzi/engine/lab/torture/history"
)

// agqWorkers is Q-01: AGQ workers and clients, while their connections break, answers are lost, and servers are
// killed. Each worker comes back within its lease.
func agqWorkers(ctx context.Context, o options) (*report, error) {
	s := shape{Servers: 1, Lease: 30 * time.Second, Heartbeat: 10 * time.Second, AGQ: true}
	if o.db != dbSQLite {
		s.Servers = 2
	}
	r, err := newSystem(ctx, o, s)
	defer r.close()
	if err != nil {
		return nil, err
	}
	doors := make([]string, len(r.servers))
	for i, server := range r.servers {
		doors[i] = server.agq.Address()
	}
	load := agqload.New(agqload.Options{Doors: doors, Seed: o.seed, Workers: agqWorkerCount, Submitters: 2,
		Pause: time.Duration(float64(4*time.Millisecond) / o.scale), WorkTime: 10 * time.Millisecond})
	rest, giveUp := context.WithCancel(ctx)
	defer giveUp()
	starting, enough := context.WithCancel(rest)
	defer enough()
	done := make(chan struct{})
	go func() {
		defer close(done)
		load.Run(rest, starting)
	}()
	err = agqFaults(ctx, r, o.duration)
	enough()
	if err == nil {
		err = r.heal(ctx)
	}
	if err != nil {
		giveUp()
		<-done
		return nil, err
	}
	select {
	case <-done:
	case <-time.After(settleLimit):
		giveUp() // the database shows what has not ended
		<-done
	case <-ctx.Done():
		<-done
		return nil, ctx.Err()
	}
	r.stop()
	return judgeAGQ(ctx, r, load, o)
}

const agqWorkerCount = 8

// agqFaults injects one fault after another for a time: all connections of a server break, its answers are lost
// and then its connections, or the server is killed.
func agqFaults(ctx context.Context, r *system, d time.Duration) error {
	r.pauseFor(ctx, d/calmShare)
	end := time.Now().Add(d)
	for n := 0; time.Now().Before(end) && ctx.Err() == nil; n++ {
		s := r.servers[r.random.n(len(r.servers))]
		switch n % 3 {
		case 0:
			r.fault("break the connections of "+s.name, func() bool { return s.agq.Cut() > 0 })
		case 1:
			r.fault("lose the answers of "+s.name, func() bool {
				s.agq.Set(fixture.Conditions{Deaf: true})
				r.pauseFor(ctx, r.random.between(50*time.Millisecond, 300*time.Millisecond))
				cut := s.agq.Cut()
				s.agq.Set(fixture.Conditions{})
				return cut > 0
			})
		case 2:
			r.fault("kill "+s.name, s.kill)
			if err := s.start(context.WithoutCancel(ctx)); err != nil {
				return err
			}
		}
		r.pauseFor(ctx, r.random.between(100*time.Millisecond, 400*time.Millisecond))
	}
	return ctx.Err()
}

// judgeAGQ checks what is left.
func judgeAGQ(ctx context.Context, r *system, load *agqload.Load, o options) (*report, error) {
	events := load.Events()
	if err := history.Write(filepath.Join(o.dir, "history.jsonl"), append(events, r.log.Events()...)); err != nil {
		return nil, err
	}
	jobs, err := dumpJobs(ctx, r.url())
	if err != nil {
		return nil, err
	}
	findings, err := soundness(ctx, r.program, r.dir, r.url())
	if err != nil {
		return nil, err
	}
	met := agqload.MetBy(events)
	hits := 0
	for _, e := range r.log.Events() {
		if e.Op == history.Fault && e.Outcome == history.OK {
			hits++
		}
	}
	out := &report{scope: fmt.Sprintf("%d faults, %d jobs", hits, len(jobs)), lines: agqload.Invariants(events, jobs),
		trouble: append(load.Trouble(), findings...), met: met.String()}
	if n := load.Submitted.Load() - load.Ended.Load(); n > 0 {
		out.trouble = append(out.trouble, fmt.Sprintf("%d of %d actions have not ended", n, load.Submitted.Load()))
	}
	for what, count := range map[string]int{"faults did hit": hits, "reports had no answer": met.Unknown,
		"reports were repeated": met.Repeated, "late reports were refused": met.RefusedLate,
		"failures were reported": met.Failed, "pops had no answer": met.Unpopped} {
		if count < 3 {
			out.vacuous = append(out.vacuous, fmt.Sprintf("%d %s, want 3", count, what))
		}
	}
	for _, l := range out.lines {
		if l.Checked == 0 {
			out.vacuous = append(out.vacuous, l.ID+" checked nothing: there are no "+l.Of)
		}
	}
	return out, nil
}

// dumpJobs reads the jobs of a database that no server has open.
func dumpJobs(ctx context.Context, url string) ([]agqload.Job, error) {
	db, err := openSQL(url, "ro")
	if err != nil {
		return nil, err
	}
	defer db.Close()
	d := &dumping{ctx: ctx, db: db}
	var jobs []agqload.Job
	d.each(`select r.run_id, r.status, r.lease_losses, p.input, p.output,
		(select coalesce(max(s.failures), 0) from steps s where s.run_id = r.run_id and s.name = 'job')
		from runs r left join payloads p on p.run_id = r.run_id where r.workflow_type = 'agq.job'`,
		func(scan func(...any) error) error {
			var j agqload.Job
			var run id
			var status int
			err := scan(&run, &status, &j.Losses, &j.Input, &j.Output, &j.Failures)
			j.ID, j.Status = string(run), runStatuses[status]
			jobs = append(jobs, j)
			return err
		})
	if d.err != nil {
		return nil, fmt.Errorf("read the jobs: %w", d.err)
	}
	return jobs, nil
}
