package check

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/kagzi/kagzi/engine/lab/torture/history"
)

// tokensNeverOverlap is I5. Two leases overlap when each wrote while the other had, or when one
// wrote that had been superseded.
func (i *indexed) tokensNeverOverlap() Line {
	l := Line{ID: "I5", Of: "leases that wrote"}
	periods := i.periods()
	for run, events := range i.byRun {
		writers := writersOf(events)
		l.Checked += len(writers)
		for n, a := range writers {
			for _, b := range writers[n+1:] {
				if how := conflict(a, b, periods); how != "" {
					l.violate("run %s: the leases %s and %s both wrote %s", run, a.token, b.token, how)
				}
			}
		}
		i.supersededWrites(&l, run, events, writers)
	}
	return l
}

// period is a time in which nothing is lost that was acknowledged.
type period struct{ from, to int64 }

// periods is the whole time; where acknowledged writes may be lost, what lies between the faults. A
// lease may be current again whose successor was lost, so that writes of before and of after a
// fault say nothing about each other.
func (i *indexed) periods() []period {
	if !i.Lossy {
		return []period{{math.MinInt64, math.MaxInt64}}
	}
	faults := slices.SortedFunc(slices.Values(i.faults), func(a, b history.Event) int {
		return cmp.Compare(a.Invoked, b.Invoked)
	})
	var periods []period
	from := int64(math.MinInt64)
	for _, e := range faults {
		if e.Invoked > from {
			periods = append(periods, period{from, e.Invoked})
		}
		if e.Returned == 0 { // it never ended
			return periods
		}
		from = max(from, e.Returned)
	}
	return append(periods, period{from, math.MaxInt64})
}

// write is one that counted: at some time after it was first sent and before it was first answered.
// It may be repeated, and its repetition answered, long after.
type write struct{ sent, answered int64 }

// writer is a token with the writes that counted under it.
type writer struct {
	token  string
	writes []write // at least one
	claim  *claim  // nil: no worker is known to have been handed the run under it
}

// claim is when a worker was handed a run: it happened at some time after since, and before until.
type claim struct {
	since, until int64
	steps        map[string]string
}

// writersOf is the tokens that wrote to a run, in an order that does not change.
func writersOf(events []history.Event) []*writer {
	type deed struct {
		token, step, value string
		op                 history.Op
	}
	sent, answered := map[deed]int64{}, map[deed]int64{}
	for _, e := range events {
		if e.Token == "" || !Writes(e.Op) || e.Outcome == history.Refused {
			continue
		}
		d := deed{e.Token, e.Step, e.Value, e.Op}
		keepEarliest(sent, d, e.Invoked)
		if e.Outcome == history.OK {
			keepEarliest(answered, d, e.Returned)
		} else { // its step may have been named by an id, which only an answer tells
			d.step = ""
			keepEarliest(sent, d, e.Invoked)
		}
	}
	claims, byToken := claimsOf(events), map[string]*writer{}
	var writers []*writer
	for d, at := range answered {
		w := byToken[d.token]
		if w == nil {
			w = &writer{token: d.token, claim: claims[d.token]}
			byToken[d.token] = w
			writers = append(writers, w)
		}
		from := sent[d]
		if d.step = ""; sent[d] != 0 {
			from = min(from, sent[d])
		}
		w.writes = append(w.writes, write{from, at})
	}
	slices.SortFunc(writers, func(a, b *writer) int { return strings.Compare(a.token, b.token) })
	return writers
}

func keepEarliest[K comparable](times map[K]int64, key K, at int64) {
	if was, ok := times[key]; !ok || at < was {
		times[key] = at
	}
}

// claimsOf is the claims of a run by their tokens.
func claimsOf(events []history.Event) map[string]*claim {
	claims := map[string]*claim{}
	for _, e := range events {
		if e.Op != history.Claim || e.Outcome != history.OK {
			continue
		}
		if c := claims[e.Token]; c == nil {
			claims[e.Token] = &claim{e.Invoked, e.Returned, e.Steps}
		} else { // the same task has come twice: it happened before the first
			c.until = min(c.until, e.Returned)
			c.since = min(c.since, e.Invoked)
		}
	}
	return claims
}

// within is the writes that were sent and answered in a period.
func (w *writer) within(p period) *writer {
	part := &writer{token: w.token, claim: w.claim}
	for _, one := range w.writes {
		if one.sent > p.from && one.answered < p.to {
			part.writes = append(part.writes, one)
		}
	}
	return part
}

// conflict is how two leases both wrote although only one can have been the current one; empty when they did not.
func conflict(a, b *writer, periods []period) string {
	for _, p := range periods {
		a, b := a.within(p), b.within(p)
		switch {
		case a.overlaps(b):
			return "at the same time"
		case a.bothWrote(b):
			return "when both had been handed out"
		}
	}
	return ""
}

// span is the time in which a token was surely the current one; none when it ends before it begins.
func (w *writer) span() (from, to int64) {
	from, to = math.MaxInt64, math.MinInt64
	for _, one := range w.writes {
		from, to = min(from, one.answered), max(to, one.sent)
	}
	return from, to
}

// overlaps reports whether two tokens were surely the current one at the same moment, or in turns.
func (w *writer) overlaps(other *writer) bool {
	from, to := w.span()
	from2, to2 := other.span()
	return from < to && from2 < to2 && from < to2 && from2 < to
}

// bothWrote reports whether two tokens both wrote after both of them had been handed out. Whichever
// was handed out later, the other's write counted although it had been superseded.
func (w *writer) bothWrote(other *writer) bool {
	if w.claim == nil || other.claim == nil {
		return false
	}
	handed := max(w.claim.until, other.claim.until)
	_, to := w.span()
	_, to2 := other.span()
	return to > handed && to2 > handed
}

// supersededWrites looks for writes that counted although their lease had been superseded: they
// were sent when a worker had been handed the run under a later one. When a worker heard of a lease
// does not tell which was later, for a task may be on its way for longer than its lease lasts. A
// claim is surely later than a lease that was known before its worker was connected, or whose
// result it has with it.
func (i *indexed) supersededWrites(l *Line, run string, events []history.Event, writers []*writer) {
	claims, results := claimsOf(events), resultsOf(events)
	for _, w := range writers {
		known := w.known()
		for token, c := range claims {
			if token == w.token {
				continue
			}
			since, later := c.since, known < c.since
			for step, value := range c.steps {
				if r, ok := results[stepValue{step, value}]; ok && r.token == w.token {
					since, later = max(since, r.sent), true
				}
			}
			// A power cut may take a claim with it that a worker has heard of; not one under which
			// something was acknowledged.
			kept := !i.Lossy && slices.ContainsFunc(writers, func(other *writer) bool { return other.token == token })
			late := func(one write) bool { return one.sent > c.until && (kept || i.nothingStruck(since, one.answered)) }
			if later && slices.ContainsFunc(w.writes, late) {
				l.violate(
					"run %s: a write under the lease %s was sent when the run had been handed out under %s, and counted", run, w.token, token)
			}
		}
	}
}

// known is a moment before which the token had been handed out.
func (w *writer) known() int64 {
	at, _ := w.span()
	if w.claim != nil {
		at = min(at, w.claim.until)
	}
	return at
}

type stepValue struct{ step, value string }

// result is the token that a result was sent under, and when it was sent first.
type result struct {
	token string
	sent  int64
}

// resultsOf is the results of a run's steps of which it is known under which token they were sent.
func resultsOf(events []history.Event) map[stepValue]result {
	results := map[stepValue]result{}
	for _, e := range events {
		if e.Op != history.Complete {
			continue
		}
		k := stepValue{e.Step, e.Value}
		r, again := results[k]
		switch {
		case !again:
			r = result{e.Token, e.Invoked}
		case r.token != e.Token:
			r.token = "" // which of them was recorded nobody knows
		default:
			r.sent = min(r.sent, e.Invoked)
		}
		results[k] = r
	}
	return results
}

// nothingStruck reports whether no fault lasted at any time between two moments, but those of
// workers, which lose nothing.
func (i *indexed) nothingStruck(from, to int64) bool {
	return !slices.ContainsFunc(i.faults, func(e history.Event) bool {
		return e.Invoked <= to && (e.Returned == 0 || e.Returned >= from)
	})
}
