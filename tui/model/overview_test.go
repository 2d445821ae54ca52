package model

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

func TestOverview_reads_what_changed_and_no_more(t *testing.T) {
	withLink(t, func(s *server) {
		for i, n := range []int64{3, 9, 1} {
			s.queues = append(s.queues, &kagziv1.QueueDepth{TaskQueue: fmt.Sprint("q", i), Pending: n})
		}
		soon, late := timestamppb.New(time.Now().Add(time.Minute)), timestamppb.New(time.Now().Add(time.Hour))
		s.schedules = []*kagziv1.WorkflowSchedule{
			{ScheduleId: "late", Enabled: true, NextFireAt: late}, {ScheduleId: "off", NextFireAt: soon},
			{ScheduleId: "soon", Enabled: true, NextFireAt: soon},
		}
		s.put(aRun(1, failed))
		s.put(aRun(2, completed))
	}, func(t *testing.T, s *server, u *ui, l *Link) {
		o := NewOverview(l)
		defer o.Close()
		u.settle()
		if o.Stats().GetRunningWorkflows() != 3 || o.Info().GetVersion() != "v1.0.0" || o.Err() != nil {
			t.Fatalf("stats %v, info %v, error %v", o.Stats(), o.Info(), o.Err())
		}
		if s.called("ListWorkflows") != 0 {
			t.Fatal("failures were read although nobody sees them")
		}
		o.Show()
		u.settle()
		if len(o.Failures()) != 1 || o.Deepest()[0].GetPending() != 9 {
			t.Fatalf("failures %v, queues %v", o.Failures(), o.Deepest())
		}
		if fires := o.Fires(); len(fires) != 2 || fires[0].GetScheduleId() != "soon" {
			t.Fatalf("fires %v", fires)
		}
		stats := s.called("GetStats")
		s.live(u, time.Minute)
		if s.called("GetStats") != stats {
			t.Fatal("statistics were read although nothing changed")
		}
		for range 50 {
			s.tell(&kagziv1.WatchEvent{WorkflowsChanged: true})
			u.advance(100 * time.Millisecond)
		}
		if n := s.called("GetStats") - stats; n < 4 || n > 6 {
			t.Fatalf("statistics were read %d times in 5 s of changes", n)
		}
		o.Hide()
		lists := s.called("ListWorkflows")
		s.tell(&kagziv1.WatchEvent{WorkflowsChanged: true})
		u.advance(3 * time.Second)
		if s.called("ListWorkflows") != lists {
			t.Fatal("failures are still read")
		}
	})
}

func TestOverview_says_whether_its_lists_are_all_there_is(t *testing.T) {
	for beyond, want := range []bool{false, true} {
		withLink(t, func(s *server) {
			for i := range topQueues + beyond {
				s.queues = append(s.queues, &kagziv1.QueueDepth{TaskQueue: fmt.Sprint("q", i)})
			}
			for i := range topFires + beyond {
				s.schedules = append(s.schedules, &kagziv1.WorkflowSchedule{
					ScheduleId: fmt.Sprint("s", i), Enabled: true, NextFireAt: timestamppb.Now()})
			}
			s.schedules = append(s.schedules, &kagziv1.WorkflowSchedule{ScheduleId: "off"}) // does not fire
			for i := range topFailures + beyond {
				s.put(aRun(i+1, failed))
			}
		}, func(t *testing.T, s *server, u *ui, l *Link) {
			o := NewOverview(l)
			defer o.Close()
			o.Show()
			u.settle()
			queues, failures, fires := o.More()
			if queues != want || failures != want || fires != want {
				t.Errorf("with %d more: more queues %v, failures %v, fires %v, want %v", beyond, queues, failures,
					fires, want)
			}
			if len(o.Deepest()) != topQueues || len(o.Failures()) != topFailures || len(o.Fires()) != topFires {
				t.Errorf("with %d more: %d queues, %d failures, %d fires", beyond, len(o.Deepest()), len(o.Failures()),
					len(o.Fires()))
			}
		})
	}
}

func TestActivity_goes_on_while_nothing_is_read(t *testing.T) {
	begin := time.Unix(10_000, 0)
	s := series{at: begin, step: time.Second}
	for i := range 4 {
		s.points = append(s.points, &kagziv1.ActivityPoint{RunsStarted: int64(i + 1)})
	}
	values := func(n int, after time.Duration) []int64 {
		var list []int64
		for _, p := range s.last(n, begin.Add(after)) {
			list = append(list, p.GetRunsStarted())
		}
		return list
	}
	for _, try := range []struct {
		n     int
		after time.Duration
		want  []int64
	}{
		{3, 0, []int64{2, 3, 4}}, {6, 0, []int64{0, 0, 1, 2, 3, 4}}, {4, 2500 * time.Millisecond, []int64{3, 4, 0, 0}},
		{2, time.Hour, []int64{0, 0}},
		{3, -time.Second, []int64{2, 3, 4}},
	} {
		if diff := cmp.Diff(try.want, values(try.n, try.after)); diff != "" {
			t.Errorf("the last %d points after %s: %s", try.n, try.after, diff)
		}
	}
	for after, want := range map[time.Duration]int{
		-2 * time.Second: 2, -2*time.Second + time.Millisecond: 2, -2*time.Second - time.Millisecond: 2, 0: 0,
		-time.Millisecond: 0} {
		if got := len(s.since(begin.Add(after))); got != want {
			t.Errorf("%d points began at %s or later, want %d", got, after, want)
		}
	}
	if points := (&series{}).last(2, begin); len(points) != 2 {
		t.Errorf("a series that was never read has %d points", len(points))
	}
}

func TestAFailureInTheSecondOfTheReadingIsCounted(t *testing.T) {
	for name, back := range map[string]bool{"when it opens": true, "later": false} {
		t.Run(name, func(t *testing.T) {
			var begun, failed time.Time
			withLink(t, func(s *server) {
				begun = time.Now().Add(-90*time.Second - 300*time.Millisecond)
				if failed = time.Now().Add(time.Hour); back {
					failed = time.Now().Add(-100 * time.Millisecond)
				}
				// whole steps only, as a server tells them
				s.told = func(step time.Duration) *kagziv1.GetActivityResponse {
					answer := &kagziv1.GetActivityResponse{}
					at := begun
					for ; !at.Add(step).After(time.Now()); at = at.Add(step) {
						p := &kagziv1.ActivityPoint{}
						if !failed.Before(at) && failed.Before(at.Add(step)) {
							p.RunsFailed = 1
						}
						answer.Points = append(answer.Points, p)
					}
					answer.At = timestamppb.New(at)
					return answer
				}
			}, func(t *testing.T, s *server, u *ui, l *Link) {
				o := NewOverview(l)
				defer o.Close()
				u.settle()
				s.live(u, 20*time.Second)
				if !back {
					failed = time.Now()
					s.tell(&kagziv1.WatchEvent{WorkflowsChanged: true})
				}
				for range 20 { // over the end of a minute
					s.live(u, 6*time.Second)
					if n := o.FailedLastHour(); n != 1 {
						t.Fatalf("%d have failed within the hour, want 1", n)
					}
				}
			})
		})
	}
}

func TestAWaitGrowsWhileNothingIsRead(t *testing.T) {
	withLink(t, func(s *server) {
		s.queues = []*kagziv1.QueueDepth{{TaskQueue: "q", Pending: 1, OldestPendingSeconds: 56}, {TaskQueue: "idle"}}
		s.oldest = 56
	}, func(t *testing.T, s *server, u *ui, l *Link) {
		o := NewOverview(l)
		defer o.Close()
		u.settle()
		stats := s.called("GetStats")
		s.live(u, 5*time.Minute)
		if s.called("GetStats") != stats {
			t.Fatal("the statistics were read again, which shows nothing")
		}
		const want = 5*time.Minute + 56*time.Second
		if all, one := o.OldestPending(), o.OldestIn(o.Queues().All()[0]); (all-want).Abs() > time.Second ||
			(one-want).Abs() > time.Second {
			t.Errorf("the oldest waits for %s, in its queue %s, want %s", all, one, want)
		}
		if idle := o.OldestIn(o.Queues().All()[1]); idle != 0 {
			t.Errorf("in a queue in which nothing waits the oldest waits for %s", idle)
		}
		if w := o.Warnings(); !slices.ContainsFunc(w, func(w Warning) bool {
			return strings.HasSuffix(w.Text, "waiting for a worker for 5m")
		}) {
			t.Errorf("the warnings are %v, want one of the wait", w)
		}
	})
}

func TestWarnings(t *testing.T) {
	now := time.Unix(100_000, 0)
	info := func(section, name, value string) *kagziv1.GetServerInfoResponse {
		return &kagziv1.GetServerInfoResponse{Version: "v1.2.0",
			Facts: []*kagziv1.ServerFact{{Section: section, Name: name, Value: value}}}
	}
	worker := func(status kagziv1.WorkerStatus, silent time.Duration) []*kagziv1.Worker {
		return []*kagziv1.Worker{{WorkerId: "w1", Hostname: "box", Status: status,
			LastHeartbeatAt: timestamppb.New(now.Add(-silent))}}
	}
	online := kagziv1.WorkerStatus_WORKER_STATUS_ONLINE
	for name, try := range map[string]struct {
		situation Situation
		want      []Warning
	}{
		"nothing known": {Situation{}, nil},
		"all is well": {Situation{
			Health: &kagziv1.HealthCheckResponse{Status: kagziv1.ServingStatus_SERVING_STATUS_SERVING},
			Info:   info("database", "free disk space", "5.0 GiB"), Version: "v1.2.0",
			Queues:  []*kagziv1.QueueDepth{{TaskQueue: "q", Pending: 9, OnlineWorkers: 1}},
			Workers: worker(online, 20*time.Second), Stats: &kagziv1.GetStatsResponse{OldestPendingSeconds: 299},
			Schedules: []*kagziv1.WorkflowSchedule{{Enabled: true}}, Skew: time.Second,
		}, nil},
		"unhealthy": {Situation{Health: &kagziv1.HealthCheckResponse{
			Status: kagziv1.ServingStatus_SERVING_STATUS_NOT_SERVING, Message: "disk full"}},
			[]Warning{{Critical, "the server is unhealthy: disk full", "server", ""}}},
		"disk low": {Situation{Info: info("database", "free disk space", "900.0 MiB")},
			[]Warning{{Warn, "the server's disk has only 900.0 MiB left", "server", ""}}},
		"disk full": {Situation{Info: info("database", "free disk space", "12.0 MiB")},
			[]Warning{{Critical, "the server's disk has only 12.0 MiB left: new runs are refused", "server", ""}}},
		"disk odd": {Situation{Info: info("database", "free disk space", "plenty")}, nil},
		"no worker": {Situation{Queues: []*kagziv1.QueueDepth{
			{TaskQueue: "emails", UnservedByType: map[string]int64{"a": 300, "b": 1040}}}},
			[]Warning{{Warn, `1,340 runs wait on queue "emails", which no worker serves`, "runs",
				"status:pending queue:emails"}}},
		"no worker of the type": {Situation{Queues: []*kagziv1.QueueDepth{
			{TaskQueue: "q", OnlineWorkers: 2, UnservedByType: map[string]int64{"d": 0, "a": 1, "b": 0, "c": 0}}}},
			[]Warning{{Warn, `1 run waits on queue "q" for a worker that serves a, b, c and 1 more`, "runs",
				"status:pending queue:q type:a,b,c,d"}}},
		"pending long": {Situation{Stats: &kagziv1.GetStatsResponse{OldestPendingSeconds: 301}},
			[]Warning{{Warn, "a run has been waiting for a worker for 5m", "runs", "status:pending"}}},
		"silent worker": {Situation{Workers: worker(online, 26*time.Second), WorkersAsOf: now},
			[]Warning{{Warn, "worker box has been silent for 26s", "workers", "w1"}}},
		"silent for a slow heartbeat": {Situation{
			Workers: worker(online, 26*time.Second), WorkersAsOf: now,
			Info: &kagziv1.GetServerInfoResponse{HeartbeatIntervalMs: 20_000}}, nil},
		"offline worker": {Situation{
			Workers: worker(kagziv1.WorkerStatus_WORKER_STATUS_OFFLINE, time.Hour), WorkersAsOf: now}, nil},
		"schedules": {Situation{Schedules: []*kagziv1.WorkflowSchedule{
			{ScheduleId: "s1"}, {ScheduleId: "s2", Name: "nightly", Enabled: true, Broken: "no such zone"}}},
			[]Warning{{Critical, "schedule nightly cannot fire: no such zone", "schedules", "nightly"},
				{Notice, "schedule s1 is paused", "schedules", "s1"}}},
		"clock ahead": {Situation{Skew: 3 * time.Second},
			[]Warning{{Warn, "the server's clock is 3s ahead of this machine's", "server", ""}}},
		"clock behind": {Situation{Skew: -time.Hour},
			[]Warning{{Warn, "the server's clock is 1h0m behind this machine's", "server", ""}}},
		"clock uncertain": {Situation{Skew: 3 * time.Second, RoundTrip: 2 * time.Second}, nil},
		"older": {Situation{Info: info("", "", ""), Version: "v1.10.0"},
			[]Warning{{Notice, "the server is v1.2.0, older than this program, v1.10.0", "server", ""}}},
		"newer":           {Situation{Info: info("", "", ""), Version: "v1.1.9"}, nil},
		"no real version": {Situation{Info: info("", "", ""), Version: "dev"}, nil},
		"database": {Situation{Info: &kagziv1.GetServerInfoResponse{Facts: []*kagziv1.ServerFact{
			{Section: "database", Name: "warning", Value: "move to a database with UTF8"}}}},
			[]Warning{{Warn, "move to a database with UTF8", "server", ""}}},
		"exposed": {Situation{Info: &kagziv1.GetServerInfoResponse{
			Warnings: []string{"other machines can reach this server, which needs no key"}}},
			[]Warning{{Critical, "other machines can reach this server, which needs no key", "server", ""}}},
	} {
		if diff := cmp.Diff(try.want, Warnings(try.situation)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestAnOverviewOfWhoMayNotSeeTheActivityAsksForItOnce(t *testing.T) {
	withLink(t, func(s *server) { s.sealed = true }, func(t *testing.T, s *server, u *ui, l *Link) {
		o := NewOverview(l)
		defer o.Close()
		o.Show()
		u.settle()
		asked := s.called("GetActivity 1s")
		for range 20 {
			s.tell(&kagziv1.WatchEvent{WorkflowsChanged: true})
			u.advance(time.Second)
		}
		if n := s.called("GetActivity 1s"); n != asked || o.Err() != nil || o.err != nil {
			t.Fatalf("asked %d times more, error %v, %v", n-asked, o.Err(), o.err)
		}
		if !o.Sealed() {
			t.Error("it does not say that the activity is not known")
		}
		s.sealed = false // the key may do more
		l.Retry()
		u.settle()
		if o.Sealed() {
			t.Error("it says that the activity is not known although it is told now")
		}
	})
}
