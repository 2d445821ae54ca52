package server

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/servertest"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// archive is a store with seven things in each list, in the order of the list, that pages as stores
// do.
type archive struct{ servertest.StubStore }

const archived = 7

// leaf is a page of the seven things; order compares one with a place in their list.
func leaf[T any](thing func(i int) T, p engine.Page, order func(T, engine.Cursor) int) (part []T,
	info engine.PageInfo) {
	var all []T
	for i := range archived {
		all = append(all, thing(i))
	}
	info.Total = archived
	if p.Before != nil {
		all = slices.DeleteFunc(all, func(one T) bool { return order(one, *p.Before) >= 0 })
		from := max(0, len(all)-p.Limit)
		info.HasPrev, info.HasNext = from > 0, true
		return all[from:], info
	}
	if p.After != nil {
		all = slices.DeleteFunc(all, func(one T) bool { return order(one, *p.After) <= 0 })
	}
	to := min(len(all), p.Limit)
	info.HasNext, info.HasPrev = to < len(all), p.After != nil
	return all[:to], info
}

// aged is the id of the i-th newest thing, and byID the order of such.
func aged(i int) engine.ID { return servertest.NthID(archived - i) }

func byID(id engine.ID, c engine.Cursor) int { return bytes.Compare(c.ID[:], id[:]) }

func (archive) ListRuns(_ context.Context, _ engine.RunFilter, p engine.Page) ([]engine.Run, engine.PageInfo, error) {
	part, info := leaf(func(i int) engine.Run {
		return engine.Run{ID: aged(i)}
	}, p, func(r engine.Run, c engine.Cursor) int { return byID(r.ID, c) })
	return part, info, nil
}

func (archive) ListSchedules(_ context.Context, _ engine.ScheduleFilter, p engine.Page) ([]engine.Schedule,
	engine.PageInfo, error) {
	part, info := leaf(func(i int) engine.Schedule { return engine.Schedule{ID: aged(i)} }, p,
		func(s engine.Schedule, c engine.Cursor) int { return byID(s.ID, c) })
	return part, info, nil
}

func (archive) GetSchedule(context.Context, string, string) (engine.Schedule, error) {
	return engine.Schedule{ID: servertest.NthID(1)}, nil
}

func (archive) ListAuditEvents(_ context.Context, _ engine.AuditFilter, p engine.Page) ([]engine.AuditEvent,
	engine.PageInfo, error) {
	part, info := leaf(func(i int) engine.AuditEvent {
		return engine.AuditEvent{ID: aged(i), SubjectID: aged(i).String()}
	}, p,
		func(e engine.AuditEvent, c engine.Cursor) int { return byID(e.ID, c) })
	return part, info, nil
}

func (archive) ListKeys(_ context.Context, p engine.Page) ([]engine.APIKey, engine.PageInfo, error) {
	part, info := leaf(func(i int) engine.APIKey { return engine.APIKey{ID: aged(i)} }, p,
		func(k engine.APIKey, c engine.Cursor) int { return byID(k.ID, c) })
	return part, info, nil
}

func (archive) ListHooks(_ context.Context, _ string, p engine.Page) ([]engine.Hook, engine.PageInfo, error) {
	part, info := leaf(func(i int) engine.Hook { return engine.Hook{ID: aged(i)} }, p,
		func(k engine.Hook, c engine.Cursor) int { return byID(k.ID, c) })
	return part, info, nil
}

func (archive) ListWorkers(_ context.Context, _ engine.WorkerFilter, p engine.Page) ([]engine.Worker,
	engine.PageInfo, error) {
	part, info := leaf(func(i int) engine.Worker { // two at a time registered at the same moment
		return engine.Worker{ID: fmt.Sprint("w", archived-i), RegisteredAt: time.Unix(int64(archived-i)/2, 0)}
	}, p, func(w engine.Worker, c engine.Cursor) int {
		return cmp.Or(c.At.Compare(w.RegisteredAt), cmp.Compare(c.Name, w.ID))
	})
	return part, info, nil
}

func (archive) GetNamespace(_ context.Context, name string) (engine.Namespace, error) {
	return engine.Namespace{Name: name, ID: engine.ID{1}}, nil
}

func (archive) ListNamespaces(_ context.Context, p engine.Page) ([]engine.Namespace, engine.PageInfo, error) {
	part, info := leaf(func(i int) engine.Namespace { return engine.Namespace{Name: fmt.Sprint("z", i)} }, p,
		func(n engine.Namespace, c engine.Cursor) int { return cmp.Compare(n.Name, c.Name) })
	return part, info, nil
}

func (archive) ListTypes(_ context.Context, _ string, p engine.Page) ([]engine.TypeInfo, engine.PageInfo, error) {
	part, info := leaf(func(i int) engine.TypeInfo { return engine.TypeInfo{Type: fmt.Sprint("z", i)} }, p,
		func(t engine.TypeInfo, c engine.Cursor) int { return cmp.Compare(t.Type, c.Name) })
	return part, info, nil
}

func (archive) GetQueueDepth(context.Context, string, string, time.Time) (whole []engine.QueueDepth, err error) {
	for i := range archived {
		whole = append(whole, engine.QueueDepth{Queue: fmt.Sprint("z", i)})
	}
	return whole, nil
}

func (archive) ListSteps(_ context.Context, _ string, _ engine.ID, _ engine.StepFilter, p engine.Page) ([]engine.Step,
	engine.PageInfo, error) {
	part, info := leaf(func(i int) engine.Step {
		return engine.Step{ID: servertest.NthID(i), Sequence: int64(i/2 + 1), Attempt: i%2 + 1}
	}, p,
		func(s engine.Step, c engine.Cursor) int {
			return cmp.Or(cmp.Compare(s.Sequence, c.Number), cmp.Compare(s.Attempt, c.Minor))
		})
	return part, info, nil
}

func (archive) ListSignals(_ context.Context, _ string, _ engine.ID, p engine.Page) ([]engine.Signal,
	engine.PageInfo, error) {
	part, info := leaf(func(i int) engine.Signal { return engine.Signal{Sequence: int64(i + 1)} }, p,
		func(s engine.Signal, c engine.Cursor) int { return cmp.Compare(s.Sequence, c.Number) })
	return part, info, nil
}

// lists are the methods of the contract whose answer is a page, with what else a request must say.
func lists(t *testing.T) map[protoreflect.MethodDescriptor]proto.Message {
	t.Helper()
	found := map[protoreflect.MethodDescriptor]proto.Message{}
	servertest.EachMethod(func(_ protoreflect.ServiceDescriptor, method protoreflect.MethodDescriptor) {
		if method.Input().Fields().ByName("page") == nil ||
			slices.Contains(later, "AdminService/"+string(method.Name())) {
			return
		}
		request := emptyRequest(method).ProtoReflect()
		for _, name := range []protoreflect.Name{"run_id", "schedule_id"} {
			if field := method.Input().Fields().ByName(name); field != nil && !field.HasPresence() {
				request.Set(field, protoreflect.ValueOfString(servertest.AnID))
			}
		}
		found[method] = request.Interface()
	})
	if len(found) < 9 {
		t.Fatalf("the contract has %d lists: they were not found", len(found))
	}
	return found
}

func TestEveryListCanBeReadFromItsEnd(t *testing.T) {
	_, conn := serve(t, archive{})
	for method, request := range lists(t) {
		t.Run(string(method.Name()), func(t *testing.T) {
			field := request.ProtoReflect().Descriptor().Fields().ByName("page")
			page := func(p *kagziv1.PageRequest) ([]proto.Message, *kagziv1.PageInfo) {
				t.Helper()
				request.ProtoReflect().Set(field, protoreflect.ValueOfMessage(p.ProtoReflect()))
				answer := newOutput(method)
				path := "/" + string(method.Parent().FullName()) + "/" + string(method.Name())
				if err := conn.Invoke(t.Context(), path, request, answer); err != nil {
					t.Fatal(err)
				}
				return itemsOf(answer)
			}
			all, _ := page(&kagziv1.PageRequest{})
			if len(all) != archived {
				t.Fatalf("the whole list has %d items, want %d", len(all), archived)
			}
			same := func(got []proto.Message, from, to int) {
				t.Helper()
				if !slices.EqualFunc(got, all[from:to], proto.Equal) {
					t.Errorf("the page is %v, want items %d to %d", got, from, to)
				}
			}
			part, info := page(&kagziv1.PageRequest{PageSize: 3, Last: true})
			same(part, 4, 7)
			if info.HasMore || info.NextPageToken != "" || info.PrevPageToken == "" {
				t.Errorf("around the last page lies %v", info)
			}
			part, info = page(&kagziv1.PageRequest{PageSize: 3, PageToken: info.PrevPageToken})
			same(part, 1, 4)
			back := info.NextPageToken
			part, info = page(&kagziv1.PageRequest{PageSize: 3, PageToken: info.PrevPageToken})
			same(part, 0, 1)
			if info.PrevPageToken != "" {
				t.Error("something is said to lie before the first item")
			}
			part, _ = page(&kagziv1.PageRequest{PageSize: 3, PageToken: back})
			same(part, 4, 7)
			part, info = page(&kagziv1.PageRequest{Last: true, IncludeTotalCount: true})
			same(part, 0, 7)
			if info.HasMore || info.NextPageToken != "" || info.PrevPageToken != "" || info.TotalCount != archived {
				t.Errorf("around a last page that holds all lies %v", info)
			}
			request.ProtoReflect().Set(field, protoreflect.ValueOfMessage(
				(&kagziv1.PageRequest{Last: true, PageToken: back}).ProtoReflect()))
			err := call(t.Context(), conn, method, request)
			if got := servertest.DetailOf(t, err).Metadata["field"]; got != "page.last" {
				t.Errorf("last with a token is refused for %q (%v), want page.last", got, err)
			}
		})
	}
}

// itemsOf is the items of a page and what lies around them.
func itemsOf(answer proto.Message) (items []proto.Message, info *kagziv1.PageInfo) {
	answer.ProtoReflect().Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch {
		case field.IsList():
			for i := range value.List().Len() {
				items = append(items, value.List().Get(i).Message().Interface())
			}
		case field.Name() == "page":
			info, _ = value.Message().Interface().(*kagziv1.PageInfo)
		}
		return true
	})
	return items, info
}
