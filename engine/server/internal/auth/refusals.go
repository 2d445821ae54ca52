package auth

import (
	"context"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/async"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// The audit log records callers that were refused a change, and callers that used a key after its
// end.

const (
	refusalsRecorded = 10 // per second; the log of the server counts the rest
	deadKeyEvery     = 60 // seconds between two records of the same key after its end
)

// refusalLimiter limits how many rows refused callers can add to the database.
type refusalLimiter struct {
	mu       sync.Mutex
	second   time.Time // when the count began, by the monotonic clock
	recorded int
	more     int // refusals not recorded and not yet logged
}

// admit says whether to record a refusal, and how many were not recorded in the seconds before.
func (n *refusalLimiter) admit(now time.Time) (record bool, missed int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if now.Sub(n.second) >= time.Second {
		missed = n.more
		n.second, n.recorded, n.more = now, 0, 0
	}
	if n.recorded >= refusalsRecorded {
		n.more++
		return false, missed
	}
	n.recorded++
	return true, missed
}

// left returns how many refusals were not recorded and not logged.
func (n *refusalLimiter) left() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.more
}

// NoteRefused records that a caller was refused a change that its key does not allow.
func (g *Guard) NoteRefused(ctx context.Context, method *Method, request any, err error) {
	if !method.Rule.Changes || engine.KindOf(err) != engine.KindDenied {
		return
	}
	event := engine.AuditEvent{Method: afterSlash(method.name), Outcome: "PERMISSION_DENIED", Detail: err.Error()}
	event.Namespace, event.Subject, event.SubjectID = aboutOf(request)
	g.noteRefusal(ctx, event)
}

// noteDead records that a key was used after its end.
func (g *Guard) noteDead(ctx context.Context, key *Key) {
	if !async.Elapsed(&key.refused, deadKeyEvery) {
		return
	}
	method, _ := grpc.Method(ctx)
	g.noteRefusal(WithCaller(ctx, key), engine.AuditEvent{
		Method: afterSlash(method), Outcome: "UNAUTHENTICATED", Subject: "key", SubjectID: key.ID.String(),
		Detail: "the key has expired or was revoked",
	})
}

// noteRefusal records an event about the caller, unless there were too many.
func (g *Guard) noteRefusal(ctx context.Context, event engine.AuditEvent) {
	record, missed := g.refused.admit(time.Now())
	g.tellMissed(missed)
	if record {
		g.record(ctx, event)
	}
}

// tellMissed logs that refusals were not recorded.
func (g *Guard) tellMissed(count int) {
	if count > 0 {
		g.log.Warn("too many refused calls; some are not in the audit log", "count", count)
	}
}

// record writes an event about the caller. If that fails, the call's answer does not change.
func (g *Guard) record(ctx context.Context, event engine.AuditEvent) {
	event.At = g.store.Now()
	event.ID, event.Actor = engine.NewID(event.At), ActorOf(ctx)
	if err := g.store.NoteRefusal(context.WithoutCancel(ctx), event); err != nil {
		g.log.Warn("refused call could not be written to the audit log", "method", event.Method,
			"actor", event.Actor.Name, "outcome", event.Outcome, "error", err)
	}
}

// aboutOf returns what a request is about, for the audit log. Invalid names are left out.
func aboutOf(request any) (namespace, subject, id string) {
	switch r := request.(type) {
	case *kagziv1.BulkWorkflowsRequest: // names in its filter only select runs
		return aboutNamespace(wire.BulkSelection(r).GetNamespace())
	case *kagziv1.SessionRequest:
		return aboutOf(r.GetHello())
	}
	if r, ok := request.(interface{ GetNamespace() string }); ok {
		namespace, subject, id = aboutNamespace(r.GetNamespace())
	}
	switch r := request.(type) {
	case interface{ GetRunId() string }:
		return subjectNamed(namespace, "run", r.GetRunId())
	case interface{ GetScheduleId() string }:
		return subjectNamed(namespace, "schedule", r.GetScheduleId())
	case interface{ GetKeyId() string }:
		return subjectNamed(namespace, "key", r.GetKeyId())
	case interface{ GetWorkerId() string }:
		return subjectNamed(namespace, "worker", r.GetWorkerId())
	}
	return namespace, subject, id
}

func aboutNamespace(name string) (namespace, subject, id string) {
	if name = wire.OrDefault(name); engine.CheckNamespace("namespace", name) != nil {
		return "", "", ""
	}
	return name, "namespace", name
}

func subjectNamed(namespace, kind, name string) (in, subject, id string) {
	if engine.CheckName("id", name) != nil {
		name = ""
	}
	return namespace, kind, name
}

// afterSlash returns a method's name without its service.
func afterSlash(method string) string { return method[strings.LastIndexByte(method, '/')+1:] }
