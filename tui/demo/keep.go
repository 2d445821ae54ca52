package demo

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	kagzi "github.com/kagzi/kagzi/sdk"
)

// leftPurchase is the external id of a run left for trying commands: it waits for its signal.
const leftPurchase = "purchase-2"

// keep leaves the server and the first worker running until ctx ends.
func keep(ctx context.Context, out screen, s *environment) error {
	if err := s.stopAllBut(steadyWorker); err != nil {
		return err
	}
	_, err := kagzi.Start(ctx, s.client, purchaseType, suppliers, kagzi.StartOptions{
		Queue: queue, ExternalID: leftPurchase, Tags: demoTags(purchaseType),
	})
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("leave a run to try commands on: %w", err)
	}
	out.line("")
	out.line("the server and " + steadyWorker + " keep running, a schedule is paused, and a run waits for a signal;")
	out.line("try these commands in another terminal:")
	program := called(os.Args[0], exec.LookPath)
	commands := []string{
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
	}
	if s.hands != nil {
		commands = append(commands, "workflow show --external "+claimID+" --tree")
	}
	for _, command := range commands {
		out.line("  " + program + " " + command + " --address " + s.server.Address)
	}
	out.line("Ctrl-C stops everything and removes " + s.dir)
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

// plainPath matches a path that needs no quotes in any shell.
var plainPath = regexp.MustCompile(`^[\w./\\:-]+$`)

// called returns how a shell in the same directory calls this program, which was called as
// argument: by its name if look finds it.
func called(argument string, look func(name string) (string, error)) string {
	if strings.Contains(argument, "go-build") { // go run removes the binary it built
		return "go run ."
	}
	name := strings.TrimSuffix(filepath.Base(argument), ".exe")
	if _, err := look(name); err == nil || !plainPath.MatchString(argument) {
		return name
	}
	return argument
}
