package overlay

import (
	"fmt"
	"os/exec"
	"strings"
)

// Failpoints returns the flag of go build that adds the tag failpoint to those of GOFLAGS. Without
// the others, most packages would be compiled once more for a build of this kind.
func Failpoints() (flag string, err error) {
	out, err := exec.Command("go", "env", "GOFLAGS").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOFLAGS: %w", err)
	}
	return withTag(string(out), "failpoint"), nil
}

// withTag returns the flag for the tags that flags name, and one more.
func withTag(flags, tag string) string {
	tags := ""
	for _, flag := range strings.Fields(flags) {
		name, value, _ := strings.Cut(flag, "=")
		if strings.TrimLeft(name, "-") == "tags" && value != "" {
			tags = value + ","
		}
	}
	return "-tags=" + tags + tag
}
