package check

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/kagzi/kagzi/engine/lab/torture/history"
)

// tokensNeverOverlap is I5. Two leases overlap if each wrote while the other was current, or if one
// wrote after it had been superseded.
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

// period is a time in which no acknowledged write is lost.
type period struct{ from, to int64 }

// periods returns the whole time or, if acknowledged writes may be lost, the times between faults.
// A lease may be current again if its successor was lost, so writes from before and after a fault
// cannot be compared.
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

// write is a write that counted: at some time after it was first sent and before it was first
// answered. It may be repeated, and the repetition answered, long after.
type write struct{ sent, answered int64 }

// writer is a token with the writes that counted under it.
type writer struct {
	token  string
	writes []write // at least one
	claim  *claim  // nil: no worker is known to have got the run under it
}

// claim is when a worker got a run: at some time after since and before until.
type claim struct {
	since, until int64
	steps        map[string]string
}

// writersOf returns the tokens that wrote to a run, in a stable order.
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
		} else { // its step may have been named by an id, which only an answer reveals
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

// claimsOf returns the claims of a run by token.
func claimsOf(events []history.Event) map[string]*claim {
	claims := map[string]*claim{}
	for _, e := range events {
		if e.Op != history.Claim || e.Outcome != history.OK {
			continue
		}
		if c := claims[e.Token]; c == nil {
			claims[e.Token] = &claim{e.Invoked, e.Returned, e.Steps}
		} else { // the same task arrived twice: the claim was before the first
			c.until = min(c.until, e.Returned)
			c.since = min(c.since, e.Invoked)
		}
	}
	return claims
}

// within returns the writes that were sent and answered in a period.
func (w *writer) within(p period) *writer {
	part := &writer{token: w.token, claim: w.claim}
	for _, one := range w.writes {
		if one.sent > p.from && one.answered < p.to {
			part.writes = append(part.writes, one)
		}
	}
	return part
}

// conflict describes how two leases both wrote although only one can have been current; "" if they
// did not.
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

// span returns the time in which a token was surely current; none if it ends before it begins.
func (w *writer) span() (from, to int64) {
	from, to = math.MaxInt64, math.MinInt64
	for _, one := range w.writes {
		from, to = min(from, one.answered), max(to, one.sent)
	}
	return from, to
}

// overlaps reports whether two tokens were surely current at the same moment, or in turns.
func (w *writer) overlaps(other *writer) bool {
	from, to := w.span()
	from2, to2 := other.span()
	return from < to && from2 < to2 && from < to2 && from2 < to
}

// bothWrote reports whether two tokens both wrote after both had been handed out. Whichever was
// handed out later, a write of the other counted although it was superseded.
func (w *writer) bothWrote(other *writer) bool {
	if w.claim == nil || other.claim == nil {
		return false
	}
	handed := max(w.claim.until, other.claim.until)
	_, to := w.span()
	_, to2 := other.span()
	return to > handed && to2 > handed
}

// supersededWrites finds writes that counted although their lease was superseded: they were sent
// after a worker got the run under a later lease. When a worker learned of a lease does not show
// which was later, because a task may be in transit for longer than its lease lasts. A claim is
// surely later than a lease that was known before its worker was connected, or whose result it
// contains.
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
			// A power cut may undo a claim that a worker knows of, but not one under which
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

// known returns a moment before which the token had been handed out.
func (w *writer) known() int64 {
	at, _ := w.span()
	if w.claim != nil {
		at = min(at, w.claim.until)
	}
	return at
}

type stepValue struct{ step, value string }

// result is the token that a result was sent under, and when it was first sent.
type result struct {
	token string
	sent  int64
}

// resultsOf returns the results of a run's steps whose token is known.
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
			r.token = "" // it is unknown which of them was recorded
		default:
			r.sent = min(r.sent, e.Invoked)
		}
		results[k] = r
	}
	return results
}

// nothingStruck reports whether no fault was active between two moments. Faults of workers do not
// count, because they lose nothing.
func (i *indexed) nothingStruck(from, to int64) bool {
	return !slices.ContainsFunc(i.faults, func(e history.Event) bool {
		return e.Invoked <= to && (e.Returned == 0 || e.Returned >= from)
	})
}
