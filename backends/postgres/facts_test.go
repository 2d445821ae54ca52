package postgres

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestFacts(t *testing.T) {
	s := openAt(t, lentURL(t))
	facts := func() map[string]string {
		t.Helper()
		d, err := s.Describe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		told := map[string]string{}
		for _, f := range d.Facts {
			told[f.Name] = f.Value
		}
		return told
	}
	expect := func(told map[string]string, name, want string) {
		t.Helper()
		if !strings.Contains(told[name], want) {
			t.Errorf("%s = %q, want %q", name, told[name], want)
		}
	}
	expect(facts(), "connections to write", "0 busy, ")
	expect(facts(), "durability", "synchronous_commit=on, fsync=o") // off on a private server of pgtest
	conn, err := s.pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	told := facts()
	conn.Release()
	expect(told, "connections to write", "1 busy, ")
	expect(told, "connections to write", "at most 14")
	expect(told, "connections to read", "0 busy, ")
	expect(told, "notifications", "listening since "+time.Now().UTC().Format("2006"))
	expect(told, "clock offset", " ms, measured "+time.Now().UTC().Format("2006"))
	expect(told, "clock uncertainty", " ms")
	s.notifier.setListening(false)
	expect(facts(), "notifications", "not listening since "+time.Now().UTC().Format("2006"))
}

func TestClockOffsetText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ahead, broken := -1500*time.Millisecond, error(nil)
		c := clock{measure: func(context.Context) (time.Time, error) { return time.Now().Add(ahead), broken }}
		if err := c.read(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := "-1500.0 ms, measured " + moment(time.Now())
		if got := c.text(); got != want {
			t.Errorf("offset = %q, want %q", got, want)
		}
		broken = context.DeadlineExceeded
		time.Sleep(2 * measureEvery)
		c.now()
		c.wait()
		if got := c.text(); got != want {
			t.Errorf("offset = %q, want %q: it was not measured again", got, want)
		}
	})
}
