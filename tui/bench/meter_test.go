package bench

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

const someMetrics = `# HELP kagzi_commit_writes Writes that shared a commit.
# TYPE kagzi_commit_writes histogram
kagzi_commit_writes_bucket{le="1"} 2
kagzi_commit_writes_sum 30
kagzi_commit_writes_count 4
kagzi_claim_duration_seconds_sum 0.5
kagzi_claim_duration_seconds_count 1e+06
`

func TestCountersAreReadFromMetricsAndAddedUp(t *testing.T) {
	var c counters
	for range 2 {
		if err := c.add(strings.NewReader(someMetrics)); err != nil {
			t.Fatal(err)
		}
	}
	if want := (counters{commits: 8, writes: 60, claims: 2e6}); c != want {
		t.Errorf("counters = %+v, want %+v", c, want)
	}
	if got, want := c.minus(counters{commits: 1, writes: 2, claims: 3}),
		(counters{commits: 7, writes: 58, claims: 2e6 - 3}); got != want {
		t.Errorf("difference = %+v, want %+v", got, want)
	}
	for _, wrong := range []string{"", "kagzi_commit_writes_sum 30\n",
		strings.ReplaceAll(someMetrics, " 30", " thirty")} {
		if err := new(counters).add(strings.NewReader(wrong)); err == nil {
			t.Errorf("%q was taken", wrong)
		}
	}
}

func TestAMeterCountsWhatAServerDidMeanwhileAndNothingBefore(t *testing.T) {
	commits := "4"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(strings.ReplaceAll(someMetrics, "count 4", "count "+commits)))
	}))
	defer server.Close()
	r := &fixture{servers: []place{{metrics: strings.TrimPrefix(server.URL, "http://"), pid: os.Getpid()}}}
	m, err := r.meter(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	commits = "104"
	c, err := m.end("drain", "run", 50)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range c.figures {
		got[f.name] = f.value
	}
	if c.stretch != "drain" || c.per != "run" || got[commitsEach] != 2 {
		t.Errorf("cost = %+v, want 2 commits a run", c)
	}
	if runtime.GOOS == "linux" && (got[memoryPeak] <= 0 || got[memoryPeak] < got[memoryFirst]) {
		t.Errorf("memory = %v", got)
	}
	commits = "no number"
	if _, err := r.meter(t.Context()); err == nil {
		t.Error("metrics that cannot be read are no error")
	}
}

func TestMemoryIsToldOfTheFirstAndTheLastTenth(t *testing.T) {
	looks := make([]float64, 40)
	for i := range looks {
		looks[i] = float64(i)
	}
	looks[20] = 99
	got := memoryFigures(looks)
	want := []figure{{memoryFirst, "MiB", 1.5}, {memoryLast, "MiB", 37.5}, {memoryPeak, "MiB", 99}}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("figure %d = %v, want %v", i, got[i], want[i])
		}
	}
	if one := memoryFigures([]float64{5}); len(one) != 3 || one[0].value != 5 || one[1].value != 5 {
		t.Errorf("memory of one look = %v", one)
	}
	if none := memoryFigures(nil); none != nil {
		t.Errorf("memory without a look = %v", none)
	}
}

func TestAProcessIsSeenWhereTheSystemTells(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells of other processes without further tools")
	}
	before, known := processorTime(os.Getpid())
	if !known {
		t.Fatal("this process's time is unknown")
	}
	for began := time.Now(); time.Since(began) < 10*time.Second; {
		if after, _ := processorTime(os.Getpid()); after > before {
			break
		}
	}
	if after, _ := processorTime(os.Getpid()); after <= before {
		t.Error("no time passed for a process that is busy")
	}
	if n, known := residentBytes(os.Getpid()); !known || n < 1<<20 {
		t.Errorf("memory of this process = %d, %v", n, known)
	}
	if _, known := processorTime(0); known {
		t.Error("a process that is not there has used time")
	}
	if _, known := postgresTime("far.example/kagzi"); known {
		t.Error("a database elsewhere has used time here")
	}
}

// TestFamilyTime runs a shell whose child computes until the shell's input ends.
func TestFamilyTime(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells of other processes without further tools")
	}
	shell := exec.Command("sh", "-c", "(while :; do :; done) & read end; kill $!")
	input, err := shell.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = input.Close()
		_ = shell.Wait()
	}()
	pid := shell.Process.Pid
	for began := time.Now(); time.Since(began) < 10*time.Second; {
		own, _ := processorTime(pid)
		if all, known := familyTime(pid); known && all >= own+50*time.Millisecond {
			return
		}
	}
	t.Error("the time of the shell's child does not count")
}

func TestAReportNamesTheMachineTheCommandAndTheDurability(t *testing.T) {
	o := options{workloads: "W1,W6", scale: 0.5, slots: 100, repeat: 3, servers: 1, db: "postgres://u:secret@h/d",
		markdown: true}
	r := newReport(o, &target{db: o.db, servers: 1, info: &kagziv1.GetServerInfoResponse{
		Version: "v9", Backend: "postgres", BackendVersion: "15.1",
		Facts: []*kagziv1.ServerFact{{Section: "database", Name: "durability", Value: "fsync=on"}},
	}}, [][]figure{{{sorting, "million numbers/s", 10}, {roundTrip, "µs", 20}},
		{{sorting, "million numbers/s", 6}, {roundTrip, "µs", 20}}})
	r.add(oneStep, plan{inFlight: 1}, []sample{
		{figures: []figure{{"p50", "ms", 1.5}}, runs: 1,
			costs: []cost{{stretch: "drain", per: "run", figures: []figure{{serverTime, "µs", 42}}}}}})
	var out strings.Builder
	if err := r.print(&out, o); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"kagzi v9, postgres 15.1 (fsync=on)",
		"\nMachine before each measurement: one core sorts 8.00 million numbers/s (6.00..10.0), round trip over loopback 20.0 µs\n",
		"kagzi bench --workload W1,W6 --scale 0.5 --repeat 3\n",
		"| workload | figure | median | unit | min..max | counted |\n| --- | --- | ---: |",
		"| W3 1 step, one run at a time | p50 | 1.50 | ms | 1.50..1.50 | 1 run, 1 in flight, 0.0 s |\n",
		"| W3 drain | run | 42.0 |",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "secret") {
		t.Error("the report holds a password")
	}
}

// The usage of a part that was unknown at first, such as a Postgres with a namesake, is unknown
// before that.
func TestAMeterLeavesOutTheTimeOfWhatWasNotKnownWhenItBegan(t *testing.T) {
	if _, known := processorTime(os.Getpid()); !known {
		t.Skip("this system tells nothing of processes")
	}
	r := &fixture{servers: []place{{pid: os.Getpid()}}}
	m, err := r.meter(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	delete(m.before.measured, serverTime)
	c, err := m.end("", "run", 1)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, f := range c.figures {
		names[f.name] = true
	}
	if names[serverTime] || !names[loadTime] {
		t.Errorf("cost = %+v, want the time of the load, and none of the server", c)
	}
	if !(reading{measured: map[string]bool{workerTime: true}}).since((&fixture{}).read(), workerTime) {
		t.Error("the time of workers that were started meanwhile is not known")
	}
}
