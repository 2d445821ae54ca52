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

// zones are some that are often wanted, for completion; every IANA name can be typed.
var zones = []string{
	"UTC", "Europe/London", "Europe/Berlin", "Europe/Paris", "Europe/Madrid", "Europe/Rome", "Europe/Warsaw",
	"Europe/Istanbul", "America/New_York",
	"America/Chicago", "America/Denver", "America/Los_Angeles", "America/Sao_Paulo", "Africa/Johannesburg",
	"Asia/Dubai", "Asia/Kolkata", "Asia/Singapore",
	"Asia/Shanghai", "Asia/Tokyo", "Australia/Sydney", "Pacific/Auckland",
}

// overlaps are the policies by their words, the usual one first.
var overlaps = []kagziv1.OverlapPolicy{
	kagziv1.OverlapPolicy_OVERLAP_POLICY_ALLOW, kagziv1.OverlapPolicy_OVERLAP_POLICY_SKIP,
	kagziv1.OverlapPolicy_OVERLAP_POLICY_BUFFER_ONE,
}

// overlapOf is the policy of a word.
func overlapOf(word string) kagziv1.OverlapPolicy {
	for _, o := range overlaps {
		if render.Overlap(o) == word {
			return o
		}
	}
	return kagziv1.OverlapPolicy_OVERLAP_POLICY_ALLOW
}

// scheduleForm is the fields of a schedule, with a look at when it would fire while the expression is typed.
type scheduleForm struct {
	app     *App
	filling *filling
	preview *model.Preview
	types   *model.Collection[*kagziv1.WorkflowTypeInfo] // for completion
}

// newSchedule asks for a schedule to be made.
func (a *App) newSchedule() {
	s := &kagziv1.WorkflowSchedule{MaxCatchup: usualCatchup, Enabled: true}
	a.fillSchedule("A new schedule", "Create", s, func(values map[string]string) (deed, error) {
		return deed{action: a.scope().CreateSchedule(createSchedule(values)), what: nameIn(values)}, nil
	})
}

// editSchedule reads a schedule with its input, and asks what of it is to change.
func (a *App) editSchedule(id string) error {
	if a.link.State().Down() {
		return errors.New("the server cannot be reached now")
	}
	from := a.trails.top()
	item := model.NewSchedule(a.link, id)
	item.Changed = func() {
		defer item.Close()
		switch err := item.Err(); {
		case err != nil:
			a.complain(err)
		case item.Loaded() && a.trails.top() == from && a.layer() == nil: // the person has not gone on meanwhile
			a.changeSchedule(item.Value().WorkflowSchedule)
		}
	}
	item.Show()
	return nil
}

// changeSchedule asks what of a schedule is to change, and changes no more than that.
func (a *App) changeSchedule(old *kagziv1.WorkflowSchedule) {
	a.fillSchedule("Schedule "+tables.ScheduleName(old), "Change", old, func(values map[string]string) (deed, error) {
		request, changed := updateSchedule(old, values)
		if !changed {
			a.say("nothing of %q was changed", tables.ScheduleName(old))
			return deed{}, nil
		}
		return deed{action: a.scope().UpdateSchedule(old, request), what: tables.ScheduleName(old),
			name: func(string) string { return tables.ScheduleName(old) }}, nil
	})
}

// fillSchedule lays the form over the page, filled in with a schedule.
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

// fields are those of the form, filled in with a schedule.
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
		{Name: "overlap", Label: "While one runs", Kind: widget.ChoiceField, Choices: words,
			Value: render.Overlap(s.GetOverlapPolicy()), Note: overlapNote},
		{Name: "catchup", Label: "Catch up", Kind: widget.NumberField, Value: strconv.Itoa(int(s.GetMaxCatchup())),
			Check: checkCatchup,
			Note:  func(string) []render.Cell { return dim("missed ticks made up for after a standstill; 0 none") }},
		{Name: "name", Label: "Name", Value: s.GetName(), Note: whenEmpty("empty: it is known by its id alone")},
	}
	if editable(s.GetInput()) {
		fields = slices.Insert(fields, 4, widget.Field{
			Name: "input", Label: "Input", Kind: widget.JSONField, Value: string(s.GetInput().GetData())})
	}
	return fields
}

func dim(text string) []render.Cell { return []render.Cell{{Text: text, Style: render.Dim}} }

// whenEmpty says something below a field in which nothing stands.
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
		return dim("a tick that comes meanwhile is left out")
	case kagziv1.OverlapPolicy_OVERLAP_POLICY_BUFFER_ONE:
		return dim("one tick that comes meanwhile waits; more are left out")
	}
	return dim("a tick that comes meanwhile starts another")
}

func checkCatchup(value string) error {
	if n, err := strconv.ParseInt(value, 10, 32); err != nil || n < 0 || n > mostCatchup {
		return fmt.Errorf("this must be between 0 and %d", mostCatchup)
	}
	return nil
}

// completeType knows the types that have runs.
func (f *scheduleForm) completeType(text string) []string {
	var names []string
	for _, t := range f.types.All() {
		names = append(names, t.GetWorkflowType())
	}
	return beginning(names, text)
}

// completeQueue knows the queues of the type, and then all others.
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

// look asks when the expression fires, and shows it below its field, or why it never does.
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
		return dim("asking when that is")
	case f.preview.Err() == nil && len(lines) == 0:
		return []render.Cell{{Text: "this never fires again", Style: render.Bad}}
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

// refusal is what the server has to say against a field of the expression; what names no field is
// said of the expression.
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

// nameIn is what a schedule will be called.
func nameIn(values map[string]string) string {
	return cmp.Or(strings.TrimSpace(values["name"]), "for "+strings.TrimSpace(values["type"]))
}

// createSchedule is the request that the values of a form make. They have been checked.
func createSchedule(values map[string]string) *kagziv1.CreateWorkflowScheduleRequest {
	v := trimmed(values)
	return &kagziv1.CreateWorkflowScheduleRequest{
		WorkflowType: v["type"], TaskQueue: v["queue"], CronExpr: v["cron"], TimeZone: v["zone"], Name: v["name"],
		Input: payloadOf(v["input"]), OverlapPolicy: overlapOf(v["overlap"]), MaxCatchup: new(catchupOf(v["catchup"])),
	}
}

// updateSchedule is the request that changes what the values of a form say otherwise than the
// schedule; changed is false when that is nothing.
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
			r.Input = &kagziv1.Payload{} // no input, where none would leave it as it is
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

// catchupOf is how many missed ticks are made up for; an empty field is the usual number.
func catchupOf(text string) int32 {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return usualCatchup
	}
	return int32(n)
}

// editable says that an input can be changed as text: there is none, or it is plain JSON.
func editable(p *kagziv1.Payload) bool {
	return len(p.GetData()) == 0 || p.GetMetadata()["encoding"] == "" && json.Valid(p.GetData())
}

// payloadOf is JSON as a payload; nil for none.
func payloadOf(text string) *kagziv1.Payload {
	if text == "" {
		return nil
	}
	return &kagziv1.Payload{Data: []byte(text), Metadata: map[string]string{"content-type": "application/json"}}
}
