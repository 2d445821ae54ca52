package history

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	l, err := OpenLog("w", path)
	if err != nil {
		t.Fatal(err)
	}
	answered := l.Begin(Event{Op: Complete, Run: "r", Step: "s"})
	l.Begin(Event{Op: End, Run: "r"})
	answered.Outcome = OK
	l.Finish(answered)
	if err := l.Failure(); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"proc":"w","seq":3,"op":"cla`); err != nil { // killed within a line
		t.Fatal(err)
	}
	f.Close()

	t.Run("an answer takes the place of its question", func(t *testing.T) {
		events, err := Read(path)
		if err != nil || len(events) != 2 {
			t.Fatalf("events = %v (%v), want two", events, err)
		}
		if e := events[0]; e.Outcome != OK || e.Returned < e.Invoked {
			t.Errorf("the answered one = %+v", e)
		}
		if e := events[1]; e.Outcome != Unknown || e.Returned != 0 {
			t.Errorf("the unanswered one = %+v", e)
		}
	})
	t.Run("what is written is what is read", func(t *testing.T) {
		events, _ := Read(path)
		copied := filepath.Join(t.TempDir(), "copy")
		if err := Write(copied, events); err != nil {
			t.Fatal(err)
		}
		again, err := Read(copied)
		if err != nil || len(again) != len(events) || again[0].Returned != events[0].Returned {
			t.Errorf("read again = %v (%v), want %v", again, err, events)
		}
	})
	t.Run("a broken line that is not the last is refused", func(t *testing.T) {
		for _, text := range []string{"x\ny\n", `{"proc":"w","seq":3,"op":"cla` + "\n" +
			`{"proc":"w","seq":4,"op":"end"}` + "\n"} {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if events, err := Read(path); err == nil {
				t.Errorf("read = %v of %q, which has lost an event", events, text)
			}
		}
	})
	t.Run("a line that is too long is refused", func(t *testing.T) {
		if err := os.WriteFile(path, []byte(`{"proc":"w","seq":1,"step":"`+strings.Repeat("x", 2<<20)+"\"}\n"),
			0o600); err != nil {
			t.Fatal(err)
		}
		if events, err := Read(path); err == nil {
			t.Errorf("read = %d events, want an error", len(events))
		}
	})
	t.Run("a process that did nothing has no file", func(t *testing.T) {
		if events, err := Read(path + ".not"); err != nil || events != nil {
			t.Errorf("events = %v (%v), want none", events, err)
		}
	})
}

func TestWriteOfManyProcessesKeepsThemApart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "all")
	if err := Write(path, []Event{{Proc: "a", Seq: 1, Op: Start}, {Proc: "b", Seq: 1, Op: Cancel}}); err != nil {
		t.Fatal(err)
	}
	events, err := Read(path)
	if err != nil || len(events) != 2 {
		t.Errorf("events = %v (%v), want two: the numbers are those of each process", events, err)
	}
}
