package engine

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestKeyRoleIsWrittenAsPeopleWriteIt(t *testing.T) {
	for role, want := range map[KeyRole]string{
		RoleAdmin: "admin", RoleOperator: "operator", RoleClient: "client", RoleWorker: "worker", RoleViewer: "viewer",
		0: "unknown", 6: "unknown",
	} {
		if got := role.String(); got != want {
			t.Errorf("role %d = %q, want %q", role, got, want)
		}
	}
}

func TestAKeyIsValidUntilItExpiresOrIsRevoked(t *testing.T) {
	soon := someDay.Add(time.Minute)
	for _, c := range []struct {
		what string
		key  APIKey
		at   time.Time
		want bool
	}{
		{"without an end", APIKey{}, someDay, true},
		{"before its end", APIKey{ExpiresAt: soon}, soon.Add(-time.Microsecond), true},
		{"at its end", APIKey{ExpiresAt: soon}, soon, false},
		{"after its end", APIKey{ExpiresAt: soon}, soon.Add(time.Hour), false},
		{"revoked", APIKey{RevokedAt: soon}, soon.Add(time.Hour), false},
		{"revoked, by a clock that is behind", APIKey{RevokedAt: soon}, someDay, false},
		{"revoked before its end", APIKey{RevokedAt: someDay, ExpiresAt: soon}, someDay, false},
	} {
		if got := c.key.ValidAt(c.at); got != c.want {
			t.Errorf("%s: valid = %t, want %t", c.what, got, c.want)
		}
	}
}

func TestOnlyAnAdminReachesNamespacesThatItsKeyDoesNotName(t *testing.T) {
	for role := range RoleViewer + 2 { // with those that are no roles
		all, one := APIKey{Role: role}, APIKey{Role: role, Namespaces: []string{"a", "c"}}
		if got, want := all.Reaches("b"), role == RoleAdmin; got != want {
			t.Errorf("%s without namespaces reaches b = %t, want %t", role, got, want)
		}
		if !one.Reaches("a") || !one.Reaches("c") || one.Reaches("b") || one.Reaches("") || one.Reaches("ac") {
			t.Errorf("%s of a and c reaches a, c, b, none, ac = %t %t %t %t %t, want the first two only",
				role, one.Reaches("a"), one.Reaches("c"), one.Reaches("b"), one.Reaches(""), one.Reaches("ac"))
		}
	}
}

func TestAWorkerServesWhatOneOfItsGlobsDescribes(t *testing.T) {
	all := APIKey{Role: RoleWorker}
	some := APIKey{Role: RoleWorker, Queues: []string{"orders", "press-*"}, Types: []string{"ship.*"}}
	for _, c := range []struct {
		what      string
		got, want bool
	}{
		{"any queue without globs", all.ServesQueue("q"), true},
		{"any type without globs", all.ServesType("t"), true},
		{"a queue by its name", some.ServesQueue("orders"), true},
		{"a queue by a glob", some.ServesQueue("press-7"), true},
		{"another queue", some.ServesQueue("orders-2"), false},
		{"a type by a glob", some.ServesType("ship.air"), true},
		{"a type that a queue's glob describes", some.ServesType("press-7"), false},
		{"a queue that a type's glob describes", some.ServesQueue("ship.air"), false},
	} {
		if c.got != c.want {
			t.Errorf("%s: serves = %t, want %t", c.what, c.got, c.want)
		}
	}
}

func TestGlob(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"", "", true}, {"", "a", false}, {"a", "a", true}, {"a", "A", false}, {"a", "ab", false}, {"ab", "a", false},
		{"*", "", true}, {"*", "a/b:c", true}, {"**", "a", true}, {"a*", "a", true}, {"a*", "ba", false},
		{"*a", "ba", true}, {"*a", "ab", false},
		{"a*a", "a", false}, {"a*a", "aa", true}, {"a*b*c", "abc", true}, {"a*b*c", "a-b-b-c", true},
		{"a*b*c", "acb", false},
		{"ab*ba", "aba", false}, {"*aab", "aaab", true}, {"*ab*ab", "ab", false}, {"a?", "ab", false},
		{"[a]", "a", false}, {"a.c", "abc", false},
	} {
		if got := MatchesGlob(c.pattern, c.name); got != c.want {
			t.Errorf("MatchesGlob(%q, %q) = %t, want %t", c.pattern, c.name, got, c.want)
		}
	}
}

// plainGlob is a simple and slow implementation of MatchesGlob.
func plainGlob(pattern, name string) bool {
	switch {
	case pattern == "":
		return name == ""
	case pattern[0] == '*':
		return plainGlob(pattern[1:], name) || name != "" && plainGlob(pattern, name[1:])
	}
	return name != "" && name[0] == pattern[0] && plainGlob(pattern[1:], name[1:])
}

func TestGlobSaysTheSameAsItsPlainRule(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if given, err := strconv.ParseUint(os.Getenv("KAGZI_TEST_SEED"), 10, 64); err == nil {
		seed = given
	}
	t.Logf("KAGZI_TEST_SEED=%d", seed)
	rnd := rand.New(rand.NewPCG(seed, seed))
	draw := func(letters string, longest int) string {
		out := make([]byte, rnd.IntN(longest+1))
		for i := range out {
			out[i] = letters[rnd.IntN(len(letters))]
		}
		return string(out)
	}
	matched := 0
	for range 50_000 {
		pattern, name := draw("ab*", 7), draw("ab", 9) // few letters, so that much nearly matches
		want := plainGlob(pattern, name)
		if got := MatchesGlob(pattern, name); got != want {
			t.Fatalf("KAGZI_TEST_SEED=%d: MatchesGlob(%q, %q) = %t, want %t", seed, pattern, name, got, want)
		}
		if want {
			matched++
		}
	}
	if matched < 1000 {
		t.Fatalf("KAGZI_TEST_SEED=%d: %d of 50,000 matched, want many", seed, matched)
	}
}

func TestGlobIsNotSlowedDownByManyStars(t *testing.T) {
	pattern, name := strings.Repeat("*a", MaxName/2), strings.Repeat("a", MaxName-1)+"b"
	if MatchesGlob(pattern, name) { // a search that goes back would take longer than the universe is old
		t.Errorf("%q ends as the pattern does, want no match", name)
	}
}

func TestCheckKey(t *testing.T) {
	many := func(n int) (names []string) {
		for i := range n {
			names = append(names, fmt.Sprintf("n%03d", i))
		}
		return names
	}
	for _, c := range []struct {
		what   string
		change func(*APIKey)
		field  string
	}{
		{"a plain key", func(*APIKey) {}, ""},
		{"no name", func(k *APIKey) { k.Name = "" }, "key.name"},
		{"the longest name", func(k *APIKey) { k.Name = strings.Repeat("n", MaxName) }, ""},
		{"a longer name", func(k *APIKey) { k.Name = strings.Repeat("n", MaxName+1) }, "key.name"},
		{"a name with a space", func(k *APIKey) { k.Name = "a b" }, "key.name"},
		{"no role", func(k *APIKey) { k.Role = 0 }, "key.role"},
		{"an unknown role", func(k *APIKey) { k.Role = RoleViewer + 1 }, "key.role"},
		{"an admin of all namespaces", func(k *APIKey) { *k = APIKey{Name: "n", Role: RoleAdmin} }, ""},
		{"an admin of one", func(k *APIKey) { *k = APIKey{Name: "n", Role: RoleAdmin, Namespaces: []string{"a"}} }, ""},
		{"an operator of all", func(k *APIKey) { *k = APIKey{Name: "n", Role: RoleOperator} }, "key.namespaces"},
		{"a client of all", func(k *APIKey) { *k = APIKey{Name: "n", Role: RoleClient} }, "key.namespaces"},
		{"a worker of all", func(k *APIKey) { k.Namespaces = nil }, "key.namespaces"},
		{"a viewer of all", func(k *APIKey) { *k = APIKey{Name: "n", Role: RoleViewer} }, "key.namespaces"},
		{"the most namespaces", func(k *APIKey) { k.Namespaces = many(MaxKeyNamespaces) }, ""},
		{"more namespaces", func(k *APIKey) { k.Namespaces = many(MaxKeyNamespaces + 1) }, "key.namespaces"},
		{"a namespace that is none", func(k *APIKey) { k.Namespaces = []string{"A"} }, "key.namespaces"},
		{"a glob of namespaces", func(k *APIKey) { k.Namespaces = []string{"team-*"} }, "key.namespaces"},
		{"an empty namespace", func(k *APIKey) { k.Namespaces = []string{""} }, "key.namespaces"},
		{"a namespace twice", func(k *APIKey) { k.Namespaces = []string{"a", "a"} }, "key.namespaces"},
		{"namespaces in disorder", func(k *APIKey) { k.Namespaces = []string{"b", "a"} }, "key.namespaces"},
		{"globs", func(k *APIKey) { k.Queues, k.Types = []string{"*", "a-Z.0_:/*"}, []string{"b"} }, ""},
		{"the most queues", func(k *APIKey) { k.Queues = many(MaxKeyGlobs) }, ""},
		{"more queues", func(k *APIKey) { k.Queues = many(MaxKeyGlobs + 1) }, "key.task_queues"},
		{"more types", func(k *APIKey) { k.Types = many(MaxKeyGlobs + 1) }, "key.workflow_types"},
		{"the longest glob", func(k *APIKey) { k.Queues = []string{strings.Repeat("*", MaxName)} }, ""},
		{"a longer glob", func(k *APIKey) { k.Queues = []string{strings.Repeat("*", MaxName+1)} }, "key.task_queues"},
		{"an empty glob", func(k *APIKey) { k.Types = []string{"a", ""} }, "key.workflow_types"},
		{"a glob of another kind", func(k *APIKey) { k.Queues = []string{"a?"} }, "key.task_queues"},
		{"a glob that is no text", func(k *APIKey) { k.Types = []string{"a\xff"} }, "key.workflow_types"},
		{"queues of a client", func(k *APIKey) { k.Role, k.Queues = RoleClient, []string{"q"} }, "key.task_queues"},
		{"types of an admin", func(k *APIKey) { k.Role, k.Types = RoleAdmin, []string{"t"} }, "key.workflow_types"},
		{"an end in the future", func(k *APIKey) { k.ExpiresAt = someDay.Add(time.Microsecond) }, ""},
		{"an end right now", func(k *APIKey) { k.ExpiresAt = someDay }, "key.expires_at"},
		{"an end in the past", func(k *APIKey) { k.ExpiresAt = someDay.Add(-time.Hour) }, "key.expires_at"},
	} {
		k := APIKey{Name: "press-7", Role: RoleWorker, Namespaces: []string{"a", "b"}, CreatedAt: someDay}
		c.change(&k)
		check(t, c.what, CheckKey(&k), c.field, KindInvalid)
	}
}
