package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// process is a subject that runs.
type process struct {
	cmd   *exec.Cmd
	out   *tail
	ended chan struct{}
	err   error // set before ended is closed
}

// startProcess starts the subject's command with more variables.
func startProcess(command []string, env map[string]string) (*process, error) {
	p := &process{cmd: exec.Command(command[0], command[1:]...), out: &tail{}, ended: make(chan struct{})}
	for _, pair := range os.Environ() {
		if !strings.HasPrefix(strings.ToUpper(pair), "KAGZI_") {
			p.cmd.Env = append(p.cmd.Env, pair)
		}
	}
	for name, value := range env {
		p.cmd.Env = append(p.cmd.Env, name+"="+value)
	}
	p.cmd.Stdout, p.cmd.Stderr = p.out, p.out // the same value: exec does not write to it concurrently
	p.cmd.WaitDelay = time.Second
	ownGroup(p.cmd)
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the subject: %w", err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

// kill ends the process and what it has started.
func (p *process) kill() {
	killGroup(p.cmd)
	<-p.ended
	killGroup(p.cmd) // children that it left
}

// stop asks the process to end, and kills it after a while.
func (p *process) stop(limit time.Duration) error {
	terminate(p.cmd)
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-p.ended:
		killGroup(p.cmd)
		return p.err
	case <-timer.C:
		p.kill()
		return fmt.Errorf("the subject did not end within %s after SIGTERM", limit)
	}
}

// over returns why the process has ended; nil while it runs.
func (p *process) over() error {
	select {
	case <-p.ended:
		return fmt.Errorf("the subject ended unexpectedly: %w", errors.Join(p.err, errors.New(p.out.String())))
	default:
		return nil
	}
}

// tail keeps the end of what a process prints.
type tail struct {
	mu   sync.Mutex
	data []byte
}

const maxTail = 4 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.data = append(t.data, p...)
	if n := len(t.data) - maxTail; n > 0 {
		t.data = append(t.data[:0], t.data[n:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.ToValidUTF8(string(bytes.TrimSpace(t.data)), "\uFFFD")
}

// ready waits until a worker that was started is registered.
func ready(ctx context.Context, h *host, ended func() error, limit time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no worker registered within %s", limit))
	defer cancel()
	return await(ctx, func() (bool, error) {
		if err := ended(); err != nil {
			return false, err
		}
		workers, err := h.workers(ctx)
		return err == nil && len(workers) > 0, nil
	}, h.changes)
}
