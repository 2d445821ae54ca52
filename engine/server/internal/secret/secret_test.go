package secret

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/kagzi/kagzi/engine"
)

func TestASecretSaysWhoseItIsAndIsWhole(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	seen := map[string]bool{}
	for role := engine.RoleAdmin; role <= engine.RoleViewer; role++ {
		for i := range 200 {
			var id engine.ID
			for j := range id {
				id[j] = byte(rnd.Uint32())
			}
			switch i {
			case 0:
				id = engine.ID{15: 1}
			case 1:
				id = engine.ID([]byte(strings.Repeat("\xff", 16)))
			}
			secret, hash := New(role, id)
			parts := strings.Split(secret, "_")
			if len(parts) != 5 || parts[0] != "kz" || parts[1] != role.String() || len(parts[2]) != 22 ||
				len(parts[3]) != 43 || len(parts[4]) != 6 || len(secret) > MaxLength {
				t.Fatalf("secret %q", secret)
			}
			if got, ok := Parse(secret); !ok || got != id || hash != Hash(secret) || seen[parts[3]] {
				t.Fatalf("%q is read as %v %v, want %v", secret, got, ok, id)
			}
			seen[parts[3]] = true
			for range 20 { // one character is another
				at := rnd.IntN(len(secret))
				spoiled := []byte(secret)
				spoiled[at] = digits62[rnd.IntN(62)]
				if _, ok := Parse(string(spoiled)); ok && string(spoiled) != secret {
					t.Fatalf("%q is taken for whole", spoiled)
				}
			}
		}
	}
	tooLarge := "kz_admin_" + strings.Repeat("Z", 22) + "_" + strings.Repeat("0", 43)
	for _, bad := range []string{"", "_", "____", "kz____", tooLarge + "_" + sumOf(tooLarge)} {
		if _, ok := Parse(bad); ok {
			t.Errorf("%q is taken for a secret", bad)
		}
	}
}
