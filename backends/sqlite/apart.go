package sqlite

import (
	"cmp"
	_ "embed"
	"math"
	"slices"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// maxApart limits how many runs of a queue that wait apart a claim reads, the earliest first.
const maxApart = 1000

//go:embed sql/list_apart_builds.sql
var listApartBuildsSQL string

//go:embed sql/list_apart.sql
var listApartSQL string

//go:embed sql/claim_apart.sql
var claimApartSQL string

// takeApart claims the due runs that wait apart before all other runs, as far as a worker may hold
// them. It says whether a limit of the queue or a type kept some, and when the next one becomes due.
// It reads nothing if no run waits apart.
func (c *claim) takeApart() (limited bool, next time.Time, err error) {
	if !c.queues.apart {
		return false, next, nil
	}
	due, next, err := c.dueApart()
	if err != nil {
		return false, next, err
	}
	if len(due) == 0 {
		if next.IsZero() {
			c.queues.apart, err = c.session.found(&anyApartSQL, func(*row) error { return nil })
		}
		return false, next, err
	}
	slices.SortFunc(due, func(a, b *candidate) int {
		return cmp.Or(cmp.Compare(b.lane.priority, a.lane.priority), byAge(a, b))
	})
	c.held = map[string]*engine.Suspects{}
	free, err := c.free(len(due))
	if err == nil {
		_, err = c.chooseIn(due, false, &free, map[string]int{})
	}
	if err != nil {
		return false, next, err
	}
	return c.out.Limited, next, c.lease()
}

// dueApart reads the runs that wait apart, are due, and may go to the claim's build. It says when the
// next becomes due.
func (c *claim) dueApart() (due []*candidate, next time.Time, err error) {
	var builds []string
	err = c.query(&listApartBuildsSQL, func(r *row) error {
		builds = append(builds, r.text())
		return nil
	}, text("namespace", c.p.Namespace), text("task_queue", c.p.Queue), text("mark", engine.BuildMark(c.p.BuildID)))
	for i := 0; i < len(builds) && err == nil; i++ {
		err = c.dueApartFrom(builds[i], &due, &next)
	}
	return due, next, err
}

// dueApartFrom is dueApart for runs from which these builds have diverged.
func (c *claim) dueApartFrom(builds string, due *[]*candidate, next *time.Time) error {
	now := engine.Micros(c.p.Now)
	return c.query(&listApartSQL, func(r *row) (err error) {
		run := &candidate{id: r.id(), due: r.time(), apart: true}
		kind, requirements := r.text(), map[string]string{}
		decode(r.text(), &requirements, &err)
		// a lane with nothing after the run
		run.lane = &lane{kind: kind, priority: int(r.num()), ahead: math.MaxInt}
		decode(r.text(), &run.suspect, &err)
		switch {
		case !slices.Contains(c.p.Types, kind) || !engine.Meets(c.p.Offers, requirements):
		case !run.due.After(now):
			*due = append(*due, run)
		case next.IsZero() || run.due.Before(*next):
			*next = run.due
		}
		return err
	}, text("namespace", c.p.Namespace), text("task_queue", c.p.Queue), text("diverged", builds),
		num("limit", maxApart))
}

// fits moves the first slot whose worker may hold a suspect to the front of the slots that are left,
// and says whether there is one.
func (c *claim) fits(s engine.Suspect) (bool, error) {
	left := c.slots[len(c.taken):]
	for i, slot := range left {
		held, err := c.suspectsHeld(slot.WorkerID)
		if err != nil {
			return false, err
		}
		if held.May(s) {
			copy(left[1:i+1], left[:i])
			left[0] = slot
			return true, nil
		}
	}
	return false, nil
}

//go:embed sql/held_suspects.sql
var heldSuspectsSQL string

// suspectsHeld counts the suspects that a worker holds.
func (c *claim) suspectsHeld(worker string) (*engine.Suspects, error) {
	if held := c.held[worker]; held != nil {
		return held, nil
	}
	held := &engine.Suspects{}
	err := c.query(&heldSuspectsSQL, func(r *row) (err error) {
		var s engine.Suspect
		decode(r.text(), &s, &err)
		held.Add(s)
		return err
	}, text("worker_id", worker), instant("since", engine.Micros(engine.SuspectSince(c.p.Now))))
	c.held[worker] = held
	return held, err
}

//go:embed sql/get_loss.sql
var getLossSQL string

func (t *tx) Loss(worker string) (engine.Loss, error) {
	l := engine.Loss{Worker: worker}
	_, err := t.session.found(&getLossSQL, func(r *row) error {
		l.At, l.HeardAt, l.Runs, l.Suspects = r.time(), r.time(), int(r.num()), int(r.num())
		return nil
	}, text("worker_id", worker))
	return l, err
}
