// Package child runs more processes of this binary, for commands that need their own server or
// workers. A child cannot outlive its parent: it stops gracefully when its standard input ends, and
// the parent holds the other end.
package child

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Spec describes the process to start. Only Args, or Shell, is required.
type Spec struct {
	Args []string // the command line without the binary: "server", "--listen", ..
	// Shell, if set, is a command for the shell in place of this binary and Args. Stop sends it SIGTERM;
	// on Windows its standard input ends.
	Shell string
	// Program, if set, is run with Args in place of this binary. Like every child it has to end when its
	// standard input does.
	Program string
	Env     []string // KEY=value pairs added to the parent's environment without its KAGZI_ variables
	Dir     string   // working directory; empty means the parent's
	Log     io.Writer
}

// Process is a running child. Its methods may be called from any goroutine, but Await only from one
// at a time.
type Process struct {
	cmd     *exec.Cmd
	shell   bool
	title   string // names it in errors
	stdin   io.Closer
	journal *journal
	done    chan struct{}
	err     error // of the process; set before done is closed
	stop    sync.Once
}

// Start starts a child. No context ends it: call Stop or Kill, or it ends with this process.
func Start(spec Spec) (*Process, error) {
	cmd, err := spec.command()
	if err != nil {
		return nil, err
	}
	p := &Process{cmd: cmd, shell: spec.Shell != "", title: spec.title(), journal: newJournal(spec.Log), done: make(chan struct{})}
	p.cmd.Env = append(withoutSettings(os.Environ()), spec.Env...)
	p.cmd.Dir = spec.Dir
	p.cmd.Stdout, p.cmd.Stderr = p.journal, p.journal // the same value, so that exec does not write to it concurrently
	ownGroup(p.cmd)
	p.cmd.WaitDelay = time.Second
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start %s: %w", p.name(), err)
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", p.name(), err)
	}
	go func() {
		defer close(p.done)
		p.err = p.cmd.Wait()
	}()
	return p, nil
}

// title returns what names the process in errors: its command or its script.
func (s Spec) title() string {
	switch {
	case s.Shell != "":
		return s.Shell
	case s.Program != "" && len(s.Args) > 0:
		return filepath.Base(s.Args[0])
	case s.Program != "" || len(s.Args) == 0:
		return filepath.Base(s.Program)
	}
	return s.Args[0]
}

// command returns the command to start.
func (s Spec) command() (*exec.Cmd, error) {
	switch {
	case s.Shell != "":
		return shell(s.Shell), nil
	case s.Program != "":
		return exec.Command(s.Program, s.Args...), nil
	}
	binary, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this binary: %w", err)
	}
	return exec.Command(binary, append([]string{commandName}, s.Args...)...), nil
}

// withoutSettings removes the variables that would change the meaning of the child's flags.
func withoutSettings(environment []string) []string {
	kept := make([]string, 0, len(environment))
	for _, pair := range environment {
		if !strings.HasPrefix(strings.ToUpper(pair), "KAGZI_") {
			kept = append(kept, pair)
		}
	}
	return kept
}

// PID returns the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Stop asks the process to end and waits. After grace it is killed, which is an error, as is any
// exit code but 0. If the process has already ended, Stop returns how.
func (p *Process) Stop(grace time.Duration) error {
	p.stop.Do(func() {
		if !p.shell || !terminate(p.cmd) {
			_ = p.stdin.Close() // already closed if the process has ended
		}
	})
	limit := time.NewTimer(grace)
	defer limit.Stop()
	select {
	case <-p.done:
		return p.ending()
	case <-limit.C:
		if p.ended() {
			return p.ending()
		}
	}
	p.Kill()
	return fmt.Errorf("%s did not stop within %s and was killed", p.name(), grace)
}

// Kill ends the process at once, as kill -9 does, and waits until it is gone.
func (p *Process) Kill() {
	if p.shell {
		kill(p.cmd)
	}
	_ = p.cmd.Process.Kill() // fails only if it has already ended
	<-p.done
}

// Await waits for a line of output that match accepts, and returns what match returned. It fails if
// the process or ctx ends first.
func (p *Process) Await(ctx context.Context, match func(line string) (string, bool)) (string, error) {
	for next := 0; ; {
		var lines []string
		ended := p.ended()
		lines, next = p.journal.since(next)
		for _, line := range lines {
			if found, ok := match(line); ok {
				return found, nil
			}
		}
		if ended {
			return "", p.unexpected()
		}
		select {
		case <-p.journal.wake:
		case <-p.done:
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// Tail returns at most n of the last printed lines.
func (p *Process) Tail(n int) []string { return p.journal.tail(n) }

func (p *Process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

func (p *Process) name() string { return p.title }

func (p *Process) ending() error {
	if p.err == nil || errors.Is(p.err, exec.ErrWaitDelay) || p.shell && terminated(p.cmd.ProcessState) {
		return nil
	}
	return fmt.Errorf("%s: %w", p.name(), p.err)
}

// unexpected is the error for a process that ended early, with its last output.
func (p *Process) unexpected() error {
	how := "exit status 0"
	if p.err != nil {
		how = p.err.Error()
	}
	return fmt.Errorf("%s ended early (%s); its last output: %s", p.name(), how, strings.Join(p.Tail(lastWords), " | "))
}

const lastWords = 5
