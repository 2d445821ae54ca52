package view

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/proto/query"
	"github.com/kagzi/kagzi/tui/model"
	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/view/internal/tables"
	"github.com/kagzi/kagzi/tui/widget"
)

// keysPage shows the API keys. Only an admin of all namespaces may read them.
type keysPage struct {
	listPage[*kagziv1.Key]
	revoked bool // show revoked keys too
}

func openKeys(a *App, _ []string) (page, error) {
	row := func(k *kagziv1.Key) widget.Row { return a.tables.Key(k, a.overview.Me().GetKey().GetKeyId()) }
	p := &keysPage{listPage: newListPage(a, "keys", "Keys", tables.KeyColumns, model.NewKeys(a.link), row)}
	p.order = map[string]func(a, b *kagziv1.Key) int{
		"role": func(a, b *kagziv1.Key) int { return int(a.GetRole()) - int(b.GetRole()) },
		"used": func(a, b *kagziv1.Key) int {
			return b.GetLastUsedAt().AsTime().Compare(a.GetLastUsedAt().AsTime())
		},
		"expires": func(a, b *kagziv1.Key) int {
			return a.GetExpiresAt().AsTime().Compare(b.GetExpiresAt().AsTime())
		},
		"created": func(a, b *kagziv1.Key) int {
			return b.GetCreatedAt().AsTime().Compare(a.GetCreatedAt().AsTime())
		},
	}
	p.empty = func() []widget.Line {
		if len(p.items.All()) > 0 {
			return []widget.Line{widget.TextLine("All keys are revoked.   a shows them", render.Dim)}
		}
		return []widget.Line{
			widget.TextLine("No keys: every call is allowed.", render.Plain), {},
			widget.TextLine(firstKey, render.Dim),
		}
	}
	p.items.Only(notRevoked)
	p.tab.Opened = func(string) { a.done(p.describe(nil)) }
	return p, p.SortBy("key", false)
}

// firstKey is not made here: from then on every call needs a key, and this program has none.
const firstKey = "Create the first key with: kagzi key create NAME --role admin"

func notRevoked(k *kagziv1.Key) bool { return k.GetRevokedAt() == nil }

// Title shows how many keys are listed.
func (p *keysPage) Title() string {
	title := p.listPage.Title()
	if p.revoked {
		title += "  with revoked ones"
	}
	return title
}

func (p *keysPage) describe([]string) error {
	k, ok := p.under()
	if !ok {
		return errNothingUnder
	}
	p.app.readPairs("Key "+k.GetName(), render.KeyPairs(k, p.app.clock.View()))
	return nil
}

// Actions create and revoke keys, and show what was done with them.
func (p *keysPage) Actions() []*Action {
	a := p.app
	return []*Action{
		{Name: "describe", Keys: []string{"enter", "d"}, Help: "show all details", Group: GroupView, Hint: 1,
			Run: p.describe},
		{Name: "new", Keys: []string{"n"}, Help: "create a key; its secret is shown once", Group: GroupAct,
			Changes: true, Least: admins, Hint: 2, Off: a.noKeys, Run: func([]string) error { p.newKey(); return nil }},
		{Name: "revoke", Keys: []string{"x"}, Help: "revoke keys for good", Group: GroupAct, Changes: true,
			Least: admins, Hint: 3, Run: p.revoke},
		{Name: "all", Keys: []string{"a"}, Short: "revoked", Help: "show or hide revoked keys", Group: GroupView,
			Hint: 4, Run: func([]string) error {
				if p.revoked = !p.revoked; p.revoked {
					p.items.Only(nil)
				} else {
					p.items.Only(notRevoked)
				}
				return nil
			}},
		{Name: "changes", Keys: []string{"A"}, Short: "audit", Help: "show the changes to keys", Group: GroupGo, Hint: 5,
			Run: func([]string) error { return a.pushView("audit", auditOfKeys) }},
	}
}

// noKeys says why no key can be created here.
func (a *App) noKeys() string {
	if me := a.overview.Me(); me != nil && !me.GetKeysRequired() {
		return "from the first key on every call needs one. " + firstKey
	}
	return ""
}

// revoke asks, and says what follows.
func (p *keysPage) revoke([]string) error {
	keys := targetsOf(&p.listPage)
	names := map[string]string{} // by id
	var ids, named, lines []string
	mine := p.app.overview.Me().GetKey().GetKeyId()
	for _, k := range keys {
		if !notRevoked(k) {
			continue
		}
		names[k.GetKeyId()] = k.GetName()
		ids, named = append(ids, k.GetKeyId()), append(named, k.GetName())
		line := fmt.Sprintf("%s has the role %s, %s", k.GetName(), render.KeyRole(k.GetRole()),
			strings.Join(render.KeyScope(k), ", "))
		if k.GetLastUsedAt() != nil {
			line += ", and was last used " + p.app.clock.Show(k.GetLastUsedAt())
		}
		lines = append(lines, line+".")
		if k.GetKeyId() == mine {
			lines = append(lines, model.OwnKeyText)
		}
	}
	left := 0
	for _, k := range p.items.All() {
		if notRevoked(k) {
			left++
		}
	}
	switch {
	case len(keys) == 0:
		return errNothingUnder
	case len(ids) == 0:
		return errors.New("already revoked")
	case len(ids) == left && !p.items.More():
		lines = append(lines, model.LastKeyText)
	}
	p.app.confirm(deed{action: p.app.scope().RevokeKeys(ids), what: naming(named), lines: lines,
		name: func(id string) string { return names[id] }, done: func(*model.Job) { p.Refresh() }})
	return nil
}

// newKey shows the form that creates a key, and then its secret.
func (p *keysPage) newKey() {
	a, roles := p.app, []string{"worker", "client", "operator", "viewer", "admin"}
	fields := []widget.Field{
		{Name: "name", Label: "Name", Required: true},
		{Name: "role", Label: "Role", Kind: widget.ChoiceField, Choices: roles},
		{Name: "namespaces", Label: "Namespaces", Value: a.link.Namespace(),
			Note: whenEmpty("such as shop,crm; empty means all, for admins only")},
		{Name: "queues", Label: "Queues", Note: whenEmpty("for workers, such as orders*; empty means all")},
		{Name: "types", Label: "Types", Note: whenEmpty("for workers, such as order,refund; empty means all")},
		{Name: "workers", Label: "Worker ids", Note: whenEmpty("for workers, such as box-*; empty means any")},
		{Name: "expires", Label: "Expires", Check: func(value string) error { _, err := a.expiry(value); return err },
			Note: whenEmpty("such as 90d or 2027-01-31; empty means never")},
	}
	names := map[string]string{"name": "name", "role": "role", "namespaces": "namespaces", "task_queues": "queues",
		"workflow_types": "types", "worker_ids": "workers", "expires_at": "expires"}
	a.fill("New key", "Create", fields, filling{names: names, unique: "name",
		deed: func(values map[string]string) (deed, error) {
			v := trimmed(values)
			key := &kagziv1.Key{Name: v["name"], Namespaces: commas(v["namespaces"]), TaskQueues: commas(v["queues"]),
				WorkflowTypes: commas(v["types"]), WorkerIds: commas(v["workers"]),
				Role: kagziv1.KeyRole(kagziv1.KeyRole_value["KEY_ROLE_"+strings.ToUpper(v["role"])])}
			switch {
			case v["role"] != "admin" && len(key.GetNamespaces()) == 0:
				return deed{}, &fieldError{"namespaces", errors.New("only an admin's key covers all namespaces")}
			case v["role"] != "worker" && len(key.GetTaskQueues()) > 0:
				return deed{}, &fieldError{"queues", errors.New("only a worker's key is limited to queues")}
			case v["role"] != "worker" && len(key.GetWorkflowTypes()) > 0:
				return deed{}, &fieldError{"types", errors.New("only a worker's key is limited to types")}
			}
			if v["role"] != "worker" && len(key.GetWorkerIds()) > 0 {
				return deed{}, &fieldError{"workers", errors.New("only a worker's key is bound to worker ids")}
			}
			at, err := a.expiry(v["expires"])
			if err != nil {
				return deed{}, &fieldError{"expires", err}
			}
			if !at.IsZero() {
				key.ExpiresAt = timestamppb.New(at)
			}
			return deed{action: a.scope().CreateKey(key), what: "the key " + key.GetName(),
				done: func(j *model.Job) {
					a.showSecret(j.Results[0])
					p.Refresh()
				}}, nil
		}})
}

// expiry returns the time after which a key is invalid; zero: never.
func (a *App) expiry(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if d, err := query.ParseDuration(text); err == nil && d > 0 {
		return a.now().Add(d), nil
	}
	at, err := query.ParseTime(text, a.now())
	switch {
	case err != nil:
		return at, errors.New("want 90d, 2027-01-31 or 2027-01-31T12:00:00Z")
	case !at.After(a.now()):
		return at, errors.New("is in the past")
	}
	return at, nil
}

// commas returns the words of a list.
func commas(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
}

// showSecret shows the secret of a new key. It is not in :messages, and cannot be shown again.
func (a *App) showSecret(r model.Result) {
	l := widget.NewLines(a.theme).SetLines([]widget.Line{
		widget.TextLine("The secret of the key "+r.Target+":", render.Plain), {},
		widget.TextLine(r.Secret, render.Strong), {},
		widget.TextLine("It is not stored, and not shown again. y copies it.", render.Plain),
		widget.TextLine("Put it in a file for --api-key-file, or in KAGZI_API_KEY.", render.Dim),
	})
	a.reader("New key", l, func(key string) bool {
		if key == "y" {
			a.done(a.copy("secret", r.Secret))
		}
		return key == "y"
	}, hint{"y", "copy"})
}
