package e2e

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	_ "google.golang.org/grpc/encoding/gzip" // the program registers it through the trace exporter
	"google.golang.org/grpc/status"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// kept returns the memory that stays in use.
func kept() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}

// atShare returns a percentile of durations.
func atShare(lengths []time.Duration, share float64) time.Duration {
	sorted := slices.Sorted(slices.Values(lengths))
	return sorted[int(share*float64(len(sorted)-1))]
}

// neighbourVariable makes TestNeighbour a client process: the number of an abuse, or busy, and the
// server's address.
const neighbourVariable = "KAGZI_TEST_NEIGHBOUR"

// busy is not an abuse but a client that calls as fast as it can: an abuser may cost others as much
// as it does.
const busy = -1

// TestNeighbour is a process of TestAbusersAreBoundedAndOthersAreServed. It keeps its connection
// until its input ends.
func TestNeighbour(t *testing.T) {
	number, address, _ := strings.Cut(os.Getenv(neighbourVariable), " ")
	if address == "" {
		t.Skip("the test of abusers starts it")
	}
	i, err := strconv.Atoi(number)
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Address: address, tb: t}
	if i == busy {
		s.askMuch(t)
	} else {
		abuses[i].do(s, s.attack(t))
	}
	fmt.Println(neighbourIsDone)
	io.Copy(io.Discard, os.Stdin)
}

const neighbourIsDone = "it is over"

// askMuch reads a missing run for a while, with twenty calls at a time.
func (s *Server) askMuch(t *testing.T) {
	workflows := kagziv1.NewWorkflowServiceClient(s.Dial())
	over := time.Now().Add(100 * time.Millisecond)
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			for time.Now().Before(over) {
				if _, err := workflows.GetWorkflow(t.Context(),
					&kagziv1.GetWorkflowRequest{RunId: nobody}); status.Code(err) != codes.NotFound {
					t.Errorf("a busy client is answered with %v", err)
					return
				}
			}
		})
	}
	group.Wait()
}

// neighbour is a separate process, so that its own work is not measured as the server's.
type neighbour struct {
	cmd   *exec.Cmd
	stdin io.Closer
	out   *bufio.Reader
}

func (s *Server) neighbour(t *testing.T, i int) *neighbour {
	t.Helper()
	b := &neighbour{cmd: exec.Command(os.Args[0], "-test.run=^TestNeighbour$",
		fmt.Sprintf("-test.short=%t", testing.Short()), fmt.Sprintf("-abuse.pace=%d", *abusePace))}
	b.cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d %s", neighbourVariable, i, s.Address))
	b.out = bufio.NewReader(fine(b.cmd.StdoutPipe())(t))
	b.stdin = fine(b.cmd.StdinPipe())(t)
	if err := b.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.cmd.Process.Kill() })
	return b
}

// wait blocks until the neighbour is done or has ended, and returns what it printed.
func (b *neighbour) wait() (said string, done bool) {
	for {
		line, err := b.out.ReadString('\n')
		if strings.TrimSpace(line) == neighbourIsDone {
			return said, true
		}
		if said += line; err != nil {
			return said, false
		}
	}
}

// end closes the neighbour's connection.
func (b *neighbour) end() (said string, err error) {
	b.stdin.Close()
	rest, _ := io.ReadAll(b.out)
	return string(rest), b.cmd.Wait()
}
