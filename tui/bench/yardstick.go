package bench

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strings"
	"time"
)

// yardstickTime is how long each part of a machine check takes.
const yardstickTime = 60 * time.Millisecond

// The parts of a machine check.
const (
	sorting   = "one core sorts"
	roundTrip = "round trip over loopback"
	syncing   = "synced write"
)

// yardstick measures the machine's speed before a measurement. Virtual machines can be half as fast
// an hour later, which explains differences between figures. dir is where private databases are; ""
// skips the disk.
func yardstick(dir string) ([]figure, error) {
	numbers := sortRate()
	way, err := loopbackTime()
	if err != nil {
		return nil, fmt.Errorf("measure a round trip over loopback: %w", err)
	}
	figures := []figure{{sorting, "million numbers/s", numbers / 1e6}, {roundTrip, "µs", micros(way)}}
	if dir == "" {
		return figures, nil
	}
	write, err := syncTime(dir)
	if err != nil {
		return nil, fmt.Errorf("measure a synced write: %w", err)
	}
	return append(figures, figure{syncing, "µs", micros(write)}), nil
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// sortRate returns how many numbers per second one core sorts, ten thousand at a time, always the
// same ones.
func sortRate() float64 {
	shuffled := rand.New(rand.NewPCG(1, 2)).Perm(10_000)
	numbers := make([]int, len(shuffled))
	times := repeatedly(func() error {
		copy(numbers, shuffled)
		slices.Sort(numbers)
		return nil
	})
	return float64(len(numbers)) / times.median.Seconds()
}

// loopbackTime returns how long a byte takes to another goroutine and back over TCP.
func loopbackTime() (time.Duration, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer func() { _ = listener.Close() }()
	go func() { // ends with the connection
		if other, err := listener.Accept(); err == nil {
			// hidden from splice, which would skip the way into the process
			_, _ = io.Copy(struct{ io.Writer }{other}, struct{ io.Reader }{other})
			_ = other.Close()
		}
	}()
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close() }()
	var b [1]byte
	times := repeatedly(func() error {
		if _, err := conn.Write(b[:]); err != nil {
			return err
		}
		_, err := io.ReadFull(conn, b[:])
		return err
	})
	return times.median, times.err
}

// syncTime returns how long it takes to overwrite and sync 16 KiB of a file, as SQLite writes its
// log.
func syncTime(dir string) (took time.Duration, err error) {
	file, err := os.CreateTemp(dir, "kagzi-bench-*")
	if err != nil {
		return 0, err
	}
	defer func() {
		_ = file.Close()
		_ = os.Remove(file.Name())
	}()
	block := make([]byte, 16<<10)
	write := func() error {
		if _, err := file.WriteAt(block, 0); err != nil {
			return err
		}
		return file.Sync()
	}
	if err := write(); err != nil { // extends the file, which takes longer
		return 0, err
	}
	times := repeatedly(write)
	return times.median, times.err
}

// taken is how long one of many calls took.
type taken struct {
	median time.Duration
	err    error // of the failed call, which was the last
}

// repeatedly calls one for yardstickTime, at least once.
func repeatedly(one func() error) taken {
	var times []time.Duration
	for began := time.Now(); len(times) == 0 || time.Since(began) < yardstickTime; {
		from := time.Now()
		if err := one(); err != nil {
			return taken{err: err}
		}
		times = append(times, time.Since(from))
	}
	slices.Sort(times)
	return taken{median: percentile(times, 50)}
}

// meanwhile describes the machine checks in one line.
func (r *report) meanwhile() string {
	parts := make([]string, len(r.Machine))
	for i, f := range r.Machine {
		parts[i] = fmt.Sprintf("%s %s %s", f.Name, digits(f.Median), f.Unit)
		if f.Min < f.Max {
			parts[i] += fmt.Sprintf(" (%s..%s)", digits(f.Min), digits(f.Max))
		}
	}
	return "Machine before each measurement: " + strings.Join(parts, ", ")
}
