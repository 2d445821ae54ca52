package world

import (
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

const (
	online   = kagziv1.WorkerStatus_WORKER_STATUS_ONLINE
	draining = kagziv1.WorkerStatus_WORKER_STATUS_DRAINING
	offline  = kagziv1.WorkerStatus_WORKER_STATUS_OFFLINE

	heartbeat = 10 * time.Second
	lease     = 30 * time.Second
	// silence is how long a worker is not heard from until it is lost: the lease and a second look.
	silence = lease + heartbeat + time.Second
	// restart is after what time a process that is gone is started again.
	restart = 3 * time.Minute
)

// worker is a process that runs code.
type worker struct {
	*kagziv1.Worker
	held   []*run
	silent bool      // it answers no more, which nobody has noticed yet
	heard  time.Time // of its last sign of life, while it is silent or offline
	number uint64
}

// fits says that the worker would take a run if it had room.
func (h *worker) fits(r *run) bool {
	return h.Status == online && h.Namespace == r.Namespace && slices.Contains(h.TaskQueues, r.TaskQueue) &&
		slices.Contains(h.WorkflowTypes, r.WorkflowType) && len(h.unmet(r)) == 0
}

// unmet is the run's requirements that neither a label nor a capability of the worker meets.
func (h *worker) unmet(r *run) []string {
	var missing []string
	for _, key := range sortedKeys(r.Requirements) {
		want := r.Requirements[key]
		label, has := h.Labels[key]
		capability, can := h.Capabilities[key]
		if !(has && label == want || can && capability == want) {
			missing = append(missing, key+"="+want)
		}
	}
	return missing
}

func (h *worker) lets(r *run) { h.held = without(h.held, r) }

// ended counts a run that came to its end here.
func (h *worker) ended(status kagziv1.WorkflowStatus) {
	if status == completed {
		h.TotalCompleted++
	} else {
		h.TotalFailed++
	}
}

// register has a worker come online.
func (w *World) register(h *worker) {
	h.Status, h.RegisteredAt, h.DeregisteredAt, h.OfflineReason, h.silent = online, stamp(w.now), nil, nil, false
	w.workersChanged()
	w.note("INFO", "worker registered", "worker", h.WorkerId, "namespace", h.Namespace, "version", h.Version)
	w.lookForWork()
}

// loses has a worker fall silent: from now on nothing that it does counts, and after a while it is lost, with all that it holds.
func (w *World) loses(h *worker) {
	if h.Status == offline || h.silent {
		return
	}
	h.heard, h.silent = h.lastBeat(w.now), true
	w.at(h.heard.Add(silence), func() {
		if !h.silent || h.Status == offline {
			return
		}
		held := slices.Clone(h.held)
		w.note("WARN", "worker lost", "worker", h.WorkerId, "namespace", h.Namespace, "runs", len(held))
		w.offline(h, kagziv1.WorkerOfflineReason_WORKER_OFFLINE_REASON_LOST)
		for _, r := range held {
			if !r.progressed {
				r.LeaseLosses++
			} else {
				r.LeaseLosses = 1
			}
			w.interrupt(r, w.now.Add(lossDelay(int(r.LeaseLosses))))
		}
	})
}

// lossDelay grows from the second loss in a row on.
func lossDelay(losses int) time.Duration {
	if losses < 2 {
		return 0
	}
	return min(time.Second<<min(losses-2, 9), 5*time.Minute)
}

// offline takes a worker off; what it holds is its caller's to free.
func (w *World) offline(h *worker, why kagziv1.WorkerOfflineReason) {
	if !h.silent {
		h.heard = h.lastBeat(w.now)
	}
	h.Status, h.OfflineReason, h.DeregisteredAt, h.silent = offline, &why, stamp(w.now), false
	w.workersChanged()
}

// drain has a worker take nothing new, and go when it holds nothing any more.
func (w *World) drain(h *worker) {
	if h.Status != online {
		return
	}
	h.Status = draining
	w.workersChanged()
	w.note("INFO", "worker draining", "worker", h.WorkerId, "namespace", h.Namespace, "runs", len(h.held))
	w.leaves(h)
}

// leaves looks every while whether a worker that drains has done all it had.
func (w *World) leaves(h *worker) {
	w.after(time.Second, func() {
		switch {
		case h.Status != draining:
		case len(h.held) == 0:
			w.offline(h, kagziv1.WorkerOfflineReason_WORKER_OFFLINE_REASON_DEREGISTERED)
			w.note("INFO", "worker deregistered", "worker", h.WorkerId, "namespace", h.Namespace)
			w.restarts(h, restart)
		default:
			w.leaves(h)
		}
	})
}

// lastBeat is when the worker was last heard from: each ten seconds since it registered.
func (h *worker) lastBeat(now time.Time) time.Time {
	if h.silent || h.Status == offline {
		return h.heard
	}
	since := moment(h.RegisteredAt)
	return since.Add(now.Sub(since).Truncate(heartbeat))
}

// showWorker is the worker as it last said it was.
func (w *World) showWorker(h *worker) *kagziv1.Worker {
	m := proto.CloneOf(h.Worker)
	beat := h.lastBeat(w.now)
	m.LastHeartbeatAt = stamp(beat)
	m.TaskQueue = m.TaskQueues[0]
	if h.Status != offline {
		m.ActiveWorkflowCount = int32(len(h.held))
	}
	// What it measures of itself changes with each beat, and is the same whenever it is asked for.
	dice := mix(w.seed, h.number, uint64(beat.Unix()))
	m.Stats = &kagziv1.WorkerStats{
		CpuPercent:         float64(40+dice%300)/10 + 9*float64(len(h.held)),
		MemoryBytes:        int64(96+h.number*37+dice>>8%24) << 20,
		DiskAvailableBytes: int64(41+h.number*3) << 30,
		UptimeSeconds:      max(int64(beat.Sub(moment(h.RegisteredAt)).Seconds()), 0),
		AverageRunMs:       900 + 710*float64(h.number) + float64(dice>>16%90),
	}
	return m
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
