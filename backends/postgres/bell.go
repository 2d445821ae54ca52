package postgres

import (
	"context"
	"encoding/base64"
	"slices"
	"strings"

	"github.com/kagzi/kagzi/engine"
)

// Listen rings what this server and, while they can be heard, the others on the same schema commit.
func (s *Store) Listen(ctx context.Context, ring func(engine.Ring)) error {
	if err := s.bell.local.Listen(ctx, s.bell.closed, ring); err != nil {
		return err
	}
	return errClosed
}

const (
	maxKeys    = 500  // rings in one flush; more are merged into RingAll
	maxPayload = 7900 // bytes of a notification; Postgres allows less than 8,000
	hello      = "h"  // a server has begun to listen
)

// encodeRings writes rings as payloads: the sender, then a line each. Names hold neither '/' in a namespace nor line ends anywhere.
func encodeRings(sender string, rings []engine.Ring) []string {
	if len(rings) > maxKeys || slices.ContainsFunc(rings, func(r engine.Ring) bool { return r.Kind == engine.RingAll }) {
		rings = []engine.Ring{{Kind: engine.RingAll}}
	}
	var payloads []string
	var b strings.Builder
	b.WriteString(sender)
	for _, r := range rings {
		line := encodeRing(r)
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

func encodeRing(r engine.Ring) string {
	switch r.Kind {
	case engine.RingQueue:
		return "q" + r.Namespace + "/" + r.Name
	case engine.RingSlot:
		return "s" + r.Namespace + "/" + r.Name
	case engine.RingRun:
		return "r" + base64.RawURLEncoding.EncodeToString(r.ID[:])
	case engine.RingEnd:
		return "e" + base64.RawURLEncoding.EncodeToString(r.ID[:])
	case engine.RingWorker:
		return "w" + r.Name
	case engine.RingSchedule:
		return "c" + r.Namespace + "/" + r.Name
	case engine.RingNamespace:
		return "n" + r.Name
	case engine.RingTimer:
		return "t"
	case engine.RingKeys:
		return "k"
	}
	return "a"
}

// decodeRings reads a payload. What a newer server may ring is taken as RingAll.
func decodeRings(payload string) (sender string, rings []engine.Ring, greeting bool) {
	sender, lines, _ := strings.Cut(payload, "\n")
	for line := range strings.SplitSeq(lines, "\n") {
		if line == hello {
			greeting = true
			continue
		}
		if line != "" {
			rings = append(rings, decodeRing(line))
		}
	}
	return sender, rings, greeting
}

func decodeRing(line string) engine.Ring {
	kind, rest := line[0], line[1:]
	namespace, name, _ := strings.Cut(rest, "/")
	switch kind {
	case 'q':
		return engine.Ring{Kind: engine.RingQueue, Namespace: namespace, Name: name}
	case 's':
		return engine.Ring{Kind: engine.RingSlot, Namespace: namespace, Name: name}
	case 'c':
		return engine.Ring{Kind: engine.RingSchedule, Namespace: namespace, Name: name}
	case 'w':
		return engine.Ring{Kind: engine.RingWorker, Name: rest}
	case 'n':
		return engine.Ring{Kind: engine.RingNamespace, Name: rest}
	case 't':
		return engine.Ring{Kind: engine.RingTimer}
	case 'k':
		return engine.Ring{Kind: engine.RingKeys}
	case 'r', 'e':
		what := engine.RingRun
		if kind == 'e' {
			what = engine.RingEnd
		}
		if id, err := base64.RawURLEncoding.DecodeString(rest); err == nil && len(id) == len(engine.ID{}) {
			return engine.Ring{Kind: what, ID: engine.ID(id)}
		}
	}
	return engine.Ring{Kind: engine.RingAll}
}
