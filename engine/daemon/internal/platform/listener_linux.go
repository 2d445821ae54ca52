package platform

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// ListenerOn returns the program that listens on a port, if this user may see it, or "".
func ListenerOn(port string) string {
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return ""
	}
	sockets := map[string]bool{}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		content, _ := os.ReadFile(table) // an unreadable table has no entries
		for line := range strings.Lines(string(content)) {
			fields := strings.Fields(line)
			if len(fields) > 9 && fields[3] == "0A" && strings.HasSuffix(fields[1], fmt.Sprintf(":%04X", number)) {
				// 0A: listening
				sockets["socket:["+fields[9]+"]"] = true
			}
		}
	}
	descriptors, _ := filepath.Glob("/proc/[0-9]*/fd/[0-9]*") // the pattern is valid
	for _, d := range descriptors {
		if target, err := os.Readlink(d); err != nil || !sockets[target] {
			continue
		}
		process := filepath.Dir(filepath.Dir(d))
		name, _ := os.ReadFile(filepath.Join(process, "comm")) // the process number is enough
		return fmt.Sprintf("%s (process %s)", strings.TrimSpace(string(name)), filepath.Base(process))
	}
	return ""
}
