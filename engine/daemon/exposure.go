package daemon

import (
	"context"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/daemon/internal/output"
)

// endpoint is an address where the server is to listen.
type endpoint struct {
	flag    string // "--listen"
	text    string // as the setting has it
	address string // as numbers; empty: nowhere
	exposed bool   // other machines can reach it
}

// addresses is where the server is to listen.
type addresses struct{ listen, http endpoint }

// exposed are the endpoints that other machines can reach.
func (a *addresses) exposed() (reachable []endpoint) {
	for _, e := range []endpoint{a.listen, a.http} {
		if e.exposed {
			reachable = append(reachable, e)
		}
	}
	return reachable
}

// checkEncryption refuses an address that other machines can reach without TLS, unless that is wanted.
func (c *Config) checkEncryption(at *addresses) error {
	if c.encrypted() || c.Insecure || len(at.exposed()) == 0 {
		return nil
	}
	e := at.exposed()[0]
	return unsafef("%s %q: other machines could reach this server, and what they send and get would not be encrypted. "+
		"Make certificates with \"kagzi tls init --host NAME\", and name them with --tls-cert and --tls-key as it says; "+
		"or listen on 127.0.0.1; or add --insecure if that is what you want", e.flag, e.text)
}

// checkKeys refuses an address that other machines can reach where nobody needs a key, or nobody
// has one that opens it, unless that is wanted. url is the database's.
func (c *Config) checkKeys(ctx context.Context, store engine.Store, url string, at *addresses) (hasKey bool,
	err error) {
	reachable := at.exposed()
	if len(reachable) == 0 {
		return true, nil // and nobody asks
	}
	keys, err := store.Keyring(ctx)
	if err != nil {
		return false, fmt.Errorf("look for keys: %w", err)
	}
	now := store.Now()
	if slices.ContainsFunc(keys, func(k engine.APIKey) bool { return k.ValidAt(now) }) {
		return true, nil
	}
	if c.Insecure {
		return false, nil
	}
	none := "there is no key, so all of them might do everything"
	if len(keys) > 0 {
		none = "all keys have expired, so none of them might do anything"
	}
	e := reachable[0]
	return false,
		unsafef(
			"%s %q: other machines could reach this server, and %s. Make a key with \"kagzi key create NAME --role admin --db %s\"; "+
				"or listen on 127.0.0.1; or add --insecure if that is what you want", e.flag, e.text, none,
			word(withoutPassword(url)))
}

// warnings are what is insecure for as long as this server runs, because it is wanted so.
func (c *Config) warnings(at *addresses, hasKey bool) (list []string) {
	for _, e := range at.exposed() {
		if !c.encrypted() {
			list = append(list,
				fmt.Sprintf(
					"other machines can reach %s %s, and nothing that they send and get is encrypted (--insecure)",
					e.flag, output.Plain(e.text)))
		}
	}
	if len(at.exposed()) > 0 && !hasKey {
		list = append(list,
			"other machines can reach this server, and as long as there is no key, they may do everything (--insecure); make one: kagzi key create NAME --role admin")
	}
	return list
}

func unsafef(format string, args ...any) error {
	return &exitError{code: exitConfig, err: fmt.Errorf(format, args...)}
}

// word is a text as one word of the shells of this system, fit for a terminal.
func word(text string) string { return wordOn(runtime.GOOS, text) }

var (
	backslashedQuote = regexp.MustCompile(`(\\*)"`)
	lastBackslashes  = regexp.MustCompile(`(\\+)$`)
)

func wordOn(system, text string) string {
	text = output.Plain(text)
	also := ""
	if system == "windows" {
		also = `\` // which is in every path there, and means itself
	}
	if text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return !strings.ContainsRune("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789%+,-./:=@_"+also, r)
	}) {
		return text
	}
	if system == "windows" { // cmd knows no other quotes; a backslash counts only before one
		text = backslashedQuote.ReplaceAllString(text, `${1}${1}\"`)
		return `"` + lastBackslashes.ReplaceAllString(text, `${1}${1}`) + `"`
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
