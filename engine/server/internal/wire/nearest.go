package wire

import "github.com/kagzi/kagzi/proto/near"

// Nearest returns the candidate that differs least from a text, for "did you mean". It returns ""
// if even that one differs in more than a third of the text. Of several, the first counts.
func Nearest(text string, candidates []string) string {
	nearest, least := "", max(len(text)/3, 1)+1
	for _, c := range candidates {
		if d := near.Distance(text, c); d < least {
			nearest, least = c, d
		}
	}
	return nearest
}
