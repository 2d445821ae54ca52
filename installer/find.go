package installer

import (
	"context"
	"fmt"
)

// registration is a service that a command names: what it would be if it were installed here anew, and what is registered under its name.
type registration struct {
	spec       Spec
	manager    manager
	definition string
	found      bool // there is a definition
}

// managed is what the service would be if it were installed here anew, and its manager.
func (o *which) managed(w *world) (Spec, manager, error) {
	s, err := o.spec(w)
	if err != nil {
		return s, nil, err
	}
	m, err := w.manager(s)
	return s, m, err
}

// find looks for the service, which need not be there.
func (o *which) find(ctx context.Context, w *world) (at registration, err error) {
	if at.spec, at.manager, err = o.managed(w); err != nil {
		return at, err
	}
	at.definition, at.found, err = at.manager.definition(ctx)
	return at, err
}

// mustFind is find for a service that has to be there.
func (o *which) mustFind(ctx context.Context, w *world) (registration, error) {
	at, err := o.find(ctx, w)
	if err == nil && !at.found {
		err = refuse(exitNotFound, "%s is not installed; say: kagzi service install%s", o.name, o.flags())
	}
	return at, err
}

// recorded is the Spec that the definition carries, which has to be of the service that is named: a definition that somebody copied to
// make another service of it says where the data of the first are.
func (o *which) recorded(definition string) (Spec, error) {
	s, err := specOf(definition)
	if err == nil && (s.Name != o.name || s.User != o.user) {
		err = fmt.Errorf("it is a copy of the definition of %s", s.Name)
	}
	return s, err
}
