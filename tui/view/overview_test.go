package view

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/timestamppb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/view/internal/format"
)

func TestOverviewLooksRight(t *testing.T) { goldenView(t, "overview", always("overview")) }

func TestOverviewLooksRightOverADay(t *testing.T) {
	goldenView(t, "overview_day", always("overview"), "}", "}")
}

func TestTheOverviewOpensWhatTheCursorIsOn(t *testing.T) {
	var w *shop
	onRig(t, inShop(&w, "overview"), 120, 32, func(r *rig) {
		for _, c := range []struct {
			keys []string
			want string
		}{
			{nil, "› runs status:running"},
			{[]string{"right"}, "› runs status:pending"},
			{[]string{"l"}, "› runs status:failed,timed_out since:1h"},
			{[]string{"l", "l", "l"}, "› workers"},
			{[]string{"tab"}, "› schedule onboarding-digest"}, // a schedule that cannot fire is the worst of the warnings
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
	onRig(t, inShop(&w, "overview"), 120, 32, func(r *rig) {
		p := r.app.trails.top().(*overviewPage)
		for p.at != failuresBlock {
			r.press("tab")
		}
		r.press("j", "j")
		id, index := p.under().id, p.on[failuresBlock].index
		before := r.app.overview.Failures()[0].GetRunId()
		for range 600 {
			w.Advance(time.Minute)
			r.pass(time.Second)
			if r.app.overview.Failures()[0].GetRunId() != before {
				break
			}
		}
		r.draw()
		if got := p.under().id; got != id || p.on[failuresBlock].index <= index {
			t.Errorf("the cursor is on %s in row %d, want %s further down than row %d", got, p.on[failuresBlock].index, id, index)
		}
	})
}

func TestAFailureIsOnTheOverviewAtOnce(t *testing.T) {
	var w *shop
	onRig(t, inShop(&w, "overview"), 120, 32, func(r *rig) {
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
	onRig(t, inShop(&w, "overview"), 60, 15, func(r *rig) {
		r.shows("Warnings  4 in all", "Newest runs that failed  more than 8")
	})
}

func TestAWaitGrowsOnTheScreenWhileNothingIsHeard(t *testing.T) {
	var w *shop
	onRig(t, inShop(&w, "overview"), 120, 32, func(r *rig) {
		r.shows("oldest 5m", "waiting for a worker for 5m")
		w.Hang()
		w.Advance(10 * time.Minute)
		r.pass(time.Second)
		r.shows("oldest 15m", "waiting for a worker for 15m")
	})
}

// young is a shop whose server was started a while ago.
type young struct {
	*shop
	since time.Duration
}

func (y young) GetServerInfo(ctx context.Context, r *kagziv1.GetServerInfoRequest, o ...grpc.CallOption) (*kagziv1.GetServerInfoResponse, error) {
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
		onRig(t, options, 80, 24, func(r *rig) { r.shows(want[1]) })
		onRig(t, options, 120, 32, func(r *rig) { r.shows(want[0], strings.TrimSpace(strings.Trim(want[1], "│"))) })
	}
}

func TestARateIsNeverMoreThanTheMost(t *testing.T) {
	values, rate := make([]float64, 300), chart{rate: true}
	for i := 290; i < 300; i++ {
		values[i] = 2.5
	}
	if got, want := rate.summary(values, buckets(values, 299, 10, true)), "2.5/s, most 2.5/s"; got != want {
		t.Errorf("after a busy moment %q, want %q", got, want)
	}
}

func TestTheChartsGoBackAsFarAsIsWanted(t *testing.T) {
	var w *shop
	onRig(t, inShop(&w, "overview"), 120, 32, func(r *rig) {
		for _, c := range []struct{ key, want string }{
			{"{", "last 5 m"}, {"}", "last 1 h"}, {"}", "last 24 h"}, {"}", "last 24 h"}, {"{", "last 1 h"}, {"{", "last 5 m"},
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

func TestBlocksOfTheOverviewNeverOverlapNorLeaveThePage(t *testing.T) {
	for w := 56; w < 240; w++ {
		for h := 10; h < 90; h++ {
			for _, n := range []int{0, 1, 5, 40} {
				list := arrange(w, h, func(string) int { return n })
				for i, a := range list {
					if a.x < 0 || a.y < 0 || a.w < 1 || a.h < 1 || a.x+a.w > w || a.y+a.h > h {
						t.Fatalf("%d x %d cells, %d items: %s leaves the page: %+v", w, h, n, a.id, a)
					}
					for _, b := range list[:i] {
						if a.x < b.x+b.w && b.x < a.x+a.w && a.y < b.y+b.h && b.y < a.y+a.h {
							t.Fatalf("%d x %d cells, %d items: %+v lies over %+v", w, h, n, a, b)
						}
					}
				}
			}
		}
	}
}

func TestColumnsOfAChartMoveOnAsAWhole(t *testing.T) {
	values := []float64{1, 2, 3, 4, 5, 6, 7, 8}
	for _, c := range []struct {
		last int64
		n    int
		mean bool
		want []float64
	}{
		{7, 8, false, []float64{1, 2, 3, 4, 5, 6, 7, 8}},
		{7, 4, false, []float64{2, 4, 6, 8}}, // two in a column, all full
		{8, 4, false, []float64{3, 5, 7, 8}}, // the last has begun; the first value has left
		{7, 4, true, []float64{1.5, 3.5, 5.5, 7.5}},
		{7, 16, false, []float64{1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8}},
		{7, 0, false, nil},
	} {
		if got := buckets(values, c.last, c.n, c.mean); !slices.Equal(got, c.want) {
			t.Errorf("buckets up to %d in %d columns, mean %t: %v, want %v", c.last, c.n, c.mean, got, c.want)
		}
	}
}

func TestRatesAreReadable(t *testing.T) {
	for _, c := range []struct {
		perSecond float64
		want      string
	}{{0, "0/s"}, {1234.4, "1 234/s"}, {12, "12/s"}, {1.26, "1.3/s"}, {0.1, "0.1/s"}, {0.07, "4.2/min"}, {1.0 / 60, "1.0/min"}, {1.0 / 3600, "1.0/h"}} {
		if got := format.PerTime(c.perSecond); got != c.want {
			t.Errorf("%g a second reads %q, want %q", c.perSecond, got, c.want)
		}
	}
}
