package engine

import "slices"

// CheckKey refuses a key that breaks a limit or has no meaning, naming the request's field. It needs CreatedAt; Namespaces must be sorted.
func CheckKey(k *APIKey) error {
	checks := []error{
		CheckName("key.name", k.Name),
		checkRole(k.Role),
		checkKeyNamespaces(k),
		checkGlobs("key.task_queues", k.Role, k.Queues),
		checkGlobs("key.workflow_types", k.Role, k.Types),
	}
	if err := firstError(checks); err != nil {
		return err
	}
	if !k.ExpiresAt.IsZero() && !k.ExpiresAt.After(k.CreatedAt) {
		return Invalid("key.expires_at", "must be in the future, got %s", k.ExpiresAt.UTC().Format("2006-01-02T15:04:05Z07:00"))
	}
	return nil
}

func checkRole(r KeyRole) error {
	if r < RoleAdmin || r > RoleViewer {
		return Invalid("key.role", "must be admin, operator, client, worker or viewer, got the value %d", r)
	}
	return nil
}

func checkKeyNamespaces(k *APIKey) error {
	const field = "key.namespaces"
	switch {
	case len(k.Namespaces) == 0 && k.Role != RoleAdmin:
		return Invalid(field, "must name at least one namespace: only an admin's key may be for all")
	case len(k.Namespaces) > MaxKeyNamespaces:
		return Invalid(field, "has %d entries, at most %d are allowed", len(k.Namespaces), MaxKeyNamespaces)
	}
	for i, name := range k.Namespaces {
		if err := CheckNamespace(field, name); err != nil {
			return err
		}
		if i > 0 && k.Namespaces[i-1] >= name {
			return Invalid(field, "must be sorted and name each namespace once (found %q after %q)", name, k.Namespaces[i-1])
		}
	}
	return nil
}

// checkGlobs refuses globs of anybody but a worker, and what no name could match: a glob is a name in which * stands for any text.
func checkGlobs(field string, role KeyRole, globs []string) error {
	switch {
	case len(globs) > 0 && role != RoleWorker:
		return Invalid(field, "must be empty: only a worker's key is for some of them")
	case len(globs) > MaxKeyGlobs:
		return Invalid(field, "has %d entries, at most %d are allowed", len(globs), MaxKeyGlobs)
	}
	for _, glob := range globs {
		if glob == "" || len(glob) > MaxName {
			return Invalid(field, "must have entries of 1 to %d bytes, got one of %d", MaxName, len(glob))
		}
		if i := slices.IndexFunc([]byte(glob), func(c byte) bool { return !nameByte(c) && c != '*' }); i >= 0 {
			return Invalid(field, "may hold only letters, digits and . _ : / - * (found %q)", firstRune(glob[i:]))
		}
	}
	return nil
}
