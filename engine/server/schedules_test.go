package server

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/servertest"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

func init() {
	servertest.Samples["cron_expr"], servertest.Samples["time_zone"], servertest.Samples["schedule_id"] = "@hourly",
		"Europe/Berlin", "sched"
}

func TestEachFieldOfANewScheduleIsRead(t *testing.T) {
	s := serverOver(&servertest.Books{})
	read := func(r *kagziv1.CreateWorkflowScheduleRequest) (any, error) {
		p, err := s.createOf(context.Background(), r)
		p.Schedule.ID, p.Schedule.CreatedAt, p.Schedule.UpdatedAt = engine.ID{}, time.Time{}, time.Time{}
		if r.Enabled != nil {
			p.Schedule.Enabled = !p.Schedule.Enabled // true is the default, and the value tried
		}
		return []any{p.Schedule, r.OrUpdate}, err // what or_update means says CreateWorkflowSchedule
	}
	servertest.WantEachFieldRead(t, &kagziv1.CreateWorkflowScheduleRequest{WorkflowType: "plain", CronExpr: "@yearly"},
		map[protoreflect.Name]func(*kagziv1.CreateWorkflowScheduleRequest){
			"on_failure_task_queue": func(r *kagziv1.CreateWorkflowScheduleRequest) { r.OnFailureWorkflow = "w" },
			"concurrency_limit":     func(r *kagziv1.CreateWorkflowScheduleRequest) { r.ConcurrencyKey = "k" },
			"concurrency_scope":     func(r *kagziv1.CreateWorkflowScheduleRequest) { r.ConcurrencyKey = "k" },
		}, read)
	p, err := s.createOf(context.Background(),
		&kagziv1.CreateWorkflowScheduleRequest{WorkflowType: "t", CronExpr: "* * * * *"})
	if err != nil || !p.Schedule.Enabled || p.Schedule.MaxCatchup != 100 || p.Schedule.Queue != "default" ||
		p.Schedule.Namespace != "default" ||
		!p.Schedule.NextFireAt.After(p.Now) || p.Schedule.NextFireAt.Sub(p.Now) > time.Minute {
		t.Errorf("a plain schedule is %+v, %v", p.Schedule, err)
	}
}

// stored is a schedule whose next tick lies in the past, as after downtime.
func stored() engine.Schedule {
	return engine.Schedule{
		ID: engine.FirstID(servertest.Began), Namespace: "default", Name: "sched", CronExpr: "@daily", Enabled: true,
		Queue: "q", Type: "t", MaxCatchup: 9, Revision: 3,
		Input: servertest.TextPayload("in"), CreatedAt: servertest.Began, UpdatedAt: servertest.Began,
		NextFireAt: servertest.Began.Add(6 * time.Hour), Fired: 4, Tags: map[string]string{"k": "v"},
	}
}

func TestEachFieldOfAnUpdateIsRead(t *testing.T) {
	read := func(r *kagziv1.UpdateWorkflowScheduleRequest) (any, error) {
		b := &servertest.Books{Schedules: map[string]engine.Schedule{"plain": stored(), "sched": stored()}}
		_, err := serverOver(b).UpdateWorkflowSchedule(context.Background(), r)
		if err != nil {
			return nil, err
		}
		p := servertest.Last[engine.ScheduleParams](b)
		p.AuditID, p.Now, p.Schedule.UpdatedAt = engine.ID{}, time.Time{}, time.Time{}
		return []any{p, r.Namespace, r.ScheduleId}, nil // which schedule is meant says the store
	}
	servertest.WantEachFieldRead(t, &kagziv1.UpdateWorkflowScheduleRequest{ScheduleId: "plain"},
		map[protoreflect.Name]func(*kagziv1.UpdateWorkflowScheduleRequest){
			"on_failure_task_queue": func(r *kagziv1.UpdateWorkflowScheduleRequest) {
				r.OnFailureWorkflow = proto.String("w")
			},
			"enabled":           func(r *kagziv1.UpdateWorkflowScheduleRequest) { r.Enabled = proto.Bool(false) },
			"concurrency_limit": func(r *kagziv1.UpdateWorkflowScheduleRequest) { r.ConcurrencyKey = proto.String("k") },
			"concurrency_scope": func(r *kagziv1.UpdateWorkflowScheduleRequest) { r.ConcurrencyKey = proto.String("k") },
		}, read)
}

// A policy that an update names alone is for steps and run, as in a start: older clients name no other.
func TestWhatAnUpdateDoesToTheRetryPolicies(t *testing.T) {
	one, two, three := &engine.RetryPolicy{MaximumAttempts: 1}, &engine.RetryPolicy{MaximumAttempts: 2},
		&kagziv1.RetryPolicy{MaximumAttempts: 3}
	for _, c := range []struct {
		what       string
		change     *kagziv1.UpdateWorkflowScheduleRequest
		steps, run int
	}{
		{"nothing is named", &kagziv1.UpdateWorkflowScheduleRequest{}, 1, 2},
		{"one for both", &kagziv1.UpdateWorkflowScheduleRequest{RetryPolicy: three}, 3, 0},
		{"the run's", &kagziv1.UpdateWorkflowScheduleRequest{RunRetryPolicy: three}, 1, 3},
		{"each", &kagziv1.UpdateWorkflowScheduleRequest{RetryPolicy: three,
			RunRetryPolicy: &kagziv1.RetryPolicy{MaximumAttempts: 4}}, 3, 4},
	} {
		s := stored()
		s.RetryPolicy, s.RunRetryPolicy = one, two
		if err := update(&s, c.change); err != nil {
			t.Fatal(err)
		}
		run := 0
		if s.RunRetryPolicy != nil {
			run = s.RunRetryPolicy.MaximumAttempts
		}
		if s.RetryPolicy.MaximumAttempts != c.steps || run != c.run {
			t.Errorf("%s: %d attempts for steps and %d for the run, want %d and %d", c.what,
				s.RetryPolicy.MaximumAttempts, run, c.steps, c.run)
		}
	}
}

func TestWhatAnUpdateDoesToTheNextTick(t *testing.T) {
	now := engine.Micros(time.Now())
	far := now.AddDate(1, 0, 0).Truncate(24 * time.Hour).Add(time.Hour) // not midnight itself, at any hour of this test
	kept := stored().NextFireAt
	missed := int64(now.Sub(kept.Truncate(24*time.Hour)) / (24 * time.Hour)) // midnights
	// the next midnight
	later := func(from time.Time) time.Time { return from.Truncate(24 * time.Hour).Add(24 * time.Hour) }
	for _, c := range []struct {
		what   string
		before func(*engine.Schedule)
		change func(*kagziv1.UpdateWorkflowScheduleRequest)
		want   time.Time
		// skipped is how many due ticks the change skips.
		skipped int64
		broken  string
	}{
		{"nothing is named", nil, func(*kagziv1.UpdateWorkflowScheduleRequest) {}, kept, 0, ""},
		{"it is enabled", nil, func(r *kagziv1.UpdateWorkflowScheduleRequest) {
			r.Enabled = proto.Bool(true)
		}, kept, 0, ""},
		{"the same expression", nil, func(r *kagziv1.UpdateWorkflowScheduleRequest) {
			r.CronExpr = proto.String("@daily")
		}, kept, 0, ""},
		{"another expression", nil, func(r *kagziv1.UpdateWorkflowScheduleRequest) {
			r.CronExpr = proto.String("0 0 0 * * ?")
		}, later(now), missed, ""},
		{"another zone", nil, func(r *kagziv1.UpdateWorkflowScheduleRequest) {
			r.TimeZone = proto.String("Etc/UTC")
		}, later(now), missed, ""},
		{"a tick in the past", nil, func(r *kagziv1.UpdateWorkflowScheduleRequest) {
			r.NextFireAt = timestamppb.New(servertest.Began)
		}, later(now), missed, ""},
		{"a tick far ahead", nil, func(r *kagziv1.UpdateWorkflowScheduleRequest) {
			r.NextFireAt = timestamppb.New(far.Add(1))
		}, later(far), missed, ""},
		{"that very tick", nil, func(r *kagziv1.UpdateWorkflowScheduleRequest) {
			r.NextFireAt = timestamppb.New(later(far))
		}, later(far), missed, ""},
		{"a broken one that is sound again", func(s *engine.Schedule) { s.Broken, s.NextFireAt = "why", time.Time{} },
			func(*kagziv1.UpdateWorkflowScheduleRequest) {}, later(now), 0, ""},
		{"a broken one that stays so", func(s *engine.Schedule) {
			s.Broken, s.TimeZone, s.NextFireAt = "why", "Mars/Olympus", time.Time{}
		},
			func(r *kagziv1.UpdateWorkflowScheduleRequest) { r.Enabled = proto.Bool(false) }, time.Time{}, 0, "why"},
		{"a broken one that is repaired", func(s *engine.Schedule) {
			s.Broken, s.TimeZone, s.NextFireAt = "why", "Mars/Olympus", time.Time{}
		},
			func(r *kagziv1.UpdateWorkflowScheduleRequest) { r.TimeZone = proto.String("") }, later(now), 0, ""},
	} {
		was := stored()
		if c.before != nil {
			c.before(&was)
		}
		b := &servertest.Books{Schedules: map[string]engine.Schedule{"sched": was}}
		r := &kagziv1.UpdateWorkflowScheduleRequest{ScheduleId: "sched"}
		c.change(r)
		if _, err := serverOver(b).UpdateWorkflowSchedule(t.Context(), r); err != nil {
			t.Errorf("%s: %v", c.what, err)
			continue
		}
		p := servertest.Last[engine.ScheduleParams](b)
		if got := p.Schedule; !got.NextFireAt.Equal(c.want) || got.Broken != c.broken || got.Revision != was.Revision {
			t.Errorf("%s: next tick %s (broken %q), want %s", c.what, got.NextFireAt, got.Broken, c.want)
		}
		if p.Skipped != c.skipped || !p.Read.Equal(was.NextFireAt) {
			t.Errorf("%s: gives up %d ticks from %s on, want %d from %s on", c.what, p.Skipped, p.Read, c.skipped,
				was.NextFireAt)
		}
	}
	b := &servertest.Books{Schedules: map[string]engine.Schedule{"sched": stored()}}
	_, err := serverOver(b).UpdateWorkflowSchedule(
		t.Context(), &kagziv1.UpdateWorkflowScheduleRequest{
			ScheduleId: "sched", CronExpr: proto.String("0 0 0 1 1 ? 2020")})
	if e, ok := errors.AsType[*engine.Error](err); !ok || e.Field != "cron_expr" || b.Changes() != 0 {
		t.Errorf("an expression whose years are over: %v", err)
	}
}

func TestPausingAndResumingChangeNothingElse(t *testing.T) {
	b := &servertest.Books{Schedules: map[string]engine.Schedule{"sched": stored()}}
	if _, err := serverOver(b).PauseWorkflowSchedule(
		t.Context(), &kagziv1.PauseWorkflowScheduleRequest{ScheduleId: "sched", Reason: "why"}); err != nil {
		t.Fatal(err)
	}
	p := servertest.Last[engine.ScheduleParams](b)
	want := stored()
	want.Enabled, want.PauseReason = false, "why"
	if diff := cmp.Diff(want, p.Schedule, cmpopts.IgnoreFields(engine.Schedule{}, "UpdatedAt")); diff != "" ||
		p.Method != "PauseWorkflowSchedule" || p.Reason != "why" {
		t.Errorf("%s:\n%s", p.Method, diff)
	}
	b.Schedules["sched"] = p.Schedule
	if _, err := serverOver(b).ResumeWorkflowSchedule(
		t.Context(), &kagziv1.ResumeWorkflowScheduleRequest{ScheduleId: "sched"}); err != nil {
		t.Fatal(err)
	}
	p = servertest.Last[engine.ScheduleParams](b)
	if diff := cmp.Diff(stored(), p.Schedule, cmpopts.IgnoreFields(engine.Schedule{}, "UpdatedAt")); diff != "" ||
		p.Method != "ResumeWorkflowSchedule" {
		t.Errorf("%s:\n%s", p.Method, diff)
	}
}

func TestAChangeOfAScheduleIsTriedAgainWhenAnotherCameBetween(t *testing.T) {
	request := &kagziv1.PauseWorkflowScheduleRequest{ScheduleId: "sched"}
	b := &servertest.Books{Schedules: map[string]engine.Schedule{"sched": stored()}, Conflicts: changeTries - 1}
	if _, err := serverOver(b).PauseWorkflowSchedule(t.Context(), request); err != nil || b.Changes() != changeTries {
		t.Errorf("%d conflicts: %v after %d tries", changeTries-1, err, b.Changes())
	}
	b = &servertest.Books{Schedules: map[string]engine.Schedule{"sched": stored()}, Conflicts: changeTries}
	if _, err := serverOver(b).PauseWorkflowSchedule(t.Context(), request); !errors.Is(err, engine.ErrConflict) {
		t.Errorf("%d conflicts: %v, want the conflict", changeTries, err)
	}
}

func TestTheRunsOfAScheduleAreListedByItsName(t *testing.T) {
	mine := stored().ID.String()
	b := &servertest.Books{Schedules: map[string]engine.Schedule{"sched": stored()}, Runs: manyRuns(3)}
	b.Runs[0].ScheduleID, b.Runs[2].ScheduleID = mine, mine
	request := &kagziv1.ListScheduleRunsRequest{ScheduleId: "sched", Page: &kagziv1.PageRequest{PageSize: 1}}
	answer, err := serverOver(b).ListScheduleRuns(t.Context(), request)
	if err != nil || len(answer.Runs) != 1 || answer.Runs[0].RunId != someRun(b, 0) || !answer.Page.HasMore {
		t.Fatalf("%v, %v", answer, err)
	}
	request.Page.PageToken = answer.Page.NextPageToken
	if answer, err = serverOver(b).ListScheduleRuns(t.Context(), request); err != nil || len(answer.Runs) != 1 ||
		answer.Runs[0].RunId != someRun(b, 2) || answer.Page.HasMore {
		t.Errorf("the second page: %v, %v", answer, err)
	}
	if _, err := serverOver(b).ListScheduleRuns(
		t.Context(), &kagziv1.ListScheduleRunsRequest{ScheduleId: "none"}); !errors.Is(err, engine.ErrNotFound) {
		t.Errorf("a schedule that is not there: %v", err)
	}
}

func someRun(b *servertest.Books, place int) string { return b.Runs[place].ID.String() }

func TestRunsOfAScheduleAreFoundByItsName(t *testing.T) {
	id := engine.NewID(time.Now())
	s := serverOver(&servertest.Books{Schedules: map[string]engine.Schedule{"nightly": {ID: id, Name: "nightly"}}})
	for given, want := range map[string]string{
		"nightly": id.String(), id.String(): id.String(), strings.ToUpper(id.String()): id.String()} {
		f, err := s.runFilter(t.Context(), &kagziv1.ListWorkflowsRequest{ScheduleId: &given})
		if err != nil || f.ScheduleID != want {
			t.Errorf("%s: selects those of %q, %v, want of %s", given, f.ScheduleID, err, want)
		}
	}
	// An unknown name is a mistake: a bulk change must not answer that there was nothing to do.
	odd := &kagziv1.ListWorkflowsRequest{ScheduleId: new("nightyl")}
	_, listed := s.ListWorkflows(t.Context(), odd)
	_, ended := s.bulkOf(t.Context(), &kagziv1.BulkWorkflowsRequest{
		Filter: odd, Action: kagziv1.BulkAction_BULK_ACTION_CANCEL})
	for what, err := range map[string]error{"a list": listed, "a bulk change": ended} {
		if want := engine.ScheduleNotFound("nightyl").Error(); err == nil || err.Error() != want {
			t.Errorf("%s of a name that no schedule has: %v, want %s", what, err, want)
		}
	}
}

// fixedClock is a store whose clock stands still.
type fixedClock struct {
	*servertest.Books
	now time.Time
}

func (f fixedClock) Now() time.Time { return f.now }

func TestResumingSkipsMissedTicksButTheLatestAskedFor(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 30, 0, time.UTC)
	minute := func(n int) time.Time { return now.Truncate(time.Minute).Add(time.Duration(n) * time.Minute) }
	for _, c := range []struct {
		name    string
		change  func(s *engine.Schedule)
		catchup *int32
		next    time.Time
		skipped int64
	}{
		{"no number leaves them to max_catchup", nil, nil, minute(-9), 0},
		{"none", nil, new(int32(0)), minute(1), 10},
		{"three", nil, new(int32(3)), minute(-2), 7},
		{"all", nil, new(int32(10)), minute(-9), 0},
		{"more than there are", nil, new(int32(99)), minute(-9), 0},
		{"none, but the newest is on time", func(s *engine.Schedule) { s.CronExpr = "30 * * * * *" }, new(int32(0)),
			now, 9},
		{"nothing was missed", func(s *engine.Schedule) { s.NextFireAt = minute(1) }, new(int32(0)), minute(1), 0},
		{"it is not paused", func(s *engine.Schedule) { s.Enabled = true }, new(int32(0)), minute(-9), 0},
		{"it is broken", func(s *engine.Schedule) { s.Broken, s.TimeZone = "why", "Mars/Olympus" }, new(int32(0)),
			minute(-9), 0},
		{"it never fires again", func(s *engine.Schedule) { s.CronExpr = "0 * * 11 * ? 2025" }, new(int32(0)),
			time.Time{}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			was := stored()
			was.CronExpr, was.NextFireAt, was.Enabled = "* * * * *", minute(-9), false
			if c.change != nil {
				c.change(&was)
			}
			b := &servertest.Books{Schedules: map[string]engine.Schedule{"sched": was}}
			_, err := New(fixedClock{b, now}, nil, Options{}).ResumeWorkflowSchedule(t.Context(),
				&kagziv1.ResumeWorkflowScheduleRequest{ScheduleId: "sched", Catchup: c.catchup})
			if err != nil {
				t.Fatal(err)
			}
			p := servertest.Last[engine.ScheduleParams](b)
			if !p.Schedule.NextFireAt.Equal(c.next) || p.Skipped != c.skipped || !p.Schedule.Enabled {
				t.Errorf("next %s and %d skipped, want %s and %d", p.Schedule.NextFireAt, p.Skipped, c.next, c.skipped)
			}
		})
	}
	for _, n := range []int32{-1, engine.MaxCatchup + 1} {
		b := &servertest.Books{Schedules: map[string]engine.Schedule{"sched": stored()}}
		_, err := serverOver(b).ResumeWorkflowSchedule(t.Context(),
			&kagziv1.ResumeWorkflowScheduleRequest{ScheduleId: "sched", Catchup: &n})
		if e, ok := errors.AsType[*engine.Error](err); !ok || e.Field != "catchup" || b.Changes() != 0 {
			t.Errorf("catchup %d: %v", n, err)
		}
	}
}
