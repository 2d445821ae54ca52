package server

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// People may shorten the ids of runs, schedules and keys to a beginning that only one of them has. This
// file puts the whole id into a request before its handler sees it. Workers send whole ids.

const (
	minShort       = 8 // characters of a shortened id
	shownShort     = 5 // candidates in the error for one that is ambiguous
	wholeID        = 36
	shortAlphabet  = "0123456789abcdefABCDEF-"
	workersService = "/kagzi.v1.WorkerService/"
)

// kindOfID says what the ids in a field are of.
var kindOfID = map[protoreflect.Name]string{
	"run_id": "run", "parent_run_id": "run", "schedule_id": "schedule", "key_id": "key",
}

// lengthen replaces shortened ids in a request by whole ones. namespace is that of a stream's first
// message, for messages that name none.
func (s *Server) lengthen(ctx context.Context, method string, request any, namespace string) error {
	if strings.HasPrefix(method, workersService) {
		return nil
	}
	switch request.(type) {
	case *kagziv1.StartWorkflowRequest, *kagziv1.StartWorkflowsRequest, *kagziv1.Capsule, *kagziv1.CreateKeyRequest:
		return nil
	}
	if m, ok := request.(proto.Message); ok {
		return s.lengthenIn(ctx, m.ProtoReflect(), namespace)
	}
	return nil
}

func (s *Server) lengthenIn(ctx context.Context, m protoreflect.Message, namespace string) error {
	fields := m.Descriptor().Fields()
	if f := fields.ByName("namespace"); f != nil && m.Get(f).String() != "" {
		namespace = m.Get(f).String()
	}
	for i := range fields.Len() {
		f := fields.Get(i)
		switch {
		case !m.Has(f) || f.IsMap():
		case f.IsList() && f.Message() != nil: // the waits of AwaitWorkflows
			for list, n := m.Get(f).List(), 0; n < list.Len(); n++ {
				if err := s.lengthenIn(ctx, list.Get(n).Message(), namespace); err != nil {
					return err
				}
			}
		case f.Name() == "filter" && f.Message() != nil:
			if err := s.lengthenIn(ctx, m.Get(f).Message(), namespace); err != nil {
				return err
			}
		case kindOfID[f.Name()] != "" && f.Kind() == protoreflect.StringKind:
			whole, err := s.wholeID(ctx, wire.OrDefault(namespace), string(f.Name()), m.Get(f).String())
			if err != nil {
				return err
			}
			m.Set(f, protoreflect.ValueOfString(whole))
		}
	}
	return nil
}

// wholeID returns the only id that begins with short. It returns what is no shortened id as it is: the
// handler refuses it, or takes it as a name.
func (s *Server) wholeID(ctx context.Context, namespace, field, short string) (string, error) {
	if len(short) >= wholeID || len(short) < minShort || strings.Trim(short, shortAlphabet) != "" {
		return short, nil
	}
	first, last, ok := engine.IDsWith(short)
	if !ok {
		return short, nil
	}
	kind := kindOfID[protoreflect.Name(field)]
	if kind == "schedule" { // a name goes first
		if _, err := s.store.GetSchedule(ctx, namespace, short); engine.KindOf(err) != engine.KindNotFound {
			return short, err
		}
	}
	// Lists are newest first, by id, so that one page behind the last possible id has the candidates.
	page := engine.Page{Limit: shownShort + 1, After: &engine.Cursor{ID: after(last)}}
	ids, err := s.idsOf(ctx, kind, namespace, page)
	if err != nil {
		return "", err
	}
	ids = slices.DeleteFunc(ids, func(id engine.ID) bool { return slices.Compare(id[:], first[:]) < 0 })
	switch {
	case len(ids) == 1:
		return ids[0].String(), nil
	case len(ids) == 0 && kind == "schedule":
		return short, nil // which is not found as a name
	case len(ids) == 0:
		in := " in this namespace"
		if kind == "key" {
			in = ""
		}
		return "", &engine.Error{Kind: engine.KindNotFound, Field: field, Subject: kind, SubjectID: short,
			Message: fmt.Sprintf("no %s%s has an id that begins with %s", kind, in, short)}
	}
	var names []string
	for _, id := range ids[:min(len(ids), shownShort)] {
		names = append(names, id.String())
	}
	more := ""
	if len(ids) > shownShort {
		more = ", and more"
	}
	return "", engine.Invalid(field, "%s begins the ids of several %ss; give more characters: %s%s", short, kind,
		strings.Join(names, ", "), more)
}

// after returns the id that follows one; for the last id, that id.
func after(id engine.ID) engine.ID {
	next := id
	for i := len(next) - 1; i >= 0; i-- {
		if next[i]++; next[i] != 0 {
			return next
		}
	}
	return id
}

// idsOf returns the ids of a page of runs, schedules or keys.
func (s *Server) idsOf(ctx context.Context, kind, namespace string, p engine.Page) (ids []engine.ID, err error) {
	switch kind {
	case "schedule":
		list, _, err := s.store.ListSchedules(ctx, engine.ScheduleFilter{Namespace: namespace}, p)
		for i := range list {
			ids = append(ids, list[i].ID)
		}
		return ids, err
	case "key":
		list, _, err := s.store.ListKeys(ctx, p)
		for i := range list {
			ids = append(ids, list[i].ID)
		}
		return ids, err
	}
	list, _, err := s.store.ListRuns(ctx, engine.RunFilter{Namespace: namespace}, p)
	for i := range list {
		ids = append(ids, list[i].ID)
	}
	return ids, err
}
