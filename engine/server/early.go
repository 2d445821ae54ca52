package server

import "github.com/kagzi/kagzi/engine"

// notifyEarly is the ticket of a start of these runs: whoever waits for them claims as soon as the
// store carries out what it is handed in order and has been handed the start, so that both share a
// commit. What is claimed reaches a worker after that commit, as ever. The store still notifies
// once they are there, which is what counts where it keeps no order, or where this claim came to
// nothing. A run that somebody is likely to be given in the start itself needs no claim.
func (s *Server) notifyEarly(starts []engine.StartRun) *engine.Ticket {
	ticket := engine.NewTicket(nil) // nothing stands behind it
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
