//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kagzi/kagzi/engine/lab/torture/history"
)

// listenLimit is how long a server may take to notice that the connection on which it listens is dead, and to listen on another.
const listenLimit = 15 * time.Second

// silenceListener is F-17-listen: nothing passes any more on the connection on which a server hears notifications, and nobody is told. All
// others are well.
func silenceListener(ctx context.Context, t *torture) error {
	ears := make([]*ear, len(t.rig.servers))
	for i, s := range t.rig.servers {
		ears[i] = &ear{}
		s.database.see(ears[i].watch)
	}
	defer func() {
		for _, s := range t.rig.servers {
			s.database.see(nil)
		}
	}()
	return t.every(ctx, t.brief(1), t.brief(4), func() error {
		i := t.rig.luck.n(len(ears))
		ctx := context.WithoutCancel(ctx)
		if !ears[i].await(ctx, 0, startLimit) {
			return fmt.Errorf("%s does not listen", t.rig.servers[i].name)
		}
		t.rig.fault("silence the listener of "+t.rig.servers[i].name, func() bool {
			deaf := ears[i].silence()
			began := history.Now()
			noticed := time.Duration(-1)
			if ears[i].await(ctx, deaf, 2*listenLimit) {
				noticed = time.Duration(history.Now() - began)
			}
			t.relistened = append(t.relistened, noticed)
			return deaf > 0
		})
		return nil
	})
}

// ear knows which connections of a server listen.
type ear struct {
	listened atomic.Int64 // connections so far that did
	deaf     atomic.Int64 // the latest of those on which nothing passes
}

// watch makes that of one connection.
func (e *ear) watch() watch {
	var once sync.Once
	var mine atomic.Int64 // which of those that listen it is; 0: none
	asked := &reader{untyped: true}
	return func(up bool, data []byte) verdict {
		if up {
			asked.read(data, func(kind byte, body []byte) {
				if (kind == 'Q' || kind == 'P') && bytes.Contains(body, []byte("listen ")) && bytes.HasPrefix(bytes.TrimLeft(body, "\x00"), []byte("listen ")) {
					once.Do(func() { mine.Store(e.listened.Add(1)) })
				}
			})
		}
		if n := mine.Load(); n > 0 && n <= e.deaf.Load() {
			return withhold
		}
		return pass
	}
}

// silence has nothing pass any more on the connections that listen now, and returns the number of the latest.
func (e *ear) silence() int64 {
	n := e.listened.Load()
	e.deaf.Store(n)
	return n
}

// await waits until a connection listens that comes after the n-th; false when none does within the limit.
func (e *ear) await(ctx context.Context, n int64, limit time.Duration) bool {
	for end := time.Now().Add(limit); e.listened.Load() <= n; breathe(ctx) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// listensAgain wants each server to have noticed in time that it was deaf.
func listensAgain(t *torture) figure {
	return figure{name: "from the silence of a listening connection until another listens", limit: "≤ " + listenLimit.String()}.within(t.relistened, listenLimit)
}
