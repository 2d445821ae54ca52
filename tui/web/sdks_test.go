package web

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/kagzi/kagzi/engine"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui"
	"github.com/kagzi/kagzi/tui/scenario"
)

// runOn adds an ended run to a shop whose steps the workers have executed in turn.
func runOn(t *testing.T, w *shop, workers ...string) (id string) {
	store := w.db.Open(nil)
	defer func() { _ = store.Close() }()
	at := begin.Add(-10 * time.Hour)
	run := engine.ImportedRun{Run: engine.Run{Namespace: "default", ID: engine.FirstID(at), Queue: "orders", Type: "mixed",
		Status: engine.RunCompleted, Attempts: 1, Steps: int64(len(workers)), CreatedAt: at, StartedAt: at,
		FinishedAt: at.Add(time.Duration(len(workers)) * time.Second)}}
	for i, worker := range workers {
		from := at.Add(time.Duration(i) * time.Second)
		run.Steps = append(run.Steps, engine.Step{RunID: run.Run.ID, ID: engine.FirstID(from.Add(time.Millisecond)),
			Name: fmt.Sprintf("step-%05d", i), Kind: engine.StepFunction, Status: engine.StepCompleted, Attempt: 1,
			Sequence: int64(i + 1), Latest: true, CreatedAt: from, StartedAt: from,
			FinishedAt: from.Add(600 * time.Millisecond), WorkerID: worker})
	}
	if _, err := store.ImportRuns(context.Background(), engine.ImportRunsParams{Namespace: "default", Now: begin,
		AuditID: engine.FirstID(at.Add(time.Hour)), Runs: []engine.ImportedRun{run}}); err != nil {
		t.Fatal(err)
	}
	return run.Run.ID.String()
}

// hired is a server that knows these workers besides its own, with their capabilities.
type hired struct {
	tui.API
	workers map[string]map[string]string
	asked   map[string]int
}

func (h *hired) GetWorker(ctx context.Context, r *kagziv1.GetWorkerRequest, o ...grpc.CallOption,
) (*kagziv1.GetWorkerResponse, error) {
	h.asked[r.GetWorkerId()]++
	if capabilities, known := h.workers[r.GetWorkerId()]; known {
		return &kagziv1.GetWorkerResponse{Worker: &kagziv1.Worker{WorkerId: r.GetWorkerId(),
			Capabilities: capabilities}}, nil
	}
	return h.API.GetWorker(ctx, r, o...)
}

func TestTheTimelineNamesLanguageAndSDKOfWorkers(t *testing.T) {
	w := newShop()
	api := &hired{API: tui.Over(w.conn), asked: map[string]int{}, workers: map[string]map[string]string{
		"py": {"sdk:python": "0.1.0", "gpu": "a100"}, "ts": {"sdk:typescript": "0.2.0"}, "old": {"gpu": "a100"},
		"evil": {"sdk:<script>alert(1)</script>": "\x1b[31m\"'"},
	}}
	b := visit(t, w, func(o *Options) { o.API = api })
	run := "/n/default/runs/" + runOn(t, w, "py", "ts", "py", "old", "gone", "evil", "")
	page := b.get(run)
	shows(t, page, `<span class="worker">py (python 0.1.0)</span>`, `<span class="worker">ts (typescript 0.2.0)</span>`,
		`<span class="worker">old</span>`, `<span class="worker">gone</span>`,
		"step-00001, attempt 1: 600ms from +1s on ts (typescript 0.2.0)</title>",
		"evil (&lt;script&gt;alert(1)&lt;/script&gt; ")
	if n := strings.Count(page, `class="worker"`); n != 6 {
		t.Errorf("%d of the 7 steps name a worker, want those 6 that have one", n)
	}
	inspect(t, "", "a timeline of a hostile worker", page)
	for _, id := range []string{"py", "ts", "old", "gone", "evil"} {
		if api.asked[id] != 1 {
			t.Errorf("the page asked %d times about worker %s, want once", api.asked[id], id)
		}
	}
	shows(t, b.get(run+"/step?name=step-00001"), "ts (typescript 0.2.0)")
}

func TestTheTimelineAsksAboutFewWorkers(t *testing.T) {
	w := newShop()
	api := &hired{API: tui.Over(w.conn), asked: map[string]int{}, workers: map[string]map[string]string{}}
	var ids []string
	for i := range mostSDKs + 3 {
		id := fmt.Sprintf("w-%d", i)
		ids, api.workers[id] = append(ids, id), map[string]string{"sdk:go": "0.1.0"}
	}
	page := visit(t, w, func(o *Options) { o.API = api }).get("/n/default/runs/" + runOn(t, w, ids...))
	shows(t, page, ">w-0 (go 0.1.0)<", fmt.Sprintf(">w-%d (go 0.1.0)<", mostSDKs-1), fmt.Sprintf(">w-%d<", mostSDKs))
	if len(api.asked) != mostSDKs {
		t.Errorf("the page asked about %d workers, want %d", len(api.asked), mostSDKs)
	}
}

func TestARoleThatSeesNoWorkersAsksAboutNone(t *testing.T) {
	w := newShop()
	api := &hired{API: keyed{tui.Over(w.conn), kagziv1.KeyRole_KEY_ROLE_CLIENT}, asked: map[string]int{}}
	page := visit(t, w, func(o *Options) { o.API = api }).get("/n/default/runs/" + w.ID(scenario.Failed))
	if shows(t, page, `<span class="worker">`); len(api.asked) > 0 {
		t.Errorf("the page of a client asked about the workers %v", api.asked)
	}
}

func TestARowOfManyStepsNamesOneWorker(t *testing.T) {
	w := newShop()
	api := &hired{API: tui.Over(w.conn), asked: map[string]int{},
		workers: map[string]map[string]string{"py": {"sdk:python": "0.1.0"}, "ts": {"sdk:typescript": "0.1.0"}}}
	var ids []string
	for i := range 2 * mostRows { // two steps a row
		ids = append(ids, []string{"py", "py", "ts", "py"}[i%4])
	}
	page := visit(t, w, func(o *Options) { o.API = api }).get("/n/default/runs/" + runOn(t, w, ids...))
	if n := strings.Count(page, `<span class="worker">py (python 0.1.0)</span>`); n != mostRows/2 {
		t.Errorf("%d rows name a worker, want the %d rows whose steps ran on one", n, mostRows/2)
	}
}
