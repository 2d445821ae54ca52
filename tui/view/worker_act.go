package view

import (
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/model"
)

// targetsOf are the items that an action is for: the marked ones, or the one under the cursor.
func targetsOf[T proto.Message](s *shelf[T]) []T {
	var list []T
	for _, id := range s.tab.Targets() {
		if item, ok := s.items.Get(id); ok {
			list = append(list, item)
		}
	}
	return list
}

// naming is some names in a sentence: "a", "a and b", "a, b and 4 more".
func naming(names []string) string {
	const most = 3
	switch n := len(names); {
	case n == 0:
		return ""
	case n == 1:
		return names[0]
	case n <= most:
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	default:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most-1], ", "), n-most+1)
	}
}

// workerActions take workers off: the targets that are not off already.
func (a *App) workerActions(targets func() []*kagziv1.Worker) []*Action {
	// act asks about the workers of which it holds; none is why it cannot be done to any.
	act := func(holds func(*kagziv1.Worker) bool, none string, do func(ids []string) model.Action, lines ...string) func([]string) error {
		return func([]string) error {
			var ids []string
			held := 0
			all := targets()
			for _, w := range all {
				if holds(w) {
					ids = append(ids, w.GetWorkerId())
					held += int(w.GetActiveWorkflowCount())
				}
			}
			switch {
			case len(all) == 0:
				return errNothingUnder
			case len(ids) == 0:
				return errors.New(none)
			}
			what := several(len(ids), "worker ", "workers: ") + naming(ids)
			holding := several(held, "It holds one run now.", "runs are held now.")
			if held == 0 {
				holding = "No run is held now."
			}
			a.confirm(deed{action: do(ids), what: what, lines: append([]string{holding}, lines...)})
			return nil
		}
	}
	return []*Action{
		{Name: "drain", Keys: []string{"x"}, Help: "let workers end what they hold, take nothing new, and go", Group: GroupAct, Changes: true, Hint: 3,
			Run: act(isOnline, "it is not online", func(ids []string) model.Action { return a.scope().Drain(ids) },
				"What is held may end; nothing new is handed out; then the process goes.")},
		{Name: "offline", Keys: []string{"X"}, Help: "take workers off at once, and hand their runs to others", Group: GroupAct, Changes: true, Hint: 4,
			Run: act(isThere, "it is offline already", func(ids []string) model.Action { return a.scope().ForceOffline(ids) },
				"Its leases end at once, and the runs are handed to others.", "A worker whose process lives registers again by itself.")},
	}
}

func isOnline(w *kagziv1.Worker) bool {
	return w.GetStatus() == kagziv1.WorkerStatus_WORKER_STATUS_ONLINE
}
