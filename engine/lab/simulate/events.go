package simulate

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/kagzi/kagzi/engine/lab/host"
)

// happen carries out one event.
func (w *simulation) happen(e Event, rnd *rand.Rand) {
	if !w.await(&e) {
		return
	}
	switch e.Do {
	case "server":
		if w.killServer(e.Index, rnd) {
			w.report.hit("server killed")
			time.Sleep(e.For)
			w.startServer(e.Index)
		}
	case "worker":
		if w.killWorker(e.Index) {
			w.report.hit("worker killed")
			time.Sleep(e.For)
			w.startWorker(e.Index)
		}
	case "silence", "deaf", "mute":
		lost := map[string]host.Way{"silence": host.Both, "deaf": host.Come, "mute": host.Sent}[e.Do]
		if h := w.hostOf(e); h != nil && h.Hush(lost) {
			w.report.hit(e.Do)
			time.Sleep(e.For)
			h.Speak()
		}
	case "stall":
		if h := w.hostOf(e); h != nil && h.Stall() {
			w.report.hit(e.Do)
			time.Sleep(e.For)
			h.Flow()
		}
	case "cut":
		if h := w.hostOf(e); h != nil {
			w.report.hit("cut")
			h.Cut(host.All)
		}
	case "gap":
		w.mu.Lock()
		s := w.servers[e.Index]
		w.mu.Unlock()
		if s != nil {
			w.report.hit("gap")
			s.store.Gap()
		}
	case "lose":
		w.loseCommits(rnd)
	case "failover":
		w.failOver(rnd)
	}
}

// await returns false if the moment of the event does not come.
func (w *simulation) await(e *Event) bool {
	if e.Body == 0 {
		time.Sleep(e.At)
		return true
	}
	select {
	case e.Index = <-w.bodyOf(e.Body):
		return true
	case <-w.healed:
		return false
	}
}

// bodyOf returns the worker that starts the n-th step body.
func (w *simulation) bodyOf(n int) chan int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.bodies[n] == nil {
		w.bodies[n] = make(chan int, len(w.plan.Events))
	}
	return w.bodies[n]
}

// bodyBegins wakes the events that wait for this step body.
func (w *simulation) bodyBegins(worker int) {
	w.mu.Lock()
	w.begun++
	n := w.begun
	w.mu.Unlock()
	for _, e := range w.plan.Events {
		if e.Body == n {
			w.bodyOf(n) <- worker
		}
	}
}

// loseCommits breaks the database's promise: all servers die, and the last commits are gone.
func (w *simulation) loseCommits(rnd *rand.Rand) {
	var killed []int
	for i := range w.plan.Servers {
		if w.killServer(i, rnd) {
			killed = append(killed, i)
		}
	}
	if w.db.Lose(10) > 0 {
		w.report.hit("commits lost")
	}
	for _, i := range killed {
		w.startServer(i)
	}
}

// failOver promotes a database that lacks the last commits. All connections break; the servers keep
// their state.
func (w *simulation) failOver(rnd *rand.Rand) {
	w.mu.Lock()
	servers := slices.DeleteFunc(slices.Clone(w.servers), func(s *server) bool { return s == nil })
	w.mu.Unlock()
	for _, s := range servers {
		w.traffic.crash(s, rnd)
	}
	w.report.failedOver.Store(true)
	if w.db.Lose(1+rnd.IntN(20)) > 0 {
		w.report.hit("failover")
	}
	w.watch.recount(w.db.Runs())
	for _, s := range servers {
		s.store.Gap()
	}
}

// killServer returns false if there is no server to kill.
func (w *simulation) killServer(index int, rnd *rand.Rand) bool {
	w.mu.Lock()
	s := w.servers[index]
	w.servers[index] = nil
	hosts := w.hosts()
	w.mu.Unlock()
	if s == nil {
		return false
	}
	s.die(w.traffic, w.network, hosts, rnd)
	w.graves.Go(s.close)
	return true
}

func (w *simulation) startServer(index int) {
	s := serve(index, w.beside, w.traffic, w.network.listen(index))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.servers[index] = s
}

func (w *simulation) killWorker(index int) bool {
	w.mu.Lock()
	k := w.workers[index]
	w.workers[index] = nil
	w.mu.Unlock()
	if k == nil {
		return false
	}
	k.die()
	w.graves.Go(k.close)
	return true
}

func (w *simulation) startWorker(index int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.workers[index] = w.hire(index)
}

// hostOf returns the machine of a client or a worker; nil if the worker is dead.
func (w *simulation) hostOf(e Event) *host.Host {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e.Client {
		return w.clients[e.Index].host
	}
	if k := w.workers[e.Index]; k != nil {
		return k.host
	}
	return nil
}

// hosts returns all machines; the caller holds w.mu.
func (w *simulation) hosts() (hosts []*host.Host) {
	for _, c := range w.clients {
		hosts = append(hosts, c.host)
	}
	for _, k := range w.workers {
		if k != nil {
			hosts = append(hosts, k.host)
		}
	}
	return hosts
}
