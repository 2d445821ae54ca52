package server

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/servertest"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/proto/query"
)

// auditList is a list of events, newest first, as a store pages it. It counts what was read.
type auditList struct {
	events []engine.AuditEvent
	read   int
}

func (l *auditList) page(_ context.Context, p engine.Page) ([]engine.AuditEvent, engine.PageInfo, error) {
	above, below := p.Span()
	var items []engine.AuditEvent
	for i := range l.events {
		if id := l.events[i].ID; bytes.Compare(id[:], above[:]) > 0 && bytes.Compare(id[:], below[:]) < 0 {
			items = append(items, l.events[i])
		}
	}
	if p.Before != nil {
		slices.Reverse(items)
	}
	info := engine.PageInfo{}
	items = engine.Cut(slices.Clone(items[:min(len(items), p.Limit+1)]), &p, &info)
	l.read += len(items)
	return items, info, nil
}

func (l *auditList) listing() *listing[engine.AuditEvent, *kagziv1.AuditEvent] {
	return &listing[engine.AuditEvent, *kagziv1.AuditEvent]{read: l.page, message: wire.AuditTo,
		place: func(e *engine.AuditEvent) engine.Cursor { return engine.Cursor{ID: e.ID} }}
}

// someEvents makes events, one a minute, newest first.
func someEvents(r *rand.Rand, n int) []engine.AuditEvent {
	events := make([]engine.AuditEvent, n)
	for i := range events {
		at := servertest.Began.Add(-time.Duration(i) * time.Minute)
		events[i] = engine.AuditEvent{ID: engine.FirstID(at), At: at, Method: fmt.Sprint("M", r.IntN(3)),
			SubjectID: fmt.Sprint("s", r.IntN(5)), Detail: strconv.Itoa(i)}
	}
	return events
}

// walk reads all pages of a list, forwards or from its end backwards, and returns the details in the
// list's order, and in how many pages.
func walk(t *testing.T, l *listing[engine.AuditEvent, *kagziv1.AuditEvent], q *query.Query[*kagziv1.AuditEvent],
	size int32, back bool) (details []string, pages int) {
	t.Helper()
	request := &kagziv1.ListAuditEventsRequest{Page: &kagziv1.PageRequest{PageSize: size, Last: back}}
	for pages = 1; ; pages++ {
		asked, err := wire.PageOf(request, request.Page, wire.BelowIDs)
		if err != nil {
			t.Fatal(err)
		}
		list, around, err := l.page(t.Context(), request, asked, q)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range list {
			got = append(got, e.Detail)
		}
		token := around.NextPageToken
		if back {
			details, token = append(got, details...), around.PrevPageToken
		} else {
			details = append(details, got...)
		}
		if len(list) < int(size) && token == "" || token == "" {
			return details, pages
		}
		request.Page = &kagziv1.PageRequest{PageSize: size, PageToken: token}
	}
}

func randomQuery(r *rand.Rand) string {
	part := func() string {
		switch r.IntN(4) {
		case 0:
			return fmt.Sprint("method = M", r.IntN(4))
		case 1:
			return fmt.Sprint("subject_id in (s", r.IntN(6), ", s", r.IntN(6), ")")
		case 2:
			return fmt.Sprintf("at > -%dm", r.IntN(2000))
		}
		return fmt.Sprintf("at <= -%dm", r.IntN(2000))
	}
	text := part()
	for range r.IntN(4) {
		text += []string{" and ", " or ", " and not "}[r.IntN(3)] + part()
	}
	return text
}

func TestPagesOfAQueryHoldEachItemOnceInBothDirections(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("KAGZI_TEST_SEED"); text != "" {
		seed, _ = strconv.ParseUint(text, 10, 64)
	}
	r := rand.New(rand.NewPCG(seed, 2))
	for range 60 {
		l := &auditList{events: someEvents(r, r.IntN(1500))}
		text := randomQuery(r)
		q, err := query.Audit.Parse(text, servertest.Began)
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		for i := range l.events {
			if q.Matches(wire.AuditTo(&l.events[i])) {
				want = append(want, l.events[i].Detail)
			}
		}
		list := l.listing()
		list.within = spanOf(q.Between("at"))
		size := 1 + r.Int32N(200)
		for _, back := range []bool{false, true} {
			if got, _ := walk(t, list, q, size, back); !slices.Equal(got, want) {
				t.Fatalf("seed %d: %s in pages of %d, back %v: %d items, want %d", seed, text, size, back, len(got), len(want))
			}
		}
		n, err := list.count(t.Context(), q)
		if err != nil || n != int64(len(want)) {
			t.Errorf("seed %d: %s: count = %d, %v, want %d", seed, text, n, err, len(want))
		}
	}
}

func TestOneCallReadsABoundedPartOfAListForAQuery(t *testing.T) {
	l := &auditList{events: someEvents(rand.New(rand.NewPCG(1, 1)), 2*readInAll+300)}
	last := len(l.events) - 1
	l.events[last].Method, l.events[0].Method = "rare", "rare"
	q, err := query.Audit.Parse("method = rare", servertest.Began)
	if err != nil {
		t.Fatal(err)
	}
	for _, back := range []bool{false, true} {
		got, pages := walk(t, l.listing(), q, 10, back)
		if want := []string{"0", strconv.Itoa(last)}; !slices.Equal(got, want) || pages != 3 {
			t.Errorf("back %v: %v in %d pages, want %v in 3", back, got, pages, want)
		}
	}
}

func TestAQueryByTimeReadsOnlyThatTime(t *testing.T) {
	l := &auditList{events: someEvents(rand.New(rand.NewPCG(1, 1)), 5000)}
	q, err := query.Audit.Parse("at < -1000m and at > -1100m", servertest.Began)
	if err != nil {
		t.Fatal(err)
	}
	list := l.listing()
	list.within = spanOf(q.Between("at"))
	for _, back := range []bool{false, true} {
		l.read = 0
		if got, _ := walk(t, list, q, 1000, back); len(got) != 99 || l.read > readAtOnce {
			t.Errorf("back %v: %d events by reading %d, want 99 by at most %d", back, len(got), l.read, readAtOnce)
		}
	}
}

func TestAWrongQueryNamesTheFieldAndThePlace(t *testing.T) {
	s := serverOver(&servertest.Books{})
	_, err := s.ListAuditEvents(t.Context(), &kagziv1.ListAuditEventsRequest{Query: "who = me"})
	want := `query: position 1: expected a field of audit: at, actor, peer, method, subject, subject_id, ` +
		`outcome, reason, detail, found "who"`
	if err == nil || err.Error() != want {
		t.Errorf("error = %v, want %s", err, want)
	}
}
