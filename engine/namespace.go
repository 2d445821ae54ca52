package engine

import (
	"fmt"
	"slices"
	"strings"
)

// MustExist refuses the use of a namespace that does not exist, if it may not be made.
func MustExist(name string, exists, must bool) error {
	if exists || !must || name == DefaultNamespace {
		return nil
	}
	return NamespaceUnknown(name, "")
}

// NamespaceNotEmpty returns the error for the deletion of a namespace that holds something.
func NamespaceNotEmpty(name string, c Contents) error {
	return &Error{Kind: KindPrecondition, Subject: "namespace", SubjectID: name,
		Message: "namespace " + name + " is not empty: it has " + c.String() +
			"; delete these first, or delete the namespace with everything in it: `kagzi namespace delete " +
			name + " --force`"}
}

// Add adds counts.
func (c *Contents) Add(more Contents) {
	c.Runs, c.Schedules = c.Runs+more.Runs, c.Schedules+more.Schedules
	c.Hooks, c.Workers, c.Keys = c.Hooks+more.Hooks, c.Workers+more.Workers, c.Keys+more.Keys
}

// String lists what there is: "3 runs, 1 key".
func (c Contents) String() string {
	var parts []string
	for _, part := range []struct {
		n    int64
		noun string
	}{{c.Runs, "run"}, {c.Schedules, "schedule"}, {c.Hooks, "hook"}, {c.Workers, "worker"}, {c.Keys, "key"}} {
		switch {
		case part.n == 1:
			parts = append(parts, "1 "+part.noun)
		case part.n > MaxContents:
			parts = append(parts, fmt.Sprintf("more than %d %ss", MaxContents, part.noun))
		case part.n > 1:
			parts = append(parts, fmt.Sprintf("%d %ss", part.n, part.noun))
		}
	}
	return strings.Join(parts, ", ")
}

// KeysOf counts the keys that name a namespace.
func KeysOf(keys []APIKey, namespace string) (n int64) {
	for i := range keys {
		if slices.Contains(keys[i].Namespaces, namespace) {
			n++
		}
	}
	return n
}
