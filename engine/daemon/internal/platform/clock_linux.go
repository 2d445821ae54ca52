package platform

import (
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kagzi/kagzi/engine/matching"
)

// timerFile is a timerfd. The runtime waits for it as for any file.
type timerFile struct {
	*os.File
	handle int
}

// NewClock returns a precise timer. Go's own timers are up to 1 ms late in an idle process, because
// epoll counts whole milliseconds.
func NewClock() (matching.Clock, error) {
	handle, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	return &timerFile{os.NewFile(uintptr(handle), "timer"), handle}, nil
}

func (f *timerFile) Set(wait time.Duration) {
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(max(wait, 1)))} // zero would mean never
	// it is a timer, so this cannot fail; poller groups also wait on Go's own timers
	_ = unix.TimerfdSettime(f.handle, 0, &spec, nil)
}

func (f *timerFile) Wait() error {
	var times [8]byte
	_, err := f.Read(times[:])
	return err
}
