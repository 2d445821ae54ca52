package conformance

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/kagzi/kagzi/engine/conformance/program"
)

// generator makes random programs. What a step does is in its name: "a…" returns a value, "r2…" fails
// twice before, "x…" fails for good.
type generator struct {
	rnd   *rand.Rand
	names int
	left  int  // how many ops may follow
	timer bool // a timer may be set here: no other branch has one, so that the order of ends is scripted
	depth int
	child bool
	sent  []sending
}

// sending is a signal for the root run.
type sending struct {
	Name  string
	Value string
}

// test is a random program with the signals that it needs.
type test struct {
	Seed    uint64           `json:"seed"`
	Program *program.Program `json:"program"`
	Signals []sending        `json:"signals,omitempty"`
}

// generate returns the program of a seed.
func generate(seed uint64) test {
	g := &generator{rnd: rand.New(rand.NewPCG(seed, 0x6b61677a69)), timer: true}
	g.left = 3 + g.rnd.IntN(12)
	p := &program.Program{Ops: g.ops(1 + g.rnd.IntN(5))}
	if g.rnd.IntN(8) == 0 {
		next := &program.Program{Ops: []*program.Op{{Op: "step", Name: g.name("a")}, {Op: "return", Value: g.value()}}}
		p.Ops = append(p.Ops, &program.Op{Op: "continue", Program: next})
	} else {
		p.Ops = append(p.Ops, &program.Op{Op: "return", Value: g.value()})
	}
	return test{Seed: seed, Program: p, Signals: g.sent}
}

func (g *generator) name(prefix string) string {
	g.names++
	return prefix + "-" + strconv.Itoa(g.names)
}

func (g *generator) value() json.RawMessage {
	return []json.RawMessage{[]byte(`null`), []byte(`1`), []byte(`-0.5`), []byte(`"text"`), []byte(`"<é😀>"`), []byte(`[1,"a",null]`),
		[]byte(`{"b":1,"a":{"z":[]}}`), []byte(`true`), []byte(`1e-7`), []byte(`9007199254740991`)}[g.rnd.IntN(10)]
}

func (g *generator) ops(n int) []*program.Op {
	var all []*program.Op
	for range n {
		if g.left <= 0 {
			break
		}
		g.left--
		all = append(all, g.op()...)
	}
	if len(all) == 0 {
		all = append(all, &program.Op{Op: "step", Name: g.name("a")})
	}
	return all
}

func (g *generator) step() *program.Op {
	switch g.rnd.IntN(8) {
	case 0:
		fails := 1 + g.rnd.IntN(2)
		return &program.Op{Op: "step", Name: g.name("r" + strconv.Itoa(fails)),
			Retry: &program.Retry{Attempts: 3, InitialMS: 1, Jitter: -1}}
	default:
		return &program.Op{Op: "step", Name: g.name("a")}
	}
}

func (g *generator) op() []*program.Op {
	switch k := g.rnd.IntN(22); {
	case k < 6:
		return []*program.Op{g.step()}
	case k < 8 && g.timer:
		return []*program.Op{{Op: "sleep", Name: g.name("nap"), MS: []int64{0, 1, 15, 40}[g.rnd.IntN(4)]}}
	case k < 10 && !g.child:
		return []*program.Op{g.signal()}
	case k < 11 && g.depth < 2:
		return []*program.Op{g.childOp()}
	case k < 14 && g.depth < 3:
		return []*program.Op{{Op: "branches", Bodies: g.bodies(2 + g.rnd.IntN(2))}}
	case k < 15 && g.depth < 2:
		o := &program.Op{Op: "first", Bodies: g.bodies(2), Rest: "wait"}
		if g.rnd.IntN(2) == 0 {
			o.Rest, g.timer = "", false // the branch that is left may have a timer
		}
		return []*program.Op{o}
	case k < 16 && g.depth < 2:
		return []*program.Op{{Op: "pool", Width: 2, Bodies: g.bodies(3)}}
	case k < 17:
		return g.chance()
	case k < 18:
		return []*program.Op{{Op: "note", Text: "at " + g.name("n")}, g.step()}
	case k < 19:
		return []*program.Op{{Op: "try", Ops: []*program.Op{{Op: "step", Name: g.name("x")}},
			Catch: []*program.Op{{Op: "step", Name: g.name("a")}}}}
	case k < 20:
		return []*program.Op{{Op: "try", Ops: []*program.Op{g.step(), g.step()},
			Cancelled: []*program.Op{{Op: "step", Name: g.name("a")}}}}
	case k < 21:
		return []*program.Op{{Op: "patched", ID: g.name("p"), Then: []*program.Op{g.step()},
			Else: []*program.Op{{Op: "fail", Message: "the old way"}}}}
	default:
		return []*program.Op{{Op: "repeat", Times: 2 + g.rnd.IntN(2), Ops: []*program.Op{{Op: "step", Name: g.name("a")}}}}
	}
}

// chance draws a value and shows it to a later step, so that it has to be the same in each activation.
func (g *generator) chance() []*program.Op {
	kind := []string{"now", "random", "uuid"}[g.rnd.IntN(3)]
	into := g.name("v")
	return []*program.Op{{Op: kind, Into: into}, {Op: "step", Name: g.name("a")}, {Op: "step", Name: g.name("a"), Send: []string{into}}}
}

func (g *generator) signal() *program.Op {
	o := &program.Op{Op: "signal", Name: g.name("sig")}
	if g.timer && g.rnd.IntN(4) == 0 {
		limit := []int64{-1, 1, 20}[g.rnd.IntN(3)]
		o.LimitMS = &limit
		return &program.Op{Op: "try", Ops: []*program.Op{o}, Catch: []*program.Op{g.step()}}
	}
	g.sent = append(g.sent, sending{o.Name, string(g.value())})
	return o
}

func (g *generator) childOp() *program.Op {
	inner := *g
	inner.child, inner.depth, inner.timer = true, g.depth+1, false
	// a child begins with a step, so that its end follows from an answer of the gate
	ops := append([]*program.Op{{Op: "step", Name: inner.name("a")}}, inner.ops(1+g.rnd.IntN(2))...)
	ops = append(ops, &program.Op{Op: "step", Name: inner.name("a")}, &program.Op{Op: "return", Value: g.value()})
	g.names, g.left = inner.names, inner.left
	return &program.Op{Op: "child", Name: g.name("kid"), Program: &program.Program{Ops: ops}, Close: "cancel"}
}

// bodies makes branches, of which only one may set timers.
func (g *generator) bodies(n int) [][]*program.Op {
	timer, timed := g.timer, g.rnd.IntN(n)
	g.depth++
	defer func() { g.timer = timer; g.depth-- }()
	all := make([][]*program.Op, n)
	for i := range all {
		g.timer = timer && i == timed
		all[i] = g.ops(1 + g.rnd.IntN(3))
	}
	return all
}

// answerFor returns what the gate says to the step of a random program that has been answered so many
// times.
func answerFor(key string, given int) program.Answer {
	_, name, _ := strings.Cut(key, "/")
	switch {
	case strings.HasPrefix(name, "x"):
		return program.Answer{Do: "fail", Message: "declined", Type: "declined", NonRetryable: true}
	case strings.HasPrefix(name, "r") && given < int(name[1]-'0'):
		return program.Answer{Do: "fail", Message: fmt.Sprintf("failure %d", given+1), Type: "flaky"}
	}
	value, _ := json.Marshal("did " + name)
	return program.Answer{Do: "return", Value: value}
}
