package web

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/timestamppb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
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

var otherKinds = []*actionKind{
	{name: "drain", title: "Drain", noun: "worker", least: operators,
		action: simple(func(s model.Scope, ids []string, _ string) model.Action { return s.Drain(ids) },
			model.DrainText)},
	{name: "offline", title: "Force offline", noun: "worker", least: operators, danger: true,
		action: simple(func(s model.Scope, ids []string, _ string) model.Action { return s.ForceOffline(ids) },
			"Other workers get its runs at once.", model.OfflineText)},
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
		{name: "workers", label: "Worker ids", kind: "text", note: "for workers, such as box-1,box-2*; empty means all"},
		{name: "expires", label: "Expires", kind: "text", note: "such as 90d or 2027-01-31; empty means never"},
	}
}

func createKey(p *page, q *question) (model.Action, []string, error) {
	commas := func(name string) []string {
		return strings.FieldsFunc(q.value(name), func(r rune) bool { return r == ',' || r == ' ' })
	}
	key := &kagziv1.Key{Name: q.value("name"), Namespaces: commas("namespaces"), TaskQueues: commas("queues"),
		WorkflowTypes: commas("types"), WorkerIds: commas("workers"),
		Role: kagziv1.KeyRole(kagziv1.KeyRole_value["KEY_ROLE_"+strings.ToUpper(q.value("role"))])}
	worker, admin := key.GetRole() == kagziv1.KeyRole_KEY_ROLE_WORKER, key.GetRole() == admins
	switch {
	case key.GetName() == "":
		return model.Action{}, nil, invalid("Name: enter a name for the key")
	case !admin && len(key.GetNamespaces()) == 0:
		return model.Action{}, nil, invalid("Namespaces: only an admin's key covers all namespaces")
	case !worker && len(key.GetTaskQueues())+len(key.GetWorkflowTypes())+len(key.GetWorkerIds()) > 0:
		return model.Action{}, nil, invalid("Queues, Types, Worker ids: only the key of a worker is limited to them")
	}
	if text := q.value("expires"); text != "" {
		at, err := ahead(text, p.now)
		if err != nil {
			return model.Action{}, nil,
				invalid("Expires: want a time ahead, such as 90d, 2027-01-31 or 2027-01-31T12:00:00Z")
		}
		key.ExpiresAt = timestamppb.New(at)
	}
	return p.scope().CreateKey(key), []string{"Its secret is shown once."}, nil
}
