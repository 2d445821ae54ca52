package conformance

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kagzi/kagzi/backends/memory"
	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/conformance/subject"
)

var (
	seeds    = flag.Uint64("conformance.seeds", 18, "how many random programs are tried")
	sections = flag.String("conformance.sections", "", "only cases of these paragraphs")
	named    = flag.String("conformance.case", "", "only cases with this in their name")
	from     = flag.Uint64("conformance.from", 1, "the seed of the first")
)

// TestMain lets the test binary be a subject.
func TestMain(m *testing.M) {
	if os.Getenv("KAGZI_CONFORMANCE_GATE") == "" {
		os.Exit(m.Run())
	}
	err := error(nil)
	switch {
	case len(os.Args) == 1:
		err = subject.Run(context.Background(), os.Getenv)
	case os.Args[1] == idles:
		err = idle()
	default:
		err = subject.Run(context.Background(), os.Getenv, spoiled(os.Args[1])...)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func inMemory(changed func()) func() engine.Store {
	d := memory.New(memory.Options{Endings: true, Wrote: changed})
	return func() engine.Store { return d.Open(nil) }
}

// goSubject returns the command of the subject: this test binary, perhaps with how it fails.
func goSubject(t *testing.T, how ...string) []string {
	t.Helper()
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return append([]string{own}, how...)
}

func TestRandomProgramsOnTheGoSDK(t *testing.T) {
	began := time.Now()
	err := runRandom(t.Context(), randomOptions{stores: inMemory, command: goSubject(t), from: *from, n: *seeds,
		modes: modes,
		progress: func(f Finding) {
			if f.Failure != "" {
				t.Errorf("seed %d, %s: %s", f.Seed, f.Case, f.Failure)
			}
			t.Logf("%s seed %d %s", time.Since(began).Round(time.Millisecond), f.Seed, f.Case)
		}})
	if err != nil {
		t.Fatal(err)
	}
}

func TestTheGoSDKConforms(t *testing.T) {
	n := map[string]int{}
	var skip []string
	if testing.Short() {
		skip = []string{"28"} // takes 40 s
	}
	err := Run(t.Context(), Options{Stores: inMemory, Command: goSubject(t), Only: only(), Skip: skip, Case: *named,
		Report: func(f Finding) {
			n[f.name()]++
			if f.Failure != "" {
				t.Errorf("§%s %s: %s", f.Section, f.Case, f.Failure)
			} else if testing.Verbose() {
				t.Logf("§%s %s: %d ms", f.Section, f.Case, f.Millis)
			}
		}})
	if err != nil {
		t.Fatal(err)
	}
	for name, times := range n {
		if times > 1 {
			t.Errorf("two cases are called %q", name)
		}
	}
	if *named == "" && *sections == "" && len(n) < 150 {
		t.Errorf("there are %d fixed cases, want at least 150", len(n))
	}
	t.Logf("%d cases", len(n))
}

func only() []string {
	if *sections == "" {
		return nil
	}
	return strings.Split(*sections, ",")
}

func TestCasesThatUseASkippedSectionAreLeftOut(t *testing.T) {
	var mu sync.Mutex
	ran := map[string]bool{}
	err := Run(t.Context(), Options{Stores: inMemory, Command: goSubject(t), Only: []string{"6.3", "15.5"}, Skip: []string{"19"},
		Report: func(f Finding) {
			mu.Lock()
			defer mu.Unlock()
			ran[f.name()] = true
		}})
	if err != nil {
		t.Fatal(err)
	}
	if !ran["6.3 sleep is repeated after INTERNAL"] {
		t.Errorf("a case of what is claimed did not run: %v", ran)
	}
	for name := range ran {
		if strings.Contains(name, "child") {
			t.Errorf("%s ran, which uses section 19", name)
		}
	}
}
