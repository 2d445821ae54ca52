package world

import (
	"math"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// What happens in the shop by itself: customers come, and every few minutes something goes wrong and is put right.

// weather is what goes wrong around the shop for a while.
type weather struct{ bad string }

const (
	gatewayDown = "payment gateway down"
	mailDown    = "mail server down"
)

// spoils says that an act fails in this weather.
func (x *weather) spoils(a *act) bool { return x.bad != "" && a.during == x.bad }

const (
	rush      = 20 * time.Minute // before the beginning, from which on there is more to do
	slowPace  = 15 * time.Minute // between two customers before the rush
	rushPace  = 10 * time.Second // in it
	livePace  = 3 * time.Second  // and from the beginning on
	slowTrips = 5 * time.Hour    // between two things that go wrong, likewise
	liveTrips = 4 * time.Minute
)

// populate makes what there is a day before the beginning, and plans what is to be there at the beginning.
func (w *World) populate() {
	w.namespaces[defaultNamespace].DisplayName = "Shop"
	w.addNamespace(&kagziv1.Namespace{
		Namespace: "staging", DisplayName: "Staging", Description: "what is tried out before it goes live", Enabled: true,
	}, w.begin.Add(-running))
	w.note("INFO", "server started", "version", "0.4.0-demo", "backend", "sqlite", "listen", "127.0.0.1:50051")
	w.hires()
	w.timetables()
	w.rehearse()
	w.after(pace(w, slowPace), w.customer)
	w.after(slowTrips, w.trip)
}

// pace is a time until something happens that happens so often on average; never more than six times as long.
func pace(w *World, mean time.Duration) time.Duration {
	wait := -math.Log(1-w.luck.Float64()) * float64(mean)
	return time.Duration(math.Min(wait, 6*float64(mean))).Truncate(time.Millisecond)
}

// customer has somebody want something, and the next one come.
func (w *World) customer() {
	shares := 0
	for _, p := range catalog {
		shares += p.share
	}
	n := w.luck.IntN(shares)
	for _, p := range catalog {
		if n -= p.share; n < 0 {
			w.begins(w.message(p, defaultNamespace), p, w.now)
			break
		}
	}
	mean := livePace
	switch until := w.begin.Sub(w.now); {
	case until > rush:
		mean = slowPace
	case until > 0:
		mean = rushPace
	}
	next := pace(w, mean)
	if until := w.begin.Add(-rush).Sub(w.now); until > 0 {
		next = min(next, until+time.Second)
	}
	w.after(next, w.customer)
}

// trips is what can go wrong.
var trips = []func(*World){
	func(w *World) { w.storm(gatewayDown, 90*time.Second) },
	func(w *World) { w.crash("reports-1", 100*time.Second) },
	func(w *World) { w.storm(mailDown, time.Minute) },
	func(w *World) { w.crash("media-1", 80*time.Second) },
	func(w *World) { w.deploy("mailer-2", 3*time.Minute) },
}

// trip has something go wrong, and plans the next.
func (w *World) trip() {
	pick(w.luck, trips)(w)
	mean := liveTrips
	if until := w.begin.Sub(w.now); until > slowTrips+time.Hour {
		mean = slowTrips
	} else if until > 0 { // the beginning is as it is planned
		mean += until
	}
	w.after(mean+w.luck.between(0, time.Minute), w.trip)
}

// storm is bad weather for a while.
func (w *World) storm(bad string, d time.Duration) {
	w.weather.bad = bad
	w.after(d, func() { w.weather.bad = "" })
}

// crash has a worker die without a word, and come back later.
func (w *World) crash(id string, d time.Duration) {
	h := w.worker(id)
	if h.Status != online || h.silent {
		return
	}
	w.loses(h)
	w.restarts(h, d)
}

// deploy has a worker say goodbye, and come back later.
func (w *World) deploy(id string, d time.Duration) {
	h := w.worker(id)
	if h.Status != online || h.silent {
		return
	}
	held := append([]*run(nil), h.held...)
	w.offline(h, kagziv1.WorkerOfflineReason_WORKER_OFFLINE_REASON_DEREGISTERED)
	w.note("INFO", "worker deregistered", "worker", h.WorkerId, "namespace", h.Namespace)
	for _, r := range held {
		w.interrupt(r, w.now)
	}
	w.restarts(h, d)
}
