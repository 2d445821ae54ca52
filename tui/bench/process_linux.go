package bench

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// clockTick is the unit of processor time in /proc, the same on every Linux that Go supports.
const clockTick = 10 * time.Millisecond

// process is what /proc reports about a process.
type process struct {
	parent int
	used   time.Duration // on all cores, in whole ticks
	waited time.Duration // used by ended children that were waited for
}

func lookAt(pid int) (p process, known bool) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return p, false
	}
	_, after, _ := bytes.Cut(data, []byte(") ")) // the program's name ends here
	fields := bytes.Fields(after)
	if len(fields) < 15 {
		return p, false
	}
	number := func(i int) int64 {
		n, wrong := strconv.ParseInt(string(fields[i]), 10, 64)
		if wrong != nil {
			err = wrong
		}
		return n
	}
	p.parent = int(number(1))
	p.used = time.Duration(number(11)+number(12)) * clockTick
	p.waited = time.Duration(number(13)+number(14)) * clockTick
	return p, err == nil
}

// processorTime returns how much a process has used so far, on all cores.
func processorTime(pid int) (used time.Duration, known bool) {
	p, known := lookAt(pid)
	return p.used, known
}

// familyTime returns how much a process and all its descendants have used so far: the shell that runs
// a command uses nothing itself.
func familyTime(pid int) (used time.Duration, known bool) {
	p, known := lookAt(pid)
	used = p.used + p.waited
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		return used, known
	}
	for _, list := range lists {
		children, _ := os.ReadFile(list) // a thread that has just ended has none
		for _, child := range strings.Fields(string(children)) {
			number, _ := strconv.Atoi(child)
			more, _ := familyTime(number)
			used += more
		}
	}
	return used, known
}

// residentBytes returns the resident memory of a process.
func residentBytes(pid int) (n int64, known bool) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, false
	}
	fields := bytes.Fields(data)
	if len(fields) < 2 {
		return 0, false
	}
	pages, err := strconv.ParseInt(string(fields[1]), 10, 64)
	return pages * int64(os.Getpagesize()), err == nil
}

// postgresTime returns the processor time of the Postgres server of a database, named as in
// GetServerInfo: "localhost:5432/kagzi". It includes all processes of that server, also those for
// other databases. It is unknown if the server is on another machine, or if two local servers have
// a database of that name.
func postgresTime(database string) (used time.Duration, known bool) {
	at := strings.LastIndex(database, "/")
	if at < 0 || !isHere(database[:at]) {
		return 0, false
	}
	names, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return 0, false
	}
	server := 0
	byParent := map[int]time.Duration{}
	for _, name := range names {
		title, err := os.ReadFile(name)
		if err != nil || !bytes.HasPrefix(title, []byte("postgres:")) {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name))) // digits, by the pattern
		p, alive := lookAt(pid)
		if !alive {
			continue
		}
		byParent[p.parent] += p.used
		if bytes.Contains(title, []byte(" "+database[at+1:]+" ")) { // postgres: USER DATABASE CLIENT STATE
			if server != 0 && server != p.parent {
				return 0, false
			}
			server = p.parent
		}
	}
	p, known := lookAt(server)
	return byParent[server] + p.used + p.waited, known
}

// isHere reports whether a database host, with or without port, is a socket directory or a loopback
// address.
func isHere(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.HasPrefix(host, "/") || host == "" || host == "localhost" || net.ParseIP(host).IsLoopback()
}

// processorModel returns the name of the processor, or "".
func processorModel() string {
	data, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(data)) {
		if key, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
