//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/kagzi/kagzi/engine/lab/torture/fixture"
)

// The kinds of commits whose answers are cut off. All but the first are of batches outside an
// explicit transaction, which the protocol's Sync commits: groups of starts, of steps and of ends,
// and claims. Claims of chosen runs, as of those that workers keep in memory, are explicit ones, too.
const (
	commitExplicit = "explicit"
	commitStarts   = "starts"
	commitSteps    = "steps"
	commitEnds     = "ends"
	commitClaims   = "claims"
	commitOthers   = "others"
)

// commitKinds must all occur, or the scenario proves nothing.
var commitKinds = []string{commitExplicit, commitStarts, commitSteps, commitEnds, commitClaims}

// cutCommits is F-29: connections break after a commit reached Postgres and before the server gets
// the answer. Most break when the commit is done, so that it is known whether it counted; some
// break at once, so that the server continues while the commit is in flight.
func cutCommits(ctx context.Context, t *torture) error {
	for _, s := range t.system.servers {
		s.database.See(func() fixture.Watch {
			w := newCommitWatch(t.cutting, t.cuts.note)
			return func(up bool, data []byte) fixture.Decision {
				v := w.pass(up, data)
				if v == fixture.Cut || v == fixture.PassCut {
					t.system.fault("cut off the answer of "+strings.Join(w.kinds, " and "), func() bool { return true })
				}
				return v
			}
		})
	}
	<-ctx.Done()
	for _, s := range t.system.servers {
		s.database.See(nil)
	}
	return nil
}

// cutting decides about an answer to a commit of these kinds: it passes, or its connection breaks.
// The first of each kind are cut off.
func (t *torture) cutting(kinds []string) fixture.Decision {
	random := t.system.random.n(32)
	switch {
	case slices.ContainsFunc(kinds, func(kind string) bool {
		// Most plain claims only look at what is due, and claim what they chose in a transaction of its
		// own: half of them pass, or none would get that far.
		return t.cuts.lacks(kind) && (kind != commitClaims || len(kinds) > 1 || random%2 == 0)
	}), random < 3:
		return fixture.Cut
	case random == 3:
		return fixture.PassCut
	}
	return fixture.Pass
}

// commitCounts counts by kind the commits that counted and whose answers were cut off.
type commitCounts struct {
	mu sync.Mutex
	of map[string]int
}

func (c *commitCounts) note(kinds []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = map[string]int{}
	}
	for _, k := range kinds {
		c.of[k]++
	}
}

func (c *commitCounts) get(kind string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.of[kind]
}

// lacks reports whether more commits of a required kind have to be cut off.
func (c *commitCounts) lacks(kind string) bool {
	return kind != commitOthers && c.get(kind) < leastCuts
}

// eachKindCut is the proof of F-29.
func eachKindCut(t *torture) (missing []string) {
	for _, kind := range commitKinds {
		if t.cuts.get(kind) < leastCuts {
			missing = append(missing, fmt.Sprintf(
				"%d commits of kind %s counted whose answers were cut off, want %d", t.cuts.get(kind), kind, leastCuts))
		}
	}
	return missing
}

const leastCuts = 2

// cutsByKind prints what was cut off.
func cutsByKind(t *torture) figure {
	var counts []string
	for _, kind := range append(slices.Clone(commitKinds), commitOthers) {
		counts = append(counts, fmt.Sprint(t.cuts.get(kind), " ", kind))
	}
	return figure{name: "commits that counted and whose answers were cut off", got: strings.Join(counts, ", "),
		limit: "some of each", ok: len(eachKindCut(t)) == 0}
}

// commitWatch reads the messages of a connection to Postgres far enough to know what commits and
// whether it counted.
type commitWatch struct {
	choose func(kinds []string) fixture.Decision // called for each commit
	noted  func(kinds []string)                  // called for each that counted and was cut off

	up, down   reader
	statements map[string]statement // by name
	portals    map[string]statement // by name
	open       bool                 // in an explicit transaction
	claims     bool                 // it claims runs, which were chosen before
	claimed    bool                 // and it got some
	kinds      []string             // of the writes since the last answer
	executed   []statement          // since then
	took       bool                 // a row of the answer names a claimed run
	counted    []string             // kinds of the answers that reported a write
	withheld   bool                 // the answer must not pass
}

func newCommitWatch(choose func([]string) fixture.Decision, noted func([]string)) *commitWatch {
	return &commitWatch{choose: choose, noted: noted, up: reader{untyped: true}, statements: map[string]statement{},
		portals: map[string]statement{}}
}

// statement is the effect of a statement on its transaction.
type statement struct {
	word string // its first, in lower case
	kind string // of a commit of its writes; empty: no write

	chosen bool // it claims runs that were chosen before: each row of its answer is one
}

var (
	sqlPassed = regexp.MustCompile(`(?m)--.*$|'[^']*'`) // comments and texts
	sqlWrites = regexp.MustCompile(`\b(insert into|delete from|update) (\w+)`)
)

// statementOf parses the text of a statement.
func statementOf(text string) statement {
	text = strings.ToLower(sqlPassed.ReplaceAllString(text, ""))
	s := statement{}
	if words := strings.Fields(text); len(words) > 0 {
		s.word = strings.TrimSuffix(words[0], ";")
	}
	writes := map[string]bool{}
	for _, found := range sqlWrites.FindAllStringSubmatch(strings.Join(strings.Fields(text), " "), -1) {
		if found[2] != "of" && found[2] != "skip" && found[2] != "set" {
			// which locks, or is part of "on conflict do update set"
			writes[found[1]+" "+found[2]] = true
		}
	}
	switch {
	case writes["insert into runs"]:
		s.kind = commitStarts
	case writes["insert into steps"]:
		s.kind = commitSteps
	case writes["delete from leases"] && writes["update runs"]:
		s.kind = commitEnds
	case writes["insert into leases"]:
		s.kind, s.chosen = commitClaims, strings.Contains(text, "with ordinality")
	case len(writes) > 0:
		s.kind = commitOthers
	}
	return s
}

// pass reads a piece of the stream and decides about it.
func (w *commitWatch) pass(up bool, data []byte) fixture.Decision {
	said := fixture.Pass
	if up {
		w.up.read(data, func(kind byte, body []byte) { said = max(said, w.asked(kind, body)) })
		return said
	}
	over := false
	w.down.read(data, func(kind byte, body []byte) { over = w.answered(kind, body) || over })
	switch {
	case !w.withheld:
		return fixture.Pass
	case over:
		return fixture.Cut
	}
	return fixture.Withhold
}

// asked handles a message to Postgres.
func (w *commitWatch) asked(kind byte, body []byte) fixture.Decision {
	first, rest, _ := bytes.Cut(body, []byte{0})
	second, _, _ := bytes.Cut(rest, []byte{0})
	switch kind {
	case 'P': // parse
		w.statements[string(first)] = statementOf(string(second))
	case 'B': // bind
		w.portals[string(first)] = w.statements[string(second)]
	case 'E': // execute
		w.execute(w.portals[string(first)])
	case 'Q': // a simple query, which includes a Sync
		w.execute(statementOf(string(first)))
		return w.sync()
	case 'S': // sync
		return w.sync()
	}
	return fixture.Pass
}

func (w *commitWatch) execute(s statement) {
	w.executed = append(w.executed, s)
	switch {
	case s.word == "begin":
		w.open, w.claims, w.claimed = true, false, false
	case s.word == "commit":
		if w.kinds = append(w.kinds, commitExplicit); w.claims {
			w.kinds = append(w.kinds, commitClaims)
		}
	case s.kind == commitClaims && w.open:
		w.claims = true
	case s.kind != "" && !w.open && !slices.Contains(w.kinds, s.kind):
		w.kinds = append(w.kinds, s.kind)
	}
}

// sync ends the request. It commits what was written outside a transaction.
func (w *commitWatch) sync() fixture.Decision {
	if len(w.kinds) == 0 {
		return fixture.Pass
	}
	v := w.choose(w.kinds)
	if w.withheld = v == fixture.Cut; w.withheld {
		return fixture.Pass // until the answer comes
	}
	return v
}

// answered handles a message from Postgres; it returns true at the end of the answer.
func (w *commitWatch) answered(kind byte, body []byte) (over bool) {
	switch kind {
	case 'D': // a row
		w.took = w.took || claimed(body)
	case 'C': // a statement is complete
		if len(w.executed) == 0 {
			return false
		}
		s := w.executed[0]
		w.executed = w.executed[1:]
		tag := strings.Fields(string(bytes.TrimRight(body, "\x00")))
		switch wrote := len(tag) > 1 && tag[len(tag)-1] != "0"; {
		case s.word == "commit" && tag[0] == "COMMIT":
			if w.counted = append(w.counted, commitExplicit); w.claimed {
				w.counted = append(w.counted, commitClaims)
			}
		case s.kind == commitClaims && w.open:
			w.claimed = w.claimed || w.took || s.chosen && wrote
		case s.kind == commitClaims && w.took, s.kind != commitClaims && s.kind != "" && wrote &&
			slices.Contains(w.kinds, s.kind):
			w.counted = append(w.counted, s.kind)
		}
		w.took = false
	case 'E': // an error: nothing was changed
		w.counted = nil
	case 'Z': // ready for the next
		if w.withheld {
			w.noted(slices.Compact(slices.Sorted(slices.Values(w.counted))))
			return true
		}
		w.open = len(body) > 0 && body[0] != 'I'
		w.kinds, w.executed, w.counted, w.took = nil, nil, nil, false
	}
	return false
}

// claimed reports whether a row of a claim names a claimed run: the first seven columns of claim.sql
// are always there.
func claimed(row []byte) bool {
	if len(row) < 2 {
		return false
	}
	columns := int(binary.BigEndian.Uint16(row))
	row = row[2:]
	for i := 0; i < columns && len(row) >= 4; i++ {
		size := int32(binary.BigEndian.Uint32(row))
		if i == 7 {
			return size >= 0
		}
		if row = row[4:]; size > 0 {
			row = row[min(int(size), len(row)):]
		}
	}
	return false
}

// reader assembles messages from pieces.
type reader struct {
	untyped bool // the next message has no type, as the first one to Postgres
	rest    []byte
}

func (r *reader) read(data []byte, take func(kind byte, body []byte)) {
	r.rest = append(r.rest, data...)
	for {
		head := 5
		if r.untyped {
			head = 4
		}
		if len(r.rest) < head {
			return
		}
		size := int(binary.BigEndian.Uint32(r.rest[head-4:])) + head - 4
		if len(r.rest) < size {
			return
		}
		if !r.untyped {
			take(r.rest[0], r.rest[head:size])
		}
		r.untyped = false
		r.rest = r.rest[size:]
	}
}
