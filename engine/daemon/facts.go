package daemon

import (
	"net/url"
	"strings"
	"time"

	"github.com/kagzi/kagzi/engine/coordinator"
	"github.com/kagzi/kagzi/engine/server"
)

// looksOf describes the coordinator for server info.
func looksOf(l coordinator.Looks) []server.Fact {
	last, took, next := "none yet", "", "waiting for a notification"
	if !l.At.IsZero() {
		last, took = moment(l.At), l.Took.Round(time.Microsecond).String()
	}
	if !l.Next.IsZero() {
		next = moment(l.Next)
	}
	const section = "coordinator"
	facts := []server.Fact{{Section: section, Name: "last pass", Value: last}}
	if took != "" {
		facts = append(facts, server.Fact{Section: section, Name: "took", Value: took})
	}
	return append(facts, server.Fact{Section: section, Name: "next due", Value: next},
		server.Fact{Section: section, Name: "interval", Value: brief(l.Interval)})
}

func moment(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// opened is what the server opened where the settings leave it open.
type opened struct {
	database string // URL
	listen   string
	http     string // empty: none
	agq      string // empty: none
}

// settingsOf returns all settings in effect, with the database and addresses that were opened.
func settingsOf(c *Config, o opened) []server.Fact {
	held, defaults := *c, Defaults()
	if held.DataDir == "" && held.DB == "" {
		_, held.DataDir, _ = c.database() // it worked a moment ago
	}
	held.DB, held.Listen, held.HTTP, held.AGQ = withoutPassword(o.database), o.listen, o.http, o.agq
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

// withoutPassword returns a database URL without secrets. An unreadable URL shows only its scheme;
// other text shows nothing unless it can only be a name, because libpq's host=db password=… is
// sometimes passed although it is not supported.
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
		// the rest of a password that has a /, ? or # in it
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
