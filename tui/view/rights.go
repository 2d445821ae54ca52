package view

import (
	"cmp"
	"fmt"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/render"
)

// The roles by what they may change; each may also do what those below it may. The numbers grow the other way.
const (
	admins    = kagziv1.KeyRole_KEY_ROLE_ADMIN
	operators = kagziv1.KeyRole_KEY_ROLE_OPERATOR
	clients   = kagziv1.KeyRole_KEY_ROLE_CLIENT
)

// role is the role of the caller's key; ok is false where the server asks for no key, or has not said yet.
func (a *App) role() (role kagziv1.KeyRole, ok bool) {
	if a.overview == nil {
		return 0, false
	}
	key := a.overview.Me().GetKey()
	return key.GetRole(), key != nil
}

// looksOnly says that nothing can be changed here at all: as somebody wants it, or because the key allows nothing else.
func (a *App) looksOnly() bool {
	role, ok := a.role()
	return a.options.ReadOnly || ok && role > clients
}

// forbid gives an action that the caller's key does not allow a reason not to be done. The server would refuse it.
func (a *App) forbid(action *Action) {
	role, ok := a.role()
	least := cmp.Or(action.Least, operators)
	if !ok || !action.Changes || role <= least {
		return
	}
	name := a.overview.Me().GetKey().GetName()
	action.Off = func() string {
		return fmt.Sprintf("your key %s has the role %s, which may not %s; it takes the role %s", name, render.KeyRole(role), action.Name, render.KeyRole(least))
	}
}
