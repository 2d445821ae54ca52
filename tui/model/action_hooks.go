package model

import (
	"context"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui"
	"github.com/kagzi/kagzi/tui/render"
)

// CreateHook creates a hook. A secret that the server makes is in the Outcome, and nowhere else; one of
// the request's is not on the command line, which reads it from stdin.
func (s Scope) CreateHook(request *kagziv1.CreateHookRequest) Action {
	request = proto.CloneOf(request)
	request.Namespace = s.namespace()
	flags := []flag{{name: "type", value: request.GetWorkflowType()}}
	flags = append(flags, textFlag("queue", request.GetTaskQueue())...)
	if request.GetSignature() != kagziv1.HookSignature_HOOK_SIGNATURE_UNSPECIFIED {
		flags = append(flags, flag{name: "hmac", value: render.HookSignature(request.GetSignature())})
	}
	return s.newAction(Action{
		Name: "create hook", Targets: []string{request.GetName()}, command: []string{"hook", "create"},
		flags: append(flags, secretFlag(request.GetSecret())...), alone: true,
		do: func(ctx context.Context, api tui.API, _, _ string) (Outcome, error) {
			answer, err := api.CreateHook(ctx, request)
			return ofHook("created", answer.GetHook(), answer.GetSecret(), request.GetSecret()), err
		},
	})
}

// RotateHook gives a hook a new secret; the one before stays valid for the overlap. The secret is as in
// CreateHook.
func (s Scope) RotateHook(name, secret string, overlap time.Duration) Action {
	flags := []flag{{name: "overlap", value: overlap.String()}}
	return s.newAction(Action{
		Name: "rotate hook", Targets: []string{name}, command: []string{"hook", "rotate"},
		flags: append(flags, secretFlag(secret)...), alone: true,
		do: func(ctx context.Context, api tui.API, name, _ string) (Outcome, error) {
			answer, err := api.RotateHook(ctx, &kagziv1.RotateHookRequest{Namespace: s.namespace(), Name: name,
				Secret: secret, Overlap: durationpb.New(overlap)})
			return ofHook("rotated", answer.GetHook(), answer.GetSecret(), secret), err
		},
	})
}

// DeleteHooks deletes hooks, by name, and keeps the runs that they started.
func (s Scope) DeleteHooks(names []string) Action {
	return s.newAction(Action{
		Name: "delete hook", Danger: true, Targets: names, command: []string{"hook", "delete"}, alone: true,
		flags: []flag{{name: "yes", bare: true}},
		do: func(ctx context.Context, api tui.API, name, _ string) (Outcome, error) {
			_, err := api.DeleteHook(ctx, &kagziv1.DeleteHookRequest{Namespace: s.namespace(), Name: name})
			return Outcome{Text: "deleted"}, err
		},
	})
}

// secretFlag returns the flag that reads a given secret from stdin.
func secretFlag(secret string) []flag {
	if secret == "" {
		return nil
	}
	return []flag{{name: "secret-file", value: "-"}}
}

// ofHook returns the outcome of a hook's new secret; one that was given is not shown.
func ofHook(text string, hook *kagziv1.Hook, secret, given string) Outcome {
	if given != "" {
		secret = ""
	}
	return Outcome{Text: text, ID: hook.GetPath(), Secret: secret}
}
