package model

import (
	"context"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui"
	"github.com/kagzi/kagzi/tui/render"
)

// UpdateNamespace changes what the request names of a namespace; old is the namespace as it is.
func (s Scope) UpdateNamespace(old *kagziv1.Namespace, request *kagziv1.UpdateNamespaceRequest) Action {
	request = proto.CloneOf(request)
	request.Namespace = old.GetNamespace()
	flags := optionalFlag("display-name", request.DisplayName)
	flags = append(flags, optionalFlag("description", request.Description)...)
	if request.Retention != nil {
		flags = append(flags, flag{name: "retention", value: keptFor(request.GetRetention())})
	}
	if request.Keep != nil {
		flags = append(flags, keepChanges(old.GetKeep(), request.GetKeep().GetKeep())...)
	}
	flags = append(flags, optionalFlag("failure-queue", request.FailureTaskQueue)...)
	flags = append(flags, reasonFlag(request.GetReason())...)
	return s.newAction(Action{
		Name: "update namespace", Targets: []string{old.GetNamespace()}, command: []string{"namespace", "update"},
		flags: flags, alone: true,
		do: func(ctx context.Context, api tui.API, _, _ string) (Outcome, error) {
			answer, err := api.UpdateNamespace(ctx, request)
			return Outcome{Text: "changed", ID: answer.GetNamespace().GetNamespace()}, err
		},
	})
}

// keptFor is a retention as the command line takes it; none is the server's.
func keptFor(d *durationpb.Duration) string {
	if d.AsDuration() == 0 {
		return "default"
	}
	return render.Days(d.AsDuration())
}

// keepChanges say how retentions by outcome become others.
func keepChanges(old, keep map[string]*durationpb.Duration) []flag {
	outcomes := maps.Clone(old)
	if outcomes == nil {
		outcomes = map[string]*durationpb.Duration{}
	}
	maps.Copy(outcomes, keep)
	var flags []flag
	for _, outcome := range slices.Sorted(maps.Keys(outcomes)) {
		if old[outcome].AsDuration() != keep[outcome].AsDuration() {
			flags = append(flags, flag{name: "keep", value: outcome + "=" + keptFor(keep[outcome])})
		}
	}
	return flags
}
