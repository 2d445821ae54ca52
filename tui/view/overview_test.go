package view

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/timestamppb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/view/internal/overview"
)

func TestOverviewLooksRight(t *testing.T) { goldenView(t, "overview", always("overview")) }

func TestOverviewLooksRightOverADay(t *testing.T) {
	goldenView(t, "overview_day", always("overview"), "}", "}")
}

func TestTheOverviewOpensWhatTheCursorIsOn(t *testing.T) {
	var w *shop
	onFixture(t, inShop(&w, "overview"), 120, 32, func(r *fixture) {
		for _, c := range []struct {
			keys []string
			want string
		}{
			{nil, "› runs status:running"},
			{[]string{"right"}, "› runs status:pending"},
			{[]string{"l"}, "› runs status:failed,timed_out since:1h"},
			{[]string{"l", "l", "l"}, "› workers"},
			// a schedule that cannot fire is the worst of the warnings
			{[]string{"tab"}, "› schedule onboarding-digest"},
			{[]string{"j"}, "› runs status:pending queue:emails type:onboarding"},
			{[]string{"tab"}, "› runs status:open queue:emails"},
			{[]string{"tab"}, "› run order"},
			{[]string{"tab"}, "› schedule catalog-import"},
			{[]string{"G"}, "› schedule nightly-report"},
			{[]string{"tab"}, "› workers"}, // around, to where the cursor was among the tiles
			{[]string{"g"}, "› runs status:running"},
			{[]string{"shift-tab", "shift-tab", "end"}, "› schedule nightly-report"},
		} {
			r.press(c.keys...)
			r.press("enter")
			r.shows(c.want)
			r.press("esc")
			r.shows("Overview of default")
		}
	})
}

func TestTheCursorOfTheOverviewStaysWithItsThing(t *testing.T) {
	var w *shop
	onFixture(t, inShop(&w, "overview"), 120, 32, func(r *fixture) {
		p := r.app.trails.top().(*overviewPage)
		for p.At != overview.FailuresBlock {
			r.press("tab")
		}
		r.press("j", "j")
		id, index := p.Under().ID, p.On[overview.FailuresBlock].Index
		before := r.app.overview.Failures()[0].GetRunId()
		for range 600 {
			w.Advance(time.Minute)
			r.pass(time.Second)
			if r.app.overview.Failures()[0].GetRunId() != before {
				break
			}
		}
		r.draw()
		if got := p.Under().ID; got != id || p.On[overview.FailuresBlock].Index <= index {
			t.Errorf("the cursor is on %s in row %d, want %s further down than row %d", got,
				p.On[overview.FailuresBlock].Index, id, index)
		}
	})
}

func TestAFailureIsOnTheOverviewAtOnce(t *testing.T) {
	var w *shop
	onFixture(t, inShop(&w, "overview"), 120, 32, func(r *fixture) {
		failed := func() int64 { return r.app.overview.FailedLastHour() }
		for range 3600 {
			before := r.app.overview.Failures()[0].GetRunId()
			w.Advance(5 * time.Second)
			r.pass(2 * time.Second)
			newest := r.app.overview.Failures()[0]
			if newest.GetRunId() == before {
				continue
			}
			r.shows(newest.GetWorkflowType(), fmt.Sprintf("✗ %d failed", failed()))
			if failed() == 0 {
				t.Error("the failure was not counted")
			}
			return
		}
		t.Fatal("nothing failed in five hours")
	})
}

func TestAListOfTheOverviewThatIsCutDoesNotPassForAllThereIs(t *testing.T) {
	var w *shop
	onFixture(t, inShop(&w, "overview"), 60, 15, func(r *fixture) {
		r.shows("Warnings  4 in all", "Recent failures  more than 8")
	})
}

func TestAWaitGrowsOnTheScreenWhileNothingIsHeard(t *testing.T) {
	var w *shop
	onFixture(t, inShop(&w, "overview"), 120, 32, func(r *fixture) {
		r.shows("oldest 5m", "waiting for a worker for 5m")
		w.Hang()
		w.Advance(10 * time.Minute)
		r.pass(time.Second)
		r.shows("oldest 15m", "waiting for a worker for 15m")
	})
}

// young is a shop whose server was started recently.
type young struct {
	*shop
	since time.Duration
}

func (y young) GetServerInfo(ctx context.Context, r *kagziv1.GetServerInfoRequest,
	o ...grpc.CallOption) (*kagziv1.GetServerInfoResponse, error) {
	info, err := y.shop.GetServerInfo(ctx, r, o...)
	info.StartedAt = timestamppb.New(y.Now().Add(-y.since))
	return info, err
}

func TestFailuresAreCountedSinceTheStartOfAYoungServer(t *testing.T) {
	for since, want := range map[time.Duration][]string{
		time.Second:      {"failed on server since start", "│ server, up <1m │"},
		59 * time.Minute: {"failed on server since start", "│ server, up 59m │"},
		61 * time.Minute: {"failed on server in 1 h", "│ server, 1 h    │"},
	} {
		options := func() Options {
			w := newShop()
			return Options{API: young{w, since}, Open: "overview", Now: w.Now}
		}
		onFixture(t, options, 80, 24, func(r *fixture) { r.shows(want[1]) })
		onFixture(t, options, 120, 32, func(r *fixture) {
			r.shows(want[0], strings.TrimSpace(strings.Trim(want[1], "│")))
		})
	}
}

func TestTheChartsGoBackAsFarAsIsWanted(t *testing.T) {
	var w *shop
	onFixture(t, inShop(&w, "overview"), 120, 32, func(r *fixture) {
		for _, c := range []struct{ key, want string }{
			{"{", "last 5 m"}, {"}", "last 1 h"}, {"}", "last 24 h"}, {"}", "last 24 h"}, {"{", "last 1 h"},
			{"{", "last 5 m"},
		} {
			r.press(c.key)
			r.shows(c.want)
		}
		if err := r.app.command("range 24h"); err != nil {
			t.Fatal(err)
		}
		r.shows("last 24 h")
		if err := r.app.command("range 3y"); err == nil {
			t.Error("a range that there is not was taken")
		}
	})
}
