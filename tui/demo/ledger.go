package demo

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// ledger is a directory with one file per run, to which each execution of a step appends a line. It
// is outside of Kagzi, like the systems that real steps act on, so it shows whether a step ran
// twice.
type ledger string

// execution is one start of a step's code.
type execution struct {
	Step   string
	Worker string
	PID    int
}

func (l ledger) file(runID string) string { return filepath.Join(string(l), runID+".ledger") }

// add appends a line in one write, so that lines of parallel steps do not mix.
func (l ledger) add(runID string, e execution) error {
	f, err := os.OpenFile(l.file(runID), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	_, err = fmt.Fprintf(f, "%s %s %d\n", e.Step, e.Worker, e.PID)
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	return nil
}

// read returns the executions of a run's steps in the order in which they started; none if there
// are none.
func (l ledger) read(runID string) ([]execution, error) {
	data, err := os.ReadFile(l.file(runID))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	var all []execution
	for line := range strings.Lines(string(data)) {
		if !strings.HasSuffix(line, "\n") {
			break // being written
		}
		var e execution
		if _, err := fmt.Sscan(line, &e.Step, &e.Worker, &e.PID); err != nil {
			return nil, fmt.Errorf("ledger: line %q: %w", line, err)
		}
		all = append(all, e)
	}
	return all, nil
}
