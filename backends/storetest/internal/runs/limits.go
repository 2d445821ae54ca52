package runs

import (
	"sync"
	"time"

	"github.com/kagzi/kagzi/backends/storetest/internal/fixture"
	"github.com/kagzi/kagzi/engine"
)

func queueLimit(n int) func(*engine.ClaimParams) {
	return func(p *engine.ClaimParams) { p.QueueLimit = n }
}

func typeLimit(t string, n int) func(*engine.ClaimParams) {
	return func(p *engine.ClaimParams) { p.TypeLimits = map[string]int{t: n} }
}

var LimitsCases = []fixture.Case{
	{Name: "a queue's limit holds within one claim", Run: func(s *fixture.F) {
		s.Worker("w1")
		for range 5 {
			s.Start()
		}
		claimed := s.ClaimLimited(5, queueLimit(3))
		fixture.Equal(s, "tasks", len(claimed.Tasks), 3)
		fixture.Equal(s, "limited", claimed.Limited, true)
	}},
	{Name: "a queue's limit holds across claims and freed slots are used", Run: func(s *fixture.F) {
		first := s.Held()
		s.Worker("w2")
		for range 4 {
			s.Start()
		}
		p := s.ClaimParams("w2", "w2", "w2")
		p.QueueLimit = 2
		claimed := s.ClaimWith(p)
		fixture.Equal(s, "tasks of the second worker", len(claimed.Tasks), 1)
		fixture.Equal(s, "limited", claimed.Limited, true)
		fixture.Equal(s, "tasks at the limit", len(s.ClaimLimited(2, queueLimit(2)).Tasks), 0)
		s.Finish(first, "done")
		fixture.Equal(s, "tasks after an end", len(s.ClaimLimited(2, queueLimit(2)).Tasks), 1)
		s.Sleep(claimed.Tasks[0].Lease, "nap", time.Hour)
		fixture.Equal(s, "tasks after a sleep", len(s.ClaimLimited(2, queueLimit(2)).Tasks), 1)
		s.Offline("w1", engine.OfflineForced)
		s.Worker("w1")
		fixture.Equal(s, "tasks after the worker went", len(s.ClaimLimited(9, queueLimit(2)).Tasks), 2)
	}},
	{Name: "a queue's limit ignores other queues and namespaces", Run: func(s *fixture.F) {
		s.Held()
		for _, other := range []struct{ space, queue string }{{fixture.Space, "second"}, {"other", fixture.Queue}} {
			s.Start(fixture.InSpace(other.space), fixture.InQueue(other.queue))
			claimed := s.ClaimLimited(1, queueLimit(1), func(p *engine.ClaimParams) {
				p.Namespace, p.Queue = other.space, other.queue
			})
			fixture.Equal(s, "tasks of "+other.space+"/"+other.queue, len(claimed.Tasks), 1)
		}
		s.Start()
		fixture.Equal(s, "tasks at the limit", len(s.ClaimLimited(1, queueLimit(1)).Tasks), 0)
	}},
	{Name: "a type's limit holds back only that type", Run: func(s *fixture.F) {
		s.Worker("w1")
		for range 3 {
			s.Start(fixture.OfType("a"), fixture.WithPriority(5))
		}
		for range 3 {
			s.Start(fixture.OfType("b"))
		}
		claimed := s.ClaimLimited(6, typeLimit("a", 1))
		count := map[string]int{}
		for _, task := range claimed.Tasks {
			count[task.Run.Type]++
		}
		fixture.Equal(s, "of a", count["a"], 1)
		fixture.Equal(s, "of b", count["b"], 3)
		fixture.Equal(s, "limited", claimed.Limited, true)
		fixture.Equal(s, "of a at the limit", len(s.ClaimLimited(6, typeLimit("a", 1)).Tasks), 0)
		s.Finish(claimed.Tasks[0].Lease, "done")
		fixture.Equal(s, "of a after an end", len(s.ClaimLimited(6, typeLimit("a", 1)).Tasks), 1)
	}},
	{Name: "a type's limit counts only that type in that queue", Run: func(s *fixture.F) {
		s.Worker("w1")
		s.Start(fixture.OfType("a"), fixture.InQueue("second"))
		other := func(p *engine.ClaimParams) { p.Queue = "second" }
		fixture.Equal(s, "tasks of the second queue", len(s.ClaimLimited(1, typeLimit("a", 1), other).Tasks), 1)
		s.Start(fixture.OfType("b"))
		fixture.Equal(s, "tasks of b", len(s.ClaimLimited(1, typeLimit("a", 1)).Tasks), 1)
		s.Start(fixture.OfType("a"))
		fixture.Equal(s, "tasks of a", len(s.ClaimLimited(1, typeLimit("a", 1)).Tasks), 1)
	}},
	{Name: "a type's limit ignores other namespaces", Run: func(s *fixture.F) {
		s.Worker("w1")
		s.Start(fixture.OfType("a"), fixture.InSpace("other"))
		other := func(p *engine.ClaimParams) { p.Namespace = "other" }
		fixture.Equal(s, "tasks of the other namespace", len(s.ClaimLimited(1, typeLimit("a", 1), other).Tasks), 1)
		s.Start(fixture.OfType("a"))
		fixture.Equal(s, "tasks of a", len(s.ClaimLimited(1, typeLimit("a", 1)).Tasks), 1)
		s.Start(fixture.OfType("a"))
		fixture.Equal(s, "tasks of a at the limit", len(s.ClaimLimited(1, typeLimit("a", 1)).Tasks), 0)
	}},
	{Name: "a type's limit does not change the claim order", Run: func(s *fixture.F) {
		s.Worker("w1")
		low := s.Start(fixture.OfType("a"))
		s.Pass(time.Second)
		high := s.Start(fixture.OfType("a"), fixture.WithPriority(5))
		first := func(want engine.ID, changes ...func(*engine.ClaimParams)) {
			s.Helper()
			tasks := s.ClaimLimited(2, append(changes, typeLimit("a", 1))...).Tasks
			fixture.Equal(s, "tasks", len(tasks), 1)
			fixture.Equal(s, "the first", tasks[0].Run.ID, want)
			s.Release(tasks[0].Lease, false)
		}
		first(high)
		first(low, fixture.ByAge(1))
	}},
	{Name: "a claim by age passes over a type at its limit", Run: func(s *fixture.F) {
		s.Worker("w1")
		for range 3 {
			s.Start(fixture.OfType("a"), fixture.WithPriority(-5))
		}
		s.Pass(time.Second)
		old := s.Start(fixture.OfType("b"), fixture.WithPriority(-5))
		s.Pass(time.Second)
		urgent := s.Start(fixture.OfType("b"), fixture.WithPriority(5))
		claimed := s.ClaimLimited(4, typeLimit("a", 1), fixture.ByAge(2))
		fixture.Equal(s, "tasks", len(claimed.Tasks), 3)
		fixture.Equal(s, "first type", claimed.Tasks[0].Run.Type, "a")
		fixture.Equal(s, "second", claimed.Tasks[1].Run.ID, old)
		fixture.Equal(s, "third", claimed.Tasks[2].Run.ID, urgent)
		fixture.Equal(s, "limited", claimed.Limited, true)
	}},
	{Name: "both limits hold together", Run: func(s *fixture.F) {
		s.Worker("w1")
		for range 4 {
			s.Start(fixture.OfType("a"))
			s.Start(fixture.OfType("b"))
		}
		claimed := s.ClaimLimited(8, queueLimit(4), typeLimit("a", 1))
		count := map[string]int{}
		for _, task := range claimed.Tasks {
			count[task.Run.Type]++
		}
		fixture.Equal(s, "of a", count["a"], 1)
		fixture.Equal(s, "of b", count["b"], 3)
	}},
	{Name: "runs of unlimited types count toward the queue's limit",
		Run: func(s *fixture.F) {
			s.Worker("w1")
			s.Start(fixture.OfType("b"), fixture.WithPriority(9))
			s.Release(s.ClaimLimited(1).Tasks[0].Lease, false)
			s.Start(fixture.OfType("a"))
			fixture.Equal(s, "tasks under a type's limit", len(s.ClaimLimited(2, typeLimit("a", 2)).Tasks), 2)
			s.Start()
			fixture.Equal(s, "tasks at the queue's limit", len(s.ClaimLimited(1, queueLimit(2)).Tasks), 0)
		}},
	{Name: "a claim is Limited only with slots left and runs due", Run: func(s *fixture.F) {
		s.Worker("w1")
		fixture.Equal(s, "on an empty queue", s.ClaimLimited(1, queueLimit(1)).Limited, false)
		s.Start()
		fixture.Equal(s, "when all that is due was taken", s.ClaimLimited(2, queueLimit(1)).Limited, false)
		fixture.Equal(s, "at the limit with nothing due", s.ClaimLimited(2, queueLimit(1)).Limited, false)
		later := s.Now.Add(time.Minute)
		s.Start(fixture.DueAt(later))
		claimed := s.ClaimLimited(1, queueLimit(1))
		fixture.Equal(s, "at the limit with something due later", claimed.Limited, false)
		s.SameTime("next due", claimed.NextDue, later)
		s.Start(fixture.Requiring("gpu", ""))
		fixture.Equal(s, "at the limit with what it cannot take", s.ClaimLimited(1, queueLimit(1)).Limited, false)
		s.Start()
		fixture.Equal(s, "at the limit with something due", s.ClaimLimited(1, queueLimit(1)).Limited, true)
		fixture.Equal(s, "with the grants used up", s.ClaimLimited(1, queueLimit(2)).Limited, false)
	}},
	{Name: "a limit below the running count gives nothing", Run: func(s *fixture.F) {
		s.Worker("w1")
		for range 4 {
			s.Start()
		}
		fixture.Equal(s, "tasks without a limit", len(s.ClaimLimited(3).Tasks), 3)
		claimed := s.ClaimLimited(2, queueLimit(1))
		fixture.Equal(s, "tasks", len(claimed.Tasks), 0)
		fixture.Equal(s, "limited", claimed.Limited, true)
	}},
	{Name: "concurrent claims keep within the limit", Run: func(s *fixture.F) {
		s.Worker("w1")
		for range 20 {
			s.Start()
		}
		const claimers, limit = 8, 5
		params := make([]engine.ClaimParams, claimers)
		for i := range params {
			params[i] = s.ClaimParams("w1", "w1", "w1")
			params[i].QueueLimit = limit
		}
		var group sync.WaitGroup
		errs := make([]error, claimers)
		for i, p := range params {
			group.Go(func() { _, errs[i] = s.Store.Claim(s.Ctx, p) })
		}
		group.Wait()
		for _, err := range errs {
			s.Must(err, "Claim")
		}
		fixture.Equal(s, "leases", len(s.HeldBy("w1")), limit)
	}},
}
