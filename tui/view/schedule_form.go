package view

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/model"
	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/view/internal/tables"
	"github.com/kagzi/kagzi/tui/widget"
)

const (
	previewTicks = 5
	usualCatchup = 100
	mostCatchup  = 100_000
)

// zones lists common time zones for completion; any IANA name can be typed.
var zones = []string{
	"UTC", "Europe/London", "Europe/Berlin", "Europe/Paris", "Europe/Madrid", "Europe/Rome", "Europe/Warsaw",
	"Europe/Istanbul", "America/New_York",
	"America/Chicago", "America/Denver", "America/Los_Angeles", "America/Sao_Paulo", "Africa/Johannesburg",
	"Asia/Dubai", "Asia/Kolkata", "Asia/Singapore",
	"Asia/Shanghai", "Asia/Tokyo", "Australia/Sydney", "Pacific/Auckland",
}

// overlaps lists the policies in the order of their words, the default first.
var overlaps = []kagziv1.OverlapPolicy{
	kagziv1.OverlapPolicy_OVERLAP_POLICY_ALLOW, kagziv1.OverlapPolicy_OVERLAP_POLICY_SKIP,
	kagziv1.OverlapPolicy_OVERLAP_POLICY_BUFFER_ONE,
}

// overlapOf returns the policy of a word.
func overlapOf(word string) kagziv1.OverlapPolicy {
	for _, o := range overlaps {
		if render.Overlap(o) == word {
			return o
		}
	}
	return kagziv1.OverlapPolicy_OVERLAP_POLICY_ALLOW
}

// scheduleForm is the form of a schedule. It previews the next ticks while the expression is typed.
type scheduleForm struct {
	app     *App
	filling *filling
	preview *model.Preview
	types   *model.Collection[*kagziv1.WorkflowTypeInfo] // for completion
}

// newSchedule shows the form that creates a schedule.
func (a *App) newSchedule() {
	s := &kagziv1.WorkflowSchedule{MaxCatchup: usualCatchup, Enabled: true}
	a.fillSchedule("New schedule", "Create", s, func(values map[string]string) (deed, error) {
		return deed{action: a.scope().CreateSchedule(createSchedule(values)), what: nameIn(values)}, nil
	})
}

// editSchedule loads a schedule with its input and shows its form.
func (a *App) editSchedule(id string) error {
	if a.link.State().Down() {
		return errors.New("the server is not connected")
	}
	from := a.trails.top()
	item := model.NewSchedule(a.link, id)
	item.Changed = func() {
		defer item.Close()
		switch err := item.Err(); {
		case err != nil:
			a.complain(err)
		case item.Loaded() && a.trails.top() == from && a.layer() == nil: // the person has not moved on meanwhile
			a.changeSchedule(item.Value().WorkflowSchedule)
		}
	}
	item.Show()
	return nil
}

// changeSchedule shows the form of a schedule and updates only the changed fields.
func (a *App) changeSchedule(old *kagziv1.WorkflowSchedule) {
	a.fillSchedule("Schedule "+tables.ScheduleName(old), "Change", old, func(values map[string]string) (deed, error) {
		request, changed := updateSchedule(old, values)
		if !changed {
			a.say("%q has no changes", tables.ScheduleName(old))
			return deed{}, nil
		}
		return deed{action: a.scope().UpdateSchedule(old, request), what: tables.ScheduleName(old),
			name: func(string) string { return tables.ScheduleName(old) }}, nil
	})
}

// fillSchedule shows the form, filled in from a schedule.
func (a *App) fillSchedule(title, label string, s *kagziv1.WorkflowSchedule,
	done func(values map[string]string) (deed, error)) {
	f := &scheduleForm{app: a, preview: model.NewPreview(a.link, previewTicks), types: model.NewTypes(a.link)}
	f.types.Show()
	f.filling = a.fill(title, label, f.fields(s), filling{
		deed: done, unique: "name",
		names: map[string]string{
			"workflow_type": "type", "task_queue": "queue", "cron_expr": "cron", "time_zone": "zone", "name": "name",
			"max_catchup": "catchup", "input": "input",
		},
		closed: func() {
			f.preview.Close()
			f.types.Close()
		},
	})
}

// fields returns the fields of the form, filled in from a schedule.
func (f *scheduleForm) fields(s *kagziv1.WorkflowSchedule) []widget.Field {
	words := make([]string, len(overlaps))
	for i, o := range overlaps {
		words[i] = render.Overlap(o)
	}
	fields := []widget.Field{
		{Name: "type", Label: "Type", Value: s.GetWorkflowType(), Required: true, Complete: f.completeType},
		{Name: "queue", Label: "Queue", Value: s.GetTaskQueue(), Complete: f.completeQueue,
			Note: whenEmpty(`empty means "default"`)},
		{Name: "cron", Label: "When", Value: s.GetCronExpr(), Required: true, Note: f.look},
		{Name: "zone", Label: "Time zone", Value: s.GetTimeZone(), Complete: func(text string) []string {
			return beginning(zones, text)
		}, Note: f.lookZone},
		{Name: "overlap", Label: "Overlap", Kind: widget.ChoiceField, Choices: words,
			Value: render.Overlap(s.GetOverlapPolicy()), Note: overlapNote},
		{Name: "catchup", Label: "Catch up", Kind: widget.NumberField, Value: strconv.Itoa(int(s.GetMaxCatchup())),
			Check: checkCatchup,
			Note:  func(string) []render.Cell { return dim("most missed ticks to run after downtime; 0 runs none") }},
		{Name: "name", Label: "Name", Value: s.GetName(), Note: whenEmpty("empty: the schedule has only an id")},
	}
	if editable(s.GetInput()) {
		fields = slices.Insert(fields, 4, widget.Field{
			Name: "input", Label: "Input", Kind: widget.JSONField, Value: string(s.GetInput().GetData())})
	}
	return fields
}

func dim(text string) []render.Cell { return []render.Cell{{Text: text, Style: render.Dim}} }

// whenEmpty returns a note that is shown below an empty field.
func whenEmpty(text string) func(string) []render.Cell {
	return func(value string) []render.Cell {
		if value != "" {
			return nil
		}
		return dim(text)
	}
}

// overlapNote says what a policy does.
func overlapNote(word string) []render.Cell {
	switch overlapOf(word) {
	case kagziv1.OverlapPolicy_OVERLAP_POLICY_SKIP:
		return dim("while a run is active, ticks are skipped")
	case kagziv1.OverlapPolicy_OVERLAP_POLICY_BUFFER_ONE:
		return dim("while a run is active, one tick waits; more are skipped")
	}
	return dim("ticks start runs even while one is active")
}

func checkCatchup(value string) error {
	if n, err := strconv.ParseInt(value, 10, 32); err != nil || n < 0 || n > mostCatchup {
		return fmt.Errorf("want a number from 0 to %d", mostCatchup)
	}
	return nil
}

// completeType completes the types that have runs.
func (f *scheduleForm) completeType(text string) []string {
	var names []string
	for _, t := range f.types.All() {
		names = append(names, t.GetWorkflowType())
	}
	return beginning(names, text)
}

// completeQueue completes the queues of the type, then all others.
func (f *scheduleForm) completeQueue(text string) []string {
	var own, others []string
	for _, t := range f.types.All() {
		if f.filling != nil && t.GetWorkflowType() == f.filling.form.Value("type") {
			own = append(own, t.GetTaskQueues()...)
		} else {
			others = append(others, t.GetTaskQueues()...)
		}
	}
	return beginning(append(own, others...), text)
}

// look previews the ticks of the expression below its field, or says why it never fires.
func (f *scheduleForm) look(expr string) []render.Cell {
	if f.filling == nil {
		return nil
	}
	zone := strings.TrimSpace(f.filling.form.Value("zone"))
	f.preview.Want(strings.TrimSpace(expr), zone)
	var lines []widget.Line
	for _, t := range f.preview.Ticks() {
		lines = append(lines, f.app.tickLine(t, zone))
	}
	f.filling.form.SetNote("cron", lines)
	switch problem, _ := f.refusal("cron_expr"); {
	case problem != "":
		return []render.Cell{{Text: problem, Style: render.Bad}}
	case expr == "":
		return dim("0 9 * * 1-5, or seconds first with six fields, or @hourly")
	case f.preview.Asking():
		return dim("loading the next ticks …")
	case f.preview.Err() == nil && len(lines) == 0:
		return []render.Cell{{Text: "never fires again", Style: render.Bad}}
	}
	return nil
}

// lookZone says what is wrong with the zone.
func (f *scheduleForm) lookZone(zone string) []render.Cell {
	if problem, ok := f.refusal("time_zone"); ok {
		return []render.Cell{{Text: problem, Style: render.Bad}}
	}
	return whenEmpty("empty means UTC")(zone)
}

// refusal returns the server's error about a field of the preview. An error without a field counts
// as one about the expression.
func (f *scheduleForm) refusal(field string) (problem string, ok bool) {
	err := f.preview.Err()
	if err == nil {
		return "", false
	}
	text := sentence(err)
	if rest, found := strings.CutPrefix(text, field+": "); found {
		return rest, true
	}
	if field == "cron_expr" && !strings.HasPrefix(text, "time_zone: ") {
		return text, true
	}
	return "", false
}

// nameIn returns the name of the schedule that the form describes.
func nameIn(values map[string]string) string {
	return cmp.Or(strings.TrimSpace(values["name"]), "for "+strings.TrimSpace(values["type"]))
}

// createSchedule returns the request for the values of a form, which were checked.
func createSchedule(values map[string]string) *kagziv1.CreateWorkflowScheduleRequest {
	v := trimmed(values)
	return &kagziv1.CreateWorkflowScheduleRequest{
		WorkflowType: v["type"], TaskQueue: v["queue"], CronExpr: v["cron"], TimeZone: v["zone"], Name: v["name"],
		Input: payloadOf(v["input"]), OverlapPolicy: overlapOf(v["overlap"]), MaxCatchup: new(catchupOf(v["catchup"])),
	}
}

// updateSchedule returns the request that changes the fields whose values differ; changed is false
// if there are none.
func updateSchedule(old *kagziv1.WorkflowSchedule, values map[string]string) (r *kagziv1.UpdateWorkflowScheduleRequest,
	changed bool) {
	v, r := trimmed(values), &kagziv1.UpdateWorkflowScheduleRequest{}
	for _, text := range []struct {
		field string
		was   string
		to    **string
	}{
		{"type", old.GetWorkflowType(), &r.WorkflowType}, {"queue", old.GetTaskQueue(), &r.TaskQueue},
		{"cron", old.GetCronExpr(), &r.CronExpr},
		{"zone", old.GetTimeZone(), &r.TimeZone}, {"name", old.GetName(), &r.Name},
	} {
		if v[text.field] != text.was {
			*text.to, changed = new(v[text.field]), true
		}
	}
	if input, ok := v["input"]; ok && input != strings.TrimSpace(string(old.GetInput().GetData())) {
		r.Input, changed = payloadOf(input), true
		if r.Input == nil {
			r.Input = &kagziv1.Payload{} // nil would keep the input
		}
	}
	if overlap := overlapOf(v["overlap"]); overlap != overlapOf(render.Overlap(old.GetOverlapPolicy())) {
		r.OverlapPolicy, changed = &overlap, true
	}
	if n := catchupOf(v["catchup"]); n != old.GetMaxCatchup() {
		r.MaxCatchup, changed = &n, true
	}
	return r, changed
}

func trimmed(values map[string]string) map[string]string {
	v := map[string]string{}
	for name, value := range values {
		v[name] = strings.TrimSpace(value)
	}
	return v
}

// catchupOf returns the limit of missed ticks; an empty field means the default.
func catchupOf(text string) int32 {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return usualCatchup
	}
	return int32(n)
}

// editable reports whether an input can be edited as text: it is empty, or plain JSON.
func editable(p *kagziv1.Payload) bool {
	return len(p.GetData()) == 0 || p.GetMetadata()["encoding"] == "" && json.Valid(p.GetData())
}

// payloadOf returns JSON as a payload; nil for an empty text.
func payloadOf(text string) *kagziv1.Payload {
	if text == "" {
		return nil
	}
	return &kagziv1.Payload{Data: []byte(text), Metadata: map[string]string{"content-type": "application/json"}}
}
