package render

import (
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

func TestDays_says_a_length_exactly(t *testing.T) {
	for d, want := range map[time.Duration]string{
		24 * time.Hour: "1d", 720 * time.Hour: "30d", 36 * time.Hour: "36h", 90 * time.Minute: "1h30m",
		25*time.Hour + time.Second: "25h0m1s", time.Second: "1s", 10 * time.Minute: "10m",
	} {
		if got := Days(d); got != want {
			t.Errorf("Days(%v) = %q, want %q", d, got, want)
		}
	}
}

func TestScheduleState_of_one_that_cannot_fire_is_broken_whatever_it_is_set_to(t *testing.T) {
	for want, s := range map[string]*kagziv1.WorkflowSchedule{
		"ENABLED": {Enabled: true}, "PAUSED": {}, "BROKEN": {Enabled: true, Broken: "zone is gone"}} {
		if got := ScheduleState(s).Text; got != want {
			t.Errorf("state = %q, want %q", got, want)
		}
	}
}

func TestWorkerPairs_say_how_the_worker_went(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for want, reason := range map[string]kagziv1.WorkerOfflineReason{
		"Gone":           kagziv1.WorkerOfflineReason_WORKER_OFFLINE_REASON_UNSPECIFIED,
		"Deregistered":   kagziv1.WorkerOfflineReason_WORKER_OFFLINE_REASON_DEREGISTERED,
		"Lost":           kagziv1.WorkerOfflineReason_WORKER_OFFLINE_REASON_LOST,
		"Forced offline": kagziv1.WorkerOfflineReason_WORKER_OFFLINE_REASON_FORCED,
	} {
		pairs := WorkerPairs(&kagziv1.Worker{DeregisteredAt: timestamppb.New(now), OfflineReason: &reason},
			View{Now: now})
		if got := pairs[len(pairs)-1].Label; got != want {
			t.Errorf("reason %s: it says %q, want %q", reason, got, want)
		}
	}
}

func TestWorkerPairs_show_no_figure_that_nobody_measured(t *testing.T) {
	known := map[string]string{"CPU": "0%", "Memory": "1.0 KiB", "Disk free": "2.0 KiB", "Uptime": "1m30s",
		"Average run": "20ms"}
	for name, c := range map[string]struct {
		stats *kagziv1.WorkerStats
		want  []string
	}{
		"nothing yet": {nil, nil},
		"what its platform cannot say": {&kagziv1.WorkerStats{MemoryBytes: 1024, UptimeSeconds: 90},
			[]string{"CPU", "Memory", "Uptime"}},
		"all": {&kagziv1.WorkerStats{MemoryBytes: 1024, DiskAvailableBytes: 2048, UptimeSeconds: 90, AverageRunMs: 20},
			[]string{"CPU", "Memory", "Disk free", "Uptime", "Average run"}},
	} {
		var got []string
		for _, p := range WorkerPairs(&kagziv1.Worker{Stats: c.stats}, View{}) {
			if text, ok := known[p.Label]; ok {
				got = append(got, p.Label)
				if p.Lines[0] != text {
					t.Errorf("%s: %s = %q, want %q", name, p.Label, p.Lines[0], text)
				}
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: it shows %v, want %v", name, got, c.want)
		}
	}
}

func TestRetryLine_says_what_is_set(t *testing.T) {
	for want, p := range map[string]*kagziv1.RetryPolicy{
		"":                             nil,
		"unlimited attempts, jitter 0": {MaximumAttempts: -1, Jitter: -1},
		"5 attempts, first after 2s, times 1.5, at most 1m0s, jitter 0.5, not retryable: A, B": {
			MaximumAttempts: 5, InitialIntervalMs: 2000, BackoffCoefficient: 1.5, MaximumIntervalMs: 60000, Jitter: 0.5,
			NonRetryableErrors: []string{"A", "B"}},
	} {
		if got := retryLine(p); got != want {
			t.Errorf("retryLine(%v) = %q, want %q", p, got, want)
		}
	}
}

func TestStepResult_of_a_wait(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for want, s := range map[string]*kagziv1.Step{
		"waits for signal go":                  {SignalName: "go"},
		"waits for signal go, times out in 1h": {SignalName: "go", WakeUpAt: timestamppb.New(now.Add(time.Hour))},
		"signal go timed out": {
			SignalName: "go", SignalTimedOut: true, FinishedAt: timestamppb.New(now)},
		`{"by":"ada"}`: {
			SignalName: "go", Output: &kagziv1.Payload{Data: []byte(`{"by": "ada"}`)},
			FinishedAt: timestamppb.New(now)},
	} {
		if got := StepResult(s, View{Now: now, Payloads: 100}); got != want {
			t.Errorf("result of %v = %q, want %q", s, got, want)
		}
	}
}

func TestStepResult_of_a_failed_attempt(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	failed := &kagziv1.Step{Status: kagziv1.StepStatus_STEP_STATUS_PENDING,
		Error: &kagziv1.ErrorDetail{Message: "no card"}, RetryAt: timestamppb.New(now.Add(time.Hour))}
	if got := StepResult(failed, View{Now: now}); got != "no card, again in 1h" {
		t.Errorf("while it is to be tried again: %q", got)
	}
	if got := StepResult(failed, View{Now: now.Add(2 * time.Hour)}); got != "no card" {
		t.Errorf("when that is due: %q", got)
	}
	failed.Status = kagziv1.StepStatus_STEP_STATUS_FAILED
	if got := StepResult(failed, View{Now: now}); got != "no card" {
		t.Errorf("when its run has ended before: %q", got)
	}
}

func TestTicksTable_of_a_zone_that_is_not_known_here_is_in_UTC_alone(t *testing.T) {
	tick := []*timestamppb.Timestamp{timestamppb.New(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))}
	for _, zone := range []string{"", "UTC", "Mars/Base", "../etc"} {
		if table := TicksTable(tick, zone, View{}); table.Columns[0].Title != "FIRES (UTC)" ||
			table.Rows[0][0].Text != "Friday 20 November 2026, 12:00 UTC" ||
			table.Rows[0][1].Text != "2026-11-20T12:00:00Z" {
			t.Errorf("zone %q: %v", zone, table)
		}
	}
}

func TestTickWords_have_the_weekday_and_seconds_only_if_there_are_some(t *testing.T) {
	at := time.Date(2026, 11, 1, 9, 0, 0, 0, time.UTC)
	if got := TickWords(at); got != "Sunday 1 November 2026, 09:00 UTC" {
		t.Error(got)
	}
	if got := TickWords(at.Add(30 * time.Second)); got != "Sunday 1 November 2026, 09:00:30 UTC" {
		t.Error(got)
	}
}

func TestErrorLine_names_the_type_of_an_error_once(t *testing.T) {
	for want, e := range map[string]*kagziv1.ErrorDetail{
		"AddressError: no such street":      {Type: "AddressError", Message: "no such street"},
		"panic: out of range":               {Type: "panic", Message: "panic: out of range"},
		"step ship: panic: out of range":    {Type: "panic", Message: "step ship: panic: out of range"},
		"panic: do not panic":               {Type: "panic", Message: "do not panic"},
		"Declined: step charge: no money …": {Type: "Declined", Message: "step charge: no money\nat all"},
		"no type":                           {Message: "no type"},
		"Odd: (error without a message)":    {Type: "Odd"},
		"TIMEOUT":                           {Code: kagziv1.ErrorCode_ERROR_CODE_TIMEOUT},
	} {
		if got := ErrorLine(e); got != want {
			t.Errorf("line of %v = %q, want %q", e, got, want)
		}
		if got := ErrorLines(e, View{})[0]; got != strings.TrimSuffix(want, " …") {
			t.Errorf("lines of %v begin with %q, want %q", e, got, want)
		}
	}
}
