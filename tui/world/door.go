package world

import (
	"context"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// trouble is what a test has made of the server.
type trouble struct {
	down  error // what each call is answered with; nil: it is up
	hung  bool  // calls are not answered at all
	falls int64 // how often it went down, by which a stream knows that it was cut
	last  error // what it went down with last
}

// Down makes every call fail with err, a gRPC status, and ends every stream with it, until Up.
func (w *World) Down(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trouble.down, w.trouble.last = err, err
	w.trouble.falls++
	w.ring()
}

// Hang leaves every call and stream without an answer until its context ends, or until Up.
func (w *World) Hang() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trouble.hung = true
	w.ring()
}

// Up ends Down and Hang.
func (w *World) Up() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trouble.down, w.trouble.hung = nil, false
	w.ring()
}

// call is one call of the API: do runs alone in the world, whose time stands meanwhile.
func call[A any](w *World, ctx context.Context, method string, do func() (A, error)) (A, error) {
	var none A
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.enter(ctx); err != nil {
		return none, err
	}
	answer, err := do()
	w.count(method, err)
	w.publish()
	if err != nil {
		return none, toStatus(err)
	}
	return answer, nil
}

// enter waits until the server answers, and says what is wrong when it does not. It is called, and returns, with the world locked.
func (w *World) enter(ctx context.Context) error {
	for w.trouble.hung && ctx.Err() == nil {
		bell := w.news.bell
		w.mu.Unlock()
		select {
		case <-bell:
		case <-ctx.Done():
		}
		w.mu.Lock()
	}
	if err := ctx.Err(); err != nil {
		return toStatus(err)
	}
	return w.trouble.down
}

// count notes that a call of a method has ended.
func (w *World) count(method string, err error) {
	m := w.methods[method]
	if m == nil {
		m = &kagziv1.MethodStats{Method: method}
		w.methods[method] = m
	}
	m.Calls++
	if err != nil {
		m.Errors++
	}
}
