package platform

import "testing"

func TestTheClockFiresUntilClosed(t *testing.T) {
	c, err := NewClock()
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		c.Set(0)
		if err := c.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	over := make(chan error)
	go func() { over <- c.Wait() }()
	_ = c.Close()
	if err := <-over; err == nil {
		t.Error("a clock that was closed rang")
	}
}
