package model

import (
	"context"
	"fmt"
	"strings"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui"
	"github.com/kagzi/kagzi/tui/render"
)

// NewKeys returns the API keys of the server, newest first. No change is announced for keys, so they
// are reloaded with each message of the stream.
func NewKeys(l *Link) *Collection[*kagziv1.Key] {
	return newCollection(l, source[*kagziv1.Key]{
		every: auditEvery, most: collectionMost,
		concerns: func(Change) bool { return true },
		key:      (*kagziv1.Key).GetKeyId,
		text: func(k *kagziv1.Key) []string {
			texts := append([]string{k.GetKeyId(), k.GetName(), render.KeyRole(k.GetRole())}, k.GetNamespaces()...)
			return append(append(append(texts, k.GetTaskQueues()...), k.GetWorkflowTypes()...), k.GetWorkerIds()...)
		},
		read: func(string) func(context.Context, *kagziv1.PageRequest) ([]*kagziv1.Key, *kagziv1.PageInfo, error) {
			return func(ctx context.Context, page *kagziv1.PageRequest) ([]*kagziv1.Key, *kagziv1.PageInfo, error) {
				answer, err := l.api.ListKeys(ctx, &kagziv1.ListKeysRequest{Page: page})
				return answer.GetKeys(), answer.GetPage(), err
			}
		},
	})
}

const (
	auditEvery = 5 * time.Second // least time between two loads of keys or of the audit log
	auditMost  = 500             // events of the audit log
)

// NewAudit returns the latest 500 audit events, newest first: those of the namespace, or with ofKeys
// those that belong to none. ofKeys is asked before each load.
func NewAudit(l *Link, ofKeys func() bool) *Collection[*kagziv1.AuditEvent] {
	return newCollection(l, source[*kagziv1.AuditEvent]{
		every: auditEvery, most: auditMost,
		concerns: func(Change) bool { return true },
		key:      auditID,
		text: func(e *kagziv1.AuditEvent) []string {
			return []string{e.GetActor(), e.GetMethod(), e.GetSubject() + " " + e.GetSubjectId(), e.GetOutcome(),
				e.GetDetail(), e.GetReason(), e.GetPeer()}
		},
		read: func(namespace string) func(context.Context, *kagziv1.PageRequest) ([]*kagziv1.AuditEvent,
			*kagziv1.PageInfo, error) {
			if ofKeys() {
				namespace = ""
			}
			seen := map[string]bool{}
			return func(ctx context.Context, page *kagziv1.PageRequest) ([]*kagziv1.AuditEvent, *kagziv1.PageInfo,
				error) {
				answer, err := l.api.ListAuditEvents(ctx,
					&kagziv1.ListAuditEventsRequest{Namespace: namespace, Page: page})
				for _, e := range answer.GetEvents() {
					for e.GetAt() != nil && seen[auditID(e)] { // equal events of one moment; a nanosecond is not shown
						e.At.Nanos++
					}
					seen[auditID(e)] = true
				}
				return answer.GetEvents(), answer.GetPage(), err
			}
		},
	})
}

// auditID tells the events of a load apart; the server gives them no id.
func auditID(e *kagziv1.AuditEvent) string {
	return fmt.Sprintf("%d.%09d %s %s %s", e.GetAt().GetSeconds(), e.GetAt().GetNanos(), e.GetMethod(),
		e.GetSubjectId(), e.GetActor())
}

// CreateKey creates a key. Its secret is in the Outcome, and nowhere else.
func (s Scope) CreateKey(key *kagziv1.Key) Action {
	flags := []flag{{name: "role", value: render.KeyRole(key.GetRole())}}
	for _, list := range []struct {
		name   string
		values []string
	}{{"namespace", key.GetNamespaces()}, {"queue", key.GetTaskQueues()}, {"type", key.GetWorkflowTypes()},
		{"worker-id", key.GetWorkerIds()}} {
		if len(list.values) > 0 {
			flags = append(flags, flag{name: list.name, value: strings.Join(list.values, ",")})
		}
	}
	if key.GetExpiresAt() != nil {
		flags = append(flags, flag{name: "expires", value: key.GetExpiresAt().AsTime().UTC().Format(time.RFC3339)})
	}
	return s.newAction(Action{
		Name: "create key", Targets: []string{key.GetName()}, command: []string{"key", "create"}, flags: flags,
		alone: true,
		do: func(ctx context.Context, api tui.API, _, _ string) (Outcome, error) {
			answer, err := api.CreateKey(ctx, &kagziv1.CreateKeyRequest{Key: key})
			return Outcome{Text: "created", ID: answer.GetKey().GetKeyId(), Secret: answer.GetSecret()}, err
		},
	})
}

// RevokeKeys revokes keys, by id, for good.
func (s Scope) RevokeKeys(ids []string) Action {
	return s.newAction(Action{
		Name: "revoke key", Danger: true, Targets: ids, command: []string{"key", "revoke"}, alone: true,
		flags: []flag{{name: "yes", bare: true}},
		do: func(ctx context.Context, api tui.API, id, _ string) (Outcome, error) {
			_, err := api.RevokeKey(ctx, &kagziv1.RevokeKeyRequest{KeyId: id})
			return Outcome{Text: "REVOKED"}, err
		},
	})
}
