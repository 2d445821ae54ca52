package installer

import (
	"context"
	"errors"
	"testing"
)

func TestAStopEndsTheServerAndWaitsForIt(t *testing.T) {
	ended := false
	p := newProgram(t.Context(), func(ctx context.Context) error {
		<-ctx.Done()
		ended = true
		return errTest
	})
	p.failed = func(error) { t.Error("a stop was taken for a failure") }
	if err := p.Start(nil); err != nil {
		t.Fatal(err)
	}
	if err := p.Stop(nil); !errors.Is(err, errTest) || !ended {
		t.Errorf("Stop = %v, ended: %v, want how the server ended", err, ended)
	}
}

func TestAServerThatEndsByItselfIsAFailure(t *testing.T) {
	for _, end := range []error{errTest, nil} { // also without an error: nobody asked it to
		p := newProgram(t.Context(), func(context.Context) error { return end })
		failures := make(chan error, 1)
		p.failed = func(err error) { failures <- err }
		if err := p.Start(nil); err != nil {
			t.Fatal(err)
		}
		if err := <-failures; err == nil || end != nil && !errors.Is(err, end) {
			t.Errorf("failure = %v, want one for %v", err, end)
		}
	}
}
