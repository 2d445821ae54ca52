package kagzi

import (
	"fmt"
	"strconv"
	"strings"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

const maxName = 255

// ownPrefix begins the names of the SDK's own records. They are never owed.
const ownPrefix = "kagzi:"

func isOwn(name string) bool { return strings.HasPrefix(name, ownPrefix) }

// nameUse is the last use of a step name within an execution.
type nameUse struct {
	by       *branch
	at       int  // the branch's clock
	inFlight bool // a call with this name is in progress
	count    int  // uses of the name as written in the code
}

// claim takes a name for a call, and returns the name under which it is recorded, and its record, nil
// if there is none. It fails for a name that another goroutine uses at the same time. A record of
// another kind is a divergence if the code owes it; otherwise the call takes the next free name. Needs
// e.mu.
func (b *branch) claim(name string, kind kagziv1.StepKind, detail string) (string, *kagziv1.Step, error) {
	e := b.e
	if err := b.outsideSteps(kindName(kind) + " " + name); err != nil {
		return "", nil, err
	}
	b.clock++
	if e.names[name] == nil {
		if err := checkName("step", name); err != nil {
			return "", nil, err
		}
	}
	for written := name; ; {
		var err error
		if name, err = b.claimNext(written); err != nil {
			return "", nil, err
		}
		record := e.history[name]
		if record == nil || matches(record, kind, detail) {
			e.made(name)
			if record != nil || e.verdicts[name] != nil {
				b.replays(kind, e.verdicts[name] != nil || recordedAs(record, kind))
			}
			return name, record, nil
		}
		call := &kagziv1.Call{Name: name, Kind: kind, Branch: b.path(), Detail: detail}
		if !e.ordered() {
			return "", nil, &mismatch{callOf(record), call}
		}
		if e.uncalled[name] {
			e.misfit = call
			if e.replay == nil {
				e.diverge()
			}
			return "", nil, &mismatch{callOf(record), call}
		}
		e.made(name)
		e.names[name].inFlight = false
	}
}

// claimNext takes the name itself at its first use, name:2 at its second, and so on. Needs e.mu.
func (b *branch) claimNext(name string) (string, error) {
	e := b.e
	use := e.names[name]
	if use != nil {
		if use.inFlight || !use.before(b) {
			return "", nameClash(name)
		}
		use.by, use.at = b, b.clock
		next, err := b.repeatedName(name, use)
		if err != nil {
			return "", err
		}
		name = next
	}
	e.names[name] = &nameUse{by: b, at: b.clock, inFlight: true, count: 1}
	return name, nil
}

// matches reports whether a record is of the call's kind and detail, as far as it says.
func matches(s *kagziv1.Step, kind kagziv1.StepKind, detail string) bool {
	_, known := kagziv1.StepKind_name[int32(s.GetKind())]
	if !known || s.GetKind() == kagziv1.StepKind_STEP_KIND_UNSPECIFIED {
		return true // also of a newer server
	}
	recorded := detailOf(s)
	return s.GetKind() == kind && (recorded == "" || recorded == detail)
}

// detailOf returns the name of the signal that a recorded call waits for, or the type of the child that
// it started; "" if the record does not say.
func detailOf(s *kagziv1.Step) string {
	if s.GetKind() == kagziv1.StepKind_STEP_KIND_CHILD_WORKFLOW {
		return s.GetChildType()
	}
	return s.GetSignalName()
}

// callOf returns the call that a record is of.
func callOf(s *kagziv1.Step) *kagziv1.Call {
	return &kagziv1.Call{Name: s.GetName(), Kind: s.GetKind(), Branch: s.GetBranch(), Detail: detailOf(s)}
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
	b.e.mu.Unlock()
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
