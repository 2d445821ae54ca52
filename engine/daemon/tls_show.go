package daemon

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kagzi/kagzi/engine/certs"
)

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
			_, err := fmt.Fprintf(w, "%s\n  subject   %s\n  issuer    %s\n  for       %s\n  hosts     %s\n  key       %s\n  valid     %s to %s (%s)\n",
				plain(name), plain(s.Subject), plain(s.Issuer), s.For, plain(cmp.Or(strings.Join(s.Hosts, ", "), "none")), s.Kind,
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
