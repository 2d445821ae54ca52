package view

import (
	"errors"
	"slices"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/model"
)

// disableOrEnable disables those that are enabled; where none is it enables all.
func (a *App) disableOrEnable(list []*kagziv1.Namespace) error {
	if slices.ContainsFunc(list, (*kagziv1.Namespace).GetEnabled) {
		return a.disableNamespaces(list)
	}
	return a.enableNamespaces(list)
}

// disableNamespaces asks, and disables those that are enabled.
func (a *App) disableNamespaces(list []*kagziv1.Namespace) error {
	return a.turnNamespaces(list, true, "it is disabled already", a.scope().DisableNamespaces,
		"No run starts, is taken up or is fired there any more.", "What a worker holds now may end. Nothing is deleted.")
}

// enableNamespaces asks, because what came due meanwhile starts at once, and enables those that are disabled.
func (a *App) enableNamespaces(list []*kagziv1.Namespace) error {
	return a.turnNamespaces(list, false, "it is enabled already", a.scope().EnableNamespaces, "Runs start again, and ticks that came due meanwhile are caught up.")
}

// turnNamespaces asks about the namespaces that are enabled or not; none is why there is nothing to do.
func (a *App) turnNamespaces(list []*kagziv1.Namespace, enabled bool, none string, do func(names []string, reason string) model.Action, lines ...string) error {
	var names []string
	for _, n := range list {
		if n.GetEnabled() == enabled {
			names = append(names, n.GetNamespace())
		}
	}
	switch {
	case len(list) == 0:
		return errNothingUnder
	case len(names) == 0:
		return errors.New(none)
	}
	a.confirm(deed{action: do(names, ""), what: naming(names), lines: lines})
	return nil
}
