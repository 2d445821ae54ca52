package postgres

import (
	"context"
	"encoding/base64"
	"slices"
	"strings"

	"github.com/kagzi/kagzi/engine"
)

// Listen sends notifications of commits of this server and, while they arrive, of the other servers
// on the same schema.
func (s *Store) Listen(ctx context.Context, notify func(engine.Notification), o engine.Outcomes) error {
	if err := s.notifier.local.Listen(ctx, s.notifier.closed, notify, o); err != nil {
		return err
	}
	return errClosed
}

const (
	maxKeys    = 500  // notifications in one flush; more are merged into NotifyAll
	maxPayload = 7900 // bytes of a notification; Postgres allows less than 8,000
	hello      = "h"  // a server has begun to listen
)

// encodeNotifications encodes notifications as payloads: the sender, then one line each. Namespaces
// contain no '/', and no name contains a line end.
func encodeNotifications(sender string, notifications []engine.Notification) []string {
	if len(notifications) > maxKeys || slices.ContainsFunc(notifications, func(r engine.Notification) bool {
		return r.Kind == engine.NotifyAll
	}) {
		notifications = []engine.Notification{{Kind: engine.NotifyAll}}
	}
	var payloads []string
	var b strings.Builder
	b.WriteString(sender)
	for _, r := range notifications {
		line := encodeNotification(r)
		if b.Len()+1+len(line) > maxPayload {
			payloads = append(payloads, b.String())
			b.Reset()
			b.WriteString(sender)
		}
		b.WriteByte('\n')
		b.WriteString(line)
	}
	return append(payloads, b.String())
}

func encodeNotification(r engine.Notification) string {
	switch r.Kind {
	case engine.NotifyQueue:
		return "q" + r.Namespace + "/" + r.Name
	case engine.NotifySlot:
		return "s" + r.Namespace + "/" + r.Name
	case engine.NotifyRun:
		return "r" + base64.RawURLEncoding.EncodeToString(r.ID[:])
	case engine.NotifyEnd:
		return "e" + base64.RawURLEncoding.EncodeToString(r.ID[:])
	case engine.NotifyWorker:
		return "w" + r.Name
	case engine.NotifySchedule:
		return "c" + r.Namespace + "/" + r.Name
	case engine.NotifyNamespace:
		return "n" + r.Name
	case engine.NotifyTimer:
		return "t"
	case engine.NotifyKeys:
		return "k"
	case engine.NotifyDiverged:
		return "d"
	case engine.NotifyWait:
		return "o" + base64.RawURLEncoding.EncodeToString(r.ID[:]) + "/" + r.Name + "/" + r.Step
	}
	return "a"
}

// decodeNotifications decodes a payload. An unknown kind, from a newer server, becomes NotifyAll.
func decodeNotifications(payload string) (sender string, notifications []engine.Notification, greeting bool) {
	sender, lines, _ := strings.Cut(payload, "\n")
	for line := range strings.SplitSeq(lines, "\n") {
		if line == hello {
			greeting = true
			continue
		}
		if line != "" {
			notifications = append(notifications, decodeNotification(line))
		}
	}
	return sender, notifications, greeting
}

func decodeNotification(line string) engine.Notification {
	kind, rest := line[0], line[1:]
	namespace, name, _ := strings.Cut(rest, "/")
	switch kind {
	case 'q':
		return engine.Notification{Kind: engine.NotifyQueue, Namespace: namespace, Name: name}
	case 's':
		return engine.Notification{Kind: engine.NotifySlot, Namespace: namespace, Name: name}
	case 'c':
		return engine.Notification{Kind: engine.NotifySchedule, Namespace: namespace, Name: name}
	case 'w':
		return engine.Notification{Kind: engine.NotifyWorker, Name: rest}
	case 'n':
		return engine.Notification{Kind: engine.NotifyNamespace, Name: rest}
	case 't':
		return engine.Notification{Kind: engine.NotifyTimer}
	case 'k':
		return engine.Notification{Kind: engine.NotifyKeys}
	case 'd':
		return engine.Notification{Kind: engine.NotifyDiverged}
	case 'r':
		return ofRun(engine.Notification{Kind: engine.NotifyRun}, rest)
	case 'e':
		return ofRun(engine.Notification{Kind: engine.NotifyEnd}, rest)
	case 'o':
		id, wait, _ := strings.Cut(rest, "/")
		worker, step, _ := strings.Cut(wait, "/")
		return ofRun(engine.Notification{Kind: engine.NotifyWait, Name: worker, Step: step}, id)
	}
	return engine.Notification{Kind: engine.NotifyAll}
}

// ofRun sets the run of a notification; without a valid id, it becomes NotifyAll.
func ofRun(r engine.Notification, text string) engine.Notification {
	id, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(id) != len(r.ID) {
		return engine.Notification{Kind: engine.NotifyAll}
	}
	r.ID = engine.ID(id)
	return r
}
