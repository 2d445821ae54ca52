package kagzi

import (
	"context"
	"fmt"
	"strconv"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

const maxName = 255

// nameUse is the last use of a step name within an execution.
type nameUse struct {
	by       *branch
	at       int  // the branch's clock
	inFlight bool // a call with this name is in progress
	recalls  bool // that call returns a recorded result
	count    int  // uses of the name as written in the code
}

// claim returns the name under which a call is recorded, and its record, nil if there is none. A
// name that another goroutine uses at the same time, or a record of another kind, fails the run.
func (b *branch) claim(scope context.Context, name string, kind kagziv1.StepKind) (string, *kagziv1.Step) {
	e := b.e
	e.lock()
	seen := e.ctx.Err() != nil
	claimed, step, arrived, err := b.claimLocked(name, kind)
	if arrived {
		b.comeLive()
	}
	if err == nil && b.noteCancellation(scope, claimed, step, seen) {
		b.comeLive()
	}
	if ended := e.verdicts.calls[claimed] != nil; err == nil && (step != nil || ended) {
		b.replays(kind, ended || recordedAs(step, kind))
	}
	if err == nil && step != nil && !arrived {
		e.names[claimed].recalls = true
		e.recalling++
	}
	e.mu.Unlock()
	if err != nil {
		e.failAndExit(NonRetryable(err))
	}
	if e.replay != nil {
		e.replay.called(b, claimed, kind)
	}
	return claimed, step
}

// claimLocked also reports whether the branch is past its recorded calls.
func (b *branch) claimLocked(name string, kind kagziv1.StepKind) (claimed string, step *kagziv1.Step, arrived bool,
	err error) {
	e := b.e
	if err := b.outsideSteps(kindName(kind) + " " + name); err != nil {
		return "", nil, false, err
	}
	b.clock++
	use := e.names[name]
	if use == nil {
		if err := checkName("step", name); err != nil {
			return "", nil, false, err
		}
		if isVerdict(name) {
			return "", nil, false, fmt.Errorf("step name %q: %s and names that begin with %s: are reserved for the SDK",
				name, verdictName, verdictName)
		}
		e.names[name] = &nameUse{by: b, at: b.clock, inFlight: true, count: 1}
	} else {
		if use.inFlight || !use.before(b) {
			return "", nil, false, nameClash(name)
		}
		use.by, use.at = b, b.clock
		next, err := b.repeatedName(name, use)
		if err != nil {
			return "", nil, false, err
		}
		name = next
		e.names[name] = &nameUse{by: b, at: b.clock, inFlight: true, count: 1}
	}
	step = e.history[name]
	ended := step == nil && e.verdicts.calls[name] != nil
	if step != nil || ended {
		e.unread--
	}
	// A sleep that does not park is not recorded, so one without a record may come before recorded
	// calls: sleep itself decides.
	arrived = e.unread == 0 || !ended && !recordedAs(step, kind) && !e.replay.lapsed(step) &&
		(step != nil || kind != kagziv1.StepKind_STEP_KIND_SLEEP)
	if step == nil {
		return name, nil, arrived, nil
	}
	if step.GetKind() != kind && step.GetKind() != kagziv1.StepKind_STEP_KIND_UNSPECIFIED {
		return "", nil, arrived, &mismatch{step: name, recorded: step.GetKind(), code: kind}
	}
	return name, step, arrived, nil
}

// outsideSteps rejects a call made inside step code: it could not park the run, and would be
// recorded only sometimes. A branch without a call in progress cannot be inside a step. Needs e.mu.
func (b *branch) outsideSteps(what string) error {
	if b.calls == 0 || !onGoroutine(stepEntry) {
		return nil
	}
	return &coded{kind: "within_step", text: fmt.Sprintf(
		"%.300s is called inside a step; call it from workflow code, before or after the step", what)}
}

// recordedAs reports whether a call of that kind returns from the record. The start of a child does
// so even while the child runs.
func recordedAs(s *kagziv1.Step, kind kagziv1.StepKind) bool {
	switch s.GetStatus() {
	case kagziv1.StepStatus_STEP_STATUS_COMPLETED:
		return true
	case kagziv1.StepStatus_STEP_STATUS_FAILED:
		return s.GetError().GetCode() != kagziv1.ErrorCode_ERROR_CODE_CRASHED || s.GetChildRunId() != ""
	case kagziv1.StepStatus_STEP_STATUS_RUNNING:
		return kind == kagziv1.StepKind_STEP_KIND_CHILD_WORKFLOW
	}
	return false
}

// repeatedName returns the name for the next use of a name: name:2, name:3, skipping names that the
// code itself uses. It fails if the code uses such a name at the same time, since the result would
// depend on chance.
func (b *branch) repeatedName(name string, use *nameUse) (string, error) {
	for {
		use.count++
		next := name + ":" + strconv.Itoa(use.count)
		other := b.e.names[next]
		if other == nil {
			return next, checkName("numbered step", next)
		}
		if other.inFlight || !other.before(b) {
			return "", nameClash(next)
		}
	}
}

func nameClash(name string) error {
	return &coded{kind: "step_name_clash", text: fmt.Sprintf(
		"step name %s is used by two goroutines or branches at once; give each its own name, such as %s-1 and %s-2",
		name, name, name)}
}

// release ends the call that holds the name.
func (b *branch) release(name string) {
	b.e.mu.Lock()
	b.e.names[name].inFlight = false
	b.e.recalled(name)
	b.e.mu.Unlock()
}

// recalled notes that a call has returned from the record or is about to wait. Needs e.mu.
func (e *execution) recalled(name string) {
	if use := e.names[name]; use != nil && use.recalls {
		use.recalls = false
		e.recalling--
		e.recalls++
	}
}

// before reports whether the use precedes what b does now in every replay: b itself made it, or an
// ancestor before it started b's line, or a branch that one of those (or a branch waited for by
// them) has waited for.
func (u *nameUse) before(b *branch) bool {
	by, at := u.by, u.at
	for by != b && by.joinedBy != nil && len(by.joins) == 0 { // the common case: only the parent waited
		by, at = by.joinedBy, by.joinedAt
	}
	if len(by.joins) == 0 || by == b {
		return by.before(at, b)
	}
	reached := map[*branch]int{by: at}
	for open := []*branch{by}; len(open) > 0; {
		by, open = open[len(open)-1], open[:len(open)-1]
		if by.before(reached[by], b) {
			return true
		}
		reach := func(by *branch, at int) {
			if earliest, known := reached[by]; !known || at < earliest {
				reached[by] = at
				open = append(open, by)
			}
		}
		if by.joinedBy != nil {
			reach(by.joinedBy, by.joinedAt)
		}
		for other, at := range by.joins {
			reach(other, at)
		}
	}
	return false
}

// before reports whether what the branch did at its clock precedes what other does now, because
// other is the branch itself or a descendant.
func (b *branch) before(at int, other *branch) bool {
	if b == other {
		return true
	}
	for line := other; line.parent != nil; line = line.parent {
		if line.parent == b {
			return at <= line.startedAt
		}
	}
	return false
}

// checkName requires names of steps and types to have 1 to 255 bytes of A-Z a-z 0-9 . _ : / -.
func checkName(what, name string) error {
	if name == "" || len(name) > maxName {
		return fmt.Errorf("%s name %.40q is %d bytes long, want 1 to %d", what, name, len(name), maxName)
	}
	for i := range len(name) {
		switch c := name[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case c == '.', c == '_', c == ':', c == '/', c == '-':
		default:
			return fmt.Errorf("%s name %q: only letters, digits and . _ : / - are allowed", what, name)
		}
	}
	return nil
}

func kindName(k kagziv1.StepKind) string {
	switch k {
	case kagziv1.StepKind_STEP_KIND_FUNCTION:
		return "step"
	case kagziv1.StepKind_STEP_KIND_SLEEP:
		return "sleep"
	case kagziv1.StepKind_STEP_KIND_SIGNAL:
		return "wait for a signal"
	case kagziv1.StepKind_STEP_KIND_CHILD_WORKFLOW:
		return "child run"
	}
	return "step of unknown kind"
}
