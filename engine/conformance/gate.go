package conformance

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/kagzi/kagzi/engine/conformance/program"
)

// gate answers the bodies of steps. A body waits until the suite, or the script of its program, lets
// it go on.
type gate struct {
	server *http.Server
	url    string
	bell   *bell

	mu      sync.Mutex
	waiting map[string]*visitor // by key; the latest visitor of a key
	given   map[string]int      // answers that were given, by key
	final   map[string]bool     // whose last answer lets the step complete, or fail for good, by key
	process int                 // the number of the subject's process: bodies of earlier ones are dead
	asked   func()              // is called at each question; nil: nobody wants to know
	auto    func(program.Question, int) (program.Answer, bool)
	seen    []question // all that were asked, in order
}

// question is one that was asked.
type question struct {
	program.Question
	at time.Time
}

// visitor is a body that waits.
type visitor struct {
	question program.Question
	answer   chan program.Answer
}

func newGate(b *bell) (*gate, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	g := &gate{url: "http://" + l.Addr().String() + "/gate", bell: b, waiting: map[string]*visitor{},
		given: map[string]int{}, final: map[string]bool{}}
	g.server = &http.Server{Handler: http.HandlerFunc(g.serve), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = g.server.Serve(l) }()
	return g, nil
}

func (g *gate) close() { _ = g.server.Close() }

var stale = program.Answer{Do: "fail", Message: "this activation is over", NonRetryable: true}

func (g *gate) serve(w http.ResponseWriter, r *http.Request) {
	var q program.Question
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 4<<20)).Decode(&q); err != nil ||
		!strings.Contains(q.Key, "/") {
		http.Error(w, `want {"key":"RUN/STEP","attempt":1}`, http.StatusBadRequest)
		return
	}
	v := &visitor{question: q, answer: make(chan program.Answer, 1)}
	g.enter(v, path.Base(r.URL.Path))
	select {
	case a := <-v.answer:
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(a)
	case <-r.Context().Done():
		g.leave(v)
	}
}

// next returns the URL for a new process of the subject. Those who wait are of the one before.
func (g *gate) next() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.process++
	for key, v := range g.waiting {
		delete(g.waiting, key)
		v.answer <- stale
	}
	return g.url + "/" + strconv.Itoa(g.process)
}

// enter lets a visitor wait. An earlier one with the same key belongs to an activation that is over.
func (g *gate) enter(v *visitor, process string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	defer g.bell.ring()
	if process != strconv.Itoa(g.process) {
		v.answer <- stale
		return
	}
	if g.asked != nil {
		g.asked()
	}
	g.seen = append(g.seen, question{v.question, time.Now()})
	if old := g.waiting[v.question.Key]; old != nil {
		old.answer <- stale
		delete(g.waiting, v.question.Key)
	}
	if g.auto != nil {
		if a, ok := g.auto(v.question, g.given[v.question.Key]); ok {
			g.tell(v, a)
			return
		}
	}
	g.waiting[v.question.Key] = v
}

func (g *gate) leave(v *visitor) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.waiting[v.question.Key] == v {
		delete(g.waiting, v.question.Key)
		g.bell.ring()
	}
}

// keys returns the keys of those who wait.
func (g *gate) keys() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := make([]string, 0, len(g.waiting))
	for key := range g.waiting {
		all = append(all, key)
	}
	return all
}

// questions returns the questions with a key, in order.
func (g *gate) questions(key string) []question {
	g.mu.Lock()
	defer g.mu.Unlock()
	var all []question
	for _, q := range g.seen {
		if q.Key == key {
			all = append(all, q)
		}
	}
	return all
}

// answer lets a visitor go on. It returns false if nobody waits with that key.
func (g *gate) answer(key string, a program.Answer) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	v := g.waiting[key]
	if v == nil {
		return false
	}
	delete(g.waiting, key)
	g.tell(v, a)
	return true
}

// tell answers a visitor. Needs g.mu.
func (g *gate) tell(v *visitor, a program.Answer) {
	key := v.question.Key
	g.given[key]++
	g.final[key] = a.Do == "return" || a.Do == "fail" && a.NonRetryable
	v.answer <- a
}

// finished returns the steps of a run whose bodies returned, or failed for good.
func (g *gate) finished(run string) []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var all []string
	for key, final := range g.final {
		if of, name, _ := strings.Cut(key, "/"); of == run && final {
			all = append(all, name)
		}
	}
	return all
}

// setAuto lets the gate answer by itself.
func (g *gate) setAuto(auto func(program.Question, int) (program.Answer, bool)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.auto = auto
}

// forget drops what is known of a run that is over.
func (g *gate) forget(run string) {
	g.drop(run)
	g.mu.Lock()
	defer g.mu.Unlock()
	for key := range g.given {
		if strings.HasPrefix(key, run+"/") {
			delete(g.given, key)
			delete(g.final, key)
		}
	}
	g.seen = slices.DeleteFunc(g.seen, func(q question) bool { return strings.HasPrefix(q.Key, run+"/") })
}

// times returns how many answers were given to a key.
func (g *gate) times(key string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.given[key]
}

// drop sends away the visitors of runs whose activation is over.
func (g *gate) drop(run string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for key, v := range g.waiting {
		if strings.HasPrefix(key, run+"/") {
			delete(g.waiting, key)
			v.answer <- stale
		}
	}
}

// await waits until done, which is asked at each change.
func await(ctx context.Context, done func() (bool, error), bells ...*bell) error {
	for {
		changed := make([]<-chan struct{}, len(bells))
		for i, b := range bells {
			changed[i] = b.next()
		}
		if ok, err := done(); ok || err != nil {
			return err
		}
		timer := time.NewTimer(50 * time.Millisecond) // for what no bell tells
		select {
		case <-changed[0]:
		case <-changed[len(changed)-1]:
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
		timer.Stop()
	}
}
