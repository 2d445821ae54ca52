package cli

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

const hookSecretText = "kzh_0123456789012345678901234567890123456789012"

func sampleHook(name string) *kagziv1.Hook {
	return &kagziv1.Hook{HookId: "h-1", Namespace: "default", Name: name, TaskQueue: "ci", WorkflowType: "build",
		Signature: kagziv1.HookSignature_HOOK_SIGNATURE_GITHUB, Path: "/hooks/h-1", CreatedAt: at(-time.Hour)}
}

func (f *fake) CreateHook(_ context.Context, r *kagziv1.CreateHookRequest,
	_ ...grpc.CallOption) (*kagziv1.CreateHookResponse, error) {
	return &kagziv1.CreateHookResponse{Hook: sampleHook(r.GetName()), Secret: hookSecretText}, f.note("CreateHook", r)
}

func (f *fake) GetHook(_ context.Context, r *kagziv1.GetHookRequest,
	_ ...grpc.CallOption) (*kagziv1.GetHookResponse, error) {
	if err := f.note("GetHook", r); err != nil {
		return nil, err
	}
	if r.GetName() != "gh" {
		return nil, status.Error(codes.NotFound, "no hook "+r.GetName())
	}
	return &kagziv1.GetHookResponse{Hook: sampleHook("gh")}, nil
}

func (f *fake) ListHooks(_ context.Context, r *kagziv1.ListHooksRequest,
	_ ...grpc.CallOption) (*kagziv1.ListHooksResponse, error) {
	if err := f.note("ListHooks", r); err != nil {
		return nil, err
	}
	hooks, page, err := pageOf([]*kagziv1.Hook{sampleHook("gh"), sampleHook("\x1b[31mevil")}, r.Page)
	return &kagziv1.ListHooksResponse{Hooks: hooks, Page: page}, err
}

func (f *fake) RotateHook(_ context.Context, r *kagziv1.RotateHookRequest,
	_ ...grpc.CallOption) (*kagziv1.RotateHookResponse, error) {
	h := sampleHook(r.GetName())
	h.RotatedAt, h.OldSecretUntil = at(0), at(r.GetOverlap().AsDuration())
	return &kagziv1.RotateHookResponse{Hook: h, Secret: hookSecretText}, f.note("RotateHook", r)
}

func (f *fake) DeleteHook(_ context.Context, r *kagziv1.DeleteHookRequest,
	_ ...grpc.CallOption) (*kagziv1.DeleteHookResponse, error) {
	return &kagziv1.DeleteHookResponse{}, f.note("DeleteHook", r)
}

// serving is a server that listens for HTTP on an address.
func serving(address string) *fake {
	return &fake{info: &kagziv1.GetServerInfoResponse{Facts: []*kagziv1.ServerFact{
		{Section: "settings", Name: "http", Value: address}}}}
}

func TestHook_create(t *testing.T) {
	t.Run("prints URL and secret on stdout, and the secret once", func(t *testing.T) {
		s := &session{server: serving("127.0.0.1:50052")}
		out, msg := s.want(t, ExitOK, "hook", "create", "gh", "--queue", "ci", "--type", "build", "--hmac", "stripe")
		if out != "url     http://127.0.0.1:50052/hooks/h-1\nsecret  "+hookSecretText+"\n" ||
			strings.Contains(msg, hookSecretText) || !strings.Contains(msg, "only time") {
			t.Errorf("stdout %q, stderr %q", out, msg)
		}
		want := &kagziv1.CreateHookRequest{Namespace: "default", Name: "gh", TaskQueue: "ci", WorkflowType: "build",
			Signature: kagziv1.HookSignature_HOOK_SIGNATURE_STRIPE}
		if diff := cmp.Diff(want, s.server.requests[0], protocmp.Transform()); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("reads a secret of the sender and does not print it", func(t *testing.T) {
		const mine = "whsec_0123456789abcdef"
		file := filepath.Join(t.TempDir(), "secret")
		if err := os.WriteFile(file, []byte(mine+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		for name, s := range map[string]*session{
			file: {server: serving("off")}, "-": {server: serving("off"), stdin: mine + "\n"}} {
			out, msg := s.want(t, ExitOK, "hook", "create", "gh", "--type", "build", "--secret-file", name)
			got := s.server.requests[0].(*kagziv1.CreateHookRequest).GetSecret()
			if got != mine || out != "url     /hooks/h-1\n" || strings.Contains(out+msg, "secret ") || strings.Contains(out+msg, mine) {
				t.Errorf("%s: secret %q, stdout %q, stderr %q", name, got, out, msg)
			}
		}
	})
	t.Run("prints the public address that is given", func(t *testing.T) {
		s := &session{server: &fake{}}
		out, _ := s.want(t, ExitOK, "hook", "show", "gh", "--url", "https://kagzi.example/")
		if !strings.Contains(out, "https://kagzi.example/hooks/h-1") {
			t.Errorf("stdout %q", out)
		}
	})
	for name, args := range map[string][]string{
		"needs a type":              {"gh"},
		"refuses unknown words":     {"gh", "--type", "t", "--hmac", "sha1"},
		"refuses a URL that is one": {"gh", "--type", "t", "--url", "kagzi.example"},
		"refuses an empty secret":   {"gh", "--type", "t", "--secret-file", os.DevNull},
		"refuses a missing file":    {"gh", "--type", "t", "--secret-file", "/nowhere/at/all"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &session{server: &fake{}}
			s.want(t, ExitUsage, append([]string{"hook", "create"}, args...)...)
			if len(s.server.requests) > 0 {
				t.Errorf("the server was asked for %v", s.server.requests)
			}
		})
	}
}

func TestHook_url_of_a_server_for_other_machines(t *testing.T) {
	for address, want := range map[string]string{
		"0.0.0.0:50052": "http://localhost:50052/hooks/h-1", "[::]:50052": "http://localhost:50052/hooks/h-1",
		"192.0.2.1:50052": "http://192.0.2.1:50052/hooks/h-1", "[::1]:50052": "http://[::1]:50052/hooks/h-1",
		"off": "/hooks/h-1",
	} {
		s := &session{server: serving(address)}
		out, _ := s.want(t, ExitOK, "hook", "show", "gh", "--address", "localhost:50051")
		if !strings.Contains(out, want+"\n") {
			t.Errorf("%s: %q, want %s", address, out, want)
		}
	}
	f := serving("192.0.2.1:50052")
	for name, value := range map[string]string{"tls-cert": "server.crt", "http-base-path": "/kagzi"} {
		f.info.Facts = append(f.info.Facts, &kagziv1.ServerFact{Section: "settings", Name: name, Value: value})
	}
	out, _ := (&session{server: f}).want(t, ExitOK, "hook", "show", "gh")
	if !strings.Contains(out, "https://192.0.2.1:50052/kagzi/hooks/h-1\n") {
		t.Errorf("with TLS below a path: %q", out)
	}
}

func TestHook_list_shows_names_as_text(t *testing.T) {
	s := &session{server: &fake{}}
	out, _ := s.want(t, ExitOK, "hook", "list")
	if !strings.Contains(out, "github") || strings.Contains(out, "\x1b") || !strings.Contains(out, "evil") {
		t.Errorf("stdout %q", out)
	}
}

func TestHook_rotate(t *testing.T) {
	for _, c := range []struct {
		args []string
		want time.Duration
	}{{nil, 24 * time.Hour}, {[]string{"--overlap", "0"}, 0}, {[]string{"--overlap", "7d"}, 168 * time.Hour}} {
		s := &session{server: serving("off")}
		out, msg := s.want(t, ExitOK, append([]string{"hook", "rotate", "gh"}, c.args...)...)
		want := &kagziv1.RotateHookRequest{Namespace: "default", Name: "gh", Overlap: durationpb.New(c.want)}
		if diff := cmp.Diff(want, s.server.requests[0], protocmp.Transform()); diff != "" {
			t.Error(diff)
		}
		if !strings.Contains(out, hookSecretText) || strings.Contains(msg, hookSecretText) || !strings.Contains(msg, "valid") {
			t.Errorf("stdout %q, stderr %q", out, msg)
		}
	}
}

func TestHook_delete_asks_unless_told_not_to(t *testing.T) {
	s := &session{server: &fake{}}
	s.want(t, ExitUsage, "hook", "delete", "gh") // no terminal
	if len(s.server.requests) > 0 {
		t.Errorf("it asked for %v", s.server.requests)
	}
	if out, _ := s.want(t, ExitOK, "hook", "delete", "gh", "-y"); out != "deleted  gh\n" {
		t.Errorf("stdout %q", out)
	}
}
