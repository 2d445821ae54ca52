package server

import "github.com/kagzi/kagzi/engine"

// notifyEarly returns the ticket for a start of these runs. A store that keeps the order of its
// writes admits the ticket when it has received the start. Pollers are then notified and claim at
// once, so that start and claim share a commit. The claimed runs reach workers only after that
// commit.
//
// The store still notifies after its commit. That notification counts if the store keeps no order
// or if the early claim found nothing. A run that a waiting poller is likely to get by hand-off
// needs no early claim.
func (s *Server) notifyEarly(starts []engine.StartRun) *engine.Ticket {
	ticket := engine.NewTicket(nil)
	ticket.OnAdmit(func() {
		var last *engine.StartRun
		for i := range starts {
			start := &starts[i]
			if start.AvailableAt.After(start.CreatedAt) || last != nil && last.Queue == start.Queue &&
				last.Namespace == start.Namespace {
				continue
			}
			last = start
			if start.ConcurrencyKey == "" && s.matcher.Waits(start) {
				continue
			}
			s.matcher.Notify(engine.Notification{Kind: engine.NotifyQueue, Namespace: start.Namespace,
				Name: start.Queue})
		}
	})
	return ticket
}
