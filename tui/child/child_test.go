package child

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

// TestMain lets this test binary serve as the binary that children are started from.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == commandName {
		root := &cobra.Command{Use: "test", SilenceErrors: true, SilenceUsage: true}
		root.AddCommand(Command(), play(), parent())
		if err := root.Execute(); err != nil {
			fmt.Println("error:", err)
			os.Exit(3)
		}
		return
	}
	os.Exit(m.Run())
}

// play is the command that children run in these tests.
func play() *cobra.Command {
	var endless bool
	var mark string
	cmd := &cobra.Command{
		Use: "play",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return errors.New(args[0])
			}
			fmt.Printf("setting %q, other %q\n", os.Getenv("KAGZI_LISTEN"), os.Getenv("CHILD_TEST"))
			fmt.Println("ready")
			<-cmd.Context().Done()
			if endless {
				select {}
			}
			if mark != "" {
				return os.WriteFile(mark, []byte("stopped"), 0o600)
			}
			fmt.Println("stopped in good order")
			return nil
		},
	}
	cmd.Flags().StringVar(&mark, "mark", "", "file to write when stopped")
	cmd.Flags().BoolVar(&endless, "endless", false, "do not stop")
	return cmd
}

// parent starts its own child, which leaves a mark when it stops, and waits to be killed.
func parent() *cobra.Command {
	return &cobra.Command{
		Use:  "parent MARK",
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			p, err := Start(Spec{Args: []string{"play", "--mark", args[0]}})
			if err != nil {
				return err
			}
			if _, err := p.Await(context.Background(), func(line string) (string, bool) {
				return "", line == "ready"
			}); err != nil {
				return err
			}
			fmt.Println("child is ready")
			<-p.Done()
			return nil
		},
	}
}

func start(t *testing.T, spec Spec) *Process {
	t.Helper()
	p, err := Start(spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p
}

func await(t *testing.T, p *Process, text string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	line, err := p.Await(ctx, func(line string) (string, bool) { return line, strings.Contains(line, text) })
	if err != nil {
		t.Fatal(err)
	}
	return line
}

func TestAChildStopsGracefully(t *testing.T) {
	p := start(t, Spec{Args: []string{"play"}})
	await(t, p, "ready")
	if err := p.Stop(30 * time.Second); err != nil {
		t.Errorf("Stop: %v", err)
	}
	if got := p.Tail(1); len(got) != 1 || got[0] != "stopped in good order" {
		t.Errorf("last line %q", got)
	}
	if err := p.Stop(0); err != nil {
		t.Errorf("second Stop: %v", err)
	}
}

func TestAChildThatDoesNotStopIsKilled(t *testing.T) {
	p := start(t, Spec{Args: []string{"play", "--endless"}})
	await(t, p, "ready")
	if err := p.Stop(time.Millisecond); err == nil || !strings.Contains(err.Error(), "was killed") {
		t.Errorf("Stop = %v, want an error that says it was killed", err)
	}
}

func TestAChildSeesNoneOfTheParentsSettings(t *testing.T) {
	t.Setenv("KAGZI_LISTEN", "parent")
	t.Setenv("CHILD_TEST", "parent")
	if line := await(t, start(t, Spec{Args: []string{"play"}}), "setting"); line != `setting "", other "parent"` {
		t.Errorf("without an own setting: %s", line)
	}
	if line := await(t, start(t, Spec{Args: []string{"play"}, Env: []string{"KAGZI_LISTEN=own"}}),
		"setting"); line != `setting "own", other "parent"` {
		t.Errorf("with an own setting: %s", line)
	}
}

func TestTheErrorOfAnEarlyExitHasTheLastOutput(t *testing.T) {
	p := start(t, Spec{Args: []string{"play", "no such luck"}})
	_, err := p.Await(t.Context(), func(string) (string, bool) { return "", false })
	if err == nil || !strings.Contains(err.Error(), "no such luck") || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("Await = %v", err)
	}
	if err := p.Stop(time.Second); err == nil {
		t.Error("Stop of a child that failed is no error")
	}
}

func TestAwaitEndsWithItsContext(t *testing.T) {
	p := start(t, Spec{Args: []string{"play"}})
	await(t, p, "ready")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Await(ctx, func(string) (string, bool) { return "", false }); !errors.Is(err, context.Canceled) {
		t.Errorf("Await = %v, want %v", err, context.Canceled)
	}
}

func TestAChildDoesNotOutliveAParentThatIsKilled(t *testing.T) {
	mark := filepath.Join(t.TempDir(), "mark")
	p := start(t, Spec{Args: []string{"parent", mark}})
	await(t, p, "child is ready")
	p.Kill()
	limit := time.After(30 * time.Second)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		if data, err := os.ReadFile(mark); err == nil && string(data) == "stopped" {
			return
		}
		select {
		case <-tick.C:
		case <-limit:
			t.Fatal("the child has not stopped")
		}
	}
}

func TestACommandOfTheShellIsStoppedBySIGTERM(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there is no SIGTERM")
	}
	for name, command := range map[string]string{
		"and ends by itself": `trap 'echo stopped in good order; exit 0' TERM; echo "setting $KAGZI_LISTEN"; while :; do sleep 0.01; done`,
		"and does not":       `echo "setting $KAGZI_LISTEN"; while :; do sleep 0.01; done`,
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, Spec{Shell: command, Env: []string{"KAGZI_LISTEN=here"}})
			await(t, p, "setting here")
			if err := p.Stop(30 * time.Second); err != nil {
				t.Errorf("stop: %v", err)
			}
			if said := strings.Join(p.Tail(2), "|"); strings.Contains(command, "trap") != strings.Contains(said, "good order") {
				t.Errorf("it said %q", said)
			}
		})
	}
	p := start(t, Spec{Shell: "echo on my way; exit 3"})
	<-p.Done()
	if err := p.Stop(time.Second); err == nil || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("a command that failed: %v", err)
	}
}

func TestTheJournalKeepsTheLastLinesAndCutsLongOnes(t *testing.T) {
	j := newJournal(nil)
	for n := range keptLines + 10 {
		fmt.Fprintf(j, "line %d\r\n", n)
	}
	lines, next := j.since(0)
	if len(lines) != keptLines || lines[0] != "line 10" || next != keptLines+10 {
		t.Errorf("%d lines from %q, next %d", len(lines), lines[0], next)
	}
	_, _ = j.Write([]byte("half"))
	if lines, _ := j.since(next); len(lines) != 0 {
		t.Errorf("a line that has not ended was read: %q", lines)
	}
	_, _ = j.Write([]byte(" whole\n" + strings.Repeat("x", 2*longLine) + "\n"))
	lines, _ = j.since(next)
	if len(lines) != 2 || lines[0] != "half whole" || len(lines[1]) != longLine+len(cutLineEnd) {
		t.Errorf("%d lines, first %q", len(lines), lines[0])
	}
}
