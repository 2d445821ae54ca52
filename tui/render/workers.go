package render

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// WorkersTable lists workers, one per row.
func WorkersTable(workers []*kagziv1.Worker, v View) Table {
	t := Table{Columns: []Column{
		{Title: "WORKER"}, {Title: "STATUS"}, {Title: "RUNS", Right: true}, {Title: "QUEUES", Flex: true},
		{Title: "TYPES", Flex: true},
		{Title: "HEARTBEAT", Spare: 1}, {Title: "DONE", Right: true, Spare: 3},
		{Title: "FAILED", Right: true, Spare: 2}, {Title: "VERSION", Flex: true, Spare: 5},
		{Title: "HOST", Flex: true, Spare: 4}, {Title: "SDK", Flex: true, Spare: 6}, {Title: "BUILD", Flex: true, Spare: 7},
	}}
	for _, w := range workers {
		t.Rows = append(t.Rows, []Cell{
			Text(w.GetWorkerId()), {Text: WorkerStatus(w.GetStatus()), Style: WorkerStyle(w.GetStatus())},
			{Text: load(w)},
			Text(strings.Join(queuesOf(w), ",")), Text(strings.Join(w.GetWorkflowTypes(), ",")),
			{Text: v.Time(w.GetLastHeartbeatAt())},
			{Text: strconv.FormatInt(w.GetTotalCompleted(), 10)}, {Text: strconv.FormatInt(w.GetTotalFailed(), 10)},
			Text(w.GetVersion()), Text(w.GetHostname()), Text(SDK(w)), Text(w.GetBuildId()),
		})
	}
	return t
}

// MatchesTable lists workers with whether they can run something, one per row.
func MatchesTable(matches []*kagziv1.MatchWorkersResponse_Match) Table {
	t := Table{Columns: []Column{
		{Title: "WORKER"}, {Title: "CAN RUN"}, {Title: "WHY", Flex: true}, {Title: "RUNS", Right: true, Spare: 1},
		{Title: "QUEUES", Flex: true, Spare: 2}, {Title: "BUILD", Flex: true, Spare: 3},
	}}
	for _, m := range matches {
		can := Cell{Text: "no", Style: Bad}
		switch {
		case m.GetCanRun() && m.GetBusy():
			can = Cell{Text: "when free", Style: Waiting}
		case m.GetCanRun():
			can = Cell{Text: "yes", Style: Good}
		}
		w := m.GetWorker()
		t.Rows = append(t.Rows, []Cell{Text(w.GetWorkerId()), can, Text(m.GetReason()), {Text: load(w)},
			Text(strings.Join(queuesOf(w), ",")), Text(w.GetBuildId())})
	}
	return t
}

// WorkerPairs returns the set properties of a worker.
func WorkerPairs(w *kagziv1.Worker, v View) []Pair {
	var p pairs
	p.text("Worker", w.GetWorkerId())
	p.cell("Status", Cell{Text: WorkerStatus(w.GetStatus()), Style: WorkerStyle(w.GetStatus())})
	p.text("Namespace", w.GetNamespace())
	p.text("Queues", strings.Join(queuesOf(w), ", "))
	p.text("Types", strings.Join(w.GetWorkflowTypes(), ", "))
	p.text("Runs", load(w))
	p.number("Queue limit", int64(w.GetQueueConcurrencyLimit()))
	for _, c := range w.GetWorkflowTypeConcurrency() {
		p.text("Type limit", fmt.Sprintf("%s: %d", c.GetWorkflowType(), c.GetMaxConcurrent()))
	}
	p.number("Completed", w.GetTotalCompleted())
	p.number("Failed", w.GetTotalFailed())
	p.text("Version", w.GetVersion())
	p.text("SDK", SDK(w))
	p.text("Build", w.GetBuildId())
	p.text("Host", w.GetHostname())
	p.number("Process", int64(w.GetPid()))
	p.text("Platform", w.GetPlatform())
	p.text("Labels", KeyValues(w.GetLabels()))
	p.text("Capabilities", KeyValues(w.GetCapabilities()))
	if s := w.GetStats(); s != nil {
		p.text("CPU", fmt.Sprintf("%.0f%%", s.GetCpuPercent()))
		p.text("Memory", MeasuredBytes(s.GetMemoryBytes()))
		p.text("Disk free", MeasuredBytes(s.GetDiskAvailableBytes()))
		p.text("Uptime", MeasuredTime(time.Duration(s.GetUptimeSeconds())*time.Second))
		p.text("Average run", MeasuredTime(time.Duration(s.GetAverageRunMs()*float64(time.Millisecond))))
	}
	p.time("Registered", w.GetRegisteredAt(), v)
	p.time("Heartbeat", w.GetLastHeartbeatAt(), v)
	p.time(Gone(w), w.GetDeregisteredAt(), v)
	return p
}

// sdkCapability begins the capability that names the language of a worker; its value is the version of the SDK.
const sdkCapability = "sdk:"

// SDK returns the language of a worker and the version of its SDK as raw text, like "python 0.1.0"; empty if the
// worker does not say.
func SDK(w *kagziv1.Worker) string {
	var named []string
	for key, version := range w.GetCapabilities() {
		if language, is := strings.CutPrefix(key, sdkCapability); is {
			named = append(named, strings.TrimSpace(language+" "+version))
		}
	}
	slices.Sort(named)
	return strings.Join(named, ", ")
}

// MeasuredBytes writes a size measured by a worker; empty for 0, which means not known.
func MeasuredBytes(n int64) string {
	if n == 0 {
		return ""
	}
	return Bytes(n)
}

// MeasuredTime does the same for a duration.
func MeasuredTime(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return Duration(d)
}

func queuesOf(w *kagziv1.Worker) []string {
	if len(w.GetTaskQueues()) > 0 {
		return w.GetTaskQueues()
	}
	return []string{w.GetTaskQueue()}
}

func load(w *kagziv1.Worker) string {
	if w.GetMaxConcurrent() == 0 {
		return strconv.Itoa(int(w.GetActiveWorkflowCount()))
	}
	return fmt.Sprintf("%d/%d", w.GetActiveWorkflowCount(), w.GetMaxConcurrent())
}

// QueuesTable lists queues, one per row.
func QueuesTable(queues []*kagziv1.QueueDepth) Table {
	t := Table{Columns: []Column{
		{Title: "QUEUE", Flex: true}, {Title: "PENDING", Right: true}, {Title: "RUNNING", Right: true},
		{Title: "SLEEPING", Right: true},
		{Title: "OLDEST", Right: true}, {Title: "WORKERS", Right: true}, {Title: "UNSERVED", Flex: true},
	}}
	for _, q := range queues {
		t.Rows = append(t.Rows, []Cell{
			Text(q.GetTaskQueue()), count(q.GetPending()), count(q.GetRunning()), count(q.GetSleeping()),
			{Text: oldest(q)},
			count(int64(q.GetOnlineWorkers())), {Text: Safe(Unserved(q)), Style: Bad},
		})
	}
	return t
}

// QueuePairs returns the counts of a queue.
func QueuePairs(q *kagziv1.QueueDepth) []Pair {
	var p pairs
	p.text("Queue", q.GetTaskQueue())
	p.cell("Pending", count(q.GetPending()))
	p.cell("Running", count(q.GetRunning()))
	p.cell("Sleeping", count(q.GetSleeping()))
	p.text("Oldest pending", oldest(q))
	p.cell("Online workers", count(int64(q.GetOnlineWorkers())))
	p.cell("Unserved", Cell{Text: Safe(Unserved(q)), Style: Bad})
	return p
}

func count(n int64) Cell { return Cell{Text: strconv.FormatInt(n, 10)} }

func oldest(q *kagziv1.QueueDepth) string {
	if q.GetPending() == 0 || q.GetOldestPendingSeconds() <= 0 {
		return "-"
	}
	return Duration(time.Duration(q.GetOldestPendingSeconds() * float64(time.Second)))
}

// Unserved says, as raw text, which pending runs no online worker can claim; empty if there are
// none.
func Unserved(q *kagziv1.QueueDepth) string {
	if len(q.GetUnservedByType()) == 0 {
		return ""
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(q.GetUnservedByType())) {
		parts = append(parts, fmt.Sprintf("%d of type %s", q.GetUnservedByType()[name], name))
	}
	return strings.Join(parts, ", ") + ": no online worker serves them"
}

// ServerPairs returns what a server reports about itself.
func ServerPairs(s *kagziv1.GetServerInfoResponse, v View) []Pair {
	var p pairs
	p.text("Server", s.GetVersion())
	p.text("API", s.GetApiVersion())
	p.text("Backend", strings.TrimSpace(s.GetBackend()+" "+s.GetBackendVersion()))
	p.text("Database", s.GetDatabase())
	if s.GetDatabaseBytes() > 0 {
		p.text("Size", Bytes(s.GetDatabaseBytes()))
	}
	p.number("Schema", int64(s.GetSchemaVersion()))
	p.text("Notifications", s.GetNotifications())
	p.time("Started", s.GetStartedAt(), v)
	return p
}
