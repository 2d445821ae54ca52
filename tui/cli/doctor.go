package cli

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/render"
)

// The states of a Check.
const (
	checkOK   = "ok"
	checkWarn = "warn"
	checkBad  = "bad"
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
	p := &examined{client: c, version: version}
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
	styles := map[string]render.Style{checkOK: render.Good, checkWarn: render.Waiting, checkBad: render.Bad}
	items := make([]any, len(checks))
	sound := true
	for i, k := range checks {
		sound = sound && k.State != checkBad
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

// examined holds the answers of a server. What it did not answer is nil.
type examined struct {
	*client
	version string // of this program
	reached bool

	health  *kagziv1.HealthCheckResponse
	sent    time.Time // when the server's health was requested
	trip    time.Duration
	peer    peer.Peer
	me      *kagziv1.WhoAmIResponse
	info    *kagziv1.GetServerInfoResponse
	workers []*kagziv1.Worker
	queues  []*kagziv1.QueueDepth
	keys    []*kagziv1.Key
	refused []string // what the caller's key may not see

	unanswered []string // what the server did not answer
	trouble    Check    // why
}

// examine asks the server and returns the checks. An error ends the command.
func (p *examined) examine(ctx context.Context) ([]Check, error) {
	if err := p.greet(ctx); err != nil {
		return p.unreachable(ctx, err)
	}
	p.reached = true
	if bad, err := p.identify(ctx); bad != nil || err != nil {
		return append(p.ofConnection(), bad...), err
	}
	if err := p.ask(ctx); err != nil {
		return nil, err
	}
	return p.checks(), nil
}

// greet asks for the server's health, which needs no key.
func (p *examined) greet(ctx context.Context) (err error) {
	p.sent = p.now()
	p.health, err = p.HealthCheck(ctx, &kagziv1.HealthCheckRequest{}, grpc.Peer(&p.peer))
	p.trip = p.now().Sub(p.sent)
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
	return []Check{{Name: "server", State: checkBad, Text: text,
		Advice: cmp.Or(strings.Join(lines, "; "), "see the server's log")}}, nil
}

// identify asks who the caller is. An invalid key is a finding.
func (p *examined) identify(ctx context.Context) ([]Check, error) {
	me, err := p.WhoAmI(ctx, &kagziv1.WhoAmIRequest{})
	switch status.Code(err) {
	case codes.OK:
		p.me = me
		return nil, nil
	case codes.Unimplemented:
		return nil, nil // the server has no keys
	case codes.Unauthenticated:
		lines, _ := explain(p.placed(err))
		return []Check{{Name: "caller", State: checkBad, Text: lines[0], Advice: lines[1]}}, nil
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
	return Check{Name: name, State: checkBad, Text: what + ": " + text,
		Advice: cmp.Or(advice, "see the server's log; of a service: kagzi service logs")}
}

// serverSetUp is what a server shows only to operators and admins.
const serverSetUp = "how the server is set up"

// ask gathers the rest. It skips what the key may not see, and stops at the first request that the
// server does not answer.
func (p *examined) ask(ctx context.Context) error {
	questions := []struct {
		what string
		ask  func() error
	}{
		{"the server's settings", func() (err error) {
			p.info, err = p.GetServerInfo(ctx, &kagziv1.GetServerInfoRequest{})
			if err == nil && p.info.GetStartedAt() == nil { // clients and workers see only what their program needs
				p.refused = append(p.refused, serverSetUp)
			}
			return err
		}},
		{"workers", func() error {
			_, err := eachPage(-1, "", func(page *kagziv1.PageRequest) (int, *kagziv1.PageInfo, error) {
				answer, err := p.ListWorkers(ctx, &kagziv1.ListWorkersRequest{Namespace: p.namespace, Page: page})
				p.workers = append(p.workers, answer.GetWorkers()...)
				return len(answer.GetWorkers()), answer.GetPage(), err
			})
			return err
		}},
		{"queues", func() (err error) {
			p.queues, err = p.client.queues(ctx)
			return err
		}},
		{"keys", func() (err error) {
			p.keys, err = p.client.keys(ctx)
			return err
		}},
	}
	for i, question := range questions {
		switch err := question.ask(); status.Code(err) {
		case codes.OK:
		case codes.PermissionDenied, codes.Unimplemented:
			p.refused = append(p.refused, question.what)
		default:
			if !told(ctx, err) {
				return err
			}
			for _, left := range questions[i:] {
				p.unanswered = append(p.unanswered, left.what)
			}
			p.trouble = p.unknown("left out", "no answer about "+strings.Join(p.unanswered, ", "), err)
			return nil
		}
	}
	return nil
}

// seen reports whether the server answered about something.
func (p *examined) seen(what string) bool {
	return !slices.Contains(p.refused, what) && !slices.Contains(p.unanswered, what)
}

// tls returns the TLS state of the connection; ok is false without TLS.
func (p *examined) tls() (info credentials.TLSInfo, ok bool) {
	info, ok = p.peer.AuthInfo.(credentials.TLSInfo)
	return info, ok
}
