package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/kagzi/kagzi/engine"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/proto/query"
)

// TestEachListSelectsWithTheDatabaseAsItSelectsAlone compares the pages of random filters, parts
// of which the databases carry out, with what the filter selects of the whole list.
func TestEachListSelectsWithTheDatabaseAsItSelectsAlone(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("KAGZI_TEST_SEED"); text != "" {
		seed = fine(strconv.ParseUint(text, 10, 64))(t)
	}
	eachServer(t, patient, func(t *testing.T, s *Server) {
		ctx := within(t, time.Minute)
		r := rand.New(rand.NewPCG(seed, 3))
		var ids []string
		for i := range 30 {
			made := fine(s.schedules().CreateWorkflowSchedule(ctx, &kagziv1.CreateWorkflowScheduleRequest{
				Name: fmt.Sprint("s", i), TaskQueue: fmt.Sprint("q", i%3), WorkflowType: fmt.Sprint("t", i%2),
				CronExpr: "@yearly", Tags: map[string]string{"n": strconv.Itoa(i % 5)}}))(t).Schedule
			ids = append(ids, made.ScheduleId)
			for range r.IntN(3) {
				fine(s.schedules().PauseWorkflowSchedule(ctx, &kagziv1.PauseWorkflowScheduleRequest{
					ScheduleId: made.ScheduleId, Reason: fmt.Sprint("r", i%4)}))(t)
				fine(s.schedules().ResumeWorkflowSchedule(ctx, &kagziv1.ResumeWorkflowScheduleRequest{
					ScheduleId: made.ScheduleId}))(t)
			}
		}
		audit := func(q string, p *kagziv1.PageRequest) ([]*kagziv1.AuditEvent, *kagziv1.PageInfo) {
			answer := fine(s.admin().ListAuditEvents(ctx, &kagziv1.ListAuditEventsRequest{Namespace: "default", Query: q,
				Page: p}))(t)
			return answer.Events, answer.Page
		}
		schedules := func(q string, p *kagziv1.PageRequest) ([]*kagziv1.WorkflowSchedule, *kagziv1.PageInfo) {
			answer := fine(s.schedules().ListWorkflowSchedules(ctx, &kagziv1.ListWorkflowSchedulesRequest{Query: q,
				Page: p}))(t)
			return answer.Schedules, answer.Page
		}
		events, _ := audit("", &kagziv1.PageRequest{PageSize: 1000})
		if len(events) < 30 {
			t.Fatalf("%d events, want one of each schedule", len(events))
		}
		at := func() string { return events[r.IntN(len(events))].At.AsTime().Format(time.RFC3339Nano) }
		possible := []string{">", ">=", "<", "<="}
		// Clocks of other tests in this process jump, and its ids never go back: they may be hours ahead of the
		// times, and the newest are then passed over.
		if fine(engine.ParseID(ids[0]))(t).MadeAt().After(time.Now().Add(time.Minute)) {
			possible = possible[:2]
		}
		ops := func() string { return possible[r.IntN(len(possible))] }
		ofAudit := func() string {
			return []string{`subject_id = "` + ids[r.IntN(len(ids))] + `"`, "at " + ops() + " " + at(),
				"method = " + []string{"Pause*", "CreateWorkflowSchedule"}[r.IntN(2)], fmt.Sprint("reason = r", r.IntN(5)),
				"at > 2026-01-01"}[r.IntN(5)]
		}
		ofSchedules := func() string {
			return []string{fmt.Sprint("queue = q", r.IntN(4)), "created " + ops() + " " + at(),
				fmt.Sprint("name in (s1*, s", r.IntN(30), ")"), fmt.Sprint("tag.n != ", r.IntN(5)),
				"type = t1"}[r.IntN(5)]
		}
		for range 40 {
			compare(t, seed, r, &query.Audit, joined(r, ofAudit), audit, (*kagziv1.AuditEvent).String)
			compare(t, seed, r, &query.Schedules, joined(r, ofSchedules), schedules,
				(*kagziv1.WorkflowSchedule).GetScheduleId)
		}
	})
}

// joined joins parts at random.
func joined(r *rand.Rand, part func() string) string {
	text := part()
	for range r.IntN(4) {
		text = []string{"(" + text + ") and " + part(), "(" + text + ") or " + part(),
			"not (" + text + ") and " + part(), part() + " and (" + text + ")"}[r.IntN(4)]
	}
	return text
}

// compare reads all pages of a filter, forwards and backwards, and compares them with what it selects
// of the whole list.
func compare[M any](t *testing.T, seed uint64, r *rand.Rand, l *query.List[M], text string,
	list func(string, *kagziv1.PageRequest) ([]M, *kagziv1.PageInfo), name func(M) string) {
	t.Helper()
	q, err := l.Parse(text, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	whole, _ := list("", &kagziv1.PageRequest{PageSize: 1000})
	var want []string
	for _, m := range whole {
		if q.Matches(m) {
			want = append(want, name(m))
		}
	}
	size := 1 + r.Int32N(20)
	for _, back := range []bool{false, true} {
		var got []string
		for p := (&kagziv1.PageRequest{PageSize: size, Last: back, IncludeTotalCount: true}); ; {
			items, info := list(text, p)
			if info.TotalCount != int64(len(want)) {
				t.Fatalf("seed %d: %s: %d in all, want %d", seed, text, info.TotalCount, len(want))
			}
			var names []string
			for _, m := range items {
				names = append(names, name(m))
			}
			token := info.NextPageToken
			if back {
				got, token = append(names, got...), info.PrevPageToken
			} else {
				got = append(got, names...)
			}
			if token == "" {
				break
			}
			p = &kagziv1.PageRequest{PageSize: size, PageToken: token, IncludeTotalCount: true}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d: %s in pages of %d, back %v: %d items, want %d", seed, text, size, back, len(got), len(want))
		}
	}
}

func TestEveryListNamesItsFieldsInAnError(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		ctx := within(t, time.Minute)
		const wrong = "colour = red"
		for name, call := range map[string]func() error{
			"schedules": func() error {
				return second(s.schedules().ListWorkflowSchedules(ctx,
					&kagziv1.ListWorkflowSchedulesRequest{Query: wrong}))
			},
			"workers": func() error {
				return second(s.admin().ListWorkers(ctx, &kagziv1.ListWorkersRequest{Query: wrong}))
			},
			"queues": func() error {
				return second(s.admin().GetQueueDepth(ctx, &kagziv1.GetQueueDepthRequest{Query: wrong}))
			},
			"types": func() error {
				return second(s.admin().ListWorkflowTypes(ctx, &kagziv1.ListWorkflowTypesRequest{Query: wrong}))
			},
			"audit": func() error {
				return second(s.admin().ListAuditEvents(ctx, &kagziv1.ListAuditEventsRequest{Query: wrong}))
			},
			"keys": func() error {
				return second(s.admin().ListKeys(ctx, &kagziv1.ListKeysRequest{Query: wrong}))
			},
			"namespaces": func() error {
				return second(s.namespaces().ListNamespaces(ctx, &kagziv1.ListNamespacesRequest{Query: wrong}))
			},
		} {
			refused(t, call(), codes.InvalidArgument, "query: position 1: expected a field of "+name+": ")
		}
	})
}
