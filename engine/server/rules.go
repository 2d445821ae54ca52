package server

import "strings"

// authMethod is a method of the API with the rule for its callers. The zero value lets no key in.
type authMethod struct {
	name string // as MethodStats has it
	rule rule
}

// guardedOf is every method that is registered, by its full name.
func guardedOf(names []string) map[string]*authMethod {
	all := make(map[string]*authMethod, len(names))
	for _, name := range names {
		all[name] = &authMethod{name: strings.TrimPrefix(name, "/kagzi.v1."), rule: permissions[name]}
	}
	return all
}

// ruleOf is the rule of a method.
func (s *Server) ruleOf(fullMethod string) *authMethod {
	if one := s.guarded[fullMethod]; one != nil {
		return one
	}
	return &authMethod{} // of a server that registered none
}
