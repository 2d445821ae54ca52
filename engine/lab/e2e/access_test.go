package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

const (
	admin    = kagziv1.KeyRole_KEY_ROLE_ADMIN
	operator = kagziv1.KeyRole_KEY_ROLE_OPERATOR
	client   = kagziv1.KeyRole_KEY_ROLE_CLIENT
	worker   = kagziv1.KeyRole_KEY_ROLE_WORKER
	viewer   = kagziv1.KeyRole_KEY_ROLE_VIEWER
)

// as returns the server as the owner of the secret sees it.
func (s *Server) as(t testing.TB, secret string) *Server {
	t.Helper()
	show := func(ctx context.Context) context.Context {
		return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+secret)
	}
	conn := s.dial(t,
		grpc.WithUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn,
			next grpc.UnaryInvoker, o ...grpc.CallOption) error {
			return next(show(ctx), method, req, reply, cc, o...)
		}),
		grpc.WithStreamInterceptor(func(ctx context.Context, d *grpc.StreamDesc, cc *grpc.ClientConn, method string,
			next grpc.Streamer, o ...grpc.CallOption) (grpc.ClientStream, error) {
			return next(show(ctx), d, cc, method, o...)
		}))
	return &Server{Conn: conn, Address: s.Address, pipe: s.pipe, secret: secret, api: s.api, Store: s.Store,
		clock: s.clock, notify: s.notify, tb: t}
}

// key makes a key and returns it with its secret.
func (s *Server) key(t testing.TB, k *kagziv1.Key) (*kagziv1.Key, string) {
	t.Helper()
	answer := fine(s.admin().CreateKey(within(t, 20*time.Second), &kagziv1.CreateKeyRequest{Key: k}))(t)
	return answer.Key, answer.Secret
}

// lock makes the first key of a database and returns the server as its owner sees it.
func (s *Server) lock(t testing.TB) *Server {
	t.Helper()
	_, secret := s.key(t, &kagziv1.Key{Name: "root", Role: admin})
	return s.as(t, secret)
}

func TestFromTheFirstKeyOnEveryCallNeedsOne(t *testing.T) {
	eachPair(t, patient, func(t *testing.T, one, other *Server) {
		ctx := within(t, time.Minute)
		if me := fine(one.admin().WhoAmI(ctx, &kagziv1.WhoAmIRequest{}))(t); me.Key != nil || me.KeysRequired ||
			me.Encrypted {
			t.Errorf("without keys I am %v", me)
		}
		_, err := one.admin().CreateKey(ctx, &kagziv1.CreateKeyRequest{
			Key: &kagziv1.Key{Name: "c", Role: client, Namespaces: []string{"default"}}})
		wantRefused(t, "a first key that is no admin's", err, codes.FailedPrecondition,
			kagziv1.ErrorCode_ERROR_CODE_PRECONDITION_FAILED, "first key")
		root := one.lock(t)
		if me := fine(root.admin().WhoAmI(ctx, &kagziv1.WhoAmIRequest{}))(t); me.Key.GetName() != "root" ||
			!me.KeysRequired {
			t.Errorf("with the first key I am %v", me)
		}
		began := time.Now()
		for {
			_, err := other.workflows().ListWorkflows(ctx, &kagziv1.ListWorkflowsRequest{})
			if status.Code(err) == codes.Unauthenticated {
				break
			}
			if err != nil || time.Since(began) > 5*time.Second {
				t.Fatalf("%s after the first key was made, a call of another server without one: %v",
					time.Since(began), err)
			}
		}
		_, err = one.workflows().ListWorkflows(ctx, &kagziv1.ListWorkflowsRequest{})
		wantRefused(t, "a call without a key", err, codes.Unauthenticated, kagziv1.ErrorCode_ERROR_CODE_UNAUTHORIZED,
			"an API key is needed")
		if _, err := one.admin().HealthCheck(ctx, &kagziv1.HealthCheckRequest{}); err != nil {
			t.Errorf("whether it is alive: %v", err)
		}
	})
}

func TestOpenCallsEndWithTheirKeyOnEveryServer(t *testing.T) {
	eachBackend(t, func(t *testing.T, url string) {
		servers := []*Server{New(t, openStore(t, url), patient)}
		if _, embedded := cutSQLite(url); !embedded {
			servers = append(servers, New(t, openStore(t, url), patient), New(t, openStore(t, url), patient))
		}
		root := servers[0].lock(t)
		ctx := within(t, time.Minute)
		key, secret := root.key(t, &kagziv1.Key{Name: "w", Role: worker, Namespaces: []string{"default"}})
		gone, seen := root.key(t, &kagziv1.Key{Name: "c", Role: client, Namespaces: []string{"default"}})
		run := root.start(t, func(r *kagziv1.StartWorkflowRequest) { r.TaskQueue = "nobody" })
		ended := map[string]chan error{}
		for i, s := range servers {
			name := fmt.Sprintf("server %d", i+1) // the first of them learns of it first
			w := s.as(t, secret).session(t)
			w.grant(1)
			ended["a session at "+name] = w.ended
			c := s.as(t, seen)
			watch := fine(c.workflows().WatchWorkflow(ctx, &kagziv1.WatchWorkflowRequest{RunId: run}))(t)
			fine(watch.Recv())(t)
			over := make(chan error, 2)
			ended["a watch at "+name] = over
			go func() {
				for {
					if _, err := watch.Recv(); err != nil {
						over <- err
						return
					}
				}
			}()
			many := fine(c.workflows().AwaitWorkflows(ctx))(t)
			if err := many.Send(&kagziv1.AwaitWorkflowsRequest{
				Waits: []*kagziv1.AwaitWorkflowsRequest_Wait{
					{Seq: 1, RunId: nobody}, {Seq: 2, RunId: run}}}); err != nil {
				t.Fatal(err)
			}
			fine(many.Recv())(t)
			last := make(chan error, 1)
			ended["waits at "+name] = last
			go func() {
				_, err := many.Recv()
				last <- err
			}()
			waits := make(chan error, 1)
			ended["a long poll at "+name] = waits
			go func() {
				_, err := c.workflows().WaitWorkflow(ctx, &kagziv1.WaitWorkflowRequest{RunId: run})
				waits <- err
			}()
		}
		root.awaitPoller(t)
		began := time.Now()
		for _, id := range []string{key.KeyId, gone.KeyId} {
			fine(root.admin().RevokeKey(ctx, &kagziv1.RevokeKeyRequest{KeyId: id}))(t)
		}
		for what, over := range ended {
			if err := receive(t, what, over); status.Code(err) != codes.Unauthenticated || errors.Is(err, io.EOF) {
				t.Errorf("%s ended with %v, want UNAUTHENTICATED", what, err)
			}
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("it took %s until all was over, want 5 s", took)
		}
		for _, s := range servers {
			_, err := s.as(t, seen).workflows().GetWorkflow(ctx, &kagziv1.GetWorkflowRequest{RunId: run})
			wantRefused(t, "a revoked key", err, codes.Unauthenticated,
				kagziv1.ErrorCode_ERROR_CODE_UNAUTHORIZED, "revoked")
		}
	})
}

// tenant is a namespace that holds something of every kind.
type tenant struct {
	inputStage
	namespace, external string
	keys                map[kagziv1.KeyRole]*Server
}

// settle makes a tenant. Its worker serves the queue "q" and the type "t", and has a key for just
// these.
func settle(t testing.TB, root *Server, namespace string) *tenant {
	t.Helper()
	n := &tenant{namespace: namespace, external: "order-of-" + namespace, keys: map[kagziv1.KeyRole]*Server{}}
	for _, role := range []kagziv1.KeyRole{admin, operator, client, worker, viewer} {
		k := &kagziv1.Key{Name: namespace + "-" + strings.ToLower(role.String()), Role: role,
			Namespaces: []string{namespace}}
		if role == worker {
			k.TaskQueues, k.WorkflowTypes = []string{"q"}, []string{"t", "input"}
		}
		_, secret := root.key(t, k)
		n.keys[role] = root.as(t, secret)
	}
	w := n.keys[worker].register(t, func(r *kagziv1.RegisterRequest) {
		r.Namespace, r.TaskQueue, r.WorkerId, r.MaxConcurrent = namespace, "q", "worker-of-"+namespace, 1
	})
	n.worker = w.id
	n.run = n.keys[client].start(t, func(r *kagziv1.StartWorkflowRequest) {
		r.Namespace, r.TaskQueue, r.ExternalId = namespace, "q", n.external
	})
	task := w.take(t)
	n.token = task.LeaseToken
	n.step = fine(n.keys[worker].workers().CompleteStep(within(t, 20*time.Second), &kagziv1.CompleteStepRequest{
		Namespace: namespace, RunId: n.run, StepId: "first", Output: text("secret of " + namespace),
		LeaseToken: n.token,
	}))(t).Step.StepId
	n.schedule = n.keys[operator].schedule(t, func(r *kagziv1.CreateWorkflowScheduleRequest) {
		r.Namespace, r.CronExpr, r.TaskQueue, r.Input = namespace, "@yearly", "idle", text("secret of "+namespace)
	}).ScheduleId
	return n
}

// state returns all data of a tenant, for comparison.
func (n *tenant) state(t testing.TB, root *Server) string {
	t.Helper()
	ctx := within(t, 20*time.Second)
	page := &kagziv1.PageRequest{PageSize: 1000}
	workers := fine(root.admin().ListWorkers(ctx, &kagziv1.ListWorkersRequest{Namespace: n.namespace, Page: page}))(t)
	schedules := fine(root.schedules().ListWorkflowSchedules(
		ctx, &kagziv1.ListWorkflowSchedulesRequest{Namespace: n.namespace, Page: page}))(t)
	runs := fine(root.workflows().ListWorkflows(
		ctx, &kagziv1.ListWorkflowsRequest{Namespace: n.namespace, Page: page}))(t)
	steps := fine(root.admin().ListSteps(ctx, &kagziv1.ListStepsRequest{Namespace: n.namespace, RunId: n.run}))(t)
	signals := fine(root.workflows().ListSignals(
		ctx, &kagziv1.ListSignalsRequest{Namespace: n.namespace, RunId: n.run}))(t)
	space := fine(root.namespaces().GetNamespace(ctx, &kagziv1.GetNamespaceRequest{Namespace: n.namespace}))(t)
	return fmt.Sprint(workers, schedules, runs, steps, signals, space)
}

// requests returns a request for every method, with the tenant's ids, in a namespace.
func (n *tenant) requests(namespace string) map[string]proto.Message {
	all := goodRequests(n.inputStage)
	for name, request := range all {
		all[name] = proto.Clone(request)
		rename(all[name].ProtoReflect(), namespace, n)
	}
	all["Deregister"] = &kagziv1.DeregisterRequest{WorkerId: n.worker}
	all["DrainWorker"] = &kagziv1.DrainWorkerRequest{WorkerId: n.worker}
	all["ForceOfflineWorker"] = &kagziv1.ForceOfflineWorkerRequest{WorkerId: n.worker}
	all["GetStats"] = &kagziv1.GetStatsRequest{Namespace: &namespace}
	all["WatchStats"] = &kagziv1.WatchStatsRequest{Namespace: &namespace}
	all["GetWorkflowByExternalId"] = &kagziv1.GetWorkflowByExternalIdRequest{
		Namespace: namespace, ExternalId: n.external}
	return all
}

// rename sets every namespace of a message, and replaces ids that name nothing by the tenant's.
func rename(m protoreflect.Message, namespace string, n *tenant) {
	ids := map[protoreflect.Name]string{"namespace": namespace, "schedule_id": n.schedule}
	if m.Descriptor().Name() != "StartWorkflowRequest" {
		ids["run_id"] = n.run
	}
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		if id := ids[field.Name()]; id != "" && field.Kind() == protoreflect.StringKind && !field.HasPresence() {
			m.Set(field, protoreflect.ValueOfString(id))
		}
		switch {
		case field.Message() == nil || field.IsMap() || !m.Has(field):
		case field.IsList():
			for j := range m.Get(field).List().Len() {
				rename(m.Get(field).List().Get(j).Message(), namespace, n)
			}
		default:
			rename(m.Mutable(field).Message(), namespace, n)
		}
	}
}

// global lists the methods whose requests name nothing of a tenant.
var global = []string{"HealthCheck", "GetServerInfo", "WhoAmI", "CreateSession", "EndSession",
	"ListNamespaces", "PreviewSchedule", "Register"}

func TestNoKeyReachesAnotherNamespace(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		root := s.lock(t)
		a, b := settle(t, root, "a"), settle(t, root, "b")
		before := a.state(t, root)
		absent := &tenant{namespace: "b", external: "order-of-z", inputStage: inputStage{
			run: nobody, step: nobody, schedule: nobody, worker: "worker-of-z", token: strings.Repeat("5", 32)}}
		tried := 0
		eachMethod(func(name string, method protoreflect.MethodDescriptor, path string) {
			if slices.Contains(global, name) {
				return
			}
			for role, key := range b.keys {
				ask := func(request proto.Message) error {
					tried++
					if request == nil {
						request = emptyOf(method.Input())
					}
					return key.callEach(t, method, path, request)
				}
				// In the namespace of a, by name.
				err := ask(a.requests("a")[name])
				if code := status.Code(err); code != codes.PermissionDenied && code != codes.NotFound &&
					name != "Session" {
					t.Errorf("%s by the %s of b about a: %v", name, role, err)
				}
				if text := fmt.Sprint(err); strings.Contains(text, "secret of a") {
					t.Errorf("%s by the %s of b tells %s", name, role, text)
				}
				// In b, with the ids of a: as if they did not exist. Calls that create something,
				// or can be repeated, would change b by being made twice.
				if changesB(name) {
					if makesInB(name) {
						_ = ask(a.requests("b")[name]) // with parents and the like of a: its state is compared below
					}
					continue
				}
				theirs, none := ask(a.requests("b")[name]), ask(absent.requests("b")[name])
				if got, want := anonymous(theirs, a), anonymous(none, absent); got != want {
					t.Errorf("%s by the %s of b with what is a's: %s; with what nobody has: %s", name, role, got, want)
				}
			}
		})
		if after := a.state(t, root); after != before {
			t.Errorf("a was\n%s\nand is\n%s", before, after)
		}
		if tried < 500 {
			t.Errorf("%d calls were tried: the contract was not found", tried)
		}
		listed := fine(b.keys[viewer].namespaces().ListNamespaces(
			within(t, 20*time.Second), &kagziv1.ListNamespacesRequest{
				Page: &kagziv1.PageRequest{IncludeTotalCount: true}}))(t)
		if len(listed.Namespaces) != 1 || listed.Namespaces[0].Namespace != "b" || listed.Page.TotalCount != 1 {
			t.Errorf("b is shown the namespaces %v", listed)
		}
	})
}

// changesB reports whether a method changes the caller's own namespace whatever ids it gets.
func changesB(name string) bool {
	return slices.Contains([]string{
		"StartWorkflow", "StartWorkflows", "CreateWorkflowSchedule", "CreateHook", "CreateNamespace",
		"UpdateNamespace",
		"EnableNamespace", "DisableNamespace", "BulkWorkflows", "ImportWorkflow",
		"ListWorkers", "MatchWorkers", "ListWorkflows", "GetQueueDepth", "ListWorkflowTypes", "GetStats", "WatchStats",
		"ListAuditEvents", "ListWorkflowSchedules", "Watch", "GetNamespace",
	}, name)
}

func makesInB(name string) bool {
	return strings.HasPrefix(name, "StartWorkflow") ||
		slices.Contains([]string{"CreateWorkflowSchedule", "CreateHook", "BulkWorkflows", "ImportWorkflow"}, name)
}

// anonymous returns an answer without the ids of the request.
func anonymous(err error, n *tenant) string {
	text := fmt.Sprint(status.Code(err), " ", detailOf(err).Code, " ", status.Convert(err).Message())
	return strings.NewReplacer(n.run, "ID", n.step, "ID", n.schedule, "ID", n.worker, "ID", n.external,
		"ID").Replace(text)
}

func TestAPageTokenOfOneNamespaceShowsNothingOfAnother(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		root := s.lock(t)
		a, b := settle(t, root, "a"), settle(t, root, "b")
		ctx := within(t, 20*time.Second)
		for range 3 {
			a.keys[client].start(t, func(r *kagziv1.StartWorkflowRequest) { r.Namespace = "a" })
		}
		request := &kagziv1.ListWorkflowsRequest{Namespace: "a", Page: &kagziv1.PageRequest{PageSize: 1}}
		token := fine(a.keys[client].workflows().ListWorkflows(ctx, request))(t).Page.NextPageToken
		for _, namespace := range []string{"a", "b"} {
			answer, err := b.keys[client].workflows().ListWorkflows(
				ctx, &kagziv1.ListWorkflowsRequest{Namespace: namespace,
					Page: &kagziv1.PageRequest{PageSize: 1, PageToken: token}})
			if err == nil {
				t.Errorf("with a's token b is shown %v in %s", answer, namespace)
			}
		}
	})
}

func TestAWorkersKeyDoesOnlyTheWorkThatItIsFor(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		root := s.lock(t)
		a := settle(t, root, "a")
		ctx := within(t, time.Minute)
		_, secret := root.key(t, &kagziv1.Key{Name: "mail", Role: worker, Namespaces: []string{"a"},
			TaskQueues: []string{"mail-*"}, WorkflowTypes: []string{"send"}})
		mail := root.as(t, secret)
		denied := func(what string, err error, words string) {
			t.Helper()
			wantRefused(t, what, err, codes.PermissionDenied, kagziv1.ErrorCode_ERROR_CODE_UNAUTHORIZED, words)
		}
		register := func(change func(*kagziv1.RegisterRequest)) error {
			r := &kagziv1.RegisterRequest{Namespace: "a", TaskQueue: "mail-1", WorkflowTypes: []string{"send"}}
			change(r)
			_, err := mail.workers().Register(ctx, r)
			return err
		}
		denied("another queue", register(func(r *kagziv1.RegisterRequest) { r.TaskQueue = "q" }),
			`not for the task queue "q"`)
		denied("a further queue", register(func(r *kagziv1.RegisterRequest) { r.TaskQueues = []string{"mail-2", "q"} }),
			`not for the task queue "q"`)
		denied("no queue, which is the default one", register(func(r *kagziv1.RegisterRequest) { r.TaskQueue = "" }),
			`not for the task queue "default"`)
		denied("another type", register(func(r *kagziv1.RegisterRequest) { r.WorkflowTypes = []string{"send", "t"} }),
			`not for the workflow type "t"`)
		denied("a limit on another type", register(func(r *kagziv1.RegisterRequest) {
			r.WorkflowTypeConcurrency = []*kagziv1.WorkflowTypeConcurrency{{WorkflowType: "t", MaxConcurrent: 1}}
		}), `not for the workflow type "t"`)
		denied("another namespace", register(func(r *kagziv1.RegisterRequest) { r.Namespace = "b" }),
			`not for the namespace "b"`)
		wantRefused(t, "the id of a worker of others",
			register(func(r *kagziv1.RegisterRequest) { r.WorkerId = a.worker }),
			codes.AlreadyExists, kagziv1.ErrorCode_ERROR_CODE_CONFLICT, "taken by another worker")
		left := a.keys[worker].register(t, func(r *kagziv1.RegisterRequest) {
			r.Namespace, r.TaskQueue, r.WorkerId = "a", "q", "left"
		})
		fine(left.workers().Deregister(ctx, &kagziv1.DeregisterRequest{WorkerId: left.id}))(t)
		wantRefused(t, "the id of one that has left",
			register(func(r *kagziv1.RegisterRequest) { r.WorkerId = left.id }),
			codes.AlreadyExists, kagziv1.ErrorCode_ERROR_CODE_CONFLICT, "taken by another worker")
		stream := fine(mail.workers().Session(ctx))(t)
		if err := stream.Send(&kagziv1.SessionRequest{
			Seq: 1, Operation: &kagziv1.SessionRequest_Hello{
				Hello: &kagziv1.RegisterRequest{Namespace: "a", TaskQueue: "q", WorkflowTypes: []string{"t"}}}}); err !=
			nil {
			t.Fatal(err)
		}
		_, err := stream.Recv()
		denied("a session on another queue", err, `not for the task queue "q"`)

		// A worker of others in the same namespace is treated as missing.
		_, err = mail.workers().PollTask(ctx, &kagziv1.PollTaskRequest{
			Namespace: "a", WorkerId: a.worker, TaskQueue: "q", WorkflowTypes: []string{"t"}, Wait: durationpb.New(0)})
		wantRefused(t, "a poll as the worker of others", err, codes.FailedPrecondition,
			kagziv1.ErrorCode_ERROR_CODE_PRECONDITION_FAILED, "not registered")
		_, err = mail.workers().Heartbeat(ctx, &kagziv1.HeartbeatRequest{WorkerId: a.worker, HeldIsWhole: true})
		wantRefused(t, "a heartbeat for it", err, codes.NotFound, kagziv1.ErrorCode_ERROR_CODE_NOT_FOUND, "not found")
		_, err = mail.workers().Deregister(ctx, &kagziv1.DeregisterRequest{WorkerId: a.worker})
		wantRefused(t, "its goodbye", err, codes.NotFound, kagziv1.ErrorCode_ERROR_CODE_NOT_FOUND, "not found")
		_, err = mail.workers().GetHistory(ctx, &kagziv1.GetHistoryRequest{Namespace: "a", RunId: a.run})
		wantRefused(t, "the history of its run", err, codes.NotFound, kagziv1.ErrorCode_ERROR_CODE_NOT_FOUND, "no run")
		_, err = mail.workers().CompleteWorkflow(
			ctx, &kagziv1.CompleteWorkflowRequest{Namespace: "a", RunId: a.run, LeaseToken: strings.Repeat("5", 32)})
		wantRefused(t, "the end of its run with a token that is guessed", err, codes.FailedPrecondition,
			kagziv1.ErrorCode_ERROR_CODE_LEASE_LOST, "lost")
		_, err = mail.workflows().ListWorkflows(ctx, &kagziv1.ListWorkflowsRequest{Namespace: "a"})
		denied("a list of runs", err, "role worker")
		_, err = mail.workflows().StartWorkflow(
			ctx, &kagziv1.StartWorkflowRequest{Namespace: "a", WorkflowType: "send"})
		denied("a start", err, "role worker")

		// The keys also do what they are for, end to end.
		run := a.keys[client].start(t, func(r *kagziv1.StartWorkflowRequest) {
			r.Namespace, r.TaskQueue, r.WorkflowType = "a", "mail-1", "send"
		})
		w := mail.register(t, func(r *kagziv1.RegisterRequest) {
			r.Namespace, r.TaskQueue, r.WorkflowTypes = "a", "mail-1", []string{"send"}
		})
		task := w.take(t)
		fine(mail.workers().Heartbeat(ctx, &kagziv1.HeartbeatRequest{WorkerId: w.id}))(t)
		fine(mail.workers().SetRunNote(ctx, &kagziv1.SetNote{RunId: run, LeaseToken: task.LeaseToken, Note: "half"}))(t)
		fine(mail.workers().CompleteWorkflow(ctx,
			&kagziv1.CompleteWorkflowRequest{Namespace: "a", RunId: run, LeaseToken: task.LeaseToken,
				Output: text("sent")}))(t)
		seen := fine(a.keys[client].workflows().GetWorkflow(
			ctx, &kagziv1.GetWorkflowRequest{Namespace: "a", RunId: run}))(t).Workflow
		if wantOutput(t, seen, "sent"); seen.Note != "half" {
			t.Errorf("its note is %q", seen.Note)
		}
		seen = fine(a.keys[viewer].workflows().GetWorkflow(
			ctx, &kagziv1.GetWorkflowRequest{Namespace: "a", RunId: run}))(t).Workflow
		if seen.Output.GetData() != nil || seen.Input.GetData() != nil || seen.Note != "half" {
			t.Errorf("a viewer is shown %v", seen)
		}
	})
}

func TestAKeyIsNoTokenWhereTokensMayBeMissing(t *testing.T) {
	o := patient
	o.Server.AllowUnleased = true
	eachServer(t, o, func(t *testing.T, s *Server) {
		root := s.lock(t)
		a := settle(t, root, "a")
		_, err := a.keys[worker].workers().CompleteWorkflow(
			within(t, 20*time.Second), &kagziv1.CompleteWorkflowRequest{Namespace: "a", RunId: a.run})
		wantRefused(t, "the end of a run without its token", err, codes.InvalidArgument,
			kagziv1.ErrorCode_ERROR_CODE_INVALID_ARGUMENT, "lease_token")
	})
}
