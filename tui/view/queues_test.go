package view

import (
	"testing"

	"github.com/kagzi/kagzi/tui/world"
)

func TestQueuesLookRight(t *testing.T) { goldenView(t, "queues", always("queues")) }

func TestEnterOnAQueueShowsItsRuns(t *testing.T) {
	var w *world.World
	onRig(t, inWorld(&w, "queues"), 120, 30, func(r *rig) {
		r.shows("emails", "onboarding (8)", "█████ 6/6")
		r.press("down", "enter")
		r.settle()
		r.shows("runs queue:media", "thumbnail")
		r.lacks("invoice.send")
		r.press("esc")
		r.shows("Queues (4)")
	})
}
