package metrics

import (
	"errors"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestTheLengthsOfTheLatestCallsAreTold(t *testing.T) {
	var m method
	for i := range 3000 { // the last 1024 are 1977 to 3000 ms
		m.inFlight.Add(1)
		m.End(time.Duration(i+1)*time.Millisecond, nil)
	}
	p50, p95 := m.recent.Load().quantiles()
	if p50 != 2488 || p95 != 2948 {
		t.Errorf("p50 %v, p95 %v, want those of the latest 1024 calls", p50, p95)
	}
	if m.calls.Load() != 3000 || m.errors.Load() != 0 || m.inFlight.Load() != 0 {
		t.Errorf("%d calls, %d errors, %d in flight", m.calls.Load(), m.errors.Load(), m.inFlight.Load())
	}
	for _, err := range []error{errors.New("defect"), status.Error(codes.NotFound, ""),
		status.Error(codes.Canceled, "")} {
		m.End(0, err)
	}
	if n := m.errors.Load(); n != 2 {
		t.Errorf("%d errors, want 2: who gives up makes none", n)
	}
	m.End(1<<62, nil)
	if us := m.recent.Load().micros[(3003)%1024].Load(); us != 1<<32-1 {
		t.Errorf("an endless call is kept as %d us", us-1)
	}
}

func BenchmarkCallCounting(b *testing.B) {
	m := Methods{"/m": &method{}}
	b.ReportAllocs()
	for b.Loop() {
		m.Begin("/m").End(time.Millisecond, nil)
	}
}
