package engine

import (
	"slices"
	"strings"
	"time"
)

const (
	// MaxCalls limits each list of calls of a Divergence, and the names in Run.Unreached.
	MaxCalls = 100
	// MaxBuildID limits a build id, in bytes.
	MaxBuildID = 128
)

// Call is a call of workflow code: one that is recorded, or one that the code made.
type Call struct {
	Name   string   `json:"name"`
	Kind   StepKind `json:"kind"`
	Branch string   `json:"branch,omitempty"` // ordinals of forks, such as "2.1"; empty: the workflow function
	Detail string   `json:"detail,omitempty"` // the child's type or the signal's name
}

// Divergence is a report that the code of one build does not match a run's history.
type Divergence struct {
	Made       []Call    `json:"made,omitempty"` // calls without a record that wait to take effect
	Owed       []Call    `json:"owed,omitempty"` // recorded calls that the code has not made
	BuildID    string    `json:"build_id"`
	ReportedAt time.Time `json:"reported_at"`
}

// Apart says whether claims look for the run apart from the others while it waits, because it may
// not go to every worker that serves it.
func (r *Run) Apart() bool { return r.Suspect.Is() || len(r.Divergences) > 0 }

// Diverged says whether the run is paused because each build in service has reported a divergence.
func (r *Run) Diverged() bool { return r.Paused && len(r.Divergences) > 0 }

// DivergedIn says whether a build has reported a divergence. Workers without a build id report none.
func (r *Run) DivergedIn(build string) bool {
	return build != "" && slices.ContainsFunc(r.Divergences, func(d Divergence) bool { return d.BuildID == build })
}

// Report adds a report of divergence. It replaces an earlier one of the same build.
func (r *Run) Report(d Divergence) {
	reports := slices.DeleteFunc(slices.Clone(r.Divergences),
		func(o Divergence) bool { return o.BuildID == d.BuildID })
	r.Divergences = append(reports, d)
}

// Builds returns the ids of the builds that have reported a divergence, in the form that
// stores keep: sorted, each between line breaks; empty if there is none.
func (r *Run) Builds() string {
	if len(r.Divergences) == 0 {
		return ""
	}
	ids := make([]string, len(r.Divergences))
	for i, d := range r.Divergences {
		ids[i] = d.BuildID
	}
	slices.Sort(ids)
	return "\n" + strings.Join(ids, "\n") + "\n"
}

// BuildMark returns a text that Builds contains if the build is one of them. That of an empty id is
// never contained.
func BuildMark(build string) string { return "\n" + build + "\n" }

// Serves says whether the worker may be given runs like r, but for limits and what is known about r.
func (w *Worker) Serves(r *Run) bool {
	return w.Status == WorkerOnline && slices.Contains(w.Queues, r.Queue) && slices.Contains(w.Types, r.Type) &&
		Meets(w.Offers(), r.Requirements)
}

// Stranded says whether all workers that serve the run are of the builds in reported, which has the
// form of Run.Builds. Without any such worker it is not: the next one may be of another build.
func Stranded(r *Run, reported string, workers []Worker) bool {
	served := false
	for i := range workers {
		if w := &workers[i]; w.Serves(r) {
			if !strings.Contains(reported, BuildMark(w.BuildID)) {
				return false
			}
			served = true
		}
	}
	return served
}

// Validate returns an error that names the field if a report of blocked code passes a limit.
func (b *BlockedCode) Validate() error {
	if n := max(len(b.Held), len(b.Owed)); n > MaxBlockedCalls {
		return Invalid("blocked", "names %d calls, at most %d are allowed", n, MaxBlockedCalls)
	}
	return firstError([]error{
		CheckText("blocked.stack", b.Stack, MaxBlockedStack),
		CheckOptionalName("blocked.branch", b.Branch),
		checkCalls("blocked.held", b.Held),
		checkCalls("blocked.owed", b.Owed),
	})
}

// Validate returns an error that names the field if a report passes a limit or says nothing.
func (d *Divergence) Validate() error {
	if len(d.Made)+len(d.Owed) == 0 {
		return Invalid("divergence", "must name calls that the code made or has not made")
	}
	if err := checkCalls("divergence.made", d.Made); err != nil {
		return err
	}
	return checkCalls("divergence.owed", d.Owed)
}

func checkCalls(field string, calls []Call) error {
	if len(calls) > MaxCalls {
		return Invalid(field, "has %d entries, at most %d are allowed", len(calls), MaxCalls)
	}
	for _, c := range calls {
		if c.Kind.String() == "UNKNOWN" {
			return Invalid(field+".kind", "has the unknown value %d", c.Kind)
		}
		if err := firstError([]error{
			CheckName(field+".name", c.Name),
			CheckOptionalName(field+".branch", c.Branch),
			CheckOptionalName(field+".detail", c.Detail),
		}); err != nil {
			return err
		}
	}
	return nil
}

// CheckUnreached returns an error unless names are at most MaxCalls names of steps.
func CheckUnreached(names []string) error {
	if len(names) > MaxCalls {
		return Invalid("unreached", "has %d entries, at most %d are allowed", len(names), MaxCalls)
	}
	for _, name := range names {
		if err := CheckName("unreached", name); err != nil {
			return err
		}
	}
	return nil
}

// NotAlone is the error of an end that leaves recorded calls unreached although a worker of another
// build may reach them.
func NotAlone(worker string) error {
	return &Error{Kind: KindPrecondition, Subject: "divergence", SubjectID: worker,
		Message: "recorded calls are unreached, and worker " + worker +
			" is of another build that may reach them: release the run with a divergence"}
}
