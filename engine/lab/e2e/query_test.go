package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/kagzi/kagzi/backends/memory"
	"github.com/kagzi/kagzi/engine"
	longtest "github.com/kagzi/kagzi/engine/lab/long"
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
			ctx, stop := context.WithTimeout(t.Context(), time.Minute) // there are thousands of pages
			defer stop()
			answer := fine(s.admin().ListAuditEvents(ctx, &kagziv1.ListAuditEventsRequest{Namespace: "default", Query: q,
				Page: p}))(t)
			return answer.Events, answer.Page
		}
		schedules := func(q string, p *kagziv1.PageRequest) ([]*kagziv1.WorkflowSchedule, *kagziv1.PageInfo) {
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
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
		for range longtest.Count(10, 40) {
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

// everyStore runs a test on a server over each store, that in memory too.
func everyStore(t *testing.T, test func(t *testing.T, s *Server)) {
	eachServer(t, patient, test)
	t.Run("memory", func(t *testing.T) {
		db := memory.New(memory.Options{})
		store := db.Open(func(_ context.Context, c *memory.Call) error {
			db.Commit(c)
			c.Ticket.Admit()
			return c.Err
		})
		test(t, New(t, store, patient))
	})
}

// someRuns starts runs of many kinds: some with a worker, parents, errors and external ids.
func (s *Server) someRuns(t *testing.T, ctx context.Context, n int) (parents []string, schedule string) {
	t.Helper()
	made := fine(s.schedules().CreateWorkflowSchedule(ctx, &kagziv1.CreateWorkflowScheduleRequest{Name: "nightly",
		TaskQueue: "q0", WorkflowType: "t0", CronExpr: "@yearly"}))(t).Schedule
	for i := range n {
		r := &kagziv1.StartWorkflowRequest{WorkflowType: fmt.Sprint("t", i%4), TaskQueue: fmt.Sprint("q", i%3),
			Tags: map[string]string{"n": strconv.Itoa(i % 5)}}
		if i%2 == 0 {
			r.ExternalId = fmt.Sprint("order-", i)
		}
		id := fine(s.workflows().StartWorkflow(ctx, r))(t).RunId
		switch i % 7 {
		case 1:
			fine(s.workflows().CancelWorkflow(ctx, &kagziv1.CancelWorkflowRequest{RunId: id, Reason: "x"}))(t)
		case 2:
			fine(s.workflows().TerminateWorkflow(ctx, &kagziv1.TerminateWorkflowRequest{RunId: id, Reason: "y"}))(t)
		case 3:
			fine(s.workflows().PauseWorkflow(ctx, &kagziv1.PauseWorkflowRequest{RunId: id}))(t)
		case 4:
			parents = append(parents, id)
		case 5:
			fine(s.schedules().TriggerWorkflowSchedule(ctx,
				&kagziv1.TriggerWorkflowScheduleRequest{ScheduleId: made.ScheduleId}))(t)
		}
	}
	return parents, made.ScheduleId
}

// runParts returns a source of random comparisons of runs, which select from a list.
func runParts(r *rand.Rand, all []*kagziv1.Workflow, schedule string) func() string {
	one := func() *kagziv1.Workflow { return all[r.IntN(len(all))] }
	return func() string {
		at := one().CreatedAt.AsTime().Format(time.RFC3339Nano)
		id := one().RunId
		return []string{
			fmt.Sprintf("status in (%s, failed)", []string{"pending", "cancelled", "terminated"}[r.IntN(3)]),
			"status != pending", fmt.Sprint("type = t", r.IntN(5)), fmt.Sprintf("type in (t1, t%d)", r.IntN(4)),
			"type = t*", fmt.Sprint("queue = q", r.IntN(4)), fmt.Sprint("tag.n = ", r.IntN(6)),
			"created " + []string{"<", "<=", ">", ">="}[r.IntN(4)] + " " + at, "id = " + id[:20+r.IntN(17)],
			"search = order-" + strconv.Itoa(r.IntN(12)), fmt.Sprint("external_id = order-", 2*r.IntN(20)),
			"external_id = order-1*", "external_id = none", "schedule = " + schedule, "schedule != none", "worker = none",
			"parent = " + id, "parent = none", "paused = true", "text = ORDER", "finished = none", "steps > 0",
			"age < 1h", "priority <= 0",
		}[r.IntN(24)]
	}
}

// TestRunsAreSelectedWithTheDatabaseAsAlone is the same of runs, on every store: a bulk change
// changes the same ones.
func TestRunsAreSelectedWithTheDatabaseAsAlone(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("KAGZI_TEST_SEED"); text != "" {
		seed = fine(strconv.ParseUint(text, 10, 64))(t)
	}
	everyStore(t, func(t *testing.T, s *Server) {
		r := rand.New(rand.NewPCG(seed, 4))
		_, schedule := s.someRuns(t, within(t, time.Minute), 60)
		runs := func(q string, p *kagziv1.PageRequest) ([]*kagziv1.Workflow, *kagziv1.PageInfo) {
			ctx, stop := context.WithTimeout(t.Context(), time.Minute) // there are thousands of pages
			defer stop()
			answer := fine(s.workflows().ListWorkflows(ctx, &kagziv1.ListWorkflowsRequest{Query: q, Page: p}))(t)
			return answer.Workflows, answer.Page
		}
		all, _ := runs("", &kagziv1.PageRequest{PageSize: 1000})
		part := runParts(r, all, schedule)
		for range longtest.Count(15, 60) {
			compare(t, seed, r, &query.Runs, joined(r, part), runs, (*kagziv1.Workflow).GetRunId)
		}
		changes := 0
		for tries := 0; changes < 3 && tries < 100; tries++ { // no filter may tell apart the runs that are left
			text := "(" + joined(r, part) + ") and status = pending"
			list, _ := runs(text, &kagziv1.PageRequest{PageSize: 1000})
			if open, _ := runs("status = pending", &kagziv1.PageRequest{PageSize: 1000}); len(open) < 2 {
				break
			} else if len(list) == 0 || len(list) == len(open) { // a change of none or all shows little
				continue
			}
			changes++
			progress := s.bulk(t, &kagziv1.BulkWorkflowsRequest{Action: kagziv1.BulkAction_BULK_ACTION_TERMINATE,
				Selection: &kagziv1.ListWorkflowsRequest{Query: text}})
			ctx := within(t, time.Minute)
			for _, was := range all {
				now := fine(s.workflows().GetWorkflow(ctx, &kagziv1.GetWorkflowRequest{RunId: was.RunId}))(t).Workflow
				listed := slices.ContainsFunc(list, func(l *kagziv1.Workflow) bool { return l.RunId == was.RunId })
				if changed := now.Status != was.Status; changed != listed {
					t.Fatalf("seed %d: %s: run %s is listed: %v, changed: %v", seed, text, was.RunId, listed, changed)
				}
			}
			if last := progress[len(progress)-1]; last.Done != int64(len(list)) || last.Matched != last.Done {
				t.Fatalf("seed %d: %s: the change ends with %v, %d runs are listed", seed, text, last, len(list))
			}
			all, _ = runs("", &kagziv1.PageRequest{PageSize: 1000})
		}
		if changes == 0 {
			t.Errorf("seed %d: nothing was changed", seed)
		}
	})
}

func TestAQueryOfRunsKnowsSchedulesByName(t *testing.T) {
	everyStore(t, func(t *testing.T, s *Server) {
		ctx := within(t, time.Minute)
		s.someRuns(t, ctx, 14)
		for text, want := range map[string]int{"schedule = nightly": 2, "not schedule = nightly": 14,
			"schedule in (nightly, none) and type = t0": 6, "schedule = nightly or type = t9": 2} {
			answer := fine(s.workflows().ListWorkflows(ctx, &kagziv1.ListWorkflowsRequest{Query: text}))(t)
			if len(answer.Workflows) != want {
				t.Errorf("%s selects %d runs, want %d", text, len(answer.Workflows), want)
			}
		}
		_, err := s.workflows().ListWorkflows(ctx, &kagziv1.ListWorkflowsRequest{Query: "schedule != nightli"})
		refused(t, err, codes.NotFound, "nightli")
	})
}

func TestABulkChangeIsRefusedRatherThanWidened(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		ctx := within(t, time.Minute)
		id := s.start(t)
		strange := &kagziv1.ListWorkflowsRequest{}
		tag := protowire.AppendTag(nil, 20_000, protowire.VarintType)
		strange.ProtoReflect().SetUnknown(protowire.AppendVarint(tag, 1))
		for want, r := range map[string]*kagziv1.BulkWorkflowsRequest{
			"filter: has a field that this server does not know":    {Filter: strange},
			"selection: has a field that this server does not know": {Selection: strange},
			"selection: must not be given together with filter": {Filter: &kagziv1.ListWorkflowsRequest{},
				Selection: &kagziv1.ListWorkflowsRequest{Query: "type = none"}},
			"filter.query: position 1: did you mean type? expected a field of runs": {
				Filter: &kagziv1.ListWorkflowsRequest{Query: "typ = t"}},
			"selection.query: position 10: did you mean PENDING? expected one of PENDING": {
				Selection: &kagziv1.ListWorkflowsRequest{Query: "status = pendin"}},
		} {
			r.Action = kagziv1.BulkAction_BULK_ACTION_TERMINATE
			stream := fine(s.workflows().BulkWorkflows(ctx, r))(t)
			_, err := stream.Recv()
			refused(t, err, codes.InvalidArgument, want)
		}
		if run := s.get(t, id); run.Status != pending {
			t.Errorf("the run is %s", run.Status)
		}
		limited := s.bulk(t, &kagziv1.BulkWorkflowsRequest{Action: kagziv1.BulkAction_BULK_ACTION_TERMINATE, Limit: 1,
			Filter: &kagziv1.ListWorkflowsRequest{Query: "type = t or type = u"}})
		if last := limited[len(limited)-1]; last.Done != 1 {
			t.Errorf("a filter with a query ends with %v", last)
		}
	})
}

func TestEveryListNamesItsFieldsInAnError(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		ctx := within(t, time.Minute)
		const wrong = "colour = red"
		for name, call := range map[string]func() error{
			"runs": func() error {
				return second(s.workflows().ListWorkflows(ctx, &kagziv1.ListWorkflowsRequest{Query: wrong}))
			},
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
