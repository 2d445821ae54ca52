package auth

import (
	"testing"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/servertest"
)

func BenchmarkCallsAreLetIn(b *testing.B) {
	none, l := &servertest.KeyStore{Notifications: "in-process"}, &servertest.KeyStore{Notifications: "in-process"}
	secret := l.Make(engine.APIKey{Name: "one", Role: engine.RoleAdmin})
	for name, c := range map[string]struct {
		store  *servertest.KeyStore
		header []string
	}{"without keys": {none, nil}, "with a key": {l, []string{"Bearer " + secret}}} {
		b.Run(name, func(b *testing.B) {
			s := newTestGuard(c.store)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.identify(b.Context(), c.header); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
