package web

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/internal/settings"
	"github.com/kagzi/kagzi/tui/model"
)

var namespaceKinds = []*actionKind{
	{name: "enable-namespace", title: "Enable", noun: "namespace", least: admins, fields: withReason,
		action: simple(model.Scope.EnableNamespaces, model.EnableText)},
	{name: "disable-namespace", title: "Disable", noun: "namespace", least: admins, danger: true, fields: withReason,
		action: simple(model.Scope.DisableNamespaces, model.DisabledText, model.DisableText)},
	{name: "create-namespace", title: "Create a namespace", noun: "namespace", least: admins, makes: true,
		fields: func(*page, *question) []field {
			return append([]field{{name: "name", label: "Name", kind: "text", required: true,
				note: "lower-case letters, digits and hyphens"}}, fieldsOf(settings.NamespaceFields)...)
		},
		action: createNamespace},
	{name: "edit-namespace", title: "Change", noun: "namespace", least: admins, current: currentNamespace,
		fields: func(*page, *question) []field { return append(fieldsOf(settings.NamespaceFields), reasonField) },
		action: editNamespace},
	{name: "delete-namespace", title: "Delete", noun: "namespace", least: admins, danger: true,
		fields: func(*page, *question) []field {
			return []field{{name: "force", label: "Delete everything in it, too", kind: "check"}, reasonField}
		},
		action: deleteNamespace},
}

func createNamespace(p *page, q *question) (model.Action, []string, error) {
	n := &kagziv1.Namespace{}
	if err := settings.SetNamespace(n, q.texts()); err != nil {
		return model.Action{}, nil, invalid("%s", err)
	}
	r := &kagziv1.CreateNamespaceRequest{Namespace: q.value("name"), DisplayName: n.GetDisplayName(),
		Retention: n.GetRetention(), Keep: n.GetKeep(), FailureTaskQueue: n.GetFailureTaskQueue()}
	if r.Namespace == "" {
		return model.Action{}, nil, invalid("Name: enter the name of the namespace")
	}
	if n.GetDescription() != "" {
		r.Description = new(n.GetDescription())
	}
	return p.scope().CreateNamespace(r), nil, nil
}

func (p *page) oldNamespace(q *question) (*kagziv1.Namespace, error) {
	if len(q.targets) != 1 {
		return nil, invalid("works on one namespace at a time")
	}
	answer, err := p.API.GetNamespace(p.ctx, &kagziv1.GetNamespaceRequest{Namespace: q.targets[0]})
	return answer.GetNamespace(), err
}

// currentNamespace returns the values of the fields as the namespace has them now.
func currentNamespace(p *page, q *question) (map[string]string, error) {
	n, err := p.oldNamespace(q)
	return settings.OfNamespace(n), err
}

// editNamespace changes only what differs.
func editNamespace(p *page, q *question) (model.Action, []string, error) {
	old, err := p.oldNamespace(q)
	if err != nil {
		return model.Action{}, nil, err
	}
	is := proto.CloneOf(old)
	if err := settings.SetNamespace(is, q.texts()); err != nil {
		return model.Action{}, nil, invalid("%s", err)
	}
	r, changed := settings.NamespaceChanges(old, is)
	r.Reason = q.value("reason")
	if !changed {
		return model.Action{}, nil, invalid("change a field first")
	}
	var said []string
	if r.Retention != nil || r.Keep != nil {
		said = []string{"Runs that ended longer ago than they are kept are deleted. This cannot be undone."}
	}
	return p.scope().UpdateNamespace(old, r), said, nil
}

func deleteNamespace(p *page, q *question) (model.Action, []string, error) {
	if slices.Contains(q.targets, "default") {
		return model.Action{}, nil, invalid("the namespace default always exists; delete what is in it instead")
	}
	force, said := q.value("force") != "", []string{model.DeleteNamespaceText}
	if force {
		said = []string{model.ForceText}
		for _, name := range q.targets[:min(len(q.targets), listedTargets)] {
			stats, err := p.API.GetStats(p.ctx, &kagziv1.GetStatsRequest{Namespace: &name})
			if err != nil {
				return model.Action{}, nil, err
			}
			var open int64
			for _, status := range []string{"PENDING", "RUNNING", "SLEEPING"} {
				open += stats.GetWorkflowsByStatus()[status]
			}
			said = append(said, fmt.Sprintf("%s has %d runs (%d open), %d schedules and %d online workers.", name,
				stats.GetTotalWorkflows(), open, stats.GetTotalSchedules(), stats.GetOnlineWorkers()))
		}
	}
	return p.scope().DeleteNamespaces(q.targets, force, q.value("reason")), append(said, "This cannot be undone."), nil
}
