package demo

import (
	"context"
	"fmt"

	kagzi "github.com/kagzi/kagzi/sdk"
)

// leftPurchase is the external id of a run that is left to whoever tries the commands: it waits for its signal.
const leftPurchase = "purchase-2"

// keep leaves the server and the first worker up until ctx ends, which is how it is meant to end.
func keep(ctx context.Context, out screen, s *stage) error {
	if err := s.dismiss(steadyWorker); err != nil {
		return err
	}
	_, err := kagzi.Start(ctx, s.client, purchaseType, suppliers, kagzi.StartOptions{
		Queue: queue, ExternalID: leftPurchase, Tags: demoTags(purchaseType),
	})
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("leave a run to try commands on: %w", err)
	}
	out.line("")
	out.line("the server and " + steadyWorker + " stay up, a schedule is paused, and a run waits for a signal;")
	out.line("try in another terminal:")
	for _, command := range []string{
		"workflow list",
		"workflow start " + napType + " --queue " + queue + " --input 10",
		"workflow watch RUN",
		"workflow show RUN",
		"workflow show --external " + leftPurchase + " --tree",
		fmt.Sprintf("workflow signal --external %s %s --input %d", leftPurchase, approvalSignal, approvedPrice),
		"schedule show " + scheduleName,
		"schedule trigger " + scheduleName,
		"schedule resume " + scheduleName,
		"schedule runs " + scheduleName,
		"worker list",
		"queue list",
		"bench --workload W1,W3 --scale 0.1",
	} {
		out.line("  kagzi " + command + " --address " + s.server.Address)
	}
	out.line("ctrl-C stops them and removes " + s.dir)
	worker := s.workers[steadyWorker]
	select {
	case <-ctx.Done():
		return nil
	case <-s.server.Done():
		return s.server.Stop(0)
	case <-worker.Done():
		return worker.Stop(0)
	}
}
