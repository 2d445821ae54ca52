package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// KAGZI_BENCH_DB names the database of BenchmarkListOfAMillion, such as a URL of an empty one of Postgres;
// without it there is a new SQLite file. KAGZI_BENCH_RUNS is the number of runs, instead of a million.
const (
	benchDatabase = "KAGZI_BENCH_DB"
	benchRuns     = "KAGZI_BENCH_RUNS"
)

// BenchmarkListOfAMillion reads lists of the web page of a server with a million runs, over HTTP: whole
// documents, page by page, by their links. The 95th percentile should stay below 50 ms.
func BenchmarkListOfAMillion(b *testing.B) {
	runs, err := strconv.Atoi(cmp.Or(os.Getenv(benchRuns), "1000000"))
	if err != nil {
		b.Fatal(err)
	}
	var args []string
	if db := os.Getenv(benchDatabase); db != "" {
		args = []string{"--db", db}
	}
	a := startAgents(b, args...)
	a.fill(runs)
	site := "http://" + a.http
	for name, filter := range map[string]string{"all": "", "status": "status:pending", "none": "status:failed",
		"type": "type:type-7", "queue": "queue:queue-7", "since": "since:1m", "glob": "type:*e-7"} {
		b.Run(name, func(b *testing.B) {
			var times []time.Duration
			first := "/n/default/runs?q=" + url.QueryEscape(filter)
			for path := first; b.Loop(); {
				began := time.Now()
				answer, err := http.Get(site + path)
				if err != nil {
					b.Fatal(err)
				}
				text, err := io.ReadAll(answer.Body)
				_ = answer.Body.Close()
				if err != nil || answer.StatusCode != http.StatusOK {
					b.Fatalf("%s: %s, %v", path, answer.Status, err)
				}
				times = append(times, time.Since(began))
				path = first
				if _, rest, more := strings.Cut(string(text), `rel="next" href="`); more {
					next, _, _ := strings.Cut(rest, `"`)
					path = strings.ReplaceAll(next, "&amp;", "&")
				}
			}
			slices.Sort(times)
			b.ReportMetric(float64(times[len(times)*95/100].Microseconds())/1000, "ms-p95")
		})
	}
}

// fill starts runs of ten types in ten queues that no worker serves, unless they are there.
func (a *agents) fill(runs int) {
	a.t.Helper()
	const batch = 1000
	ctx := a.as(kagziv1.KeyRole_KEY_ROLE_ADMIN)
	stats, err := a.api.GetStats(ctx, &kagziv1.GetStatsRequest{})
	if err != nil {
		a.t.Fatal(err)
	}
	var group sync.WaitGroup
	var failed sync.Map
	free := make(chan struct{}, 8)
	for from := int(stats.GetTotalWorkflows()); from < runs; from += batch {
		free <- struct{}{}
		group.Go(func() {
			defer func() { <-free }()
			if err := a.startBatch(ctx, from, min(batch, runs-from)); err != nil {
				failed.Store(from, err)
			}
		})
	}
	group.Wait()
	failed.Range(func(from, err any) bool { a.t.Fatalf("runs from %v: %v", from, err); return false })
}

func (a *agents) startBatch(ctx context.Context, from, n int) error {
	request := &kagziv1.StartWorkflowsRequest{}
	for i := range n {
		k := (from + i) % 10
		request.Requests = append(request.Requests, &kagziv1.StartWorkflowRequest{
			WorkflowType: fmt.Sprint("type-", k), TaskQueue: fmt.Sprint("queue-", k),
			Input: &kagziv1.Payload{Data: []byte(`{"order":` + strconv.Itoa(from+i) + `}`)}})
	}
	_, err := a.api.StartWorkflows(ctx, request)
	return err
}
