package daemon

import (
	"strings"
	"testing"
)

func TestAGQIsServedInTheClearOnlyWhereItMayBe(t *testing.T) {
	for name, c := range map[string]struct {
		config  Config
		exposed bool
		tls     bool
		refused string
	}{
		"on loopback":                         {},
		"on loopback with a certificate":      {config: Config{TLSCert: "c", TLSKey: "k"}},
		"exposed":                             {exposed: true, refused: "without encryption"},
		"exposed with --insecure alone":       {config: Config{Insecure: true}, exposed: true, refused: "--agq-insecure"},
		"exposed with a certificate":          {config: Config{TLSCert: "c", TLSKey: "k"}, exposed: true, tls: true},
		"exposed and allowed":                 {config: Config{AGQInsecure: true}, exposed: true},
		"allowed in spite of the certificate": {config: Config{TLSCert: "c", TLSKey: "k", AGQInsecure: true}, exposed: true},
	} {
		t.Run(name, func(t *testing.T) {
			at := addresses{agq: endpoint{flag: "--agq", text: "x:1", address: "x:1", exposed: c.exposed}}
			err := c.config.checkEncryption(&at)
			if c.refused == "" && err != nil || c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused)) {
				t.Errorf("it is refused with %v, want %q", err, c.refused)
			}
			if tls := c.config.agqEncrypted(&at.agq); tls != c.tls {
				t.Errorf("TLS is %t, want %t", tls, c.tls)
			}
			if clear := c.exposed && !c.tls; err == nil && clear != strings.Contains(
				strings.Join(c.config.warnings(&at, true), "\n"), "--agq x:1 without encryption") {
				t.Errorf("the warnings are %q", c.config.warnings(&at, true))
			}
		})
	}
}
