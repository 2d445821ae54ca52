package postgres

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestNowFollowsTheDatabasesClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ahead, asked := time.Hour, 0
		c := clock{measure: func(context.Context) (time.Time, error) {
			asked++
			return time.Now().Add(ahead), nil
		}}
		if err := c.read(t.Context()); err != nil {
			t.Fatal(err)
		}
		expect := func(want time.Duration) {
			t.Helper()
			if got := time.Until(c.now()); (got - want).Abs() > time.Millisecond {
				t.Fatalf("the clock is %s ahead, want %s", got, want)
			}
		}
		expect(time.Hour)
		first := asked
		ahead = 2 * time.Hour
		time.Sleep(measureEvery / 2)
		expect(time.Hour) // the reading is recent
		if asked != first {
			t.Fatalf("the database was asked %d times, want %d: the reading was young", asked, first)
		}
		time.Sleep(measureEvery)
		synctest.Wait()
		if asked != first {
			t.Fatalf("the database was asked although nobody asked for the time")
		}
		expect(time.Hour) // the old one is used while a new one is taken
		c.wait()
		expect(2 * time.Hour)
	})
}

func TestAClockThatCannotBeReadGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var broken error
		asked := 0
		c := clock{measure: func(context.Context) (time.Time, error) {
			asked++
			return time.Now().Add(time.Hour), broken
		}}
		if err := c.read(t.Context()); err != nil {
			t.Fatal(err)
		}
		broken = errors.New("away")
		time.Sleep(2 * measureEvery)
		for range 10 {
			if got := time.Until(c.now()); (got - time.Hour).Abs() > time.Millisecond {
				t.Fatalf("the clock is %s ahead, want 1h", got)
			}
			c.wait()
		}
		if asked != 4 {
			t.Fatalf("the database was asked %d times, want 3 and once more", asked)
		}
	})
}

func TestSlowClockReadingMovesClockLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var wait, late, ahead time.Duration
		c := clock{measure: func(context.Context) (time.Time, error) {
			time.Sleep(wait) // to get a connection
			now := time.Now().Add(ahead)
			time.Sleep(late)
			return now, nil
		}}
		for _, reading := range []struct{ wait, late, ahead, want time.Duration }{
			{0, 0, time.Hour, time.Hour},
			{4 * time.Second, 0, time.Hour, time.Hour}, // it may have been read at any moment in between
			{0, 4 * time.Second, time.Hour, time.Hour},
			{4 * time.Second, 0, time.Hour + 90*time.Second, 3690 * time.Second}, // the clock was set forward
			// and set back: four seconds are uncertain
			{0, 4 * time.Second, time.Hour, 3596 * time.Second},
			{0, 0, time.Hour, time.Hour},
		} {
			wait, late, ahead = reading.wait, reading.late, reading.ahead
			if err := c.read(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := time.Until(c.now()); (got - reading.want).Abs() > time.Millisecond {
				t.Errorf("after a wait of %s and an answer %s late the clock is %s ahead, want %s", wait, late, got,
					reading.want)
			}
		}
	})
}

// TestTheClockIsNeverAheadOfTheDatabases uses late answers, before there is a reading that they
// could contradict.
func TestTheClockIsNeverAheadOfTheDatabases(t *testing.T) {
	for wait := range 5 {
		synctest.Test(t, func(t *testing.T) {
			c := clock{measure: func(context.Context) (time.Time, error) {
				time.Sleep(time.Duration(wait) * time.Millisecond)
				now := time.Now().Add(time.Hour)
				time.Sleep(time.Duration(4-wait) * time.Millisecond)
				return now, nil
			}}
			if err := c.read(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := time.Until(c.now()) - time.Hour; got > 0 || got < -4*time.Millisecond {
				t.Errorf(
					"read %d ms after it was asked for, the clock is %s ahead of the database's, want at most 4 ms behind it", wait, got)
			}
		})
	}
}
