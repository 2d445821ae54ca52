package agq

import (
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// Operations of a job that its worker popped on this server go over the worker's session. Those that build on
// one another are sent together, so they share a commit; over unary calls each would wait for its own.

// operate sends operations. Each builds on the one before. answered is called once for each, from
// another goroutine, with its answer; nil: the session has ended, and it may have taken effect or not.
func (w *worker) operate(answered func(*kagziv1.SessionResponse), operations ...*kagziv1.SessionRequest) {
	w.sending.Lock()
	defer w.sending.Unlock()
	for i, m := range operations {
		w.seq++
		m.Seq = w.seq
		if i > 0 {
			m.After = w.seq - 1
		}
		w.mu.Lock()
		open := w.isOpen()
		if open {
			if w.calls == nil {
				w.calls = map[int64]func(*kagziv1.SessionResponse){}
			}
			w.calls[m.Seq] = answered
		}
		w.mu.Unlock()
		if !open {
			answered(nil)
			continue
		}
		_ = w.stream.Send(m) // a session that has ended answers all its calls
	}
}

// answered passes an answer of the session to its caller.
func (w *worker) answered(m *kagziv1.SessionResponse) {
	if m.Seq == 0 {
		return
	}
	w.mu.Lock()
	answered := w.calls[m.Seq]
	delete(w.calls, m.Seq)
	w.mu.Unlock()
	if answered != nil {
		answered(m)
	}
}

// together records the end of a job in one commit, and says whether it did. If not, some of it may be
// recorded; a caller that repeats it finds out why.
func (r *reporter) together(w *worker, o *outcome, staged []string, text []byte) bool {
	var all []*kagziv1.SessionRequest
	step := func(name string, output []byte) {
		all = append(all, &kagziv1.SessionRequest{Operation: &kagziv1.SessionRequest_CompleteStep{
			CompleteStep: r.stepRequest(name, output)}})
	}
	for _, name := range staged {
		step(name, nil)
	}
	for _, t := range o.result.Tasks {
		output, err := encodeTask(&t)
		if err != nil {
			return false
		}
		step(taskStep(t.Task), output)
	}
	step(jobStep, text)
	all = append(all, &kagziv1.SessionRequest{Operation: &kagziv1.SessionRequest_CompleteWorkflow{
		CompleteWorkflow: r.endRequest(text)}})
	answers := make(chan bool, len(all))
	w.operate(func(m *kagziv1.SessionResponse) { answers <- m != nil && m.GetError() == nil }, all...)
	good := true
	for range all {
		good = <-answers && good
	}
	return good
}
