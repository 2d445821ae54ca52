//go:build linux

package main

import (
	"strings"
	"testing"
	"time"
)

func TestVerdict(t *testing.T) {
	full := float64(*rate)
	sound := result{before: full, during: full, after: full, back: time.Second, isBack: true}
	but := func(change func(*result)) result {
		r := sound
		change(&r)
		return r
	}
	for what, c := range map[string]struct {
		ours, theirs result
		works        bool
		want         string
	}{
		"as before":                     {sound, sound, true, ""},
		"hardly anything before":        {but(func(r *result) { r.before, r.after, r.during = 1, 1, 1 }), sound, true, "proves nothing"},
		"nothing before":                {but(func(r *result) { r.before = 0 }), sound, false, "proves nothing"},
		"an effect is lost":             {but(func(r *result) { r.lost = 1 }), sound, true, "1 effects were lost"},
		"it does not come back":         {but(func(r *result) { r.isBack = false }), sound, true, "did not come back"},
		"it does less than it did":      {but(func(r *result) { r.after = 0.94 * full }), but(func(r *result) { r.after = 0.9 * full }), true, "want 95 %"},
		"it does less than River":       {but(func(r *result) { r.before, r.after = full/0.96*0.99, full*0.93 }), sound, true, "want 95 %; Kagzi recovered"},
		"less than River meanwhile":     {but(func(r *result) { r.during = 0.8 * full }), but(func(r *result) { r.during = 0.9 * full }), true, "kept 80 % meanwhile"},
		"both do little meanwhile":      {but(func(r *result) { r.during = 0.8 * full }), but(func(r *result) { r.during = 0.84 * full }), true, ""},
		"nothing works meanwhile":       {but(func(r *result) { r.during = 0 }), sound, false, ""},
		"River catches up for long yet": {sound, but(func(r *result) { r.after = 2 * full }), false, ""},
	} {
		if got := strings.Join(scenario{works: c.works}.verdict(c.ours, c.theirs), "; "); !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
	}
}
