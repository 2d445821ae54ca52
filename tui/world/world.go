// Package world owns a small shop that only exists in memory: its runs, workers and schedules behave as those of a server do, and a seed
// decides what happens to them. It stands in for a server in `kagzi tui --demo` and in tests of screens, and keeps no rule of the engine.
//
// The clock of a world stands until Advance moves it or Run lets it go. The same seed, begin and calls make the same world, to the last
// id. What it holds when it is made has been lived through: New lets the last day pass.
package world

import (
	"context"
	"sync"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui"
)

var _ tui.API = (*World)(nil)

const (
	defaultNamespace = "default"

	// past is how long before its beginning a world has been going on.
	past = 24 * time.Hour
	// running is how long before its beginning its server was started.
	running = 74 * time.Hour
)

// World is a scripted server. It may be used from many goroutines.
type World struct {
	seed         uint64
	begin        time.Time
	mu           sync.Mutex // guards all below
	now          time.Time
	agenda       agenda
	ids          mint
	luck         luck
	quiet        bool // nothing happens by itself: no story, and no runs but those that are started by calls
	archive      archive
	runs         []*run // by id, oldest first
	byID         map[string]*run
	byExternalID map[string]*run // the newest one; by namespace and external id
	open         []*run          // that have not ended, by id
	requests     map[string]answered
	retries      map[string]*run // by the run that was retried: its newest retry
	cast         map[Piece]string
	workers      []*worker
	schedules    []*schedule
	namespaces   map[string]*kagziv1.Namespace
	audit        []*kagziv1.AuditEvent
	events       []*kagziv1.ServerEvent
	eventCount   int64
	activity     activity
	methods      map[string]*kagziv1.MethodStats
	streams      int32
	weather      weather
	dispatching  bool // a look at who could take which run is planned
	news         news
	trouble      trouble
	keyring      keyring
}

// answered is what a request_id was told.
type answered struct {
	runID   string
	existed bool
	content string
}

// New is a world that a seed and a moment decide: the moment is its now. It has been going on for a day: some 400 runs have ended, and some
// 40 are open, among them the pieces of ID. Customers go on to come, and every few minutes something goes wrong and is put right.
func New(seed uint64, begin time.Time) *World {
	w := bare(seed, begin)
	w.now = w.begin.Add(-past)
	w.populate()
	w.advance(w.begin)
	w.publish()
	return w
}

// Many is New with n more runs that have ended, before all others. They cost no memory: each is worked out when it is looked at.
func Many(seed uint64, begin time.Time, n int) *World {
	w := New(seed, begin)
	w.archive = newArchive(seed, w.begin.Add(-past), n)
	return w
}

// Empty is a server that nobody has used yet. Nothing happens in it by itself.
func Empty(begin time.Time) *World {
	w := bare(0, begin)
	w.quiet = true
	w.publish()
	return w
}

func bare(seed uint64, begin time.Time) *World {
	w := &World{
		seed: seed, begin: micros(begin), now: micros(begin), ids: mint{luck: newLuck(seed, 1).Rand}, luck: newLuck(seed, 2),
		byID: map[string]*run{}, byExternalID: map[string]*run{}, requests: map[string]answered{}, retries: map[string]*run{},
		cast: map[Piece]string{}, namespaces: map[string]*kagziv1.Namespace{}, methods: map[string]*kagziv1.MethodStats{},
		news: news{bell: make(chan struct{})},
	}
	w.activity = newActivity(w.begin.Add(-running))
	w.addNamespace(&kagziv1.Namespace{Namespace: defaultNamespace, Enabled: true}, w.begin.Add(-running))
	return w
}

// Now is the world's time.
func (w *World) Now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

// Advance lets time pass, and all happen that happens in it. Streams hear of it afterwards.
func (w *World) Advance(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.advance(w.now.Add(d))
	w.publish()
}

// beat is how often Run moves the clock.
const beat = 50 * time.Millisecond

// Run lets the world's time go, so many times as fast as ours, until ctx ends.
func (w *World) Run(ctx context.Context, speed float64) {
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	for last := time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now := time.Now()
		w.Advance(time.Duration(float64(now.Sub(last)) * speed))
		last = now
	}
}
