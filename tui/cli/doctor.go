package cli

import (
	"cmp"
	"context"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/cli/internal/diagnosis"
	"github.com/kagzi/kagzi/tui/render"
)

func newDoctor(e *env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check the setup and suggest fixes",
		Long: `Check the server, its database, clock, disk, keys and certificate, and the workers and queues of the
namespace. Print one line per check, with a fix for each problem. If no server answers, check what
a server would need on this machine: settings, data directory, disk, schema and ports.

Exit code: 1 when a check is bad, 0 otherwise.`,
		Example: "  kagzi doctor\n  kagzi doctor --profile prod -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return e.run(cmd, func(ctx context.Context, c *client) error {
				return runDoctor(ctx, c, e.local, e.version)
			})
		},
	}
	e.register(cmd)
	return cmd
}

func runDoctor(ctx context.Context, c *client, local Local, version string) error {
	p := &examined{client: c, Server: diagnosis.Server{Address: c.address, Namespace: c.namespace, Version: version,
		Now: c.now()}}
	checks, err := p.examine(ctx)
	if err != nil {
		return err
	}
	if !p.reached && local.Examine != nil {
		checks = append(checks, local.Examine(ctx)...)
	}
	return c.printChecks(checks)
}

// printChecks prints the checks; the exit code is that of the worst.
func (c *client) printChecks(checks []Check) error {
	styles := map[string]render.Style{diagnosis.OK: render.Good, diagnosis.Warn: render.Waiting,
		diagnosis.Bad: render.Bad}
	items := make([]any, len(checks))
	sound := true
	for i, k := range checks {
		sound = sound && k.State != diagnosis.Bad
		items[i] = render.Object{{Name: "name", Value: k.Name}, {Name: "state", Value: k.State},
			{Name: "text", Value: k.Text}, {Name: "advice", Value: k.Advice}}
	}
	if err := c.out.print(result{
		human: func() []string {
			var lines []string
			for _, k := range checks {
				lines = append(lines, c.out.paint(pad(k.State, 6), styles[k.State])+pad(k.Name, 15)+render.Safe(k.Text))
				if k.Advice != "" {
					lines = append(lines, strings.Repeat(" ", 21)+render.Safe(k.Advice))
				}
			}
			return lines
		},
		document: render.Object{{Name: "sound", Value: sound}, {Name: "checks", Value: items}},
		items:    items,
	}); err != nil {
		return err
	}
	if !sound {
		return codeError(ExitError)
	}
	return nil
}

func pad(text string, cells int) string {
	return text + strings.Repeat(" ", max(cells-render.Width(text), 1))
}

// examined is a server and its answers.
type examined struct {
	*client
	diagnosis.Server
	reached bool
}

// examine asks the server and returns the checks. An error ends the command.
func (p *examined) examine(ctx context.Context) ([]Check, error) {
	if err := p.greet(ctx); err != nil {
		return p.unreachable(ctx, err)
	}
	p.reached = true
	if bad, err := p.identify(ctx); bad != nil || err != nil {
		return append(p.Connection(), bad...), err
	}
	if err := p.ask(ctx); err != nil {
		return nil, err
	}
	return p.Checks(), nil
}

// greet asks for the server's health, which needs no key.
func (p *examined) greet(ctx context.Context) (err error) {
	var from peer.Peer
	p.Sent = p.now()
	p.Health, err = p.HealthCheck(ctx, &kagziv1.HealthCheckRequest{}, grpc.Peer(&from))
	p.Trip = p.now().Sub(p.Sent)
	if info, ok := from.AuthInfo.(credentials.TLSInfo); ok {
		p.TLS = &info.State
	}
	return err
}

// unreachable returns the checks for a server that does not answer.
func (p *examined) unreachable(ctx context.Context, err error) ([]Check, error) {
	if ctx.Err() != nil {
		return nil, err
	}
	lines, _ := explain(p.placed(err))
	text, advice, found := strings.Cut(lines[0], "; ")
	if rest := lines[1:]; found {
		lines = append([]string{advice}, rest...)
	} else {
		lines = rest
	}
	return []Check{{Name: "server", State: diagnosis.Bad, Text: text,
		Advice: cmp.Or(strings.Join(lines, "; "), "see the server's log")}}, nil
}

// identify asks who the caller is. An invalid key is a finding.
func (p *examined) identify(ctx context.Context) ([]Check, error) {
	me, err := p.WhoAmI(ctx, &kagziv1.WhoAmIRequest{})
	switch status.Code(err) {
	case codes.OK:
		p.Me = me
		return nil, nil
	case codes.Unimplemented:
		return nil, nil // the server has no keys
	case codes.Unauthenticated:
		lines, _ := explain(p.placed(err))
		return []Check{{Name: "caller", State: diagnosis.Bad, Text: lines[0], Advice: lines[1]}}, nil
	}
	if !told(ctx, err) {
		return nil, err
	}
	return []Check{p.unknown("caller", "unknown", err)}, nil
}

// told reports whether the server itself failed the call, which is then a finding: a server that
// lost its database still answers and says so.
func told(ctx context.Context, err error) bool {
	code := status.Code(err)
	return ctx.Err() == nil && code != codes.Canceled && (code != codes.Unavailable || taken(err))
}

// unknown is the finding for a failed call.
func (p *examined) unknown(name, what string, err error) Check {
	lines, _ := explain(p.placed(err))
	text, advice, _ := strings.Cut(lines[0], "; ")
	if rest := strings.Join(lines[1:], "; "); rest != "" {
		text, advice = lines[0], rest
	}
	return Check{Name: name, State: diagnosis.Bad, Text: what + ": " + text,
		Advice: cmp.Or(advice, "see the server's log; of a service: kagzi service logs")}
}

// ask gathers the rest. It skips what the key may not see, and stops at the first request that the
// server does not answer.
func (p *examined) ask(ctx context.Context) error {
	questions := []struct {
		what string
		ask  func() error
	}{
		{diagnosis.Settings, func() (err error) {
			p.Info, err = p.GetServerInfo(ctx, &kagziv1.GetServerInfoRequest{})
			if err == nil && p.Info.GetStartedAt() == nil { // clients and workers see only what their program needs
				p.Refused = append(p.Refused, diagnosis.SetUp)
			}
			return err
		}},
		{diagnosis.Workers, func() error {
			_, err := eachPage(-1, "", func(page *kagziv1.PageRequest) (int, *kagziv1.PageInfo, error) {
				answer, err := p.ListWorkers(ctx, &kagziv1.ListWorkersRequest{Namespace: p.namespace, Page: page})
				p.Workers = append(p.Workers, answer.GetWorkers()...)
				return len(answer.GetWorkers()), answer.GetPage(), err
			})
			return err
		}},
		{diagnosis.Queues, func() (err error) {
			p.Queues, err = p.client.queues(ctx, &queryFlag[*kagziv1.QueueDepth]{})
			return err
		}},
		{diagnosis.Keys, func() (err error) {
			p.Keys, err = p.client.keys(ctx)
			return err
		}},
	}
	for i, question := range questions {
		switch err := question.ask(); status.Code(err) {
		case codes.OK:
		case codes.PermissionDenied, codes.Unimplemented:
			p.Refused = append(p.Refused, question.what)
		default:
			if !told(ctx, err) {
				return err
			}
			for _, left := range questions[i:] {
				p.Unanswered = append(p.Unanswered, left.what)
			}
			p.Trouble = p.unknown("left out", "no answer about "+strings.Join(p.Unanswered, ", "), err)
			return nil
		}
	}
	return nil
}
