package daemon

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// get requests a path over HTTP.
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

// samples parses metrics into values by series.
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

// busy returns a server on which a worker completed one of two runs.
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
		if _, err := runs.StartWorkflow(ctx, &kagziv1.StartWorkflowRequest{
			WorkflowType: "t", TaskQueue: "q"}); err != nil {
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
			send(&kagziv1.SessionRequest{Seq: 3, Operation: &kagziv1.SessionRequest_CompleteWorkflow{
				CompleteWorkflow: &kagziv1.CompleteWorkflowRequest{
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
		`kagzi_claim_duration_seconds_count`, `kagzi_commit_writes_count`, `kagzi_commit_writes_sum`,
		`kagzi_database_size_bytes`,
		`kagzi_notifications_total{kind="queue"}`,
		`kagzi_queue_oldest_due_run_age_seconds{namespace="default",queue="q"}`,
		`go_goroutines`, `process_start_time_seconds`,
	} {
		if got[name] <= 0 {
			t.Errorf("%s = %v, want more than 0", name, got[name])
		}
	}
	if one, all := got[`kagzi_commit_duration_seconds_bucket{le="0.0001"}`],
		got[`kagzi_commit_duration_seconds_bucket{le="+Inf"}`]; one > all || all != 1 {
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

// dashboard is the part of a Grafana dashboard that the test reads.
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
		labels[name] = append(labels[name], "job", "instance") // added by the collector
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
