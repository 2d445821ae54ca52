package view

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/filter"
	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/widget"
)

// newNamespace asks for a namespace to be made.
func (a *App) newNamespace() {
	fields := append([]widget.Field{{
		Name: "namespace", Label: "Name", Required: true, Check: checkNamespaceName,
		Note: whenEmpty("lower-case letters, digits and '-'"),
	}}, namespaceFields(&kagziv1.Namespace{})...)
	a.fill("A new namespace", "Create", fields, filling{names: namespaceNames, unique: "namespace", deed: func(values map[string]string) (deed, error) {
		v := trimmed(values)
		request := &kagziv1.CreateNamespaceRequest{
			Namespace: v["namespace"], DisplayName: v["title"], Retention: retentionOf(v["retention"]), FailureTaskQueue: v["failures"],
		}
		if v["description"] != "" {
			request.Description = new(v["description"])
		}
		return deed{action: a.scope().CreateNamespace(request), what: request.GetNamespace()}, nil
	}})
}

// changeNamespace asks what of a namespace is to change, and changes no more than that.
func (a *App) changeNamespace(old *kagziv1.Namespace) {
	a.fill("Namespace "+old.GetNamespace(), "Change", namespaceFields(old), filling{names: namespaceNames, deed: func(values map[string]string) (deed, error) {
		request, changed := updateNamespace(old, values)
		if !changed {
			a.say("nothing of %q was changed", old.GetNamespace())
			return deed{}, nil
		}
		return deed{action: a.scope().UpdateNamespace(old, request), what: old.GetNamespace()}, nil
	}})
}

// namespaceNames are the fields of the forms by what the server calls them.
var namespaceNames = map[string]string{
	"namespace": "namespace", "display_name": "title", "description": "description", "retention": "retention", "failure_task_queue": "failures",
}

// namespaceFields are what can be said of a namespace beside its name.
func namespaceFields(n *kagziv1.Namespace) []widget.Field {
	retention := ""
	if d := n.GetRetention().AsDuration(); d != 0 {
		retention = render.Days(d)
	}
	return []widget.Field{
		{Name: "title", Label: "Title", Value: n.GetDisplayName()},
		{Name: "description", Label: "Description", Value: n.GetDescription()},
		{Name: "retention", Label: "Keep runs for", Kind: widget.DurationField, Value: retention, Check: checkRetention,
			Note: whenEmpty("empty: as long as the server's setting says; else such as 30d")},
		{Name: "failures", Label: "Failures to", Value: n.GetFailureTaskQueue(), Note: whenEmpty("queue of the failure handler's runs when no worker serves it")},
	}
}

func checkRetention(value string) error {
	d, err := filter.ParseDuration(value)
	if err != nil {
		return err
	}
	if d != 0 && d < time.Minute {
		return fmt.Errorf("this must be a minute at least")
	}
	return nil
}

// retentionOf is how long ended runs are kept; nil for the server's setting.
func retentionOf(text string) *durationpb.Duration {
	d, err := filter.ParseDuration(text)
	if err != nil || d == 0 {
		return nil
	}
	return durationpb.New(d)
}

// updateNamespace is the request that changes what the values of the form say otherwise than the namespace.
func updateNamespace(old *kagziv1.Namespace, values map[string]string) (r *kagziv1.UpdateNamespaceRequest, changed bool) {
	v, r := trimmed(values), &kagziv1.UpdateNamespaceRequest{}
	for _, text := range []struct {
		field, was string
		to         **string
	}{{"title", old.GetDisplayName(), &r.DisplayName}, {"description", old.GetDescription(), &r.Description}, {"failures", old.GetFailureTaskQueue(), &r.FailureTaskQueue}} {
		if v[text.field] != text.was {
			*text.to, changed = new(v[text.field]), true
		}
	}
	if d := retentionOf(v["retention"]); d.AsDuration() != old.GetRetention().AsDuration() {
		r.Retention, changed = durationpb.New(d.AsDuration()), true // zero goes back to the server's setting
	}
	return r, changed
}
