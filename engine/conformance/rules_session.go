package conformance

import (
	"errors"
	"fmt"
	"slices"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// rule is something that must hold in all traffic.
type rule struct {
	id, name string
	check    func(all []message) error
}

func rules() []rule {
	return []rule{
		{"5.1", "in all traffic: numbers grow by one", numbersGrow},
		{"5.3", "in all traffic: after names the operation before", namesBefore},
		{"10.1", "in all traffic: nothing goes behind what may end a lease", nothingBehind},
		{"4.1", "in all traffic: a stream begins with a heartbeat", beginsWithHeartbeat},
		{"3.2", "in all traffic: there is never too much credit", neverTooMuchCredit},
		{"12.1", "in all traffic: results name their step", namesItsStep},
		{"7.1", "in all traffic: each operation has a token", hasToken},
	}
}

func numbersGrow(all []message) error {
	last := map[int64]int64{}
	for _, m := range all {
		if m.up == nil {
			continue
		}
		if want := last[m.stream] + 1; m.up.GetSeq() != want {
			return fmt.Errorf("stream %d has the number %d behind %d", m.stream, m.up.GetSeq(), want-1)
		}
		last[m.stream]++
	}
	return nil
}

// perRun calls f for each operation with the operations of its run and stream that are unanswered, and the
// number of the last one, answered or not.
func perRun(all []message, f func(m message, open []*kagziv1.SessionRequest, last int64) error) error {
	type key struct {
		stream     int64
		run, token string
	}
	keyOf := func(m message, r *kagziv1.SessionRequest) key {
		l := leaseOf(r)
		return key{m.stream, l.GetRunId(), l.GetLeaseToken()}
	}
	open, last := map[key][]*kagziv1.SessionRequest{}, map[key]int64{}
	for _, m := range all {
		switch {
		case m.to != nil && runOf(m.to) != "":
			k := keyOf(m, m.to)
			open[k] = slices.DeleteFunc(open[k], func(r *kagziv1.SessionRequest) bool { return r == m.to })
		case m.up != nil && runOf(m.up) != "" && m.up.GetSetNote() == nil:
			k := keyOf(m, m.up)
			if err := f(m, open[k], last[k]); err != nil {
				return err
			}
			open[k], last[k] = append(open[k], m.up), m.up.GetSeq()
		}
	}
	return nil
}

// namesBefore allows the last operation, too: the suite may have refused it while the one before it, the
// announcement of a step that took long, was still unanswered (§5.6).
func namesBefore(all []message) error {
	return perRun(all, func(m message, open []*kagziv1.SessionRequest, last int64) error {
		if n := len(open); n > 0 && m.up.GetAfter() != open[n-1].GetSeq() && m.up.GetAfter() != last {
			return fmt.Errorf("operation %T (number %d) names %d, and number %d of its run, %T, was not answered", m.up.Operation, m.up.GetSeq(),
				m.up.GetAfter(), open[n-1].GetSeq(), open[n-1].Operation)
		}
		return nil
	})
}

func mayEnd(r *kagziv1.SessionRequest) bool {
	switch m := r.Operation.(type) {
	case *kagziv1.SessionRequest_CompleteWorkflow, *kagziv1.SessionRequest_FailWorkflow,
		*kagziv1.SessionRequest_ReleaseTask:
		return true
	case *kagziv1.SessionRequest_FailStep:
		return !m.FailStep.GetHold()
	case *kagziv1.SessionRequest_Sleep:
		return !m.Sleep.GetHold()
	case *kagziv1.SessionRequest_AwaitSignal:
		return !m.AwaitSignal.GetHold()
	case *kagziv1.SessionRequest_AwaitChildren:
		return !m.AwaitChildren.GetHold()
	}
	return false
}

func nothingBehind(all []message) error {
	return perRun(all, func(m message, open []*kagziv1.SessionRequest, _ int64) error {
		for _, r := range open {
			if mayEnd(r) {
				return fmt.Errorf("%T went behind %T, which was not answered", m.up.Operation, r.Operation)
			}
		}
		return nil
	})
}

func beginsWithHeartbeat(all []message) error {
	seen := map[int64]int{}
	for _, m := range all {
		if m.up == nil {
			continue
		}
		seen[m.stream]++
		switch n := seen[m.stream]; {
		case n == 1 && m.up.GetHello() == nil:
			return fmt.Errorf("stream %d begins with %T", m.stream, m.up.Operation)
		case n == 2 && m.up.GetHeartbeat() == nil:
			return fmt.Errorf("stream %d has %T as its second message", m.stream, m.up.Operation)
		}
	}
	return nil
}

func neverTooMuchCredit(all []message) error {
	credit := map[int64]int32{}
	for _, m := range all {
		credit[m.stream] += m.up.GetCredit().GetTasks()
		if m.down.GetTask() != nil {
			credit[m.stream]--
		}
		if credit[m.stream] > 100 {
			return fmt.Errorf("stream %d has a credit of %d", m.stream, credit[m.stream])
		}
	}
	return nil
}

func namesItsStep(all []message) error {
	for _, m := range all {
		c, f, s := m.up.GetCompleteStep(), m.up.GetFailStep(), m.up.GetSleep()
		if c != nil && c.StepName == nil && c.GetStepId() == "" || f != nil && f.StepName == nil && f.GetStepId() == "" ||
			s != nil && s.StepName == nil && s.GetStepId() == "" {
			return fmt.Errorf("%T has no step_name", m.up.Operation)
		}
	}
	return nil
}

func hasToken(all []message) error {
	for _, m := range all {
		if m.up == nil {
			continue
		}
		if l := leaseOf(m.up); l != nil && l.GetLeaseToken() == "" {
			return fmt.Errorf("%T has no token", m.up.Operation)
		}
	}
	if len(all) == 0 {
		return errors.New("there was no traffic")
	}
	return nil
}
