// Package child runs further processes of this same binary, for commands that need a server or
// workers of their own. A child cannot outlive its parent: it stops in good order when its standard
// input ends, and the parent holds the other end.
package child

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// Spec says which process to start. Only Args is needed.
type Spec struct {
	Args []string // the command line without the binary: "server", "--listen", ..
	Env  []string // KEY=value pairs beside the parent's environment, of which the child sees no KAGZI_ variable
	Dir  string   // working directory; empty means the parent's
	Log  io.Writer
}

// Process is a running child. Its methods may be called from any goroutine, but only one at a time may Await.
type Process struct {
	cmd     *exec.Cmd
	stdin   io.Closer
	journal *journal
	done    chan struct{}
	err     error // of the process; set before done is closed
	stop    sync.Once
}

// Start starts a child. It is not tied to a context: Stop or Kill it, else it ends with this process.
func Start(spec Spec) (*Process, error) {
	binary, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this binary: %w", err)
	}
	p := &Process{
		cmd:     exec.Command(binary, append([]string{commandName}, spec.Args...)...),
		journal: newJournal(spec.Log),
		done:    make(chan struct{}),
	}
	p.cmd.Env = append(withoutSettings(os.Environ()), spec.Env...)
	p.cmd.Dir = spec.Dir
	p.cmd.Stdout, p.cmd.Stderr = p.journal, p.journal // the same value, so that exec writes to it one at a time
	p.cmd.SysProcAttr = ownGroup()
	p.cmd.WaitDelay = time.Second
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Args[0], err)
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Args[0], err)
	}
	go func() {
		defer close(p.done)
		p.err = p.cmd.Wait()
	}()
	return p, nil
}

// withoutSettings takes the variables away that would change what the child's flags say.
func withoutSettings(environment []string) []string {
	kept := make([]string, 0, len(environment))
	for _, pair := range environment {
		if !strings.HasPrefix(strings.ToUpper(pair), "KAGZI_") {
			kept = append(kept, pair)
		}
	}
	return kept
}

// PID is the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Stop asks the process to end and waits for it. One that has not ended after the grace is killed,
// which is an error, as is any exit code but 0. Stopping what has ended already tells how it ended.
func (p *Process) Stop(grace time.Duration) error {
	p.stop.Do(func() { _ = p.stdin.Close() }) // closed already when the process has gone
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
	_ = p.cmd.Process.Kill() // fails only when it has ended already
	<-p.done
}

// Await waits for a line of the process's output that match takes, and returns what match made of it. It is an error
// when the process or ctx ends first.
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

// Tail is the last lines, at most n, that the process has printed.
func (p *Process) Tail(n int) []string { return p.journal.tail(n) }

func (p *Process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

func (p *Process) name() string { return p.cmd.Args[2] }

func (p *Process) ending() error {
	if p.err == nil || errors.Is(p.err, exec.ErrWaitDelay) {
		return nil
	}
	return fmt.Errorf("%s: %w", p.name(), p.err)
}

// unexpected says that the process has ended when it should not have, and what it said last.
func (p *Process) unexpected() error {
	how := "exit status 0"
	if p.err != nil {
		how = p.err.Error()
	}
	return fmt.Errorf("%s ended early (%s); its last words: %s", p.name(), how, strings.Join(p.Tail(lastWords), " | "))
}

const lastWords = 5
