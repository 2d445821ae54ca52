package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

func TestOverlapPolicies(t *testing.T) {
	type policy = kagziv1.OverlapPolicy
	const allow, skip, buffer = kagziv1.OverlapPolicy_OVERLAP_POLICY_ALLOW, kagziv1.OverlapPolicy_OVERLAP_POLICY_SKIP,
		kagziv1.OverlapPolicy_OVERLAP_POLICY_BUFFER_ONE
	eachServer(t, jumpy, func(t *testing.T, s *Server) {
		s.toMinute()
		w := s.register(t)
		made := map[policy]string{}
		for _, p := range []policy{allow, skip, buffer} {
			made[p] = s.schedule(t, func(r *kagziv1.CreateWorkflowScheduleRequest) { r.OverlapPolicy = p }).ScheduleId
		}
		first := s.look(t, made[allow]).NextFireAt.AsTime()
		tasks := map[string]*kagziv1.Task{} // by schedule: the task of its first run
		for tick := 1; tick <= 3; tick++ {
			s.toMinute()
			s.awaitFired(t, made[allow], tick)
			for _, id := range made { // all have decided about this tick
				eventually(t, "the tick is decided", func() bool {
					return s.look(t, id).NextFireAt.AsTime().After(first.Add(time.Duration(tick-1) * time.Minute))
				})
			}
			for tick == 1 && len(tasks) < 3 {
				task := w.take(t)
				tasks[task.GetScheduleId()] = task
			}
		}
		check := func(when string, p policy, runs int, skipped int64, buffered time.Time) {
			t.Helper()
			got := s.look(t, made[p])
			if n := len(s.fired(t, made[p])); n != runs || got.TotalRuns != int64(runs) ||
				got.SkippedTicks != skipped ||
				(got.BufferedTick == nil) != buffered.IsZero() || got.BufferedTick != nil &&
				!got.BufferedTick.AsTime().Equal(buffered) {
				t.Errorf("%s: with %s %d runs: %v, want %d runs, %d skipped, buffered %s", when, p, n, got, runs,
					skipped, buffered)
			}
		}
		check("after three ticks", allow, 3, 0, time.Time{})
		check("after three ticks", skip, 1, 2, time.Time{})
		check("after three ticks", buffer, 1, 1, first.Add(time.Minute))
		for _, p := range []policy{skip, buffer} {
			w.complete(t, tasks[made[p]], "")
		}
		check("after the first run", skip, 1, 2, time.Time{})
		check("after the first run", buffer, 2, 1, time.Time{})
		runs := s.fired(t, made[buffer])
		if at := runs[1].ScheduledAt.AsTime(); !at.Equal(first.Add(time.Minute)) || runs[1].Status != pending {
			t.Errorf("the buffered run is %v, want the second tick's", runs[1])
		}
		// When a person ends the run, the next one may start too.
		s.toMinute()
		eventually(t, "a tick is buffered", func() bool { return s.look(t, made[buffer]).BufferedTick != nil })
		fine(s.workflows().TerminateWorkflow(within(t, 20*time.Second),
			&kagziv1.TerminateWorkflowRequest{RunId: runs[1].RunId}))(t)
		check("after the second run was terminated", buffer, 3, 1, time.Time{})
		s.awaitFired(t, made[skip], 2)
	})
}

func TestTwoServersOnOneDatabaseFireEachTickOnce(t *testing.T) {
	t.Parallel()
	url := freshURL(t, "postgres")
	servers := []*Server{New(t, openStore(t, url), jumpy), New(t, openStore(t, url), jumpy)}
	s := servers[0]
	for _, s := range servers {
		s.toMinute()
	}
	const schedules, ticks = 10, 8
	var made []*kagziv1.WorkflowSchedule
	for i := range schedules {
		made = append(made, s.schedule(t, func(r *kagziv1.CreateWorkflowScheduleRequest) { r.Name = fmt.Sprint(i) }))
	}
	for i := 1; i <= ticks; i++ {
		done := make(chan struct{})
		go func() {
			defer close(done)
			servers[1].Jump(time.Minute)
		}()
		s.Jump(time.Minute)
		<-done
		for _, schedule := range made {
			s.awaitFired(t, schedule.ScheduleId, i)
		}
	}
	for _, schedule := range made {
		checkTicks(t, s, schedule, ticks)
	}
}

// checkTicks wants exactly one run for each tick of a schedule from its first to its last run, in
// order of time.
func checkTicks(t testing.TB, s *Server, made *kagziv1.WorkflowSchedule, least int) {
	t.Helper()
	runs := s.fired(t, made.ScheduleId)
	if len(runs) < least {
		t.Errorf("schedule %s has fired %d times, want %d at least", made.Name, len(runs), least)
	}
	var got []time.Time
	var ticks []*timestamppb.Timestamp // from the run's on
	for i, run := range runs {
		if len(ticks) == 0 {
			after := made.CreatedAt
			if i > 0 {
				after = runs[i-1].ScheduledAt
			}
			ticks = fine(s.schedules().PreviewSchedule(within(t, 20*time.Second), &kagziv1.PreviewScheduleRequest{
				CronExpr: made.CronExpr, After: after, Count: 100}))(t).Ticks
		}
		got = append(got, run.ScheduledAt.AsTime())
		want := ticks[0].AsTime()
		ticks = ticks[1:]
		if !got[i].Equal(want) {
			t.Errorf("run %d of schedule %s is for %s, want %s: %v", i, made.Name, got[i], want, got)
			return
		}
	}
	if at := s.look(t, made.ScheduleId); at.TotalRuns != int64(len(runs)) || at.SkippedTicks != 0 ||
		!at.LastFiredAt.AsTime().Equal(got[len(got)-1]) {
		t.Errorf("schedule %s is %v after %d runs", made.Name, at, len(runs))
	}
}

func TestEachTickHasOneRunWhereverTheServerDies(t *testing.T) {
	for _, backend := range []string{"sqlite", "postgres"} {
		for _, at := range []string{"before_commit", "after_commit"} {
			point := fmt.Sprintf("%s.%s", backend, at)
			t.Run(point, func(t *testing.T) {
				t.Parallel()
				crashSchedules(t, freshURL(t, backend), point)
			})
		}
	}
}

func crashSchedules(t *testing.T, url, point string) {
	points := make([]string, *rounds) // there are two or three commits a second: a life takes at most six seconds
	for i := range points {
		points[i] = fmt.Sprintf("%s:%d", point, 5+i%10)
	}
	p := runProcess(t, url, points)
	conn, err := grpc.NewClient(p.address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	s := &Server{Conn: conn, Address: p.address, tb: t}
	// guards against a hang: three deaths took 27 s under the race detector, and 103 s on a busy
	// machine
	ctx := within(t, 5*time.Minute)
	const schedules = 6
	var made []*kagziv1.WorkflowSchedule
	for i := range schedules {
		r := &kagziv1.CreateWorkflowScheduleRequest{
			WorkflowType: "t", CronExpr: "* * * * * *", Name: fmt.Sprint(i), RequestId: fmt.Sprintf("request-%d", i),
			MaxCatchup: proto.Int32(1000)}
		answer, err := stubborn(ctx, func() (*kagziv1.CreateWorkflowScheduleResponse, error) {
			return s.schedules().CreateWorkflowSchedule(ctx, r)
		})
		if err != nil {
			t.Fatal(err)
		}
		made = append(made, answer.Schedule)
	}
	// Until it has died as often as it should, and for two more ticks.
	for n := range *rounds {
		eventually(t, fmt.Sprintf("the server has died at %s, time %d", point, n+1), func() bool {
			p.mu.Lock()
			defer p.mu.Unlock()
			return p.deaths > n
		})
	}
	least := map[string]int{}
	for _, schedule := range made {
		answer, err := stubborn(ctx, func() (*kagziv1.GetWorkflowScheduleResponse, error) {
			return s.schedules().GetWorkflowSchedule(
				ctx, &kagziv1.GetWorkflowScheduleRequest{ScheduleId: schedule.ScheduleId})
		})
		if err != nil {
			t.Fatal(err)
		}
		least[schedule.ScheduleId] = int(answer.Schedule.TotalRuns) + 2
	}
	for _, schedule := range made {
		s.awaitFired(t, schedule.ScheduleId, least[schedule.ScheduleId])
		fine(s.schedules().PauseWorkflowSchedule(
			ctx, &kagziv1.PauseWorkflowScheduleRequest{ScheduleId: schedule.ScheduleId}))(t)
		checkTicks(t, s, schedule, least[schedule.ScheduleId])
	}
	p.stop()
	checkDatabase(t, url)
}

// stubborn repeats a call until it is answered.
func stubborn[T any](ctx context.Context, call func() (T, error)) (answer T, err error) {
	for {
		if answer, err = call(); err == nil || ctx.Err() != nil {
			return answer, err
		}
	}
}
