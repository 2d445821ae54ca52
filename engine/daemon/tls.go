package daemon

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kagzi/kagzi/engine/certs"
	"github.com/kagzi/kagzi/engine/daemon/internal/output"
)

// teamDays is the default lifetime of certificates: the longest that all clients accept.
const teamDays = 825

func newTLS() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tls",
		Short: "Create and inspect TLS certificates",
		Long:  "Create the TLS certificates of a server and its clients, and inspect existing ones.",
	}
	cmd.AddCommand(newTLSInit(), newTLSShow())
	return cmd
}

func newTLSInit() *cobra.Command {
	t := certs.Team{}
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Create a private CA, and server and client certificates signed by it",
		Long: `Create what a small team needs for TLS: a private CA, a server certificate, and a certificate for
each client that authenticates without an API key. A client certificate names the key whose rights
it has.

Existing files are kept; a second call creates what is missing, such as the certificate of another
client. --renew replaces the server's certificate and those of the named clients, signed by the same
CA, and for the same hosts unless --host is given. A running server reloads them. Clients need only
ca.crt. Anyone with ca.key can create certificates, so store it elsewhere between two calls.

Exit code: 0 all files exist, 6 an existing certificate does not fit and --renew is not given,
64 wrong usage, 78 others can read a secret file, 1 other errors.`,
		Example: `  kagzi tls init --host kagzi.example.com
  kagzi tls init --dir /etc/kagzi/tls --host kagzi.example.com,10.0.0.7 --client ci
  kagzi tls init --dir /etc/kagzi/tls --renew`,
		Args: cobra.NoArgs,
	}
	f := cmd.Flags()
	f.StringVar(&t.Dir, "dir", "", `directory of the files (default: tls in your configuration directory)`)
	f.StringSliceVar(&t.Hosts, "host", nil,
		"host name or address of the server, in addition to localhost (default: this machine's name)")
	f.StringSliceVar(&t.Clients, "client", nil, "name of a key: create a client certificate with its rights")
	f.IntVar(&t.Days, "days", teamDays, "lifetime of the certificates in days")
	f.BoolVar(&t.Renew, "renew", false, "replace the server's certificate, and those of the named clients")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		var err error
		if t.Dir, err = teamDir(t.Dir); err != nil {
			return err
		}
		if err := t.Check(); err != nil {
			return usagef("%w", err)
		}
		t.Now, t.Local = time.Now(), localHosts(os.Hostname)
		made, err := t.Make()
		if err != nil {
			if _, stands := errors.AsType[*certs.StandingError](err); stands {
				return &exitError{code: exitConflict, err: err}
			}
			return ifUnsafe(err)
		}
		return tellTeam(cmd.OutOrStdout(), t.Dir, made)
	}
	return cmd
}

// teamDir returns the directory for the files as an absolute path.
func teamDir(dir string) (string, error) {
	if dir == "" {
		home, err := os.UserConfigDir()
		if err != nil {
			return "", usagef("no configuration directory (%w); use --dir DIR", err)
		}
		dir = filepath.Join(home, "kagzi", "tls")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", usagef("--dir: %w", err)
	}
	return dir, nil
}

// localHosts returns the names and addresses of this machine that are valid everywhere.
func localHosts(hostname func() (string, error)) []string {
	hosts := []string{"localhost", "127.0.0.1", "::1"}
	if name, err := hostname(); err == nil && certs.IsHost(name) && name != hosts[0] {
		hosts = slices.Insert(hosts, 0, name)
	}
	return hosts
}

// tellTeam prints what was created and what to do next.
func tellTeam(w io.Writer, dir string, made []certs.Made) error {
	var b strings.Builder
	var host string
	clients := []certs.Made{}
	for _, m := range made {
		did, what := "kept", ""
		if m.IsMade {
			did = "made"
		}
		switch {
		case m.Name == "ca":
			what = "the CA that clients trust"
		case m.Name == "server":
			hosts := certs.HostsOf(m.Leaf)
			host = reachable(hosts)
			what = "for a server at " + strings.Join(hosts, ", ")
		default:
			clients = append(clients, m)
			what = "for a client with the rights of the key " + m.Leaf.Subject.CommonName
		}
		fmt.Fprintf(&b, "%s  %s, %s, until %s\n", did, output.Plain(m.Cert), output.Plain(what),
			m.Leaf.NotAfter.UTC().Format(time.DateOnly))
	}
	file := func(name string) string { return word(filepath.Join(dir, name)) }
	clientCA := ""
	if len(clients) > 0 {
		clientCA = " --client-ca " + file("ca.crt")
	}
	fmt.Fprintf(&b, "next\n  a key     kagzi key create NAME --role admin --db default\n"+
		"  server    kagzi server --listen :50051 --tls-cert %s --tls-key %s%s\n"+
		"  clients   kagzi workflow list --address %s --tls-ca %s\n",
		file("server.crt"), file("server.key"), clientCA, net.JoinHostPort(host, "50051"), file("ca.crt"))
	for _, m := range clients {
		fmt.Fprintf(&b, "  as %s   … --tls-client-cert %s --tls-client-key %s\n",
			output.Plain(m.Leaf.Subject.CommonName), word(m.Cert), word(m.Key))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// reachable returns the first host that other machines could use, or else the first.
func reachable(hosts []string) string {
	for _, h := range hosts {
		ip := net.ParseIP(h)
		if h != "localhost" && !strings.HasPrefix(h, "*") && (ip == nil || !ip.IsLoopback()) {
			return h
		}
	}
	return cmp.Or(strings.Join(hosts[:min(1, len(hosts))], ""), "localhost")
}

func newTLSShow() *cobra.Command {
	return &cobra.Command{
		Use:   "show FILE...",
		Short: "Show the certificates in files; exit 1 if one has expired",
		Long: `Show the certificates in files: subject, hosts, key and validity.

Exit code: 0 all are valid, 1 one has expired or a file has none, 5 no such file.`,
		Example: `  kagzi tls show /etc/kagzi/tls/*.crt
  kagzi tls show server.crt ca.crt`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, files []string) error {
			return showCertificates(cmd.OutOrStdout(), files, time.Now())
		},
	}
}

func showCertificates(w io.Writer, files []string, now time.Time) error {
	expired := 0
	for _, file := range files {
		shown, err := certs.Show(file)
		if err != nil {
			return ifMissing(file, err)
		}
		for i, s := range shown {
			name := file
			if len(shown) > 1 {
				name = fmt.Sprintf("%s (%d of %d)", file, i+1, len(shown))
			}
			left := days(s.DaysLeft(now))
			if s.DaysLeft(now) < 0 {
				expired++
			}
			if now.Before(s.From) {
				left = "not valid yet"
			}
			_, err := fmt.Fprintf(
				w,
				"%s\n  subject   %s\n  issuer    %s\n  for       %s\n  hosts     %s\n  key       %s\n  valid     %s to %s (%s)\n",
				output.Plain(name), output.Plain(s.Subject), output.Plain(s.Issuer), s.For,
				output.Plain(cmp.Or(strings.Join(s.Hosts, ", "), "none")), s.Kind,
				s.From.UTC().Format(time.RFC3339), s.Until.UTC().Format(time.RFC3339), left)
			if err != nil {
				return err
			}
		}
	}
	if expired > 0 {
		return errors.New("a certificate has expired; renew one made by kagzi with: kagzi tls init --renew")
	}
	return nil
}

func days(n int) string {
	switch {
	case n < 0:
		return "expired"
	case n == 1:
		return "1 day left"
	}
	return fmt.Sprintf("%d days left", n)
}
