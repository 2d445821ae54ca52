package view

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/proto/query"
	"github.com/kagzi/kagzi/tui"
	"github.com/kagzi/kagzi/tui/model"
	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/widget"
)

// runActions returns what people can do to runs. targets returns the runs, step the step under the
// cursor, or an empty string.
func (a *App) runActions(targets func() []*kagziv1.Workflow, step func() string) []*Action {
	r := runDeeds{app: a, targets: targets, step: step}
	return []*Action{
		{Name: "cancel", Keys: []string{"x"}, Args: "[GRACE]",
			Help: "cancel the run; it has 30s to clean up", Group: GroupAct, Changes: true,
			Least: clients, Hint: 3, Off: r.noneOpen, Run: r.cancel},
		{Name: "terminate", Keys: []string{"X"}, Help: "end the run now, without cleanup", Group: GroupAct,
			Changes: true, Off: r.noneOpen, Run: r.terminate},
		{Name: "retry", Keys: []string{"t"}, Args: "[STEP | --restart | --keep-all]",
			Help: "retry the ended run from the selected step", Group: GroupAct, Changes: true, Hint: 4,
			Off: r.noneEnded, Run: r.retry},
		{Name: "signal", Keys: []string{"s"}, Help: "send a signal to the run", Group: GroupAct, Changes: true,
			Least: clients, Hint: 5, Off: r.noneOpen, Run: r.signal},
		{Name: "toggle", Keys: []string{"P"}, Short: "pause",
			Help: "pause or resume the run", Group: GroupAct, Changes: true, Hint: 6,
			Off: r.noneOpen, Run: r.pauseOrResume},
		{Name: "pause", Args: "[--now]", Help: "pause the run after the running step",
			Group: GroupAct, Changes: true, Off: r.noneOpen,
			Run: r.pause},
		{Name: "resume", Help: "resume the paused run", Group: GroupAct, Changes: true, Off: r.noneOpen,
			Run: r.resume},
		{Name: "override", Keys: []string{"O"}, Help: "set the result of a step", Group: GroupAct,
			Changes: true, Off: r.notOne, Run: r.override},
		{Name: "toggle-pin", Keys: []string{"I"}, Help: "pin or unpin the run",
			Group: GroupAct, Changes: true, Off: r.none, Run: r.pinOrUnpin},
		{Name: "pin", Help: "pin the run: keep it beyond the retention", Group: GroupAct, Changes: true, Off: r.none,
			Run: r.pin},
		{Name: "unpin", Help: "unpin the run: the retention applies again", Group: GroupAct, Changes: true, Off: r.none,
			Run: r.unpin},
	}
}

// runDeeds holds what can be done to a selection of runs.
type runDeeds struct {
	app     *App
	targets func() []*kagziv1.Workflow
	step    func() string
}

func (r runDeeds) none() string {
	if len(r.targets()) == 0 {
		return errNothingUnder.Error()
	}
	return ""
}

func (r runDeeds) notOne() string {
	if len(r.targets()) != 1 {
		return "works on one run at a time"
	}
	return ""
}

func (r runDeeds) noneOpen() string {
	if none := r.none(); none != "" {
		return none
	}
	switch {
	case len(r.open()) > 0:
		return ""
	case len(r.ended()) > 0:
		return "the run has ended; t retries it"
	}
	return "the run has ended"
}

func (r runDeeds) noneEnded() string {
	if none := r.none(); none != "" {
		return none
	}
	if len(r.ended()) == 0 {
		return "only a run that ended without completing can be retried"
	}
	return ""
}

// open returns the targets that have not ended; ended returns those that ended without completing.
func (r runDeeds) open() []*kagziv1.Workflow {
	return chosen(r.targets(), func(w *kagziv1.Workflow) bool { return !render.Ended(w.GetStatus()) })
}

func (r runDeeds) ended() []*kagziv1.Workflow {
	return chosen(r.targets(), func(w *kagziv1.Workflow) bool {
		return render.Ended(w.GetStatus()) && w.GetStatus() != kagziv1.WorkflowStatus_WORKFLOW_STATUS_COMPLETED
	})
}

func chosen(runs []*kagziv1.Workflow, which func(*kagziv1.Workflow) bool) []*kagziv1.Workflow {
	var list []*kagziv1.Workflow
	for _, w := range runs {
		if which(w) {
			list = append(list, w)
		}
	}
	return list
}

// deed returns an action on runs with the text of its question.
func (r runDeeds) deed(action model.Action, runs []*kagziv1.Workflow, lines ...string) deed {
	names, types := map[string]string{}, make([]string, len(runs))
	for i, w := range runs {
		names[w.GetRunId()], types[i] = w.GetWorkflowType()+" "+runName(w), w.GetWorkflowType()
	}
	what := several(len(runs), "the run", "runs")
	if t := common(types); t != "" {
		what += " of type " + t
	}
	if left := len(r.targets()) - len(runs); left > 0 {
		stay := several(left, "1 marked run is", "marked runs are")
		lines = append(lines, stay+" left out: the action does not apply to their state.")
	}
	if len(runs) == 1 {
		lines = append(lines, fmt.Sprintf("%s in namespace %q, %s.", names[runs[0].GetRunId()], r.app.link.Namespace(),
			render.RunStatusCell(runs[0]).Text))
	}
	return deed{action: action, what: what, lines: lines, name: func(id string) string { return names[id] }}
}

// runName returns the external id of a run, or else its run id.
func runName(w *kagziv1.Workflow) string {
	if w.GetExternalId() != "" {
		return w.GetExternalId()
	}
	return w.GetRunId()
}

func idsOf(runs []*kagziv1.Workflow) []string {
	ids := make([]string, len(runs))
	for i, w := range runs {
		ids[i] = w.GetRunId()
	}
	return ids
}

func (r runDeeds) cancel(args []string) error {
	grace := tui.DefaultGrace
	if len(args) > 0 {
		var err error
		if grace, err = query.ParseDuration(args[0]); err != nil || len(args) > 1 {
			return fmt.Errorf("cancel takes a grace such as 30s, got %q", args[0])
		}
		if grace < 0 {
			return fmt.Errorf("grace %q: want a time that is not negative, such as 30s", args[0])
		}
	}
	runs := r.open()
	r.app.confirm(r.deed(r.app.scope().Cancel(idsOf(runs), grace, ""), runs, model.CancelText(grace)))
	return nil
}

func (r runDeeds) terminate([]string) error {
	runs := r.open()
	r.app.confirm(r.deed(r.app.scope().Terminate(idsOf(runs), ""), runs, model.TerminateText))
	return nil
}

func (r runDeeds) retry(args []string) error {
	runs := r.ended()
	o := model.RetryOptions{FromStep: r.step()}
	if len(args) > 0 {
		if o.FromStep = args[0]; len(args) > 1 {
			return fmt.Errorf("retry takes one step, --restart or --keep-all, got %q", strings.Join(args, " "))
		}
	}
	switch o.FromStep {
	case "--restart":
		o = model.RetryOptions{Restart: true}
	case "--keep-all":
		o = model.RetryOptions{KeepAll: true}
	}
	d := r.deed(r.app.scope().Retry(idsOf(runs), o), runs, model.RetryText(o))
	if here := r.app.trails.top(); len(runs) == 1 {
		d.done = func(j *model.Job) {
			if r.app.trails.top() == here { // the person may have moved on meanwhile
				r.app.done(r.app.pushView("run", j.Results[0].ID))
			}
		}
	}
	r.app.confirm(d)
	return nil
}

// isPaused and the functions below select runs.
func isPaused(w *kagziv1.Workflow) bool  { return w.GetPaused() || w.GetPausing() }
func notPaused(w *kagziv1.Workflow) bool { return !w.GetPaused() }
func isPinned(w *kagziv1.Workflow) bool  { return w.GetPinned() }
func notPinned(w *kagziv1.Workflow) bool { return !w.GetPinned() }

// pauseOrResume pauses the runs that are not paused; if all are paused it resumes them.
func (r runDeeds) pauseOrResume([]string) error {
	if len(chosen(r.open(), isPaused)) == len(r.open()) {
		return r.resume(nil)
	}
	return r.pause(nil)
}

func (r runDeeds) pause(args []string) error {
	now := len(args) == 1 && args[0] == "--now"
	if len(args) > 0 && !now {
		return fmt.Errorf("pause takes --now or nothing, got %q", strings.Join(args, " "))
	}
	runs := chosen(r.open(), notPaused)
	if len(runs) == 0 {
		return errors.New("already paused")
	}
	lines := []string{model.PauseText}
	inHand := len(chosen(runs, isRunning)) > 0
	switch {
	case now:
		lines = append(lines, model.PauseNowText)
	case inHand:
		lines = append(lines, model.PauseFirstText)
	}
	d := r.deed(r.app.scope().Pause(idsOf(runs), now, ""), runs, lines...)
	if inHand && !now {
		d.other, d.otherName = r.app.scope().Pause(idsOf(runs), true, ""), "Pause now"
	}
	r.app.confirm(d)
	return nil
}

func isRunning(w *kagziv1.Workflow) bool {
	return w.GetStatus() == kagziv1.WorkflowStatus_WORKFLOW_STATUS_RUNNING
}

func (r runDeeds) resume([]string) error {
	runs := chosen(r.open(), isPaused)
	if len(runs) == 0 {
		return errors.New("not paused")
	}
	d := r.deed(r.app.scope().Resume(idsOf(runs), false, ""), runs)
	if len(chosen(runs, isDiverged)) == 0 {
		r.app.carryOut(d)
		return nil
	}
	d.lines = []string{model.DivergedText, model.AcceptText}
	for _, report := range runs[0].GetDivergences() {
		d.lines = append(d.lines, fmt.Sprintf("Build %s calls %s, and not the recorded %s.", report.GetBuildId(),
			callNames(report.GetMade()), callNames(report.GetOwed())))
	}
	d.other, d.otherName = r.app.scope().Resume(idsOf(runs), true, ""), "Accept divergence"
	r.app.confirm(d)
	return nil
}

func isDiverged(w *kagziv1.Workflow) bool { return w.GetPaused() && len(w.GetDivergences()) > 0 }

// callNames lists the first few calls of a report.
func callNames(calls []*kagziv1.Call) string {
	const most = 5
	var names []string
	for _, c := range calls[:min(len(calls), most)] {
		names = append(names, c.GetName())
	}
	if more := len(calls) - most; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return cmp.Or(strings.Join(names, ", "), "calls")
}

// pinOrUnpin pins the runs that are not pinned; if all are pinned it unpins them.
func (r runDeeds) pinOrUnpin([]string) error {
	if len(chosen(r.targets(), notPinned)) == 0 {
		return r.unpin(nil)
	}
	return r.pin(nil)
}

func (r runDeeds) pin([]string) error {
	runs := chosen(r.targets(), notPinned)
	if len(runs) == 0 {
		return errors.New("already pinned")
	}
	r.app.carryOut(r.deed(r.app.scope().Pin(idsOf(runs), true, ""), runs))
	return nil
}

func (r runDeeds) unpin([]string) error {
	runs := chosen(r.targets(), isPinned)
	if len(runs) == 0 {
		return errors.New("not pinned")
	}
	r.app.carryOut(r.deed(r.app.scope().Pin(idsOf(runs), false, ""), runs))
	return nil
}

// waitsFor returns the name of the signal that a run waits for, or an empty string.
func waitsFor(w *kagziv1.Workflow) string {
	const prefix = "signal:"
	if text := w.GetWaitingFor(); len(text) > len(prefix) && text[:len(prefix)] == prefix {
		return text[len(prefix):]
	}
	return ""
}

func (r runDeeds) signal([]string) error {
	runs := r.open()
	names := make([]string, len(runs))
	for i, w := range runs {
		names[i] = waitsFor(w)
	}
	fields := []widget.Field{
		{Name: "name", Label: "Signal", Value: common(names), Required: true},
		{Name: "input", Label: "Payload", Kind: widget.JSONField},
	}
	r.app.form("Signal "+several(len(runs), "the run", "runs"), "Send", fields, func(values map[string]string) error {
		r.app.carryOut(r.deed(r.app.scope().Signal(idsOf(runs), values["name"], jsonOf(values["input"])), runs))
		return nil
	})
	return nil
}

func (r runDeeds) override([]string) error {
	runs := r.targets()
	fields := []widget.Field{
		{Name: "step", Label: "Step", Value: r.step(), Required: true},
		{Name: "kind", Label: "Status", Kind: widget.ChoiceField, Choices: []string{"completed", "failed"}},
		{Name: "input", Label: "Output", Kind: widget.JSONField},
		{Name: "error", Label: "Error"},
		{Name: "reason", Label: "Reason", Required: true},
	}
	r.app.form("Override a step", "Override", fields, func(values map[string]string) error {
		o := model.Override{Step: values["step"], Reason: values["reason"]}
		if values["kind"] == "failed" {
			if values["error"] == "" {
				return &fieldError{"error", errors.New("enter the error of the step")}
			}
			o.Message = values["error"]
		} else if o.Output = jsonOf(values["input"]); o.Output == nil {
			return &fieldError{"input", errors.New("enter the output of the step as JSON")}
		}
		r.app.confirm(r.deed(r.app.scope().Override(runs[0].GetRunId(), o), runs,
			model.OverrideText))
		return nil
	})
	return nil
}

// jsonOf returns the value of a JSON field; nil if it is empty.
func jsonOf(text string) []byte {
	if text == "" {
		return nil
	}
	return []byte(text)
}

// startForm shows the form that starts a run.
func (a *App) startForm(types, queues []string) {
	within := func(list []string) func(string) []string {
		return func(text string) []string { return beginning(list, text) }
	}
	fields := []widget.Field{
		{Name: "type", Label: "Type", Required: true, Complete: within(types)},
		{Name: "queue", Label: "Queue", Value: "", Complete: within(queues), Note: whenEmpty(`empty means "default"`)},
		{Name: "input", Label: "Input", Kind: widget.JSONField},
		{Name: "external", Label: "External ID"},
		{Name: "priority", Label: "Priority", Kind: widget.NumberField,
			Note: whenEmpty("-100 to 100, higher first; empty means 0")},
		{Name: "delay", Label: "Delay", Kind: widget.DurationField,
			Note: whenEmpty("such as 90s, 2h or 7d; empty means now")},
	}
	names := map[string]string{
		"workflow_type": "type", "task_queue": "queue", "input": "input", "external_id": "external",
		"priority": "priority",
		"start_at": "delay", "start_in": "delay",
	}
	a.fill("Start a run", "Start", fields, filling{names: names, deed: func(values map[string]string) (deed, error) {
		request := &kagziv1.StartWorkflowRequest{
			WorkflowType: values["type"], TaskQueue: values["queue"], ExternalId: values["external"]}
		if input := jsonOf(values["input"]); input != nil {
			request.Input = &kagziv1.Payload{Data: input,
				Metadata: map[string]string{"content-type": "application/json"}}
		}
		if values["priority"] != "" {
			n, err := strconv.ParseInt(values["priority"], 10, 32)
			if err != nil {
				return deed{}, &fieldError{"priority", err}
			}
			request.Priority = new(int32(n))
		}
		if values["delay"] != "" {
			d, err := query.ParseDuration(values["delay"])
			if err != nil {
				return deed{}, &fieldError{"delay", err}
			}
			request.StartAt, request.StartIn = timestamppb.New(a.now().Add(d)), durationpb.New(d)
		}
		return deed{action: a.scope().Start(request), what: "a run of " + values["type"]}, nil
	}})
}
