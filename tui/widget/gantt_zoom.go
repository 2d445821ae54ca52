package widget

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// ZoomIn shows half of the time in the same cells, around the bar of the lane under the cursor when it is in view, else around the middle.
func (g *Gantt) ZoomIn() { g.zoom(0.5) }

// ZoomOut shows twice the time, at most everything.
func (g *Gantt) ZoomOut() { g.zoom(2) }

// Fit shows everything, and goes on to do so while it grows.
func (g *Gantt) Fit() { g.perCell, g.left = 0, 0 }

// Zoomed says whether a part of the time is shown only.
func (g *Gantt) Zoomed() bool { return g.perCell != 0 }

func (g *Gantt) zoom(factor float64) {
	s := g.scale()
	anchor := g.anchor(s)
	cell := s.cell(anchor) - g.left // stays there
	wanted := max(s.perCell*factor, leastCell)
	if factor > 1 && (g.perCell == 0 || wanted >= g.fitting(s.total, s.gaps)) {
		g.Fit()
		return
	}
	g.perCell = wanted
	g.left = math.Round(g.scale().cell(anchor) - cell)
	g.Pan(0)
}

// anchor is the time that stays in its place when the scale changes.
func (g *Gantt) anchor(s scale) time.Duration {
	if lane, ok := g.Selected(); ok {
		for _, span := range lane.Spans {
			if at := span.From.Sub(g.begin); s.cell(at) >= g.left && s.cell(at) < g.left+float64(g.area) {
				return at
			}
		}
	}
	return s.at(g.left + float64(g.area)/2)
}

// Pan moves along the axis by cells, to the left below zero.
func (g *Gantt) Pan(cells int) {
	if g.perCell == 0 {
		return
	}
	most := max(math.Ceil(g.scale().cells())-float64(g.area), 0)
	g.left = min(max(g.left+float64(cells), 0), most)
}

// Collapse says whether the times in which no lane works shrink to a mark.
func (g *Gantt) Collapse(on bool) {
	anchor := g.scale().at(g.left)
	g.collapse = on
	if g.perCell != 0 {
		g.left = math.Round(g.scale().cell(anchor))
		g.Pan(0)
	}
}

// Collapsed says whether they do.
func (g *Gantt) Collapsed() bool { return g.collapse }

// Overlay says whether earlier attempts are drawn too.
func (g *Gantt) Overlay(on bool) { g.overlay = on }

// Overlaid says whether they are.
func (g *Gantt) Overlaid() bool { return g.overlay }

// State says in a few words how the time is shown: "zoom 4x, gaps collapsed"; empty when everything is.
func (g *Gantt) State() string {
	var words []string
	if g.perCell != 0 {
		s := g.scale()
		words = append(words, fmt.Sprintf("zoom %.3gx", g.fitting(s.total, s.gaps)/g.perCell))
	}
	if g.collapse {
		words = append(words, "gaps collapsed")
	}
	if g.overlay {
		words = append(words, "earlier attempts")
	}
	return strings.Join(words, ", ")
}
