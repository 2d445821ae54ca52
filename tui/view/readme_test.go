package view

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/kagzi/kagzi/tui/scenario"
)

// readme is the file with the screens below.
const readme = "../../README.md"

func TestTheScreensInTheReadmeAreTrue(t *testing.T) {
	text, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	readmeDay := playMaster(12)
	for _, shot := range []struct {
		name string
		open func(w *shop) string
	}{
		{"timeline", func(w *shop) string { return "run " + w.ID(scenario.Failed) }},
	} {
		var w *shop
		options := func() Options {
			w = readmeDay.open()
			return Options{API: w, Open: shot.open(w), Now: w.Now}
		}
		onFixture(t, options, 100, 22, func(r *fixture) {
			begins := fmt.Sprintf("<!-- screen: %s -->\n```text\n", shot.name)
			before, rest, found := strings.Cut(page, begins)
			if !found {
				t.Fatalf("%s has no place for the screen %s", readme, shot.name)
			}
			shown, after, _ := strings.Cut(rest, "```")
			drawn := r.draw()
			if os.Getenv("UPDATE") != "" {
				page = before + begins + drawn + "```" + after
			} else if shown != drawn {
				t.Errorf("the screen %s in %s is not what is drawn; UPDATE=1 puts this there:\n%s", shot.name,
					readme, drawn)
			}
		})
	}
	if page != string(text) {
		if err := os.WriteFile(readme, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
