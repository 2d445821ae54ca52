package near

import "testing"

func TestDistanceCountsLettersPutInTakenOutChangedAndSwapped(t *testing.T) {
	for _, c := range []struct {
		from, to string
		want     int
	}{
		{"", "", 0}, {"runs", "runs", 0}, {"", "runs", 4}, {"runs", "", 4}, {"rnus", "runs", 1}, {"run", "runs", 1},
		{"runns", "runs", 1},
		{"rums", "runs", 1}, {"rnus", "ns", 2}, {"queue", "server", 5}, {"ab", "ba", 1}, {"abc", "cab", 2},
	} {
		if got := Distance(c.from, c.to); got != c.want {
			t.Errorf("from %q to %q it is %d, want %d", c.from, c.to, got, c.want)
		}
		if there, back := Distance(c.from, c.to), Distance(c.to, c.from); there != back {
			t.Errorf("%q and %q: %d there and %d back", c.from, c.to, there, back)
		}
	}
}

func TestNameIsTheClosestOfTheCloseNames(t *testing.T) {
	names := []string{"status", "started", "type", "id"}
	for word, want := range map[string]string{"staus": "status", "STATUS": "status", "startd": "started", "tpye": "type",
		"colour": "", "x": "", "": ""} {
		if got := Name(word, names); got != want {
			t.Errorf("Name(%q) = %q, want %q", word, got, want)
		}
	}
}
