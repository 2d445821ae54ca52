package simulate

import "slices"

// Shrink removes parts of a plan while broken still returns true for it. It returns the remaining
// plan and the number of plans tried, at most limit. broken runs a plan and reports whether it
// still fails the same way.
func Shrink(plan Plan, limit int, broken func(Plan) bool) (Plan, int) {
	s := &shrinker{plan: plan, limit: limit, broken: broken}
	for before := -1; before != s.size() && s.tried < s.limit; {
		before = s.size()
		without(s, func(p *Plan) *[]Event { return &p.Events })
		without(s, func(p *Plan) *[]Fault { return &p.Faults })
		without(s, func(p *Plan) *[]Start { return &p.Starts })
		without(s, func(p *Plan) *[]Order { return &p.Orders })
		without(s, func(p *Plan) *[]Template { return &p.Schedules })
		for i := range s.plan.Starts {
			without(s, func(p *Plan) *[]Act { return &p.Starts[i].Program.Acts })
		}
		s.try(func(p *Plan) { *p = p.alone() })
		s.try(func(p *Plan) { p.Group = 1 })
		s.try(func(p *Plan) { p.Early = false })
		s.try(func(p *Plan) { p.Endings = false })
	}
	return s.plan, s.tried
}

type shrinker struct {
	plan   Plan
	limit  int
	tried  int
	broken func(Plan) bool
}

// size is smaller for a smaller plan.
func (s *shrinker) size() int {
	n := len(s.plan.Events) + len(s.plan.Faults) + len(s.plan.Orders) + len(s.plan.Schedules) + s.plan.Servers +
		s.plan.Group
	for _, start := range s.plan.Starts {
		n += 1 + len(start.Program.Acts)
	}
	return n
}

// try keeps a change if the plan still fails with it.
func (s *shrinker) try(change func(*Plan)) bool {
	if s.tried >= s.limit {
		return false
	}
	next := s.plan
	next.Starts = slices.Clone(s.plan.Starts)
	change(&next)
	next.Orders = slices.DeleteFunc(slices.Clone(next.Orders), func(o Order) bool {
		return !slices.ContainsFunc(next.Starts, func(start Start) bool { return start.Name == o.Run })
	})
	s.tried++
	if !s.broken(next) {
		return false
	}
	s.plan = next
	return true
}

// without removes parts of a list, large ones first.
func without[V any](s *shrinker, list func(*Plan) *[]V) {
	for size := len(*list(&s.plan)); size > 0; size /= 2 {
		for from := 0; from < len(*list(&s.plan)); {
			left := s.try(func(p *Plan) {
				items := list(p)
				*items = slices.Delete(slices.Clone(*items), from, min(from+size, len(*items)))
			})
			if !left {
				from += size
			}
		}
	}
}

func onServer0(events []Event) []Event {
	events = slices.Clone(events)
	for i := range events {
		if events[i].Do == "server" || events[i].Do == "gap" {
			events[i].Index = 0
		}
	}
	return events
}
