package widget

import (
	"fmt"
	"sort"
)

// docHit is a search hit and the token that contains it.
type docHit struct {
	token    int
	from, to int
}

// Search marks every key and value that contains the text, shows the first one from the cursor on,
// unfolding it, and returns the number of hits. Case matters only if the text has upper case. An
// empty text ends the search. Only loaded data is searched.
func (d *Document) Search(text string) int {
	d.find, d.found = newFinder(text), 0
	d.hits = d.search()
	if len(d.hits) == 0 {
		return 0
	}
	first := sort.Search(len(d.hits), func(i int) bool { return d.hits[i].token >= d.cursor })
	d.show(first % len(d.hits))
	return len(d.hits)
}

// Found returns the number of the current hit, from 1, and the number of hits.
func (d *Document) Found() (current, of int) {
	if len(d.hits) == 0 {
		return 0, 0
	}
	return d.found + 1, len(d.hits)
}

// Next shows the next hit, and wraps around.
func (d *Document) Next() { d.show(around(d.found, 1, len(d.hits))) }

// Prev shows the previous hit.
func (d *Document) Prev() { d.show(around(d.found, -1, len(d.hits))) }

// search finds all hits in one pass over the data. Text between keys and values does not count.
func (d *Document) search() []docHit {
	if d.find == nil || len(d.tokens) == 0 {
		return nil
	}
	end := d.tokens[len(d.tokens)-1].to
	data := d.find.prepare(d.data[:end])
	var hits []docHit
	at := 0 // current token
	for begin := 0; ; {
		from, to := d.find.index(data, begin)
		if from < 0 {
			return hits
		}
		at += sort.Search(len(d.tokens)-at, func(i int) bool { return int(d.tokens[at+i].start()) > from }) - 1
		at = max(at, 0)
		if begin = from + 1; d.tokens[at].holds(from, to) {
			hits = append(hits, docHit{at, from, to})
			begin = to
		}
	}
}

// holds reports whether a range of the data lies in the token's key or value. A hit in a hex dump
// may continue in the next row.
func (t *token) holds(from, to int) bool {
	if t.kind == bytesToken {
		return true
	}
	return from >= int(t.keyFrom) && to <= int(t.keyTo) || from >= int(t.from) && to <= int(t.to)
}

// hitsOf returns the hits to mark in the row of a token.
func (d *Document) hitsOf(at int, text string) []hit {
	first := sort.Search(len(d.hits), func(i int) bool { return d.hits[i].token >= at })
	if first == len(d.hits) || d.hits[first].token != at {
		return nil
	}
	if d.lit.find != d.find || d.lit.token != at || d.lit.text != text {
		d.lit = lit{find: d.find, token: at, text: text, hits: d.find.all(text)}
	}
	for i := range d.lit.hits {
		d.lit.hits[i].current = first+i == d.found
	}
	return d.lit.hits
}

// lit caches the hits of the last drawn row, because a wrapped row is drawn piece by piece.
type lit struct {
	find  *finder
	token int
	text  string
	hits  []hit
}

// show makes a hit the current one and scrolls to it. If it is beyond the right edge, wrapping is
// turned on.
func (d *Document) show(i int) {
	if i >= len(d.hits) {
		return
	}
	d.found = i
	d.cursor = d.hits[i].token
	d.open(d.cursor)
	d.reveal()
	text := d.layout(d.cursor).text
	place := -1
	for _, h := range d.hitsOf(d.cursor, text) {
		if h.current {
			place = h.from
		}
	}
	if place < 0 || d.width == 0 {
		return
	}
	if !d.wrap && len(breaks(text[:place+1], d.width-d.indent(&d.tokens[d.cursor])-d.mark(), 0)) > 1 {
		d.SetWrap(true)
	}
	d.revealRow(rowAt(d.layout(d.cursor).starts, place))
}

// revealRow scrolls until a row of the cursor's token is visible.
func (d *Document) revealRow(row int) {
	at := place{d.cursor, row}
	if at.before(d.top) || step(d, d.top, max(d.height, 1)-1).before(at) {
		d.top = step(d, at, -max(d.height, 1)/3)
	}
}

// found writes the position among the hits.
func found(current, of int) string { return fmt.Sprintf("%d of %d found  ", current, of) }
