package auth

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/peer"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/servertest"
)

func TestTooManyFailuresDelayTheAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &unauthenticated{}
		took := func(host string) time.Duration {
			began := time.Now()
			s.delay(t.Context(), host)
			return time.Since(began)
		}
		for i := range freeFailures {
			if d := took("a"); d != 0 {
				t.Errorf("failure %d took %s", i+1, d)
			}
		}
		if d := took("a"); d != failureDelay {
			t.Errorf("one too many took %s, want %s", d, failureDelay)
		}
		if d := took("b"); d != 0 {
			t.Errorf("another address waited %s", d)
		}
		gone, hangUp := context.WithCancel(t.Context())
		hangUp()
		began := time.Now()
		if s.delay(gone, "a"); time.Since(began) != 0 {
			t.Errorf("who hung up was waited for %s", time.Since(began))
		}
		if s.waiting != 0 {
			t.Errorf("%d are waiting when all have been answered: soon nobody would be late any more", s.waiting)
		}
		time.Sleep(time.Second)
		if d := took("a"); d != 0 {
			t.Errorf("a second later it took %s", d)
		}
		for i := range 3 * maxAddresses {
			s.enter(fmt.Sprint(i), time.Now())
		}
		if len(s.failed) > maxAddresses+1 || s.waiting > maxDelayed {
			t.Errorf("%d addresses are told apart and %d wait, which has no bound", len(s.failed), s.waiting)
		}
	})
}

// TestAnAddressIsTheSameByEachOfItsConnections, or one who tries secrets would need no more than a
// new one for each.
func TestAnAddressIsTheSameByEachOfItsConnections(t *testing.T) {
	for name, c := range map[string]struct {
		from net.Addr
		want string
	}{
		"IPv4":     {&net.TCPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 40_000}, "192.0.2.7"},
		"IPv6":     {&net.TCPAddr{IP: net.ParseIP("2001:db8::7"), Port: 40_000}, "2001:db8::7"},
		"a socket": {&net.UnixAddr{Name: "@", Net: "unix"}, "@"},
		"none":     {nil, ""},
	} {
		if got := hostOf(peer.NewContext(t.Context(), &peer.Peer{Addr: c.from})); got != c.want {
			t.Errorf("%s: the address is %q, want %q", name, got, c.want)
		}
	}
}

func TestRefusalsAreRecordedAFewASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, log := &servertest.KeyStore{}, &bytes.Buffer{}
		s := newTestGuard(l)
		s.log = slog.New(slog.NewTextHandler(log, nil))
		for range 1000 {
			s.noteRefusal(t.Context(), engine.AuditEvent{Method: "PauseWorkflow"})
		}
		if n := len(l.Recorded()); n != refusalsRecorded {
			t.Errorf("%d of a thousand refusals are recorded, want %d", n, refusalsRecorded)
		}
		time.Sleep(time.Second)
		s.noteRefusal(t.Context(), engine.AuditEvent{Method: "PauseWorkflow"})
		if n := len(l.Recorded()); n != refusalsRecorded+1 || s.refused.left() != 0 ||
			!strings.Contains(log.String(), "count=990") {
			t.Errorf("a second later %d are recorded, %d not told, and the log says %s", n, s.refused.left(),
				log.String())
		}
	})
}
