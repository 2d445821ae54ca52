package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/grpc/status"

	"github.com/kagzi/kagzi/sdk/profile"
	"github.com/kagzi/kagzi/tui"
	"github.com/kagzi/kagzi/tui/cli/internal/flagvalue"
	"github.com/kagzi/kagzi/tui/cli/internal/spelling"
	"github.com/kagzi/kagzi/tui/model"
	"github.com/kagzi/kagzi/tui/render"
)

// defaultCallTimeout limits one call if --timeout is not given.
const defaultCallTimeout = 10 * time.Second

// ClientFlags are the flags of every command that talks to a server. Call Register, then Resolve
// before use.
type ClientFlags struct {
	// Profile is how to reach the server. Resolve fills what no flag sets from the environment, the
	// profile in kagzi.toml and the defaults.
	profile.Profile
	Output  string // table, json, jsonl or yaml
	Time    string // relative or iso
	NoColor bool
	Timeout time.Duration // for the whole command; 0 means 10 s per call

	tls     bool   // the flag --tls
	timeout string // Timeout as given
}

// Register defines the flags in a flag set.
func (f *ClientFlags) Register(fs *pflag.FlagSet) {
	f.RegisterReach(fs)
	fs.VarP(choice(&f.Output, "table", "json", "jsonl", "yaml"), "output", "o", "table, json, jsonl or yaml")
	fs.Var(choice(&f.Time, "relative", "iso"), "time", "time format in tables: relative or iso")
	fs.BoolVar(&f.NoColor, "no-color", false, "disable colours, like NO_COLOR")
	fs.Var(flagvalue.GivenDuration(&f.Timeout, &f.timeout), "timeout",
		"time limit (default 10s per call; none for watch and wait)")
}

// RegisterReach defines only the flags for reaching a server. Said returns their values.
func (f *ClientFlags) RegisterReach(fs *pflag.FlagSet) {
	fs.StringVar(&f.Name, "profile", "",
		"use the settings of [profile.NAME] in kagzi.toml; off ignores the file")
	fs.StringVar(&f.Address, "address", profile.DefaultAddress,
		"server address, host:port, or several separated by commas: the first that answers")
	fs.StringVarP(&f.Namespace, "namespace", "n", profile.DefaultNamespace, "namespace to use")
	fs.StringVar((*string)(&f.APIKey), "api-key", "",
		"API key; prefer KAGZI_API_KEY or --api-key-file, which process lists do not show")
	fs.StringVar(&f.APIKeyFile, "api-key-file", "", "file with the API key")
	fs.BoolVar(&f.tls, "tls", false, "use TLS")
	fs.StringVar(&f.TLSCA, "tls-ca", "", "CA certificates to trust instead of the system's")
	fs.StringVar(&f.TLSCert, "tls-client-cert", "", "file with the client certificate")
	fs.StringVar(&f.TLSKey, "tls-client-key", "", "file with the client certificate's private key")
	fs.StringVar(&f.TLSServerName, "tls-server-name", "", "host name expected in the server's certificate")
}

// Resolve fills what was not given: how to reach the server from find (profile.Resolve), the rest
// from KAGZI_ variables, read with lookup (os.LookupEnv).
func (f *ClientFlags) Resolve(fs *pflag.FlagSet, lookup func(string) (string, bool),
	find func(profile.Profile) (profile.Profile, error)) error {
	for _, name := range []string{"output", "time", "no-color", "timeout"} {
		flag, variable := fs.Lookup(name), profile.Variable(name)
		value, ok := lookup(variable)
		if flag == nil || flag.Changed || !ok || value == "" {
			continue
		}
		if err := flag.Value.Set(value); err != nil {
			return usagef("%s=%q: %w", variable, value, err)
		}
	}
	found, err := find(f.Said(fs.Changed))
	if err != nil {
		return &usageError{err: err}
	}
	f.Profile = found
	return nil
}

// Said returns the settings from the flags that were given.
func (f *ClientFlags) Said(given func(string) bool) profile.Profile {
	said := profile.Profile{Name: f.Name}
	if given("tls") {
		said.TLS = &f.tls
	}
	for name, text := range map[string]struct{ from, to *string }{
		"address": {&f.Address, &said.Address}, "namespace": {&f.Namespace, &said.Namespace},
		"api-key":      {(*string)(&f.APIKey), (*string)(&said.APIKey)},
		"api-key-file": {&f.APIKeyFile, &said.APIKeyFile}, "tls-ca": {&f.TLSCA, &said.TLSCA},
		"tls-client-cert": {&f.TLSCert, &said.TLSCert},
		"tls-client-key":  {&f.TLSKey, &said.TLSKey}, "tls-server-name": {&f.TLSServerName, &said.TLSServerName},
	} {
		if given(name) {
			*text.to = *text.from
		}
	}
	return said
}

// DialOptions returns how to reach the server. Errors are about files of keys and certificates.
func (f *ClientFlags) DialOptions() (tui.DialOptions, error) {
	key, err := f.Key()
	if err != nil {
		return tui.DialOptions{}, err
	}
	o := tui.DialOptions{Address: f.Address, APIKey: string(key)}
	if o.TLS, err = f.TLSConfig(); err != nil {
		return o, err
	}
	if f.Timeout == 0 {
		o.CallTimeout = defaultCallTimeout
	}
	return o, nil
}

// client is what a command works with: the server, the output and the clock.
type client struct {
	tui.API
	namespace string
	address   string
	timeout   time.Duration
	given     string     // timeout as given
	query     string     // the filter of -q, as given
	home      model.Home // the default target of printed command lines
	out       *output
	typed     func(field string) string // what was typed for a field of the request
	now       func() time.Time
	newID     func() string
}

// view returns how this command shows values now.
func (c *client) view() render.View {
	return render.View{Now: c.now(), ISO: c.out.iso, Payloads: linePayload}
}

// linePayload is the number of payload bytes shown in a table row.
const linePayload = 200

// register adds the flags of every client command to a group.
func (e *env) register(cmd *cobra.Command) {
	e.flags.Register(cmd.PersistentFlags())
	// fails only if the flag does not exist
	_ = cmd.RegisterFlagCompletionFunc("namespace", e.complete(completeNamespaces))
	_ = cmd.RegisterFlagCompletionFunc("profile", completeProfiles)
	_ = cmd.RegisterFlagCompletionFunc("output", words("table", "json", "jsonl", "yaml"))
	_ = cmd.RegisterFlagCompletionFunc("time", words("relative", "iso"))
}

// run connects, works, and adds the server's address to errors.
func (e *env) run(cmd *cobra.Command, work func(context.Context, *client) error) error {
	c, closeConn, err := e.connect(cmd)
	if err != nil {
		return err
	}
	defer func() { _ = closeConn() }() // no call is in flight
	for _, warning := range e.flags.Warnings {
		c.out.say("warning: %s", warning)
	}
	return c.work(cmd.Context(), work)
}

// work runs a command's work within its time limit.
func (c *client) work(ctx context.Context, work func(context.Context, *client) error) error {
	whole := ctx
	if c.timeout > 0 {
		limited, cancel := context.WithTimeout(ctx, c.timeout)
		defer cancel()
		ctx = limited
	}
	err := work(ctx, c)
	if err != nil && c.timeout > 0 && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &timeoutError{limit: c.given, err: err, hint: c.whyOpen(whole, err)}
	}
	return c.placed(err)
}

func (e *env) connect(cmd *cobra.Command) (*client, func() error, error) {
	home := e.home(cmd.Flags())
	if err := e.resolve(cmd); err != nil {
		return nil, nil, err
	}
	api, closeConn, err := e.reach()
	if err != nil {
		return nil, nil, err
	}
	c := e.client(cmd, api, e.flags.Address)
	c.home = home
	return c, closeConn, nil
}

// resolve completes the flags.
func (e *env) resolve(cmd *cobra.Command) error {
	return e.flags.Resolve(cmd.Flags(), e.lookup, e.find)
}

// reach prepares a connection to the server.
func (e *env) reach() (tui.API, func() error, error) {
	options, err := e.flags.DialOptions()
	if err != nil {
		return nil, nil, &usageError{err: err}
	}
	options.UserAgent = "kagzi/" + e.version
	api, closeConn, err := e.dial(options)
	switch {
	case errors.Is(err, tui.ErrInTheClear):
		return nil, nil, inTheClear(e.flags.Address)
	case err != nil:
		return nil, nil, &usageError{err: err}
	}
	return api, closeConn, nil
}

// inTheClear refuses to send a key unencrypted and tells what to do.
func inTheClear(address string) error {
	err := usagef("refusing to send the API key to %s unencrypted", address)
	err.hint = []string{
		"use --tls, or --tls-ca ca.crt for a private CA",
		"to reach a server without TLS, tunnel to it and use 127.0.0.1",
	}
	return err
}

// client returns what a command works with on a connection.
func (e *env) client(cmd *cobra.Command, api tui.API, address string) *client {
	f := e.flags
	query := ""
	if flag := cmd.Flags().Lookup("query"); flag != nil {
		query = flag.Value.String()
	}
	return &client{
		API: api, namespace: f.Namespace, address: address, timeout: f.Timeout, given: f.timeout, query: query,
		out: newOutput(e.streams(cmd), f, e.lookup), now: e.now, newID: e.newID,
		typed: func(field string) string { return spelling.Typed(cmd, field) },
	}
}

// placed adds the server's address to an error of a call.
func (c *client) placed(err error) error {
	var call *callError
	if errors.As(err, &call) {
		call.address, call.namespace, call.query, call.typed = c.address, c.namespace, c.query, c.typed
		return err
	}
	if _, ok := status.FromError(err); ok && err != nil {
		return &callError{address: c.address, namespace: c.namespace, query: c.query, err: err, typed: c.typed}
	}
	return err
}

// choiceValue is a flag that takes one of a few words; the first is the default.
type choiceValue struct {
	value *string
	words []string
}

func choice(value *string, words ...string) *choiceValue {
	*value = words[0]
	return &choiceValue{value, words}
}

func (c *choiceValue) String() string { return *c.value }
func (c *choiceValue) Type() string   { return strings.Join(c.words, "|") }

func (c *choiceValue) Set(s string) error {
	for _, word := range c.words {
		if strings.EqualFold(s, word) { // tables show ONLINE for online
			*c.value = word
			return nil
		}
	}
	return fmt.Errorf("want %s or %s", strings.Join(c.words[:len(c.words)-1], ", "), c.words[len(c.words)-1])
}

// nearFlags let a command open a database directly, without a server or a key.
type nearFlags struct{ db string }

// ownDatabase is the value of --db for the database of this machine's server settings.
const ownDatabase = "default"

func (f *nearFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.db, "db", "",
		"open this database directly, without a server or a key: sqlite:FILE, postgres://…, or default for the server settings' database")
	// fails only if the flag does not exist
	_ = cmd.RegisterFlagCompletionFunc("db", words(ownDatabase, "sqlite:", "postgres://"))
}

// runNear is run on the database of --db, or run if --db is not given. create makes a missing
// database.
func (e *env) runNear(cmd *cobra.Command, f *nearFlags, create bool, work func(context.Context, *client) error) error {
	if f.db == "" {
		return e.run(cmd, work)
	}
	for _, name := range []string{"address", "profile", "api-key", "api-key-file"} {
		if cmd.Flags().Changed(name) {
			return usagef("--db and --%s cannot be given together: --db uses no server", name)
		}
	}
	if err := e.resolve(cmd); err != nil {
		return err
	}
	url := f.db
	if url == ownDatabase {
		url = ""
	}
	if e.local.Open == nil {
		return errors.New("this program cannot open databases; use --address to reach a server")
	}
	near, err := e.local.Open(cmd.Context(), url, create)
	if err != nil {
		return ifHeld(err)
	}
	api, closeConn, err := e.dial(tui.DialOptions{
		Address: "the database", Dialer: near.Dial, CallTimeout: defaultCallTimeout})
	if err != nil {
		return errors.Join(err, near.Close())
	}
	err = e.client(cmd, api, near.Database).work(cmd.Context(), work)
	return errors.Join(err, closeConn(), near.Close())
}

// heldError reports that a server has the database locked. The exit code is that of the error.
type heldError struct{ error }

func (e *heldError) Unwrap() error { return e.error }

// ifHeld wraps such an error of opening a database, and returns others as they are.
func ifHeld(err error) error {
	if own, ok := errors.AsType[interface {
		error
		ExitCode() int
	}](err); ok && own.ExitCode() == ExitConflict && strings.Contains(err.Error(), "is in use by ") {
		return &heldError{err}
	}
	return err
}
