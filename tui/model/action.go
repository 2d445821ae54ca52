package model

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/google/uuid"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kagzi/kagzi/tui"
)

// Scope is where actions are done.
type Scope struct {
	Namespace string // empty means "default"
	Address   string // of the server, for command lines; empty means the default
	Home      Home
}

// Home is where a command line goes that names no place: what the environment and kagzi.toml say.
// Its empty fields mean the defaults.
type Home struct {
	Namespace string
	Address   string
	// words that a command line needs beside, such as "--profile", "prod"; the others count with them
	Flags []string
}

// away are the flags that lead a command line from home to the scope; the namespace only where the
// command is about one.
func (s Scope) away(namespaced bool) []flag {
	var flags []flag
	if namespaced && s.namespace() != cmp.Or(s.Home.Namespace, "default") {
		flags = append(flags, flag{name: "namespace", value: s.namespace()})
	}
	if s.Address != "" && s.Address != cmp.Or(s.Home.Address, tui.DefaultAddress) {
		flags = append(flags, flag{name: "address", value: s.Address})
	}
	return flags
}

// Reach is what leads a command that is about a namespace from home to the scope, quoted for a
// POSIX shell, with a space in front; empty when nothing is needed.
func (s Scope) Reach() string {
	var b strings.Builder
	for _, word := range s.reach(s.away(true)) {
		b.WriteString(" " + shellQuote(word))
	}
	return b.String()
}

// reach are the words of flags and of those that every command line from home needs.
func (s Scope) reach(flags []flag) []string {
	var words []string
	for _, f := range flags {
		words = append(words, f.words()...)
	}
	return append(words, s.Home.Flags...)
}

// Action is something that a person does to one or more things of a server, by id or name. It is
// made by a method of Scope and done by Perform, any number of times: what is repeated has no
// second effect.
type Action struct {
	Name    string   // "cancel", "delete schedule"
	Targets []string // what it is done to; of what makes something new its name, or empty
	Danger  bool     // it cannot be undone

	command []string // of the command line: "workflow", "cancel"
	operand []string // arguments behind the target
	flags   []flag
	alone   bool // the command takes one target only
	scope   Scope
	// do does it to one target; id is the same whenever it is repeated.
	do  func(ctx context.Context, api tui.API, target, id string) (Outcome, error)
	ids []string // request ids of the targets
}

// flag is a flag of a command line with its value; one without a value is given by itself.
type flag struct {
	name, value string
	bare        bool
}

// Outcome is what an action came to.
type Outcome struct {
	Text string // one line of raw text: "CANCELLED", "retried as 0193…"
	ID   string // of what was made: a run, a schedule
}

// Result is an Outcome of one target.
type Result struct {
	Target string
	Outcome
	Err  error // nil when it worked
	Done bool  // it has been tried
}

// Uncertain says that it may have worked although the answer never came.
func (r Result) Uncertain() bool {
	switch status.Code(r.Err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.Unknown:
		return r.Err != nil
	}
	return false
}

// newAction finishes an action: it gets the ids under which it is known however often it is done.
func (s Scope) newAction(a Action) Action {
	a.scope = s
	a.ids = make([]string, len(a.Targets))
	for i := range a.ids {
		a.ids[i] = uuid.Must(uuid.NewV7()).String()
	}
	return a
}

// namespace is the scope's, by its name.
func (s Scope) namespace() string {
	if s.Namespace == "" {
		return "default"
	}
	return s.Namespace
}

// CommandLine is the equivalent command, quoted for a POSIX shell; more than one, joined by &&,
// where the command takes one thing only.
func (a Action) CommandLine() string {
	if !a.alone || len(a.Targets) < 2 {
		return a.commandLine(a.Targets)
	}
	lines := make([]string, len(a.Targets))
	for i, target := range a.Targets {
		lines[i] = a.commandLine([]string{target})
	}
	return strings.Join(lines, " && ")
}

func (a Action) commandLine(targets []string) string {
	words := append([]string{"kagzi"}, a.command...)
	operands := append(slices.Clone(targets), a.operand...)
	dashed := slices.ContainsFunc(operands, func(o string) bool { return strings.HasPrefix(o, "-") })
	if !dashed {
		words = append(words, operands...)
	}
	namespaced := a.command[0] != "worker" && a.command[0] != "namespace" // their ids and names hold everywhere
	words = append(words, a.scope.reach(append(slices.Clone(a.flags), a.scope.away(namespaced)...))...)
	if dashed { // what looks like a flag stands behind the flags
		words = append(append(words, "--"), operands...)
	}
	for i, word := range words {
		words[i] = shellQuote(word)
	}
	return strings.Join(words, " ")
}

// words are a flag as it stands in a command line.
func (f flag) words() []string {
	switch {
	case f.bare:
		return []string{"--" + f.name}
	case strings.HasPrefix(f.value, "-"):
		return []string{"--" + f.name + "=" + f.value}
	}
	return []string{"--" + f.name, f.value}
}

// shellQuote makes a word mean itself in a POSIX shell.
func shellQuote(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' ||
			strings.ContainsRune("_@%+=:,./-", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// jobWorkers is how many targets are dealt with at a time.
const jobWorkers = 8

// Job is an action that is being done, or was.
type Job struct {
	Action  Action
	Results []Result // one for each target, in their order
	Failed  int
	Tried   int

	tasks   *tasks
	api     tui.API
	waiting []int // indexes of targets
	running int
	changed func(*Job)
}

// Perform does an action to all its targets, 8 at a time, and calls changed on the UI goroutine
// after each. The job ends with the link.
func Perform(l *Link, a Action, changed func(*Job)) *Job {
	j := &Job{Action: a, Results: make([]Result, len(a.Targets)), tasks: l.tasks, api: l.api, changed: changed}
	for i, target := range a.Targets {
		j.Results[i].Target = target
		j.waiting = append(j.waiting, i)
	}
	j.next()
	return j
}

// Running says that targets are left to be dealt with.
func (j *Job) Running() bool { return j.running > 0 || len(j.waiting) > 0 }

// Stop leaves out the targets that were not begun.
func (j *Job) Stop() { j.waiting = nil }

// Again does it to the targets once more that failed or were left out, as the same request: what
// had worked unnoticed is not done twice.
func (j *Job) Again() {
	if j.Running() {
		return
	}
	for i := range j.Results {
		r := &j.Results[i]
		if r.Done && r.Err == nil {
			continue
		}
		if r.Done {
			j.Failed--
			j.Tried--
		}
		*r = Result{Target: r.Target}
		j.waiting = append(j.waiting, i)
	}
	j.next()
}

// next begins with as many targets as may be under way.
func (j *Job) next() {
	for j.running < jobWorkers && len(j.waiting) > 0 {
		i := j.waiting[0]
		j.waiting = j.waiting[1:]
		j.running++
		do, target, id, api := j.Action.do, j.Action.Targets[i], j.Action.ids[i], j.api
		ask(j.tasks, func(ctx context.Context) (Outcome, error) {
			return do(ctx, api, target, id)
		}, func(o Outcome, err error) {
			j.running--
			j.Tried++
			if err != nil {
				j.Failed++
				o = Outcome{}
			}
			j.Results[i] = Result{Target: target, Outcome: o, Err: err, Done: true}
			j.next()
			j.changed(j)
		})
	}
}
