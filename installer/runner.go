//go:build unix

package installer

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"
)

// runner runs a command of the system and returns its output. The error holds what the command said.
type runner func(ctx context.Context, name string, args ...string) (string, error)

func runCommand(ctx context.Context, name string, args ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("%s %s: %w%s", name, strings.Join(args, " "), err, oneLine(stderr.String()))
	}
	return stdout.String(), nil
}

// stream runs a command whose output goes to w, until it or ctx ends; the latter is no error.
func stream(ctx context.Context, w io.Writer, name string, args ...string) error {
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = w, &stderr
	if err := cmd.Run(); err != nil && ctx.Err() == nil {
		return fmt.Errorf("%s: %w%s", name, err, oneLine(stderr.String()))
	}
	return nil
}

// oneLine is what a command said, to stand at the end of an error.
func oneLine(said string) string {
	if said = strings.TrimSpace(said); said == "" {
		return ""
	}
	return ": " + strings.ReplaceAll(said, "\n", "; ")
}
