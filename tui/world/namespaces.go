package world

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

func (w *World) addNamespace(n *kagziv1.Namespace, at time.Time) {
	var digest uint64
	for _, c := range []byte(n.Namespace) {
		digest = mix(digest, uint64(c))
	}
	n.Id, n.CreatedAt, n.UpdatedAt = idAt(digest&(1<<60-1), mix(digest)), stamp(at), stamp(at)
	w.namespaces[n.Namespace] = n
	w.namespacesChanged()
}

// useNamespace makes a namespace that comes into being by being used.
func (w *World) useNamespace(name string) {
	if w.namespaces[name] == nil {
		w.addNamespace(&kagziv1.Namespace{Namespace: name, Enabled: true}, w.now)
	}
}

// enabled refuses what a disabled namespace does not allow.
func (w *World) enabled(name string) error {
	if n := w.namespaces[name]; n != nil && !n.Enabled {
		return namespaceDisabled(name)
	}
	return nil
}

// CreateNamespace makes a namespace that nothing has used yet.
func (w *World) CreateNamespace(ctx context.Context, request *kagziv1.CreateNamespaceRequest, _ ...grpc.CallOption) (*kagziv1.CreateNamespaceResponse, error) {
	return call(w, ctx, "NamespaceService/CreateNamespace", func() (*kagziv1.CreateNamespaceResponse, error) {
		n := &kagziv1.Namespace{
			Namespace: request.Namespace, DisplayName: request.DisplayName, Description: request.GetDescription(), Enabled: true,
			Retention: lasting(request.Retention), Keep: request.Keep, FailureTaskQueue: request.FailureTaskQueue,
		}
		if err := checkNamespaceMessage(n); err != nil {
			return nil, err
		}
		if known := w.namespaces[n.Namespace]; known != nil {
			n.Id, n.CreatedAt, n.UpdatedAt = known.Id, known.CreatedAt, known.UpdatedAt
			if !proto.Equal(n, known) {
				return nil, taken("namespace", n.Namespace, "namespace "+n.Namespace+" exists already")
			}
			return &kagziv1.CreateNamespaceResponse{Namespace: n}, nil
		}
		w.addNamespace(proto.CloneOf(n), w.now)
		w.audited("CreateNamespace", n.Namespace, "namespace", n.Namespace, "", "")
		return &kagziv1.CreateNamespaceResponse{Namespace: proto.CloneOf(w.namespaces[n.Namespace])}, nil
	})
}

// lasting is a retention; zero is that of the server.
func lasting(d *durationpb.Duration) *durationpb.Duration {
	if d.AsDuration() == 0 {
		return nil
	}
	return proto.CloneOf(d)
}

func checkNamespaceMessage(n *kagziv1.Namespace) error {
	err := first(checkNamespace(n.Namespace), checkText("display_name", n.DisplayName, maxName),
		checkText("description", n.Description, maxReason), checkOptionalName("failure_task_queue", n.FailureTaskQueue))
	if err != nil {
		return err
	}
	if n.Retention != nil {
		if err := checkRetention("retention", n.Retention); err != nil {
			return err
		}
	}
	for _, outcome := range sortedKeys(n.Keep) {
		switch outcome {
		case "completed", "failed", "cancelled", "timed_out", "terminated":
		default:
			return invalid("keep", "has the unknown outcome %q; completed, failed, cancelled, timed_out and terminated are known", cut(outcome))
		}
		if err := checkRetention("keep", n.Keep[outcome]); err != nil {
			return err
		}
	}
	return nil
}

func checkRetention(field string, d *durationpb.Duration) error {
	if d.CheckValid() != nil {
		return invalid(field, "is not a valid duration")
	}
	if n := d.AsDuration(); n < time.Minute || n > maxDelay {
		return invalid(field, "must be between 1 minute and 10 years, got %s", n)
	}
	return nil
}

// GetNamespace is one namespace.
func (w *World) GetNamespace(ctx context.Context, request *kagziv1.GetNamespaceRequest, _ ...grpc.CallOption) (*kagziv1.GetNamespaceResponse, error) {
	return call(w, ctx, "NamespaceService/GetNamespace", func() (*kagziv1.GetNamespaceResponse, error) {
		if err := checkNamespace(request.Namespace); err != nil {
			return nil, err
		}
		n := w.namespaces[request.Namespace]
		if n == nil {
			return nil, namespaceNotFound(request.Namespace)
		}
		return &kagziv1.GetNamespaceResponse{Namespace: proto.CloneOf(n)}, nil
	})
}

func namespaceNotFound(name string) error { return notFound("namespace", name, "no namespace "+name) }

// ListNamespaces is by name.
func (w *World) ListNamespaces(ctx context.Context, request *kagziv1.ListNamespacesRequest, _ ...grpc.CallOption) (*kagziv1.ListNamespacesResponse, error) {
	return call(w, ctx, "NamespaceService/ListNamespaces", func() (*kagziv1.ListNamespacesResponse, error) {
		names := sortedKeys(w.namespaces)
		namespaces, page, err := pageOf(request, request.Page, listing[*kagziv1.Namespace]{
			n: len(names), key: func(i int) string { return names[i] },
			show: func(i int) *kagziv1.Namespace { return proto.CloneOf(w.namespaces[names[i]]) },
		})
		return &kagziv1.ListNamespacesResponse{Namespaces: namespaces, Page: page}, err
	})
}

// UpdateNamespace changes what the request names.
func (w *World) UpdateNamespace(ctx context.Context, request *kagziv1.UpdateNamespaceRequest, _ ...grpc.CallOption) (*kagziv1.UpdateNamespaceResponse, error) {
	return call(w, ctx, "NamespaceService/UpdateNamespace", func() (*kagziv1.UpdateNamespaceResponse, error) {
		n, err := w.changeNamespace("UpdateNamespace", request.Namespace, request.Reason, func(n *kagziv1.Namespace) {
			if request.DisplayName != nil {
				n.DisplayName = *request.DisplayName
			}
			if request.Description != nil {
				n.Description = *request.Description
			}
			if request.FailureTaskQueue != nil {
				n.FailureTaskQueue = *request.FailureTaskQueue
			}
			if request.Keep != nil {
				n.Keep = proto.CloneOf(request.Keep).Keep
			}
			if request.Retention != nil {
				n.Retention = lasting(request.Retention)
			}
		})
		return &kagziv1.UpdateNamespaceResponse{Namespace: n}, err
	})
}

// EnableNamespace lets runs start, be claimed and be fired again.
func (w *World) EnableNamespace(ctx context.Context, request *kagziv1.EnableNamespaceRequest, _ ...grpc.CallOption) (*kagziv1.EnableNamespaceResponse, error) {
	return call(w, ctx, "NamespaceService/EnableNamespace", func() (*kagziv1.EnableNamespaceResponse, error) {
		n, err := w.changeNamespace("EnableNamespace", request.Namespace, request.Reason, func(n *kagziv1.Namespace) { n.Enabled = true })
		if err != nil {
			return nil, err
		}
		for _, s := range w.schedules {
			if s.Namespace == n.Namespace {
				w.arm(s)
			}
		}
		w.lookForWork()
		return &kagziv1.EnableNamespaceResponse{Namespace: n}, nil
	})
}

// DisableNamespace keeps runs from starting, being claimed and being fired. What a worker holds may finish.
func (w *World) DisableNamespace(ctx context.Context, request *kagziv1.DisableNamespaceRequest, _ ...grpc.CallOption) (*kagziv1.DisableNamespaceResponse, error) {
	return call(w, ctx, "NamespaceService/DisableNamespace", func() (*kagziv1.DisableNamespaceResponse, error) {
		n, err := w.changeNamespace("DisableNamespace", request.Namespace, request.Reason, func(n *kagziv1.Namespace) { n.Enabled = false })
		return &kagziv1.DisableNamespaceResponse{Namespace: n}, err
	})
}

func (w *World) changeNamespace(method, name, reason string, change func(*kagziv1.Namespace)) (*kagziv1.Namespace, error) {
	if err := first(checkNamespace(name), checkReason(reason)); err != nil {
		return nil, err
	}
	known := w.namespaces[name]
	if known == nil {
		return nil, namespaceNotFound(name)
	}
	n := proto.CloneOf(known)
	change(n)
	if err := checkNamespaceMessage(n); err != nil {
		return nil, err
	}
	if proto.Equal(n, known) {
		return n, nil
	}
	n.UpdatedAt = stamp(w.now)
	w.namespaces[name] = n
	w.namespacesChanged()
	w.audited(method, name, "namespace", name, reason, "")
	return proto.CloneOf(n), nil
}
