package agq

import (
	"encoding/json"
	"strconv"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// depth returns the counts of the queue of jobs.
func (c *conn) depth() (*kagziv1.QueueDepth, error) {
	answer, err := c.door.admin.GetQueueDepth(c.caller.ctx, &kagziv1.GetQueueDepthRequest{
		Namespace: c.caller.namespace, TaskQueue: text(readyQueue)})
	if err != nil {
		return nil, err
	}
	for _, q := range answer.Queues {
		if q.TaskQueue == readyQueue {
			return q, nil
		}
	}
	return &kagziv1.QueueDepth{}, nil
}

// runQueueStats carries out QUEUE.STATS: names and values in turn, all of them texts.
func runQueueStats(c *conn, _ []string) bool {
	q, err := c.depth()
	if err != nil {
		c.refuse(err)
		return true
	}
	unserved := int64(0)
	for _, n := range q.UnservedByType {
		unserved += n
	}
	return c.pairs([]stat{
		{"pending_jobs", q.Pending}, {"scheduled_jobs", q.Sleeping}, {"processing_jobs", q.Running},
		{"unserved_jobs", unserved}, {"oldest_pending_seconds", int64(q.OldestPendingSeconds)},
		{"workers", int64(q.OnlineWorkers)},
	})
}

// stat is a number with its name.
type stat struct {
	name  string
	value int64
}

// pairs answers names and values in turn.
func (c *conn) pairs(list []stat) bool {
	c.say(func(r *reply) {
		r.array(2 * len(list))
		for _, s := range list {
			r.bulk(s.name)
			r.bulk(strconv.FormatInt(s.value, 10))
		}
	})
	return true
}

// runMetrics carries out METRICS, in the same form. The server's own metrics are at /metrics.
func runMetrics(c *conn, _ []string) bool {
	q, err := c.depth()
	if err != nil {
		c.refuse(err)
		return true
	}
	connections, workers := c.door.Connections()
	return c.pairs([]stat{
		{"pending_jobs", q.Pending}, {"processing_jobs", q.Running}, {"workers", int64(q.OnlineWorkers)},
		{"connections", int64(connections)}, {"popping_workers", int64(workers)},
	})
}

// runLength carries out LLEN of the two lists.
func runLength(c *conn, args []string) bool {
	if args[0] != readyKey && args[0] != "queue:processing" {
		c.fail(unknownKey)
		return true
	}
	q, err := c.depth()
	switch {
	case err != nil:
		c.refuse(err)
	case args[0] == readyKey:
		c.integer(q.Pending)
	default:
		c.integer(q.Running)
	}
	return true
}

// runWorkersList carries out WORKERS.LIST: workers as JSON, newest first.
func runWorkersList(c *conn, _ []string) bool {
	workers, err := c.listWorkers()
	if err != nil {
		c.refuse(err)
		return true
	}
	list := []any{}
	for _, w := range workers {
		tools, units, any := toolsOf(w)
		one := struct {
			Worker   string            `json:"worker_id"`
			Status   string            `json:"status"`
			Hostname string            `json:"hostname,omitempty"`
			Tools    json.RawMessage   `json:"tools"`
			Units    []string          `json:"agentic_units"`
			Verified map[string]string `json:"verified,omitempty"`
			Active   int32             `json:"active_jobs"`
			Most     int32             `json:"max_concurrent_jobs"`
			Seen     string            `json:"last_heartbeat"`
			Silent   int64             `json:"seconds_since_heartbeat"`
		}{w.WorkerId, c.stateOf(w), w.Hostname, []byte("null"), units, verifiedOf(w), w.ActiveWorkflowCount, w.MaxConcurrent,
			stampOf(w.LastHeartbeatAt), c.age(w.LastHeartbeatAt)}
		if !any {
			if one.Tools, err = json.Marshal(tools); err != nil {
				c.refuse(err)
				return true
			}
		}
		list = append(list, one)
	}
	return c.answerList(list)
}

// stateOf returns a worker's state as seed 002 has it.
func (c *conn) stateOf(w *kagziv1.Worker) string {
	switch {
	case c.alive(w):
		return "ACTIVE"
	case aliveUntil(w).IsZero():
		return "UNREGISTERED"
	}
	return "DEAD"
}
