package bench

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	kagzi "github.com/kagzi/kagzi/sdk"
)

const (
	fullRuns  = 1_000_000 // ended runs of W10 at scale 1
	listPages = 100       // pages read one after another in each kind of list
	fillSlots = 1000      // of the worker that fills the table
)

// measureFull is W10: the same workloads on an empty database and on one with many ended runs. Each
// workload runs on one right after the other, so that other load on the machine affects both.
func measureFull(ctx context.Context, r *fixture, p plan) (s sample, err error) {
	began := time.Now()
	if err := fill(ctx, r.full, p.runs); err != nil {
		return s, fmt.Errorf("fill the table: %w", err)
	}
	if err := r.full.startWorkers(ctx); err != nil {
		return s, err
	}
	already, err := ended(ctx, r)
	if err != nil {
		return s, err
	}
	there, err := ended(ctx, r.full)
	if err != nil {
		return s, err
	}
	s.figures = []figure{{"ended runs, empty table", "", float64(already)},
		{"ended runs, full table", "", float64(there)}}
	for _, w := range []workload{emptyRuns, tenSteps, oneStep} {
		if err := s.compare(ctx, r, w, float64(p.runs)/fullRuns); err != nil {
			return s, fmt.Errorf("%s: %w", w.id, err)
		}
	}
	pages, err := listTimes(ctx, r.full)
	if err != nil {
		return s, err
	}
	s.addTimes("list page", pages)
	if pages, err = browserTimes(ctx, r.full); err != nil {
		return s, err
	}
	s.addTimes("list in the web page", pages)
	s.elapsed = time.Since(began)
	return s, nil
}

// addTimes adds figures of times; none for none.
func (s *sample) addTimes(name string, times []time.Duration) {
	if len(times) == 0 {
		return
	}
	slices.Sort(times)
	s.figures = append(s.figures, figure{name + " p50", "ms", milliseconds(percentile(times, 50))},
		figure{name + " p95", "ms", milliseconds(percentile(times, 95))},
		figure{name + " p100", "ms", milliseconds(percentile(times, 100))})
}

// compare measures one workload on both tables. It compares the rate of W1 and W2, the times of W3,
// and the server's cost per run or step, which other load disturbs least. A slowdown above 1 means
// that the full table is slower.
func (s *sample) compare(ctx context.Context, r *fixture, w workload, scale float64) error {
	p := w.plan(options{scale: scale})
	empty, err := w.measure(ctx, r, p)
	if err != nil {
		return err
	}
	full, err := w.measure(ctx, r.full, p)
	if err != nil {
		return err
	}
	s.runs, s.steps = s.runs+empty.runs+full.runs, s.steps+empty.steps+full.steps
	from, to := 0, 1 // the rate
	if w.inFlight == 1 {
		from, to = 1, len(empty.figures) // the times
	}
	for i := from; i < to; i++ {
		f, g := empty.figures[i], full.figures[i]
		slower := ratio(f.value, g.value)
		if i > 0 {
			slower = ratio(g.value, f.value)
		}
		s.figures = append(s.figures, figure{w.id + " empty, " + f.name, f.unit, f.value},
			figure{w.id + " full, " + g.name, g.unit, g.value},
			figure{w.id + " slowdown, " + f.name, "", slower})
	}
	if e, f := empty.costs[0].of(serverTime), full.costs[0].of(serverTime); e > 0 {
		s.figures = append(s.figures, figure{w.id + " slowdown, server's processor time", "", f / e})
	}
	for _, both := range []struct {
		stretch string
		costs   []cost
	}{{w.id + ", empty table", empty.costs}, {w.id + ", full table", full.costs}} {
		for _, c := range both.costs {
			c.stretch = both.stretch
			s.costs = append(s.costs, c)
		}
	}
	return nil
}

// ended counts the runs in a fixture's database that have completed.
func ended(ctx context.Context, r *fixture) (int64, error) {
	stats, err := kagziv1.NewAdminServiceClient(r.client(0).Conn()).GetStats(ctx, &kagziv1.GetStatsRequest{})
	if err != nil {
		return 0, err
	}
	return stats.GetCompletedWorkflows(), nil
}

// fill adds ended runs to a database up to wanted: it starts the missing ones in batches and
// executes them.
func fill(ctx context.Context, r *fixture, wanted int) error {
	there, err := ended(ctx, r)
	if err != nil || there >= int64(wanted) {
		return err
	}
	slots := r.spec.slots
	r.spec.slots = fillSlots
	if err := r.startWorkers(ctx); err != nil {
		return err
	}
	r.spec.slots = slots
	lacking := wanted - int(there)
	batches := (lacking + kagzi.MaxBatch - 1) / kagzi.MaxBatch
	err = each(ctx, batches, enqueuers, func(ctx context.Context, b int) error {
		seeds := make([]int, min(kagzi.MaxBatch, lacking-b*kagzi.MaxBatch))
		started, err := startBatch(ctx, r, b, emptyType, seeds)
		if err != nil {
			return err
		}
		return settled(ctx, started)
	})
	if err != nil {
		return err
	}
	if err := r.stopWorkers(); err != nil {
		return err
	}
	return counted(ctx, r, wanted)
}

// countedWithin limits how long a server may report a cached count of runs.
const countedWithin = time.Minute

// counted waits until the server reports that many completed runs.
func counted(ctx context.Context, r *fixture, wanted int) error {
	limit := time.NewTimer(countedWithin)
	defer limit.Stop()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for {
		there, err := ended(ctx, r)
		if err != nil || there >= int64(wanted) {
			return err
		}
		select {
		case <-again.C:
		case <-limit.C:
			return fmt.Errorf("%d runs have completed, want %d", there, wanted)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// settled waits for the end of the last of some runs, when most others have ended.
func settled(ctx context.Context, runs []*kagzi.Run) error {
	_, err := runs[len(runs)-1].Wait(ctx)
	return err
}

// listTimes reads pages as users do: the newest runs, and those of a status, type or queue, page by
// page.
func listTimes(ctx context.Context, r *fixture) (times []time.Duration, err error) {
	workflows := kagziv1.NewWorkflowServiceClient(r.client(0).Conn())
	kind, queue := emptyType, r.spec.queue
	for _, list := range []*kagziv1.ListWorkflowsRequest{
		{},
		{Statuses: []kagziv1.WorkflowStatus{kagziv1.WorkflowStatus_WORKFLOW_STATUS_COMPLETED}},
		{Statuses: []kagziv1.WorkflowStatus{kagziv1.WorkflowStatus_WORKFLOW_STATUS_FAILED}},
		{WorkflowType: &kind},
		{TaskQueue: &queue},
	} {
		list.Namespace, list.Page = r.spec.namespace, &kagziv1.PageRequest{}
		for range listPages {
			from := time.Now()
			answer, err := workflows.ListWorkflows(ctx, list)
			if err != nil {
				return nil, err
			}
			times = append(times, time.Since(from))
			if list.Page.PageToken = answer.GetPage().GetNextPageToken(); list.Page.PageToken == "" {
				list.Page = &kagziv1.PageRequest{}
			}
		}
	}
	return times, nil
}

// browserTimes reads the lists of listTimes as a browser does: whole documents, page by page, by their
// links. There are none if the server has no web page or asks for a login.
func browserTimes(ctx context.Context, r *fixture) (times []time.Duration, err error) {
	if r.servers[0].metrics == "" {
		return nil, nil
	}
	site := "http://" + r.servers[0].metrics
	browser := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	defer browser.CloseIdleConnections()
	for _, filter := range []string{"", "status:completed", "status:failed", "type:" + emptyType,
		"queue:" + r.spec.queue} {
		first := "/n/" + url.PathEscape(r.spec.namespace) + "/runs?q=" + url.QueryEscape(filter)
		path := first
		for range listPages {
			from := time.Now()
			text, err := document(ctx, browser, site+path)
			if err != nil || text == "" {
				return nil, err
			}
			times = append(times, time.Since(from))
			path = first
			if _, rest, more := strings.Cut(text, `rel="next" href="`); more {
				next, _, _ := strings.Cut(rest, `"`)
				path = strings.ReplaceAll(next, "&amp;", "&")
			}
		}
	}
	return times, nil
}

// document reads a page; it is empty if there is none for a browser without a session.
func document(ctx context.Context, browser *http.Client, address string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", err
	}
	answer, err := browser.Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	switch {
	case err != nil:
		return "", err
	case answer.StatusCode == http.StatusNotFound || answer.StatusCode == http.StatusSeeOther:
		return "", nil
	case answer.StatusCode != http.StatusOK:
		return "", fmt.Errorf("GET %s: %s", address, answer.Status)
	}
	return string(text), nil
}
