package world

import (
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// staffing is the workers of the shop.
var staffing = []struct {
	id, host, queue, version, platform string
	types                              []string
	labels, capabilities               map[string]string
	most                               int32
	since                              time.Duration // before the world's beginning
}{
	{id: "orders-1", host: "shop-a1", queue: "orders", version: "2.4.1", platform: "linux-amd64", types: []string{"order", "refund.approval"}, most: 20,
		labels: map[string]string{"team": "shop", "zone": "eu-1"}, since: past},
	{id: "orders-0", host: "shop-a0", queue: "orders", version: "2.3.9", platform: "linux-amd64", types: []string{"order", "refund.approval"}, most: 20,
		labels: map[string]string{"team": "shop", "zone": "eu-1"}, since: past},
	{id: "mailer-1", host: "shop-b1", queue: "emails", version: "1.9.0", platform: "linux-amd64", types: []string{"invoice.send"}, most: 10,
		labels: map[string]string{"team": "shop", "zone": "eu-1"}, since: past},
	{id: "mailer-2", host: "shop-b2", queue: "emails", version: "1.9.0", platform: "linux-amd64", types: []string{"onboarding"}, most: 10,
		labels: map[string]string{"team": "growth", "zone": "eu-2"}, since: past},
	{id: "reports-1", host: "data-1", queue: "reports", version: "0.14.2", platform: "linux-arm64", types: []string{"report.nightly", "import.catalog", "sync.crm"}, most: 8,
		labels: map[string]string{"team": "data"}, capabilities: map[string]string{"tool:duckdb": "1.4"}, since: past},
	{id: "media-1", host: "gpu-1", queue: "media", version: "0.7.3", platform: "linux-arm64", types: []string{"thumbnail"}, most: mediaSlots,
		labels: map[string]string{"team": "shop", "gpu": "true"}, capabilities: map[string]string{"unit:vips": "8.17"}, since: past},
}

const mediaSlots = 6

// hires has the workers come online.
func (w *World) hires() {
	for i, s := range staffing {
		h := &worker{number: uint64(i + 1), Worker: &kagziv1.Worker{
			WorkerId: s.id, Namespace: defaultNamespace, TaskQueues: []string{s.queue}, WorkflowTypes: s.types, Hostname: s.host, Version: s.version,
			Platform: s.platform, Labels: s.labels, Capabilities: s.capabilities, MaxConcurrent: s.most,
			TotalCompleted: int64(1800 - 230*i), TotalFailed: int64(40 - 5*i),
		}}
		w.workers = append(w.workers, h)
		w.hire(h)
	}
}

// hire starts the process of a worker.
func (w *World) hire(h *worker) {
	h.Pid = int32(800 + mix(w.seed, h.number, uint64(w.now.Unix()))%30_000)
	if h.WorkerId == "orders-0" && w.now.After(w.begin) {
		h.Version = "2.4.1" // what it was drained for
	}
	w.register(h)
}

// restarts has whoever watches over the processes start a worker that is gone, after a while.
func (w *World) restarts(h *worker, after time.Duration) {
	w.after(after, func() {
		if h.Status == offline {
			w.hire(h)
		}
	})
}
