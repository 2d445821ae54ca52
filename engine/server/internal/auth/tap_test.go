package auth

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/servertest"
)

func TestOnlyAFewCallsWithoutAValidKeyAreReadAtATime(t *testing.T) {
	l := &servertest.KeyStore{}
	valid := l.Make(engine.APIKey{Name: "valid", Role: engine.RoleAdmin})
	expired := l.Make(engine.APIKey{Name: "expired", Role: engine.RoleAdmin, ExpiresAt: time.Unix(1, 0)})
	const method = "/kagzi.v1.WorkflowService/StartWorkflow"
	info := func(secret string) *tap.Info {
		return &tap.Info{FullMethodName: method, Header: metadata.Pairs("authorization", "Bearer "+secret)}
	}
	for name, c := range map[string]struct {
		store   *servertest.KeyStore
		needKey bool
		trusted bool
		secret  string
		most    int // calls that are read; 0: all
	}{
		"a valid key":                        {l, false, false, valid, 0},
		"an expired one":                     {l, false, false, expired, maxUnauthenticatedReads},
		"an unknown one":                     {l, false, false, "kz_admin", maxUnauthenticatedReads},
		"no key is needed":                   {&servertest.KeyStore{}, false, false, "", 0},
		"others reach it, and there is none": {&servertest.KeyStore{}, true, false, valid, maxUnauthenticatedReads},
		"from within":                        {l, false, true, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newTestGuard(c.store)
				s.needKey, s.trusted = c.needKey, c.trusted
				s.Protect([]string{method})
				if _, err := s.keys.get(t.Context()); err != nil {
					t.Fatal(err)
				}
				for range 2 { // the second round has the room of the first
					var over []context.CancelFunc
					read := 0
					for range 3 * maxUnauthenticatedReads {
						ctx, end := context.WithCancel(t.Context())
						over = append(over, end)
						if _, err := s.Tap(ctx, info(c.secret)); err == nil {
							read++
						} else if status.Code(err) != codes.Unauthenticated {
							t.Errorf("refused with %v, want UNAUTHENTICATED", err)
						}
					}
					want := c.most
					if want == 0 {
						want = 3 * maxUnauthenticatedReads
					}
					if read != want {
						t.Errorf("%d calls are read at a time, want %d", read, want)
					}
					for _, end := range over {
						end()
					}
					synctest.Wait() // they count themselves out in goroutines
				}
			})
		})
	}
}
