package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/filter"
	"github.com/kagzi/kagzi/tui/render"
)

type keyCreateOptions struct {
	near       nearFlags
	role       string
	namespaces []string
	queues     []string
	types      []string
	expires    string
	file       string
	yes        bool
}

var keyRoles = []string{"admin", "operator", "client", "worker", "viewer"}

func newKeyCreate(e *env, o *keyCreateOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "create NAME --role ROLE",
		Short: "Make a key; its secret is shown this once and kept nowhere",
		Long: `Make a key. Its secret alone is printed on stdout, this once: it is kept nowhere.

Roles:

  admin      everything, keys and namespaces included; without --namespace of all namespaces
  operator   see and steer the runs, workers and schedules of its namespaces
  client     start, signal, read and cancel runs of its namespaces
  worker     work on the queues and types that --queue and --type name, * standing for any text; on all without them
  viewer     read, payloads left out

The first key of a database has to be an admin's, and locks out everybody who has none: workers and clients too. The command then asks
first; -y answers yes, and without a terminal it is required.`,
		Example: `  kagzi key create ada --role admin --output-file ~/.config/kagzi/ada.key
  KAGZI_API_KEY=$(kagzi key create shop --role worker --namespace shop --queue 'orders*' --expires 90d)
  kagzi key create root --role admin --db default`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			key, err := o.key(args[0], e.now())
			if err != nil {
				return err
			}
			return e.runNear(cmd, &o.near, true, func(ctx context.Context, c *client) error {
				return runKeyCreate(ctx, c, o, key)
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.role, "role", "", "admin, operator, client, worker or viewer")
	f.StringSliceVarP(&o.namespaces, "namespace", "n", nil, "namespaces that the key is for; may be repeated")
	f.StringSliceVar(&o.queues, "queue", nil,
		"queues that a worker with this key may serve, such as 'orders*'; may be repeated")
	f.StringSliceVar(&o.types, "type", nil, "workflow types that a worker with this key may work on; may be repeated")
	f.StringVar(&o.expires, "expires", "",
		"when the key ends to be valid: 90d, 2027-01-31, 2027-01-31T12:00:00Z (default: never)")
	f.StringVar(&o.file, "output-file", "", "write the secret to this new file, for its owner only, instead of stdout")
	f.BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	o.near.register(cmd)
	for flag, from := range map[string]completer{
		"namespace": completeNamespaces, "queue": completeQueues, "type": completeTypes} {
		_ = cmd.RegisterFlagCompletionFunc(flag, e.complete(from)) // these fail only for a flag that is not there
	}
	_ = cmd.RegisterFlagCompletionFunc("role", words(keyRoles...))
	return cmd
}

// key is what the flags ask for. What is checked here could not be said as well by the server.
func (o *keyCreateOptions) key(name string, now time.Time) (*kagziv1.Key, error) {
	role, known := kagziv1.KeyRole_value["KEY_ROLE_"+strings.ToUpper(o.role)]
	switch {
	case o.role == "":
		return nil, usagef("--role is missing: want %s", strings.Join(keyRoles, ", "))
	case !known || role == 0:
		return nil, usagef("--role %q: want %s", o.role, strings.Join(keyRoles, ", "))
	case o.role != "admin" && len(o.namespaces) == 0:
		return nil, usagef("--namespace is missing: only an admin's key is for all namespaces")
	case o.role != "worker" && len(o.queues)+len(o.types) > 0:
		return nil, usagef("--queue and --type are for the role worker only")
	}
	key := &kagziv1.Key{Name: name, Role: kagziv1.KeyRole(role), Namespaces: o.namespaces, TaskQueues: o.queues,
		WorkflowTypes: o.types}
	if o.expires != "" {
		at, err := expiry(o.expires, now)
		if err != nil {
			return nil, err
		}
		key.ExpiresAt = timestamppb.New(at)
	}
	return key, nil
}

// expiry is the moment that --expires names: a distance from now, or a time.
func expiry(text string, now time.Time) (time.Time, error) {
	if d, err := filter.ParseDuration(text); err == nil && d > 0 {
		return now.Add(d), nil
	}
	at, err := filter.ParseTime(text, now)
	switch {
	case err != nil:
		return at, usagef("--expires %q: want 90d, 2027-01-31 or 2027-01-31T12:00:00Z", text)
	case !at.After(now):
		return at, usagef("--expires %q: this is over; want a time to come", text)
	}
	return at, nil
}

func runKeyCreate(ctx context.Context, c *client, o *keyCreateOptions, key *kagziv1.Key) error {
	first, err := c.firstKey(ctx)
	if err != nil {
		return err
	}
	if first {
		if err := o.confirmFirst(ctx, c, key); err != nil {
			return err
		}
	}
	file, err := newSecretFile(o.file) // first: a secret that cannot be kept is better not made
	if err != nil {
		return err
	}
	answer, err := c.CreateKey(ctx, &kagziv1.CreateKeyRequest{Key: key})
	if err != nil {
		return errors.Join(err, file.drop())
	}
	if err := file.keep(answer.GetSecret()); err != nil {
		return o.lost(err, answer.GetKey(), first)
	}
	if err := c.printNewKey(answer, o.file); err != nil {
		return err
	}
	c.out.say("made %s", c.keyLine(answer.GetKey()))
	switch {
	case o.file != "":
		c.out.say("its secret is in %s; use it with --api-key-file %s", o.file, o.file)
	case c.out.format == "table":
		c.out.say(
			"its secret stands above and is kept nowhere: put it in a file for --api-key-file, or in KAGZI_API_KEY")
	}
	if first {
		c.out.say(
			"every call needs a key from now on; workers and clients get theirs with: kagzi key create NAME --role worker --namespace default")
	}
	return nil
}

// lost is a key that was made and whose secret nobody has: what to say to be rid of it, and to get
// in again where it was the first.
func (o *keyCreateOptions) lost(err error, key *kagziv1.Key, first bool) error {
	what := fmt.Errorf("the key was made, but its secret could not be kept: %w", err)
	switch {
	case o.near.db != "":
		return fmt.Errorf("%w; say: kagzi key revoke %s, with the same --db", what, key.GetKeyId())
	case first:
		return fmt.Errorf(
			"%w; every call needs a key now, and nobody has one: stop a server that has the database to itself, "+
				"and say beside it: kagzi key revoke %s --db default", what, key.GetKeyId())
	}
	return fmt.Errorf("%w; say: kagzi key revoke %s", what, key.GetKeyId())
}

// firstKey says whether the database has no key yet. A server that cannot say has none.
func (c *client) firstKey(ctx context.Context) (bool, error) {
	me, err := c.WhoAmI(ctx, &kagziv1.WhoAmIRequest{})
	if status.Code(err) == codes.Unimplemented {
		return false, nil // it has no keys either, and will say so
	}
	return !me.GetKeysRequired(), err
}

// confirmFirst asks before everybody else is locked out.
func (o *keyCreateOptions) confirmFirst(ctx context.Context, c *client, key *kagziv1.Key) error {
	if o.role != "admin" || len(o.namespaces) > 0 {
		return usagef("the first key has to be an admin's for all namespaces: kagzi key create %s --role admin",
			key.GetName())
	}
	if o.yes {
		return nil
	}
	if err := c.out.askable(
		"-y goes ahead without asking: the first key locks out everybody who has none, workers and clients too"); err !=
		nil {
		return err
	}
	return c.out.ask(ctx,
		"this is the first key: from now on every call needs one, and whoever has none is locked out, workers and clients too. Go ahead?")
}

// printNewKey prints the secret alone, so that a shell can take it, or both as a document. What is
// in a file is not printed.
func (c *client) printNewKey(answer *kagziv1.CreateKeyResponse, file string) error {
	secret, where := render.Field{Name: "secret", Value: answer.GetSecret()}, render.Field{Name: "secret_file"}
	if file != "" {
		secret.Value, where.Value = nil, file
	}
	return c.out.print(result{
		human: func() []string {
			if file != "" {
				return nil
			}
			return []string{render.Safe(answer.GetSecret())}
		},
		document: render.Object{{Name: "key", Value: render.Document(answer.GetKey())}, secret, where},
	})
}

// secretFile is a file that a secret is to be written to. A nil one keeps nothing.
type secretFile struct{ f *os.File }

// newSecretFile makes a file that was not there before, for its owner only; nil without a name.
func newSecretFile(name string) (*secretFile, error) {
	if name == "" {
		return nil, nil
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil, usagef("--output-file %s is there already; choose another name, or remove it", name)
	}
	if err != nil {
		return nil, &usageError{err: fmt.Errorf("--output-file: %w", err)}
	}
	s, err := reserve(f)
	if err != nil {
		return nil, fmt.Errorf("--output-file: %w; no key was made", err)
	}
	return s, nil
}

// secretRoom is more than a secret takes, in bytes.
const secretRoom = 1 << 10

// reserve makes room for a secret on the disk: when a key is made, it is too late to find that there is none.
func reserve(f *os.File) (*secretFile, error) {
	s := &secretFile{f}
	if _, err := f.Write(make([]byte, secretRoom)); err != nil {
		return nil, errors.Join(err, s.drop())
	}
	if err := f.Sync(); err != nil {
		return nil, errors.Join(err, s.drop())
	}
	return s, nil
}

// keep writes the secret, so that it is on the disk.
func (s *secretFile) keep(secret string) error {
	if s == nil {
		return nil
	}
	secret += "\n"
	_, err := s.f.WriteAt([]byte(secret), 0)
	return errors.Join(err, s.f.Truncate(int64(len(secret))), s.f.Sync(), s.f.Close())
}

// drop removes the file.
func (s *secretFile) drop() error {
	if s == nil {
		return nil
	}
	return errors.Join(s.f.Close(), os.Remove(s.f.Name()))
}
