package web

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/types/known/timestamppb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/proto/query"
	"github.com/kagzi/kagzi/tui/model"
	"github.com/kagzi/kagzi/tui/render"
)

// simple is an action that only needs its targets and a reason.
func simple(of func(s model.Scope, targets []string, reason string) model.Action,
	said ...string) func(*page, *question) (model.Action, []string, error) {
	return func(p *page, q *question) (model.Action, []string, error) {
		return of(p.scope(), q.targets, q.value("reason")), slices.Clone(said), nil
	}
}

var scheduleKinds = []*actionKind{
	{name: "trigger", title: "Trigger", noun: "schedule", least: operators,
		action: simple(func(s model.Scope, ids []string, _ string) model.Action { return s.TriggerSchedules(ids) },
			model.TriggerText)},
	{name: "pause-schedule", title: "Pause", noun: "schedule", least: operators, fields: withReason,
		action: simple(model.Scope.PauseSchedules, model.PauseScheduleText)},
	{name: "resume-schedule", title: "Resume", noun: "schedule", least: operators,
		fields: func(*page, *question) []field {
			return []field{{name: "catchup", label: "Catch up", kind: "number",
				note: "most missed ticks to fire now, the latest ones; empty: none"}, reasonField}
		},
		action: func(p *page, q *question) (model.Action, []string, error) {
			n, err := int64(0), error(nil)
			if text := q.value("catchup"); text != "" {
				if n, err = strconv.ParseInt(text, 10, 32); err != nil || n < 0 {
					return model.Action{}, nil, invalid("Catch up: want a number of ticks")
				}
			}
			said := model.SkippedText
			if n > 0 {
				said = fmt.Sprintf("At most %d of the ticks that were missed fire now.", n)
			}
			return p.scope().ResumeSchedules(q.targets, int32(n), q.value("reason")), []string{said}, nil
		}},
	{name: "delete-schedule", title: "Delete", noun: "schedule", least: operators, danger: true, fields: withReason,
		action: simple(model.Scope.DeleteSchedules, model.DeleteScheduleText)},
	{name: "create-schedule", title: "Create a schedule", noun: "schedule", least: operators, makes: true,
		fields: scheduleFields, action: createSchedule},
	{name: "edit-schedule", title: "Change", noun: "schedule", least: operators, fields: editFields,
		action: editSchedule},
}

// overlaps are the policies by their words, the default first.
var overlaps = map[string]kagziv1.OverlapPolicy{}

var overlapWords = func() []string {
	var words []string
	for _, o := range []kagziv1.OverlapPolicy{kagziv1.OverlapPolicy_OVERLAP_POLICY_ALLOW,
		kagziv1.OverlapPolicy_OVERLAP_POLICY_SKIP, kagziv1.OverlapPolicy_OVERLAP_POLICY_BUFFER_ONE} {
		overlaps[render.Overlap(o)] = o
		words = append(words, render.Overlap(o))
	}
	return words
}()

func scheduleFields(*page, *question) []field {
	return []field{
		{name: "type", label: "Type", kind: "text", required: true},
		{name: "queue", label: "Queue", kind: "text", note: `empty means "default"`},
		{name: "cron", label: "When", kind: "text", required: true,
			note: "0 9 * * 1-5, or seconds first with six fields, or @hourly"},
		{name: "zone", label: "Time zone", kind: "text", note: "such as Europe/Berlin; empty means UTC"},
		{name: "input", label: "Input", kind: "json", note: "JSON; empty: none"},
		{name: "overlap", label: "Overlap", kind: "choice", choices: overlapWords,
			note: "while a run is active: allow starts another, skip skips the tick, buffer-one keeps one"},
		{name: "catchup", label: "Catch up", kind: "number",
			note: "most missed ticks to run after downtime; 0 runs none"},
		{name: "name", label: "Name", kind: "text", note: "empty: the schedule has only an id"},
	}
}

// catchup reads the limit of missed ticks; nil if the field is empty.
func catchup(q *question) (*int32, error) {
	text := q.value("catchup")
	if text == "" {
		return nil, nil
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 0 || n > 100_000 {
		return nil, invalid("Catch up: want a number from 0 to 100000")
	}
	return new(int32(n)), nil
}

// next says when an expression fires next, or why it does not.
func (p *page) next(expr, zone string) ([]string, error) {
	if expr == "" {
		return nil, invalid("When: enter a cron expression")
	}
	answer, err := p.API.PreviewSchedule(p.ctx, &kagziv1.PreviewScheduleRequest{CronExpr: expr, TimeZone: zone,
		Count: 3})
	if err != nil {
		return nil, err
	}
	var said []string
	for _, cells := range render.TicksTable(answer.GetTicks(), zone, p.view()).Rows {
		said = append(said, "Fires "+cells[0].Text)
	}
	if len(said) == 0 {
		said = []string{"It never fires."}
	}
	return said, nil
}

func createSchedule(p *page, q *question) (model.Action, []string, error) {
	input, err := jsonOf(q, "input", "Input")
	if err != nil {
		return model.Action{}, nil, err
	}
	most, err := catchup(q)
	if err != nil {
		return model.Action{}, nil, err
	}
	if q.value("type") == "" {
		return model.Action{}, nil, invalid("Type: enter the type of the workflow")
	}
	said, err := p.next(q.value("cron"), q.value("zone"))
	if err != nil {
		return model.Action{}, nil, err
	}
	request := &kagziv1.CreateWorkflowScheduleRequest{WorkflowType: q.value("type"), TaskQueue: q.value("queue"),
		CronExpr: q.value("cron"), TimeZone: q.value("zone"), Name: q.value("name"), MaxCatchup: most,
		OverlapPolicy: overlaps[q.value("overlap")]}
	if input != nil {
		request.Input = &kagziv1.Payload{Data: input, Metadata: map[string]string{"content-type": "application/json"}}
	}
	return p.scope().CreateSchedule(request), said, nil
}

// editFields are filled in from the schedule when the form is opened.
func editFields(p *page, q *question) []field {
	fields := scheduleFields(p, q)
	if len(q.targets) != 1 {
		return nil
	}
	if q.values.Has("cron") { // was filled in before
		return fields
	}
	old, err := p.oldSchedule(q)
	if err != nil {
		return fields
	}
	for name, value := range valuesOf(old) {
		q.values.Set(name, value)
	}
	return fields
}

func (p *page) oldSchedule(q *question) (*kagziv1.WorkflowSchedule, error) {
	if len(q.targets) != 1 {
		return nil, invalid("works on one schedule at a time")
	}
	answer, err := p.API.GetWorkflowSchedule(p.ctx, &kagziv1.GetWorkflowScheduleRequest{Namespace: p.ns,
		ScheduleId: q.targets[0]})
	return answer.GetSchedule(), err
}

func valuesOf(s *kagziv1.WorkflowSchedule) map[string]string {
	values := map[string]string{"type": s.GetWorkflowType(), "queue": s.GetTaskQueue(), "cron": s.GetCronExpr(),
		"zone": s.GetTimeZone(), "overlap": render.Overlap(s.GetOverlapPolicy()),
		"catchup": strconv.Itoa(int(s.GetMaxCatchup())), "name": s.GetName()}
	if plainInput(s.GetInput()) {
		values["input"] = string(s.GetInput().GetData())
	}
	return values
}

// plainInput reports whether an input can be edited as text.
func plainInput(p *kagziv1.Payload) bool {
	return p.GetMetadata()["encoding"] == "" && p.GetMetadata()[withheld] == "" && json.Valid(p.GetData())
}

// editSchedule changes only what differs.
func editSchedule(p *page, q *question) (model.Action, []string, error) {
	old, err := p.oldSchedule(q)
	if err != nil {
		return model.Action{}, nil, err
	}
	was, r := valuesOf(old), &kagziv1.UpdateWorkflowScheduleRequest{}
	differs := func(name string) bool { return q.values.Has(name) && q.value(name) != strings.TrimSpace(was[name]) }
	changed := false
	for name, to := range map[string]**string{"type": &r.WorkflowType, "queue": &r.TaskQueue, "cron": &r.CronExpr,
		"zone": &r.TimeZone, "name": &r.Name} {
		if differs(name) {
			*to, changed = new(q.value(name)), true
		}
	}
	if differs("input") {
		data, err := jsonOf(q, "input", "Input")
		if err != nil {
			return model.Action{}, nil, err
		}
		r.Input, changed = &kagziv1.Payload{}, true // without data it removes the input
		if data != nil {
			r.Input = &kagziv1.Payload{Data: data, Metadata: map[string]string{"content-type": "application/json"}}
		}
	}
	if differs("overlap") {
		r.OverlapPolicy, changed = new(overlaps[q.value("overlap")]), true
	}
	if differs("catchup") {
		if r.MaxCatchup, err = catchup(q); err != nil {
			return model.Action{}, nil, err
		}
		changed = true
	}
	if !changed {
		return model.Action{}, nil, invalid("change a field first")
	}
	var said []string
	if r.CronExpr != nil || r.TimeZone != nil {
		if said, err = p.next(q.value("cron"), q.value("zone")); err != nil {
			return model.Action{}, nil, err
		}
	}
	return p.scope().UpdateSchedule(old, r), append(said, "Runs that it has started are not changed."), nil
}

var otherKinds = []*actionKind{
	{name: "drain", title: "Drain", noun: "worker", least: operators,
		action: simple(func(s model.Scope, ids []string, _ string) model.Action { return s.Drain(ids) },
			model.DrainText)},
	{name: "offline", title: "Force offline", noun: "worker", least: operators, danger: true,
		action: simple(func(s model.Scope, ids []string, _ string) model.Action { return s.ForceOffline(ids) },
			"Other workers get its runs at once.", model.OfflineText)},
	{name: "enable-namespace", title: "Enable", noun: "namespace", least: admins, fields: withReason,
		action: simple(model.Scope.EnableNamespaces, model.EnableText)},
	{name: "disable-namespace", title: "Disable", noun: "namespace", least: admins, danger: true, fields: withReason,
		action: simple(model.Scope.DisableNamespaces, model.DisabledText, model.DisableText)},
	{name: "delete-namespace", title: "Delete", noun: "namespace", least: admins, danger: true, fields: withReason,
		action: simple(model.Scope.DeleteNamespaces, model.DeleteNamespaceText, "This cannot be undone.")},
	{name: "create-namespace", title: "Create a namespace", noun: "namespace", least: admins, makes: true,
		fields: func(*page, *question) []field {
			return []field{{name: "name", label: "Name", kind: "text", required: true,
				note: "lower-case letters, digits and hyphens"},
				{name: "description", label: "Description", kind: "text"}}
		},
		action: func(p *page, q *question) (model.Action, []string, error) {
			request := &kagziv1.CreateNamespaceRequest{Namespace: q.value("name")}
			if request.Namespace == "" {
				return model.Action{}, nil, invalid("Name: enter the name of the namespace")
			}
			if text := q.value("description"); text != "" {
				request.Description = &text
			}
			return p.scope().CreateNamespace(request), nil, nil
		}},
	{name: "revoke-key", title: "Revoke", noun: "key", least: admins, danger: true,
		action: simple(func(s model.Scope, ids []string, _ string) model.Action { return s.RevokeKeys(ids) },
			"Calls with it are refused from now on. This cannot be undone.")},
	{name: "create-key", title: "Create a key", noun: "key", least: admins, makes: true, fields: keyFields,
		action: createKey},
}

// learnKeys says what the keys of a question may do, and what follows if they are revoked.
func (p *page) learnKeys(q *question) error {
	answer, err := p.API.ListKeys(p.ctx, &kagziv1.ListKeysRequest{Page: &kagziv1.PageRequest{PageSize: wholeList}})
	if err != nil {
		return err
	}
	left := 0
	for _, k := range answer.GetKeys() {
		if k.GetRevokedAt() != nil {
			continue
		}
		if !slices.Contains(q.targets, k.GetKeyId()) {
			left++
			continue
		}
		q.labels = append(q.labels, k.GetName())
		q.facts = append(q.facts, fmt.Sprintf("%s has the role %s, %s.", k.GetName(), render.KeyRole(k.GetRole()),
			strings.Join(render.KeyScope(k), ", ")))
		if k.GetKeyId() == p.me.GetKey().GetKeyId() {
			q.facts = append(q.facts, model.OwnKeyText)
		}
	}
	if left == 0 && answer.GetPage().GetNextPageToken() == "" {
		q.facts = append(q.facts, model.LastKeyText)
	}
	return nil
}

func keyFields(p *page, q *question) []field {
	if !q.values.Has("namespaces") {
		q.values.Set("namespaces", p.ns)
	}
	return []field{
		{name: "name", label: "Name", kind: "text", required: true},
		{name: "role", label: "Role", kind: "choice", choices: []string{"viewer", "client", "worker", "operator",
			"admin"}},
		{name: "namespaces", label: "Namespaces", kind: "text",
			note: "such as shop,crm; empty means all, for admins only"},
		{name: "queues", label: "Queues", kind: "text", note: "for workers, such as orders*; empty means all"},
		{name: "types", label: "Types", kind: "text", note: "for workers, such as order,refund; empty means all"},
		{name: "expires", label: "Expires", kind: "text", note: "such as 90d or 2027-01-31; empty means never"},
	}
}

func createKey(p *page, q *question) (model.Action, []string, error) {
	commas := func(name string) []string {
		return strings.FieldsFunc(q.value(name), func(r rune) bool { return r == ',' || r == ' ' })
	}
	key := &kagziv1.Key{Name: q.value("name"), Namespaces: commas("namespaces"), TaskQueues: commas("queues"),
		WorkflowTypes: commas("types"),
		Role:          kagziv1.KeyRole(kagziv1.KeyRole_value["KEY_ROLE_"+strings.ToUpper(q.value("role"))])}
	worker, admin := key.GetRole() == kagziv1.KeyRole_KEY_ROLE_WORKER, key.GetRole() == admins
	switch {
	case key.GetName() == "":
		return model.Action{}, nil, invalid("Name: enter a name for the key")
	case !admin && len(key.GetNamespaces()) == 0:
		return model.Action{}, nil, invalid("Namespaces: only an admin's key covers all namespaces")
	case !worker && len(key.GetTaskQueues())+len(key.GetWorkflowTypes()) > 0:
		return model.Action{}, nil, invalid("Queues, Types: only a worker's key is limited to queues and types")
	}
	if text := q.value("expires"); text != "" {
		at, err := query.ParseTime(text, p.now)
		if d, wrong := query.ParseDuration(text); wrong == nil && d > 0 {
			at, err = p.now.Add(d), nil
		}
		if err != nil || !at.After(p.now) {
			return model.Action{}, nil,
				invalid("Expires: want a time ahead, such as 90d, 2027-01-31 or 2027-01-31T12:00:00Z")
		}
		key.ExpiresAt = timestamppb.New(at)
	}
	return p.scope().CreateKey(key), []string{"Its secret is shown once."}, nil
}
