package simulate

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// Plan is everything that is decided about a simulation before it begins: clients, workers, what
// they do and when, and faults. It follows from its seed alone. Parts can be left out (Shrink); the
// rest keeps its meaning.
type Plan struct {
	Seed      uint64
	Servers   int   // they share one database
	Workers   []int // how many runs each takes at once
	Clients   int
	Group     int           // at most so many writes share a commit
	Early     bool          // the store accepts a write before its predecessor's outcome is known
	Endings   bool          // the store sends how a run ended with the notification
	Chaos     time.Duration // how long faults and requests last; then everything heals and must end
	Starts    []Start       `json:",omitempty"`
	Orders    []Order       `json:",omitempty"`
	Schedules []Template    `json:",omitempty"`
	Faults    []Fault       `json:",omitempty"`
	Events    []Event       `json:",omitempty"`
}

// Start is a run that a client starts.
type Start struct {
	Name      string // its request id
	At        time.Duration
	Repeat    []time.Duration `json:",omitempty"` // when other clients repeat the request
	External  string          `json:",omitempty"`
	Key       string          `json:",omitempty"` // concurrency key
	Limit     int             `json:",omitempty"`
	Open      bool            `json:",omitempty"` // the key counts the run from its first claim to its end
	Attempts  int             `json:",omitempty"` // of the run
	Deadline  time.Duration   `json:",omitempty"` // from its start
	Delay     time.Duration   `json:",omitempty"`
	Priority  int             `json:",omitempty"`
	OnFailure bool            `json:",omitempty"`
	Program   Program
}

// Program is the input of every run: what its code does, in order.
type Program struct {
	Acts []Act    `json:",omitempty"`
	Fail bool     `json:",omitempty"` // it fails at its end, each time
	Next *Program `json:",omitempty"` // it continues as this one
}

// Act is one thing that a program does.
type Act struct {
	Do    string        // "step", "branches", "sleep", "signal", "child", "note"
	Name  string        `json:",omitempty"`
	For   time.Duration `json:",omitempty"` // how long a step works, a timer runs, a signal is awaited
	Fails int           `json:",omitempty"` // step: how many attempts fail
	Tries int           `json:",omitempty"` // step: its attempts; the last failure fails the run
	Limit time.Duration `json:",omitempty"` // step: limit of an attempt
	Close int           `json:",omitempty"` // what happens to a child that is open when its parent ends
	Child *Program      `json:",omitempty"`
	Parts []Act         `json:",omitempty"` // branches: one act each
}

// Order is a client's request about a started run: "cancel", "stop" (with a grace), "terminate",
// "pause" (and resume), "signal", "retry", "from" (retry from a step), "look" or "wait".
type Order struct {
	Do    string
	Run   string // the Start's name
	At    time.Duration
	Name  string        `json:",omitempty"` // of the signal or step
	ID    string        `json:",omitempty"` // of the signal or request
	For   time.Duration `json:",omitempty"` // the grace or pause
	Twice bool          `json:",omitempty"` // another client repeats it at once
}

// Template is a schedule.
type Template struct {
	Name    string
	At      time.Duration
	Every   int // seconds, a divisor of 60
	Overlap int // kagzi.OverlapPolicy
	Program Program
}

// Fault hits the n-th call of a verb, counted over all servers from 1.
type Fault struct {
	Verb string
	Nth  int
	// "fail": it is not carried out; "lose": it is carried out, but reported as failed; "late": it
	// is delivered after For
	Fate string
	For  time.Duration `json:",omitempty"`
}

// Event is a fault at a time. "server" and "worker" kill a process for a while; the outcome of its
// calls in flight is random. "silence" drops everything on a worker's connections (with Client, a
// client's) without breaking them; "deaf" drops only what it receives, "mute" only what it sends;
// "stall" delays both directions; "cut" breaks the connections. "gap" makes a server miss
// notifications. "lose" kills all servers and undoes the last commits, which no database may do.
// "failover" undoes some while the servers keep running, as when a standby is promoted that lags
// behind.
type Event struct {
	Do string
	At time.Duration
	// instead of a time: when the n-th step body begins, counted from 1 over all workers
	Body   int           `json:",omitempty"`
	Index  int           // of the server, worker or client; with Body, the worker that runs that step
	For    time.Duration `json:",omitempty"`
	Client bool          `json:",omitempty"`
}

// writes are the verbs that can get faults, with how often each is likely to be called.
var writes = []struct {
	verb  string
	calls int
}{
	{"StartRuns", 16}, {"Claim", 60}, {"BeginStep", 20}, {"CompleteStep", 40}, {"FailStep", 14}, {"Sleep", 12},
	{"AwaitSignal", 10},
	{"StartChild", 8}, {"AwaitChildren", 8}, {"CompleteRun", 20}, {"FailRun", 8}, {"Release", 4}, {"Heartbeat", 40},
	{"RegisterWorker", 8},
	{"ForceOfflineWorker", 4}, {"CancelRun", 6}, {"TerminateRun", 4}, {"SignalRun", 10}, {"PauseRun", 3},
	{"ResumeRun", 3}, {"RetryRun", 4},
	{"CreateSchedule", 2}, {"FireSchedule", 12}, {"TimeoutSteps", 10}, {"EndExpired", 10}, {"FreeLost", 6},
	{"GetRun", 20}, {"HeldBy", 10}, {"LiveWorkers", 20}, {"DueSchedules", 10}, {"GetWorker", 6},
}

// planner draws a Plan from a seed.
type planner struct {
	*rand.Rand
	plan  Plan
	names int
}

// NewPlan returns the plan of a seed. Each seed has a subset of faults and work, so that rare
// combinations of few are as likely as crowds.
func NewPlan(seed uint64) Plan {
	p := &planner{Rand: rand.New(rand.NewPCG(seed, 0x6b61677a69))}
	p.plan = Plan{
		Seed: seed, Servers: 1 + p.IntN(2), Clients: 2, Group: 1 + p.IntN(4), Early: p.chance(0.6),
		Endings: p.chance(0.5),
		Chaos:   30*time.Second + p.upTo(60*time.Second),
	}
	for range 1 + p.IntN(3) {
		p.plan.Workers = append(p.plan.Workers, 1+p.IntN(4))
	}
	for range 3 + p.IntN(8) {
		p.start()
	}
	if p.chance(0.3) {
		p.schedule()
	}
	p.faults()
	p.events()
	p.failover()
	p.lines()
	return p.plan
}

// alone returns the plan for a database that has one server at a time.
func (p Plan) alone() Plan {
	p.Servers, p.Events = 1, onServer0(p.Events)
	p.Events = slices.DeleteFunc(p.Events, func(e Event) bool { return e.Do == "failover" })
	return p
}

func (p *planner) chance(x float64) bool { return p.Float64() < x }

// upTo returns a duration in whole milliseconds, short ones more often.
func (p *planner) upTo(d time.Duration) time.Duration {
	x := p.Float64()
	return time.Duration(x*x*float64(d)).Truncate(time.Millisecond) + time.Millisecond
}

// moment returns a time within the chaos.
func (p *planner) moment() time.Duration {
	return time.Duration(p.Float64() * float64(p.plan.Chaos)).Truncate(time.Millisecond)
}

func (p *planner) name(kind string) string {
	p.names++
	return fmt.Sprintf("%s%d", kind, p.names)
}

func (p *planner) start() {
	s := Start{Name: p.name("run"), At: p.upTo(p.plan.Chaos / 2), Priority: p.IntN(3) - 1, OnFailure: p.chance(0.3)}
	for p.chance(0.25) {
		s.Repeat = append(s.Repeat, s.At+p.upTo(5*time.Second))
	}
	if p.chance(0.15) {
		s.External = fmt.Sprintf("external%d", p.IntN(2))
	}
	if p.chance(0.3) {
		s.Key, s.Limit = fmt.Sprintf("key%d", p.IntN(2)), 1+len(p.plan.Starts)%2
		s.Open = len(p.plan.Starts)%3 != 0
	}
	if p.chance(0.2) {
		s.Attempts = 2 + p.IntN(2)
	}
	if p.chance(0.15) {
		s.Deadline = time.Second + p.upTo(40*time.Second)
	}
	if p.chance(0.2) {
		s.Delay = p.upTo(10 * time.Second)
	}
	s.Program = p.program(2)
	p.plan.Starts = append(p.plan.Starts, s)
	p.orders(&s)
}

// program may start children down to this many levels.
func (p *planner) program(depth int) (out Program) {
	for range p.IntN(5) {
		out.Acts = append(out.Acts, p.act(depth))
	}
	out.Fail = p.chance(0.12)
	if depth == 2 && p.chance(0.1) {
		next := p.program(1)
		out.Next = &next
	}
	return out
}

func (p *planner) act(depth int) Act {
	switch x := p.IntN(20); {
	case x < 10:
		return p.step()
	case x < 12:
		a := Act{Do: "branches"}
		for range 2 + p.IntN(2) {
			part := p.step()
			if p.chance(0.2) {
				part = Act{Do: "sleep", Name: p.name("timer"), For: p.upTo(8 * time.Second)}
			}
			a.Parts = append(a.Parts, part)
		}
		return a
	case x < 15:
		return Act{Do: "sleep", Name: p.name("timer"), For: p.upTo(20 * time.Second)}
	case x < 17:
		return Act{Do: "signal", Name: fmt.Sprintf("signal%d", p.IntN(2)), For: time.Second + p.upTo(20*time.Second)}
	case x < 19 && depth > 0:
		child := p.program(depth - 1)
		child.Next = nil
		return Act{Do: "child", Name: p.name("child"), Child: &child, Close: p.IntN(3)}
	case x < 19:
		return p.step()
	}
	return Act{Do: "note"}
}

func (p *planner) step() Act {
	a := Act{Do: "step", Name: p.name("step"), For: p.upTo(3 * time.Second), Tries: 3}
	switch {
	case p.chance(0.5):
		a.For = p.upTo(100 * time.Millisecond)
	case p.chance(0.1):
		a.For, a.Limit = 5*time.Second+p.upTo(20*time.Second), 2*time.Second
	}
	if p.chance(0.3) {
		a.Fails = 1 + p.IntN(3)
	}
	return a
}

// orders returns what clients ask of a run.
func (p *planner) orders(s *Start) {
	add := func(o Order) {
		o.Run, o.Twice = s.Name, p.chance(0.2)
		p.plan.Orders = append(p.plan.Orders, o)
	}
	later := func() time.Duration { return s.At + p.upTo(20*time.Second) }
	add(Order{Do: "wait", At: later()})
	for range p.IntN(3) {
		add(Order{Do: "signal", At: later(), Name: fmt.Sprintf("signal%d", p.IntN(2)), ID: p.name("sent")})
	}
	if p.chance(0.3) {
		add(Order{Do: "look", At: later()})
	}
	switch x := p.IntN(20); {
	case x < 2:
		add(Order{Do: "cancel", At: later()})
	case x < 4:
		add(Order{Do: "stop", At: later(), For: p.upTo(10 * time.Second)})
	case x < 5:
		add(Order{Do: "terminate", At: later()})
	}
	for p.chance(0.3) {
		add(Order{Do: "pause", At: s.At + p.upTo(5*time.Second), For: p.upTo(5 * time.Second)})
	}
	if p.chance(0.2) {
		o := Order{Do: "retry", At: s.At + p.plan.Chaos/2 + p.upTo(10*time.Second), ID: p.name("again")}
		if first := firstStep(s.Program); first != "" && p.chance(0.5) {
			o.Do, o.Name = "from", first
		}
		add(o)
	}
}

func firstStep(program Program) string {
	for _, a := range program.Acts {
		if a.Do == "step" {
			return a.Name
		}
	}
	return ""
}

func (p *planner) schedule() {
	every := []int{5, 10, 20}[p.IntN(3)]
	program := Program{Acts: []Act{p.step()}}
	program.Acts[0].Fails = 0
	p.plan.Schedules = append(p.plan.Schedules,
		Template{Name: p.name("schedule"), At: p.upTo(10 * time.Second), Every: every, Overlap: p.IntN(3),
			Program: program})
}

func (p *planner) faults() {
	rate := []float64{0, 0.03, 0.1, 0.3}[p.IntN(4)]
	fates := [][]string{{"fail"}, {"lose"}, {"late"}, {"fail", "lose", "late", "lose"}}[p.IntN(4)]
	for _, w := range writes {
		for n := range w.calls {
			if !p.chance(rate) {
				continue
			}
			f := Fault{Verb: w.verb, Nth: n + 1, Fate: fates[p.IntN(len(fates))]}
			if f.Fate == "late" {
				f.For = p.upTo(40 * time.Second)
			}
			p.plan.Faults = append(p.plan.Faults, f)
		}
	}
}

// failover uses its own random stream, so that the rest of the plan does not depend on it. Few
// seeds have one, because it makes everything that clients were told before prove nothing.
func (p *planner) failover() {
	p.Rand = rand.New(rand.NewPCG(p.plan.Seed, 0x6661696c6f766572))
	for p.chance(0.1) {
		p.plan.Events = append(p.plan.Events, Event{Do: "failover", At: p.moment()})
	}
}

// lines gives some machines bad lines, also from its own random stream.
func (p *planner) lines() {
	p.Rand = rand.New(rand.NewPCG(p.plan.Seed, 0x6c696e6573))
	if !p.chance(0.25) {
		return
	}
	for range 1 + p.IntN(3) {
		e := Event{Do: []string{"stall", "stall", "deaf", "mute"}[p.IntN(4)], At: p.moment(),
			For: 100*time.Millisecond + p.upTo(60*time.Second), Client: p.chance(0.2)}
		if e.Index = p.IntN(len(p.plan.Workers)); e.Client {
			e.Index = p.IntN(p.plan.Clients)
		}
		p.plan.Events = append(p.plan.Events, e)
	}
}

func (p *planner) events() {
	kinds := []string{"server", "worker", "silence", "cut", "gap", "silence-client", "victim"}
	p.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
	kinds = kinds[:p.IntN(4)]
	for _, kind := range kinds {
		for range 1 + p.IntN(3) {
			e := Event{Do: kind, At: p.moment(), For: 100*time.Millisecond + p.upTo(60*time.Second)}
			switch kind {
			case "victim":
				e.Do, e.Body = "worker", 1+p.IntN(8)
			case "server", "gap":
				e.Index = p.IntN(p.plan.Servers)
			case "silence-client":
				e.Do, e.Client, e.Index = "silence", true, p.IntN(p.plan.Clients)
			default:
				e.Index = p.IntN(len(p.plan.Workers))
			}
			p.plan.Events = append(p.plan.Events, e)
		}
	}
}
