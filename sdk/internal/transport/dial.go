// Package transport connects clients and workers to a server: endpoint, credentials, reconnection and retries.
package transport

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/kagzi/kagzi/proto/wire"
	"github.com/kagzi/kagzi/sdk/profile"
	"google.golang.org/grpc"
	grpcbackoff "google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
)

// Limits for one message in bytes. A server receives less than it sends, and ends a stream that
// exceeds it.
const (
	MaxMessage = MaxRequest + 64<<10
	MaxRequest = 8 << 20
)

// Flow control windows of a stream and of a connection. They are fixed, because gRPC's automatic
// sizing sends a ping for about every message, which costs more than the message.
const (
	streamWindow = 2 << 20
	connWindow   = 8 << 20
)

// streamRetries lets gRPC retry streams that reached no server; retrier does so for unary calls.
// AwaitWorkflows is left out, because gRPC would buffer what was sent, and the client knows what to
// send.
const streamRetries = `{
	"methodConfig": [{
		"name": [
			{"service": "kagzi.v1.WorkflowService", "method": "ExportWorkflow"},
			{"service": "kagzi.v1.WorkflowService", "method": "ImportWorkflow"},
			{"service": "kagzi.v1.WorkflowService", "method": "WatchWorkflow"}
		],
		"retryPolicy": {
			"maxAttempts": 5, "initialBackoff": "0.2s", "maxBackoff": "3s", "backoffMultiplier": 2.0,
			"retryableStatusCodes": ["UNAVAILABLE"]
		}
	}],
	"retryThrottling": {"maxTokens": 100, "tokenRatio": 0.1}
}`

// ReconnectSoon makes a client reconnect within a second, because people wait for it. Workers,
// which may be thousands, reconnect more slowly.
var ReconnectSoon = grpc.WithConnectParams(grpc.ConnectParams{
	Backoff: grpcbackoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.5, Jitter: 0.3,
		MaxDelay: 750 * time.Millisecond},
	MinConnectTimeout: 10 * time.Second,
})

// Endpoint names a server and the credentials for it. Empty fields are open: Complete fills them in.
type Endpoint struct {
	Profile, Address, Namespace, APIKey string
	TLS                                 *tls.Config
}

// Complete fills in the open fields from the environment, the profile of kagzi.toml, and the defaults.
func (e *Endpoint) Complete(log *slog.Logger) error {
	p, err := profile.Resolve(profile.Profile{
		Name: e.Profile, Address: e.Address, Namespace: e.Namespace, APIKey: profile.Secret(e.APIKey),
	})
	if err != nil {
		return fmt.Errorf("kagzi: %w", err)
	}
	for _, warning := range p.Warnings {
		log.Warn("settings: " + warning)
	}
	// gRPC would try to resolve a name without a port for ever, or connect to port 443. Other
	// targets with a scheme are passed to gRPC as they are.
	for _, address := range profile.Addresses(p.Address) {
		scheme, _, target := strings.Cut(address, "://")
		if _, port, err := net.SplitHostPort(address); (err != nil || port == "") && !target || target &&
			strings.HasPrefix(scheme, "http") {
			return fmt.Errorf("kagzi: address %q: want host:port, such as 127.0.0.1:50051",
				address)
		}
	}
	key, err := p.Key()
	if err != nil {
		return fmt.Errorf("kagzi: %w", err)
	}
	if e.TLS == nil {
		if e.TLS, err = p.TLSConfig(); err != nil {
			return fmt.Errorf("kagzi: %w", err)
		}
	}
	e.Address, e.Namespace, e.APIKey = p.Address, p.Namespace, string(key)
	return nil
}

// Dial makes the connection of a client or worker. The options in more take precedence.
func Dial(address, apiKey string, tlsConfig *tls.Config, more []grpc.DialOption) (*grpc.ClientConn, error) {
	transport := insecure.NewCredentials()
	if tlsConfig != nil {
		transport = credentials.NewTLS(tlsConfig)
	}
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(transport),
		grpc.WithStaticStreamWindowSize(streamWindow),
		grpc.WithStaticConnWindowSize(connWindow),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{
			Time: 30 * time.Second, Timeout: 10 * time.Second, PermitWithoutStream: true}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(MaxMessage), grpc.MaxCallSendMsgSize(MaxRequest),
			grpc.MaxRetryRPCBufferSize(MaxMessage),
			grpc.ForceCodecV2(wire.Codec{})),
		grpc.WithDefaultServiceConfig(streamRetries),
		grpc.WithChainUnaryInterceptor(new(retrier).unary, wire.NameText),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: grpcbackoff.Config{
				BaseDelay: 500 * time.Millisecond, Multiplier: 2, Jitter: 0.5, MaxDelay: 5 * time.Second},
			MinConnectTimeout: 10 * time.Second,
		}),
	}
	if apiKey != "" {
		options = append(options, grpc.WithPerRPCCredentials(bearer{key: apiKey, secure: !profile.Loopback(address)}))
	}
	target, several := profile.Target(address, tlsConfig)
	conn, err := grpc.NewClient(target, slices.Concat(options, several, more)...)
	if err != nil && apiKey != "" && strings.Contains(err.Error(), "require transport level security") {
		return nil,
			fmt.Errorf(
				"kagzi: an API key is not sent to %q without encryption: turn on TLS (tls = true in the profile, KAGZI_TLS=true, "+
					"or TLS in the options), or connect to a loopback address", address)
	}
	if err != nil {
		return nil, fmt.Errorf("kagzi: connect to %q: %w", address, err)
	}
	return conn, nil
}

// bearer sends an API key with each call; without TLS only to this machine.
type bearer struct {
	key    string
	secure bool
}

func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + b.key}, nil
}

func (b bearer) RequireTransportSecurity() bool { return b.secure }
