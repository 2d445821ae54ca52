//go:build !linux

package daemon

import "github.com/kagzi/kagzi/engine/dispatch"

// newClock has none: timers of Go's are as good as any here.
func newClock() (dispatch.Clock, error) { return nil, nil }
