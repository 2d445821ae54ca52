package world

import (
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

func TestKeysAreMadeListedAndRevoked(t *testing.T) {
	w := Empty(begin)
	if me := must[*kagziv1.WhoAmIResponse](t)(w.WhoAmI(ctx, &kagziv1.WhoAmIRequest{})); me.Key != nil || me.KeysRequired {
		t.Errorf("without keys: %v", me)
	}
	made := must[*kagziv1.CreateKeyResponse](t)(w.CreateKey(ctx, &kagziv1.CreateKeyRequest{Key: &kagziv1.Key{Name: "ada", Role: kagziv1.KeyRole_KEY_ROLE_ADMIN}}))
	if made.Secret == "" || made.Key.KeyId == "" {
		t.Errorf("made %v", made)
	}
	if _, err := w.CreateKey(ctx, &kagziv1.CreateKeyRequest{Key: &kagziv1.Key{Name: "ada"}}); status.Code(err) != codes.AlreadyExists {
		t.Errorf("a name that is taken: %v", err)
	}
	must[*kagziv1.CreateKeyResponse](t)(w.CreateKey(ctx, &kagziv1.CreateKeyRequest{Key: &kagziv1.Key{Name: "bob"}}))
	if keys := must[*kagziv1.ListKeysResponse](t)(w.ListKeys(ctx, &kagziv1.ListKeysRequest{})).Keys; len(keys) != 2 || keys[0].Name != "bob" {
		t.Errorf("keys %v", keys)
	}
	revoked := must[*kagziv1.RevokeKeyResponse](t)(w.RevokeKey(ctx, &kagziv1.RevokeKeyRequest{KeyId: made.Key.KeyId}))
	if revoked.Key.RevokedAt == nil {
		t.Errorf("revoked %v", revoked)
	}
	w.CallAs(revoked.Key)
	if me := must[*kagziv1.WhoAmIResponse](t)(w.WhoAmI(ctx, &kagziv1.WhoAmIRequest{})); me.Key.GetName() != "ada" || !me.KeysRequired {
		t.Errorf("as ada: %v", me)
	}
}
