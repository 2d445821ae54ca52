package diff

import (
	"strings"
	"testing"
)

func TestAlignPutsEqualLinesBesideEachOther(t *testing.T) {
	for _, test := range []struct{ left, right, want string }{
		{"", "", ""},
		{"a b c", "a b c", "aa bb cc"},
		{"a b c", "a c", "aa b- cc"},
		{"a c", "a b c", "aa -b cc"},
		{"a x c", "a y c", "aa xy cc"},
		{"x a b y", "a z b", "x- aa -z bb y-"},
		{"a b", "", "a- b-"},
		{"", "a", "-a"},
		{"a b a b", "b a b a", "a- bb aa bb -a"},
	} {
		left, right := strings.Fields(test.left), strings.Fields(test.right)
		var got []string
		for _, pair := range align(left, right) {
			text := [2]string{"-", "-"}
			if pair.left >= 0 {
				text[0] = left[pair.left]
			}
			if pair.right >= 0 {
				text[1] = right[pair.right]
			}
			got = append(got, text[0]+text[1])
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("align %q and %q = %q, want %q", test.left, test.right, strings.Join(got, " "), test.want)
		}
	}
}
