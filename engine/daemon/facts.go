package daemon

import (
	"net/url"
	"strings"
	"time"

	"github.com/kagzi/kagzi/engine/coordinator"
	"github.com/kagzi/kagzi/engine/server"
)

// looksOf is what people may want to know of the coordinator.
func looksOf(l coordinator.Looks) []server.Fact {
	last, took, next := "none yet", "", "waits for a ring"
	if !l.At.IsZero() {
		last, took = moment(l.At), l.Took.Round(time.Microsecond).String()
	}
	if !l.Next.IsZero() {
		next = moment(l.Next)
	}
	const section = "coordinator"
	facts := []server.Fact{{Section: section, Name: "last look", Value: last}}
	if took != "" {
		facts = append(facts, server.Fact{Section: section, Name: "took", Value: took})
	}
	return append(facts, server.Fact{Section: section, Name: "next due", Value: next},
		server.Fact{Section: section, Name: "interval", Value: brief(l.Interval)})
}

func moment(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// opened is what a server has opened where settings left it open.
type opened struct {
	database string // URL
	listen   string
	http     string // empty: nothing
}

// settingsOf is every setting as it holds: of the database what was opened, and of the addresses where they are served.
func settingsOf(c *Config, o opened) []server.Fact {
	held, defaults := *c, Defaults()
	if held.DataDir == "" && held.DB == "" {
		_, held.DataDir, _ = c.database() // it was found a moment ago
	}
	held.DB, held.Listen, held.HTTP = withoutPassword(o.database), o.listen, o.http
	facts := make([]server.Fact, len(serverSettings))
	for i := range serverSettings {
		s := &serverSettings[i]
		source := c.Sources[s.name]
		if source == "" && s.show(c) == s.show(&defaults) {
			source = "default"
		}
		facts[i] = server.Fact{Section: "settings", Name: s.name, Value: s.show(&held), Source: source}
	}
	return facts
}

// withoutPassword is the URL of a database with nothing secret in it. One that cannot be read shows
// only its kind, and what is none nothing, unless it can be but a name: libpq's own words, host=db
// password=…, are no setting of ours, and are given all the same.
func withoutPassword(text string) string {
	scheme, rest, found := strings.Cut(text, ":")
	switch {
	case found && scheme == "sqlite", !strings.ContainsAny(text, ":=@"):
		return text
	case !found || !strings.HasPrefix(rest, "//"):
		return "…"
	}
	u, err := url.Parse(text)
	if err != nil {
		return scheme + ":…"
	}
	if strings.Contains(u.EscapedPath()+u.RawQuery+u.Fragment, "@") {
		// the rest of a password with a /, ? or # in it, at which its place ends
		return scheme + ":…"
	}
	if u.User != nil {
		u.User = url.User(u.User.Username())
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return scheme + ":…"
	}
	for key := range query {
		if strings.Contains(strings.ToLower(key), "password") {
			query.Del(key)
		}
	}
	u.RawQuery = query.Encode()
	return u.String()
}
