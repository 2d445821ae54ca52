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

// Scope names the server and namespace that actions apply to.
type Scope struct {
	Namespace string // empty: "default"
	Address   string // of the server, for command lines; empty: the default
	Home      Home
}

// Home is the server and namespace that a command line without flags reaches, from the environment
// and kagzi.toml. Empty fields mean the defaults.
type Home struct {
	Namespace string
	Address   string
	// Flags are words that every command line needs, such as "--profile", "prod"; the other fields
	// include their effect
	Flags []string
}

// away returns the flags that lead a command line from home to the scope. Only a namespaced command
// gets the flag of the namespace.
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

// Reach returns the flags that lead a namespaced command from home to the scope, quoted for a POSIX
// shell, with a leading space. It is empty if none are needed.
func (s Scope) Reach() string {
	var b strings.Builder
	for _, word := range s.reach(s.away(true)) {
		b.WriteString(" " + shellQuote(word))
	}
	return b.String()
}

// reach returns the words of flags, after those that every command line needs.
func (s Scope) reach(flags []flag) []string {
	var words []string
	for _, f := range flags {
		words = append(words, f.words()...)
	}
	return append(words, s.Home.Flags...)
}

// Action is something that a person does to one or more objects of a server, by id or name. A
// method of Scope creates it, and Perform runs it. Running it again repeats the same requests,
// which have no second effect.
type Action struct {
	Name    string   // "cancel", "delete schedule"
	Targets []string // ids or names that the action is for; for a creation the new name, or empty
	Danger  bool     // cannot be undone

	command []string // of the command line: "workflow", "cancel"
	operand []string // arguments after the target
	flags   []flag
	alone   bool // the command takes only one target
	scope   Scope
	// do performs the action on one target; id is the request id, the same on every repetition.
	do  func(ctx context.Context, api tui.API, target, id string) (Outcome, error)
	ids []string // request ids, by target
}

// flag is a command-line flag with its value, or without one.
type flag struct {
	name, value string
	bare        bool
}

// Outcome is the result of an action on one target.
type Outcome struct {
	Text   string // one line of raw text: "CANCELLED", "retried as 0193…"
	ID     string // of the created run, schedule or key; the path of a hook
	Secret string // of a created key, or of a hook
}

// Result is the Outcome for a target, or its error.
type Result struct {
	Target string
	Outcome
	Err  error // nil if it worked
	Done bool  // it was tried
}

// Uncertain reports whether the action may have worked although no answer arrived.
func (r Result) Uncertain() bool {
	switch status.Code(r.Err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.Unknown:
		return r.Err != nil
	}
	return false
}

// newAction completes an action with the request ids of its targets, which stay the same on every
// repetition.
func (s Scope) newAction(a Action) Action {
	a.scope = s
	a.ids = make([]string, len(a.Targets))
	for i := range a.ids {
		a.ids[i] = uuid.Must(uuid.NewV7()).String()
	}
	return a
}

// namespace returns the name of the scope's namespace.
func (s Scope) namespace() string {
	if s.Namespace == "" {
		return "default"
	}
	return s.Namespace
}

// CommandLine returns the equivalent command, quoted for a POSIX shell. A command that takes only
// one target is repeated, joined by &&.
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
	namespaced := !slices.Contains([]string{"worker", "namespace", "key"}, a.command[0])
	words = append(words, a.scope.reach(append(slices.Clone(a.flags), a.scope.away(namespaced)...))...)
	if dashed { // a target that looks like a flag goes after the flags
		words = append(append(words, "--"), operands...)
	}
	for i, word := range words {
		words[i] = shellQuote(word)
	}
	return strings.Join(words, " ")
}

// words returns the flag as words of a command line.
func (f flag) words() []string {
	switch {
	case f.bare:
		return []string{"--" + f.name}
	case strings.HasPrefix(f.value, "-"):
		return []string{"--" + f.name + "=" + f.value}
	}
	return []string{"--" + f.name, f.value}
}

// shellQuote quotes a word for a POSIX shell.
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

// WithRequest returns the action with a request id of its caller's, a UUID, from which those of its
// targets follow. Two actions that are alike and have the same id take effect once.
func (a Action) WithRequest(id uuid.UUID) Action {
	a.ids = make([]string, len(a.Targets))
	for i, target := range a.Targets {
		a.ids[i] = id.String()
		if len(a.Targets) > 1 {
			a.ids[i] = uuid.NewSHA1(id, []byte(target)).String()
		}
	}
	return a
}

// Do performs the action on all its targets in turn, and returns when it is done.
func (a Action) Do(ctx context.Context, api tui.API) []Result {
	results := make([]Result, len(a.Targets))
	for i, target := range a.Targets {
		o, err := a.do(ctx, api, target, a.ids[i])
		if err != nil {
			o = Outcome{}
		}
		results[i] = Result{Target: target, Outcome: o, Err: err, Done: true}
	}
	return results
}

// jobWorkers limits how many targets are processed at a time.
const jobWorkers = 8

// Job is a running or finished action.
type Job struct {
	Action  Action
	Results []Result // one for each target, in order
	Failed  int
	Tried   int

	tasks   *tasks
	api     tui.API
	waiting []int // indexes of targets
	running int
	changed func(*Job)
}

// Perform runs an action on all its targets, 8 at a time, and calls changed on the UI goroutine
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

// Running reports whether targets are left to process.
func (j *Job) Running() bool { return j.running > 0 || len(j.waiting) > 0 }

// Stop skips the targets that were not started.
func (j *Job) Stop() { j.waiting = nil }

// Again repeats the action for the targets that failed or were skipped. It sends the same requests,
// so an action that worked unnoticed is not done twice.
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

// next starts as many targets as jobWorkers allows.
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

// BulkLine returns the command that does an action on all runs that match a filter, but on at most so
// many, quoted for a POSIX shell.
func (s Scope) BulkLine(verb, query, reason string, most int64) string {
	flags := []flag{{name: "query", value: query}, numberFlag("limit", most)}
	return Action{command: []string{"workflow", verb}, flags: append(flags, reasonFlag(reason)...), scope: s}.CommandLine()
}
