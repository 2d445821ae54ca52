package server

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
)

func TestOnlyAFewCallsWithoutAValidKeyAreReadAtATime(t *testing.T) {
	l := &locksmith{}
	valid := l.make(engine.APIKey{Name: "valid", Role: engine.RoleAdmin})
	expired := l.make(engine.APIKey{Name: "expired", Role: engine.RoleAdmin, ExpiresAt: time.Unix(1, 0)})
	info := func(secret string) *tap.Info {
		return &tap.Info{FullMethodName: startMethod, Header: metadata.Pairs("authorization", "Bearer "+secret)}
	}
	for name, c := range map[string]struct {
		store   *locksmith
		options Options
		secret  string
		most    int // calls that are read; 0: all
	}{
		"a valid key":                        {l, Options{}, valid, 0},
		"an expired one":                     {l, Options{}, expired, maxUnknown},
		"an unknown one":                     {l, Options{}, "kz_admin", maxUnknown},
		"no key is needed":                   {&locksmith{}, Options{}, "", 0},
		"others reach it, and there is none": {&locksmith{}, Options{NeedKey: true}, valid, maxUnknown},
		"from within":                        {l, Options{Trusted: true}, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := New(c.store, nil, c.options)
				if _, err := s.keys.get(t.Context()); err != nil {
					t.Fatal(err)
				}
				for range 2 { // the second round has the room of the first
					var over []context.CancelFunc
					read := 0
					for range 3 * maxUnknown {
						ctx, end := context.WithCancel(t.Context())
						over = append(over, end)
						if _, err := s.tap(ctx, info(c.secret)); err == nil {
							read++
						} else if status.Code(err) != codes.Unauthenticated {
							t.Errorf("refused with %v, want UNAUTHENTICATED", err)
						}
					}
					want := c.most
					if want == 0 {
						want = 3 * maxUnknown
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
