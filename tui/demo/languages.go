package demo

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	kagzi "github.com/kagzi/kagzi/sdk"
	"github.com/kagzi/kagzi/tui/child"
	"github.com/kagzi/kagzi/tui/render"
)

// The scene with three languages: a Go run, its Python child, and that one's TypeScript child.
const (
	claimType    = "claim"
	assessType   = "claim-assess" // as in languages/worker.py
	claimID      = "claim-1"
	claimQueue   = "demo-go"
	claimText    = "water came through the roof"
	claimLimit   = 1000
	limitSignal  = "limit"
	claimSteps   = 3
	lookForLimit = 10 * time.Second
)

var (
	//go:embed languages/worker.py
	pythonWorker []byte
	//go:embed languages/worker.mjs
	typescriptWorker []byte
)

// languages are the programs of the other languages, for which the packages of the SDKs are there.
type languages struct{ python, node string }

// findLanguages looks for Python and Node with the packages of the SDKs. The error says what is
// missing, and how to install it.
func findLanguages(ctx context.Context) (languages, error) {
	ctx, cancel := context.WithTimeout(ctx, lookForLimit)
	defer cancel()
	python, err := exec.LookPath("python3")
	if err != nil {
		return languages{}, errors.New("there is no python3 on the PATH")
	}
	node, err := exec.LookPath("node")
	if err != nil {
		return languages{}, errors.New("there is no node on the PATH")
	}
	probes := make(chan error, 2)
	go func() {
		if exec.CommandContext(ctx, python, "-c", "import kagzi; kagzi.Worker").Run() != nil {
			probes <- errors.New("python3 has no package kagzi; install it with: pip install ./sdk/python")
			return
		}
		probes <- nil
	}()
	go func() {
		if exec.CommandContext(ctx, node, "-e", "require.resolve('@kagzi/sdk')").Run() != nil {
			probes <- errors.New(
				"node finds no package @kagzi/sdk in this folder; sdk/typescript/README.md says how to install it")
			return
		}
		probes <- nil
	}()
	return languages{python, node}, errors.Join(<-probes, <-probes)
}

// hand is a worker of the scene with three languages: a process that can be killed and replaced.
type hand struct {
	name  string // of its workers, with a number
	start func(name string) (*child.Process, error)
	count int
}

// hands starts a worker of each language: Go, Python, TypeScript.
func (s *environment) startHands(ctx context.Context, l languages) error {
	script := func(program, file string, text []byte) func(string) (*child.Process, error) {
		path := filepath.Join(s.dir, file)
		return func(name string) (*child.Process, error) {
			if err := os.WriteFile(path, text, 0o600); err != nil {
				return nil, err
			}
			return child.Start(child.Spec{Program: program,
				Args: []string{path, s.server.Address, name, string(s.ledger)}})
		}
	}
	s.hands = []*hand{
		{name: "go", start: func(name string) (*child.Process, error) {
			return workerSpec{name: name, address: s.server.Address, post: post{queue: claimQueue},
				ledger: s.ledger}.start()
		}},
		{name: "python", start: script(l.python, "worker.py", pythonWorker)},
		{name: "typescript", start: script(l.node, "worker.mjs", typescriptWorker)},
	}
	for _, h := range s.hands {
		if err := s.startHand(h); err != nil {
			return err
		}
	}
	for _, h := range s.hands {
		if err := s.awaitHand(ctx, h); err != nil {
			return err
		}
	}
	return nil
}

func (h *hand) worker() string { return fmt.Sprintf("%s-%d", h.name, h.count) }

// startHand starts the next worker of a language.
func (s *environment) startHand(h *hand) error {
	h.count++
	p, err := h.start(h.worker())
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.workers[h.worker()] = p
	return nil
}

func (s *environment) awaitHand(ctx context.Context, h *hand) error {
	s.mu.Lock()
	p := s.workers[h.worker()]
	s.mu.Unlock()
	_, err := p.Await(ctx, func(line string) (string, bool) { return "", line == workerReady })
	if err != nil {
		return fmt.Errorf("%s: %w", h.worker(), err)
	}
	return nil
}

// assessment is the result of the Python run, with that of the TypeScript run in it.
type assessment struct {
	Label  string `json:"label"`
	Review struct {
		Label    string `json:"label"`
		Offer    int    `json:"offer"`
		Approved bool   `json:"approved"`
	} `json:"review"`
}

// claim starts a run in Python, sends it a signal and pays what it and its TypeScript child found.
func (a *author) claim(ctx kagzi.Context, text string) (string, error) {
	assess, err := kagzi.StartChild[assessment](ctx, "assess", assessType, text,
		kagzi.ChildOptions{Queue: "demo-python"})
	if err != nil {
		return "", err
	}
	runID := kagzi.Info(ctx).RunID
	_, err = do(a, ctx, "send-limit", func(ctx context.Context) (int, error) {
		if a.hasRun(runID, 1) {
			if err := pause(ctx, playLimit); err != nil { // it waits to be killed, however slow the machine is
				return 0, err
			}
		}
		return claimLimit, kagzi.Signal(ctx, a.client.Run(assess.RunID()), limitSignal, claimLimit,
			kagzi.SignalOptions{ID: "limit:" + runID})
	})
	if err != nil {
		return "", err
	}
	found, err := assess.Wait(ctx)
	if err != nil {
		return "", err
	}
	return do(a, ctx, "pay", func(context.Context) (string, error) {
		return fmt.Sprintf("%d paid for %s, approved: %t", found.Review.Offer, found.Label, found.Review.Approved), nil
	})
}

// threeLanguages starts the run and kills a worker of each language in the middle of a step.
func threeLanguages(ctx context.Context, p *player) (facts, error) {
	run, err := kagzi.Start(ctx, p.env.client, claimType, claimText,
		kagzi.StartOptions{Queue: claimQueue, ExternalID: claimID, Tags: demoTags(claimType)})
	if err != nil {
		return facts{}, fmt.Errorf("start: %w", err)
	}
	return p.follow(ctx, run, killEach)
}

func killEach(ctx context.Context, p *player, run *kagzi.Run, f *facts) error {
	s := p.env
	f.sdks = map[string]string{}
	assess, err := s.childOf(ctx, run.ID(), "assess")
	if err != nil {
		return err
	}
	victims := []struct{ run, step string }{{run.ID(), "send-limit"}, {assess, "model"}}
	for i, v := range victims { // both are at work at the same time
		if err := s.replace(ctx, p, s.hands[i], v.run, v.step, f); err != nil {
			return err
		}
	}
	review, err := s.childOf(ctx, assess, "review")
	if err != nil {
		return err
	}
	return s.replace(ctx, p, s.hands[2], review, "check", f)
}

// replace kills the worker that runs a step, and starts another.
func (s *environment) replace(ctx context.Context, p *player, h *hand, runID, step string, f *facts) error {
	victim, err := atWorkOn(ctx, s.ledger, runID, step)
	if err != nil {
		return err
	}
	if err := s.noteSDK(ctx, victim, f); err != nil {
		return err
	}
	if err := s.kill(victim); err != nil {
		return err
	}
	p.say(fmt.Sprintf("%s killed in step %s", victim, step))
	if err := s.startHand(h); err != nil {
		return err
	}
	if err := s.awaitHand(ctx, h); err != nil {
		return err
	}
	return s.noteSDK(ctx, h.worker(), f)
}

// noteSDK notes the language of a worker, and the version of its SDK, as the server knows them.
func (s *environment) noteSDK(ctx context.Context, worker string, f *facts) error {
	answer, err := s.api.GetWorker(ctx, &kagziv1.GetWorkerRequest{WorkerId: worker})
	if err != nil {
		return fmt.Errorf("worker %s: %w", worker, err)
	}
	f.sdks[worker] = render.SDK(answer.GetWorker())
	return nil
}

// childOf waits until a step has started a child, and returns the child's run id.
func (s *environment) childOf(ctx context.Context, runID, step string) (childID string, err error) {
	err = poll(ctx, askEvery, func() (bool, error) {
		steps, err := listSteps(ctx, s.api, runID)
		for _, one := range steps {
			if one.name == step {
				childID = one.childID
			}
		}
		return childID != "", err
	})
	if err != nil {
		return "", fmt.Errorf("wait for the child of step %s: %w", step, err)
	}
	return childID, nil
}
