package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// get asks a server over HTTP.
func get(t *testing.T, address, path string) (status int, body string) {
	t.Helper()
	answer, err := http.Get("http://" + address + path)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// samples is what metrics say, by what stands before the value.
func samples(t *testing.T, text string) map[string]float64 {
	t.Helper()
	found := map[string]float64{}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		i := strings.LastIndexByte(line, ' ')
		value, err := strconv.ParseFloat(strings.TrimSpace(line[i+1:]), 64)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		found[line[:i]] = value
	}
	return found
}

// busy is a server on which a worker completed one of two runs.
func busy(t *testing.T) *served {
	t.Helper()
	s := serve(t, testConfig(t), embedded(nil))
	conn, err := grpc.NewClient(s.Client, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	ctx, runs, workers := t.Context(), kagziv1.NewWorkflowServiceClient(conn), kagziv1.NewWorkerServiceClient(conn)
	for range 2 {
		if _, err := runs.StartWorkflow(ctx, &kagziv1.StartWorkflowRequest{WorkflowType: "t", TaskQueue: "q"}); err != nil {
			t.Fatal(err)
		}
	}
	session, err := workers.Session(ctx)
	if err != nil {
		t.Fatal(err)
	}
	send := func(r *kagziv1.SessionRequest) {
		if err := session.Send(r); err != nil {
			t.Fatal(err)
		}
	}
	send(&kagziv1.SessionRequest{Seq: 1, Operation: &kagziv1.SessionRequest_Hello{Hello: &kagziv1.RegisterRequest{
		TaskQueue: "q", WorkflowTypes: []string{"t"},
	}}})
	send(&kagziv1.SessionRequest{Seq: 2, Operation: &kagziv1.SessionRequest_Credit{Credit: &kagziv1.Credit{Tasks: 1}}})
	for {
		answer, err := session.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if task := answer.GetTask(); task != nil {
			send(&kagziv1.SessionRequest{Seq: 3, Operation: &kagziv1.SessionRequest_CompleteWorkflow{CompleteWorkflow: &kagziv1.CompleteWorkflowRequest{
				RunId: task.RunId, LeaseToken: task.LeaseToken,
			}}})
		}
		if answer.GetCompletedWorkflow() != nil {
			return s
		}
	}
}

func TestMetricsSayWhatWasDoneAndWhatIsThere(t *testing.T) {
	s := busy(t)
	status, text := get(t, s.HTTP, "/metrics")
	if status != http.StatusOK {
		t.Fatalf("status %d: %s", status, text)
	}
	got := samples(t, text)
	for name, want := range map[string]float64{
		`kagzi_runs_started_total`:                                         2,
		`kagzi_runs_ended_total{outcome="completed"}`:                      1,
		`kagzi_runs_claimed_total`:                                         1,
		`kagzi_commit_duration_seconds_count`:                              1,
		`kagzi_runs{status="COMPLETED"}`:                                   1,
		`kagzi_runs{status="PENDING"}`:                                     1,
		`kagzi_queue_runs{namespace="default",queue="q",status="PENDING"}`: 1,
		`kagzi_queue_workers_online{namespace="default",queue="q"}`:        1,
		`kagzi_queue_unserved_runs{namespace="default",queue="q"}`:         0,
		`kagzi_workers_online`:                                             1,
		`kagzi_worker_sessions`:                                            1,
		`kagzi_connections`:                                                1,
		`kagzi_streams`:                                                    1,
		`kagzi_healthy`:                                                    1,
		`kagzi_database_read`:                                              1,
		`kagzi_api_calls_total{method="WorkflowService/StartWorkflow"}`:    2,
		`kagzi_api_calls_in_flight{method="WorkerService/Session"}`:        1,
	} {
		if value, there := got[name]; !there || value != want {
			t.Errorf("%s = %v, there: %v, want %v", name, value, there, want)
		}
	}
	for _, name := range []string{
		`kagzi_claim_duration_seconds_count`, `kagzi_commit_writes_count`, `kagzi_commit_writes_sum`, `kagzi_database_size_bytes`,
		`kagzi_notifications_total{kind="queue"}`, `kagzi_queue_oldest_due_run_age_seconds{namespace="default",queue="q"}`,
		`go_goroutines`, `process_start_time_seconds`,
	} {
		if got[name] <= 0 {
			t.Errorf("%s = %v, want more than 0", name, got[name])
		}
	}
	if one, all := got[`kagzi_commit_duration_seconds_bucket{le="0.0001"}`], got[`kagzi_commit_duration_seconds_bucket{le="+Inf"}`]; one > all || all != 1 {
		t.Errorf("buckets hold %v of %v, want at most all of 1", one, all)
	}
}

func TestMetricsAreNamedAsIsUsual(t *testing.T) {
	_, text := get(t, busy(t).HTTP, "/metrics")
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "kagzi_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}

// dashboard is what matters of a dashboard of Grafana.
type dashboard struct {
	Panels []struct {
		Type, Title string
		Targets     []struct{ Expr string }
	}
	Templating struct {
		List []struct{ Name, Type, Definition string }
	}
}

var (
	named    = regexp.MustCompile(`\b(kagzi|go|process)_[a-z0-9_]+\b`)
	selected = regexp.MustCompile(`([a-z_]+)\s*(?:=~|!~|!=|=)\s*"`)
	grouped  = regexp.MustCompile(`\bby \(([^)]*)\)`)
)

func TestEveryPanelOfTheDashboardNamesMetricsThatExist(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "installer", "grafana", "kagzi.json"))
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(data, &d); err != nil {
		t.Fatal(err)
	}
	_, text := get(t, busy(t).HTTP, "/metrics")
	labels := map[string][]string{} // by metric
	for sample := range samples(t, text) {
		name, rest, _ := strings.Cut(sample, "{")
		for _, l := range selected.FindAllStringSubmatch(rest, -1) {
			labels[name] = append(labels[name], l[1])
		}
		labels[name] = append(labels[name], "job", "instance") // which the collector adds
	}
	check := func(where, query string) {
		names := named.FindAllString(query, -1)
		if len(names) == 0 {
			t.Errorf("%s: %q names no metric", where, query)
		}
		var used []string
		for _, l := range selected.FindAllStringSubmatch(query, -1) {
			used = append(used, l[1])
		}
		for _, g := range grouped.FindAllStringSubmatch(query, -1) {
			used = append(used, strings.Split(strings.ReplaceAll(g[1], " ", ""), ",")...)
		}
		for _, name := range names {
			if labels[name] == nil {
				t.Errorf("%s: there is no metric %s", where, name)
			}
			for _, l := range used {
				if !slices.Contains(labels[name], l) {
					t.Errorf("%s: %s has no label %s", where, name, l)
				}
			}
		}
	}
	panels := 0
	for _, p := range d.Panels {
		if p.Type == "row" {
			continue
		}
		if panels++; len(p.Targets) == 0 {
			t.Errorf("panel %q shows nothing", p.Title)
		}
		for _, target := range p.Targets {
			check("panel "+p.Title, target.Expr)
		}
	}
	for _, v := range d.Templating.List {
		if v.Type == "query" {
			check("variable "+v.Name, v.Definition)
		}
	}
	if panels < 20 {
		t.Errorf("the dashboard has %d panels, want all", panels)
	}
}

// faked is figures that the test decides about.
type faked struct {
	mu      sync.Mutex
	asked   int
	reading server.Reading
	err     error
}

func (f *faked) Metrics() server.Metrics {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked++
	return server.Metrics{}
}

func (f *faked) Read(context.Context) (server.Reading, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked++
	return f.reading, f.err
}

func (f *faked) Healthy(context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked++
	return f.err
}

// families is the names of Kagzi's own metrics, with how many series each has.
func families(t *testing.T, f *faked, log *slog.Logger) func() map[string]int {
	r := newRegistry(newScraper(f, "v1", log))
	return func() map[string]int {
		t.Helper()
		gathered, err := r.Gather()
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]int{}
		for _, family := range gathered {
			if strings.HasPrefix(family.GetName(), "kagzi_") {
				found[family.GetName()] = len(family.Metric)
			}
		}
		return found
	}
}

func TestNobodyIsAskedUnlessSomebodyCollects(t *testing.T) {
	f := &faked{}
	families(t, f, slog.New(slog.DiscardHandler))
	if f.asked != 0 {
		t.Errorf("asked %d times, want none", f.asked)
	}
}

func TestADatabaseThatCannotBeReadIsToldOnceAndItsMetricsAreMissing(t *testing.T) {
	lines := make(chan string, 10)
	f := &faked{err: errors.New("no answer")}
	collect := families(t, f, newLog(toChannel(lines), slog.LevelInfo, "text"))
	missing := collect()
	for _, m := range allMetrics {
		name := regexp.MustCompile(`kagzi_\w+`).FindString(m.desc.String())
		if m.held == (missing[name] > 0) && !strings.HasPrefix(name, "kagzi_api_") && name != "kagzi_notifications_total" {
			t.Errorf("%s has %d series while the database cannot be read", name, missing[name])
		}
	}
	collect()
	f.err = nil
	if found := collect(); found["kagzi_runs"] != 8 {
		t.Errorf("kagzi_runs has %d series when the database can be read again, want 8", found["kagzi_runs"])
	}
	if n := len(lines); n != 2 {
		t.Fatalf("%d lines are logged, want one when it begins and one when it is over", n)
	}
	if first, last := <-lines, <-lines; !strings.Contains(first, "no answer") || !strings.Contains(last, "again") {
		t.Errorf("log = %s%s", first, last)
	}
}

// hanging is figures of a database that says nothing any more, which the server takes for trouble and for unreadable when it has waited long enough.
type hanging struct{ faked }

func (*hanging) Healthy(context.Context) error {
	time.Sleep(4 * time.Second)
	return errors.New("no answer")
}

func (*hanging) Read(context.Context) (server.Reading, error) {
	time.Sleep(8 * time.Second)
	return server.Reading{}, errors.New("no answer")
}

func TestCollectorsHearOfADatabaseThatHangsBeforeTheyGiveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		collect := newRegistry(newScraper(&hanging{}, "v1", slog.New(slog.DiscardHandler)))
		began := time.Now()
		gathered, err := collect.Gather()
		if err != nil {
			t.Fatal(err)
		}
		const usual = 10 * time.Second // that collectors wait
		if took := time.Since(began); took >= usual {
			t.Errorf("the answer took %s, and collectors wait for %s", took, usual)
		}
		told := 0
		for _, family := range gathered {
			if name := family.GetName(); name == "kagzi_healthy" || name == "kagzi_database_read" {
				told++
				if value := family.Metric[0].GetGauge().GetValue(); value != 0 {
					t.Errorf("%s = %v, want 0", name, value)
				}
			}
		}
		if told != 2 {
			t.Errorf("%d of 2 metrics are told", told)
		}
	})
}

// queues is n queues with as many pending runs as their numbers say, from first on.
func queues(first, n int) []server.QueueReading {
	var list []server.QueueReading
	for i := first; i < first+n; i++ {
		list = append(list, server.QueueReading{Namespace: "n", QueueDepth: engine.QueueDepth{
			Queue: fmt.Sprintf("q%04d", i), Pending: int64(i), OnlineWorkers: 1, Unserved: map[string]int64{"t": 1}, OldestDue: time.Unix(int64(i+1), 0),
		}})
	}
	return list
}

func TestTheNumberOfQueuesWithMetricsIsBounded(t *testing.T) {
	f := &faked{reading: server.Reading{At: time.Unix(10_000, 0), Queues: queues(0, 5000)}}
	found := families(t, f, slog.New(slog.DiscardHandler))()
	if found["kagzi_queue_runs"] != 3*(maxPlaces+1) || found["kagzi_queue_workers_online"] != maxPlaces+1 {
		t.Errorf("%d and %d series, want those of %d queues and the others", found["kagzi_queue_runs"], found["kagzi_queue_workers_online"], maxPlaces)
	}
}

func TestQueuesKeepTheirPlacesAndTheOthersAreOne(t *testing.T) {
	var p places
	seated := func(list []server.QueueReading) map[string]bool {
		names := map[string]bool{}
		for _, q := range list {
			names[q.Queue] = true
		}
		return names
	}
	first := p.seat(queues(0, maxPlaces+3))
	want := server.QueueReading{Namespace: "(others)", QueueDepth: engine.QueueDepth{
		Queue: "(others)", Pending: 0 + 1 + 2, OnlineWorkers: 3, OldestDue: time.Unix(1, 0), Unserved: map[string]int64{"(others)": 3},
	}}
	if diff := cmp.Diff(want, first[maxPlaces]); diff != "" {
		t.Errorf("the others (-want +got):\n%s", diff)
	}
	before := seated(first)
	grown := queues(0, maxPlaces+3)
	grown[0].Pending = 1_000_000 // which has no place
	if again := seated(p.seat(grown)); !maps.Equal(before, again) {
		t.Error("a queue that grew took another's place")
	}
	if after := seated(p.seat(append(grown[:1:1], grown[4:]...))); after["q0003"] || !after["q0000"] {
		t.Error("a place that became free was not given to the queue with the most runs")
	}
	if few := p.seat(queues(0, 3)); len(few) != 3 {
		t.Errorf("%d rows of 3 queues, want no others", len(few))
	}
}
