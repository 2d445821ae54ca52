package wire

import "testing"

func TestNearest(t *testing.T) {
	names := []string{"default", "orders", "orders-eu", "billing"}
	for text, want := range map[string]string{
		"order": "orders", "ordres": "orders", "oders-eu": "orders-eu", "BILLING": "", "biling": "billing", "x": "",
		"defalt": "default", "something-else": "", "": "",
	} {
		if got := Nearest(text, names); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", text, got, want)
		}
	}
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "abc", 0}, {"kitten", "sitting", 3}, {"ab", "ba", 2}} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("distance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
