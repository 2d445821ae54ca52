package session

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/kagzi/kagzi/engine/server/internal/servertest"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// network is a stream that takes messages when it is let.
type network struct {
	free  chan error
	taken []int64
}

func (l *network) send(m *kagziv1.SessionResponse) error {
	if err := <-l.free; err != nil {
		return err
	}
	l.taken = append(l.taken, m.Seq)
	return nil
}

func numbered(seq int64) outgoing {
	return outgoing{message: &kagziv1.SessionResponse{Seq: seq}, answered: true}
}

func TestOutbox(t *testing.T) {
	stories := []struct {
		name string
		tell func(t *testing.T, o *outbox, room chan struct{}, l *network)
	}{
		{"sends in order, one at a time, and nobody waits for it",
			func(t *testing.T, o *outbox, room chan struct{}, l *network) {
				for seq := range int64(40) {
					room <- struct{}{}
					o.push(numbered(seq), func(err error) { t.Errorf("broken: %v", err) })
				}
				close(l.free)
				if left := o.close(); len(left) != 0 || len(l.taken) != 40 || !slices.IsSorted(l.taken) ||
					len(room) != 0 {
					t.Errorf("%d sent as %v, %d left, %d places taken, want 40 in order", len(l.taken), l.taken,
						len(left), len(room))
				}
			}},
		{"goes on after it was empty", func(t *testing.T, o *outbox, room chan struct{}, l *network) {
			close(l.free)
			for seq := range int64(3) {
				room <- struct{}{}
				if !o.put(numbered(seq)) {
					t.Fatal("nobody is to send although nobody does")
				}
				o.send(func(err error) { t.Errorf("broken: %v", err) })
			}
			if !slices.Equal(l.taken, []int64{0, 1, 2}) {
				t.Errorf("sent %v", l.taken)
			}
		}},
		{"keeps what a broken stream did not take",
			func(t *testing.T, o *outbox, room chan struct{}, l *network) {
				var broken error
				for seq := range int64(4) {
					room <- struct{}{}
					o.push(numbered(seq), func(err error) { broken = err })
				}
				l.free <- nil
				l.free <- servertest.ErrBroken
				synctest.Wait()
				if o.put(numbered(9)) {
					t.Error("somebody is to send on a broken stream")
				}
				var left []int64
				for _, m := range o.close() {
					left = append(left, m.message.Seq)
				}
				if !errors.Is(broken, servertest.ErrBroken) || !slices.Equal(l.taken, []int64{0}) ||
					!slices.Equal(left, []int64{1, 2, 3, 9}) {
					t.Errorf("broken %v, sent %v, left %v", broken, l.taken, left)
				}
			}},
		{"sends answers before unsolicited messages",
			func(t *testing.T, o *outbox, room chan struct{}, l *network) {
				unasked := func(seq int64) outgoing {
					return outgoing{message: &kagziv1.SessionResponse{Seq: seq}, unasked: true}
				}
				for seq := range int64(3) {
					o.push(unasked(seq), func(err error) { t.Errorf("broken: %v", err) })
				}
				synctest.Wait()
				room <- struct{}{}
				o.push(numbered(9), func(err error) { t.Errorf("broken: %v", err) })
				close(l.free)
				if left := o.close(); len(left) != 0 || !slices.Equal(l.taken, []int64{0, 9, 1, 2}) {
					t.Errorf("sent %v, %d left, want 0, 9, 1, 2", l.taken, len(left))
				}
			}},
		{"keeps both when the stream breaks", func(t *testing.T, o *outbox, room chan struct{}, l *network) {
			o.push(outgoing{message: &kagziv1.SessionResponse{Seq: 1}, unasked: true}, func(error) {})
			o.push(outgoing{message: &kagziv1.SessionResponse{Seq: 2}, unasked: true}, func(error) {})
			synctest.Wait()
			room <- struct{}{}
			o.push(numbered(3), func(error) {})
			l.free <- servertest.ErrBroken
			var left []int64
			for _, m := range o.close() {
				left = append(left, m.message.Seq)
			}
			if slices.Sort(left); !slices.Equal(left, []int64{1, 2, 3}) {
				t.Errorf("left %v, want all three", left)
			}
		}},
		{"closes when the last is sent", func(t *testing.T, o *outbox, room chan struct{}, l *network) {
			room <- struct{}{}
			o.push(numbered(1), func(error) {})
			synctest.Wait()
			closed := make(chan []outgoing)
			go func() { closed <- o.close() }()
			synctest.Wait()
			select {
			case <-closed:
				t.Fatal("closed while it sends")
			default:
			}
			l.free <- nil
			if left := <-closed; len(left) != 0 || len(l.taken) != 1 {
				t.Errorf("sent %v, left %v", l.taken, left)
			}
			if o.put(numbered(2)) {
				t.Error("a closed one sends")
			}
		}},
	}
	for _, test := range stories {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, room := &network{free: make(chan error)}, make(chan struct{}, 64)
				test.tell(t, &outbox{stream: l.send, room: room}, room, l)
			})
		})
	}
}
