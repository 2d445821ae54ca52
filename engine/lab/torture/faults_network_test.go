//go:build linux

package main

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kagzi/kagzi/engine/lab/torture/fixture"

	"github.com/kagzi/kagzi/engine/lab/torture/history"
)

func TestADeadConnectionMustBeNoticedInTime(t *testing.T) {
	for name, test := range map[string]struct {
		asked    time.Duration
		deaths   []time.Duration
		ok, hard bool
	}{
		"in time":                      {2 * deadAfter, []time.Duration{1, deadLimit}, true, false},
		"too late":                     {2 * deadAfter, []time.Duration{1, deadLimit + 1}, false, false},
		"never":                        {2 * deadAfter, []time.Duration{1, -1}, false, true},
		"there was no time for that":   {2*deadAfter - 1, nil, true, false},
		"there was time, and was none": {2 * deadAfter, nil, false, false},
	} {
		if f := deadNoticed(&torture{options: options{duration: test.asked}, deaths: test.deaths}); f.ok != test.ok ||
			f.hard != test.hard {
			t.Errorf("%s: %s, hard %t, want ok %t, hard %t", name, f, f.hard, test.ok, test.hard)
		}
	}
}

func TestAnotherConnectionIsSeen(t *testing.T) {
	for opened, want := range map[int]bool{1: true, 0: false} {
		watched := &torture{}
		watched.watchDoor(&fixture.Proxy{Joined: opened}, 0, true)()
		if len(watched.deaths) != 1 || (watched.deaths[0] >= 0) != want {
			t.Errorf("of %d connections: noticed after %v, want that it is noticed: %t", opened, watched.deaths, want)
		}
		watched.watchDoor(&fixture.Proxy{Joined: opened}, 0, false)()
		if len(watched.deaths) != 1 {
			t.Errorf("a short silence counts: %v", watched.deaths)
		}
	}
}

func TestANetworkGetsSlowerWhereThereIsTime(t *testing.T) {
	for duration, want := range map[time.Duration]int{time.Minute - 1: 1, time.Minute: 3} {
		synctest.Test(t, func(t *testing.T) {
			slow := &torture{options: options{duration: duration}, system: &system{log: history.NewLog("faults")}}
			ctx, cancel := context.WithTimeout(t.Context(), duration)
			defer cancel()
			if err := slower("slow", fixture.Conditions{}, fixture.Conditions{}, fixture.Conditions{})(
				ctx, slow); err != nil {
				t.Fatal(err)
			}
			if n := len(slow.system.log.Events()); n != want {
				t.Errorf("within %v there were %d conditions, want %d", duration, n, want)
			}
		})
	}
}
