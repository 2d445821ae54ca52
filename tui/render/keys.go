package render

import (
	"strings"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// KeyRole returns a key's role as people write it: "admin".
func KeyRole(r kagziv1.KeyRole) string {
	return strings.ToLower(strings.TrimPrefix(r.String(), "KEY_ROLE_"))
}

// KeysTable lists keys, one per row.
func KeysTable(keys []*kagziv1.Key, v View) Table {
	t := Table{Columns: []Column{
		{Title: "KEY", Flex: true}, {Title: "ROLE"}, {Title: "STATE"}, {Title: "NAMESPACES", Flex: true},
		{Title: "QUEUES", Flex: true}, {Title: "TYPES", Flex: true}, {Title: "WORKERS", Flex: true},
		{Title: "EXPIRES"}, {Title: "LAST USED"}, {Title: "CREATED", Spare: 2}, {Title: "ID", Spare: 1},
	}}
	for _, k := range keys {
		namespaces := strings.Join(k.GetNamespaces(), ",")
		if len(k.GetNamespaces()) == 0 {
			namespaces = "all"
		}
		t.Rows = append(t.Rows, []Cell{
			Text(k.GetName()), {Text: KeyRole(k.GetRole())}, KeyState(k, v.Now), Text(namespaces),
			Text(strings.Join(k.GetTaskQueues(), ",")), Text(strings.Join(k.GetWorkflowTypes(), ",")),
			Text(strings.Join(k.GetWorkerIds(), ",")),
			{Text: v.Time(k.GetExpiresAt())}, {Text: v.Time(k.GetLastUsedAt())}, {Text: v.Time(k.GetCreatedAt())},
			Text(k.GetKeyId()),
		})
	}
	return t
}

// KeyState returns the state of a key at a time: "VALID", "EXPIRED" or "REVOKED".
func KeyState(k *kagziv1.Key, now time.Time) Cell {
	switch {
	case k.GetRevokedAt() != nil:
		return Cell{Text: "REVOKED", Style: Stopped}
	case k.GetExpiresAt() != nil && !k.GetExpiresAt().AsTime().After(now):
		return Cell{Text: "EXPIRED", Style: Bad}
	}
	return Cell{Text: "VALID", Style: Good}
}

// KeyPairs describes a key.
func KeyPairs(k *kagziv1.Key, v View) []Pair {
	var p pairs
	p.text("Key", k.GetName())
	p.text("ID", k.GetKeyId())
	p.text("Role", KeyRole(k.GetRole()))
	p.cell("State", KeyState(k, v.Now))
	p.text("May act in", strings.Join(KeyScope(k), "; "))
	p.time("Created", k.GetCreatedAt(), v)
	p.time("Expires", k.GetExpiresAt(), v)
	p.time("Last used", k.GetLastUsedAt(), v)
	p.time("Revoked", k.GetRevokedAt(), v)
	return p
}

// KeyScope returns the limits of a key as raw text: "namespaces shop, crm", "queues orders*". A key
// without limits is valid for all.
func KeyScope(k *kagziv1.Key) []string {
	scope := []string{"all namespaces"}
	if len(k.GetNamespaces()) > 0 {
		scope = []string{"namespaces " + strings.Join(k.GetNamespaces(), ", ")}
	}
	if len(k.GetTaskQueues()) > 0 {
		scope = append(scope, "queues "+strings.Join(k.GetTaskQueues(), ", "))
	}
	if len(k.GetWorkflowTypes()) > 0 {
		scope = append(scope, "types "+strings.Join(k.GetWorkflowTypes(), ", "))
	}
	if len(k.GetWorkerIds()) > 0 {
		scope = append(scope, "worker ids "+strings.Join(k.GetWorkerIds(), ", "))
	}
	return scope
}
