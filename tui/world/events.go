package world

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

const (
	maxEvents  = 2000
	usualTail  = 200
	actor      = "local" // who changes something here: nobody has a key
	actorsPeer = "127.0.0.1:53122"
)

// note keeps a fact that a server notes. Keys and values follow each other.
func (w *World) note(level, message string, pairs ...any) {
	w.eventCount++
	e := &kagziv1.ServerEvent{Sequence: w.eventCount, At: stamp(w.now), Level: level, Message: message}
	for i := 0; i+1 < len(pairs); i += 2 {
		e.Attributes = append(e.Attributes, &kagziv1.EventAttribute{Key: pairs[i].(string), Value: fmt.Sprint(pairs[i+1])})
	}
	w.events = append(w.events, e)
	if len(w.events) >= 2*maxEvents {
		w.events = slices.Clone(w.events[len(w.events)-maxEvents:])
	}
	w.news.next()
}

// noteEnd keeps what is worth knowing of the end of a run.
func (w *World) noteEnd(r *run) {
	why, _, _ := strings.Cut(r.GetError().GetMessage(), "\n")
	switch r.Status {
	case failed:
		w.note("ERROR", "run failed", "run", r.RunId, "type", r.WorkflowType, "namespace", r.Namespace, "error", why)
	case timedOut:
		w.note("ERROR", "run timed out", "run", r.RunId, "type", r.WorkflowType, "namespace", r.Namespace, "error", why)
	case cancelled:
		w.note("INFO", "run cancelled", "run", r.RunId, "type", r.WorkflowType, "namespace", r.Namespace, "reason", why)
	case terminated:
		w.note("INFO", "run terminated", "run", r.RunId, "type", r.WorkflowType, "namespace", r.Namespace, "reason", why)
	}
}

// audited keeps who made a change, and why.
func (w *World) audited(method, namespace, subject, subjectID, reason, detail string) {
	w.audit = append(w.audit, &kagziv1.AuditEvent{
		At: stamp(w.now), Actor: actor, Peer: actorsPeer, Method: method, Namespace: namespace, Subject: subject, SubjectId: subjectID,
		Outcome: "ok", Reason: reason, Detail: detail,
	})
}

// ListAuditEvents is who changed what, newest first.
func (w *World) ListAuditEvents(ctx context.Context, request *kagziv1.ListAuditEventsRequest, _ ...grpc.CallOption) (*kagziv1.ListAuditEventsResponse, error) {
	return call(w, ctx, "AdminService/ListAuditEvents", func() (*kagziv1.ListAuditEventsResponse, error) {
		namespace, err := namespaceOf(request.Namespace)
		if err := first(err, checkOptionalName("subject_id", request.GetSubjectId())); err != nil {
			return nil, err
		}
		n := len(w.audit)
		events, page, err := pageOf(request, request.Page, listing[*kagziv1.AuditEvent]{
			n: n, key: func(i int) string { return fmt.Sprintf("%010d", n-1-i) }, falls: true,
			keep: func(i int) bool {
				e := w.audit[n-1-i]
				return e.Namespace == namespace && (request.GetSubjectId() == "" || e.SubjectId == request.GetSubjectId())
			},
			show: func(i int) *kagziv1.AuditEvent { return proto.CloneOf(w.audit[n-1-i]) },
		})
		return &kagziv1.ListAuditEventsResponse{Events: events, Page: page}, err
	})
}

// WatchEvents is the last events of the server, oldest first, and then those that follow.
func (w *World) WatchEvents(ctx context.Context, request *kagziv1.WatchEventsRequest, _ ...grpc.CallOption) (grpc.ServerStreamingClient[kagziv1.ServerEvent], error) {
	return call(w, ctx, "AdminService/WatchEvents", func() (grpc.ServerStreamingClient[kagziv1.ServerEvent], error) {
		tail := int64(request.Tail)
		switch {
		case tail < 0:
			return nil, invalid("tail", "must not be negative, got %d", tail)
		case request.After < 0:
			return nil, invalid("after", "must not be negative, got %d", request.After)
		case tail == 0:
			tail = usualTail
		}
		told := max(request.After, w.eventCount-min(tail, maxEvents))
		return open(w, ctx, func() (*kagziv1.ServerEvent, error) {
			told = max(told, w.eventCount-int64(len(w.events))) // what is forgotten is a gap
			if told >= w.eventCount {
				return nil, await(0)
			}
			told++
			return proto.CloneOf(w.events[int64(len(w.events))-1-(w.eventCount-told)]), nil
		}), nil
	})
}
