//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// process is one life of a child process. No child outlives this process.
type process struct {
	cmd   *exec.Cmd
	stdin io.Closer
	out   *output
	done  chan struct{}

	mu    sync.Mutex
	calls []ending // the ways in which it may end: somebody has called for them
}

// spawning is where children are started: one thread that lives as long as this process does, for the kernel kills a child when the thread
// that started it ends.
var spawning = sync.OnceValue(func() chan<- func() {
	starts := make(chan func())
	go func() {
		runtime.LockOSThread()
		for do := range starts {
			do()
		}
	}()
	return starts
})

// spawn starts a child in a group of its own. What it prints goes to the file at path, and can be waited for.
func spawn(cmd *exec.Cmd, path string) (*process, error) {
	return spawnFollowed(cmd, path, nil, nil)
}

// spawnFollowed is spawn for a child that may end in some ways, and is looked at when it has ended, before anybody hears that it has.
func spawnFollowed(cmd *exec.Cmd, path string, ways []ending, follow func(p *process)) (*process, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, out: &output{file: file, bell: make(chan struct{}, 1)}, done: make(chan struct{}), calls: ways}
	cmd.Stdout, cmd.Stderr = p.out, p.out
	cmd.WaitDelay = time.Second
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid, cmd.SysProcAttr.Pdeathsig = true, syscall.SIGKILL
	if p.stdin, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	started := make(chan error)
	spawning() <- func() { started <- cmd.Start() }
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", filepath.Base(cmd.Path), err)
	}
	go func() {
		defer close(p.done)
		_ = cmd.Wait() // how it ended is in ProcessState
		file.Close()
		if follow != nil {
			follow(p)
		}
	}()
	return p, nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// signal sends a signal to the process alone; it reports whether there was one to get it.
func (p *process) signal(s syscall.Signal) bool { return !p.ended() && p.cmd.Process.Signal(s) == nil }

// kill ends the process and all of its group at once and waits until it is gone.
func (p *process) kill() bool {
	p.mayEnd(bySignal(syscall.SIGKILL))
	hit := !p.ended() && syscall.Kill(-p.pid(), syscall.SIGKILL) == nil
	<-p.done
	return hit
}

// stop asks the process to end, and kills it after the grace. It returns an error for any end but a good one.
func (p *process) stop(grace time.Duration) error {
	p.mayEnd(0)
	p.signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(grace):
		p.kill()
		return fmt.Errorf("%s did not stop within %s of SIGTERM", filepath.Base(p.cmd.Path), grace)
	}
	if code := p.exit(); code != 0 {
		return fmt.Errorf("%s ended with %s after SIGTERM: %s", filepath.Base(p.cmd.Path), p.cmd.ProcessState, p.out.tail())
	}
	return nil
}

// exit is the exit code of a process that has ended; -1 after a signal.
func (p *process) exit() int {
	<-p.done
	return p.cmd.ProcessState.ExitCode()
}

// await waits for the first match of a pattern in what the process prints.
func (p *process) await(ctx context.Context, pattern *regexp.Regexp) (string, error) {
	for {
		ended := p.ended()
		if found := p.out.find(pattern); found != "" {
			return found, nil
		}
		if ended {
			return "", fmt.Errorf("%s ended early (%s): %s", filepath.Base(p.cmd.Path), p.cmd.ProcessState, p.out.tail())
		}
		select {
		case <-p.out.bell:
		case <-p.done:
		case <-ctx.Done():
			return "", fmt.Errorf("%s did not print %s: %w; its last words: %s", filepath.Base(p.cmd.Path), pattern, ctx.Err(), p.out.tail())
		}
	}
}

// output is what a process prints: all of it in a file, and the first and the last of it in memory.
type output struct {
	file *os.File
	bell chan struct{}

	mu   sync.Mutex
	head bytes.Buffer
	last bytes.Buffer
	line []byte // the beginning of one whose end is still to come
	bad  int    // lines that tell of a defect
	told string // the first of them
}

const keptOutput = 16 << 10 // bytes

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, _ = o.file.Write(p) // a full disk must not stop the process that prints
	if room := keptOutput - o.head.Len(); room > 0 {
		o.head.Write(p[:min(room, len(p))])
	}
	o.last.Write(p)
	if over := o.last.Len() - keptOutput; over > 0 {
		o.last.Next(over)
	}
	o.read(p)
	select {
	case o.bell <- struct{}{}:
	default:
	}
	return len(p), nil
}

// find is what the last group of a pattern matches.
func (o *output) find(pattern *regexp.Regexp) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	found := pattern.FindSubmatch(o.head.Bytes())
	if found == nil {
		return ""
	}
	return string(found[len(found)-1])
}

// tail is the last lines, for a message: what is printed there comes from our own programs, which escape what users wrote.
func (o *output) tail() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	lines := strings.Split(strings.TrimSpace(o.last.String()), "\n")
	return strings.Join(lines[max(0, len(lines)-4):], " | ")
}
