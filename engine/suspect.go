package engine

import (
	"hash/fnv"
	"maps"
	"math"
	"time"
)

// A worker that is lost with several runs in hand says nothing about which of them killed it. They
// become suspects, and the claims that follow find out: Suspects.May limits how many of them one
// worker holds. A loss with suspects in hand says more: one of these has killed the worker, unless a
// newer run did. So they become suspects of that loss, with a stricter limit, and the other runs
// become suspects apart from them.

const (
	// SuspectFor is how long a suspect is in hand without a loss before it is no suspect any more.
	SuspectFor = 10 * time.Minute
	// SuspectRetry is how long a claim waits, at most, before it looks again at suspects that it
	// had to leave.
	SuspectRetry = 5 * time.Second
	// LossJitter limits the random part of the delay of runs that a lost worker held together.
	LossJitter = 500 * time.Millisecond
)

// Suspect says that a run may have killed its worker. The zero value says that it is no suspect.
type Suspect struct {
	Of     int       `json:"of"`     // how many suspects there are of the loss; 0: no suspect
	Worker string    `json:"worker"` // the worker that was lost
	At     time.Time `json:"at"`     // when it became OFFLINE
	// Again says that suspects were in hand at the loss, and this run was one of them.
	Again bool `json:"again,omitempty"`
}

// Is says whether the run is a suspect.
func (s Suspect) Is() bool { return s.Of > 0 }

// Limit returns how many suspects of the loss one worker may hold.
func (s Suspect) Limit() int { return max(s.Of/2, 1) }

// SuspectSince returns the time of claims from which on suspects are still suspects at now.
func SuspectSince(now time.Time) time.Time { return now.Add(-SuspectFor) }

// Suspects counts the suspects that one worker holds. The zero value holds none.
type Suspects struct {
	all       int
	strictest int // the smallest limit of those that are suspects Again; 0: there are none
	ofLoss    map[loss]int
}

// loss is the loss of a worker.
type loss struct {
	worker string
	at     int64
}

func (s Suspect) loss() loss { return loss{s.Worker, s.At.UnixMicro()} }

// May says whether the worker may hold the run too. Of the suspects of
// one loss a worker holds at most Limit. While one of those that it holds is a suspect Again, the
// smallest limit of these applies to all its suspects, whatever the loss: otherwise suspects of
// other losses would take the places that the halving has emptied.
func (h *Suspects) May(s Suspect) bool {
	if !s.Is() {
		return true
	}
	strictest := h.strictest
	if s.Again && (strictest == 0 || s.Limit() < strictest) {
		strictest = s.Limit()
	}
	return h.ofLoss[s.loss()] < s.Limit() && (strictest == 0 || h.all < strictest)
}

// Clone returns a copy.
func (h *Suspects) Clone() *Suspects {
	c := *h
	c.ofLoss = maps.Clone(h.ofLoss)
	return &c
}

// Add counts a suspect that the worker holds.
func (h *Suspects) Add(s Suspect) {
	if !s.Is() {
		return
	}
	if h.ofLoss == nil {
		h.ofLoss = map[loss]int{}
	}
	h.all++
	h.ofLoss[s.loss()]++
	if s.Again && (h.strictest == 0 || s.Limit() < h.strictest) {
		h.strictest = s.Limit()
	}
}

// Loss is the loss of a worker.
type Loss struct {
	Worker   string
	At       time.Time // when the worker became OFFLINE
	HeardAt  time.Time // its last heartbeat
	Runs     int       // how many runs it held, suspects included
	Suspects int       // how many of these were suspects
}

// LostRun is a run that a lost worker held.
type LostRun struct {
	ID         ID
	Type       string // decides its LossLimit
	Losses     int    // its LeaseLosses
	Progressed bool   // a step's result was recorded under the lost lease
	Suspect    Suspect
	ClaimedAt  time.Time
}

// LossVerdict says what follows for a run from losing its worker.
type LossVerdict struct {
	Losses      int  // the run's new LeaseLosses
	Failed      bool // LossLimit is reached: the run ends as FAILED with CrashedFailure
	AvailableAt time.Time
	Suspect     Suspect
}

// AfterLeaseLost decides about a run whose worker was lost; now is when the run is freed.
//
// If the run was the only suspect in hand, or the only run, the loss counts. A result of a step that
// was recorded under the lost lease starts the count again. The first loss adds no delay; each
// further one doubles it, from 1 s to at most 5 minutes. Otherwise the loss does not count, and the
// run is due after a part of LossJitter, which its id and the loss decide. In both cases it becomes a
// suspect: of as many as there were suspects in hand if it was one of them, else of as many as there
// were other runs.
func AfterLeaseLost(r LostRun, l Loss, now time.Time) LossVerdict {
	v := LossVerdict{Losses: r.Losses, Suspect: Suspect{Worker: l.Worker, At: l.At}}
	if r.Progressed {
		v.Losses = 0
	}
	counted := l.Runs <= 1
	if r.Suspect.Is() && !r.Progressed && r.ClaimedAt.After(SuspectSince(l.HeardAt)) {
		v.Suspect.Of, v.Suspect.Again = max(l.Suspects, 1), true
		counted = l.Suspects <= 1
	} else {
		v.Suspect.Of = max(l.Runs-l.Suspects, 1)
	}
	if !counted {
		v.AvailableAt = Micros(now.Add(lossDelay(r.ID, l)))
		return v
	}
	v.Losses++
	v.AvailableAt = now
	if v.Losses >= LossLimit(r.Type) {
		v.Failed, v.Suspect = true, Suspect{}
		return v
	}
	if v.Losses > 1 {
		delay := math.Min(math.Pow(2, float64(v.Losses-2)), 300)
		v.AvailableAt = Micros(now.Add(time.Duration(delay * float64(time.Second))))
	}
	return v
}

// lossDelay returns the run's part of LossJitter. It differs from run to run and from loss to loss,
// so that the runs come back in another order each time.
func lossDelay(run ID, l Loss) time.Duration {
	h := fnv.New64a()
	_, _ = h.Write(run[:])
	_, _ = h.Write([]byte(l.At.UTC().Format(time.RFC3339Nano)))
	return time.Duration(float64(h.Sum64()>>11) / (1 << 53) * float64(LossJitter))
}
