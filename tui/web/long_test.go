package web

import (
	"context"
	"fmt"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/tui"
)

// longRun adds an ended run with so many steps to a shop; every hundredth has failed.
func longRun(t testing.TB, w *shop, steps int) (id string) {
	store := w.db.Open(nil)
	defer func() { _ = store.Close() }()
	at := begin.Add(-10 * time.Hour)
	run := engine.ImportedRun{Run: engine.Run{Namespace: "default", ID: engine.FirstID(at), Queue: "orders",
		Type:   "long",
		Status: engine.RunCompleted, Attempts: 1, Steps: int64(steps), CreatedAt: at, StartedAt: at,
		FinishedAt: at.Add(time.Duration(steps) * time.Second),
		WorkerID:   "orders-1"}}
	for i := range steps {
		from := at.Add(time.Duration(i) * time.Second)
		step := engine.Step{RunID: run.Run.ID, ID: engine.FirstID(from.Add(time.Millisecond)),
			Name: fmt.Sprintf("step-%05d", i),
			Kind: engine.StepFunction, Status: engine.StepCompleted, Attempt: 1, Sequence: int64(i + 1), Latest: true,
			CreatedAt: from, StartedAt: from, FinishedAt: from.Add(600 * time.Millisecond),
			Output: engine.Payload{Data: []byte(`{"number":` + strconv.Itoa(i) + `,"text":"what this step returned"}`),
				Metadata: map[string]string{"content-type": "application/json"}}}
		if i%100 == 7 {
			step.Status, step.Output, step.Error = engine.StepFailed, engine.Payload{},
				&engine.Failure{Message: "out of luck"}
		}
		run.Steps = append(run.Steps, step)
	}
	if _, err := store.ImportRuns(context.Background(), engine.ImportRunsParams{Namespace: "default", Now: begin,
		AuditID: engine.FirstID(at.Add(time.Hour)), Runs: []engine.ImportedRun{run}}); err != nil {
		t.Fatal(err)
	}
	return run.Run.ID.String()
}

func TestALongRunShowsItsEndFirstAndTheRestByCursors(t *testing.T) {
	w := newShop()
	run := "/n/default/runs/" + longRun(t, w, 2500)
	b, calls := counted(t, w)
	page := b.get(run)
	const earlyFailed = 2300 / 100 // every hundredth has failed
	if calls["ListSteps"] != 2 || strings.Count(page, `class="step"`) != stepPage+earlyFailed {
		t.Errorf("the page shows %d steps by %d calls, want %d by two", strings.Count(page, `class="step"`),
			calls["ListSteps"], stepPage+earlyFailed)
	}
	shows(t, page, "step-02499", "Steps (2 500)", `data-later="`+run+`/timeline"`,
		"Earlier steps that failed or are open", "step-00007", "step-02207", "out of luck")
	seen := map[string]bool{}
	for path := run + "/steps"; path != ""; {
		page := b.get(path)
		for _, m := range regexp.MustCompile(`data-key="(step-\d+)"`).FindAllStringSubmatch(page, -1) {
			seen[m[1]] = true
		}
		next := regexp.MustCompile(`rel="next" href="([^"]+)"`).FindStringSubmatch(page)
		if path = ""; next != nil {
			path = strings.ReplaceAll(next[1], "&amp;", "&")
		}
	}
	if len(seen) != 2500 {
		t.Errorf("%d steps are found by cursors, want 2500", len(seen))
	}
	page = b.get(run + "/steps?only=failed")
	if n := strings.Count(page, `class="step"`); n != 2500/100 {
		t.Errorf("%d steps are shown as failed or open, want 25", n)
	}
	if w := b.do("GET", run+"/steps?only=nonsense", ""); w.Code != 400 {
		t.Errorf("an unknown selection of steps = %d, want 400", w.Code)
	}
	page = b.get(run + "/timeline")
	if bars := strings.Count(page, "<rect"); bars < 50 || bars > mostBars {
		t.Errorf("the timeline has %d bars", bars)
	}
	if failed := strings.Count(page, `class="bad"`); failed < 25 {
		t.Errorf("%d of the failed steps show in the timeline, want 25", failed)
	}
}

// BenchmarkLongRun measures the first page of a run with 10,000 steps. It should stay below 200 ms.
func BenchmarkLongRun(b *testing.B) {
	w := newShop()
	run := "/n/default/runs/" + longRun(b, w, 10_000)
	page := Handler(Options{API: tui.Over(w.conn), Now: w.box.Now})
	for name, path := range map[string]string{"page": run, "timeline": run + "/timeline"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				answer := httptest.NewRecorder()
				page.ServeHTTP(answer, httptest.NewRequest("GET", path, nil))
				b.ReportMetric(float64(answer.Body.Len()), "bytes")
			}
		})
	}
}
