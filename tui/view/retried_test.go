package view

import (
	"regexp"
	"strings"
	"testing"

	"github.com/kagzi/kagzi/tui/scenario"
)

func TestATimelineOfARetryShowsItsOwnTime(t *testing.T) {
	onPiece(t, scenario.Retried, 120, 32, func(r *fixture, _ *shop, p *runPage) {
		// the run before it began 10 minutes earlier, and the retry took 9.6 s
		axis := regexp.MustCompile(`│0s +│2s +│4s +│6s +│8s`)
		if screen := r.draw(); !axis.MatchString(screen) || strings.Count(screen, "kept from run 01a1f7ff…") != 4 {
			t.Errorf("want an axis of 10 s, and three kept steps, the first under the cursor:\n%s", screen)
		}
		r.press("5")
		r.shows("step kept       validate       from run " + p.workflow().GetRetriedFromRunId())
		r.lacks("step started    validate", "step completed  validate")
	})
}
