package agq

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kagzi/kagzi/engine"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// Limits of what a worker says about itself.
const (
	maxTools    = 100
	maxTool     = 58 // bytes: a requirement has 63, and tool: takes 5
	maxTogether = 100
)

func isWorkerID(text string) bool { return engine.CheckWorkerID("worker_id", text) == nil }

// registration is the JSON of WORKER.REGISTER.
type registration struct {
	Worker       string `json:"worker_id"`
	Hostname     string `json:"hostname"`
	Platform     string `json:"platform"`
	Version      string `json:"agw_version"`
	Capabilities *struct {
		Tools *[]string `json:"tools"`
		Units []string  `json:"agentic_units"`
	} `json:"capabilities"`
	Most *int           `json:"max_concurrent_jobs"`
	Tags map[string]any `json:"tags"`
}

var semver = regexp.MustCompile(`^\d+\.\d+\.\d+([-+][0-9A-Za-z.+-]+)?$`)

// badCapabilities begins the error for a registration, as seed 002 has it.
const badCapabilities = "ERR Invalid capabilities format"

// profile returns what a registration says, or the text of an error.
func (r *registration) profile() (*profile, string) {
	switch {
	case r.Hostname == "":
		return nil, "ERR Invalid registration: hostname must not be empty"
	case !semver.MatchString(r.Version):
		return nil, "ERR Invalid registration: agw_version must be a semantic version such as 0.1.0, got '" +
			cut(r.Version, 32) + "'"
	case r.Capabilities == nil || r.Capabilities.Tools == nil:
		return nil, badCapabilities + ": capabilities.tools must be a list of names"
	}
	p := &profile{hostname: r.Hostname, platform: r.Platform, version: r.Version, tools: r.Capabilities.Tools,
		units: r.Capabilities.Units, most: 1, tags: map[string]string{}}
	if text := checkTools("capabilities.tools", *p.tools); text != "" {
		return nil, badCapabilities + ": " + text
	}
	if text := checkTools("capabilities.agentic_units", p.units); text != "" {
		return nil, badCapabilities + ": " + text
	}
	if r.Most != nil {
		if p.most = *r.Most; p.most < 1 || p.most > maxTogether {
			return nil, fmt.Sprintf("ERR Invalid registration: max_concurrent_jobs must be between 1 and %d, got %d",
				maxTogether, p.most)
		}
	}
	for key, value := range r.Tags {
		switch value.(type) {
		case string, bool, float64:
			p.tags[key] = fmt.Sprint(value)
		default:
			return nil, "ERR Invalid registration: tags." + cut(key, 64) + " must be text, a number or a boolean"
		}
	}
	return p, ""
}

// checkTools returns what is wrong about a list of tools; empty: nothing.
func checkTools(field string, tools []string) string {
	if len(tools) > maxTools {
		return fmt.Sprintf("%s has %d entries, at most %d are allowed", field, len(tools), maxTools)
	}
	for i, t := range tools {
		if t == "" || len(t) > maxTool {
			return fmt.Sprintf("%s[%d] has %d characters, 1 to %d are allowed", field, i, len(t), maxTool)
		}
		if at := slices.IndexFunc([]byte(t), func(b byte) bool {
			return !('a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || '0' <= b && b <= '9' || b == '-' || b == '_' ||
				b == '.' || b == '+')
		}); at >= 0 {
			return fmt.Sprintf("%s[%d] may hold only letters, digits and - _ . + (found %q)", field, i, t[at])
		}
	}
	return ""
}

// runRegister carries out WORKER.REGISTER.
func runRegister(c *conn, args []string) bool {
	var r registration
	if err := json.Unmarshal([]byte(args[0]), &r); err != nil {
		c.fail(badCapabilities + ": " + jsonError(err))
		return true
	}
	p, text := r.profile()
	if text == "" {
		text = c.bind(r.Worker)
	}
	if text != "" {
		c.fail(text)
		return true
	}
	if w := c.worker(); w != nil && w.isOpen() {
		w.mu.Lock()
		taken := w.owner != nil && w.owner != c
		w.mu.Unlock()
		if taken {
			c.fail("ERR Worker ID already registered")
			return true
		}
	}
	c.tools = p.tools
	if _, err := c.attend(p); err != nil {
		if status.Code(err) == codes.AlreadyExists {
			c.fail("ERR Worker ID already registered")
			return true
		}
		c.refuse(err)
		return true
	}
	c.say(func(reply *reply) {
		reply.simple(fmt.Sprintf("OK worker_id=%s heartbeat_interval=%d", r.Worker, int(Interval.Seconds())))
	})
	return true
}

// workerStats is the JSON of WORKER.HEARTBEAT.
type workerStats struct {
	Active    int     `json:"active_jobs"`
	Completed int64   `json:"completed_jobs_total"`
	Failed    int64   `json:"failed_jobs_total"`
	Average   float64 `json:"avg_job_duration_ms"`
	Uptime    float64 `json:"uptime_seconds"`
	CPU       float64 `json:"cpu_usage_percent"`
	Memory    float64 `json:"memory_mb"`
	Disk      float64 `json:"disk_available_gb"`
}

// runHeartbeat carries out WORKER.HEARTBEAT.
func runHeartbeat(c *conn, args []string) bool {
	var stats *kagziv1.WorkerStats
	if len(args) == 2 {
		var s workerStats
		if err := json.Unmarshal([]byte(args[1]), &s); err != nil {
			c.fail("ERR Invalid worker stats: " + jsonError(err))
			return true
		}
		stats = &kagziv1.WorkerStats{CpuPercent: s.CPU, MemoryBytes: bytesOf(s.Memory, 1<<20),
			DiskAvailableBytes: bytesOf(s.Disk, 1<<30), UptimeSeconds: bytesOf(s.Uptime, 1), AverageRunMs: s.Average}
	}
	if text := c.bind(args[0]); text != "" {
		c.fail(text)
		return true
	}
	switch err := c.heartbeat(stats); {
	case notFound(err):
		c.fail("ERR Worker not registered: " + args[0])
	case err != nil:
		c.refuse(err)
	default:
		c.ok()
	}
	return true
}

// bytesOf returns a number of units; what is no number that fits is -1, which the server refuses.
func bytesOf(n float64, unit float64) int64 {
	if n *= unit; !(n >= 0 && n < math.MaxInt64) {
		return -1
	}
	return int64(n)
}

// heartbeat records that the worker lives. One that is OFFLINE because it was silent for long registers again,
// which keeps the jobs that nobody else has got.
func (c *conn) heartbeat(stats *kagziv1.WorkerStats) error {
	who, d := c.who(), c.door
	known, _, err := d.server.WorkerOf(c.caller.ctx, who)
	if err != nil {
		return err
	}
	if known.Status == engine.WorkerOffline {
		if known.Reason == engine.OfflineDeregistered {
			return status.Error(codes.NotFound, "the worker has unregistered")
		}
		if _, err := d.work.Register(c.caller.ctx, d.registration(profileOf(&known), who)); err != nil {
			return err
		}
	}
	r := &kagziv1.HeartbeatRequest{WorkerId: who.Worker, Stats: stats, ActiveCount: int32(known.Active)}
	if w := c.worker(); w != nil {
		w.mu.Lock()
		r.ActiveCount = int32(len(w.held))
		w.mu.Unlock()
	}
	_, err = d.work.Heartbeat(c.caller.ctx, r)
	return err
}

// runUnregister carries out WORKER.UNREGISTER. What the worker still holds is due again at once.
func runUnregister(c *conn, args []string) bool {
	if text := c.bind(args[0]); text != "" {
		c.fail(text)
		return true
	}
	known, _, err := c.door.server.WorkerOf(c.caller.ctx, c.who())
	if err == nil && known.Status == engine.WorkerOffline && known.Reason == engine.OfflineDeregistered ||
		notFound(err) {
		c.fail("ERR Worker not registered: " + args[0])
		return true
	}
	if err == nil {
		if w := c.worker(); w != nil {
			c.door.forget(w)
		}
		_, err = c.door.work.Deregister(c.caller.ctx, &kagziv1.DeregisterRequest{WorkerId: args[0]})
	}
	if err != nil {
		c.refuse(err)
		return true
	}
	c.tools = nil
	c.ok()
	return true
}
