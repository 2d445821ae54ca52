package model

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/render"
)

// Level is the severity of a warning.
type Level uint8

const (
	Notice   Level = iota // intended, but good to know
	Warn                  // something is stuck, or soon will be
	Critical              // something does not work
)

// Warning is a condition that a person should look at.
type Warning struct {
	Level  Level
	Text   string // one line of raw text
	View   string // command of the view with more about it: "queues", "runs", "server"
	Filter string // for that view; for runs in the short form
}

// Situation is the input of Warnings. Missing fields are nil or zero and cause no warning.
type Situation struct {
	Now, WorkersAsOf time.Time // by the server's clock
	StatsAsOf        time.Time // likewise
	Skew, RoundTrip  time.Duration
	Version          string // of this program
	Health           *kagziv1.HealthCheckResponse
	Stats            *kagziv1.GetStatsResponse
	Info             *kagziv1.GetServerInfoResponse
	Queues           []*kagziv1.QueueDepth
	Schedules        []*kagziv1.WorkflowSchedule
	Workers          []*kagziv1.Worker
}

const (
	pendingLong   = 5 * time.Minute // for the oldest due run
	skewMost      = 2 * time.Second
	diskWarn      = 1 << 30 // bytes left
	diskCritical  = 256 << 20
	silentBeats   = 2.5 // heartbeat intervals
	usualInterval = 10 * time.Second
)

// Warnings returns all warnings, most severe first.
func Warnings(s Situation) []Warning {
	var list []Warning
	list = append(list, ofHealth(s)...)
	list = append(list, ofDisk(s.Info)...)
	list = append(list, OfQueues(s.Queues)...)
	list = append(list, ofPending(s)...)
	list = append(list, ofWorkers(s)...)
	list = append(list, ofSchedules(s.Schedules)...)
	list = append(list, ofServer(s)...)
	slices.SortStableFunc(list, func(a, b Warning) int { return cmp.Compare(b.Level, a.Level) })
	return list
}

func ofHealth(s Situation) []Warning {
	if s.Health.GetStatus() != kagziv1.ServingStatus_SERVING_STATUS_NOT_SERVING {
		return nil
	}
	text := "the server is unhealthy"
	if s.Health.GetMessage() != "" {
		text += ": " + s.Health.GetMessage()
	}
	return []Warning{{Level: Critical, Text: text, View: "server"}}
}

func ofDisk(info *kagziv1.GetServerInfoResponse) []Warning {
	value, ok := Fact(info, "database", "free disk space")
	free, known := ParseBytes(value)
	switch {
	case !ok || !known || free >= diskWarn:
		return nil
	case free < diskCritical:
		return []Warning{{Level: Critical, Text: "the server's disk has only " + value + " left: new runs are refused",
			View: "server"}}
	}
	return []Warning{{Level: Warn, Text: "the server's disk has only " + value + " left", View: "server"}}
}

// OfQueues warns about runs that no worker can claim.
func OfQueues(queues []*kagziv1.QueueDepth) []Warning {
	var list []Warning
	for _, q := range queues {
		var n int64
		types := slices.Sorted(maps.Keys(q.GetUnservedByType()))
		for _, t := range types {
			n += q.GetUnservedByType()[t]
		}
		if n == 0 {
			continue
		}
		w := Warning{Level: Warn, View: "runs", Filter: "status:pending queue:" + q.GetTaskQueue()}
		if q.GetOnlineWorkers() == 0 {
			w.Text = fmt.Sprintf("%s on queue %q, which no worker serves", waits(n), q.GetTaskQueue())
		} else {
			w.Text = fmt.Sprintf("%s on queue %q for a worker that serves %s", waits(n), q.GetTaskQueue(), few(types))
			w.Filter += " type:" + strings.Join(types[:min(len(types), 20)], ",")
		}
		list = append(list, w)
	}
	return list
}

// waits returns "1 run waits" or "340 runs wait".
func waits(n int64) string {
	if n == 1 {
		return "1 run waits"
	}
	return thousands(n) + " runs wait"
}

// few names the first of many.
func few(names []string) string {
	const most = 3
	if len(names) > most {
		return strings.Join(names[:most], ", ") + " and " + strconv.Itoa(len(names)-most) + " more"
	}
	return strings.Join(names, ", ")
}

func ofPending(s Situation) []Warning {
	// rounded down, so that the text does not change with every frame
	oldest := aged(s.Stats.GetOldestPendingSeconds(), s.StatsAsOf, s.Now).Truncate(time.Minute)
	if oldest < pendingLong {
		return nil
	}
	return []Warning{{Level: Warn, Text: "a run has been waiting for a worker for " +
		strings.TrimSuffix(render.Duration(oldest), "0s"), View: "runs", Filter: "status:pending"}}
}

func ofWorkers(s Situation) []Warning {
	limit := usualInterval
	if ms := s.Info.GetHeartbeatIntervalMs(); ms > 0 {
		limit = time.Duration(ms) * time.Millisecond
	}
	limit = time.Duration(silentBeats * float64(limit))
	var list []Warning
	for _, w := range s.Workers {
		if w.GetStatus() == kagziv1.WorkerStatus_WORKER_STATUS_OFFLINE || w.GetLastHeartbeatAt() == nil {
			continue
		}
		if silent := s.WorkersAsOf.Sub(w.GetLastHeartbeatAt().AsTime()); silent > limit {
			name := cmp.Or(w.GetHostname(), w.GetWorkerId())
			list = append(list, Warning{Level: Warn,
				Text: fmt.Sprintf("worker %s has been silent for %s", name, render.Duration(silent)), View: "workers",
				Filter: w.GetWorkerId()})
		}
	}
	return list
}

func ofSchedules(schedules []*kagziv1.WorkflowSchedule) []Warning {
	var list []Warning
	for _, s := range schedules {
		name := cmp.Or(s.GetName(), s.GetScheduleId())
		switch {
		case s.GetBroken() != "":
			list = append(list, Warning{Level: Critical,
				Text: fmt.Sprintf("schedule %s cannot fire: %s", name, s.GetBroken()), View: "schedules", Filter: name})
		case !s.GetEnabled():
			list = append(list, Warning{Level: Notice, Text: fmt.Sprintf("schedule %s is paused", name),
				View: "schedules", Filter: name})
		}
	}
	return list
}

func ofServer(s Situation) []Warning {
	var list []Warning
	skew, ahead := s.Skew, "ahead of"
	if skew < 0 {
		skew, ahead = -skew, "behind"
	}
	if skew-s.RoundTrip > skewMost {
		list = append(list, Warning{Level: Warn,
			Text: fmt.Sprintf("the server's clock is %s %s this machine's", render.Duration(skew), ahead),
			View: "server"})
	}
	if Older(s.Info.GetVersion(), s.Version) {
		list = append(list, Warning{Level: Notice,
			Text: fmt.Sprintf("the server is %s, older than this program, %s", s.Info.GetVersion(), s.Version),
			View: "server"})
	}
	if text, ok := Fact(s.Info, "database", "warning"); ok {
		list = append(list, Warning{Level: Warn, Text: text, View: "server"})
	}
	for _, text := range s.Info.GetWarnings() {
		list = append(list, Warning{Level: Critical, Text: text, View: "server"})
	}
	return list
}

// Fact returns a fact that the server reports, by section and name.
func Fact(info *kagziv1.GetServerInfoResponse, section, name string) (value string, ok bool) {
	for _, f := range info.GetFacts() {
		if f.GetSection() == section && f.GetName() == name {
			return f.GetValue(), true
		}
	}
	return "", false
}

// ParseBytes parses a size such as "4.1 GiB".
func ParseBytes(text string) (int64, bool) {
	number, unit, _ := strings.Cut(text, " ")
	value, err := strconv.ParseFloat(number, 64)
	shift := slices.Index([]string{"B", "KiB", "MiB", "GiB", "TiB"}, unit)
	if err != nil || shift < 0 {
		return 0, false
	}
	return int64(value * float64(int64(1)<<(10*shift))), true
}

// Older reports whether one version, such as "v0.4.1", comes before another. A text that is no
// version is not compared.
func Older(version, than string) bool {
	a, ok := parseVersion(version)
	b, also := parseVersion(than)
	return ok && also && slices.Compare(a, b) < 0
}

func parseVersion(text string) ([]int, bool) {
	text, _, _ = strings.Cut(strings.TrimPrefix(text, "v"), "-")
	parts := strings.Split(text, ".")
	numbers := make([]int, len(parts))
	for i, part := range parts {
		n, err := strconv.Atoi(part)
		if err != nil {
			return nil, false
		}
		numbers[i] = n
	}
	return numbers, len(numbers) == 3
}
