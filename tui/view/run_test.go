package view

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/model"
	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/scenario"
)

// absent is a run id that exists in no shop.
const absent = "0193a1b2-0000-7000-8000-000000000000"

// runOf returns the command that opens a piece of a shop, or a run that does not exist if the shop
// has no pieces.
func runOf(piece scenario.Piece) func(*shop) string {
	return func(w *shop) string {
		if id := w.ID(piece); id != "" {
			return "run " + id
		}
		return "run " + absent
	}
}

// onPiece runs body on a piece of a shop.
func onPiece(t *testing.T, piece scenario.Piece, width, height int, body func(r *fixture, w *shop, p *runPage)) {
	t.Helper()
	var w *shop
	options := func() Options {
		w = newShop()
		return Options{API: w, Open: runOf(piece)(w), Now: w.Now}
	}
	onFixture(t, options, width, height, func(r *fixture) {
		body(r, w, r.app.trails.top().(*runPage))
	})
}

// goOn advances the shop and the program together.
func (r *fixture) goOn(w *shop, d time.Duration) {
	for step := 500 * time.Millisecond; d > 0; d -= step {
		w.Advance(min(step, d))
		r.pass(min(step, d))
	}
}

func TestARunLooksRight(t *testing.T) { goldenView(t, "run", runOf(scenario.Failed)) }

// looks lists tabs with the runs that show them best.
var looks = []struct {
	name  string
	piece scenario.Piece
	keys  []string
}{
	{"a run that waits for a worker", scenario.Waiting, nil},
	{"a run that is being tried again", scenario.Retrying, nil},
	{"a run that goes on", scenario.Growing, nil},
	{"a run that a person paused", scenario.Paused, nil},
	{"a run that is being cancelled", scenario.Cancelling, nil},
	{"the attempts of a step", scenario.Retrying, []string{"enter"}},
	{"tree", scenario.Family, []string{"2", "j", "l"}},
	{"input and output", scenario.Family, []string{"3", "o"}},
	{"an input that is no JSON", scenario.Text, []string{"3"}},
	{"an output that is an image", scenario.Binary, []string{"3", "o"}},
	{"error", scenario.Failed, []string{"4"}},
	{"errors that were retried", scenario.Retrying, []string{"4"}},
	{"no error", scenario.Chatty, []string{"4"}},
	{"events", scenario.Chatty, []string{"5"}},
	{"children", scenario.Family, []string{"6"}},
	{"meta", scenario.Overridden, []string{"7"}},
}

func TestTheTabsOfARunLookRight(t *testing.T) {
	var all strings.Builder
	for _, look := range looks {
		for _, size := range sizes[:3] {
			onPiece(t, look.piece, size.width, size.height, func(r *fixture, _ *shop, _ *runPage) {
				r.press(look.keys...)
				fmt.Fprintf(&all, "== %s, %dx%d\n%s", look.name, size.width, size.height, r.draw())
			})
		}
	}
	golden(t, "run_tabs", all.String())
}

func TestTheTimelineGrowsWhileAStepRuns(t *testing.T) {
	onPiece(t, scenario.Growing, 120, 32, func(r *fixture, w *shop, p *runPage) {
		if p.Pace() != time.Second {
			t.Errorf("the pace is %s while a step runs, want 1s", p.Pace())
		}
		lanes := len(p.run.Lanes())
		before := soFar(t, r)
		w.Advance(time.Second)
		r.pass(100 * time.Millisecond)
		if after := soFar(t, r); after-before != time.Second {
			t.Errorf("a second later the step has run for %s, before for %s", after, before)
		}
		r.goOn(w, 40*time.Second)
		if now := len(p.run.Lanes()); now < lanes+3 {
			t.Fatalf("40 s later there are %d steps, before there were %d", now, lanes)
		}
		if name, _ := p.SelectedStep(); name != p.run.Lanes()[len(p.run.Lanes())-1].Name {
			t.Errorf("the cursor stayed on %s instead of with the newest step", name)
		}
		r.shows("● " + p.run.Lanes()[len(p.run.Lanes())-1].Name)
	})
}

// soFar returns how long the step under the cursor has been running, by the timeline.
func soFar(t *testing.T, r *fixture) time.Duration {
	t.Helper()
	found := regexp.MustCompile(`so far (\S+)`).FindStringSubmatch(r.draw())
	if found == nil {
		t.Fatalf("no step is said to be running:\n%s", r.draw())
	}
	d, err := time.ParseDuration(found[1])
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestWhatARunContinuesIsCalledAsInTheListsOfItsFacts(t *testing.T) {
	onPiece(t, scenario.Failed, 80, 24, func(r *fixture, _ *shop, p *runPage) {
		run := proto.CloneOf(p.workflow())
		run.ContinuedFromRunId, run.ContinuedAsRunId = proto.String(absent), proto.String(absent)
		var head []string
		for _, f := range p.facts(run) {
			head = append(head, f.label)
		}
		for _, pair := range render.RunPairs(run, p.app.clock.View()) {
			if strings.HasPrefix(pair.Label, "Continued") && !slices.Contains(head, strings.ToLower(pair.Label)) {
				t.Errorf("the header %q does not say %q", head, pair.Label)
			}
		}
	})
}

func TestARunThatHasEndedStandsStill(t *testing.T) {
	onPiece(t, scenario.Terminated, 120, 32, func(r *fixture, w *shop, p *runPage) {
		if p.Pace() != slowPace {
			t.Errorf("the pace is %s after the end, want %s", p.Pace(), slowPace)
		}
		r.shows("⊘ parse", "█⊘", "2, 1 stopped")
		bars := strings.Split(r.draw(), "✓ fetch-feed")[1]
		r.goOn(w, 5*time.Second)
		if after := strings.Split(r.draw(), "✓ fetch-feed")[1]; after != bars {
			t.Errorf("a run that has ended goes on:\n%s\nbefore\n%s", after, bars)
		}
	})
}

func TestAStepThatWasOpenWhenItsRunEndedIsNotShownAsRunning(t *testing.T) {
	s := &kagziv1.Step{Name: "parse", Status: kagziv1.StepStatus_STEP_STATUS_RUNNING,
		Kind: kagziv1.StepKind_STEP_KIND_FUNCTION, StartedAt: timestamppb.New(begin), IsLatest: true}
	lanes := model.Lanes([]*kagziv1.Step{s})
	end := begin.Add(time.Minute)
	if lane := timelineLane(nil, &lanes[0], end, noSDK); lane.Sign.Word != "stopped" || !lane.Spans[0].To.Equal(end) {
		t.Errorf("after the end the step is %s until %s, want stopped until %s", lane.Sign.Word, lane.Spans[0].To, end)
	}
	if lane := timelineLane(nil, &lanes[0], time.Time{}, noSDK); lane.Sign.Word != "running" || !lane.Spans[0].To.IsZero() {
		t.Errorf("before the end the step is %s until %s, want running without an end", lane.Sign.Word,
			lane.Spans[0].To)
	}
}

func noSDK(string) string { return "" }

func TestTheTimelineNamesTheSDKOfAStepsWorker(t *testing.T) {
	lane := model.Lanes([]*kagziv1.Step{{Name: "parse", AttemptNumber: 2, WorkerId: "py-1",
		Kind: kagziv1.StepKind_STEP_KIND_FUNCTION, StartedAt: timestamppb.New(begin), IsLatest: true}})[0]
	sdk := func(worker string) string { return map[string]string{"py-1": "python 0.1.0"}[worker] }
	if got := laneNote(&lane, sdk); got != "attempt 2  py-1 (python 0.1.0)" {
		t.Errorf("got %q", got)
	}
	if got := laneNote(&lane, noSDK); got != "attempt 2  py-1" {
		t.Errorf("without an answer got %q", got)
	}
}

func TestAStepThatIsTriedAgainShowsItsAttempts(t *testing.T) {
	onPiece(t, scenario.Retrying, 120, 40, func(r *fixture, w *shop, p *runPage) {
		attempts := len(p.run.Attempts("pull-contacts"))
		r.shows("✗┄", "earlier attempts", "↻ pull-contacts")
		r.press("o")
		r.lacks("earlier attempts")
		r.press("enter")
		r.shows(fmt.Sprintf("Attempt %d  ↻ retrying", attempts), "Attempt 1  ✗ failed", "main.(*CRM).get",
			"the same error")
		r.goOn(w, time.Minute)
		r.shows(fmt.Sprintf("Attempt %d  ", attempts+1)) // while the list is open
		r.press("esc")
		r.lacks("Attempt 1")
	})
}

func TestARunThatDoesNotMoveSaysWhyAndNoLongerWhenItDoes(t *testing.T) {
	onPiece(t, scenario.Signalled, 120, 32, func(r *fixture, w *shop, p *runPage) {
		r.shows("◔ sleeping  waits for signal approval")
		_, err := w.SignalWorkflow(t.Context(), &kagziv1.SignalWorkflowRequest{
			Namespace: "default", RunId: p.run.ID(), Name: "approval",
			Payload: &kagziv1.Payload{Data: []byte(`{"approved":true,"by":"mira"}`)},
		})
		if err != nil {
			t.Fatal(err)
		}
		r.goOn(w, 30*time.Second)
		r.lacks("waits for signal approval")
		r.shows("✓ completed")
	})
}

func TestWhatIsWaitedForFollowsTheClock(t *testing.T) {
	onPiece(t, scenario.Waiting, 120, 32, func(r *fixture, w *shop, _ *runPage) {
		r.shows("due for 5m30s, but no online worker serves type onboarding")
		r.goOn(w, 20*time.Second)
		r.lacks("due for 5m30s")
		r.shows("due for 5m4") // 5m45s or a little more
	})
}

func TestTabsKeepTheirPlace(t *testing.T) {
	onPiece(t, scenario.Pinned, 100, 20, func(r *fixture, _ *shop, p *runPage) {
		r.press("j", "j", "j", "+", "+")
		timeline := r.draw()
		r.press("tab", "j", "j")
		tree := r.draw()
		if tree == timeline {
			t.Fatal("tab shows no other tab")
		}
		r.press("5", "j", "j", "j", "j")
		events := r.draw()
		for keys, want := range map[string]string{"1": timeline, "2": tree, "5": events} {
			r.press(keys)
			if got := r.draw(); got != want {
				t.Errorf("after %s the screen is\n%s\nwant\n%s", keys, got, want)
			}
		}
		r.press("1", "shift-tab")
		r.shows("Namespace") // of the last tab
		if p.tab != len(tabNames)-1 {
			t.Errorf("shift-tab went from the first tab to tab %d", p.tab+1)
		}
	})
}

func TestEscapeFromAChildGoesBackToItsPlaceInTheTree(t *testing.T) {
	onPiece(t, scenario.Family, 120, 32, func(r *fixture, _ *shop, p *runPage) {
		r.press("2", "j", "l")
		r.shows("resize", "download") // the steps of the child, read when it was opened
		before := r.draw()
		r.press("enter")
		child, ok := r.app.trails.top().(*runPage)
		if !ok || child == p {
			t.Fatalf("enter on a child run opened %T", r.app.trails.top())
		}
		if child.origin() != p.run.ID() {
			t.Errorf("the child's parent is %q, want %s", child.origin(), p.run.ID())
		}
		r.press("esc")
		if after := r.draw(); after != before {
			t.Errorf("back from the child the screen is\n%s\nwant\n%s", after, before)
		}
	})
}

func TestAHostileRunDoesNoHarmInAnyTab(t *testing.T) {
	onPiece(t, scenario.Hostile, 120, 40, func(r *fixture, _ *shop, _ *runPage) {
		for _, keys := range [][]string{{"1"}, {"enter"}, {"o"}, {"esc", "i"}, {"esc", "esc", "2"}, {"3"}, {"]", "w"},
			{"4"}, {"5"}, {"G", "enter"}, {"esc", "6"}, {"7"}, {"G"}, {"y"}, {"ctrl-y"}, {"?"}} {
			r.press(keys...)
			for _, c := range r.draw() {
				if c != '\n' && (unicode.IsControl(c) || unicode.Is(unicode.Cf, c)) {
					t.Errorf("after %v there is %U on the screen:\n%q", keys, c, r.draw())
					break
				}
			}
		}
	})
}

// forgetful is a shop that can lose its runs.
type forgetful struct {
	*shop
	lost bool
}

func TestWhatWasReadOfARunStaysWhenItIsDeleted(t *testing.T) {
	f := &forgetful{}
	options := func() Options {
		f.shop = newShop()
		return Options{API: f, Open: runOf(scenario.Growing)(f.shop), Now: f.Now}
	}
	onFixture(t, options, 120, 32, func(r *fixture) {
		f.lost = true
		r.app.trails.top().(*runPage).Refresh()
		r.settle()
		r.shows("deleted on the server", "day-31", "reports-1")
		if err := r.app.trails.top().(*runPage).Failure(); err != nil {
			t.Errorf("the run is shown as %v instead of what was read of it", err)
		}
	})
}

// errDeleted is a server's answer for a run that retention has deleted.
var errDeleted = status.Error(codes.NotFound, "no run has this id")
