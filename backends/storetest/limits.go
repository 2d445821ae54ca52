package storetest

import (
	"sync"
	"time"

	"github.com/kagzi/kagzi/engine"
)

func queueLimit(n int) func(*engine.ClaimParams) {
	return func(p *engine.ClaimParams) { p.QueueLimit = n }
}

func typeLimit(t string, n int) func(*engine.ClaimParams) {
	return func(p *engine.ClaimParams) { p.TypeLimits = map[string]int{t: n} }
}

// claimLimited claims for n grants of w1 under limits, of the types a and b too.
func (s *stage) claimLimited(n int, changes ...func(*engine.ClaimParams)) engine.Claimed {
	s.Helper()
	workers := make([]string, n)
	for i := range workers {
		workers[i] = "w1"
	}
	p := s.claimParams(workers...)
	p.Types = []string{kind, "a", "b"}
	for _, change := range changes {
		change(&p)
	}
	return s.claimWith(p)
}

var limitsCases = []testCase{
	{"a queue's limit holds within one claim", func(s *stage) {
		s.worker("w1")
		for range 5 {
			s.start()
		}
		claimed := s.claimLimited(5, queueLimit(3))
		equal(s, "tasks", len(claimed.Tasks), 3)
		equal(s, "limited", claimed.Limited, true)
	}},
	{"a queue's limit holds across claims and workers, and a freed slot is used", func(s *stage) {
		first := s.held()
		s.worker("w2")
		for range 4 {
			s.start()
		}
		p := s.claimParams("w2", "w2", "w2")
		p.QueueLimit = 2
		claimed := s.claimWith(p)
		equal(s, "tasks of the second worker", len(claimed.Tasks), 1)
		equal(s, "limited", claimed.Limited, true)
		equal(s, "tasks at the limit", len(s.claimLimited(2, queueLimit(2)).Tasks), 0)
		s.finish(first, "done")
		equal(s, "tasks after an end", len(s.claimLimited(2, queueLimit(2)).Tasks), 1)
		s.sleep(claimed.Tasks[0].Lease, "nap", time.Hour)
		equal(s, "tasks after a sleep", len(s.claimLimited(2, queueLimit(2)).Tasks), 1)
		s.offline("w1", engine.OfflineForced)
		s.worker("w1")
		equal(s, "tasks after the worker went", len(s.claimLimited(9, queueLimit(2)).Tasks), 2)
	}},
	{"a limit counts neither other queues nor other namespaces", func(s *stage) {
		s.held()
		for _, other := range []struct{ space, queue string }{{space, "second"}, {"other", queue}} {
			s.start(inSpace(other.space), inQueue(other.queue))
			claimed := s.claimLimited(1, queueLimit(1), func(p *engine.ClaimParams) { p.Namespace, p.Queue = other.space, other.queue })
			equal(s, "tasks of "+other.space+"/"+other.queue, len(claimed.Tasks), 1)
		}
		s.start()
		equal(s, "tasks at the limit", len(s.claimLimited(1, queueLimit(1)).Tasks), 0)
	}},
	{"a type's limit holds that type back and no other", func(s *stage) {
		s.worker("w1")
		for range 3 {
			s.start(ofType("a"), withPriority(5))
		}
		for range 3 {
			s.start(ofType("b"))
		}
		claimed := s.claimLimited(6, typeLimit("a", 1))
		count := map[string]int{}
		for _, task := range claimed.Tasks {
			count[task.Run.Type]++
		}
		equal(s, "of a", count["a"], 1)
		equal(s, "of b", count["b"], 3)
		equal(s, "limited", claimed.Limited, true)
		equal(s, "of a at the limit", len(s.claimLimited(6, typeLimit("a", 1)).Tasks), 0)
		s.finish(claimed.Tasks[0].Lease, "done")
		equal(s, "of a after an end", len(s.claimLimited(6, typeLimit("a", 1)).Tasks), 1)
	}},
	{"a type's limit counts that type in that queue only", func(s *stage) {
		s.worker("w1")
		s.start(ofType("a"), inQueue("second"))
		other := func(p *engine.ClaimParams) { p.Queue = "second" }
		equal(s, "tasks of the second queue", len(s.claimLimited(1, typeLimit("a", 1), other).Tasks), 1)
		s.start(ofType("b"))
		equal(s, "tasks of b", len(s.claimLimited(1, typeLimit("a", 1)).Tasks), 1)
		s.start(ofType("a"))
		equal(s, "tasks of a", len(s.claimLimited(1, typeLimit("a", 1)).Tasks), 1)
	}},
	{"nor does it count that type in another namespace", func(s *stage) {
		s.worker("w1")
		s.start(ofType("a"), inSpace("other"))
		other := func(p *engine.ClaimParams) { p.Namespace = "other" }
		equal(s, "tasks of the other namespace", len(s.claimLimited(1, typeLimit("a", 1), other).Tasks), 1)
		s.start(ofType("a"))
		equal(s, "tasks of a", len(s.claimLimited(1, typeLimit("a", 1)).Tasks), 1)
		s.start(ofType("a"))
		equal(s, "tasks of a at the limit", len(s.claimLimited(1, typeLimit("a", 1)).Tasks), 0)
	}},
	{"of a type that is limited goes what would go first without the limit", func(s *stage) {
		s.worker("w1")
		low := s.start(ofType("a"))
		s.pass(time.Second)
		high := s.start(ofType("a"), withPriority(5))
		first := func(want engine.ID) {
			s.Helper()
			tasks := s.claimLimited(2, typeLimit("a", 1)).Tasks
			equal(s, "tasks", len(tasks), 1)
			equal(s, "the first", tasks[0].Run.ID, want)
			s.release(tasks[0].Lease, false)
		}
		first(high)
		s.pass(engine.StarvationAfter - time.Second)
		first(low)
	}},
	{"both limits hold together", func(s *stage) {
		s.worker("w1")
		for range 4 {
			s.start(ofType("a"))
			s.start(ofType("b"))
		}
		claimed := s.claimLimited(8, queueLimit(4), typeLimit("a", 1))
		count := map[string]int{}
		for _, task := range claimed.Tasks {
			count[task.Run.Type]++
		}
		equal(s, "of a", count["a"], 1)
		equal(s, "of b", count["b"], 3)
	}},
	{"what the first claim under a limit took before it came to the type that is limited counts from then on", func(s *stage) {
		s.worker("w1")
		s.start(ofType("b"), withPriority(9))
		s.release(s.claimLimited(1).Tasks[0].Lease, false)
		s.start(ofType("a"))
		equal(s, "tasks under a type's limit", len(s.claimLimited(2, typeLimit("a", 2)).Tasks), 2)
		s.start()
		equal(s, "tasks at the queue's limit", len(s.claimLimited(1, queueLimit(2)).Tasks), 0)
	}},
	{"a claim is limited only when grants are left over although runs are due", func(s *stage) {
		s.worker("w1")
		equal(s, "on an empty queue", s.claimLimited(1, queueLimit(1)).Limited, false)
		s.start()
		equal(s, "when all that is due was taken", s.claimLimited(2, queueLimit(1)).Limited, false)
		equal(s, "at the limit with nothing due", s.claimLimited(2, queueLimit(1)).Limited, false)
		later := s.now.Add(time.Minute)
		s.start(dueAt(later))
		claimed := s.claimLimited(1, queueLimit(1))
		equal(s, "at the limit with something due later", claimed.Limited, false)
		s.sameTime("next due", claimed.NextDue, later)
		s.start(requiring("gpu", ""))
		equal(s, "at the limit with what it cannot take", s.claimLimited(1, queueLimit(1)).Limited, false)
		s.start()
		equal(s, "at the limit with something due", s.claimLimited(1, queueLimit(1)).Limited, true)
		equal(s, "with the grants used up", s.claimLimited(1, queueLimit(2)).Limited, false)
	}},
	{"a limit below what runs already gives nothing and breaks nothing", func(s *stage) {
		s.worker("w1")
		for range 4 {
			s.start()
		}
		equal(s, "tasks without a limit", len(s.claimLimited(3).Tasks), 3)
		claimed := s.claimLimited(2, queueLimit(1))
		equal(s, "tasks", len(claimed.Tasks), 0)
		equal(s, "limited", claimed.Limited, true)
	}},
	{"claims at the same time stay within the limit together", func(s *stage) {
		s.worker("w1")
		for range 20 {
			s.start()
		}
		const claimers, limit = 8, 5
		params := make([]engine.ClaimParams, claimers)
		for i := range params {
			params[i] = s.claimParams("w1", "w1", "w1")
			params[i].QueueLimit = limit
		}
		var group sync.WaitGroup
		errs := make([]error, claimers)
		for i, p := range params {
			group.Go(func() { _, errs[i] = s.store.Claim(s.ctx, p) })
		}
		group.Wait()
		for _, err := range errs {
			s.must(err, "Claim")
		}
		equal(s, "leases", len(s.heldBy("w1")), limit)
	}},
}
