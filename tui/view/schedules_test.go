package view

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/timestamppb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

func TestANewScheduleIsPreviewedWhileItIsTypedAndThenThere(t *testing.T) {
	var w *shop
	onFixture(t, inShop(&w, "schedules"), 100, 40, func(r *fixture) {
		r.press("n")
		r.shows("New schedule", "0 9 * * 1-5")
		r.enter("report.nightly")
		r.press("enter", "enter") // over the queue, to the expression
		r.enter("30 9 * * *")
		r.lacks("Fri 2026-11-20 09:30:00 UTC")
		r.pass(200 * time.Millisecond)
		r.shows("Fri 2026-11-20 09:30:00 UTC", "Tue 2026-11-24 09:30:00 UTC")
		r.press("enter")
		r.enter("Asia/Tokyo")
		r.pass(200 * time.Millisecond)
		r.shows("Sat 2026-11-21 09:30:00 JST", "Sat 00:30:00 UTC")
		r.press("ctrl-s")
		r.pass(time.Second)
		r.shows("create schedule", "Schedules (7)")
		r.lacks("New schedule")
	})
}

func TestAnExpressionThatIsRefusedSaysWhyBelowItsField(t *testing.T) {
	var w *shop
	onFixture(t, inShop(&w, "schedules"), 100, 40, func(r *fixture) {
		r.press("n", "tab", "tab")
		r.enter("0 25 * * *")
		r.pass(200 * time.Millisecond)
		r.shows("hour: 25 is out of 0-23")
		r.lacks("cron_expr")
		r.press("backspace", "backspace", "backspace", "backspace", "backspace", "backspace", "backspace")
		r.enter("3 * * *")
		r.press("tab")
		r.enter("Mars/Olympus")
		r.pass(200 * time.Millisecond)
		r.shows(`"Mars/Olympus" is no IANA time zone`)
		r.lacks("hour: 25")
	})
}

func TestALateAnswerAboutAnEarlierExpressionIsDropped(t *testing.T) {
	var w *shop
	onFixture(t, inShop(&w, "schedules"), 100, 40, func(r *fixture) {
		r.press("n", "tab", "tab")
		w.Hang()
		r.enter("0 10 * * *")
		r.pass(200 * time.Millisecond) // the question is under way
		r.press("backspace", "backspace", "backspace", "backspace", "backspace", "backspace", "backspace", "backspace")
		r.enter("11 * * *")
		w.Up()
		r.settle()
		r.lacks("10:00:00 UTC", "11:00:00 UTC")
		r.pass(200 * time.Millisecond)
		r.shows("Fri 2026-11-20 11:00:00 UTC")
		r.lacks("10:00:00 UTC")
	})
}

func TestWhatTheServerRefusesCanBeChangedInTheForm(t *testing.T) {
	var w *shop
	onFixture(t, inShop(&w, "schedules"), 100, 40, func(r *fixture) {
		r.press("n")
		r.enter("report.nightly")
		r.press("enter", "enter")
		r.enter("@daily")
		r.press("down", "down", "down", "down", "down") // to the name
		r.enter("crm-sync")
		r.press("up", "ctrl-s") // from another field
		r.shows("New schedule", "the name crm-sync is taken by schedule")
		r.enter("-2") // the field of the name has the focus again
		r.press("ctrl-s")
		r.pass(time.Second)
		r.lacks("New schedule")
		r.shows("Schedules (7)", "crm-sync-2")
	})
}

func TestEditingASchedulesChangesOnlyWhatIsOtherwise(t *testing.T) {
	var w *shop
	onFixture(t, inShop(&w, "schedule crm-sync"), 120, 50, func(r *fixture) {
		r.press("e")
		r.shows("Schedule crm-sync", "0 */20 * * * *", "buffer-one", "while a run is active, one tick waits")
		r.press("ctrl-s")
		r.shows(`"crm-sync" has no changes`)
		r.shows("Changes (1)")
		r.press("e", "tab", "tab")
		for range len("0 */20 * * * *") {
			r.press("backspace")
		}
		r.enter("@hourly")
		r.press("ctrl-s")
		r.pass(time.Second)
		r.shows("@hourly", "Update", "Changes (2)", "buffer-one")
	})
}

func TestTheNextTickOfAScheduleIsShownInWhole(t *testing.T) {
	for _, width := range []int{60, 80, 120, 200} {
		var w *shop
		onFixture(t, inShop(&w, "schedule catalog-import"), width, 32, func(r *fixture) {
			p := r.app.trails.top().(*schedulePage)
			for ahead, want := range map[time.Duration]string{
				15 * time.Minute: "in 15m, 09:15", 50 * time.Second: "in 50s, 09:00:50",
				100*time.Hour + 20*time.Minute:                 "in 4d, Nov 24 13:20",
				100*time.Hour + 20*time.Minute + 5*time.Second: "in 4d, Nov 24 13:20:05",
			} {
				p.schedule().NextFireAt = timestamppb.New(begin.Add(ahead))
				r.shows(want)
			}
		})
	}
}

func TestAScheduleIsPausedAndResumedWithOneKey(t *testing.T) {
	var w *shop
	onFixture(t, inShop(&w, "schedule catalog-import"), 120, 50, func(r *fixture) {
		r.shows("◷ on", "in 15m")
		r.press("P")
		r.pass(time.Second)
		r.shows("‖ paused", "nothing fires until it is resumed", "Pause", "Changes (2)")
		if err := r.app.command("pause"); err == nil {
			t.Fatal("what is paused was paused again")
		}
		r.press("P")
		r.shows("Resume schedule catalog-import?", "kagzi schedule resume", "Ticks missed during the pause are skipped",
			"Catch up fires the latest of them now, at most")
		r.press("tab", "enter")
		r.pass(time.Second)
		r.shows("◷ on", "Changes (3)")
	})
}

func TestADeletedSchedulesPageIsLeft(t *testing.T) {
	var w *shop
	onFixture(t, inShop(&w, "schedules"), 100, 30, func(r *fixture) {
		r.press("down", "enter")
		r.shows("Schedule catalog-import")
		r.press("x")
		r.shows("Delete schedule catalog-import?", "Runs that they started are kept.")
		r.press("enter") // Cancel has the focus
		r.shows("Schedule catalog-import")
		r.press("x", "tab", "enter")
		r.pass(time.Second)
		r.shows("Schedules (5)")
		r.lacks("catalog-import  ")
	})
}

// slowToDelete is a shop in which deleting a schedule waits for the gate.
type slowToDelete struct {
	*shop
	gate chan struct{}
}

func (w *slowToDelete) DeleteWorkflowSchedule(ctx context.Context, request *kagziv1.DeleteWorkflowScheduleRequest,
	options ...grpc.CallOption) (*kagziv1.DeleteWorkflowScheduleResponse, error) {
	<-w.gate
	return w.shop.DeleteWorkflowSchedule(ctx, request, options...)
}

func TestWhoOpenedAnotherScheduleMeanwhileStaysThere(t *testing.T) {
	var w *slowToDelete
	options := func() Options {
		w = &slowToDelete{newShop(), make(chan struct{})}
		return Options{API: w, Open: "schedules", Now: w.Now}
	}
	onFixture(t, options, 100, 30, func(r *fixture) {
		r.press("down", "enter")
		r.shows("Schedule catalog-import")
		r.press("x", "tab", "enter", "esc", "up", "enter")
		r.shows("Schedule onboarding-digest")
		close(w.gate)
		r.pass(time.Second)
		r.shows("Schedule onboarding-digest")
	})
}

func TestMarkedSchedulesAreNamedInTheQuestion(t *testing.T) {
	var w *shop
	onFixture(t, inShop(&w, "schedules"), 120, 30, func(r *fixture) {
		r.press("space", "space", "x")
		r.shows("Delete schedule onboarding-digest and catalog-import?")
		r.press("tab", "enter")
		r.pass(time.Second)
		r.shows("delete schedule: all 2 done", "Schedules (4)")
	})
}

func TestNothingChangesWhereOneOnlyLooks(t *testing.T) {
	var w *shop
	readOnly := func() Options {
		o := inShop(&w, "schedules")()
		o.ReadOnly = true
		return o
	}
	onFixture(t, readOnly, 120, 30, func(r *fixture) {
		r.lacks("<n> new", "<e> edit", "<t> trigger", "<x> delete")
		r.press("n", "e", "x", "t", "P")
		r.shows("Schedules (6)", "<enter> open")
		if r.app.layer() != nil {
			t.Fatalf("a key that changes something did something:\n%s", r.draw())
		}
	})
}

func TestTriggeringStartsARunThatCanBeOpened(t *testing.T) {
	var w *shop
	onFixture(t, inShop(&w, "schedule catalog-import"), 120, 40, func(r *fixture) {
		r.press("t")
		r.pass(2 * time.Second)
		r.shows("by hand", "trigger schedule catalog-import: started as ")
		r.press("enter")
		if name := r.app.trails.top().Name(); name != "run" {
			t.Fatalf("enter on a run opened %q", name)
		}
	})
}

func TestATickIsSeenOnTheScheduleWhenItFires(t *testing.T) {
	var w *shop
	onFixture(t, inShop(&w, "schedule catalog-import"), 120, 40, func(r *fixture) {
		r.shows("Nov 20 09:00:00")
		r.lacks("Nov 20 09:15:00")
		r.shows("in 15m    Fri 2026-11-20 09:15:00 UTC")
		r.press("p") // nothing is read any more, and yet a tick that has passed is no next one
		w.Advance(15*time.Minute + time.Second)
		r.pass(2 * time.Second)
		r.lacks("Fri 2026-11-20 09:15:00 UTC", "Nov 20 09:15:00")
		r.press("p")
		r.pass(2 * time.Second)
		r.shows("in 14m    Fri 2026-11-20 09:30:00 UTC", "Nov 20 09:15:00")
	})
}

func TestAScheduleThatIsPutOffHasNoTickBefore(t *testing.T) {
	var w *shop
	onFixture(t, inShop(&w, "overview"), 120, 40, func(r *fixture) {
		off := timestamppb.New(begin.Add(72 * time.Hour))
		answer, err := w.GetWorkflowSchedule(t.Context(),
			&kagziv1.GetWorkflowScheduleRequest{ScheduleId: "catalog-import"})
		if err != nil {
			t.Fatal(err)
		}
		_, err = w.UpdateWorkflowSchedule(t.Context(),
			&kagziv1.UpdateWorkflowScheduleRequest{ScheduleId: answer.GetSchedule().GetScheduleId(), NextFireAt: off})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.app.command("schedule catalog-import"); err != nil {
			t.Fatal(err)
		}
		r.settle()
		ticks := r.app.trails.top().(*schedulePage).item.Value().Ticks
		if len(ticks) == 0 || !ticks[0].AsTime().Equal(off.AsTime()) {
			t.Errorf("its next ticks are %v, want them from %v on", ticks, off.AsTime())
		}
		r.lacks("in 15m")
	})
}

func TestTheLatestRunOfEachScheduleTellsHowItWent(t *testing.T) {
	var w *shop
	onFixture(t, inShop(&w, "schedules"), 120, 30, func(r *fixture) {
		r.shows("✓ 8h ago")
		r.shows(`"onboarding-digest" cannot fire: time_zone: "Europe/Kyiv" is no IANA time zone`)
	})
}
