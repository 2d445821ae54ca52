package view

import (
	"cmp"
	"slices"
	"strings"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// Action is something that a person can do. The one list of them drives the keys, the hints, the help and the commands, so that none
// of these can say what another does not.
type Action struct {
	Name    string   // as a command: "cancel"
	Aliases []string // other names of the command
	Keys    []string // as widget.KeyName has them
	Args    string   // of the command, for the help: "[ID]"
	Whole   bool     // what follows its name is one argument, as it was typed
	Short   string   // for the hints: "cancel"; empty is Name
	Help    string   // one sentence without a full stop
	Group   Group
	Changes bool // something on the server: not there when looking only
	// Least is the role of a key that may do what changes something; unset: an operator's. Those above it may too.
	Least    kagziv1.KeyRole
	Hint     int // place in the hints, from 1; 0: in the help alone
	Run      func(args []string) error
	Complete func(text string) []string // what the argument may be, given its beginning
	// Off says why it cannot be done now; empty when it can. nil: it always can.
	Off func() string
}

// Group is where the help lists an action.
type Group uint8

const (
	GroupView   Group = iota // of the page that is open
	GroupAct                 // changes something
	GroupMove                // around in it
	GroupGo                  // to another page
	GroupGlobal              // everywhere
)

var groupTitles = [...]string{GroupView: "This view", GroupAct: "Act", GroupMove: "Move", GroupGo: "Go to", GroupGlobal: "Everywhere"}

// short is what the hints say.
func (a *Action) short() string {
	if a.Short != "" {
		return a.Short
	}
	return a.Name
}

// registry is the actions that are there now: those of the page before those of the program.
type registry []*Action

// without leaves out what changes something.
func (r registry) without(changes bool) registry {
	if !changes {
		return r
	}
	return slices.DeleteFunc(slices.Clone(r), func(a *Action) bool { return a.Changes })
}

// byKey is the action of a key.
func (r registry) byKey(key string) *Action {
	for _, a := range r {
		if slices.Contains(a.Keys, key) {
			return a
		}
	}
	return nil
}

// byName is the action of a command.
func (r registry) byName(name string) *Action {
	for _, a := range r {
		if a.Name == name || slices.Contains(a.Aliases, name) {
			return a
		}
	}
	return nil
}

// names are the commands that begin so, in the order of the alphabet; aliases only where the text is one.
func (r registry) names(prefix string) []string {
	var names []string
	for _, a := range r {
		if a.Run != nil && strings.HasPrefix(a.Name, prefix) {
			names = append(names, a.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// hints are the actions to name at the bottom, the page's own first.
func (r registry) hints() registry {
	list := slices.DeleteFunc(slices.Clone(r), func(a *Action) bool { return a.Hint == 0 || len(a.Keys) == 0 || a.Off != nil && a.Off() != "" })
	slices.SortStableFunc(list, func(a, b *Action) int { return cmp.Compare(a.Hint, b.Hint) })
	return list
}
