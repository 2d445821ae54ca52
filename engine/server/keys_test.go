package server

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kagzi/kagzi/engine"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

func TestAKeyIsValidFromItsCreationToItsRevocation(t *testing.T) {
	_, conn, l, secrets := guarded(t)
	admin, root := kagziv1.NewAdminServiceClient(conn), with(soon(t), secrets[engine.RoleAdmin])
	if _, err := admin.WhoAmI(root, &kagziv1.WhoAmIRequest{}); err != nil { // the keys are in memory from here on
		t.Fatal(err)
	}
	made, err := admin.CreateKey(root, &kagziv1.CreateKeyRequest{
		Key: &kagziv1.Key{Name: "new", Role: kagziv1.KeyRole_KEY_ROLE_VIEWER, Namespaces: []string{"team"}}})
	if err != nil {
		t.Fatal(err)
	}
	if me, err := admin.WhoAmI(with(soon(t), made.Secret), &kagziv1.WhoAmIRequest{}); err != nil ||
		me.Key.GetName() != "new" {
		t.Errorf("with the new key: %v, %v", me, err)
	}
	if _, err := admin.RevokeKey(root, &kagziv1.RevokeKeyRequest{KeyId: made.Key.KeyId}); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.WhoAmI(with(soon(t), made.Secret), &kagziv1.WhoAmIRequest{}); status.Code(
		err) != codes.Unauthenticated {
		t.Errorf("with the revoked key: %v, want UNAUTHENTICATED", err)
	}
	for i, method := range []string{"CreateKey", "RevokeKey"} {
		if e := l.Recorded()[i]; e.Method != method || !strings.HasPrefix(e.Actor.Name, "the-admin (") {
			t.Errorf("%s was by %q, want the admin's key", e.Method, e.Actor.Name)
		}
	}
}

func TestAValidKeyIsNotDelayedByFailuresOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, conn, _, secrets := guarded(t)
		admin := kagziv1.NewAdminServiceClient(conn)
		var failing sync.WaitGroup
		for range 20 { // more than an address has free in a second
			failing.Go(func() { _, _ = admin.WhoAmI(soon(t), &kagziv1.WhoAmIRequest{}) })
		}
		failing.Wait()
		began := time.Now()
		if _, err := admin.WhoAmI(with(soon(t), secrets[engine.RoleClient]), &kagziv1.WhoAmIRequest{}); err != nil {
			t.Error(err)
		}
		valid := time.Since(began)
		if _, err := admin.WhoAmI(soon(t), &kagziv1.WhoAmIRequest{}); status.Code(err) != codes.Unauthenticated {
			t.Errorf("without a key: %v", err)
		}
		if all := time.Since(began); valid != 0 || all != 250*time.Millisecond {
			t.Errorf("a valid key took %s and a missing one %s, want the second alone late by %s", valid, all-valid,
				250*time.Millisecond)
		}
	})
}
