package cli

import "testing"

func TestTheUIBeginsWithWhatIsChosen(t *testing.T) {
	for _, test := range []struct {
		o    uiOptions
		want string
	}{
		{uiOptions{filter: "status:failed since:24h"}, `runs status:failed since:24h`},
		{uiOptions{filter: `error:"can't open"`}, `runs error:"can't open"`},
		{uiOptions{run: "mira's order"}, `run 'mira'"'"'s order'`},
		{uiOptions{view: "workers", filter: "it's"}, "workers"},
	} {
		if got := test.o.first(); got != test.want {
			t.Errorf("%+v begins with %s, want %s", test.o, got, test.want)
		}
	}
}
