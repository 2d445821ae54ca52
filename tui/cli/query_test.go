package cli

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/proto/query"
)

// queryOfFirst returns the query of the first request of a type.
func queryOfFirst[R interface {
	proto.Message
	GetQuery() string
}](t *testing.T, s *session) string {
	return first[R](t, s.server).GetQuery()
}

func TestEveryListTakesAFilter(t *testing.T) {
	for name, c := range map[string]struct {
		args  []string
		query string
		sent  func(*testing.T, *session) string
		has   string // of the only line after the head
	}{
		"runs": {[]string{"wf", "list"}, "not status = failed and duration > 1h", queryOfFirst[*kagziv1.ListWorkflowsRequest], ""},
		"schedules": {[]string{"schedule", "list"}, "name = dai* and enabled = true",
			queryOfFirst[*kagziv1.ListWorkflowSchedulesRequest], "daily"},
		"namespaces": {[]string{"ns", "list"}, "name = Pay* or namespace = x",
			queryOfFirst[*kagziv1.ListNamespacesRequest], "payments"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &session{server: sampleServer()}
			out, _ := s.want(t, ExitOK, append(c.args, "-q", c.query)...)
			if got := c.sent(t, s); got != c.query {
				t.Errorf("sent query %q, want %q", got, c.query)
			}
			lines := strings.Split(strings.TrimSpace(out), "\n")
			if c.has != "" && len(lines) != 2 || !strings.Contains(lines[1], c.has) {
				t.Errorf("stdout %q, want one item: the command selects what the fake server does not", out)
			}
		})
	}
	for _, args := range [][]string{{"wf", "list"}, {"wf", "count"}, {"wf", "cancel"}, {"schedule", "list"}, {"worker", "list"}, {"queue", "list"}, {"key", "list"},
		{"ns", "list"}, {"audit"}} {
		t.Run("a mistake in "+strings.Join(args, " "), func(t *testing.T) {
			s := &session{server: sampleServer()}
			_, msg := s.want(t, ExitUsage, append(args, "-q", "colour = red")...)
			if !strings.Contains(msg, "-q: position 1: expected a field of ") || !strings.Contains(msg, "colour = red\n") {
				t.Errorf("stderr %q", msg)
			}
		})
	}
}

func TestTheChapterOfFiltersListsTheFieldsOfEachList(t *testing.T) {
	text, err := os.ReadFile("../../installer/guide/query.md")
	if err != nil {
		t.Fatal(err)
	}
	quoted := regexp.MustCompile("`[^`]+`")
	for _, l := range query.All() {
		row := regexp.MustCompile(`(?m)^\| ` + l.Name + ` \|.*$`).FindString(string(text))
		var want []string
		for _, f := range l.Fields {
			want = append(want, "`"+f[0]+"`")
		}
		if got := strings.Join(quoted.FindAllString(row, -1), ", "); got != strings.Join(want, ", ") {
			t.Errorf("%s: the chapter lists\n%s\nwant\n%s", l.Name, got, strings.Join(want, ", "))
		}
	}
}
