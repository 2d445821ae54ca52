package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/proto/query"
	"github.com/kagzi/kagzi/tui/render"
)

func newKey(e *env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "key",
		Aliases: []string{"keys"},
		Short:   "Create, list and revoke API keys",
		Long: `Create, list and revoke API keys, which control who may do what.

A database without keys accepts every call. The first key must be an admin's; from then on every
call to every server of the database needs a valid key, from the file named by --api-key-file,
KAGZI_API_KEY_FILE or the profile, or from KAGZI_API_KEY.

With --db the commands open the database directly, without a server or a key: before a server is
exposed for the first time, or when the last admin's secret is lost. A server using an SQLite
database must be stopped for that.`,
	}
	cmd.AddCommand(newKeyCreate(e, &keyCreateOptions{}), newKeyList(e, &keyListOptions{}),
		newKeyRevoke(e, &keyRevokeOptions{}))
	e.register(cmd)
	return cmd
}

type keyListOptions struct {
	near    nearFlags
	page    pageFlags
	query   queryFlag[*kagziv1.Key]
	revoked bool
}

func newKeyList(e *env, o *keyListOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List keys, newest first; their secrets are not stored",
		Example: "  kagzi key list\n  kagzi key list --revoked --db default",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return e.runNear(cmd, &o.near, false, func(ctx context.Context, c *client) error {
				return runKeyList(ctx, c, o)
			})
		},
	}
	o.near.register(cmd)
	o.page.register(cmd)
	cmd.Flags().BoolVar(&o.revoked, "revoked", false, "show revoked keys too")
	o.query.list = &query.Keys
	o.query.register(cmd, `role = admin and (used = none or used < -30d)`)
	return cmd
}

func runKeyList(ctx context.Context, c *client, o *keyListOptions) error {
	limit, err := o.page.most()
	if err != nil {
		return err
	}
	if err := o.query.parse(c.now()); err != nil {
		return err
	}
	var keys []*kagziv1.Key
	tokens, err := c.eachKeys(ctx, o.query.text, limit, o.page.token, func(page []*kagziv1.Key) int {
		before := len(keys)
		for _, k := range o.query.selected(page) {
			if o.revoked || k.GetRevokedAt() == nil {
				keys = append(keys, k)
			}
		}
		return len(keys) - before
	})
	if err != nil {
		return err
	}
	none := "no keys: every call is allowed; create the first with: kagzi key create NAME --role admin"
	if o.query.q != nil {
		none = "no keys" + o.query.matching()
	}
	return c.out.printList(listed{
		name: "keys", noun: "keys",
		none:  none,
		items: render.Documents(keys),
		table: func() render.Table { return render.KeysTable(keys, c.view()) },
	}, tokens)
}

// eachKeys requests keys page by page; see returns how many it took.
func (c *client) eachKeys(ctx context.Context, query string, limit int, token string,
	see func([]*kagziv1.Key) int) (pageTokens, error) {
	return eachPage(limit, token, func(page *kagziv1.PageRequest) (int, *kagziv1.PageInfo, error) {
		answer, err := c.ListKeys(ctx, &kagziv1.ListKeysRequest{Page: page, Query: query})
		return see(answer.GetKeys()), answer.GetPage(), err
	})
}

// keys returns all keys that are not revoked.
func (c *client) keys(ctx context.Context) ([]*kagziv1.Key, error) {
	var keys []*kagziv1.Key
	_, err := c.eachKeys(ctx, "", -1, "", func(page []*kagziv1.Key) int {
		for _, k := range page {
			if k.GetRevokedAt() == nil {
				keys = append(keys, k)
			}
		}
		return len(page)
	})
	return keys, err
}

type keyRevokeOptions struct {
	near nearFlags
	yes  bool
}

func newKeyRevoke(e *env, o *keyRevokeOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "revoke ID|NAME",
		Short: "Revoke a key for good, on all servers within 5 s",
		Long: `Revoke a key for good, on all servers within 5 s: calls with it are refused, and its streams and
sessions end.

The command asks for confirmation; -y skips it, and is required without a terminal.`,
		Example:           "  kagzi key revoke ci-2025\n  kagzi key revoke 01936b2e-… -y",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: e.completeOne(completeKeys),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.runNear(cmd, &o.near, false, func(ctx context.Context, c *client) error {
				return runKeyRevoke(ctx, c, o, args[0])
			})
		},
	}
	o.near.register(cmd)
	cmd.Flags().BoolVarP(&o.yes, "yes", "y", false, "do not ask for confirmation")
	return cmd
}

func completeKeys(ctx context.Context, c *client, typed string) []cobra.Completion {
	keys, _ := c.keys(ctx) // on an error there is nothing to suggest
	var list []cobra.Completion
	for _, k := range keys {
		list = suggest(list, typed, k.GetName(), render.KeyRole(k.GetRole()))
	}
	return list
}

func runKeyRevoke(ctx context.Context, c *client, o *keyRevokeOptions, named string) error {
	if !o.yes {
		if err := c.out.askable("-y skips the confirmation"); err != nil {
			return err
		}
	}
	keys, err := c.keys(ctx)
	if err != nil {
		return err
	}
	key, err := keyNamed(keys, named)
	if err != nil {
		return err
	}
	if !o.yes {
		me, err := c.WhoAmI(ctx, &kagziv1.WhoAmIRequest{})
		if err != nil {
			return err
		}
		if err := c.out.ask(ctx, c.revokeQuestion(key, me, len(keys))); err != nil {
			return err
		}
	}
	answer, err := c.RevokeKey(ctx, &kagziv1.RevokeKeyRequest{KeyId: key.GetKeyId()})
	if err != nil {
		return err
	}
	return c.out.print(result{
		human: func() []string {
			return []string{render.Safe(key.GetKeyId()) + "  " + c.out.paint("REVOKED", render.Stopped) + "  " +
				render.Safe(key.GetName())}
		},
		document: render.Document(answer),
	})
}

// keyNamed returns the key with an id, else with a name, else the only one whose id begins so.
func keyNamed(keys []*kagziv1.Key, named string) (*kagziv1.Key, error) {
	var found *kagziv1.Key
	var short []string
	for _, k := range keys {
		switch {
		case k.GetKeyId() == named:
			return k, nil
		case k.GetName() == named:
			found = k
		case len(named) >= minShortID && strings.HasPrefix(k.GetKeyId(), strings.ToLower(named)):
			short = append(short, k.GetKeyId())
		}
	}
	switch {
	case found != nil:
		return found, nil
	case len(short) == 1:
		return keyNamed(keys, short[0])
	case len(short) > 1:
		return nil, status.Errorf(codes.InvalidArgument, "%s begins the ids of several keys; give more characters: %s",
			named, strings.Join(short[:min(len(short), 5)], ", "))
	}
	return nil, status.Errorf(codes.NotFound, "no valid key has the id or name %s; see: kagzi key list", named)
}

// minShortID is how many characters of an id suffice if no other begins so.
const minShortID = 8

// revokeQuestion tells the consequences of revoking a key.
func (c *client) revokeQuestion(key *kagziv1.Key, me *kagziv1.WhoAmIResponse, keys int) string {
	question := fmt.Sprintf("revoke the %s's key %s (%s)", render.KeyRole(key.GetRole()), key.GetName(), key.GetKeyId())
	if used := key.GetLastUsedAt(); used != nil {
		question += ", last used " + render.Ago(c.now().Sub(used.AsTime()))
	}
	switch {
	case keys == 1:
		return question + "? It is the last key: afterwards every call is allowed without a key. Continue?"
	case key.GetKeyId() == me.GetKey().GetKeyId():
		return question + "? It is the key you are using: you will be locked out. Continue?"
	}
	return question + "?"
}

// keyLine returns a key as one line of raw text.
func (c *client) keyLine(k *kagziv1.Key) string {
	line := fmt.Sprintf("key %s (%s), role %s", k.GetName(), k.GetKeyId(), render.KeyRole(k.GetRole()))
	for _, scope := range render.KeyScope(k) {
		line += ", " + scope
	}
	if at := k.GetExpiresAt(); at != nil {
		line += ", expires " + at.AsTime().UTC().Format(time.RFC3339)
	}
	return line
}
