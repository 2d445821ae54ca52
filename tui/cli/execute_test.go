package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

func TestAn_interrupt_is_130(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := &session{server: &fake{fail: map[string]error{
		"ListWorkflows": status.Error(codes.Canceled, "context canceled")}}}
	if code := Execute(ctx, root(s.env()), []string{"wf", "list"}, strings.NewReader(""), discard{},
		discard{}); code != ExitInterrupted {
		t.Fatalf("exit code %d", code)
	}
}

func TestAn_interrupt_ends_a_command_that_waits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, interrupt := context.WithCancel(t.Context())
		still := func() (*kagziv1.WaitWorkflowResponse, error) { return &kagziv1.WaitWorkflowResponse{}, nil }
		gone := func() (*kagziv1.WaitWorkflowResponse, error) { interrupt(); return nil, unavailable }
		s := &session{server: &fake{waits: []func() (*kagziv1.WaitWorkflowResponse, error){still, gone}}}
		if code := Execute(ctx, root(s.env()), []string{"wf", "wait", "a"}, strings.NewReader(""), discard{},
			discard{}); code != ExitInterrupted {
			t.Fatalf("exit code %d", code)
		}
	})
}

func TestAn_interrupt_ends_reading_from_a_silent_terminal(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	silent, writer := io.Pipe()
	defer func() { _ = writer.Close() }()
	s := &session{server: &fake{}}
	e := s.env()
	e.streams = streamsOf
	asked := make(chan struct{})
	go func() { <-asked; interrupt() }()
	code := Execute(ctx, root(e), []string{"wf", "start", "a", "--input-file", "-"}, signalling{silent, asked},
		discard{}, discard{})
	if code != ExitInterrupted {
		t.Fatalf("exit code %d", code)
	}
}

// signalling signals when someone starts to read.
type signalling struct {
	io.Reader
	began chan struct{}
}

func (r signalling) Read(p []byte) (int, error) {
	close(r.began)
	return r.Reader.Read(p)
}

func TestErrors_of_other_packages_keep_their_exit_code(t *testing.T) {
	s := &session{server: &fake{}}
	cmd := root(s.env())
	cmd.AddCommand(&cobra.Command{Use: "server", RunE: func(*cobra.Command, []string) error {
		return fmt.Errorf("serve: %w", diskError{})
	}})
	if code := Execute(t.Context(), cmd, []string{"server"}, strings.NewReader(""), discard{}, discard{}); code != 70 {
		t.Fatalf("exit code %d, want 70", code)
	}
}

type diskError struct{}

func (diskError) Error() string { return "disk" }
func (diskError) ExitCode() int { return 70 }

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
