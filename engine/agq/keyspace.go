package agq

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kagzi/kagzi/engine"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// Keys are a view of runs and workers, not a second database.

// unknownKey is the error for every key that is not one of AGQ's.
const unknownKey = "ERR unknown key space; Kagzi serves AGQ's keys only"

// keyParts splits KIND:ID:FIELD; field is empty for KIND:ID.
func keyParts(key string) (kind, id, field string) {
	kind, rest, _ := strings.Cut(key, ":")
	id, field, _ = strings.Cut(rest, ":")
	return kind, id, field
}

// runSet carries out SET. Its options (EX 60, NX, …) change nothing: what is set lives as long as its job or
// worker.
func runSet(c *conn, args []string) bool {
	kind, id, field := keyParts(args[0])
	switch {
	case kind == "worker" && field == "tools":
		return c.setTools(id, args[1])
	case kind == "worker" && field == "alive":
		return runHeartbeat(c, []string{id})
	case kind == "job" && field == streamNames[0]:
		return c.setOutput(id, 0, args[1])
	case kind == "job" && field == streamNames[1]:
		return c.setOutput(id, 1, args[1])
	case kind == "job" && field == "status":
		return c.setStatus(id, args[1])
	}
	c.fail(unknownKey)
	return true
}

// setTools carries out SET worker:ID:tools, which makes a worker known. An empty list takes no job.
func (c *conn) setTools(id, list string) bool {
	tools := []string{}
	for name := range strings.SplitSeq(list, ",") {
		if name = strings.TrimSpace(name); name != "" {
			tools = append(tools, name)
		}
	}
	if text := checkTools("tools", tools); text != "" {
		c.fail("ERR Invalid capabilities format: " + text)
		return true
	}
	if text := c.bind(id); text != "" {
		c.fail(text)
		return true
	}
	said := &profile{tools: &tools}
	known, _, err := c.door.server.WorkerOf(c.caller.ctx, c.who())
	if err == nil {
		said = profileOf(&known)
		said.tools = &tools
	} else if !notFound(err) {
		c.refuse(err)
		return true
	}
	c.tools = &tools
	if _, err := c.attend(said); err != nil {
		c.refuse(err)
		return true
	}
	c.ok()
	return true
}

// runGet carries out GET.
func runGet(c *conn, args []string) bool {
	kind, id, field := keyParts(args[0])
	switch {
	case kind == "job" && field == "":
		return c.getJob(id)
	case kind == "job" && field == "worker":
		return c.getJobField(id, func(j *jobView) string { return j.Worker })
	case kind == "job" && field == "status":
		return c.getJobField(id, func(j *jobView) string { return j.Status })
	case kind == "job" && (field == streamNames[0] || field == streamNames[1]):
		return c.getJobField(id, func(j *jobView) string {
			var out jobResult
			if json.Unmarshal(j.output, &out) != nil {
				return ""
			}
			return map[string]string{"stdout": out.Stdout, "stderr": out.Stderr}[field]
		})
	case kind == "plan" && field == "":
		return c.getPlan(id)
	case kind == "worker" && slices.Contains([]string{"alive", "metadata", "stats", "tools"}, field):
		return c.getWorker(id, field)
	}
	c.fail(unknownKey)
	return true
}

// getJob carries out GET job:ID, with which AGW fetches the job that it popped. The status is the one that the
// job had when it was popped, as AGQ stores it.
func (c *conn) getJob(id string) bool {
	if h, err := c.reportOn(id, false); err == nil {
		input, err := h.input()
		if err != nil {
			c.fail("ERR Job cannot be read: " + err.Error())
			return true
		}
		return c.answerJSON(jobOf(h.run, input, "pending"))
	} else if c.caller.worksOnly() || !errors.Is(err, errNotHeld) && !errors.Is(err, errNoJob) {
		return c.nullOr(err)
	}
	j, err := c.viewJob(id)
	if err != nil {
		return c.nullOr(err)
	}
	return c.answerJSON(jobOf(j.JobID, j.input, j.Status))
}

// nullOr answers nil for what does not exist or is not the worker's, and else with the error.
func (c *conn) nullOr(err error) bool {
	if errors.Is(err, errNotHeld) || errors.Is(err, errNoJob) || notFound(err) {
		c.null()
		return true
	}
	c.refuse(err)
	return true
}

func jobOf(id string, in jobInput, status string) any {
	return struct {
		JobID  string          `json:"job_id"`
		PlanID string          `json:"plan_id"`
		Action string          `json:"action_id,omitempty"`
		Input  json.RawMessage `json:"input"`
		Status string          `json:"status"`
	}{id, in.PlanID, in.ActionID, in.Input, status}
}

// input returns the input of a job that the worker holds.
func (h *held) input() (jobInput, error) {
	if h.job != nil {
		return h.job.input, nil
	}
	return inputOf(h.claim.Run.Input.Data)
}

func (c *conn) answerJSON(value any) bool {
	text, err := json.Marshal(value)
	if err != nil {
		c.refuse(err)
		return true
	}
	c.bulk(string(text))
	return true
}

func (c *conn) getJobField(id string, of func(*jobView) string) bool {
	if c.caller.worksOnly() {
		h, err := c.reportOn(id, true)
		if err != nil {
			return c.nullOr(err)
		}
		j := viewOf(&h.claim.Run)
		return c.textOrNull(of(&j))
	}
	j, err := c.viewJob(id)
	if err != nil {
		return c.nullOr(err)
	}
	return c.textOrNull(of(j))
}

func (c *conn) textOrNull(text string) bool {
	if text == "" {
		c.null()
		return true
	}
	c.bulk(text)
	return true
}

// getPlan carries out GET plan:ID. A worker gets the plan of a job that it holds from the job, which keeps it
// whatever becomes of the plan.
func (c *conn) getPlan(id string) bool {
	if c.identity != "" {
		if w := c.worker(); w != nil {
			w.beat()
			if text, found := w.planOf(id); found {
				c.bulk(text)
				return true
			}
		}
		text, found, err := c.heldPlan(id)
		if err != nil || found {
			if err != nil {
				c.refuse(err)
				return true
			}
			c.bulk(text)
			return true
		}
	}
	if c.caller.worksOnly() {
		c.null()
		return true
	}
	run, err := c.plan(id)
	if err != nil {
		return c.nullOr(err)
	}
	c.bulk(string(run.Input.GetData()))
	return true
}

func (w *worker) planOf(id string) (string, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, j := range w.held {
		if j.input.PlanID == id {
			return string(j.input.Plan), true
		}
	}
	return "", false
}

// heldPlan returns the plan of a job that the worker holds, popped on another connection or server.
func (c *conn) heldPlan(id string) (text string, found bool, err error) {
	_, held, err := c.door.server.WorkerOf(c.caller.ctx, c.who())
	if err != nil {
		if notFound(err) {
			err = nil
		}
		return "", false, err
	}
	for _, h := range held {
		claim, err := c.door.server.Claim(c.caller.ctx, c.who(), h.Lease.RunID)
		if err != nil {
			return "", false, err
		}
		if in, err := inputOf(claim.Run.Input.Data); err == nil && claim.Token != "" && in.PlanID == id {
			return string(in.Plan), true, nil
		}
	}
	return "", false, nil
}

// aliveUntil returns until when a worker counts as alive; the zero time if it has left.
func aliveUntil(w *kagziv1.Worker) time.Time {
	if w.Status == kagziv1.WorkerStatus_WORKER_STATUS_OFFLINE && (w.OfflineReason == nil ||
		*w.OfflineReason != kagziv1.WorkerOfflineReason_WORKER_OFFLINE_REASON_LOST) {
		return time.Time{}
	}
	return w.LastHeartbeatAt.AsTime().Add(Lease)
}

func (c *conn) alive(w *kagziv1.Worker) bool { return aliveUntil(w).After(c.door.now()) }

// worker returns a worker of this door, whatever its state.
func (c *conn) lookUp(id string) (*kagziv1.Worker, error) {
	if !isWorkerID(id) {
		return nil, errNoJob
	}
	answer, err := c.door.admin.GetWorker(c.caller.ctx, &kagziv1.GetWorkerRequest{WorkerId: id})
	if err != nil {
		return nil, err
	}
	w := answer.Worker
	if w.Namespace != c.caller.namespace || !slices.Contains(w.TaskQueues, readyQueue) {
		return nil, errNoJob
	}
	return w, nil
}

// getWorker carries out GET worker:ID:alive, :metadata, :stats and :tools.
func (c *conn) getWorker(id, field string) bool {
	w, err := c.lookUp(id)
	if err != nil {
		return c.nullOr(err)
	}
	switch field {
	case "alive":
		if !c.alive(w) {
			c.null()
			return true
		}
		c.bulk(strconv.FormatInt(w.LastHeartbeatAt.AsTime().Unix(), 10))
		return true
	case "stats":
		return c.answerJSON(statsTo(w))
	case "tools":
		tools, _, any := toolsOf(w)
		if any {
			c.null()
			return true
		}
		c.bulk(strings.Join(tools, ","))
		return true
	}
	return c.answerJSON(metadataTo(w))
}

// toolsOf returns the tools and units of a worker, sorted. any: it never named tools, and takes any job.
func toolsOf(w *kagziv1.Worker) (tools, units []string, any bool) {
	tools, units = []string{}, []string{}
	for key := range w.Capabilities {
		if key == anyTool {
			any = true
			continue
		}
		if tool, is := strings.CutPrefix(key, toolPrefix); is {
			tools = append(tools, tool)
		}
		if unit, is := strings.CutPrefix(key, unitPrefix); is {
			units = append(units, unit)
		}
	}
	slices.Sort(tools)
	slices.Sort(units)
	return tools, units, any
}

// verifiedOf returns what tools and units of a worker said when an operator asked, by their names.
func verifiedOf(w *kagziv1.Worker) map[string]string {
	all := map[string]string{}
	for key, text := range w.Capabilities {
		if name, is := strings.CutPrefix(key, saysPrefix); is {
			all[name] = text
		}
	}
	return all
}

func metadataTo(w *kagziv1.Worker) any {
	type capabilities struct {
		Tools []string `json:"tools"`
		Units []string `json:"agentic_units"`
	}
	tools, units, _ := toolsOf(w)
	return struct {
		Worker       string            `json:"worker_id"`
		Hostname     string            `json:"hostname"`
		Platform     string            `json:"platform,omitempty"`
		Version      string            `json:"agw_version"`
		Capabilities capabilities      `json:"capabilities"`
		Most         int32             `json:"max_concurrent_jobs"`
		Tags         map[string]string `json:"tags"`
		Verified     map[string]string `json:"verified,omitempty"`
		Registered   string            `json:"registered_at"`
	}{w.WorkerId, w.Hostname, w.Platform, w.Version, capabilities{tools, units}, w.MaxConcurrent, w.Labels,
		verifiedOf(w),
		w.RegisteredAt.AsTime().Format(time.RFC3339)}
}

func statsTo(w *kagziv1.Worker) any {
	s := w.Stats
	return workerStats{Active: int(w.ActiveWorkflowCount), Completed: w.TotalCompleted, Failed: w.TotalFailed,
		Average: s.GetAverageRunMs(), Uptime: float64(s.GetUptimeSeconds()), CPU: s.GetCpuPercent(),
		Memory: float64(s.GetMemoryBytes()) / (1 << 20), Disk: float64(s.GetDiskAvailableBytes()) / (1 << 30)}
}

func runExists(c *conn, args []string) bool {
	return c.alivenessOf(args[0], 0, func(*kagziv1.Worker) int64 { return 1 })
}

func runTTL(c *conn, args []string) bool {
	return c.alivenessOf(args[0], -2, func(w *kagziv1.Worker) int64 {
		return int64(aliveUntil(w).Sub(c.door.now()).Seconds())
	})
}

// alivenessOf answers a question about a key worker:ID:alive: with none if that worker is not alive.
func (c *conn) alivenessOf(key string, none int64, of func(*kagziv1.Worker) int64) bool {
	kind, id, field := keyParts(key)
	if kind != "worker" || field != "alive" {
		c.fail(unknownKey)
		return true
	}
	w, err := c.lookUp(id)
	switch {
	case err == nil && c.alive(w):
		c.integer(of(w))
	case err == nil || errors.Is(err, errNoJob) || notFound(err):
		c.integer(none)
	default:
		c.refuse(err)
	}
	return true
}

// runKeys carries out KEYS for the keys of workers.
func runKeys(c *conn, args []string) bool {
	kind, glob, field := keyParts(args[0])
	if args[0] != "*" && (kind != "worker" || field == "") {
		c.fail(unknownKey)
		return true
	}
	if args[0] == "*" {
		glob, field = "*", "*"
	}
	workers, err := c.listWorkers()
	if err != nil {
		c.refuse(err)
		return true
	}
	var keys []string
	for _, w := range workers {
		if !engine.MatchesGlob(glob, w.WorkerId) {
			continue
		}
		for _, f := range []string{"alive", "metadata", "stats"} {
			if engine.MatchesGlob(field, f) && (f == "metadata" || c.alive(w)) {
				keys = append(keys, "worker:"+w.WorkerId+":"+f)
			}
		}
	}
	c.say(func(r *reply) { r.bulks(keys) })
	return true
}

// listWorkers returns the workers of this door that the namespace remembers, newest first.
func (c *conn) listWorkers() (all []*kagziv1.Worker, err error) {
	r := &kagziv1.ListWorkersRequest{Namespace: c.caller.namespace, TaskQueue: text(readyQueue),
		Page: &kagziv1.PageRequest{PageSize: engine.MaxPage}}
	for {
		answer, err := c.door.admin.ListWorkers(c.caller.ctx, r)
		if err != nil {
			return nil, err
		}
		all = append(all, answer.Workers...)
		if r.Page.PageToken = answer.Page.GetNextPageToken(); r.Page.PageToken == "" {
			return all, nil
		}
	}
}

func text(s string) *string { return &s }
