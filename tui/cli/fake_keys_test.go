package cli

import (
	"context"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

const secret = "kz_admin_0123456789abcdefghijkl_0123456789012345678901234567890123456789012_abcdef"

func (f *fake) WhoAmI(_ context.Context, r *kagziv1.WhoAmIRequest,
	_ ...grpc.CallOption) (*kagziv1.WhoAmIResponse, error) {
	if f.me == nil {
		return &kagziv1.WhoAmIResponse{}, f.note("WhoAmI", r)
	}
	return f.me, f.note("WhoAmI", r)
}

func (f *fake) CreateKey(_ context.Context, r *kagziv1.CreateKeyRequest,
	_ ...grpc.CallOption) (*kagziv1.CreateKeyResponse, error) {
	if err := f.note("CreateKey", r); err != nil {
		return nil, err
	}
	key := proto.CloneOf(r.Key)
	key.KeyId, key.CreatedAt = fmt.Sprintf("key-%d", len(f.keys)+1), at(0)
	f.keys = append(f.keys, key)
	return &kagziv1.CreateKeyResponse{Key: key, Secret: secret}, nil
}

func (f *fake) ListKeys(_ context.Context, r *kagziv1.ListKeysRequest,
	_ ...grpc.CallOption) (*kagziv1.ListKeysResponse, error) {
	if err := f.note("ListKeys", r); err != nil {
		return nil, err
	}
	keys, page, err := pageOf(f.keys, r.Page)
	return &kagziv1.ListKeysResponse{Keys: keys, Page: page}, err
}

func (f *fake) RevokeKey(_ context.Context, r *kagziv1.RevokeKeyRequest,
	_ ...grpc.CallOption) (*kagziv1.RevokeKeyResponse, error) {
	if err := f.note("RevokeKey", r); err != nil {
		return nil, err
	}
	for _, k := range f.keys {
		if k.KeyId == r.KeyId {
			k.RevokedAt = at(0)
			return &kagziv1.RevokeKeyResponse{Key: k}, nil
		}
	}
	return nil, status.Error(codes.NotFound, "no key "+r.KeyId)
}

func (f *fake) HealthCheck(_ context.Context, r *kagziv1.HealthCheckRequest,
	options ...grpc.CallOption) (*kagziv1.HealthCheckResponse, error) {
	for _, o := range options {
		if p, ok := o.(grpc.PeerCallOption); ok && f.tls != nil {
			*p.PeerAddr = peer.Peer{AuthInfo: credentials.TLSInfo{State: *f.tls}}
		}
	}
	if f.health != nil {
		return f.health, f.note("HealthCheck", r)
	}
	return &kagziv1.HealthCheckResponse{Status: kagziv1.ServingStatus_SERVING_STATUS_SERVING, Timestamp: at(0)},
		f.note("HealthCheck", r)
}

// sampleKeys returns a key of each interesting kind, newest first.
func sampleKeys() []*kagziv1.Key {
	return []*kagziv1.Key{
		{KeyId: "01936b2e-0000-7000-8000-0000000000a4", Name: "eyes", Role: kagziv1.KeyRole_KEY_ROLE_VIEWER,
			Namespaces: []string{"default"}, CreatedAt: at(-60 * 1e9), ExpiresAt: at(-1e9)},
		{KeyId: "01936b2e-0000-7000-8000-0000000000a3", Name: "shop", Role: kagziv1.KeyRole_KEY_ROLE_WORKER,
			Namespaces: []string{"shop", "crm"}, TaskQueues: []string{"orders*"}, WorkerIds: []string{"worker-002"},
			WorkflowTypes: []string{"order", "refund"}, CreatedAt: at(-3600 * 1e9), ExpiresAt: at(240 * 3600 * 1e9)},
		{KeyId: "01936b2e-0000-7000-8000-0000000000a2", Name: "old", Role: kagziv1.KeyRole_KEY_ROLE_ADMIN,
			CreatedAt: at(-7200 * 1e9), RevokedAt: at(-1800 * 1e9)},
		{KeyId: "01936b2e-0000-7000-8000-0000000000a1", Name: "ada", Role: kagziv1.KeyRole_KEY_ROLE_ADMIN,
			CreatedAt: at(-72 * 3600 * 1e9), LastUsedAt: at(-180 * 1e9)},
	}
}

// sampleAudit returns changes to keys and runs, newest first.
func sampleAudit() []*kagziv1.AuditEvent {
	return []*kagziv1.AuditEvent{
		{At: at(-60 * 1e9), Actor: "ada (01936b2e-0000-7000-8000-0000000000a1)", Peer: "10.0.0.7:5123",
			Method: "CancelWorkflow", Namespace: "default", Subject: "run",
			SubjectId: "01936b2e-0000-7000-8000-000000000009", Outcome: "ok", Reason: "wrong order"},
		{At: at(-7200 * 1e9), Actor: "eyes (01936b2e-0000-7000-8000-0000000000a4)", Peer: "10.0.0.8:5123",
			Method: "TerminateWorkflow", Namespace: "default", Outcome: "PERMISSION_DENIED"},
	}
}
