package cli

import (
	"strings"
	"testing"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

func TestWebPrintsWhereTheServersPageIs(t *testing.T) {
	for name, c := range map[string]struct {
		settings map[string]string
		address  string
		want     string
	}{
		"on loopback": {map[string]string{"http": "127.0.0.1:50052", "web": "on"}, "127.0.0.1:50051",
			"http://127.0.0.1:50052/"},
		"below a path": {map[string]string{"http": "[::1]:8080", "web": "on", "http-base-path": "/a/kagzi"}, "[::1]:1",
			"http://[::1]:8080/a/kagzi/"},
		"on all addresses": {map[string]string{"http": "0.0.0.0:80", "web": "on", "http-base-path": "off",
			"tls-cert": "server.crt"}, "kagzi.example:50051,other:50051", "https://kagzi.example:80/"},
		"nowhere, HTTP is off":              {map[string]string{"http": "off", "web": "on"}, "127.0.0.1:50051", "start it with --http"},
		"nowhere, it is off":                {map[string]string{"http": "127.0.0.1:50052", "web": "off"}, "127.0.0.1:50051", "--web on"},
		"nowhere, an older server has none": {map[string]string{"http": "127.0.0.1:50052"}, "127.0.0.1:50051", "--web on"},
		"not told":                          {nil, "127.0.0.1:50051", "only to admins, operators and viewers"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &session{server: &fake{info: &kagziv1.GetServerInfoResponse{}}}
			for setting, value := range c.settings {
				s.server.info.Facts = append(s.server.info.Facts, &kagziv1.ServerFact{Section: "settings", Name: setting,
					Value: value})
			}
			out, msg, code := s.run(t, "web", "--address", c.address)
			if strings.HasPrefix(c.want, "http") {
				if code != ExitOK || out != c.want+"\n" {
					t.Errorf("it printed %q (%d, %s), want %s", out, code, msg, c.want)
				}
			} else if code != ExitUsage || !strings.Contains(msg, c.want) {
				t.Errorf("exit code %d: %s, want %s", code, msg, c.want)
			}
		})
	}
}

func TestWebRefusesWhatItCannotShow(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"a file and a capsule": {[]string{"web", "--db", "a.db", "b.zip"}, "either --db or a CAPSULE"},
		"Postgres":             {[]string{"web", "--db", "postgres://x/y"}, "for Postgres, run a server"},
		"a missing capsule":    {[]string{"web", "/nowhere/run.zip"}, "no such file"},
		"a page and a tree":    {[]string{"workflow", "show", "run-1", "--web", "--tree"}, "either --web or --tree"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &session{server: &fake{}}
			if _, msg := s.want(t, ExitUsage, c.args...); !strings.Contains(msg, c.want) {
				t.Errorf("it says %s, want %s", msg, c.want)
			}
		})
	}
}
