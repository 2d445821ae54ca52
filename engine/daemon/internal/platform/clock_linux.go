package platform

import (
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kagzi/kagzi/engine/matching"
)

// timerFile is a file that can be read when the time is over, for which the runtime waits as for any other.
type timerFile struct {
	*os.File
	handle int
}

// NewClock opens one. Timers of Go's are up to a millisecond late in a process that has nothing
// else to do, since it waits in epoll then, which counts whole ones.
func NewClock() (matching.Clock, error) {
	handle, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	return &timerFile{os.NewFile(uintptr(handle), "timer"), handle}, nil
}

func (f *timerFile) Set(wait time.Duration) {
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(max(wait, 1)))} // zero would be never
	// it is a timer, and so are those of Go's that tables wait by besides
	_ = unix.TimerfdSettime(f.handle, 0, &spec, nil)
}

func (f *timerFile) Wait() error {
	var times [8]byte
	_, err := f.Read(times[:])
	return err
}
