//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine/lab/torture/workload"

	"github.com/kagzi/kagzi/engine/lab/torture/fixture"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/kagzi/kagzi/engine/lab/torture/check"
	"github.com/kagzi/kagzi/engine/lab/torture/history"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

func TestVerdictOfAReport(t *testing.T) {
	violated := []check.Line{{ID: "I1"}, {ID: "I2", Violations: []string{"x"}}}
	slow, broken := []figure{{name: "speed"}}, []figure{{name: "promise", hard: true}}
	for name, test := range map[string]struct {
		report       report
		want, strict int
	}{
		"nothing is wrong": {report{lines: violated[:1], figures: []figure{{ok: true, hard: true}}},
			exitHeld, exitHeld},
		"a violation":                  {report{lines: violated}, exitViolated, exitViolated},
		"a violation that proves less": {report{lines: violated, vacuous: []string{"x"}}, exitViolated, exitViolated},
		"trouble":                      {report{trouble: []string{"x"}}, exitViolated, exitViolated},
		"a promise that was not kept":  {report{figures: broken}, exitViolated, exitViolated},
		"a speed that was not met":     {report{figures: slow}, exitHeld, exitViolated},
		"too little happened": {report{lines: violated[:1], vacuous: []string{"x"}}, exitVacuous,
			exitVacuous},
		"one of two figures was missed": {report{figures: append(slices.Clone(broken), figure{ok: true})}, exitViolated,
			exitViolated},
	} {
		for strict, want := range map[bool]int{false: test.want, true: test.strict} {
			if got := test.report.print(scenario{}, options{strict: strict}, 0); got != want {
				t.Errorf("%s, strict %t: exit code %d, want %d", name, strict, got, want)
			}
		}
	}
}

func TestAControlHasToLoseAcknowledgedWrites(t *testing.T) {
	line := func(id string) check.Line { return check.Line{ID: id, Violations: []string{"x"}} }
	for name, test := range map[string]struct {
		lines []check.Line
		want  int
	}{
		"a start was lost":    {[]check.Line{line("I1")}, exitHeld},
		"a result was lost":   {[]check.Line{line("I2")}, exitHeld},
		"an end was lost":     {[]check.Line{line("I4")}, exitHeld},
		"an order of it all":  {[]check.Line{line("LIN")}, exitHeld},
		"a tick was lost":     {[]check.Line{line("I6"), line("I12"), line("I13"), {ID: "I1"}}, exitVacuous},
		"nothing was lost":    {[]check.Line{{ID: "I1"}}, exitVacuous},
		"nothing was checked": {nil, exitVacuous},
	} {
		r := &report{lines: test.lines, trouble: []string{"a run is not there"}}
		r.turnOver()
		if got := r.print(scenario{}, options{}, 0); got != test.want {
			t.Errorf("%s: exit code %d, want %d", name, got, test.want)
		}
	}
}

func TestTheWorstOfAllTellsTheExitCode(t *testing.T) {
	comes := func(r *report, err error) attempt {
		return attempt{scenario{id: "X", alone: func(context.Context, options) (*report, error) {
			return r, err
		}}, dbSQLite}
	}
	held, vacuous := comes(&report{}, nil), comes(&report{vacuous: []string{"x"}}, nil)
	violated, failed, notHere := comes(&report{trouble: []string{"x"}}, nil), comes(nil, errors.New("x")),
		comes(nil, fixture.NotHere("x"))
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for name, test := range map[string]struct {
		ctx      context.Context
		attempts []attempt
		want     int
	}{
		"all held":                          {t.Context(), []attempt{held, held}, exitHeld},
		"some cannot be tried":              {t.Context(), []attempt{notHere, held}, exitHeld},
		"none can be tried":                 {t.Context(), []attempt{notHere, notHere}, exitNotHere},
		"one proves nothing":                {t.Context(), []attempt{held, vacuous, held}, exitVacuous},
		"one did not run":                   {t.Context(), []attempt{failed, held}, exitVacuous},
		"one is violated":                   {t.Context(), []attempt{vacuous, violated, held, notHere}, exitViolated},
		"somebody ended it before it began": {over, []attempt{held}, exitVacuous},
	} {
		if got := tortureAll(test.ctx, t.TempDir(), test.attempts, options{}); got != test.want {
			t.Errorf("%s: exit code %d, want %d", name, got, test.want)
		}
	}
}

func TestAScenarioThatProvedNothingIsRepeatedForLonger(t *testing.T) {
	least := 3 * time.Second
	for name, test := range map[string]struct {
		again    int
		reports  []*report // of the attempts in order; nil: not run
		want     int
		attempts int
	}{
		"enough happened the second time": {1, []*report{{vacuous: []string{"x"}}, {}}, exitHeld, 2},
		"too little happened each time": {1, []*report{{vacuous: []string{"x"}}, {vacuous: []string{"x"}}},
			exitVacuous, 2},
		"it may not be repeated": {0, []*report{{vacuous: []string{"x"}}}, exitVacuous, 1},
		"a violation is final":   {1, []*report{{trouble: []string{"x"}}}, exitViolated, 1},
		"a violation the second time": {1, []*report{{vacuous: []string{"x"}}, {trouble: []string{"x"}}},
			exitViolated, 2},
		"an error is final": {1, []*report{nil}, exitVacuous, 1},
	} {
		var took []time.Duration
		dirs := map[string]bool{}
		s := scenario{id: "X", least: least, alone: func(_ context.Context, o options) (*report, error) {
			took, dirs[o.dir] = append(took, o.duration), true
			if r := test.reports[len(took)-1]; r != nil {
				return r, nil
			}
			return nil, errors.New("x")
		}}
		r := tortureUntilProven(t.Context(), t.TempDir(), attempt{s, dbSQLite},
			options{again: test.again, duration: time.Second})
		if r.code != test.want || len(took) != test.attempts || len(dirs) != test.attempts {
			t.Errorf("%s: exit code %d after %d attempts in %d directories, want %d and %d", name, r.code, len(took),
				len(dirs), test.want, test.attempts)
		}
		if len(took) == 2 && took[1] != 2*least {
			t.Errorf("%s: repeated for %s, want %s", name, took[1], 2*least)
		}
	}
}

func TestScenariosRunInParallel(t *testing.T) {
	var attempts []attempt
	together := make(chan struct{})
	for _, id := range []string{"A", "B"} {
		attempts = append(attempts, attempt{scenario{
			id: id, alone: func(ctx context.Context, _ options) (*report, error) {
				select { // each waits for the other
				case together <- struct{}{}:
				case <-together:
				case <-time.After(10 * time.Second):
					return nil, errors.New("they do not run in parallel")
				}
				return &report{}, nil
			}}, dbSQLite})
	}
	if got := tortureAll(t.Context(), t.TempDir(), attempts, options{atOnce: 2}); got != exitHeld {
		t.Errorf("exit code %d, want %d", got, exitHeld)
	}
}

func TestAScenarioThatIsNotThereDoesNotPass(t *testing.T) {
	for _, ids := range []string{"F-01,F-99", "F-99", "f-01", "F-00, F-01", "F-01,F-02"} { // F-02 is for Postgres
		kept := filepath.Join(t.TempDir(), "kept")
		code := command(t.Context(), []string{"--scenario", ids, "--db", "sqlite", "--server", "/nowhere",
			"--keep", kept})
		if _, err := os.Stat(kept); code != exitVacuous || err == nil || len(unknown(ids, dbSQLite)) != 1 {
			t.Errorf("%q: exit code %d, begun %t, unknown %q; want %d, nothing begun, and one", ids, code, err == nil,
				unknown(ids, dbSQLite), exitVacuous)
		}
	}
	for _, ids := range []string{"", "F-01,", "F", "F-40,H,L-01"} {
		if wrong := unknown(ids, ""); len(wrong) > 0 {
			t.Errorf("%q: unknown %q, want none", ids, wrong)
		}
	}
}

func TestALineThatHeldNothingProvesNothing(t *testing.T) {
	lines := func(without string) (lines []check.Line) {
		for _, l := range check.Invariants(&check.Case{}) {
			if l.Checked = 1; l.ID == without {
				l.Checked = 0
			}
			lines = append(lines, l)
		}
		return lines
	}
	for _, l := range lines("") {
		for _, lossy := range []bool{false, true} {
			want := 1 // the others are optional in a load: replays, sleeps, failures
			if slices.Contains([]string{"I3", "I10", "I11"}, l.ID) || lossy && l.ID == "LIN" {
				want = 0
			}
			if got := blind(lines(l.ID), lossy); len(got) != want {
				t.Errorf("nothing was held to %s, lossy %t: %q, want %d", l.ID, lossy, got, want)
			}
		}
	}
	if got := blind(lines(""), false); len(got) > 0 {
		t.Errorf("all was held to something: %q", got)
	}
}

func TestAClientThatLearnsOfNoEndIsTrouble(t *testing.T) {
	for name, test := range map[string]struct {
		ended    int64
		scenario scenario
		want     int
	}{
		"all have heard":                   {3, scenario{}, 0},
		"one has not":                      {2, scenario{}, 1},
		"one has not, where runs are lost": {2, scenario{lossy: true}, 0},
		"one has not, in a control":        {2, scenario{control: true}, 0},
	} {
		tortured := &torture{scenario: test.scenario, load: &workload.Load{}, system: &system{}}
		tortured.load.Started.Store(3)
		tortured.load.Ended.Store(test.ended)
		tortured.countUnheard()
		if got := tortured.system.trouble; len(got) != test.want {
			t.Errorf("%s: trouble %q, want %d", name, got, test.want)
		}
	}
}

// planner is a server with one schedule.
type planner struct {
	kagziv1.UnimplementedWorkflowScheduleServiceServer
	next   time.Time
	paused bool
}

func (p *planner) schedule() *kagziv1.WorkflowSchedule {
	return &kagziv1.WorkflowSchedule{ScheduleId: "s", NextFireAt: timestamppb.New(p.next)}
}

func (p *planner) GetWorkflowSchedule(context.Context,
	*kagziv1.GetWorkflowScheduleRequest) (*kagziv1.GetWorkflowScheduleResponse, error) {
	return &kagziv1.GetWorkflowScheduleResponse{Schedule: p.schedule()}, nil
}

func (p *planner) PauseWorkflowSchedule(context.Context,
	*kagziv1.PauseWorkflowScheduleRequest) (*kagziv1.PauseWorkflowScheduleResponse, error) {
	p.paused = true
	return &kagziv1.PauseWorkflowScheduleResponse{Schedule: p.schedule()}, nil
}

func TestAScheduleThatDoesNotCatchUpIsTrouble(t *testing.T) {
	const day = 24 * time.Hour
	for _, test := range []struct {
		next     time.Duration
		settings []setting
		want     int
	}{
		{time.Hour, nil, 0},
		{-time.Hour, nil, 1},
		{time.Hour, []setting{{}, {1, day}}, 1}, // a day behind, by the servers' clock
		{day + time.Hour, []setting{{}, {1, day}}, 0},
		{time.Hour, []setting{{}, {1, day}, {2, 0}}, 0},
	} {
		p := &planner{next: time.Now().Add(test.next)}
		sdk := clientOf(t, func(s *grpc.Server) { kagziv1.RegisterWorkflowScheduleServiceServer(s, p) })
		tortured := &torture{system: &system{}, settings: test.settings}
		if err := tortured.retire(t.Context(), sdk.Schedule("s"), 0); err != nil || !p.paused {
			t.Errorf("next tick in %s: %v, paused %t, want it paused", test.next, err, p.paused)
		}
		if got := tortured.system.trouble; len(got) != test.want {
			t.Errorf("next tick in %s, clock %v: trouble %q, want %d", test.next, test.settings, got, test.want)
		}
	}
}

func TestAWrongAnswerOfADamagedFileStaysOne(t *testing.T) {
	for name, test := range map[string]struct {
		does string
		came fate
		want fate
	}{
		"right answers, and it still runs":         {"sleep 60", harmless, harmless},
		"an error, and it still runs":              {"sleep 60", noticed, noticed},
		"an error, and it ends as it should":       {"echo kagzi db restore; exit 71", noticed, noticed},
		"right answers, and it ends as it should":  {"echo kagzi db restore; exit 71", harmless, noticed},
		"it ends with another code":                {"echo kagzi db restore; exit 1", harmless, broken},
		"it ends and does not say what to do":      {"exit 71", harmless, broken},
		"a wrong answer, and it still runs":        {"sleep 60", wrong, wrong},
		"a wrong answer, and it ends as it should": {"echo kagzi db restore; exit 71", wrong, wrong},
		"it reports a panic, and still runs":       {"echo panic; exec sleep 60", harmless, broken},
	} {
		life, err := fixture.Spawn(exec.Command("sh", "-c", test.does), filepath.Join(t.TempDir(), "log"))
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case strings.Contains(test.does, "exit"):
			life.Exit()
		case strings.Contains(test.does, "panic"):
			<-life.Out.Printed
		}
		if got, detail, err := afterAnswers(&system{servers: []*server{{life: life}}}, test.came,
			"detail"); got != test.want || err != nil {
			t.Errorf("%s: %s (%s, %v), want %s", name, got, detail, err, test.want)
		}
		life.Kill()
	}
}

func TestEachNeedThatIsNotMetProvesNothing(t *testing.T) {
	start := func(request string, asked int64, o history.Outcome) history.Event {
		return history.Event{Op: history.Start, Request: request, Outcome: o, Invoked: asked * sec,
			Returned: (asked + 1) * sec}
	}
	fault := func(what string, at int64, o history.Outcome) history.Event {
		return history.Event{Op: history.Fault, Step: what, Outcome: o, Invoked: at * sec, Returned: at * sec}
	}
	claim := func(proc, token string, at int64) history.Event {
		return history.Event{Op: history.Claim, Proc: proc, Run: "r", Token: token, Outcome: history.OK,
			Invoked: at * sec, Returned: at * sec}
	}
	sound := []history.Event{
		start("a", 1, history.OK), start("b", 21, history.OK), start("b", 22, history.OK), claim("w", "1", 11),
		fault(faultOnWorker+"w", 12, history.OK), claim("x", "2", 15),
		{Op: history.Complete, Run: "r", Token: "1", Outcome: history.Refused, Code: "LEASE_LOST", Status: "RUNNING",
			Invoked: 16 * sec, Returned: 16 * sec},
	}
	n := need{faults: 1, takeovers: 1, late: 1, repeated: 1, cutShort: 1}
	without := func(i int) []history.Event { return slices.Delete(slices.Clone(sound), i, i+1) }
	cancelled := slices.Clone(sound)
	cancelled[6].Status = "CANCELLED"
	for name, test := range map[string]struct {
		events   []history.Event
		need     need
		inject   func(context.Context, *torture) error
		cutShort int
		want     []string
	}{
		"all is met":        {sound, n, powerCuts, 1, nil},
		"nothing is needed": {[]history.Event{start("a", 1, history.OK)}, need{}, nil, 0, nil},
		"no start at all":   {nil, need{}, nil, 0, []string{"starts outside"}},
		"starts within the faults alone": {[]history.Event{start("a", 15, history.OK)}, need{}, nil, 0,
			[]string{"starts outside"}},
		"a fifth of the starts are not acknowledged": {
			[]history.Event{start("a", 1, history.OK), start("b", 2, history.OK), start("c", 3, history.OK),
				start("d", 4, history.OK),
				start("e", 5, history.Unknown)}, need{}, nil, 0, nil},
		"a fourth of them": {[]history.Event{
			start("a", 1, history.OK), start("b", 2, history.OK), start("c", 3, history.OK),
			start("d", 4, history.Refused)}, need{}, nil, 0, []string{"starts outside"}},
		"no fault": {[]history.Event{start("a", 1, history.OK)}, need{}, powerCuts, 0,
			[]string{"of 0 faults"}},
		"a fault that missed": {[]history.Event{
			start("a", 1, history.OK), fault("x", 11, history.OK), fault("x", 12, history.Refused)}, need{}, powerCuts,
			0, []string{"1 of 2 faults"}},
		"no takeover":          {without(5), n, powerCuts, 1, []string{"0 runs were taken over"}},
		"no late write":        {without(6), n, powerCuts, 1, []string{"0 late writes"}},
		"one of an ended run":  {cancelled, n, powerCuts, 1, []string{"0 late writes"}},
		"no start is repeated": {without(2), n, powerCuts, 1, []string{"0 starts were repeated"}},
		"no upgrade is killed": {sound, n, powerCuts, 0, []string{"0 upgrades were killed"}},
	} {
		tortured := &torture{scenario: scenario{need: test.need, inject: test.inject}, events: test.events,
			faulty: 10 * sec, healed: 20 * sec, cutShort: test.cutShort}
		_, got := tortured.vacuous()
		if len(got) != len(test.want) || len(got) == 1 && !strings.Contains(got[0], test.want[0]) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// TestWhatIsJudged has a run that is still open, and a client that was told of it and of another
// run that does not exist.
func TestWhatIsJudged(t *testing.T) {
	id := strings.Repeat("11", 16)
	dir, _ := landed(
		t, `insert into runs (run_id, namespace, request_id, lane_id, task_queue, workflow_type, status, created_at)
		values (x'`+id+`', 'default', 'a', 1, 'queue', 'type', 3, 1)`)
	run := strings.Join([]string{id[:8], id[:4], id[:4], id[:4], id[:12]}, "-")
	for name, test := range map[string]struct {
		scenario scenario
		broken   string
	}{
		"a scenario":                        {scenario{}, "I1 I7"},
		"one in which runs are lost":        {scenario{lossy: true}, "I7"},
		"one in which they have to be lost": {scenario{control: true}, ""},
	} {
		tortured := &torture{
			scenario: test.scenario, options: options{program: "true", dir: dir},
			system:  &system{log: history.NewLog("faults"), shape: shape{DataDir: dir}, trouble: []string{"x"}},
			load:    &workload.Load{Clients: []*workload.Client{{Log: history.NewLog("client")}}},
			replays: history.NewLog("replayer"),
		}
		tortured.load.Expected.Store("a", check.Wanted{Type: "type", Queue: "queue"})
		tortured.load.Expected.Store("b", check.Wanted{Type: "type", Queue: "queue"})
		start := func(log *history.Log, request, run string) {
			e := log.Begin(history.Event{Op: history.Start, Request: request})
			e.Outcome, e.Run = history.OK, run
			log.Finish(e)
		}
		start(tortured.load.Clients[0].Log, "a", run)
		start(tortured.replays, "b", "gone")
		tortured.system.fault("x", func() bool { return true })
		r, err := tortured.judge(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var broken []string
		for _, l := range r.lines {
			if len(l.Violations) > 0 {
				broken = append(broken, l.ID)
			}
		}
		if got := strings.Join(broken, " "); got != test.broken {
			t.Errorf("%s: broken = %q, want %q", name, got, test.broken)
		}
		if control := test.scenario.control; (len(r.trouble) == 0) != control || control &&
			(len(r.figures) != 1 || r.figures[0].got != "1") || !control && len(r.figures) != 4 {
			t.Errorf("%s: trouble %q, figures %v", name, r.trouble, r.figures)
		}
		if !strings.HasPrefix(strings.Join(r.vacuous, "; "), "I2 checked nothing") ||
			!strings.HasPrefix(r.scope, "1 faults, 1 runs, 2 operations") {
			t.Errorf("%s: vacuous %q, scope %q", name, r.vacuous, r.scope)
		}
		if events, err := history.Read(filepath.Join(dir, "history.jsonl")); err != nil || len(events) != 3 {
			t.Errorf("%s: the history has %v (%v), want the fault and two starts", name, events, err)
		}
	}
}

func TestAllLivesOfAllWorkersTell(t *testing.T) {
	r := &system{log: history.NewLog("faults"), dir: t.TempDir()}
	for i, lives := range []int{2, 1, 0} {
		w := &worker{system: r, name: fmt.Sprint("w", i), lives: lives}
		r.workers = append(r.workers, w)
		for life := 1; life <= lives; life++ {
			if err := history.Write(w.history(life),
				[]history.Event{{Proc: w.alias(), Seq: int64(life), Op: history.Claim}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	r.fault("x", func() bool { return false })
	events, err := r.events()
	if err != nil || len(events) != 4 || events[0].Outcome != history.Refused {
		t.Errorf("events = %v (%v), want a fault that missed, and one of each life", events, err)
	}
	if err := os.WriteFile(r.workers[0].history(1), []byte("x\ny\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if events, err := r.events(); err == nil {
		t.Errorf("events = %v, want an error: one life cannot be read", events)
	}
}

// lists is a server that has no runs, and whose third answer is an error.
type lists struct {
	kagziv1.UnimplementedWorkflowServiceServer
	calls atomic.Int64
}

func (l *lists) ListWorkflows(context.Context, *kagziv1.ListWorkflowsRequest) (*kagziv1.ListWorkflowsResponse, error) {
	if l.calls.Add(1) == 3 {
		return nil, status.Error(codes.ResourceExhausted, "not now")
	}
	return &kagziv1.ListWorkflowsResponse{}, nil
}

func TestWhatIsAskedOfAHealedSystem(t *testing.T) {
	sdk := clientOf(t, func(s *grpc.Server) { kagziv1.RegisterWorkflowServiceServer(s, &lists{}) })
	tortured := &torture{system: &system{}, load: &workload.Load{Clients: []*workload.Client{{SDK: sdk}}}}
	tortured.load.Started.Store(1)
	rest, gaveUp := context.WithCancel(t.Context())
	if err := tortured.settle(t.Context(), gaveUp); err != nil || rest.Err() == nil {
		t.Fatalf("settle: %v; clients that wait on: %t", err, rest.Err() == nil)
	}
	got := tortured.system.trouble
	if len(got) != 2 || !strings.HasPrefix(got[0], "1 of 1 clients have not heard") ||
		!strings.HasPrefix(got[1], "call 3 of 20 after the faults") {
		t.Errorf("trouble %q, want the client that has heard nothing, and the call that failed", got)
	}
}
