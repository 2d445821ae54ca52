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
}
