package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/durationpb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/cli/internal/flagvalue"
	"github.com/kagzi/kagzi/tui/render"
)

type hookCreateOptions struct {
	url    urlFlag
	secret hookSecret
	queue  string
	kind   string
	hmac   string
}

func newHookCreate(e *env, o *hookCreateOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "create NAME --type TYPE",
		Short: "Create a hook; its secret is shown only once",
		Long: `Create a hook and print its URL and its secret. The secret is shown only now.

How a sender proves that it knows the secret (--hmac):

  github   X-Hub-Signature-256, an HMAC-SHA-256 of the body, as GitHub, Gitea and many others send it
  stripe   Stripe-Signature, an HMAC-SHA-256 of a time and the body; the time may be 5 minutes off
  plain    no signature: the secret itself, in the header Kagzi-Hook-Secret or Authorization: Bearer,
           for senders that cannot sign; use it only over TLS

What makes two deliveries one: for github the body and X-GitHub-Delivery, for stripe the body and the
event's id in it, for plain the Idempotency-Key or, without one, the body.

Stripe makes the secret itself: create the hook, register its URL at Stripe, and then give the hook
that secret with kagzi hook rotate --secret-file. Secrets are stored readable in the database.`,
		Example: `  kagzi hook create gh --queue ci --type build --hmac github --url https://kagzi.example
  kagzi hook create deploy --type deploy --hmac plain
  curl --json '{"ref":"v1.2"}' -H "Kagzi-Hook-Secret: $SECRET" -H "Idempotency-Key: v1.2" "$URL"
  pass show gitea/hook | kagzi hook create gitea --type build --hmac github --secret-file -`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.kind == "" {
				return usagef("--type is required: the workflow type to start")
			}
			if err := o.url.check(); err != nil {
				return err
			}
			return e.run(cmd, func(ctx context.Context, c *client) error { return runHookCreate(ctx, c, o, args[0]) })
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.queue, "queue", "default", "task queue of the runs")
	f.StringVar(&o.kind, "type", "", "workflow type of the runs")
	f.Var(choice(&o.hmac, "github", "stripe", "plain"), "hmac", "how deliveries are signed")
	o.secret.register(cmd)
	o.url.register(cmd)
	for flag, from := range map[string]completer{"queue": completeQueues, "type": completeTypes} {
		_ = cmd.RegisterFlagCompletionFunc(flag, e.complete(from)) // fails only if the flag does not exist
	}
	_ = cmd.RegisterFlagCompletionFunc("hmac", words("github", "stripe", "plain"))
	return cmd
}

func runHookCreate(ctx context.Context, c *client, o *hookCreateOptions, name string) error {
	secret, err := o.secret.read(c.out.in)
	if err != nil {
		return err
	}
	answer, err := c.CreateHook(ctx, &kagziv1.CreateHookRequest{Namespace: c.namespace, Name: name, TaskQueue: o.queue,
		WorkflowType: o.kind, Secret: secret,
		Signature: kagziv1.HookSignature(kagziv1.HookSignature_value["HOOK_SIGNATURE_"+strings.ToUpper(o.hmac)])})
	if err != nil {
		return err
	}
	return c.printNewSecret(ctx, "created", answer.GetHook(), &o.url, answer.GetSecret(), secret != "")
}

// hookSecret is the flag for a secret that the sender made.
type hookSecret struct{ file string }

func (s *hookSecret) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.file, "secret-file", "",
		`file with the secret, if the sender makes it ("-" reads stdin; default: the server makes one)`)
}

// maxHookSecretFile is longer than any secret, in bytes.
const maxHookSecretFile = 1 << 10

// read returns the secret without surrounding space; empty without the flag. Errors never hold it.
func (s *hookSecret) read(stdin io.Reader) (string, error) {
	if s.file == "" {
		return "", nil
	}
	in := stdin
	if s.file != "-" {
		f, err := os.Open(s.file)
		if err != nil {
			return "", &usageError{err: fmt.Errorf("--secret-file: %w", err)}
		}
		defer f.Close()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, maxHookSecretFile+1))
	if err != nil {
		return "", fmt.Errorf("--secret-file: %w", err)
	}
	secret := string(bytes.TrimSpace(text))
	if secret == "" || len(text) > maxHookSecretFile {
		return "", usagef("--secret-file %s: want one secret of at most 255 bytes", s.file)
	}
	return secret, nil
}

// printNewSecret prints the URL of a hook and its secret, which is left out if the caller gave it.
func (c *client) printNewSecret(ctx context.Context, done string, h *kagziv1.Hook, at *urlFlag, secret string,
	given bool) error {
	address, shown := at.of(ctx, c, h), any(secret)
	if given {
		shown = nil
	}
	err := c.out.print(result{
		human: func() []string {
			lines := []string{"url     " + render.Safe(address)}
			if !given {
				lines = append(lines, "secret  "+render.Safe(secret))
			}
			return lines
		},
		document: render.Object{{Name: "hook", Value: render.Document(h)}, {Name: "url", Value: address},
			{Name: "secret", Value: shown}},
	})
	if err != nil {
		return err
	}
	c.out.say("%s the %s hook %s, which starts %s on queue %s", done, render.HookSignature(h.GetSignature()), h.GetName(),
		h.GetWorkflowType(), h.GetTaskQueue())
	if !given {
		c.out.say("this is the only time that the secret is shown: give it to the sender now")
	}
	if until := h.GetOldSecretUntil(); until != nil {
		c.out.say("the secret from before is valid too until %s", until.AsTime().UTC().Format(time.RFC3339))
	}
	return nil
}

type hookRotateOptions struct {
	url     urlFlag
	secret  hookSecret
	overlap time.Duration
}

func newHookRotate(e *env, o *hookRotateOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rotate NAME",
		Short: "Give a hook a new secret; the one before stays valid for a time",
		Long: `Give a hook a new secret and print it. The secret from before stays valid for --overlap, so that the
sender can be changed without losing a delivery. During that time another rotation is refused, unless
it has --overlap 0, which makes all earlier secrets invalid at once: use that if a secret has leaked.`,
		Example: `  kagzi hook rotate gh
  kagzi hook rotate gh --overlap 0
  pass show stripe/endpoint | kagzi hook rotate stripe --secret-file - --overlap 0`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: e.completeOne(completeHooks),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.url.check(); err != nil {
				return err
			}
			return e.run(cmd, func(ctx context.Context, c *client) error { return runHookRotate(ctx, c, o, args[0]) })
		},
	}
	o.overlap = 24 * time.Hour
	cmd.Flags().Var(flagvalue.Duration(&o.overlap), "overlap",
		"how long the secret from before stays valid, at most 30d; 0: not at all")
	o.secret.register(cmd)
	o.url.register(cmd)
	return cmd
}

func runHookRotate(ctx context.Context, c *client, o *hookRotateOptions, name string) error {
	secret, err := o.secret.read(c.out.in)
	if err != nil {
		return err
	}
	answer, err := c.RotateHook(ctx, &kagziv1.RotateHookRequest{Namespace: c.namespace, Name: name, Secret: secret,
		Overlap: durationpb.New(o.overlap)})
	if err != nil {
		return err
	}
	return c.printNewSecret(ctx, "rotated the secret of", answer.GetHook(), &o.url, answer.GetSecret(), secret != "")
}
