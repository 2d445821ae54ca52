package kagzi

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

// slowCodec is a codec that asks a service for a key.
type slowCodec time.Duration

func (slowCodec) Encode(p Payload, _ PayloadInfo) (Payload, error) { return p, nil }

func (c slowCodec) Decode(p Payload, _ PayloadInfo) (Payload, error) {
	time.Sleep(time.Duration(c))
	return p, nil
}

// A branch's Context does not end before its recorded calls have returned, however long decoding
// takes.
func TestACancelledBranchReplaysInFullWithASlowCodec(t *testing.T) {
	const rooms = 10
	for name, whileComingBack := range map[string]bool{
		"woken for the cancellation": false, "cancelled while it comes back for a timer": true} {
		t.Run(name, func(t *testing.T) {
			withFake(t, func(t *testing.T, f *fake) {
				w := testWorker(f)
				w.options.Codec = slowCodec(60 * time.Millisecond)
				undone, activations := map[string]*atomic.Int32{"ada": {}, "bob": {}}, 0
				book := func(ctx Context, guest string) (int, error) {
					want := map[string]int{"ada": 1, "bob": rooms}[guest]
					var booked []string
					for i := 0; i < want && ctx.Err() == nil; i++ {
						name := fmt.Sprintf("%s-%d", guest, i)
						if _, err := Step(ctx, name, constant(1)); err != nil {
							break
						}
						booked = append(booked, name)
					}
					if guest == "ada" && whileComingBack {
						Sleep(ctx, "short", time.Hour)
					}
					Sleep(ctx, "stay-"+guest, 24*time.Hour)
					for _, name := range booked {
						_, _ = Step(Cleanup(ctx), "undo-"+name, func(context.Context) (int, error) {
							undone[guest].Add(1)
							return 0, nil
						})
					}
					return 0, ErrCancelled
				}
				Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
					if activations++; activations == 2 && whileComingBack {
						time.AfterFunc(250*time.Millisecond, func() { f.askCancel("r", time.Hour) })
					}
					_, err := Map(ctx, []string{"ada", "bob"}, book)
					return 0, err
				})
				running(t, w)
				f.start("r", "w", "")
				if !whileComingBack {
					f.awaitParked(t, "r")
					f.askCancel("r", time.Hour)
				}
				f.await(t, "r")
				if ada, bob := undone["ada"].Load(), undone["bob"].Load(); ada != 1 || bob != rooms {
					t.Errorf("undone were %d of ada's and %d of bob's, want 1 and %d", ada, bob, rooms)
				}
			})
		})
	}
}

// The branch waited for last is not necessarily the one whose last call the cancellation came
// after.
func TestABranchThatEndedBeforeTheCancellationReplaysTheSameWhenWaitedForLast(t *testing.T) {
	withFake(t, func(t *testing.T, f *fake) {
		w := testWorker(f)
		var undone []string
		Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
			long := Go(ctx, func(ctx Context) (int, error) {
				_, _ = Step(ctx, "a-0", constant(1))
				return Step(ctx, "a-1", func(context.Context) (int, error) { time.Sleep(time.Minute); return 1, nil })
			})
			short := Go(ctx, func(ctx Context) (int, error) {
				_, _ = Step(ctx, "b-0", constant(1))
				if ctx.Err() != nil {
					return 0, ErrCancelled
				}
				return 1, nil
			})
			for _, f := range []*Future[int]{long, short} {
				if _, err := f.Wait(ctx); err != nil {
					return 0, err
				}
			}
			if ctx.Err() == nil {
				return 0, nil
			}
			for _, n := range []string{"a-0", "a-1", "b-0"} {
				_, _ = Step(Cleanup(ctx), "undo-"+n, func(context.Context) (int, error) {
					undone = append(undone, n)
					return 0, nil
				})
				Sleep(Cleanup(ctx), "rest-"+n, time.Minute)
			}
			return 0, ErrCancelled
		})
		running(t, w)
		f.start("r", "w", "")
		f.until(t, func() bool { return count(f.log, "begin a-1") == 1 })
		f.askCancel("r", 5*time.Hour)
		f.await(t, "r")
		if want := []string{"a-0", "a-1", "b-0"}; !slices.Equal(undone, want) {
			t.Errorf("undone were %q, want %q; %q", undone, want, f.operations())
		}
	})
}
