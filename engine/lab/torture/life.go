//go:build linux

package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"
)

// ending is how a process ends: its exit code, or less than 0 the signal that ended it.
type ending int

func bySignal(s syscall.Signal) ending { return -ending(s) }

// The exit codes with which servers end by themselves where a fault gives them a reason.
const (
	exitError       ending = 1  // so the versions up to 9630ef1 said the next two
	exitRefused     ending = 6  // it never served: another has the file, or a newer version had the database
	exitUnavailable ending = 7  // nor then: Postgres does not come
	exitDisk        ending = 70 // it cannot trust its disk
	exitDamaged     ending = 71 // the file is damaged
)

// ending is how a process has ended.
func (p *process) ending() ending {
	if status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return bySignal(status.Signal())
	}
	return ending(p.cmd.ProcessState.ExitCode())
}

// mayEnd says before the fact in which ways the process may end from now on, beside those that were said before.
func (p *process) mayEnd(ways ...ending) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(p.calls, ways...)
}

// mustLast takes back what was said of its end.
func (p *process) mustLast() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = nil
}

// called reports whether somebody has called for such an end.
func (p *process) called(way ending) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Contains(p.calls, way)
}

// spawn begins a life of the server. Nobody reaches it yet through the door.
func (s *server) spawn() (*process, error) {
	return spawnFollowed(s.command(), filepath.Join(s.rig.dir, s.name+".log"), slices.Concat(s.rig.shape.Ends, s.ends), s.follow)
}

// follow looks at a life that has ended. A kill does not hide what came before it: how a process ended tells which of the two was first.
func (s *server) follow(life *process) {
	if way := life.ending(); !life.called(way) {
		s.rig.died("%s ended by itself with %s: %s", s.name, life.cmd.ProcessState, life.out.tail())
	}
	if n, first := life.out.defects(); n > 0 {
		s.rig.died("%s told of a defect in %d lines: %s", s.name, n, first)
	}
}

// died notes what a server did by itself; it counts as a violation.
func (r *rig) died(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.deaths = append(r.deaths, fmt.Sprintf(format, args...))
}

// troubles is what servers did by themselves and, with all, whatever else nobody has ordered.
func (r *rig) troubles(all bool) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if all {
		return slices.Concat(r.trouble, r.deaths)
	}
	return slices.Clone(r.deaths)
}

// defect is in a line in which a server tells of a mistake of its own: a panic, of the whole process or one that it has survived, or an answer
// with an internal error, each of which it writes down, whether or not the answer arrives.
var defect = regexp.MustCompile(`panic: |^fatal error: |"msg":"internal error"|^WARNING: DATA RACE`)

// longestLine is how much of a line is looked at.
const longestLine = 64 << 10

// read looks for defects in what has been printed. Whoever calls has the lock.
func (o *output) read(p []byte) {
	for {
		part, rest, ended := bytes.Cut(p, []byte("\n"))
		o.line = append(o.line, part[:min(len(part), longestLine-len(o.line))]...)
		if !ended {
			return
		}
		o.look()
		p = rest
	}
}

// look takes the line that has been read so far for a whole one.
func (o *output) look() {
	if defect.Match(o.line) {
		if o.bad++; o.bad == 1 {
			o.told = fmt.Sprintf("%.700s", o.line)
		}
	}
	o.line = o.line[:0]
}

// defects is how many lines of what was printed tell of one, and the first of these. It is for a process that has ended.
func (o *output) defects() (n int, first string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.look()
	return o.bad, o.told
}
