package model

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// TestRuns_agree_with_the_server_after_anything moves around at random while runs start, change and
// disappear, and compares whenever nothing is in progress.
func TestRuns_agree_with_the_server_after_anything(t *testing.T) {
	seeds := 5
	if testing.Short() {
		seeds = 1
	}
	for range seeds {
		seed := rand.Uint64()
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 0))
			withRuns(t, 3000, "status:completed,running", func(t *testing.T, s *server, u *ui, r *Runs) {
				newest, first := 3000, 0
				for range 150 {
					switch rnd.IntN(8) {
					case 0:
						newest++
						s.put(aRun(newest, running))
						s.tell(&kagziv1.WatchEvent{WorkflowsChanged: true})
					case 1, 2:
						run := s.put(aRun(1+rnd.IntN(newest), []kagziv1.WorkflowStatus{completed, failed}[rnd.IntN(2)]))
						s.tell(&kagziv1.WatchEvent{Workflows: []*kagziv1.Workflow{run}})
					case 3: // many go at once, and are not named
						for range 150 {
							s.put(aRun(1+rnd.IntN(newest), failed))
						}
						s.tell(&kagziv1.WatchEvent{WorkflowsChanged: true})
					case 4:
						first = rnd.IntN(r.Len() + 1)
					case 5:
						first += 80
					case 6:
						[]func(){r.Head, r.End, func() { first = 0 }}[rnd.IntN(3)]()
						u.settle()
						first = r.First()
					case 7:
						first = max(first-80, 0)
					}
					r.AtTop(first == 0)
					r.View(first, first+40)
					if rnd.IntN(3) == 0 {
						u.advance(time.Duration(rnd.IntN(400)) * time.Millisecond)
						continue
					}
					u.advance(5 * time.Second)
					r.View(first, first+40) // rows may have been numbered again
					u.advance(5 * time.Second)
					compare(t, s, r, first)
				}
			})
		})
	}
}

// compare checks that the loaded rows are consecutive, and that the visible ones match the server.
func compare(t *testing.T, s *server, r *Runs, first int) {
	t.Helper()
	all := r.All()
	if !slices.IsSortedFunc(all, func(a, b *kagziv1.Workflow) int {
		return strings.Compare(b.GetRunId(), a.GetRunId())
	}) {
		t.Fatal("the rows are not in order")
	}
	for i := 1; i < len(all); i++ {
		if all[i].GetRunId() == all[i-1].GetRunId() {
			t.Fatalf("run %s is there twice", all[i].GetRunId())
		}
	}
	var truth []*kagziv1.Workflow
	for _, run := range s.runs {
		if run.GetStatus() != failed {
			truth = append(truth, run)
		}
	}
	begin, ok := r.Row(first)
	if !ok {
		return // the screen stands beyond the rows that are left
	}
	at := slices.IndexFunc(truth, func(run *kagziv1.Workflow) bool { return run.GetRunId() == begin.GetRunId() })
	if at < 0 {
		t.Fatalf("run %s on the screen is %s on the server", begin.GetRunId(), "gone")
	}
	for i := range 40 {
		run, ok := r.Row(first + i)
		if !ok && at+i < len(truth) && first+i < r.Len() || ok &&
			(at+i >= len(truth) || truth[at+i].GetRunId() != run.GetRunId()) {
			want := "nothing"
			if at+i < len(truth) {
				want = truth[at+i].GetRunId()
			}
			t.Fatalf("row %d is %q, want %s; rows %d of %d, first %d", first+i, run.GetRunId(), want, first,
				r.Len(), r.First())
		}
	}
}

func BenchmarkRuns_storm(b *testing.B) {
	u := newUI()
	l := &Link{namespace: "default", tasks: newTasks(b.Context(), u.post, time.Now)}
	defer l.Close()
	r, err := NewRuns(l, "")
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	for k := range pagesMost {
		p := &page{next: "n", prev: "p"}
		for i := range pageSize {
			p.runs = append(p.runs, aRun(1_000_000-k*pageSize-i, running))
		}
		p.high, p.low = p.runs[0].GetRunId(), p.runs[pageSize-1].GetRunId()
		r.window.append(p)
	}
	r.loaded = true
	named := make([]*kagziv1.Workflow, 500)
	for i := range named {
		named[i] = aRun(1_000_000-i*19, completed)
	}
	for b.Loop() {
		r.heard(Change{Runs: named, RunsChanged: true})
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/500, "µs/change")
}
