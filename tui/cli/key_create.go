package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/proto/query"
	"github.com/kagzi/kagzi/tui/render"
)

type keyCreateOptions struct {
	near       nearFlags
	role       string
	namespaces []string
	queues     []string
	types      []string
	workerIDs  []string
	expires    string
	file       string
	yes        bool
}

var keyRoles = []string{"admin", "operator", "client", "worker", "viewer"}

func newKeyCreate(e *env, o *keyCreateOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "create NAME --role ROLE",
		Short: "Create a key; its secret is shown only once",
		Long: `Create a key. Only its secret is printed on stdout, and only now: it is not stored.

Roles:

  admin      everything, including keys and namespaces; all namespaces unless --namespace is given
  operator   view and control the runs, workers and schedules of its namespaces
  client     start, signal, read and cancel runs of its namespaces
  worker     work on the queues and types of --queue and --type, with the ids of --worker-id
             ("*" matches any text; default: all)
  viewer     read everything except payloads

The first key must be an admin's. From then on clients and workers without a key are refused, so the
command asks for confirmation; -y skips it, and is required without a terminal.`,
		Example: `  kagzi key create ada --role admin --output-file ~/.config/kagzi/ada.key
  KAGZI_API_KEY=$(kagzi key create shop --role worker --namespace shop --queue 'orders*' --expires 90d)
  kagzi key create root --role admin --db default`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			key, err := o.key(args[0], e.now())
			if err != nil {
				return err
			}
			signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // a stdout that is gone is an error: see takeBack
			return e.runNear(cmd, &o.near, true, func(ctx context.Context, c *client) error {
				return runKeyCreate(ctx, c, o, key)
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.role, "role", "", "admin, operator, client, worker or viewer")
	f.StringSliceVarP(&o.namespaces, "namespace", "n", nil, "namespaces of the key; may be repeated")
	f.StringSliceVar(&o.queues, "queue", nil,
		"queues a worker with this key may serve, such as 'orders*'; may be repeated")
	f.StringSliceVar(&o.types, "type", nil, "workflow types a worker with this key may run; may be repeated")
	f.StringSliceVar(&o.workerIDs, "worker-id", nil,
		"ids a worker with this key may have, such as worker-002; may be repeated")
	f.StringVar(&o.expires, "expires", "",
		"when the key expires: 90d, 2027-01-31, 2027-01-31T12:00:00Z (default: never)")
	f.StringVar(&o.file, "output-file", "",
		"write the secret to this new file, readable by its owner only, instead of stdout")
	f.BoolVarP(&o.yes, "yes", "y", false, "do not ask for confirmation")
	o.near.register(cmd)
	for flag, from := range map[string]completer{
		"namespace": completeNamespaces, "queue": completeQueues, "type": completeTypes,
		"worker-id": completeWorkers} {
		_ = cmd.RegisterFlagCompletionFunc(flag, e.complete(from)) // fails only if the flag does not exist
	}
	_ = cmd.RegisterFlagCompletionFunc("role", words(keyRoles...))
	return cmd
}

// key returns the key that the flags describe. It checks only what the server could not report as
// well.
func (o *keyCreateOptions) key(name string, now time.Time) (*kagziv1.Key, error) {
	role, known := kagziv1.KeyRole_value["KEY_ROLE_"+strings.ToUpper(o.role)]
	switch {
	case o.role == "":
		return nil, usagef("--role is required: %s", strings.Join(keyRoles, ", "))
	case !known || role == 0:
		return nil, usagef("--role %q: must be %s", o.role, strings.Join(keyRoles, ", "))
	case o.role != "admin" && len(o.namespaces) == 0:
		return nil, usagef("--namespace is required: only an admin's key covers all namespaces")
	case o.role != "worker" && len(o.queues)+len(o.types)+len(o.workerIDs) > 0:
		return nil, usagef("--queue, --type and --worker-id need --role worker")
	}
	key := &kagziv1.Key{Name: name, Role: kagziv1.KeyRole(role), Namespaces: o.namespaces, TaskQueues: o.queues,
		WorkflowTypes: o.types, WorkerIds: o.workerIDs}
	if o.expires != "" {
		at, err := expiry(o.expires, now)
		if err != nil {
			return nil, err
		}
		key.ExpiresAt = timestamppb.New(at)
	}
	return key, nil
}

// expiry parses --expires: a duration from now, or a time.
func expiry(text string, now time.Time) (time.Time, error) {
	if d, err := query.ParseDuration(text); err == nil && d > 0 {
		return now.Add(d), nil
	}
	at, err := query.ParseTime(text, now)
	switch {
	case err != nil:
		return at, usagef("--expires %q: want 90d, 2027-01-31 or 2027-01-31T12:00:00Z", text)
	case !at.After(now):
		return at, usagef("--expires %q is in the past", text)
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
	file, err := newSecretFile(o.file) // first: without a place for the secret no key must be created
	if err != nil {
		return err
	}
	answer, err := c.CreateKey(ctx, &kagziv1.CreateKeyRequest{Key: key})
	if err != nil {
		return errors.Join(err, file.drop())
	}
	if err := file.keep(answer.GetSecret()); err != nil {
		return o.takeBack(ctx, c, err, answer, first)
	}
	if err := c.printNewKey(answer, o.file); err != nil {
		if o.file != "" {
			return err // the secret is kept
		}
		return o.takeBack(ctx, c, err, answer, first)
	}
	c.out.say("created %s", c.keyLine(answer.GetKey()))
	switch {
	case o.file != "":
		c.out.say("its secret is in %s; use it with: --api-key-file %s", o.file, o.file)
	case c.out.format == "table":
		c.out.say(
			"its secret is printed above and not stored: put it in a file for --api-key-file, or in KAGZI_API_KEY")
	}
	if first {
		c.out.say(
			"from now on every call needs a key; create more with: kagzi key create NAME --role worker --namespace default")
	}
	return nil
}

// takeBackLimit limits the time to revoke a key whose secret is lost.
const takeBackLimit = 10 * time.Second

// takeBack revokes a key that was created but whose secret could not be written: after a first key
// nobody could call the server.
func (o *keyCreateOptions) takeBack(ctx context.Context, c *client, lost error, made *kagziv1.CreateKeyResponse,
	first bool) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), takeBackLimit)
	defer cancel()
	if first && o.near.db == "" { // from now on every call needs a key, and this is the only one
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+made.GetSecret())
	}
	if _, err := c.RevokeKey(ctx, &kagziv1.RevokeKeyRequest{KeyId: made.GetKey().GetKeyId()}); err != nil {
		return errors.Join(o.lost(lost, made.GetKey(), first), fmt.Errorf("revoke it: %w", err))
	}
	return fmt.Errorf("the secret could not be written, so the key was revoked again: %w", lost)
}

// lost reports a key that was created but whose secret could not be written, with the command to
// revoke it. After a first key nobody could call the server.
func (o *keyCreateOptions) lost(err error, key *kagziv1.Key, first bool) error {
	what := fmt.Errorf("the key was made, but its secret could not be kept: %w", err)
	switch {
	case o.near.db != "":
		return fmt.Errorf("%w; revoke it: kagzi key revoke %s, with the same --db", what, key.GetKeyId())
	case first:
		return fmt.Errorf(
			"%w; every call now needs a key and nobody has one: on the database's host run: "+
				"kagzi key revoke %s --db default (stop the server first on SQLite)", what, key.GetKeyId())
	}
	return fmt.Errorf("%w; revoke it: kagzi key revoke %s", what, key.GetKeyId())
}

// firstKey reports whether the database has no key. A server that cannot tell has none.
func (c *client) firstKey(ctx context.Context) (bool, error) {
	me, err := c.WhoAmI(ctx, &kagziv1.WhoAmIRequest{})
	if status.Code(err) == codes.Unimplemented {
		return false, nil // it does not support keys and will say so
	}
	return !me.GetKeysRequired(), err
}

// confirmFirst asks before everyone without a key is locked out.
func (o *keyCreateOptions) confirmFirst(ctx context.Context, c *client, key *kagziv1.Key) error {
	if o.role != "admin" || len(o.namespaces) > 0 {
		return usagef("the first key must be an admin's for all namespaces: kagzi key create %s --role admin",
			key.GetName())
	}
	if o.yes {
		return nil
	}
	if err := c.out.askable(
		"-y skips the confirmation: after the first key, clients and workers without a key are refused"); err !=
		nil {
		return err
	}
	return c.out.ask(ctx,
		"this is the first key: from now on every call needs one, and clients and workers without a key are refused. Continue?")
}

// printNewKey prints the secret alone, so that a shell can capture it, or key and secret as a
// document. A secret in a file is not printed.
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

// secretFile is a new file for a secret. Methods of a nil secretFile do nothing.
type secretFile struct{ f *os.File }

// newSecretFile creates a file, readable by its owner only; nil without a name.
func newSecretFile(name string) (*secretFile, error) {
	if name == "" {
		return nil, nil
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil, usagef("--output-file %s already exists; remove it or choose another name", name)
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

// secretRoom is an upper bound for a secret's size in bytes.
const secretRoom = 1 << 10

// reserve allocates disk space for the secret, because after the key is created it is too late to
// find the disk full.
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

// keep writes the secret and syncs it to disk.
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
