package demo

import (
	"fmt"
	"slices"
	"strings"
)

// part is the run of one language in the scene with three.
type part struct {
	language string
	killed   string   // step in which its worker was killed
	steps    []string // all, in the order in which they started
	run      facts
}

func checkLanguages(c *check) (note string) {
	ended(c, fmt.Sprintf("%d paid for water damage, approved: true", approvedPrice))
	parts := []part{
		{language: "go", killed: "send-limit", steps: []string{"assess", "send-limit", "pay"}, run: c.facts},
		{language: "python", killed: "model", steps: []string{"model", "review", "limit", "offer"}},
		{language: "typescript", killed: "check", steps: []string{"check", "offer", "decide"}},
	}
	for i := 1; i < len(parts); i++ {
		parent := parts[i-1].run
		if len(parent.runs) != 1 {
			c.differ("the %s run has %d children, want 1", parts[i-1].language, len(parent.runs))
			return ""
		}
		parts[i].run = parent.runs[0]
	}
	var sdks []string
	for _, p := range parts {
		one := check{facts: p.run}
		one.facts.sdks = c.sdks
		sdks = append(sdks, one.inLanguage(p))
		for _, d := range one.differs {
			c.differ("%s run: %s", p.language, d)
		}
	}
	return strings.Join(sdks, ", ") + ": each lost its worker, and only the step in flight ran twice"
}

// inLanguage checks that all steps of a run are recorded, that only workers of its language ran them,
// and that only the step whose worker was killed ran twice. It returns the SDK.
func (c *check) inLanguage(p part) (sdk string) {
	var names []string
	for _, s := range c.steps {
		if !slices.Contains(names, s.name) {
			names = append(names, s.name)
		}
	}
	if !slices.Equal(names, p.steps) {
		c.differ("recorded steps are %q, want %q", names, p.steps)
	}
	for _, name := range names {
		if s, _ := c.find(name); !s.completed() {
			c.differ("step %s is %s, want COMPLETED", name, s.status)
		}
	}
	by := map[string][]string{} // workers, by step
	for _, e := range c.ledger {
		by[e.Step] = append(by[e.Step], e.Worker)
		sdk = c.sdks[e.Worker]
		if language, _, _ := strings.Cut(sdk, " "); language != p.language {
			c.differ("step %s ran on %s, whose SDK is %q, want %s", e.Step, e.Worker, sdk, p.language)
		}
	}
	for step, workers := range by {
		switch {
		case step == p.killed && len(workers) == 2 && workers[0] != workers[1]:
		case step != p.killed && len(workers) == 1:
		default:
			c.differ("the code of step %s ran on %q, want once, or twice if its worker was killed", step, workers)
		}
	}
	if len(by[p.killed]) == 0 {
		c.differ("the code of step %s never ran", p.killed)
	}
	return sdk
}
