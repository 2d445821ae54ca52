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

// UpdateNamespace changes the fields that the request sets; old is the current namespace.
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

// keptFor writes a retention for the command line; nil is the server's setting.
func keptFor(d *durationpb.Duration) string {
	if d.AsDuration() == 0 {
		return "default"
	}
	return render.Days(d.AsDuration())
}

// keepChanges returns the flags that turn retentions by outcome into others.
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
