package daemon

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// Tests of SDKs that cannot run a server in their own process let its time jump: with
// KAGZI_TEST_CLOCK=1 in its environment, a server on SQLite reads lines such as "pass 720h" from its
// standard input, sets its clock ahead, and answers each with the new time on its standard output.

const (
	testClockVariable = "KAGZI_TEST_CLOCK"
	// testLease is the lease with a test clock: jumps must not look like the silence of a worker.
	testLease = 100 * 365 * 24 * time.Hour
	// testLimit is the longest way ahead: lease and clock together have to fit into a Duration.
	testLimit = 100 * 365 * 24 * time.Hour
)

// testClock is ahead of the machine's clock.
type testClock struct{ by atomic.Int64 }

// newTestClock returns the clock that the value of the variable asks for, nil for none. It turns off
// leases and retention, which a jump would end.
func (c *Config) newTestClock(value, url string) (*testClock, error) {
	switch {
	case value == "":
		return nil, nil
	case value != "1":
		return nil, engine.Invalid(testClockVariable, "%q is unknown, want 1 or nothing", value)
	case strings.HasPrefix(url, "postgres"):
		return nil, engine.Invalid(testClockVariable, "a test clock needs a SQLite database")
	}
	c.Log.Warn("KAGZI_TEST_CLOCK=1 is set: THE CLOCK FOLLOWS STANDARD INPUT, and dead workers keep their runs; " +
		"it is for tests only")
	c.WorkerLease, c.Retention, c.AuditRetention, c.RequestRetention = testLease, 0, 0, 0
	return new(testClock), nil
}

// aheadOf returns the clock's advance for a store, nil without a clock.
func (c *testClock) aheadOf() func() time.Duration {
	if c == nil {
		return nil
	}
	return func() time.Duration { return time.Duration(c.by.Load()) }
}

// follow reads lines until in ends. After each jump it calls notifyAll, before it answers.
func (c *testClock) follow(in io.Reader, out io.Writer, now func() time.Time, notifyAll func()) {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		answer := c.pass(lines.Text())
		if answer == "" {
			notifyAll()
			answer = "now " + now().Format(time.RFC3339Nano)
		}
		if _, err := fmt.Fprintln(out, answer); err != nil {
			return
		}
	}
}

// pass sets the clock ahead as a line says, and returns what is wrong with it.
func (c *testClock) pass(line string) string {
	text, found := strings.CutPrefix(line, "pass ")
	d, err := time.ParseDuration(text)
	switch {
	case !found || err != nil:
		return fmt.Sprintf("error want \"pass DURATION\" such as \"pass 720h\", got %q", line)
	case d < 0 || d > testLimit-time.Duration(c.by.Load()):
		return fmt.Sprintf("error the clock cannot be set ahead by %s: it goes forwards only, and at most %s in all", d,
			testLimit)
	}
	c.by.Add(int64(d))
	return ""
}
