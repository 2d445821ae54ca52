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

// endpoint is an address to listen on.
type endpoint struct {
	flag    string // "--listen"
	text    string // as in the setting
	address string // numeric; empty: not listening
	exposed bool   // other machines can reach it
}

// addresses are the endpoints of a server.
type addresses struct{ listen, http, agq endpoint }

// exposed returns the endpoints that other machines can reach.
func (a *addresses) exposed() (reachable []endpoint) {
	for _, e := range []endpoint{a.listen, a.http, a.agq} {
		if e.exposed {
			reachable = append(reachable, e)
		}
	}
	return reachable
}

// checkEncryption refuses to listen without TLS where other machines can reach it, unless
// --insecure is given.
func (c *Config) checkEncryption(at *addresses) error {
	if err := c.checkAGQ(&at.agq); err != nil {
		return err
	}
	api := addresses{listen: at.listen, http: at.http}
	if c.encrypted() || c.Insecure || len(api.exposed()) == 0 {
		return nil
	}
	e := api.exposed()[0]
	return unsafef("%s %q: other machines could reach this server without encryption. "+
		"Create certificates with \"kagzi tls init --host NAME\" and pass them with --tls-cert and --tls-key; "+
		"or listen on 127.0.0.1; or add --insecure to allow it", e.flag, e.text)
}

// checkKeys refuses to listen where other machines can reach it if there is no key, or no valid
// one, unless --insecure is given. url is the database's URL.
func (c *Config) checkKeys(ctx context.Context, store engine.Store, url string, at *addresses) (hasKey bool,
	err error) {
	reachable := at.exposed()
	if len(reachable) == 0 {
		return true, nil // not exposed
	}
	keys, err := store.Keyring(ctx)
	if err != nil {
		return false, fmt.Errorf("list keys: %w", err)
	}
	now := store.Now()
	if slices.ContainsFunc(keys, func(k engine.APIKey) bool { return k.ValidAt(now) }) {
		return true, nil
	}
	if c.Insecure {
		return false, nil
	}
	none := "without a key they could do anything"
	if len(keys) > 0 {
		none = "all keys have expired, so every call would be refused"
	}
	e := reachable[0]
	return false,
		unsafef(
			"%s %q: other machines could reach this server, and %s. Create a key with \"kagzi key create NAME --role admin --db %s\"; "+
				"or listen on 127.0.0.1; or add --insecure to allow it", e.flag, e.text, none,
			word(withoutPassword(url)))
}

// warnings lists what is insecure because --insecure allows it.
func (c *Config) warnings(at *addresses, hasKey bool) (list []string) {
	for _, e := range at.exposed() {
		switch {
		case e.flag == "--agq" && !c.agqEncrypted(&e):
			list = append(list, fmt.Sprintf("other machines can reach --agq %s without encryption (--agq-insecure)",
				output.Plain(e.text)))
		case !c.encrypted():
			list = append(list,
				fmt.Sprintf(
					"other machines can reach %s %s without encryption (--insecure)",
					e.flag, output.Plain(e.text)))
		}
	}
	if len(at.exposed()) > 0 && !hasKey {
		list = append(list,
			"other machines can reach this server and do anything, because there is no key (--insecure); create one: kagzi key create NAME --role admin")
	}
	return list
}

func unsafef(format string, args ...any) error {
	return &exitError{code: exitConfig, err: fmt.Errorf(format, args...)}
}

// word quotes text as one word for this system's shells, safe for a terminal.
func word(text string) string { return wordOn(runtime.GOOS, text) }

var (
	backslashedQuote = regexp.MustCompile(`(\\*)"`)
	lastBackslashes  = regexp.MustCompile(`(\\+)$`)
)

func wordOn(system, text string) string {
	text = output.Plain(text)
	also := ""
	if system == "windows" {
		also = `\` // part of every path there, and not an escape
	}
	if text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return !strings.ContainsRune("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789%+,-./:=@_"+also, r)
	}) {
		return text
	}
	if system == "windows" { // cmd has no other quotes; a backslash counts only before one
		text = backslashedQuote.ReplaceAllString(text, `${1}${1}\"`)
		return `"` + lastBackslashes.ReplaceAllString(text, `${1}${1}`) + `"`
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
