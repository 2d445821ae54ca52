package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/grpc/status"

	"github.com/kagzi/kagzi/tui"
	"github.com/kagzi/kagzi/tui/render"
)

// defaultCallTimeout bounds one call when --timeout is not given.
const defaultCallTimeout = 10 * time.Second

// ClientFlags are the flags of every command that talks to a server. Register them, then Resolve before use.
type ClientFlags struct {
	Address   string
	Namespace string
	APIKey    string
	TLS       tui.TLSOptions
	Output    string // table, json, jsonl or yaml
	Time      string // relative or iso
	NoColor   bool
	Timeout   time.Duration // of the whole command; 0 means the default of 10 s a call
}

// Register defines the flags in a flag set.
func (f *ClientFlags) Register(fs *pflag.FlagSet) {
	fs.StringVar(&f.Address, "address", tui.DefaultAddress, "host:port of the server")
	fs.StringVarP(&f.Namespace, "namespace", "n", "default", "namespace to work in")
	fs.StringVar(&f.APIKey, "api-key", "", "key to authenticate with; better given as KAGZI_API_KEY, which no process list shows")
	fs.BoolVar(&f.TLS.Enabled, "tls", false, "encrypt the connection")
	fs.StringVar(&f.TLS.CAFile, "tls-ca", "", "file of the authorities to trust instead of the system's")
	fs.StringVar(&f.TLS.CertFile, "tls-client-cert", "", "file of the certificate to show the server")
	fs.StringVar(&f.TLS.KeyFile, "tls-client-key", "", "file of that certificate's key")
	fs.StringVar(&f.TLS.ServerName, "tls-server-name", "", "name to expect in the server's certificate")
	fs.VarP(choice(&f.Output, "table", "json", "jsonl", "yaml"), "output", "o", "table, json, jsonl or yaml")
	fs.Var(choice(&f.Time, "relative", "iso"), "time", "how tables show times: relative or iso")
	fs.BoolVar(&f.NoColor, "no-color", false, "no colours, as with NO_COLOR")
	fs.Var(duration(&f.Timeout), "timeout", "give up after this long (default 10s for a call; no limit for watch and wait)")
}

// setting looks a flag's value up in one place; ok is false when the place says nothing about it.
type setting func(flag string) (value, source string, ok bool)

// environment finds flags in KAGZI_ADDRESS and the like.
func environment(lookup func(string) (string, bool)) setting {
	return func(flag string) (string, string, bool) {
		name := "KAGZI_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
		value, ok := lookup(name)
		return value, name, ok && value != ""
	}
}

// Resolve fills the flags that were not given from the environment variables KAGZI_…; lookup is os.LookupEnv.
func (f *ClientFlags) Resolve(fs *pflag.FlagSet, lookup func(string) (string, bool)) error {
	return f.resolve(fs, environment(lookup))
}

// resolve asks the settings in their order for each flag that was not given; the first answer holds.
func (f *ClientFlags) resolve(fs *pflag.FlagSet, settings ...setting) error {
	known := pflag.NewFlagSet("", pflag.ContinueOnError)
	(&ClientFlags{}).Register(known)
	var wrong error
	known.VisitAll(func(k *pflag.Flag) {
		flag := fs.Lookup(k.Name)
		if flag == nil || flag.Changed || wrong != nil {
			return
		}
		for _, from := range settings {
			value, source, ok := from(flag.Name)
			if !ok {
				continue
			}
			if err := flag.Value.Set(value); err != nil {
				wrong = usagef("%s=%q: %w", source, value, err)
			}
			return
		}
	})
	return wrong
}

// DialOptions say how to reach the server that the flags name.
func (f *ClientFlags) DialOptions() tui.DialOptions {
	o := tui.DialOptions{Address: f.Address, APIKey: f.APIKey, TLS: f.TLS}
	if f.Timeout == 0 {
		o.CallTimeout = defaultCallTimeout
	}
	return o
}

// client is what a command works with: the server, where its output goes, what time it is.
type client struct {
	tui.API
	namespace string
	address   string
	timeout   time.Duration
	out       *output
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
	_ = cmd.RegisterFlagCompletionFunc("namespace", e.complete(completeNamespaces)) // fails only for a flag that is not there
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
	ctx := cmd.Context()
	if c.timeout > 0 {
		limited, cancel := context.WithTimeout(ctx, c.timeout)
		defer cancel()
		ctx = limited
	}
	err = work(ctx, c)
	if err != nil && c.timeout > 0 && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &timeoutError{limit: c.timeout, err: err}
	}
	return c.placed(err)
}

func (e *env) connect(cmd *cobra.Command) (*client, func() error, error) {
	if err := e.flags.Resolve(cmd.Flags(), e.lookup); err != nil {
		return nil, nil, err
	}
	f := e.flags
	options := f.DialOptions()
	options.UserAgent = "kagzi/" + e.version
	api, closeConn, err := e.dial(options)
	if err != nil {
		return nil, nil, &usageError{err: err}
	}
	out := newOutput(e.streams(cmd), f, e.lookup)
	if f.APIKey != "" && !options.TLS.On() && !loopback(f.Address) {
		out.say("warning: the API key goes to %s unencrypted; --tls encrypts it", f.Address)
	}
	return &client{
		API: api, namespace: f.Namespace, address: f.Address, timeout: f.Timeout,
		out: out, now: e.now, newID: e.newID,
	}, closeConn, nil
}

// loopback says that what goes to the address does not leave the machine.
func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && (host == "localhost" || net.ParseIP(host).IsLoopback()) || strings.HasPrefix(address, "unix:")
}

// placed adds the server's address to an error that it, or the way to it, gave.
func (c *client) placed(err error) error {
	var call *callError
	if errors.As(err, &call) {
		call.address, call.namespace = c.address, c.namespace
		return err
	}
	if _, ok := status.FromError(err); ok && err != nil {
		return &callError{address: c.address, namespace: c.namespace, err: err}
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
		if s == word {
			*c.value = s
			return nil
		}
	}
	return fmt.Errorf("want %s or %s", strings.Join(c.words[:len(c.words)-1], ", "), c.words[len(c.words)-1])
}
