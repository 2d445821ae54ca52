package auth

import "strings"

// Method is a method of the API with the rule for its callers. The zero value refuses every key.
type Method struct {
	name string // as in MethodStats
	Rule rule
}

// newMethods returns the methods by their full names.
func newMethods(names []string) map[string]*Method {
	all := make(map[string]*Method, len(names))
	for _, name := range names {
		all[name] = &Method{name: strings.TrimPrefix(strings.TrimPrefix(name, "/"), "kagzi.v1."),
			Rule: Permissions[name]}
	}
	return all
}
