package conformance

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/kagzi/kagzi/engine/conformance/program"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// inOrder checks that the code of a run got the results in the order in which they are recorded.
func (m member) inOrder() error {
	if m.run.Output == nil || m.run.GetStatus() != kagziv1.WorkflowStatus_WORKFLOW_STATUS_COMPLETED {
		return nil
	}
	var out program.Result
	if err := json.Unmarshal(m.run.GetOutput().GetData(), &out); err != nil {
		return fmt.Errorf("the output is not that of a program: %w", err)
	}
	settled, seen := map[string]int64{}, map[string]bool{}
	for _, s := range m.rows {
		if settled[s.GetName()] = s.GetSettled(); seen[strconv.FormatInt(s.GetSettled(), 10)] && s.GetSettled() > 0 {
			return fmt.Errorf("two rows have the place %d in the order of results", s.GetSettled())
		}
		seen[strconv.FormatInt(s.GetSettled(), 10)] = true
	}
	uses := map[string]int{}
	var names []string
	for _, e := range out.Trace {
		var label string
		if json.Unmarshal(e[0], &label) != nil {
			return fmt.Errorf("the trace has the label %s", e[0])
		}
		if label == "first" || label == "wait_all" {
			continue
		}
		if strings.Contains(label, ":") { // its rows cannot be told from those of repeated names
			return nil
		}
		name := label
		if uses[label]++; uses[label] > 1 {
			name += ":" + strconv.Itoa(uses[label])
		}
		if _, ok := settled[name]; !ok {
			if _, refused := settled["kagzi:ended"]; refused { // a child that was refused has no row
				continue
			}
			return fmt.Errorf("the code got a result of %s, which has no row", name)
		}
		names = append(names, name)
	}
	inTurn := slices.Clone(names)
	slices.SortStableFunc(inTurn, func(a, b string) int { return cmp.Compare(settled[a], settled[b]) })
	for i := range names {
		if names[i] != inTurn[i] {
			return fmt.Errorf("the code got the result of %s (place %d) as number %d, and %s (place %d) later",
				names[i], settled[names[i]], i+1, inTurn[i], settled[inTurn[i]])
		}
	}
	return nil
}
