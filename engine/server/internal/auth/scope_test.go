package auth

import (
	"testing"

	"github.com/kagzi/kagzi/engine"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

func TestARequestWithoutANamespaceNeedsAKeyForAll(t *testing.T) {
	everywhere := &Key{APIKey: engine.APIKey{Name: "ada", Role: engine.RoleAdmin}}
	ours := &Key{APIKey: engine.APIKey{Name: "eve", Role: engine.RoleAdmin, Namespaces: []string{"shop", "default"}}}
	for what, c := range map[string]struct {
		scope       scope
		all, ofShop any
	}{
		"statistics": {forNamespaceOrAll, &kagziv1.GetStatsRequest{},
			&kagziv1.GetStatsRequest{Namespace: new("shop")}},
		"watched statistics": {forNamespaceOrAll, &kagziv1.WatchStatsRequest{},
			&kagziv1.WatchStatsRequest{Namespace: new("shop")}},
		"audit events": {forNamespaceOrKeys, &kagziv1.ListAuditEventsRequest{},
			&kagziv1.ListAuditEventsRequest{Namespace: "shop"}},
	} {
		for _, of := range []struct {
			request any
			key     *Key
			allowed bool
		}{{c.all, everywhere, true}, {c.all, ours, false}, {c.ofShop, everywhere, true}, {c.ofShop, ours, true}} {
			if err := c.scope(nil, t.Context(), of.key, of.request); (err == nil) != of.allowed {
				t.Errorf("%s, %v by %s: %v, want it allowed: %v", what, of.request, of.key.Name, err, of.allowed)
			}
		}
	}
}
