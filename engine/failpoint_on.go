//go:build failpoint

package engine

import (
	"os"
	"strconv"
	"strings"
	"sync/atomic"
)

// failpoint and failpointPasses hold KAGZI_FAILPOINT=NAME or NAME:N: the process kills itself with
// SIGKILL when it passes NAME for the N-th time.
var failpoint, failpointPasses = func() (string, *atomic.Int64) {
	name, nth, _ := strings.Cut(os.Getenv("KAGZI_FAILPOINT"), ":")
	n, err := strconv.ParseInt(nth, 10, 64)
	if err != nil {
		n = 1
	}
	left := new(atomic.Int64)
	left.Store(n)
	return name, left
}()

// Failpoint marks a point around a commit, at which the process dies if KAGZI_FAILPOINT says so.
func Failpoint(name string) {
	if name != failpoint || failpointPasses.Add(-1) != 0 {
		return
	}
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Kill()
	}
	if err != nil {
		os.Exit(137)
	}
	select {} // do nothing until the signal arrives
}
