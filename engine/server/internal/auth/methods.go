package auth

import "strings"

// Method is a method of the API with the rule for its callers. The zero value lets no key in.
type Method struct {
	name string // as MethodStats has it
	Rule rule
}

// newMethods returns every method that is registered, by its full name.
func newMethods(names []string) map[string]*Method {
	all := make(map[string]*Method, len(names))
	for _, name := range names {
		all[name] = &Method{name: strings.TrimPrefix(strings.TrimPrefix(name, "/"), "kagzi.v1."),
			Rule: Permissions[name]}
	}
	return all
}
