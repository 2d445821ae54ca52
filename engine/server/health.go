package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// health implements grpc.health.v1. Each answer checks the store.
type health struct {
	healthpb.UnimplementedHealthServer
	server *Server
}

// watchHealthEvery is how often Watch checks the health; an outage must show within 5 s.
const watchHealthEvery = time.Second

func (h *health) Check(ctx context.Context,
	request *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	if !h.server.serves(request.Service) {
		return nil, noService(request.Service)
	}
	return &healthpb.HealthCheckResponse{Status: h.status(ctx)}, nil
}

func (h *health) status(ctx context.Context) healthpb.HealthCheckResponse_ServingStatus {
	if h.server.trouble(ctx) != "" {
		return healthpb.HealthCheckResponse_NOT_SERVING
	}
	return healthpb.HealthCheckResponse_SERVING
}

func (h *health) Watch(request *healthpb.HealthCheckRequest, stream healthpb.Health_WatchServer) error {
	ticker := time.NewTicker(watchHealthEvery)
	defer ticker.Stop()
	last := healthpb.HealthCheckResponse_UNKNOWN
	for {
		now := healthpb.HealthCheckResponse_SERVICE_UNKNOWN
		if h.server.serves(request.Service) {
			now = h.status(stream.Context())
		}
		if now != last {
			if err := stream.Send(&healthpb.HealthCheckResponse{Status: now}); err != nil {
				return err
			}
			last = now
		}
		select {
		case <-ticker.C:
		case <-stream.Context().Done():
			return stream.Context().Err()
		case <-h.server.stopping:
			return wire.ErrStopping
		}
	}
}

// serves says whether the name is a registered service, or empty, which means the whole server.
func (s *Server) serves(service string) bool {
	if service == "" {
		return true
	}
	_, ok := s.grpc.GetServiceInfo()[service]
	return ok
}

func noService(name string) error {
	return &engine.Error{Kind: engine.KindNotFound, Subject: "service", SubjectID: wire.Cut(name),
		Message: fmt.Sprintf("this server has no service %q", wire.Cut(name))}
}

// trouble says in one sentence why this server cannot work; empty if it can.
func (s *Server) trouble(ctx context.Context) string {
	select {
	case <-s.stopping:
		return "the server is stopping"
	default:
	}
	return s.storeTrouble(ctx)
}

// storeTrouble says in one sentence why writes cannot be made durable; empty if they can.
func (s *Server) storeTrouble(ctx context.Context) string {
	if err := s.store.Health(ctx); err != nil {
		_, detail := s.errors.Detail(err)
		return detail.Message
	}
	return ""
}

// HealthCheck returns the same status as grpc.health.v1, with its reason.
func (s *Server) HealthCheck(ctx context.Context,
	request *kagziv1.HealthCheckRequest) (*kagziv1.HealthCheckResponse, error) {
	if !s.serves(request.GetService()) {
		return nil, noService(request.GetService())
	}
	response := &kagziv1.HealthCheckResponse{
		Status: kagziv1.ServingStatus_SERVING_STATUS_SERVING, Message: "ok", Timestamp: timestamppb.New(s.now()),
	}
	if trouble := s.trouble(ctx); trouble != "" {
		response.Status, response.Message = kagziv1.ServingStatus_SERVING_STATUS_NOT_SERVING, trouble
	}
	return response, nil
}

// healthLimit limits how long a health check may take; an outage must show within 5 s.
const healthLimit = 4 * time.Second

// Healthy returns nil if the store can make writes durable; otherwise its error says why not, in
// one sentence without a secret.
func (s *Server) Healthy(ctx context.Context) error { return boundedly(ctx, s.storeTrouble) }

// Ready returns nil if the server can work: it is Healthy and not stopping. Its error has the text
// of HealthCheck.
func (s *Server) Ready(ctx context.Context) error { return boundedly(ctx, s.trouble) }

// Notice returns what an operator should know of a server that is Ready, in one sentence; empty:
// nothing.
func (s *Server) Notice() string {
	if s.diskSpace().Low {
		return "new runs are refused: the disk of the database is nearly full; existing runs go on"
	}
	return ""
}

// diskSpace returns the zero value for a database that is not on a disk of this machine.
func (s *Server) diskSpace() engine.DiskSpace {
	if disk, ok := s.store.(engine.Disk); ok {
		return disk.Space()
	}
	return engine.DiskSpace{}
}

// boundedly calls trouble with healthLimit and returns its answer as an error.
func boundedly(ctx context.Context, trouble func(context.Context) string) error {
	ctx, cancel := context.WithTimeout(ctx, healthLimit)
	defer cancel()
	if why := trouble(ctx); why != "" {
		return errors.New(why)
	}
	return nil
}
