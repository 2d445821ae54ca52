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

// defaultCallTimeout bounds one call when --timeout is not given.
const defaultCallTimeout = 10 * time.Second

// ClientFlags are the flags of every command that talks to a server. Register them, then Resolve before use.
type ClientFlags struct {
	// Profile is how to reach the server. Resolve fills what no flag says from the environment, the
	// profile of kagzi.toml and the defaults.
	profile.Profile
	Output  string // table, json, jsonl or yaml
	Time    string // relative or iso
	NoColor bool
	Timeout time.Duration // of the whole command; 0 means the default of 10 s a call

	tls     bool   // the flag --tls
	timeout string // Timeout as it was given
}

// Register defines the flags in a flag set.
func (f *ClientFlags) Register(fs *pflag.FlagSet) {
	f.RegisterReach(fs)
	fs.VarP(choice(&f.Output, "table", "json", "jsonl", "yaml"), "output", "o", "table, json, jsonl or yaml")
	fs.Var(choice(&f.Time, "relative", "iso"), "time", "how tables show times: relative or iso")
	fs.BoolVar(&f.NoColor, "no-color", false, "no colours, as with NO_COLOR")
	fs.Var(flagvalue.GivenDuration(&f.Timeout, &f.timeout), "timeout",
		"give up after this long (default 10s for a call; no limit for watch and wait)")
}

// RegisterReach defines only those flags that say how to reach a server. Said is what they say.
func (f *ClientFlags) RegisterReach(fs *pflag.FlagSet) {
	fs.StringVar(&f.Name, "profile", "",
		"settings to go by, of the table [profile.NAME] in kagzi.toml; off reads no file")
	fs.StringVar(&f.Address, "address", profile.DefaultAddress, "host:port of the server")
	fs.StringVarP(&f.Namespace, "namespace", "n", profile.DefaultNamespace, "namespace to work in")
	fs.StringVar((*string)(&f.APIKey), "api-key", "",
		"key to authenticate with; better given as KAGZI_API_KEY or in a file, which no process list shows")
	fs.StringVar(&f.APIKeyFile, "api-key-file", "", "file that holds the key")
	fs.BoolVar(&f.tls, "tls", false, "encrypt the connection")
	fs.StringVar(&f.TLSCA, "tls-ca", "", "file of the authorities to trust instead of the system's")
	fs.StringVar(&f.TLSCert, "tls-client-cert", "", "file of the certificate to show the server")
	fs.StringVar(&f.TLSKey, "tls-client-key", "", "file of that certificate's key")
	fs.StringVar(&f.TLSServerName, "tls-server-name", "", "name to expect in the server's certificate")
}

// Resolve fills what was not given: how to reach the server from the environment and kagzi.toml, as
// find does (profile.Resolve), and the rest from the variables KAGZI_…, which lookup finds
// (os.LookupEnv).
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

// Said is what the flags say that were given.
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

// DialOptions say how to reach the server that the flags name. The errors are about the files of keys and certificates.
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

// client is what a command works with: the server, where its output goes, what time it is.
type client struct {
	tui.API
	namespace string
	address   string
	timeout   time.Duration
	given     string     // timeout as it was given
	query     string     // the filter of -q, as it was given
	home      model.Home // where a command line goes that names no place
	out       *output
	typed     func(field string) string // what was typed for a field of a request
	now       func() time.Time
	newID     func() string
}

// view is how this command shows values now.
func (c *client) view() render.View {
	return render.View{Now: c.now(), ISO: c.out.iso, Payloads: linePayload}
}

// linePayload is how much of a payload a line of a table takes.
const linePayload = 200

// register adds the flags of every client command to a group.
func (e *env) register(cmd *cobra.Command) {
	e.flags.Register(cmd.PersistentFlags())
	// fails only for a flag that is not there
	_ = cmd.RegisterFlagCompletionFunc("namespace", e.complete(completeNamespaces))
	_ = cmd.RegisterFlagCompletionFunc("profile", completeProfiles)
	_ = cmd.RegisterFlagCompletionFunc("output", words("table", "json", "jsonl", "yaml"))
	_ = cmd.RegisterFlagCompletionFunc("time", words("relative", "iso"))
}

// run connects, works, and says of an error where it came from.
func (e *env) run(cmd *cobra.Command, work func(context.Context, *client) error) error {
	c, closeConn, err := e.connect(cmd)
	if err != nil {
		return err
	}
	defer func() { _ = closeConn() }() // nothing is left in flight
	for _, warning := range e.flags.Warnings {
		c.out.say("warning: %s", warning)
	}
	return c.work(cmd.Context(), work)
}

// work does a command's work within its time.
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

// resolve makes the flags whole.
func (e *env) resolve(cmd *cobra.Command) error {
	return e.flags.Resolve(cmd.Flags(), e.lookup, e.find)
}

// reach prepares a connection to the server that the flags name.
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

// inTheClear says how to keep a key secret on its way.
func inTheClear(address string) error {
	err := usagef("the API key would go to %s unencrypted", address)
	err.hint = []string{
		"encrypt the connection with --tls, or --tls-ca ca.crt for an authority of your own",
		"a server without TLS that other machines reach is best reached through a tunnel to 127.0.0.1",
	}
	return err
}

// client is what a command works with once there is a connection.
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

// placed adds the server's address to an error that it, or the way to it, gave.
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

// nearFlags let a command work on a database itself, without a server and without a key.
type nearFlags struct{ db string }

// ownDatabase is what --db says for the database of this machine's settings.
const ownDatabase = "default"

func (f *nearFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.db, "db", "",
		"work on this database itself, without a server and without a key: sqlite:FILE, postgres://…, or default for that of the server's settings")
	// fails only for a flag that is not there
	_ = cmd.RegisterFlagCompletionFunc("db", words(ownDatabase, "sqlite:", "postgres://"))
}

// runNear is run on the database that --db names, and as run without it. With create a database
// that is not there yet is made.
func (e *env) runNear(cmd *cobra.Command, f *nearFlags, create bool, work func(context.Context, *client) error) error {
	if f.db == "" {
		return e.run(cmd, work)
	}
	for _, name := range []string{"address", "profile", "api-key", "api-key-file"} {
		if cmd.Flags().Changed(name) {
			return usagef("--db and --%s cannot be given together: with --db no server is asked", name)
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
		return errors.New("this program cannot open a database; ask a server with --address")
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

// heldError says that a server has the database to itself, and what to do then. Its exit code is that of the error.
type heldError struct{ error }

func (e *heldError) Unwrap() error { return e.error }

// ifHeld makes an error of opening a database that a server has to itself one that says what to do.
func ifHeld(err error) error {
	if own, ok := errors.AsType[interface {
		error
		ExitCode() int
	}](err); ok && own.ExitCode() == ExitConflict && strings.Contains(err.Error(), "is in use by ") {
		return &heldError{err}
	}
	return err
}
