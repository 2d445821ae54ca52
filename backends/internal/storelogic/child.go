package storelogic

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/kagzi/kagzi/engine"
)

// StartChild makes the step and the child run together.
func StartChild(tx Tx, p engine.StartChildParams) (engine.Step, error) {
	u := begin(tx, p.Now)
	run, current, err := u.held(p.Lease)
	if err != nil {
		return engine.Step{}, err
	}
	if !current {
		return u.startChildAgain(run, &p)
	}
	prev, err := tx.Attempt(run.ID, engine.StepRef{Name: p.Step})
	if err != nil {
		return engine.Step{}, err
	}
	if prev != nil {
		switch {
		case prev.Kind != engine.StepChild:
			return engine.Step{}, engine.StepConflict(prev.Name, prev.Status)
		case tooEarly(run, prev, u.now):
			return engine.Step{}, notBefore(prev)
		case !toRunAgain(prev):
			if _, err := u.childAgain(prev, &p); err != nil {
				return engine.Step{}, err
			}
			if prev.Settled != engine.Unsettled {
				return *prev, nil
			}
			return u.returned(run, prev)
		}
	}
	step, fresh, err := next(run, prev, p.Step, p.Branch, p.ID, u.now, u.now)
	if err != nil {
		return engine.Step{}, err
	}
	if err := u.externalIDFree(run.Namespace, p.Child.ExternalID); err != nil {
		return engine.Step{}, err
	}
	child := engine.ChildOf(&run.Run, step.ID, p.Child, u.now)
	if err := u.placeForDescendant(&child.Run, run); err != nil {
		return engine.Step{}, err
	}
	step.Kind, step.ChildRunID, step.ChildType = engine.StepChild, child.ID, child.Type
	run.TiedTo = true
	u.count(run, fresh, 0)
	if err := u.put(run, prev, &step); err != nil {
		return engine.Step{}, err
	}
	u.start(child)
	if err := u.yield(run); err != nil {
		return engine.Step{}, err
	}
	return step, u.flush()
}

// placeForDescendant refuses a child that would need a place of a concurrency key while an ancestor has
// one until its end: the ancestor would wait for the child, and the child for a place. A child that
// outlives its parent may wait.
func (u *unitOfWork) placeForDescendant(child *engine.Run, parent *Run) error {
	if child.ConcurrencyKey == "" || child.HasPlace || child.ParentClose == engine.CloseAbandon {
		return nil
	}
	for ancestor, levels := parent, 0; ancestor != nil && levels < maxAncestors; levels++ {
		if ancestor.SharesKey(child) && ancestor.ConcurrencyScope == engine.ScopeOpen && !ancestor.Status.Ended() {
			return engine.PlaceOfAncestor(child, ancestor.ID)
		}
		if child.ConcurrencyScope != engine.ScopeOpen || ancestor.ParentRunID.IsZero() {
			return nil
		}
		var err error
		if ancestor, err = u.find(ancestor.Namespace, ancestor.ParentRunID); err != nil {
			return err
		}
	}
	return nil
}

// maxAncestors limits how many ancestors placeForDescendant reads: imported runs may form a circle.
const maxAncestors = 100

// externalIDFree is nil unless an open run holds the external id.
func (u *unitOfWork) externalIDFree(namespace, externalID string) error {
	if externalID == "" {
		return nil
	}
	holder, err := u.tx.OpenExternal(namespace, externalID)
	if err != nil || holder.IsZero() {
		return err
	}
	return &engine.Error{Kind: engine.KindExists, Subject: "run", SubjectID: holder.String(),
		Message: fmt.Sprintf("external id %q is in use by run %s", externalID, holder)}
}

// startChildAgain answers a StartChild whose lease is over.
func (u *unitOfWork) startChildAgain(run *Run, p *engine.StartChildParams) (engine.Step, error) {
	step, err := u.writtenUnder(run, p.Lease, engine.StepRef{Name: p.Step})
	switch {
	case err != nil:
		return engine.Step{}, err
	case step == nil:
		return engine.Step{}, engine.LeaseLost(run.ID, run.Status)
	case step.Kind != engine.StepChild:
		return engine.Step{}, engine.StepConflict(step.Name, step.Status)
	}
	return u.childAgain(step, p)
}

// childAgain answers a StartChild whose step exists. Under the lease that made it, another child is
// a conflict; code that comes later gets the child that exists.
func (u *unitOfWork) childAgain(step *engine.Step, p *engine.StartChildParams) (engine.Step, error) {
	if step.Token != p.Lease.Token {
		return *step, nil
	}
	same, err := u.asked(step.ChildRunID, &p.Child.Run)
	if err == nil && !same {
		err = engine.StepConflict(step.Name, step.Status)
	}
	return *step, err
}

// AwaitChildren returns the children that have ended, or waits for the rest.
func AwaitChildren(tx Tx, p engine.AwaitChildrenParams) ([]engine.Step, error) {
	u := begin(tx, p.Now)
	run, current, err := u.held(p.Lease)
	if err != nil {
		return nil, err
	}
	rec := Receipt{Verb: awaitChildrenVerb, Content: childrenText(&p)}
	if !current {
		left, err := tx.Receipt(run.ID, p.Lease.Token)
		if err == nil && !left.repeats(rec) {
			err = engine.LeaseLost(run.ID, run.Status)
		}
		return nil, err
	}
	ended, open, err := u.childSteps(run, p.Children)
	if err != nil {
		return nil, err
	}
	if len(open) == 0 || p.Any && len(ended) > 0 {
		return u.endedChildren(run, ended, p.Bytes)
	}
	steps, err := tx.Waiting(run.ID)
	if err != nil {
		return nil, err
	}
	awaited, group := groupOf(steps, open, p.Any)
	if len(awaited) > 0 {
		if err := tx.SetAwaited(awaited, group); err != nil {
			return nil, err
		}
	}
	u.change(run)
	if !p.Hold {
		if err := tx.LeaveReceipt(run.ID, p.Lease.Token, rec); err != nil {
			return nil, err
		}
		if err := u.suspend(run); err != nil {
			return nil, err
		}
	}
	return nil, u.flush()
}

// endedChildren returns the steps that ended first, about as many as have so many bytes of output, and
// at least one. Only these are settled.
func (u *unitOfWork) endedChildren(run *Run, ended []engine.Step, bytes int) ([]engine.Step, error) {
	slices.SortStableFunc(ended, func(a, b engine.Step) int {
		return cmp.Or(a.FinishedAt.Compare(b.FinishedAt), cmp.Compare(a.Sequence, b.Sequence))
	})
	size := 0
	told := make([]*engine.Step, 0, len(ended))
	for i := range ended {
		if size += ended[i].Output.Size(); bytes > 0 && size > bytes && i > 0 {
			break
		}
		told = append(told, &ended[i])
	}
	if err := u.tell(run, told...); err != nil {
		return nil, err
	}
	return ended[:len(told)], u.flush()
}

// childrenText encodes an AwaitChildren for a receipt.
func childrenText(p *engine.AwaitChildrenParams) string {
	return digest(struct {
		Children []engine.ID
		Any      bool
	}{p.Children, p.Any})
}

// childSteps returns the steps that started these children, each once, in the given order: ended
// steps, and the ids of open ones.
func (u *unitOfWork) childSteps(run *Run, children []engine.ID) (ended []engine.Step, open []engine.ID, err error) {
	steps, err := u.tx.ChildSteps(run.ID, children)
	if err != nil {
		return nil, nil, err
	}
	byChild := make(map[engine.ID]*engine.Step, len(steps))
	for i := range steps {
		byChild[steps[i].ChildRunID] = &steps[i]
	}
	seen := make(map[engine.ID]bool, len(children))
	for _, child := range children {
		step := byChild[child]
		switch {
		case step == nil:
			return nil, nil, engine.RunNotFound(child)
		case seen[child]:
		case step.Open():
			open = append(open, step.ID)
		default:
			ended = append(ended, *step)
		}
		seen[child] = true
	}
	return ended, open, nil
}

// groupOf returns how open steps become Awaited: the steps to change, and the group number. waiting
// holds all steps of the run that are open or Awaited; with apart, each open one wakes the run by
// itself. A step that does so already keeps doing so: waking a run once too often is harmless, not
// waking it would leave it waiting for ever.
func groupOf(waiting []engine.Step, open []engine.ID, apart bool) (steps []engine.ID, group int64) {
	wanted := make(map[engine.ID]bool, len(open))
	for _, id := range open {
		wanted[id] = true
	}
	last, sizes, in := int64(1), map[int64]int{}, map[int64]int{}
	for _, s := range waiting {
		last = max(last, s.Awaited)
		if s.Open() {
			sizes[s.Awaited]++
		}
		if !wanted[s.ID] {
			continue
		}
		in[s.Awaited]++
		if s.Awaited != 1 {
			steps = append(steps, s.ID)
		}
	}
	if apart || len(open) == 1 {
		return steps, 1
	}
	for g, n := range in {
		if g > 1 && n == len(open) && sizes[g] == n {
			return nil, g // this group waits already
		}
	}
	return steps, last + 1
}
