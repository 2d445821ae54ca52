package host

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// served is a machine with one connection to a server, both ends of it, and what each end received.
type served struct {
	host         *Host
	line, server net.Conn
	here, there  chan string
}

func serve(t *testing.T) *served {
	t.Helper()
	s := &served{here: make(chan string, 10), there: make(chan string, 10)}
	s.host = New(func(context.Context) (net.Conn, int, error) {
		near, far := net.Pipe()
		s.server = far
		return near, 0, nil
	})
	var err error
	if s.line, err = s.host.Dial(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	go hear(s.line, s.here)
	go hear(s.server, s.there)
	t.Cleanup(func() {
		_ = s.line.Close() // nothing more is read from it
		_ = s.server.Close()
	})
	return s
}

// hear collects what arrives and how the connection ends.
func hear(c net.Conn, to chan string) {
	b := make([]byte, 100)
	for {
		n, err := c.Read(b)
		switch {
		case errors.Is(err, ErrUnreachable):
			to <- "unreachable"
			return
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrClosedPipe):
			to <- "closed"
			return
		case err != nil:
			to <- err.Error()
			return
		}
		to <- string(b[:n])
	}
}

// say writes at both ends at once.
func (s *served) say(what string) {
	go func() { _, _ = s.line.Write([]byte(what)) }()
	go func() { _, _ = s.server.Write([]byte(what)) }()
	synctest.Wait()
}

// heard returns what arrived since the last call: at the machine, and at the server.
func (s *served) heard() (here, there string) {
	synctest.Wait()
	all := func(c chan string) (text string) {
		for {
			select {
			case part := <-c:
				text += part + ";"
			default:
				return text
			}
		}
	}
	return all(s.here), all(s.there)
}

func (s *served) wants(t *testing.T, moment, here, there string) {
	t.Helper()
	if h, th := s.heard(); h != here || th != there {
		t.Errorf("%s the machine has heard %q and the server %q, want %q and %q", moment, h, th, here, there)
	}
}

func TestASilenceSwallowsItsWayAndBreaksTheLineWhenItEnds(t *testing.T) {
	for _, try := range []struct {
		name        string
		lost        Way
		here, there string // during the silence
		end         string // what the machine receives when the silence ends, before the line closes
	}{
		{"both", Both, "", "", "unreachable;"},
		{"what is sent", Sent, "b;", "", "closed;"},
		{"what comes", Come, "", "b;", "unreachable;"},
	} {
		t.Run(try.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := serve(t)
				s.say("a")
				s.wants(t, "before", "a;", "a;")
				if !s.host.Hush(try.lost) || s.host.Hush(Both) {
					t.Error("the first silence does not begin, or the second does")
				}
				s.say("b")
				s.wants(t, "in the silence", try.here, try.there)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if _, err := s.host.Dial(ctx, ""); !errors.Is(err, ErrUnreachable) {
					t.Errorf("a connection is made in the silence: %v", err)
				}
				s.host.Speak()
				s.wants(t, "at the end", try.end, "closed;")
				s.host.Speak() // changes nothing
			})
		})
	}
}

func TestAStallKeepsEverythingInItsOrderAndBreaksNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t)
		if !s.host.Stall() || s.host.Stall() {
			t.Error("the first stall does not begin, or the second does")
		}
		s.say("a")
		if _, err := s.line.Write([]byte("b")); err != nil {
			t.Error(err)
		}
		s.wants(t, "in the stall", "", "")
		dialled := make(chan error, 1)
		began := time.Now()
		go func() {
			c, err := s.host.Dial(context.Background(), "")
			if err == nil {
				err = c.Close()
			}
			dialled <- err
		}()
		line := s.server
		time.Sleep(time.Minute) // in the bubble
		s.host.Flow()
		if err := <-dialled; err != nil || time.Since(began) < time.Minute {
			t.Errorf("a connection that is asked for in the stall comes after %s, %v", time.Since(began), err)
		}
		s.server = line
		s.wants(t, "after it", "a;", "ab;")
		s.say("c")
		s.wants(t, "then", "c;", "c;")
		s.host.Flow() // changes nothing
	})
}

func TestALineThatIsClosedInAFaultTellsItsReader(t *testing.T) {
	for name, begin := range map[string]func(h *Host) bool{
		"silence": func(h *Host) bool { return h.Hush(Come) }, "stall": (*Host).Stall,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := serve(t)
				begin(s.host)
				s.say("a")
				if err := s.line.Close(); err != nil {
					t.Error(err)
				}
				if here, _ := s.heard(); here != "unreachable;" {
					t.Errorf("the reader has heard %q, want that nobody is reached", here)
				}
				s.host.Die()
				if _, err := s.host.Dial(t.Context(), ""); !errors.Is(err, ErrUnreachable) {
					t.Errorf("a dead machine makes a connection: %v", err)
				}
			})
		})
	}
}
