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

// teamDays is how long certificates of a team hold, if nothing else is said: the most that every client takes.
const teamDays = 825

func newTLS() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tls",
		Short: "Make and look at certificates",
		Long:  "Make the certificates that a server and its clients need to speak over a network, and look at those that are there.",
	}
	cmd.AddCommand(newTLSInit(), newTLSShow())
	return cmd
}

func newTLSInit() *cobra.Command {
	t := certs.Team{}
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Make a private authority, and certificates of it for a server and for clients",
		Long: `Make what a small team needs to speak TLS: an authority of its own, a certificate for the server, and for clients that are to come in
without the secret of a key, one each, with the name of their key in it.

What is there stays: a second call makes what is missing, such as the certificate of another client. --renew makes the server's and those
of the clients that are named anew, with the same authority, and for the same hosts if none are named. A running server takes them up by
itself. Clients need ca.crt only. Who has ca.key can make certificates in the team's name: it can be kept elsewhere between two calls.

Exit code: 0 when all is there, 6 when a certificate is there that does not serve and --renew is not given, 64 when the command is wrong, 78
when others may read a secret of it, else 1.`,
		Example: `  kagzi tls init --host kagzi.example.com
  kagzi tls init --dir /etc/kagzi/tls --host kagzi.example.com,10.0.0.7 --client ci
  kagzi tls init --dir /etc/kagzi/tls --renew`,
		Args: cobra.NoArgs,
	}
	f := cmd.Flags()
	f.StringVar(&t.Dir, "dir", "", `directory of the files (default "tls" in the system's place for your settings)`)
	f.StringSliceVar(&t.Hosts, "host", nil,
		"name or address by which clients reach the server, beside localhost (default this machine's name)")
	f.StringSliceVar(&t.Clients, "client", nil, "name of a key: make a certificate that is as good as its secret")
	f.IntVar(&t.Days, "days", teamDays, "how long the certificates hold")
	f.BoolVar(&t.Renew, "renew", false, "make the server's certificate anew, and those of the clients that are named")
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

// teamDir is the directory for a team's files, absolute.
func teamDir(dir string) (string, error) {
	if dir == "" {
		home, err := os.UserConfigDir()
		if err != nil {
			return "", usagef("there is no place for your settings (%w); say --dir DIR", err)
		}
		dir = filepath.Join(home, "kagzi", "tls")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", usagef("--dir: %w", err)
	}
	return dir, nil
}

// localHosts are the names and addresses of this machine that hold wherever it is.
func localHosts(hostname func() (string, error)) []string {
	hosts := []string{"localhost", "127.0.0.1", "::1"}
	if name, err := hostname(); err == nil && certs.IsHost(name) && name != hosts[0] {
		hosts = slices.Insert(hosts, 0, name)
	}
	return hosts
}

// tellTeam says what is there now, and what to type next.
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
			what = "the authority, which clients trust"
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

// reachable is the first host that other machines could use, else the first.
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
		Short: "Print the certificates in files: whose they are, what they hold for, and for how long; exit 1 if one has expired",
		Long: `Print the certificates in files: whose they are, what they hold for, and for how long.

Exit code: 0 when all are valid, 1 when one has expired or a file holds none, 5 when there is no such file.`,
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
		return errors.New("a certificate has expired; kagzi tls init --renew makes one of an authority of kagzi's anew")
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
