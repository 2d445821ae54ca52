package metrics

import (
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// Methods counts the use of each method of the API, by its full name. The map is made once and then
// only read.
type Methods map[string]*method

// method counts the calls of one method. It allocates only at its first call.
type method struct {
	name     string // as in MethodStats
	stream   bool
	calls    atomic.Int64
	errors   atomic.Int64
	inFlight atomic.Int32
	recent   atomic.Pointer[recent] // nil: no call has ended, or it is a stream
}

// recent holds the durations of the latest calls.
type recent struct {
	next   atomic.Uint32
	micros [1024]atomic.Uint32 // microseconds plus 1; 0: none
}

// NewMethods returns every method that is registered.
func NewMethods(g *grpc.Server) Methods {
	all := Methods{}
	for service, info := range g.GetServiceInfo() {
		for _, m := range info.Methods {
			path := service + "/" + m.Name
			all["/"+path] = &method{
				name: strings.TrimPrefix(path, "kagzi.v1."), stream: m.IsClientStream || m.IsServerStream,
			}
		}
	}
	return all
}

// Begin counts a call that begins, and returns its method. Call End on it.
func (m Methods) Begin(fullMethod string) *method {
	one := m[fullMethod]
	if one == nil {
		one = &method{}
	}
	one.inFlight.Add(1)
	return one
}

// End counts a call that ends. A call cancelled by its caller is no error, because streams end that
// way.
func (m *method) End(took time.Duration, err error) {
	defer m.inFlight.Add(-1)
	m.calls.Add(1)
	if err != nil && status.Code(err) != codes.Canceled {
		m.errors.Add(1)
	}
	if m.stream {
		return
	}
	r := m.recent.Load()
	if r == nil {
		m.recent.CompareAndSwap(nil, &recent{})
		r = m.recent.Load()
	}
	const most = 1<<32 - 2
	place := (r.next.Add(1) - 1) % uint32(len(r.micros))
	r.micros[place].Store(uint32(min(took.Microseconds(), most)) + 1)
}

// quantiles returns the median and the 95th percentile of the durations, in milliseconds.
func (r *recent) quantiles() (p50, p95 float64) {
	if r == nil {
		return 0, 0
	}
	var took []uint32
	for i := range r.micros {
		if us := r.micros[i].Load(); us > 0 {
			took = append(took, us-1)
		}
	}
	if len(took) == 0 {
		return 0, 0
	}
	slices.Sort(took)
	at := func(percent int) float64 { return float64(took[(len(took)-1)*percent/100]) / 1000 }
	return at(50), at(95)
}

// Stats returns the methods that were called, by name.
func (m Methods) Stats() []*kagziv1.MethodStats {
	var list []*kagziv1.MethodStats
	for one := range maps.Values(m) {
		stats := &kagziv1.MethodStats{Method: one.name, Calls: one.calls.Load(), Errors: one.errors.Load(),
			InFlight: one.inFlight.Load()}
		if stats.Calls == 0 && stats.InFlight == 0 {
			continue
		}
		stats.P50Ms, stats.P95Ms = one.recent.Load().quantiles()
		list = append(list, stats)
	}
	slices.SortFunc(list, func(a, b *kagziv1.MethodStats) int { return strings.Compare(a.Method, b.Method) })
	return list
}

// Metrics returns the use of each method, in no order.
func (m Methods) Metrics() (list []MethodMetrics) {
	for _, one := range m {
		list = append(list, MethodMetrics{
			Name: one.name, Calls: one.calls.Load(), Errors: one.errors.Load(), InFlight: one.inFlight.Load(),
		})
	}
	return list
}

// OpenStreams returns the number of open streams.
func (m Methods) OpenStreams() (n int32) {
	for one := range maps.Values(m) {
		if one.stream {
			n += one.inFlight.Load()
		}
	}
	return n
}
